"""Rows dealt to buckets by tasks themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from parts import at
from pyspark.sql import SparkSession

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.slices import dealt, read_slices, write_slices


def test_slices_hold_the_rows_of_their_bucket_in_order(tmp_path: Path) -> None:
    bucket = np.array([2, 0, 2, 2, 0], dtype=np.int64)
    names = [write_slices(pa.table({"a": np.arange(5) + 10 * part}), bucket, 4, at(tmp_path)) for part in (0, 1)]
    slices = [read_slices(at(tmp_path), names, i) for i in range(4)]
    found = [part.column("a").to_pylist() for part in slices if part is not None]
    assert found == [[1, 4, 11, 14], [], [0, 2, 3, 10, 12, 13], []]
    assert read_slices(at(tmp_path), [], 0) is None


@pytest.mark.parametrize("partitions", [1, 4, 11])
def test_equal_keys_meet_in_one_bucket_whatever_task_they_came_from(
    spark: SparkSession, tmp_path: Path, partitions: int
) -> None:
    scratch = Scratch(spark, tmp_path)
    rows = [(f"who-{i % 7}" if i % 11 else None, i) for i in range(90)]
    frame = spark.createDataFrame(rows, "who string, i int").repartition(partitions)
    parts = scratch.collect_parts(
        dealt(
            Batches.of_frame(frame), lambda table: fingerprints(table.column("who")), ["who", "i"], 5,
            scratch.directory("dealt"), lambda table: {"rows": table.num_rows},
        )
    )  # fmt: skip
    assert sum(part["rows"] for part in parts) == 90
    slices = [read_slices(at(tmp_path / "dealt"), [part["name"] for part in parts], bucket) for bucket in range(5)]
    found = [part.to_pylist() for part in slices if part is not None]
    assert sorted((row["i"], row["who"]) for part in found for row in part) == [(i, who) for who, i in rows]
    for who in {who for who, _ in rows}:
        assert sum(any(row["who"] == who for row in part) for part in found) == 1
