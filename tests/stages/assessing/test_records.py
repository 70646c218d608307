"""Records beside their classes: looked up in every task, or joined by Spark where the classes are too many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from parts import at
from pyspark.sql import SparkSession

from privrisk_spark.engine.batches import Batches, Scratch, write_ipc
from privrisk_spark.errors import InternalError
from privrisk_spark.stages.assessing.buckets import kept_schema
from privrisk_spark.stages.assessing.records import (
    CLASS_SIZE,
    KeptClasses,
    beside_classes,
    of_records,
    write_nothing,
    written,
)

NODES = [(a, b) for a in range(4) for b in range(3) if (a, b) != (2, 2)]


def kept(directory: Path, parts: int) -> KeptClasses:
    directory.mkdir()
    names = []
    for part in range(parts):
        own = NODES[part::parts]
        table = pa.table(
            {
                "n0": pa.array([a for a, _ in own], pa.int32()),
                "n1": pa.array([b for _, b in own], pa.int32()),
                "rows": pa.array([10 * a + b + 1 for a, b in own], pa.int64()),
                CLASS_SIZE: pa.array([10 * a + b for a, b in own], pa.int64()),
            }
        )
        names.append(write_ipc(table, at(directory)))
    return KeptClasses(
        at(directory), tuple(names), kept_schema(2, population=False, weighted=False), (4, 3), len(NODES)
    )


def records(spark: SparkSession, partitions: int) -> Batches:
    rng = np.random.default_rng(3)
    own = [NODES[i] for i in rng.integers(0, len(NODES), 50)]
    rows = [(f"r{i}", a, b) for i, (a, b) in enumerate(own)]
    return Batches.of_frame(spark.createDataFrame(rows, "record_id string, n0 int, n1 int").repartition(partitions))


def told(batches: Batches) -> dict[str, Any]:
    rows = batches.frame().toArrow().to_pylist()
    assert len({row["record_id"] for row in rows}) == len(rows)
    return {row["record_id"]: row for row in rows}


@pytest.mark.parametrize("partitions", [1, 4, 11])
def test_what_is_looked_up_is_what_would_be_joined(spark: SparkSession, tmp_path: Path, partitions: int) -> None:
    classes = kept(tmp_path / "classes", 3)
    own = told(records(spark, 1))
    looked_up, joined = (
        told(beside_classes(spark, records(spark, partitions), classes, most=most)) for most in (len(NODES), 10)
    )
    assert looked_up == joined
    assert {name: row[CLASS_SIZE] for name, row in looked_up.items()} == {
        name: 10 * row["n0"] + row["n1"] for name, row in own.items()
    }
    of = told(of_records(Batches.of_frame(beside_classes(spark, records(spark, partitions), classes, most=10).frame()),
                         record_id="record_id", attack=None, fraction=None))  # fmt: skip
    for name, row in of.items():
        size = looked_up[name][CLASS_SIZE]
        assert row == {
            "record_id": name,
            CLASS_SIZE: size or None,
            "prosecutor": 1 / size if size else None,
        }


def test_a_record_without_a_class_is_a_fault_of_ours(spark: SparkSession, tmp_path: Path) -> None:
    classes = kept(tmp_path / "classes", 1)
    stray = Batches.of_frame(spark.createDataFrame([("r", 2, 2)], "record_id string, n0 int, n1 int"))
    with pytest.raises(Exception, match=InternalError.__name__):
        beside_classes(spark, stray, classes, most=len(NODES)).frame().toArrow()


def test_no_records_have_no_classes(spark: SparkSession, tmp_path: Path) -> None:
    classes = kept(tmp_path / "classes", 2)
    nobody = Batches.of_frame(spark.createDataFrame([], "record_id string, n0 int, n1 int"))
    assert told(beside_classes(spark, nobody, classes, most=len(NODES))) == {}


@pytest.mark.parametrize("rows", [0, 50])
def test_what_tasks_write_is_what_spark_would(spark: SparkSession, tmp_path: Path, rows: int) -> None:
    classes = kept(tmp_path / "classes", 2)
    some = Batches.of_frame(records(spark, 3).frame().limit(rows))
    known = of_records(
        beside_classes(spark, some, classes, most=len(NODES)), record_id="id", attack=None, fraction=None
    )
    scratch = Scratch(spark, tmp_path)
    target = scratch.directory("parts")
    if not scratch.collect_parts(written(known, target)):
        write_nothing(known, target)
    ours = spark.read.parquet(str(target))
    assert ours.schema == known.schema
    known.frame().write.parquet(str(tmp_path / "theirs"))
    theirs = spark.read.schema(known.schema).parquet(str(tmp_path / "theirs"))
    assert told(Batches.of_frame(ours.withColumnRenamed("id", "record_id"))) == told(
        Batches.of_frame(theirs.withColumnRenamed("id", "record_id"))
    )
    assert ours.count() == rows
