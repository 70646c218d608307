"""Releases in Iceberg tables: what their catalogs and snapshots tell, and what only they can be refused for."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import lakes
import pyarrow as pa
import pyarrow.parquet as pq
import pyiceberg.catalog
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import ServiceUnavailableError, TableAlreadyExistsError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, IntegerType, NestedField, StringType
from pyiceberg.utils.config import Config

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import EngineError, InputError, SchemaError
from privrisk_spark.storage.lakes.iceberg_releases import IcebergReleases
from privrisk_spark.storage.lakes.release_table import TableRelease
from privrisk_spark.storage.lakes.snapshot import Asked

COLUMNS = {"age": pa.string(), "cost": pa.float64()}
NONE = pa.table({"age": pa.array([], pa.string()), "cost": pa.array([], pa.float64())})


def at(name: str = "tests.lake.table", date_column: str | None = None) -> IcebergReleases:
    return IcebergReleases(Asked("output.lake", "iceberg", catalog=name), date_column)


def release(directory: Path, number: int, date: str = "2026-11-21") -> TableRelease:
    directory.mkdir(exist_ok=True)
    file = directory / f"{number}.parquet"
    pq.write_table(pa.table({"age": [f"{number}"] * 3, "cost": [float(number)] * 3}), file, store_schema=False)
    return TableRelease(f"r{number}", f"{number:064x}", (file, file), date)


def commit(table: IcebergReleases, one: TableRelease, *before: TableRelease) -> int | None:
    return table.commit(one, newest=lambda: True, releases=lambda: [known.digest for known in before])


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lakes.configure(monkeypatch, tmp_path / "x")
    return tmp_path / "x"


def opened(place: Path) -> Table:
    return lakes.catalog(place).load_table("lake.table")


def test_a_snapshot_tells_the_run_id_the_digest_and_no_place_but_its_own(place: Path, tmp_path: Path) -> None:
    first, second = release(tmp_path / "files", 1), release(tmp_path / "files", 2)
    numbers = [commit(at(), first), commit(at(), second, first)]
    table = opened(place)
    assert [one.snapshot_id for one in table.snapshots()] == numbers
    for snapshot, one in zip(table.snapshots(), (first, second), strict=True):
        assert snapshot.summary is not None
        said = {k: v for k, v in snapshot.summary.additional_properties.items() if k.startswith("privrisk")}
        assert said == {"privrisk.run_id": one.run_id, "privrisk.release": one.digest}
    assert table.properties["privrisk.release"] == second.digest
    for file in (place / "lake").rglob("metadata/*"):
        assert str(tmp_path / "files") not in file.read_bytes().decode("latin-1")
    for manifest in table.current_snapshot().manifests(table.io):  # type: ignore[union-attr]
        for entry in manifest.fetch_manifest_entry(table.io):  # what a manifest says is compressed in its file
            assert str(place / "lake") in repr(entry)
            assert str(tmp_path / "files") not in repr(entry)
            assert not entry.data_file.lower_bounds


@pytest.mark.parametrize("by", [None, "day"])
def test_a_release_whose_snapshot_has_expired_is_found(place: Path, tmp_path: Path, by: str | None) -> None:
    """The newest, or that of each date, and so another of the output may replace it."""
    table, first = at(date_column=by), release(tmp_path / "files", 1)
    commit(table, first)
    opened(place).append(pa.table({"age": ["x"], "cost": [9.0], **({by: pa.array([0], pa.date32())} if by else {})}))
    (old, _) = opened(place).snapshots()
    opened(place).maintenance.expire_snapshots().by_id(old.snapshot_id).commit()
    assert len(opened(place).snapshots()) == 1
    assert table.holds(first.digest)
    assert commit(table, first, first) is None
    assert commit(table, release(tmp_path / "files", 2), first) is not None


def partitioned(place: Path) -> None:
    schema = Schema(NestedField(1, "age", StringType()), NestedField(2, "cost", DoubleType()))
    spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "age"))
    lakes.catalog(place).create_table("lake.table", schema=schema, partition_spec=spec)


def formerly_partitioned(place: Path) -> None:
    partitioned(place)
    opened(place).append(pa.table({"age": ["x"], "cost": [9.0]}))
    with opened(place).update_spec() as update:
        update.remove_field("age")


def required(place: Path) -> None:
    schema = Schema(NestedField(1, "age", StringType(), required=True), NestedField(2, "cost", DoubleType()))
    lakes.catalog(place).create_table("lake.table", schema=schema)


def unmapped(place: Path) -> None:
    lakes.catalog(place).create_table("lake.table", schema=NONE.schema)


def of_old_format(place: Path) -> None:
    lakes.catalog(place).create_table("lake.table", schema=NONE.schema, properties={"format-version": "1"})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (partitioned, "it is partitioned otherwise"),
        (formerly_partitioned, "it is partitioned otherwise"),
        (required, "it has columns that must not be missing"),
        (unmapped, r"it does not map the names of files to its columns \(schema.name-mapping.default\)"),
        (of_old_format, "it has format version 1, and 2 is written here"),
    ],
)
def test_a_table_that_the_files_would_break_is_refused(
    place: Path, tmp_path: Path, make: Callable[[Path], None], said: str
) -> None:
    make(place)
    before = opened(place).metadata_location
    with pytest.raises(SchemaError, match=f"output.lake.catalog: .* cannot be replaced by a release: {said}"):
        # A release of the output is in it, so that it is not for its rows.
        at().check(lambda: ["00"], COLUMNS) if make is not formerly_partitioned else _with_release(place)
    assert opened(place).metadata_location == before


def _with_release(place: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IcebergReleases, "_has", lambda *_: True)
        at().check(lambda: ["00"], COLUMNS)


def test_delete_files_are_refused(place: Path, tmp_path: Path) -> None:
    from pyiceberg.manifest import DataFileContent, ManifestContent

    first = release(tmp_path / "files", 1)
    commit(at(), first)
    changed = lakes.with_file(opened(place), listed=ManifestContent.DELETES, content=DataFileContent.POSITION_DELETES)
    catalog = lakes.catalog(place)
    catalog.drop_table("lake.table")
    catalog.register_table("lake.table", f"file://{changed}")
    with pytest.raises(SchemaError, match="it has delete files"):
        at().check(lambda: [first.digest], COLUMNS)


@pytest.mark.parametrize(
    "kind", [pa.struct([("a", pa.int64())]), pa.list_(pa.int8()), pa.map_(pa.string(), pa.int16())]
)
def test_columns_that_would_not_be_read_back_are_refused(kind: pa.DataType) -> None:
    with pytest.raises(SchemaError, match="cannot have column 'cost' of type"):
        at().check(list, {**COLUMNS, "cost": kind})


def test_catalogs_and_namespaces_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SchemaError, match=r"'other.lake.table' cannot be opened .* no catalog 'other' in pyiceberg's"):
        at("other.lake.table").check(list, COLUMNS)
    with pytest.raises(SchemaError, match="has no namespace 'other'; make that first"):
        at("tests.other.table").check(list, COLUMNS)
    with monkeypatch.context() as patch:
        patch.delenv("PYICEBERG_CATALOG__TESTS__WAREHOUSE")
        patch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
        with pytest.raises(SchemaError, match=r"cannot be made .* its catalog gives no place for a table \(warehouse"):
            at().check(list, COLUMNS)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyiceberg", None)
        with pytest.raises(InputError, match=r"pip install 'privrisk-spark\[iceberg\]"):
            at().check(list, COLUMNS)


def test_a_catalog_that_does_not_answer_is_to_be_tried_again(place: Path) -> None:
    (place / "catalog.db").write_bytes(b"no database" * 1000)
    with pytest.raises(EngineError, match=r"'tests.lake.table' cannot be looked at .* Run the same run id again"):
        at().check(list, COLUMNS)


def test_columns_that_change_between_look_and_commit_are_seen(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No snapshot is made by that, so that only the numbers of columns tell."""
    first = release(tmp_path / "files", 1)
    commit(at(), first)
    uploaded, left = IcebergReleases._uploaded, [1]

    def then(*arguments: Any) -> Any:
        done = uploaded(*arguments)
        while left:
            left.pop()
            with opened(place).update_schema() as update:
                update.add_column("more", IntegerType())
        return done

    monkeypatch.setattr(IcebergReleases, "_uploaded", then)
    with pytest.raises(SchemaError, match="has column 'more', which the release lacks"):
        commit(at(), release(tmp_path / "files", 2), first)
    assert len(opened(place).snapshots()) == 1


