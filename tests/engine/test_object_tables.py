"""Parquet tables in an object store, against Spark's own reading of the same files on a disk."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
from chispa import assert_df_equality
from pyspark.sql import SparkSession

from benchmarks.s3_server import BUCKET
from privrisk_spark.engine.object_tables import object_frame
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
