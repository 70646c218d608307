"""Rows that this process keeps for the embedded engine: as long as a frame of them exists, and no longer."""

from __future__ import annotations

import gc

import pytest
from pyspark.sql import SparkSession

from privrisk_spark.engine import kept_rows
from privrisk_spark.engine.kept_rows import write_to_memory


@pytest.mark.on_embedded("Spark keeps rows by localCheckpoint")
def test_write_to_memory_holds_rows_until_the_last_frame_of_them_is_gone(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_rows, "CHUNK_ROWS", 3)
    others = set(kept_rows._KEPT)  # frames of other tests of this process
    frame = spark.range(8).selectExpr("id as `a.b`", "cast(id as timestamp) as at", "array(id) as l", "uuid() as u")
    kept = write_to_memory(frame)
    first = sorted(map(repr, kept.toArrow().to_pylist()))
    assert len(first) == 8
    assert sorted(map(repr, kept.toArrow().to_pylist())) == first, "computed once"
    assert kept.schema == frame.schema
    derived = kept.select("l").where("l[0] > 2")
    del kept
    gc.collect()
    assert derived.count() == 5
    assert len(set(kept_rows._KEPT) - others) == 1
    del derived
    gc.collect()
    assert not set(kept_rows._KEPT) - others


@pytest.mark.on_embedded("Spark keeps rows by localCheckpoint")
def test_write_to_memory_of_no_rows_has_the_columns(spark: SparkSession) -> None:
    kept = write_to_memory(spark.createDataFrame([], "a int, b string"))
    assert (kept.columns, kept.count()) == (["a", "b"], 0)
