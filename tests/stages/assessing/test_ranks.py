from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from pyspark.sql import types as T

from privrisk_spark.engine import batches
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.kernels.measures.interval_disclosure import Deviation, IntervalTally, rid
from privrisk_spark.stages.assessing import ranks as ranking
from privrisk_spark.stages.assessing.ranks import (
    RANKS,
    StoredRanks,
    collect_deviation_of,
    collect_rank_disclosure,
    collect_ranks_of,
)

Row = tuple[str, float | None, float | None]
SCHEMA = T.StructType(
    [
        T.StructField("id", T.StringType()),
        T.StructField("income", T.DoubleType()),
        T.StructField("inc`ome.masked", T.DoubleType()),
    ]
)
MASKED = "inc`ome.masked"


def records(n: int, seed: int, values: int) -> list[Row]:
    """Few or many different values, ties, zeros of both signs, infinities of the masked one, null and NaN."""
    pick = random.Random(seed)
    rows: list[Row] = []
    for i in range(n):
        true = pick.randint(0, values) / 4 - 3
        masked = true + pick.choice([0.0, 0.0, 0.25, -0.25, 5.0])
        rows.append(
            (
                f"r{i}",
                pick.choices([true, None, math.nan], [20, 1, 1])[0],
                pick.choices([masked, -0.0, math.inf, None, math.nan], [20, 1, 1, 1, 1])[0],
            )
        )
    return rows


def columns(rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.array([math.nan if row[i] is None else row[i] for row in rows]) for i in (1, 2))  # type: ignore[return-value]


def positions(spark: Any, ranks: StoredRanks) -> list[tuple[float, int, int]]:
    frame = ranks.frame(spark)
    assert frame.schema == RANKS
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize(
    ("n", "values", "chunk", "per_range"), [(60, 400, 5, 6), (60, 6, 2**19, 4_000_000), (60, 6, 7, 1)]
)
def test_collect_ranks_of_parts_equal_those_of_one_array(spark, tmp_path, monkeypatch, n, values, chunk, per_range):
    monkeypatch.setattr(batches, "CHUNK_ROWS", chunk)
    monkeypatch.setattr(ranking, "VALUES_PER_RANGE", per_range)
    rows = records(60, 5, values)
    ranked = sorted(m + 0.0 for m in columns(rows)[1].tolist() if not math.isnan(m))
    scratch = Scratch(spark, tmp_path)
    frame = spark.createDataFrame(rows, SCHEMA).toDF("id", "income", "masked").repartition(4)
    ranks = collect_ranks_of(scratch, Batches.of_frame(frame), "masked", store="ranks")
    assert (ranks.rows, ranks.distinct) == (len(ranked), len(set(ranked)))
    assert positions(spark, ranks) == [(v, ranked.count(v), ranked.index(v)) for v in sorted(set(ranked))]
    assert ranks.load().at(np.arange(ranks.rows)).tolist() == ranked
    assert len(ranks.parts) > 1 or per_range > len(ranked)
    assert [offset for _, offset in ranks.parts] == sorted(offset for _, offset in ranks.parts)
    assert ranks.quantiles((0, 0.1, 1)) == (ranked[0], ranked[(len(ranked) - 1) // 10], ranked[-1])


@pytest.mark.parametrize("p", [0, 30.5])
def test_collect_rank_disclosure_counts_as_the_kernel(spark, tmp_path, p):
    rows = records(40, 3, 6)
    original, masked = columns(rows)
    scratch = Scratch(spark, tmp_path)
    numbers = Batches.of_frame(spark.createDataFrame(rows, SCHEMA).toDF("id", "income", "masked").repartition(4))
    ranks = collect_ranks_of(scratch, numbers, "masked", store="ranks")
    tally = collect_rank_disclosure(scratch, numbers, "income", "masked", ranks, p=p)
    assert tally == IntervalTally.of(original, masked, rid(original, masked, p))
    assert tally.missing > 0
    assert collect_deviation_of(scratch, numbers, "income") == Deviation.of(original)


def test_no_values_have_no_ranks(spark, tmp_path):
    frame = spark.createDataFrame([("a", None, None), ("b", 1.0, math.nan)], SCHEMA).toDF("id", "income", "masked")
    ranks = collect_ranks_of(Scratch(spark, tmp_path), Batches.of_frame(frame), "masked", store="ranks")
    assert (ranks.rows, ranks.distinct, ranks.parts) == (0, 0, ())
    assert positions(spark, ranks) == []
    assert ranks.quantiles((0.5,)) == ()
