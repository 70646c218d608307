"""Parquet tables in an object store, against Spark's own reading of the same files on a disk."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from benchmarks.s3_server import BUCKET
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.policy import Table
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.tables.parquet_tables import object_frame
from privrisk_spark.tables.row_groups import Wanted
from privrisk_spark.tables.sources import files_read, scan


def test_times_of_96_bits_are_instants_of_any_year(spark: SparkSession, endpoint: str, tmp_path: Path) -> None:
    """As Spark reads them: without a zone by their type, and as nanoseconds they would be other years."""
    del endpoint
    years = [dt.datetime(year, 2, 1, 0, 0, 0, 5, tzinfo=dt.UTC) for year in (2, 1600, 2026, 2300, 9999)]
    rows = pa.table({"id": range(6), "at": pa.array([None, *years], pa.timestamp("us", "UTC")), "n": range(6)})
    file = tmp_path / "part.parquet"
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True, store_schema=False)
    assert pq.read_metadata(file).schema.column(1).physical_type == "INT96"
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    open_store(locate(uri, key="table.path")).upload("part.parquet", file)
    found = object_frame(spark, Table(path=uri, format="parquet"), key="table")
    if not is_embedded(spark):
        assert_df_equality(found, spark.read.parquet(str(file)), ignore_row_order=True, ignore_nullable=True)
    assert_df_equality(found, spark.createDataFrame(rows), ignore_row_order=True, ignore_nullable=True)


def test_object_frame_times_of_96_bits_within_others_are_instants(
    spark: SparkSession, endpoint: str, tmp_path: Path
) -> None:
    """A column whose name holds a dot is not a field of a struct."""
    del endpoint
    at = pa.array([dt.datetime(9999, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))
    nested = {"list": pa.ListArray.from_arrays([0, 1], at), "struct": pa.StructArray.from_arrays([at], ["b"])}
    rows = pa.table({"a.b": at, **nested})
    pq.write_table(rows, tmp_path / "part.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    open_store(locate(uri, key="table.path")).upload("part.parquet", tmp_path / "part.parquet")
    found = object_frame(spark, Table(path=uri, format="parquet"), key="table")
    assert_df_equality(found, spark.createDataFrame(rows), ignore_nullable=True)


def put(root: Path, layout: dict[str, pa.Table]) -> tuple[str, str]:
    """The same files on a disk and in a store; returns both places."""
    uri = f"s3://{BUCKET}/{uuid4().hex}"
    for name, rows in layout.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, file)
        open_store(locate(uri, key="table.path")).upload(name, file)
    return str(root), uri


def test_columns_in_the_names_of_directories_are_read_as_spark_does(
    spark: SparkSession, endpoint: str, tmp_path: Path
) -> None:
    del endpoint
    rows = pa.table({"id": ["a", "b"], "x": [1, 2]})
    names = [
        "day=2026-01-01/ward=surgery/n=1", "day=2026-01-01/ward=eye%2Fear/n=2",
        "day=2026-01-02/ward=__HIVE_DEFAULT_PARTITION__/n=3", "day=2026-01-02/ward=7/n=4",
    ]  # fmt: skip
    layout = {f"{name}/part-{i}.parquet": rows.slice(i % 2) for i, name in enumerate(names)}
    place, uri = put(tmp_path / "table", layout | {"_hidden/day=x/part.parquet": rows})
    table = Table(path=uri, format="parquet")
    found = object_frame(spark, table, key="table")
    assert found.columns == ["id", "x", "day", "ward", "n"]
    wards = ["surgery", "eye/ear", None, "7"]
    of_names = [
        (identity, x, f"2026-01-0{1 + i // 2}", wards[i], str(i + 1))
        for i in range(4)
        for identity, x in [("a", 1), ("b", 2)][i % 2 :]
    ]
    expected = spark.createDataFrame(of_names, found.schema)
    if not is_embedded(spark):
        assert_df_equality(expected, spark.read.parquet(place), ignore_row_order=True, ignore_nullable=True)
    assert_df_equality(found, expected, ignore_row_order=True, ignore_nullable=True)
    wanted = [Wanted("w", "ward", "text"), Wanted("d", "day", "text"), Wanted("x", "x", "value")]
    scanned = scan(table, found, wanted).frame().toArrow()
    assert sorted(map(str, scanned.to_pylist())) == sorted(
        str({"w": row.ward, "d": str(row.day), "x": row.x}) for row in expected.collect()
    )
    _, below = put(tmp_path / "one", {"day=2026-01-01/part.parquet": rows})
    one = object_frame(spark, Table(path=f"{below}/day=2026-01-01", format="parquet"), key="table")
    assert one.columns == ["id", "x"], "what the path itself says is none"


def test_a_file_without_bytes_is_refused_as_on_a_disk(spark: SparkSession, endpoint: str, tmp_path: Path) -> None:
    del endpoint
    _, uri = put(tmp_path / "table", {"a.parquet": pa.table({"x": [1]})})
    open_store(locate(uri, key="table.path")).write("b.parquet", b"")
    with pytest.raises(SchemaError, match=r"table.path(?s:.*)file b.parquet has 0 bytes, so what it held is lost"):
        object_frame(spark, Table(path=uri, format="parquet"), key="table")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a=1/p", "b=1/p"], "not for the same columns as the others"),
        (["a=1/p", "p"], "not for the same columns as the others"),
        (["a=1/other/p"], "not named column=value"),
        (["a=PLANTED/p", "a=/p"], "not named column=value"),
        (["x=1/p"], "has the column 'x' twice"),
        (["X=1/p"], "has the column 'X' twice"),
        (["a=1/A=2/p"], "has the column 'a' twice"),
    ],
)
def test_directories_that_are_not_plain_are_refused_and_no_value_is_told(
    spark: SparkSession, endpoint: str, tmp_path: Path, names: list[str], said: str
) -> None:
    del endpoint
    _, uri = put(tmp_path / "table", {f"{name}.parquet": pa.table({"x": [1]}) for name in names})
    with pytest.raises(SchemaError) as told:
        object_frame(spark, Table(path=uri, format="parquet"), key="table")
    assert f"table.path: '{uri}' " in str(told.value)
    assert said in str(told.value)
    assert "PLANTED" not in str(told.value)


def test_files_read_of_a_directory_and_of_a_file_in_it_are_one_key(
    spark: SparkSession, endpoint: str, tmp_path: Path
) -> None:
    del endpoint
    _, uri = put(tmp_path, {"a b.parquet": pa.table({"x": [1]}), "c.parquet": pa.table({"x": [2]})})
    places = (uri.replace("s3:", "s3a:") + "/", f"{uri}/a b.parquet")
    whole, one = (
        files_read(table, object_frame(spark, table, key="table"))
        for table in (Table(path=place, format="parquet") for place in places)
    )
    assert whole == [f"{uri}/a b.parquet", f"{uri}/c.parquet"]
    assert one == whole[:1]
