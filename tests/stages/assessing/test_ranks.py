from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from naive_records import layouts
from pyspark.sql import functions as F
from pyspark.sql import types as T

from privrisk_spark.engine import batches
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.errors import InputError, SchemaError
from privrisk_spark.kernels.measures.interval_disclosure import Deviation, IntervalTally, both_known, rid, sdid
from privrisk_spark.stages.assessing import ranks as ranking
from privrisk_spark.stages.assessing.ranks import (
    RANKS,
    StoredRanks,
    collect_deviation,
    collect_disclosed,
    collect_rank_disclosure,
    collect_ranks,
    collect_ranks_of,
    deviation_disclosure,
    rank_disclosure,
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


def told(disclosed: Any) -> dict[str, bool | None]:
    return {row[0]: row[1] for row in disclosed.frame().collect()}


def wanted(rows: list[Row], disclosed: np.ndarray) -> dict[str, bool | None]:
    known = both_known(*columns(rows))
    return {row[0]: bool(d) if k else None for row, d, k in zip(rows, disclosed, known, strict=True)}


def positions(spark: Any, ranks: StoredRanks) -> list[tuple[float, int, int]]:
    frame = ranks.frame(spark)
    assert frame.schema == RANKS
    return sorted(tuple(row) for row in frame.collect())


@pytest.mark.parametrize(("n", "values", "chunk"), [(40, 400, 5), (40, 6, 2**19)])
def test_ranks_and_disclosure_are_those_of_one_array(spark, tmp_path, monkeypatch, n, values, chunk):
    monkeypatch.setattr(batches, "CHUNK_ROWS", chunk)
    rows = records(n, 3, values)
    original, masked = columns(rows)
    ranked = sorted(m + 0.0 for m in masked.tolist() if not math.isnan(m))
    scratch = Scratch(spark, tmp_path)
    for i, frame in enumerate(layouts(spark, rows, SCHEMA)):
        ranks = collect_ranks(scratch, frame, MASKED, store=f"ranks{i}")
        assert (ranks.rows, ranks.distinct) == (len(ranked), len(set(ranked)))
        assert positions(spark, ranks) == [(v, ranked.count(v), ranked.index(v)) for v in sorted(set(ranked))]
        assert ranks.load().at(np.arange(ranks.rows)).tolist() == ranked
        assert ranks.quantiles((0, 0.1, 1)) == (ranked[0], ranked[(len(ranked) - 1) // 10], ranked[-1])
        for p in (0, 30.5) if i == 0 else (30.5,):
            disclosed = rank_disclosure(frame, "id", "income", MASKED, ranks, p=p)
            assert told(disclosed) == wanted(rows, rid(original, masked, p))
        tally = collect_disclosed(disclosed)
        assert tally == IntervalTally.of(original, masked, rid(original, masked, p))
        numbers = Batches.of_frame(frame.select("income", F.col(f"`{MASKED.replace('`', '``')}`").alias("masked")))
        assert collect_rank_disclosure(scratch, numbers, "income", "masked", ranks, p=p) == tally
        assert tally.missing > 0
        deviation = collect_deviation(scratch, frame, "income")
        assert deviation == Deviation.of(original)
        found = told(deviation_disclosure(frame, "id", "income", MASKED, deviation, p=10))
        assert found == wanted(rows, sdid(original, masked, 10))


def test_values_are_dealt_to_several_parts_that_follow_each_other(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(ranking, "VALUES_PER_RANGE", 20)
    rows = [(f"r{i}", float(i % 50), float(i % 50)) for i in range(200)]
    random.Random(1).shuffle(rows)
    frame = spark.createDataFrame(rows, SCHEMA).repartition(4)
    ranks = collect_ranks(Scratch(spark, tmp_path), frame, MASKED, store="ranks")
    assert len(ranks.parts) > 1
    assert [offset for _, offset in ranks.parts] == sorted(offset for _, offset in ranks.parts)
    assert positions(spark, ranks) == [(float(v), 4, 4 * v) for v in range(50)]
    disclosed = collect_disclosed(rank_disclosure(frame, "id", "income", MASKED, ranks, p=0))
    assert disclosed == IntervalTally(200, 200, 0)


def test_nothing_to_rank(spark, tmp_path):
    scratch = Scratch(spark, tmp_path)
    for i, rows in enumerate(([], [("a", 1.0, None), ("b", None, math.nan)])):
        frame = spark.createDataFrame(rows, SCHEMA)
        ranks = collect_ranks(scratch, frame, MASKED, store=f"ranks{i}")
        assert (ranks.parts, ranks.rows, ranks.distinct) == ((), 0, 0)
        assert positions(spark, ranks) == []
        assert ranks.quantiles((0.5,)) == ()
        disclosed = rank_disclosure(frame, "id", "income", MASKED, ranks, p=5)
        assert told(disclosed) == {row[0]: None for row in rows}
        assert collect_disclosed(disclosed) == IntervalTally(0, 0, len(rows))
        assert collect_deviation(scratch, frame, MASKED) == Deviation()


def test_whole_numbers_and_decimals_are_numbers_and_texts_are_not(spark, tmp_path):
    scratch = Scratch(spark, tmp_path)
    frame = spark.sql(
        "SELECT 'a' AS id, 3 AS i, 1.25BD AS d UNION ALL SELECT 'b', 1, 2.5BD UNION ALL SELECT 'c', 3, NULL"
    )
    assert positions(spark, collect_ranks(scratch, frame, "i", store="i")) == [(1.0, 1, 0), (3.0, 2, 1)]
    decimals = collect_ranks(scratch, frame, "d", store="d")
    assert positions(spark, decimals) == [(1.25, 1, 0), (2.5, 1, 1)]
    assert told(rank_disclosure(frame, "id", "i", "d", decimals, p=100)) == {"a": False, "b": False, "c": None}
    long = spark.sql("SELECT CAST('1234567.123456789012345678' AS DECIMAL(30, 18)) AS d")
    assert positions(spark, collect_ranks(scratch, long, "d", store="long")) == [(1234567.1234567890, 1, 0)]
    with pytest.raises(SchemaError, match="must be numeric"):
        collect_ranks(scratch, frame, "id", store="id")
    with pytest.raises(SchemaError, match="there is none"):
        rank_disclosure(frame, "id", "i", "x", decimals, p=5)


def test_a_percentage_that_is_none_is_refused_before_spark_works(spark, tmp_path):
    frame = spark.createDataFrame([("a", 1.0, 1.0)], SCHEMA)
    ranks = StoredRanks(str(Path(tmp_path)), (), 0, 0)
    with pytest.raises(InputError, match="percentage"):
        rank_disclosure(frame, "id", "income", MASKED, ranks, p=101)
    with pytest.raises(InputError, match="percentage"):
        deviation_disclosure(frame, "id", "income", MASKED, Deviation(), p=-1)


@pytest.mark.parametrize(
    ("n", "values", "chunk", "per_range"), [(60, 400, 5, 6), (60, 6, 2**19, 4_000_000), (60, 6, 7, 1)]
)
def test_ranks_of_what_tasks_hold_are_those_of_the_frame(spark, tmp_path, monkeypatch, n, values, chunk, per_range):
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


def test_no_values_have_no_ranks(spark, tmp_path):
    frame = spark.createDataFrame([("a", None, None), ("b", 1.0, math.nan)], SCHEMA).toDF("id", "income", "masked")
    ranks = collect_ranks_of(Scratch(spark, tmp_path), Batches.of_frame(frame), "masked", store="ranks")
    assert (ranks.rows, ranks.distinct, ranks.parts) == (0, 0, ())
