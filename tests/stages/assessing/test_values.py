"""A table as values: the same figures whatever the partitions and the order of the rows, those of numpy."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_records import layouts
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.policy.assessment import Classifiers
from privrisk_spark.results.assessment import Measured
from privrisk_spark.stages.assessing.values import collect_moments, collect_value_classes, collect_value_predictions

SCHEMA = T.StructType(
    [
        T.StructField("r0", T.DoubleType()),
        T.StructField("r1", T.DoubleType()),
        T.StructField("town", T.StringType()),
        T.StructField("label", T.StringType()),
    ]
)
OF = {"subject": "table", "set": "all"}


def records(n: int = 60) -> list[tuple[Any, ...]]:
    """Numbers whose sums round, missing ones, NaN and infinity, rows that are equal, and some without a label."""
    pick = random.Random(8)
    found: list[tuple[Any, ...]] = []
    for i in range(n):
        age = None if i % 9 == 4 else pick.randint(1, 9) / 10
        pay = pick.choice([None, float("nan"), float("inf")]) if i % 11 == 3 else pick.choice([1e9, -1e9, 0.1, 0.3])
        found.append((age, pay, pick.choice(["Ulm", "Kiel", None]), None if i % 20 == 7 else "ab"[(age or 0) > 0.5]))
    return [*found, *found[:9], (None, None, None, "a")]


def test_figures_do_not_depend_on_how_rows_lie(spark: SparkSession, tmp_path: Path) -> None:
    """At 1, 4 and 11 partitions of shuffled rows: moments to the bit, classes, and what classifiers predict."""
    rows = records()
    told: list[list[Measured]] = []
    for i, frame in enumerate(layouts(spark, rows, SCHEMA)):
        scratch, numbers = Scratch(spark, tmp_path), {"age": "r0", "pay": "r1"}
        asked = Classifiers(models=("logistic-regression",), sample=50, folds=2)
        told.append(
            [
                *collect_moments(scratch, Batches.of_frame(frame), numbers, OF, store=f"table{i}"),
                *collect_value_classes(frame, ["r0", "town"], OF, k=3, risk_above=[0.4]),
                *collect_value_predictions(frame, ["r0", "r1"], ["town"], "label", asked, OF),
            ]
        )
    first, *others = told
    assert len(others) == 2
    for other in others:
        assert other == first
    found = {
        (one.name, *(v for k, v in one.parameters.items() if k in ("column", "share"))): one.value for one in first
    }
    matrix = np.array([[np.nan if v is None or not np.isfinite(v) else v for v in row[:2]] for row in rows])
    for j, name in enumerate(("age", "pay")):
        held = matrix[~np.isnan(matrix[:, j]), j]
        assert found["mean", name] == pytest.approx(held.mean(), rel=1e-12)
        assert found["variance", name] == pytest.approx(held.var(ddof=1), rel=1e-12)
    both = matrix[~np.isnan(matrix).any(axis=1)]
    assert found["covariance", "age, pay"] == pytest.approx(np.cov(both.T)[0, 1], rel=1e-9)
    classes = Counter((row[0], row[2]) for row in rows if (row[0], row[2]) != (None, None))
    assert found[("classes",)] == len(classes)
    assert found[("k",)] == min(classes.values())
    assert found[("records_below_k",)] == sum(n for n in classes.values() if n < 3)
    assert found[("suppressed_records",)] == len(rows) - sum(classes.values())
    assert 0.5 < found[("classifier_accuracy",)] <= 1
