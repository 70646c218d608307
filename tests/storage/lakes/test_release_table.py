"""Releases committed to lake tables: one commit each, whoever comes between; what is not ours is not replaced."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import stat
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import lakes
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table import Table as IcebergTable

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import EngineError, SchemaError
from privrisk_spark.storage.lakes import release_table as waiting
from privrisk_spark.storage.lakes.delta_releases import DeltaReleases
from privrisk_spark.storage.lakes.iceberg_releases import IcebergReleases
from privrisk_spark.storage.lakes.opening import open_snapshot, release_table
from privrisk_spark.storage.lakes.release_table import ReleaseTable, TableRelease, schema_of
from privrisk_spark.storage.lakes.snapshot import Asked, Form, Snapshot
from privrisk_spark.storage.table_files import ObjectFile

COLUMNS = {"age": pa.string(), "cost": pa.float64()}
Tables = ReleaseTable[Any, Any]


def at(path: Path | str, date_column: str | None = None) -> Tables:
    return release_table(Asked("output.lake", "delta", str(path)), date_column)


@dataclass(frozen=True)
class Lake:
    """A format, and a directory with one table of it."""

    form: Form
    root: Path

    def at(self, date_column: str | None = None) -> Tables:
        if self.form == "delta":
            return at(self.root / "lake", date_column)
        return release_table(Asked("output.lake", "iceberg", catalog="tests.lake.table"), date_column)

    def opened(self) -> IcebergTable:
        return lakes.catalog(self.root).load_table("lake.table")

    def snapshots(self) -> list[int]:
        there = lakes.catalog(self.root).table_exists("lake.table")
        return [one.snapshot_id for one in self.opened().snapshots()] if there else []

    def versions(self) -> int:
        return len(versions(self.root / "lake")) if self.form == "delta" else len(self.snapshots())

    def number(self, made: int | None) -> int | None:
        """Which version of the table was made, counted from 0."""
        return made if made is None or self.form == "delta" else self.snapshots().index(made)

    def asked(self, version: int | None = None) -> Asked:
        if self.form == "delta":
            return Asked("table", "delta", str(self.root / "lake"), version=version)
        snapshot = None if version is None else self.snapshots()[version]
        return Asked("table", "iceberg", catalog="tests.lake.table", snapshot=snapshot)

    def snapshot(self, version: int | None = None) -> Snapshot:
        return open_snapshot(self.asked(version))

    def costs(self, version: int | None = None) -> list[float]:
        """Of the rows of a version, as we read them, and as another reader of the format does."""
        found = costs_in(self.snapshot(version))
        if self.form == "iceberg":
            number = None if version is None else self.snapshots()[version]
            assert sorted(self.opened().scan(snapshot_id=number).to_arrow().column("cost").to_pylist()) == found
        else:
            of_version = DeltaTable(str(self.root / "lake"), version=version)
            assert sorted(of_version.to_pyarrow_table().column("cost").to_pylist()) == found
        return found

    def make(self, rows: pa.Table) -> None:
        """Write somebody's table, or more rows to the one that is there."""
        if self.form == "delta":
            write_deltalake(str(self.root / "lake"), rows, mode="append")
            return
        catalog = lakes.catalog(self.root)
        catalog.create_table_if_not_exists("lake.table", schema=rows.schema).append(rows)

    def empty(self) -> None:
        if self.form == "delta":
            DeltaTable(str(self.root / "lake")).delete()
        else:
            self.opened().delete()


def costs_in(snapshot: Snapshot) -> list[float]:
    found: list[float] = []
    for of in snapshot.files:
        with of.file.reader() if isinstance(of.file, ObjectFile) else Path(of.file).open("rb") as stream:
            found += pq.read_table(io.BytesIO(stream.read())).column("cost").to_pylist()
    return sorted(found)


def release(directory: Path, run_id: str, *values: float, parts: int = 2, **more: Any) -> TableRelease:
    files = []
    for part in range(parts):
        directory.mkdir(exist_ok=True)
        file = directory / f"{run_id}-{part}.parquet"
        of_part = [float(value) for value in values[part::parts]]
        rows = pa.table(
            {"age": pa.array([run_id] * len(of_part), pa.string()), "cost": pa.array(of_part, "f8"), **more}
        )
        pq.write_table(rows, file, store_schema=False)
        files.append(file)
    return TableRelease(run_id, f"{run_id.encode().hex():0>64}", tuple(files), "2026-11-21")


