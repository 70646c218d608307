"""Classes of values, counted on a release as it is read back."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from privrisk_spark.engine.batches import Batches
from privrisk_spark.stages.publishing.value_classes import ValueClasses, measure_value_classes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [(1.5, "a"), (1.5, "a"), (1.5, None), (None, None), (None, "b"), (None, "b"), (None, "b"), (math.nan, "b")]


@pytest.mark.parametrize("partitions", [1, 4, 11])
def test_missing_values_are_equal_and_rows_without_any_are_told_apart(spark: SparkSession, partitions: int) -> None:
    frame = spark.createDataFrame(ROWS, "r0 double, r1 string").repartition(partitions)
    assert measure_value_classes(Batches.of_frame(frame), ["r0", "r1"]) == ValueClasses(5, 1, 1, 3)
    assert measure_value_classes(Batches.of_frame(frame), ["r1"]) == ValueClasses(3, 2, 2, 0)
    assert measure_value_classes(Batches.of_frame(frame), ["r0"]) == ValueClasses(3, 1, 1, 1)


def test_rows_without_values_alone_and_no_rows(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(None,), (None,)], "r0 double")
    assert measure_value_classes(Batches.of_frame(frame), ["r0"]) == ValueClasses(1, 2, None, 0)
    assert measure_value_classes(Batches.of_frame(frame.limit(0)), ["r0"]) == ValueClasses(0, 0, None, 0)
    assert measure_value_classes(Batches.of_frame(frame), []) == ValueClasses(1, 2, 2, 0)
