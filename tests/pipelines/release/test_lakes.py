"""Releases of lake tables: the bytes of the same rows in plain Parquet, by the version that the run id pinned."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import lakes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_release
from deltalake import DeltaTable, write_deltalake
from product import Privrisk, Ran, production_batches, release
from pyiceberg.transforms import IdentityTransform
from pyspark.sql import SparkSession

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import EngineError
from privrisk_spark.pipelines.release import by_risk

KEY = "3c" * 32
FORMS = ("delta", "iceberg")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELEASE_KEY", KEY)


def rows() -> pa.Table:
    lines = [line.split(";") for line in small_release.rows()]
    names = {"age": pa.array([int(age) for age, _ in lines], pa.int32()), "city": [city for _, city in lines]}
    return pa.table({"id": [f"r{i}" for i in range(len(lines))], **names, "cost": np.arange(len(lines)) % 7 / 4})


def write_lake(form: str, place: Path, given: pa.Table) -> str:
    """Write a table partitioned by city, in three versions; the last two of them are the rows, in another order."""
    halves = given.slice(0, 1500), given.slice(1500)
    if form == "delta":
        lakes.delta_versions(place, halves[1], halves[0], partition_by=["city"])
        return str(place)
    table = lakes.iceberg_snapshots(place, halves[1])
    with table.update_spec() as update:
        update.add_field("city", IdentityTransform(), "city_is")
    table.append(halves[0])
    return lakes.metadata_of(table)


def append(form: str, path: str, more: pa.Table) -> str:
    """Commit rows; returns where the newest version is."""
    if form == "delta":
        write_deltalake(path, more, mode="append")
        return path
    table = lakes.catalog(Path(path).parents[3]).load_table("lake.table")
    table.append(more)
    return lakes.metadata_of(table)


def changes(kind: str, path: str, form: str, **more: Any) -> list[tuple[str, Any]]:
    return [
        ("table", {"path": path, "format": form, "record_id": "id", **more}),
        ("columns.id", {"role": "identifier"}),
        *([("guarantee.key", "env:RELEASE_KEY")] if kind == "dp" else [("columns.cost", {"role": "insensitive"})]),
        *([("columns.cost", {"role": "insensitive", "action": "drop"})] if kind == "dp" else []),
        ("output.files", 2),
    ]


def released(privrisk: Privrisk, root: Path, kind: str, path: str, form: str, *flags: str, **more: Any) -> Ran:
    document = small_release.policy(kind, Path("unused"), root, *changes(kind, path, form, **more))
    return privrisk(document, *(flags or ("--run-id", "r1")), root=root)


@pytest.fixture(scope="module")
def of_parquet(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """``of_parquet(kind)``: release r1 of the same rows in a plain file, made once each."""

    @cache
    def made(kind: str) -> Ran:
        root = tmp_path_factory.mktemp("of-parquet")
        pq.write_table(rows(), root / "table.parquet")
        with pytest.MonkeyPatch.context() as patch, production_batches(spark):
            patch.setenv("RELEASE_KEY", KEY)
            ran = released(release, root / "x", kind, str(root / "table.parquet"), "parquet")
        assert ran.code == 0, ran.err
        return ran

    return made


@pytest.mark.parametrize("kind", small_release.KINDS)
@pytest.mark.parametrize("form", FORMS)
def test_the_bytes_are_those_of_plain_parquet(
    privrisk: Privrisk, of_parquet: Callable[[str], Ran], tmp_path: Path, kind: str, form: str
) -> None:
    plain = of_parquet(kind)
    path = write_lake(form, tmp_path / "lake", rows())
    ran = released(privrisk, tmp_path / "of-lake", kind, path, form)
    assert ran.code == 0, ran.err
    assert small_release.digests(ran.root) == small_release.digests(plain.root)
    number = "version" if form == "delta" else "snapshot"
    said = ran.summary["input"]
    assert said["table"]["format"] == form
    assert isinstance(said["table"][number], int)
    assert said["files"]["expected"] == said["files"]["processed"] >= 4
    if kind == "risk":
        assert said["rows"] == {"expected": 4000, "processed": 4000}
        assert ran.manifest["input"]["table"] == said["table"]
        assert ran.summary["snapshot"] == plain.summary["snapshot"]
    else:
        # How often a table was written to may depend on its rows.
        assert "input" not in ran.manifest
        public = [file.read_text(errors="replace") for file in (ran.root / "out").rglob("*") if file.is_file()]
        assert not any("committed" in text and number in text and form in text for text in public)


def test_ids_may_be_derived_and_columns_of_any_type_released(privrisk: Privrisk, tmp_path: Path) -> None:
    """What tasks cannot read alike Spark takes from them: times and decimals, also in the names of partitions."""
    more = rows().append_column("at", pa.array(np.arange(4000) * 10**6, pa.timestamp("us", "UTC")))
    more = more.append_column("price", pa.array([None, 1, 2, 3] * 1000, pa.int32()).cast(pa.decimal128(20, 2)))
    pq.write_table(more, tmp_path / "table.parquet")
    write_deltalake(tmp_path / "lake", more, partition_by=["price"])

    def changed(root: Path, path: Path, form: str) -> Ran:
        document = small_release.policy(
            "risk",
            Path("unused"),
            root,
            ("table", {"path": str(path), "format": form}),
            *((f"columns.{name}", {"role": "insensitive"}) for name in ("id", "cost", "at", "price")),
        )
        return privrisk(document, "--run-id", "r1", root=root)

    plain = changed(tmp_path / "plain", tmp_path / "table.parquet", "parquet")
    assert plain.code == 0, plain.err
    ran = changed(tmp_path / "of-lake", tmp_path / "lake", "delta")
    assert ran.code == 0, ran.err
    assert small_release.digests(ran.root) == small_release.digests(plain.root)


@pytest.mark.parametrize("form", FORMS)
def current(form: str, path: str) -> int:
    """The version of a table that is the newest; of Iceberg, by its metadata."""
    if form == "delta":
        return DeltaTable(path).version()
    return int(json.loads(Path(path).read_text())["current-snapshot-id"])


@pytest.mark.parametrize("form", FORMS)
def test_a_run_id_reads_the_version_it_began_to_read(
    privrisk: Privrisk,
    of_parquet: Callable[[str], Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    """Where the first attempt failed before it published, and where it published: as if nobody wrote meanwhile."""
    path = write_lake(form, tmp_path / "lake", rows())
    began = current(form, path)
    # The path of the policy stays; of Iceberg it is the directory, whose hint names the newest metadata.
    place = path if form == "delta" else str(Path(path).parents[1])

    def hint(metadata: str) -> None:
        if form == "iceberg":
            (Path(place) / "metadata" / "version-hint.text").write_text(Path(metadata).name)

    hint(path)
    root = tmp_path / "stopped"
    with monkeypatch.context() as patch:

        def stop(_: Any) -> Any:
            raise EngineError("stopped")

        patch.setattr(by_risk, "release_by_risk", stop)
        assert released(privrisk, root, "risk", place, form).code == 3
    newer = append(form, path, rows().slice(0, 10))
    assert current(form, newer) != began
    hint(newer)
    again = released(privrisk, root, "risk", place, form)
    assert again.code == 0, again.err
    assert again.manifest["input"]["table"]["version" if form == "delta" else "snapshot"] == began
    assert small_release.digests(root) == small_release.digests(of_parquet("risk").root)
    before = (root / "out" / "manifest.json").read_bytes()
    hint(append(form, path, rows().slice(0, 10)))
    once_more = released(privrisk, root, "risk", place, form)
    assert once_more.code == 0, once_more.err
    shutil.rmtree(tmp_path / "lake")
    assert released(privrisk, root, "risk", place, form).code == 0, "what is released needs no table"
    assert (root / "out" / "manifest.json").read_bytes() == before


def test_a_new_run_id_reads_the_newest_version_or_the_one_asked_for(privrisk: Privrisk, tmp_path: Path) -> None:
    path = write_lake("delta", tmp_path / "lake", rows())
    first = released(privrisk, tmp_path / "x", "risk", path, "delta")
    append("delta", path, rows().slice(0, 10).set_column(0, "id", pa.array([f"n{i}" for i in range(10)])))
    second = released(privrisk, tmp_path / "x", "risk", path, "delta", "--run-id", "r2")
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert second.manifest["rows"] == 4010
    assert second.manifest["input"]["table"]["version"] == 2
    asked = released(privrisk, tmp_path / "x", "risk", path, "delta", "--run-id", "r3", version=1)
    assert asked.code == 0, asked.err
    assert (asked.manifest["rows"], asked.manifest["input"]["table"]["version"]) == (4000, 1)
    other = released(privrisk, tmp_path / "x", "risk", path, "delta", "--run-id", "r3", version=2)
    assert other.code == 1
    assert "with another content of: table" in other.err


def test_a_version_that_is_gone_is_said_by_name(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_lake("delta", tmp_path / "lake", rows())
    pinned = DeltaTable(path).file_uris()
    with monkeypatch.context() as patch:

        def stop(_: Any) -> Any:
            raise EngineError("stopped")

        patch.setattr(by_risk, "release_by_risk", stop)
        assert released(privrisk, tmp_path / "x", "risk", path, "delta").code == 3
    write_deltalake(path, rows().slice(0, 100), mode="overwrite")
    for file in pinned:
        Path(file).unlink()
    ran = released(privrisk, tmp_path / "x", "risk", path, "delta")
    assert ran.code == 2, ran.err
    assert (
        "is gone; if the table was vacuumed or its snapshots expired, take a newer version and a new run id" in ran.err
    )
    assert not (ran.root / "out" / "manifest.json").exists()


def spoil(change: str) -> Callable[[Path], object]:
    def spoilt(table: Path) -> None:
        if change == "mapping":
            lakes.set_protocol(table, 2, **{"delta.columnMapping.mode": "name"})
        else:
            lakes.set_protocol(table, 3, change)

    return spoilt


@pytest.mark.parametrize("kind", small_release.KINDS)
@pytest.mark.parametrize("change", ["mapping", "somethingNew"])
def test_what_would_be_misread_ends_with_exit_code_2(
    privrisk: Privrisk, tmp_path: Path, kind: str, change: str
) -> None:
    path = write_lake("delta", tmp_path / "lake", rows())
    spoil(change)(Path(path))
    ran = released(privrisk, tmp_path / "x", kind, path, "delta")
    assert ran.code == 2, ran.err
    assert f"table.path: '{path}' cannot be read as delta" in " ".join(ran.err.split())
    assert small_release.charged(ran.root) == []


def test_nothing_is_written_into_a_table_that_only_its_metadata_tells_of(privrisk: Privrisk, tmp_path: Path) -> None:
    """A metadata file lies beside the data of its table, which a catalog may have put anywhere."""
    path = write_lake("iceberg", tmp_path / "lake", rows())
    data = Path(path).parents[1] / "data"
    ran = released(privrisk, data, "risk", path, "iceberg")
    assert ran.code == 2, ran.err
    assert "never writes onto its input" in " ".join(ran.err.split())
    assert not (data / "out").exists()


def test_a_dictionary_of_a_lake_is_pinned_with_the_table(privrisk: Privrisk, tmp_path: Path) -> None:
    """Both keys name one table: they read one version, and the vault remembers it."""
    path = write_lake("delta", tmp_path / "lake", rows())
    known = {"kind": "table", "path": path, "format": "delta", "columns": {"age": "age", "city": "city"}}
    document = small_release.policy(
        "risk", Path("unused"), tmp_path / "x", *changes("risk", path, "delta"), ("dictionary", known)
    )
    ran = privrisk(document, "--run-id", "r1", root=tmp_path / "x")
    assert ran.code == 0, ran.err
    pins = json.loads((tmp_path / "x" / "vault" / "pins" / "r1.json").read_text())["pins"]
    assert [pin["version"] for pin in pins.values()] == [1]
    pq.write_table(rows(), tmp_path / "table.parquet")
    plain = {**known, "path": str(tmp_path / "table.parquet"), "format": "parquet"}
    document = small_release.policy(
        "risk",
        Path("unused"),
        tmp_path / "y",
        *changes("risk", str(tmp_path / "table.parquet"), "parquet"),
        ("dictionary", plain),
    )
    assert privrisk(document, "--run-id", "r1", root=tmp_path / "y").code == 0
    assert small_release.digests(tmp_path / "x") == small_release.digests(tmp_path / "y")


@pytest.mark.parametrize("kind", small_release.KINDS)
def test_tables_in_an_object_store_are_read_where_they_are(
    privrisk: Privrisk, of_parquet: Callable[[str], Ran], endpoint: str, tmp_path: Path, kind: str
) -> None:
    uri = f"s3://{BUCKET}/{uuid4().hex}/people"
    for part in (rows().slice(2000), rows().slice(0, 2000)):
        write_deltalake(uri, part, mode="append", partition_by=["city"])
    ran = released(privrisk, tmp_path / "x", kind, uri, "delta")
    assert ran.code == 0, ran.err
    assert small_release.digests(ran.root) == small_release.digests(of_parquet(kind).root)