def commit(table: Tables, one: TableRelease, *before: TableRelease, newest: bool = True) -> int | None:
    return table.commit(one, newest=lambda: newest, releases=lambda: [known.digest for known in before])


def costs(table: Tables, version: int | None = None) -> list[float]:
    return costs_in(open_snapshot(Asked("table", "delta", str(table.location), version=version)))


def versions(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "_delta_log").glob("*.json"))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    lakes.configure(monkeypatch, tmp_path / "x")
    return Lake(request.param, tmp_path / "x")


@pytest.fixture
def table(tmp_path: Path) -> Tables:
    return at(tmp_path / "lake")


def test_each_release_is_a_version_and_tells_no_more_than_its_run_id_and_digest(table: Tables, files: Path) -> None:
    first, second = release(files, "r1", 1, 2, 3), release(files, "r2", 4)
    assert commit(table, first) == 0
    assert commit(table, second, first) == 1
    assert (costs(table, 0), costs(table, 1)) == ([1, 2, 3], [4])
    log = Path(table.location.path, "_delta_log", f"{1:020}.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    (said,) = [action["commitInfo"] for action in actions if "commitInfo" in action]
    own = {"privrisk.run_id": "r2", "privrisk.release": second.digest}
    assert {name: said[name] for name in own} == own == json.loads(said["userMetadata"])
    assert not any(str(place) in log.read_text() for place in (files, table.location))
    for number, file in enumerate(second.files):
        assert Path(table.location.path, second.name_of(number)).read_bytes() == file.read_bytes()


def test_a_release_that_was_committed_is_not_committed_again_whatever_came_after(lake: Lake, files: Path) -> None:
    table = lake.at()
    first, second = release(files, "r1", 1), release(files, "r2", 2)
    commit(table, first)
    assert commit(table, first, first) is None
    commit(table, second, first)
    assert commit(table, first, first, second) is None
    assert (table.holds(first.digest), table.holds("00"), lake.costs()) == (True, False, [2])
    assert lake.versions() == 2


def test_the_files_are_those_of_the_release_and_a_version_holds_no_others(lake: Lake, files: Path) -> None:
    table, one, other = lake.at(), release(files, "r1", 1, 2, 3), release(files, "r2", 4)
    assert [lake.number(commit(table, one)), lake.number(commit(table, other, one))] == [0, 1]
    for number, expected in enumerate((one, other)):
        held = {Path(str(of.file)).name: Path(str(of.file)).read_bytes() for of in lake.snapshot(number).files}
        assert held == {expected.name_of(i): file.read_bytes() for i, file in enumerate(expected.files)}
    assert [lake.costs(0), lake.costs(1), lake.costs()] == [[1, 2, 3], [4], [4]]


def test_a_commit_is_found_when_the_log_was_cut_to_a_checkpoint_and_the_files_rewritten(
    table: Tables, files: Path
) -> None:
    first = release(files, "r1", 1, 2, 3, parts=3)
    commit(table, first)
    newest = DeltaTable(str(table.location))
    newest.optimize.compact()
    newest.create_checkpoint()
    for name in versions(Path(table.location.path))[:-1]:
        (Path(table.location.path) / "_delta_log" / name).unlink()
    assert commit(table, first, first) is None
    assert commit(table, release(files, "r2", 4), first) == 2
    assert costs(table) == [4]


def test_an_older_release_does_not_replace_a_newer_one(lake: Lake, files: Path) -> None:
    commit(lake.at(), release(files, "r2", 2))
    assert commit(lake.at(), release(files, "r1", 1), newest=False) is None
    assert lake.costs() == [2]


@pytest.mark.parametrize("there", [False, True], ids=["no table", "a table"])
def test_of_attempts_of_one_release_at_once_one_commits(
    lake: Lake, files: Path, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All have looked at the same version before any of them commits."""
    table, first, second = lake.at(), release(files, "r1", 1), release(files, "r2", 2)
    if there:
        commit(table, first)
    together, left = threading.Barrier(3), threading.Semaphore(3)
    uploaded = type(table)._uploaded

    def wait(*arguments: Any) -> Any:
        done = uploaded(*arguments)
        if left.acquire(blocking=False):
            together.wait(60)
        return done

    monkeypatch.setattr(type(table), "_uploaded", wait)
    made: list[int | None] = []
    threads = [threading.Thread(target=lambda: made.append(commit(table, second, first))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(lake.number, made), key=str) == [int(there), None, None]
    assert (lake.costs(), lake.versions()) == ([2], 1 + there)


def between(table: Tables, monkeypatch: pytest.MonkeyPatch, do: Callable[[], object]) -> None:
    """Have something happen once, after the table was looked at and before the commit."""
    uploaded, left = type(table)._uploaded, [do]

    def then(*arguments: Any) -> Any:
        done = uploaded(*arguments)
        while left:
            left.pop()()
        return done

    monkeypatch.setattr(type(table), "_uploaded", then)


def test_what_is_committed_between_look_and_commit_is_replaced_and_not_mixed(
    lake: Lake, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, first, second = lake.at(), release(files, "r1", 1), release(files, "r2", 2)
    commit(table, first)
    between(table, monkeypatch, lambda: lake.make(pa.table({"age": ["x"], "cost": [9.0]})))
    assert lake.number(commit(table, second, first)) == 2
    assert (lake.costs(1), lake.costs()) == ([1, 9], [2])


def test_a_newer_release_that_comes_between_stays(lake: Lake, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.at()
    first, second, third = (release(files, f"r{i}", i) for i in (1, 2, 3))
    commit(table, first)
    newest = [second]

    def publish() -> None:
        newest[:] = [third]
        assert lake.number(commit(table, third, first)) == 1

    between(table, monkeypatch, publish)
    assert table.commit(second, newest=lambda: newest == [second], releases=lambda: [first.digest]) is None
    assert (lake.costs(), lake.versions()) == ([3], 2)


def test_a_commit_whose_answer_was_lost_is_found(lake: Lake, files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.at()
    committed = type(table)._committed

    def lose(*arguments: Any) -> int:
        committed(*arguments)
        raise OSError("lost")

    monkeypatch.setattr(type(table), "_committed", lose)
    assert commit(table, release(files, "r1", 1)) is None
    assert (lake.costs(), lake.versions()) == ([1], 1)


@pytest.mark.parametrize(
    ("of", "kind"),
    [(DeltaReleases, DeltaError), (DeltaReleases, OSError), (IcebergReleases, CommitFailedException)],
)
def test_a_table_that_takes_no_commit_is_an_error_to_be_tried_again(
    tmp_path: Path, files: Path, monkeypatch: pytest.MonkeyPatch, of: type[Tables], kind: type[Exception]
) -> None:
    lakes.configure(monkeypatch, tmp_path / "x")
    table = Lake("delta" if of is DeltaReleases else "iceberg", tmp_path / "x").at()

    def fail(*_: Any) -> int:
        raise kind("s3://key:secret@bucket")

    monkeypatch.setattr(of, "_committed", fail)
    monkeypatch.setattr(waiting.time, "sleep", lambda _: None)
    with pytest.raises(EngineError, match=rf"could not be committed to \({kind.__name__}\)") as raised:
        commit(table, release(files, "r1", 1))
    assert "secret" not in str(raised.value)


def test_a_fault_of_the_program_is_not_taken_for_one_of_the_table(
    lake: Lake, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, tried = lake.at(), []

    def fail(*_: Any) -> int:
        tried.append(1)
        raise AttributeError

    monkeypatch.setattr(type(table), "_committed", fail)
    with pytest.raises(AttributeError):
        commit(table, release(files, "r1", 1))
    assert len(tried) == 1


def test_an_attempt_that_stopped_after_its_files_leaves_a_place_for_any_release(
    lake: Lake, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.at()

    def stop(*_: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(table), "_committed", stop)
        with pytest.raises(KeyboardInterrupt):
            commit(table, release(files, "r1", 1))
    assert lake.versions() == 0
    assert lake.number(commit(table, release(files, "r2", 2))) == 0
    assert lake.costs() == [2]


@pytest.mark.parametrize("name", ["notes.txt", "data/part-00000.parquet", "_delta_log/x.json"])
def test_a_directory_with_other_files_is_no_place(table: Tables, files: Path, name: str) -> None:
    file = Path(table.location.path, name)
    file.parent.mkdir(parents=True)
    file.write_text("{}")
    with pytest.raises(SchemaError, match=r"output.lake.path: .* holds files and is no Delta table"):
        table.check(list, COLUMNS)
    with pytest.raises(SchemaError, match="is no Delta table"):
        commit(table, release(files, "r1", 1))
    assert [path for path in Path(table.location.path).rglob("*") if path.is_file()] == [file]
    with pytest.raises(SchemaError, match="is a file"):
        at(file).check(list, COLUMNS)


def test_rows_that_are_no_release_of_the_output_stay(lake: Lake, files: Path) -> None:
    """Another's table, and the table of another output; one that was emptied may be taken."""
    table = lake.at()
    lake.make(pa.table({"age": ["x"], "cost": [9.0]}))
    one, other = release(files, "r1", 1), release(files, "r2", 2)
    for known in ([], [one]):
        with pytest.raises(SchemaError, match="holds rows, and no release of"):
            commit(table, one, *known)
        assert lake.costs() == [9]
    lake.empty()
    if lake.form == "iceberg":
        lakes.map_names(lake.opened())
    assert commit(table, one) is not None
    with pytest.raises(SchemaError, match="holds rows, and no release of"):
        commit(table, other)
    assert lake.costs() == [1]


@pytest.mark.parametrize("by", [None, "day"])
def test_others_counts_the_files_that_another_writer_added(lake: Lake, files: Path, by: str | None) -> None:
    table, first = lake.at(by), release(files, "r1", 1)
    assert table.others(first.date) == 0, "there is no table"
    commit(table, first)
    assert table.others(first.date) == 0
    for day in ("2026-11-21", "2026-11-22"):
        rows = pa.table({"age": ["x"], "cost": pa.array([9.0])})
        lake.make(rows if by is None else rows.append_column(by, pa.array([dt.date.fromisoformat(day)])))
    assert table.others(first.date) == (2 if by is None else 1), "those that a release of the date replaces"
    commit(table, release(files, "r2", 2), first)
    assert table.others(first.date) == 0


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"age": pa.string()}, "has column 'cost', which the release lacks"),
        ({**COLUMNS, "new": None}, "lacks column 'new' of the release"),
        ({**COLUMNS, "cost": pa.int64()}, "has column 'cost' as double, and the release as int64"),
        ({**COLUMNS, "cost": pa.time64("us")}, "cannot have column 'cost' of type time64"),
    ],
)
def test_other_columns_are_refused_by_name(
    lake: Lake, files: Path, columns: dict[str, pa.DataType | None], said: str
) -> None:
    table = lake.at()
    first = release(files, "r1", 1)
    commit(table, first)
    table.check(lambda: [first.digest], {**COLUMNS, "cost": None})
    with pytest.raises(
        SchemaError, match=rf"output\.lake\.{'path' if lake.form == 'delta' else 'catalog'}: "
    ) as raised:
        table.check(lambda: [first.digest], columns)
    assert said in str(raised.value)


