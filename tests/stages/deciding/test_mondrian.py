"""Strict Mondrian on a table in tasks, against the kernel with the table in one place."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.first_cuts import FirstCuts
from privrisk_spark.kernels.recoding.local.mondrian import mondrian
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.stages.deciding.mondrian import collect_first_cuts, with_levels

AGES = np.array([[code, code // 5, code // 10, 0] for code in range(40)], dtype=np.int32)
PLACES = np.array([[code, code // 3, 0] for code in range(9)], dtype=np.int32)
SEXES = np.array([[0, 0], [1, 0]], dtype=np.int32)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize(("most", "partitions"), [(150, 5), (10**6, 2)])
def test_levels_are_those_of_the_table_in_one_place(
    spark: SparkSession, distinct: bool, most: int, partitions: int
) -> None:
    rng = np.random.default_rng(5)
    drawn = np.column_stack([rng.integers(0, 40, 900), rng.integers(0, 9, 900) ** 2 // 9, rng.integers(0, 2, 900)])
    vectors, counts = np.unique(drawn.astype(np.int32), axis=0, return_counts=True)
    ancestors = [AGES, PLACES, SEXES]
    expected = mondrian(Measured.of(FullDomain.of(ancestors, vectors, counts)), 4, ordered=[True, False, False])
    none = Measured.of(FullDomain.of(ancestors, vectors[:0], counts[:0]))
    rows = vectors if distinct else drawn.astype(np.int32)
    columns = {f"q{i}": pa.array(rows[:, i]) for i in range(3)}
    if distinct:
        columns[schemas.N_ROWS] = pa.array(counts.astype(np.int64))
    frame = spark.createDataFrame(pa.table(columns)).repartition(partitions)
    cuts = collect_first_cuts(Batches.of_frame(frame), FirstCuts.wanted(none, 4, [True, False, False], most))
    assert (len(cuts.depths) > 2) == (most == 150)
    found = with_levels(Batches.of_frame(frame), cuts, tasks=3).frame().toArrow()
    assert found.num_rows == len(rows)
    of_record = {
        tuple(row): tuple(levels) for row, levels in zip(vectors.tolist(), expected.levels.tolist(), strict=True)
    }
    names = [*(f"q{i}" for i in range(3)), *schemas.chosen(3)]
    for row in zip(*(found.column(name).to_pylist() for name in names), strict=True):
        assert of_record[row[:3]] == row[3:]
    assert expected.suppressed == 0


def test_a_table_without_rows_has_no_levels(spark: SparkSession) -> None:
    none = Measured.of(FullDomain.of([SEXES], np.zeros((0, 1), dtype=np.int32), np.zeros(0, dtype=np.int64)))
    rows = Batches.of_frame(spark.createDataFrame([], "q0 int"))
    cuts = collect_first_cuts(rows, FirstCuts.wanted(none, 2, None, 10))
    assert with_levels(rows, cuts, tasks=2).frame().toArrow().num_rows == 0
