"""Parquet tables in an object store, against Spark's own reading of the same files on a disk."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession

from benchmarks.s3_server import BUCKET
from privrisk_spark.engine.object_tables import object_frame
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.policy import Table
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_store


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
    assert_df_equality(found, spark.read.parquet(str(file)), ignore_row_order=True, ignore_nullable=True)
    assert_df_equality(found, spark.createDataFrame(rows), ignore_row_order=True, ignore_nullable=True)


def test_times_of_96_bits_within_others_are_refused(spark: SparkSession, endpoint: str, tmp_path: Path) -> None:
    """Spark takes these, too, for instants; a column whose name holds a dot is none of them."""
    del endpoint
    at = pa.array([dt.datetime(2026, 1, 1, tzinfo=dt.UTC)], pa.timestamp("us", "UTC"))

    def frame(rows: pa.Table) -> DataFrame:
        pq.write_table(rows, tmp_path / "part.parquet", use_deprecated_int96_timestamps=True, store_schema=False)
        uri = f"s3://{BUCKET}/{uuid4().hex}"
        open_store(locate(uri, key="table.path")).upload("part.parquet", tmp_path / "part.parquet")
        return object_frame(spark, Table(path=uri, format="parquet"), key="table")

    plain = pa.table({"a.b": at})
    assert_df_equality(frame(plain), spark.createDataFrame(plain), ignore_nullable=True)
    for nested in (pa.ListArray.from_arrays([0, 1], at), pa.StructArray.from_arrays([at], ["b"])):
        with pytest.raises(SchemaError, match=r"table.path(?s:.*)times of 96 bits within(?s:.*)'a\."):
            frame(pa.table({"a": nested}))