def partitioned(path: str, rows: pa.Table) -> None:
    write_deltalake(path, rows, partition_by=["age"])


def constrained(path: str, rows: pa.Table) -> None:
    write_deltalake(path, rows)
    DeltaTable(path).alter.add_constraint({"low": "cost < 5"})


def required(path: str, rows: pa.Table) -> None:
    write_deltalake(path, rows.cast(pa.schema([pa.field("age", pa.string(), nullable=False), rows.field("cost")])))


def append_only(path: str, rows: pa.Table) -> None:
    write_deltalake(path, rows, configuration={"delta.appendOnly": "true"})


def mapped(path: str, rows: pa.Table) -> None:
    write_deltalake(path, rows)
    lakes.set_protocol(Path(path), 3, "columnMapping")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (partitioned, "it is partitioned otherwise"),
        (constrained, "it has constraints"),
        (required, "it has columns that must not be missing"),
        (append_only, "it is append-only"),
        (mapped, "it has the feature columnMapping"),
    ],
)
def test_a_table_that_the_files_would_break_is_refused(
    table: Tables, make: Callable[[str, pa.Table], object], said: str
) -> None:
    make(str(table.location), pa.table({"age": pa.array([], pa.string()), "cost": pa.array([], pa.float64())}))
    with pytest.raises(SchemaError, match=f"cannot be replaced by a release: {said}"):
        table.check(list, COLUMNS)


