"""Lake tables read by tasks, against Spark's own reading of the same rows in plain Parquet."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import lakes
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from deltalake import DeltaTable, write_deltalake
from pyiceberg.types import LongType, StringType

from privrisk_spark.errors import EngineError
from privrisk_spark.policy.policy import Table
from privrisk_spark.storage.lakes.opening import open_snapshot
from privrisk_spark.storage.lakes.snapshot import Snapshot
from privrisk_spark.tables.opening import read
from privrisk_spark.tables.row_groups import Wanted, lake_frame, lake_tasks
from privrisk_spark.tables.sources import files_read, scan

NOON = dt.datetime(2026, 1, 1, 12, 30, 1, 5, tzinfo=dt.UTC)
PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "string": (pa.string(), ["", "a", "ü€😀", None]),
    "int": (pa.int32(), [-(2**31), None, 0, 2**31 - 1]),
    "long": (pa.int64(), [-(2**63), 2**53 + 1, None, 2**63 - 1]),
    "flag": (pa.bool_(), [True, False, None, True]),
    "day": (pa.date32(), [dt.date(1, 1, 1), dt.date(1582, 10, 15), None, dt.date(9999, 12, 31)]),
    "float": (pa.float32(), [0.1, -0.0, None, 3.0]),
    "double": (pa.float64(), [1 / 3, None, 1e300, -5e-324]),
    "decimal": (pa.decimal128(20, 3), [Decimal("1.500"), None, Decimal("-0.001"), Decimal("0.000")]),
    "moment": (pa.timestamp("us", "UTC"), [NOON, None, dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC), NOON]),
    "binary": (pa.binary(), [b"\xff", b"", None, b"a"]),
    "list": (pa.list_(pa.string()), [["a", None], [], None, ["b"]]),
    "struct": (
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        [{"x": 1, "y": "a"}, None, {"x": None, "y": None}, None],
    ),
}


def rows() -> pa.Table:
    return pa.table({"row": range(4), **{name: pa.array(values, kind) for name, (kind, values) in VALUES.items()}})


def pinned(form: str, path: str) -> Table:
    table = Table(path=path, format=form)
    asked = table.asked("table")
    assert asked is not None
    return table.at(open_snapshot(asked))


def snapshot_of(table: Table) -> Snapshot:
    assert table.pinned is not None
    return table.pinned


def of_form(form: str, place: Path, *given: pa.Table) -> Table:
    if form == "delta":
        return pinned(form, str(lakes.delta_versions(place, *given)))
    return pinned(form, lakes.metadata_of(lakes.iceberg_snapshots(place, *given)))


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_every_type_is_what_spark_reads_of_plain_parquet(spark: Any, tmp_path: Path, form: str) -> None:
    pq.write_table(rows(), tmp_path / "plain.parquet")
    table = of_form(form, tmp_path / "lake", rows().slice(0, 3), rows().slice(3))
    frame = read(spark, table, key="table")
    expected = spark.read.parquet(str(tmp_path / "plain.parquet"))
    assert [(field.name, field.dataType) for field in frame.schema] == [
        (field.name, field.dataType) for field in expected.schema
    ]
    found, wanted = (one.orderBy("row").toArrow().to_pylist() for one in (frame, expected))
    assert repr(found) == repr(wanted)


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_tasks_take_what_they_are_asked_for(spark: Any, tmp_path: Path, form: str) -> None:
    table = of_form(form, tmp_path / "lake", rows().slice(0, 3), rows().slice(3))
    frame = read(spark, table, key="table")
    wanted = [
        Wanted("t", "string", "text"),
        Wanted("d", "string", "value", distinct=True),
        Wanted("n", "int", "number"),
        Wanted("v", "long", "value"),
        Wanted("w", "day", "value"),
    ]
    opened = scan(table, frame, wanted)
    assert not opened.base.inputFiles(), "the files are read by the tasks"
    assert opened.steps
    by_spark = scan(None, spark.createDataFrame(rows().select(["string", "int", "long", "day"])), wanted).frame()
    assert_df_equality(opened.frame(), by_spark, ignore_row_order=True, ignore_nullable=True)


def test_columns_a_file_lacks_are_missing_or_of_its_partition(spark: Any, tmp_path: Path) -> None:
    """Some files have the column, some not; also where a task is asked for nothing that is in its file."""
    write_deltalake(tmp_path / "t", pa.table({"id": ["a", "b"], "p": ["x", None]}), partition_by=["p"])
    more = pa.table({"id": ["c"], "p": ["x"], "n": pa.array([7], pa.int32())})
    write_deltalake(tmp_path / "t", more, mode="append", schema_mode="merge", partition_by=["p"])
    table = pinned("delta", str(tmp_path / "t"))
    frame = read(spark, table, key="table")

    def rows_of(*names: str) -> list[tuple[Any, ...]]:
        opened = scan(table, frame, [Wanted(name, name, "value") for name in names])
        assert opened.steps
        return sorted((tuple(row.values()) for row in opened.frame().toArrow().to_pylist()), key=repr)

    assert rows_of("id", "p", "n") == [("a", "x", None), ("b", None, None), ("c", "x", 7)]
    assert rows_of("p", "n") == [("x", 7), ("x", None), (None, None)]
    assert rows_of("p") == [("x",), ("x",), (None,)]
    assert frame.orderBy("id").toArrow().column("n").to_pylist() == [None, None, 7]


def test_files_hold_texts_as_views_where_rows_were_rewritten(spark: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", rows())
    DeltaTable(tmp_path / "t").delete("row = 0")
    table = pinned("delta", str(tmp_path / "t"))
    (file,) = snapshot_of(table).files
    assert pa.types.is_string_view(pq.read_schema(str(file.file)).field("string").type), "else it shows nothing"
    frame = read(spark, table, key="table")
    opened = scan(table, frame, [Wanted("t", "string", "text"), Wanted("d", "string", "value", distinct=True)])
    texts = [None, "a", "ü€😀"]
    found = opened.frame().toArrow()
    assert sorted(found.column("t").to_pylist(), key=str) == sorted(found.column("d").to_pylist(), key=str)
    assert set(found.column("t").to_pylist()) == set(texts)
    assert frame.orderBy("row").toArrow().column("list").to_pylist() == [[], None, ["b"]]


def test_renamed_and_widened_columns_reach_the_tasks(spark: Any, tmp_path: Path) -> None:
    lake = lakes.iceberg_snapshots(tmp_path / "lake", pa.table({"a": ["x"], "n": pa.array([1], pa.int32())}))
    with lake.update_schema() as update:
        update.rename_column("a", "b")
        update.update_column("n", LongType())
    with lake.update_schema() as update:
        update.add_column("a", StringType())
    lake.append(pa.table({"b": ["y"], "n": pa.array([2**40]), "a": ["z"]}))
    table = pinned("iceberg", lakes.metadata_of(lake))
    frame = read(spark, table, key="table")
    wanted = [Wanted("a", "a", "text"), Wanted("b", "b", "value", distinct=True), Wanted("n", "n", "value")]
    opened = scan(table, frame, wanted)
    assert opened.steps
    found = opened.frame().orderBy("b").toArrow().to_pylist()
    assert found == [{"a": None, "b": "x", "n": 1}, {"a": "z", "b": "y", "n": 2**40}]


def test_files_are_cut_into_tasks_and_put_together(tmp_path: Path) -> None:
    """Every row group is in one piece, whatever the size of tasks."""
    place = tmp_path / "t"
    for number in range(3):
        given = pa.table({"id": pa.array(range(1000 * number, 1000 * (number + 1)))})
        write_deltalake(place, given, mode="append")
    snapshot = snapshot_of(pinned("delta", str(place)))
    for size in (1, 1000, 10**9):
        pieces = [piece for task in lake_tasks(snapshot, size) for piece in task]
        assert sorted((piece.file, piece.first, piece.end) for piece in pieces) == [
            (file.file, 0, 1) for file in snapshot.files
        ]
        assert sum(piece.rows for piece in pieces) == 3000
    assert len(lake_tasks(snapshot, 10**9)) == 1


def test_a_table_without_rows_has_its_columns(spark: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", rows())
    DeltaTable(tmp_path / "t").delete()
    frame = lake_frame(spark, snapshot_of(pinned("delta", str(tmp_path / "t"))))
    assert frame.columns == rows().column_names
    assert frame.count() == 0


def test_nobody_reads_a_version_that_was_not_pinned(spark: Any, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", rows())
    with pytest.raises(EngineError, match="the version of the table was not chosen"):
        read(spark, Table(path=str(tmp_path / "t"), format="delta"), key="table")


def test_times_of_96_bits_are_instants(spark: Any, tmp_path: Path) -> None:
    """Spark writes them without a zone unless it is told otherwise; a Delta table says that they are in UTC.

    As nanoseconds, years before 1678 and after 2261 would be others.
    """
    place = tmp_path / "t"
    years = [dt.datetime(year, 1, 1, 0, 0, 0, 5, tzinfo=dt.UTC) for year in (2, 1600, 2300, 9999)]
    given = pa.table({"at": pa.array([NOON, None, *years], pa.timestamp("us", "UTC"))})
    write_deltalake(place, given)
    (file,) = place.glob("*.parquet")
    pq.write_table(given, file, use_deprecated_int96_timestamps=True, store_schema=False)

    def change(action: dict[str, Any]) -> None:
        if "add" in action:
            action["add"]["size"] = file.stat().st_size

    lakes.edit_log(place, change)
    assert pq.read_schema(file).field("at").type == pa.timestamp("ns"), "else it shows nothing"
    frame = read(spark, pinned("delta", str(place)), key="table")
    assert_df_equality(frame, spark.createDataFrame(given), ignore_row_order=True, ignore_nullable=True)


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_files_read_of_a_lake_table_are_its_id_and_its_data_files(spark: Any, tmp_path: Path, form: str) -> None:
    """The id stays when files are compacted; the files are those that a plain path to one of them names."""
    found = []
    for name in ("one", "other"):
        table = of_form(form, tmp_path / name, rows().slice(0, 3), rows().slice(3))
        files = files_read(table, read(spark, table, key="table"))
        assert files[0] == f"urn:uuid:{snapshot_of(table).pin.table}"
        parquet = {str(file) for file in (tmp_path / name).rglob("*.parquet")}
        assert set(files[1:]) <= parquet
        assert len(files) == 3
        found.append(set(files))
    assert not found[0] & found[1]