def test_a_commit_is_not_moved_onto_another_snapshot_by_pyiceberg(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does where a table allows it: rows of two releases of a date would then be there together."""
    table, releases = at(date_column="day"), [release(tmp_path / "files", 1)]
    commit(table, *releases)
    with opened(place).transaction() as transaction:
        transaction.set_properties({"write.delete.isolation-level": "snapshot"})
    releases += [release(tmp_path / "files", number, "2026-11-22") for number in (2, 3)]
    uploaded, left = IcebergReleases._uploaded, [1]

    def then(*arguments: Any) -> Any:
        done = uploaded(*arguments)
        while left:
            left.pop()
            commit(table, releases[1], releases[0])
        return done

    monkeypatch.setattr(IcebergReleases, "_uploaded", then)
    commit(table, releases[2], releases[0])
    assert set(opened(place).scan().to_arrow().column("cost").to_pylist()) == {1.0, 3.0}


def test_another_that_makes_the_table_meanwhile_is_no_fault_of_the_catalog(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As catalogs say that look for the table when one is begun."""
    one, other, third = (release(tmp_path / "files", number) for number in (1, 2, 3))
    began, left = SqlCatalog.create_table_transaction, [0]

    def begin(self: SqlCatalog, identifier: str, *arguments: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(SqlCatalog, "create_table_transaction", began)
                commit(at(), one)
        if self.table_exists(identifier):
            raise TableAlreadyExistsError
        return began(self, identifier, *arguments, **more)

    monkeypatch.setattr(SqlCatalog, "create_table_transaction", begin)
    for at_look, next_one in ((1, other), (2, third)):
        left[0] = at_look
        assert commit(at(), next_one, one) is not None
        assert [snapshot.summary["privrisk.run_id"] for snapshot in opened(place).snapshots()] == [  # type: ignore[index]
            "r1",
            next_one.run_id,
        ]
        lakes.catalog(place).drop_table("lake.table")


def test_a_catalog_that_is_away_when_the_table_is_begun_is_to_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> Any:
        raise ServiceUnavailableError

    monkeypatch.setattr(SqlCatalog, "create_table_transaction", away)
    with pytest.raises(EngineError, match=r"cannot be looked at \(ServiceUnavailableError\)"):
        at().check(list, COLUMNS)


def test_a_copy_that_is_stopped_half_way_does_not_harm_what_another_attempt_has_committed(
    tmp_path: Path, endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = {"ENDPOINT": endpoint, "REGION": os.environ["AWS_REGION"]}
    said |= {name: os.environ[f"AWS_{name}"] for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY")}
    for name, value in said.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__TESTS__S3__{name}", value)
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__WAREHOUSE", f"s3://{BUCKET}/{uuid4().hex}")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    one = release(tmp_path / "files", 1)

    def stop(source: io.BufferedReader, copy: Any, _: int) -> None:
        """While another attempt does all of it."""
        monkeypatch.setattr(shutil, "copyfileobj", copying)
        commit(at(), one)
        copy.write(source.read(100))
        raise KeyboardInterrupt

    copying = shutil.copyfileobj
    monkeypatch.setattr(shutil, "copyfileobj", stop)
    with pytest.raises(KeyboardInterrupt):
        commit(at(), one)
    table = pyiceberg.catalog.load_catalog("tests").load_table("lake.table")
    assert table.scan().to_arrow().num_rows == 6


def test_rights_of_places_where_others_keep_files_of_the_table_stay(place: Path, tmp_path: Path) -> None:
    table, first = at(date_column="day"), release(tmp_path / "files", 1)
    commit(table, first)
    own = tmp_path / "own"
    own.mkdir(mode=0o700)
    rows = pa.table({"age": ["x"], "cost": [9.0], "day": [dt.date(2026, 11, 20)]})
    pq.write_table(rows, own / "part.parquet")
    opened(place).add_files([f"file://{own}/part.parquet"])
    commit(table, release(tmp_path / "files", 2, "2026-11-22"), first)
    assert stat.S_IMODE(own.stat().st_mode) == 0o700


PROGRAM = """
import json, sys
from pathlib import Path
from privrisk_spark.storage.lakes.iceberg_releases import IcebergReleases
from privrisk_spark.storage.lakes.release_table import TableRelease
from privrisk_spark.storage.lakes.snapshot import Asked
said = json.loads(sys.argv[1])
one = TableRelease(said["run_id"], said["digest"], tuple(map(Path, said["files"])), said["date"])
sys.stdin.readline()
table = IcebergReleases(Asked("output.lake", "iceberg", catalog="tests.lake.table"))
print(table.commit(one, newest=lambda: True, releases=lambda: said["known"]))
"""


def started(one: TableRelease, *known: TableRelease) -> subprocess.Popen[str]:
    said = {"run_id": one.run_id, "digest": one.digest, "files": list(map(str, one.files)), "date": one.date}
    said |= {"known": [other.digest for other in known]}
    command = [sys.executable, "-c", PROGRAM, json.dumps(said)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_processes_that_commit_at_once_make_one_snapshot_a_release(place: Path, tmp_path: Path) -> None:
    """Two of one release, and one of another; who reads meanwhile sees one of them, whole, or no table yet."""
    one, other = release(tmp_path / "files", 1), release(tmp_path / "files", 2)
    processes = [started(of, one, other) for of in (one, one, other)]
    seen: set[tuple[float, ...]] = set()
    ended = threading.Event()

    def read() -> None:
        catalog = lakes.catalog(place)
        while not ended.is_set():
            if catalog.table_exists("lake.table"):
                seen.add(tuple(catalog.load_table("lake.table").scan().to_arrow().column("cost").to_pylist()))

    reader = threading.Thread(target=read)
    reader.start()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    made = [process.communicate(timeout=120)[0].strip() for process in processes]
    ended.set()
    reader.join()
    assert [process.returncode for process in processes] == [0, 0, 0]
    numbers = {str(one.snapshot_id) for one in opened(place).snapshots()}
    assert len(numbers) == 2
    assert sorted(made) == sorted([*numbers, "None"])
    assert seen <= {(1.0,) * 6, (2.0,) * 6}
    assert opened(place).scan().to_arrow().num_rows == 6


@pytest.mark.parametrize("name", ["a b", "a%20b", "ä+:", "a#b", "a?b"])
def test_any_directory_that_pyiceberg_reaches_is_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("PYICEBERG_CATALOG__TESTS__WAREHOUSE", f"file://{tmp_path / name}")
    monkeypatch.setattr(pyiceberg.catalog, "_ENV_CONFIG", Config())
    if {"#", "?"} & set(name):
        with pytest.raises(SchemaError, match=r"lies in a directory with '\?' or '#' in its name"):
            at().check(list, COLUMNS)
        return
    assert commit(at(), release(tmp_path / "files", 1)) is not None
    assert at().location.path == str(tmp_path / name / "lake" / "table")
    assert pyiceberg.catalog.load_catalog("tests").load_table("lake.table").scan().to_arrow().num_rows == 6


def test_the_place_of_the_table_is_that_of_its_catalog(place: Path, tmp_path: Path) -> None:
    expected = str((place / "lake" / "table").resolve())
    assert at().location.path == expected
    assert not (place / "lake").exists()
    commit(at(), release(tmp_path / "files", 1))
    assert at().location.path == expected
    assert pyiceberg.catalog.load_catalog("tests").table_exists("lake.table")