def test_a_release_without_rows_empties_the_table(lake: Lake, files: Path) -> None:
    table, first = lake.at(), release(files, "r1", 1)
    commit(table, first)
    assert lake.number(commit(table, release(files, "r2", parts=1), first)) == 1
    assert lake.costs() == []
    assert lake.number(commit(table, release(files, "r3", 3), first)) == 2


def test_types_of_all_kinds_are_those_of_the_files(lake: Lake, files: Path) -> None:
    table = lake.at()
    more = {
        "at": pa.array([0], pa.timestamp("us", "UTC")),
        "local": pa.array([0], pa.timestamp("us")),
        "day": pa.array([0], pa.date32()),
        "price": pa.array([None], pa.decimal128(20, 2)),
        "many": pa.array([["x"]], pa.list_(pa.string())),
        "small": pa.array([1], pa.int8()),
        "bytes": pa.array([b"x"]),
        "pairs": pa.array([[("x", 1)]], pa.map_(pa.string(), pa.int64())),
    }
    first, second = (release(files, name, 1, parts=1, **more) for name in ("r1", "r2"))
    commit(table, first)
    assert lake.number(commit(table, second, first)) == 1
    expected = schema_of(second.files[0])
    if lake.form == "iceberg":  # which has no smaller integers
        expected = expected.set(expected.get_field_index("small"), pa.field("small", pa.int32()))
        held = lake.opened().scan().to_arrow()
        assert held.select(list(more)).to_pylist() == pa.table(more).to_pylist()
    assert lake.snapshot().schema.equals(expected)


