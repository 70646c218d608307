"""The digest of a frame: the same for the same content, and another one for any other."""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F

from privrisk_spark.engine.fingerprints import collect_frame_digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "name string, age int, weight double, born date, seen timestamp, tags array<int>, home struct<a:int,b:int>"
NOON = dt.datetime(2020, 1, 1, 12, tzinfo=dt.UTC)
ROW: dict[str, Any] = {
    "name": "Ada",
    "age": 34,
    "weight": 1.5,
    "born": dt.date(1990, 1, 1),
    "seen": NOON,
    "tags": [1, None],
    "home": {"a": 1, "b": None},
}
OTHER = {**ROW, "name": "Ben", "age": 36}
ROWS = [ROW, OTHER, OTHER]


def digest(spark: SparkSession, rows: list[dict[str, Any]], schema: str = SCHEMA) -> str:
    names = [part.split()[0] for part in schema.replace("a:int,b:int", "").split(", ")]
    return collect_frame_digest(spark.createDataFrame([tuple(row[name] for name in names) for row in rows], schema))


def test_frame_digest_is_independent_of_order_and_partitions(spark: SparkSession) -> None:
    frame = spark.createDataFrame([tuple(row.values()) for row in ROWS], SCHEMA)
    once = collect_frame_digest(frame)
    assert len(once) == 32
    assert collect_frame_digest(frame.orderBy(F.col("age").desc()).repartition(5)) == once
    assert digest(spark, ROWS[::-1]) == once


CHANGES: dict[str, Any] = {
    "name": ["ada", "", None],
    "age": [35, None],
    "weight": [1.25, None, math.nan],
    "born": [dt.date(1990, 1, 2), None],
    "seen": [NOON + dt.timedelta(microseconds=1), None],
    "tags": [[None, 1], [1], [], None],
    "home": [{"a": None, "b": 1}, {"a": None, "b": None}, None],
}


@pytest.mark.parametrize("column", CHANGES)
def test_frame_digest_differs_for_every_other_value(spark: SparkSession, column: str) -> None:
    others = [digest(spark, [{**ROW, column: value}, OTHER, OTHER]) for value in CHANGES[column]]
    assert len({digest(spark, ROWS), *others}) == 1 + len(others)


def test_frame_digest_tells_which_column_and_which_row_lacks_a_value(spark: SparkSession) -> None:
    def of(*rows: tuple[int | None, int | None]) -> str:
        return collect_frame_digest(spark.createDataFrame(list(rows), "a int, b int"))

    found = [
        of((None, 1), (2, 2)), of((1, None), (2, 2)), of((1, 1), (2, 2)), of((1, 2), (2, 1)), of((1, 1)), of(),
        of((1, 1), (1, 1)), of((2, 2), (2, 2)), of((1, 1), (1, 1), (1, 1)),
    ]  # fmt: skip
    assert len(set(found)) == len(found)


def test_frame_digest_knows_names_and_types(spark: SparkSession) -> None:
    frame = spark.range(3).toDF("a")
    found = [
        collect_frame_digest(one)
        for one in (frame, frame.toDF("b"), frame.selectExpr("cast(a as int) as a"), frame.selectExpr("a", "a as a"))
    ]
    assert len(set(found)) == 4


def test_frame_digest_takes_every_type_that_a_frame_may_have(spark: SparkSession) -> None:
    made = """
        map('k', {0}) as m, parse_json('[{0}]') as v, cast('x{0}' as binary) as b, cast({0} as decimal(38, 2)) as d,
        interval '{0}' day as i, array(named_struct('t', timestamp_ntz'2020-01-01 00:00:0{0}')) as n
    """
    once, other = (spark.sql(f"select {made.format(n)}") for n in (1, 2))
    assert collect_frame_digest(once) != collect_frame_digest(other)


@pytest.mark.on_spark("the embedded engine has no collations")
def test_frame_digest_sees_the_letters_that_a_collation_holds_equal(spark: SparkSession) -> None:
    lower, upper = (spark.sql(f"select '{text}' collate UTF8_LCASE as a") for text in ("ada", "ADA"))
    assert collect_frame_digest(lower) != collect_frame_digest(upper)