def test_everyone_may_read_it_whatever_the_umask(lake: Lake, files: Path) -> None:
    """But for the directory itself, whose rights are not looked at here."""
    table = lake.at()
    before = os.umask(0o077)
    try:
        first = release(files, "r1", 1)
        commit(table, first)
        commit(table, release(files, "r2", 2), first)
    finally:
        os.umask(before)
    for path in Path(table.location.path).rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


def test_everyone_may_read_the_checkpoints_too(table: Tables, files: Path) -> None:
    nothing = pa.table({"age": pa.array([], pa.string()), "cost": pa.array([], pa.float64())})
    write_deltalake(str(table.location), nothing, configuration={"delta.checkpointInterval": "2"})
    log = Path(table.location.path, "_delta_log")
    before = os.umask(0o077)
    try:
        for i in range(1, 4):
            commit(table, release(files, f"r{i}", i), *(release(files, f"r{known}", known) for known in range(1, i)))
    finally:
        os.umask(before)
    assert (log / "_last_checkpoint").exists()
    assert {stat.S_IMODE(path.stat().st_mode) for path in log.iterdir()} == {0o644}


def test_a_table_in_an_object_store(endpoint: str, files: Path) -> None:
    table = at(f"s3://{BUCKET}/{uuid4().hex}/lake")
    first, second = release(files, "r1", 1), release(files, "r2", 2, 3)
    table.check(list, COLUMNS)
    assert (commit(table, first), commit(table, first, first), commit(table, second, first)) == (0, None, 1)
    assert (costs(table, 0), costs(table)) == ([1], [2, 3])
    other = at(f"s3://{BUCKET}/{uuid4().hex}/lake")
    write_deltalake(f"{other.location}/inner", pa.table({"age": ["x"]}))
    with pytest.raises(SchemaError, match="is no Delta table"):
        other.check(list, COLUMNS)


def test_the_releases_of_an_output_are_not_asked_for_while_there_is_no_table(lake: Lake) -> None:
    def asked() -> Iterable[str]:
        raise AssertionError

    lake.at().check(asked, COLUMNS)


def test_where_each_date_has_its_rows_a_release_replaces_those_of_its_own_date_alone(lake: Lake, files: Path) -> None:
    table = lake.at("day")
    first, second, third = (release(files, name, *values) for name, values in (("r1", [1]), ("r2", [2]), ("r3", [3])))
    other = replace(second, date="2026-11-22")
    table.check(list, COLUMNS)
    assert [lake.number(commit(table, one, first)) for one in (first, other, third)] == [0, 1, 2]
    assert [lake.costs(version) for version in range(3)] == [[1], [1, 2], [2, 3]]
    snapshot = lake.snapshot()
    assert sorted(str(file.values["day"]) for file in snapshot.files) == ["2026-11-21"] * 2 + ["2026-11-22"] * 2
    assert snapshot.schema.field("day").type == pa.date32()
    table.check(lambda: [first.digest], COLUMNS)
    for wrong in (lake.at(), lake.at("other")):
        with pytest.raises(SchemaError, match="it is partitioned otherwise"):
            commit(wrong, release(files, "r4", 4), first)
    assert lake.costs() == [2, 3]


def test_of_two_releases_of_a_date_that_has_none_the_later_stays_alone(
    lake: Lake, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There are no rows that both would remove, so that nothing but the version tells that somebody came between."""
    table, first = lake.at("day"), release(files, "r1", 1)
    commit(table, first)
    second, third = (replace(release(files, f"r{i}", i), date="2026-11-22") for i in (2, 3))
    between(table, monkeypatch, lambda: commit(table, second, first))
    assert lake.number(commit(table, third, first)) == 2
    assert [lake.costs(version) for version in range(3)] == [[1], [1, 2], [1, 3]]
