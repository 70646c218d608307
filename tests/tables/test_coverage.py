"""What of a table is known: against a count of the rows one by one, whatever the partitions."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.results.validation import Coverage
from privrisk_spark.tables.coverage import Held, collect_coverage, collect_strangers_of

pytestmark = pytest.mark.spark

ROWS = [("a", 1), ("b", None), ("x", 3), (None, 3), ("x", 4), ("y", 1), ("", None), ("a", 5)] * 3
SCHEMA = "city string, `a.b` int"


def held(column: str, texts: list[str], *, numbers: bool = False) -> Held:
    codes = {text: code for code, text in enumerate(texts)}
    return Held(column, ValueCodes.of(codes, numbers=numbers))


@pytest.mark.parametrize("partitions", [1, 4, 11])
def test_rows_are_counted_as_one_by_one(spark: SparkSession, partitions: int) -> None:
    frame = spark.createDataFrame(ROWS[::-1], SCHEMA).repartition(partitions)
    known = {"city": held("city", ["a", "b", "never"]), "number": held("a.b", ["1", "3"])}
    found = collect_coverage(None, frame, known)
    outside = {
        "city": Counter(city for city, _ in ROWS if city is not None and city not in ("a", "b")),
        "number": Counter(number for _, number in ROWS if number is not None and number not in (1, 3)),
    }
    missing = {"city": 3, "number": 6}
    assert found == {
        name: Coverage(len(ROWS), missing[name], sum(of.values()), len(of)) for name, of in outside.items()
    }
    values = collect_strangers_of(None, frame, "city", known["city"], most=2)
    assert values == [("x", 6), ("", 3)], "the most frequent first, equals by their texts"


def test_a_table_without_rows_and_columns_nobody_asked_for(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    assert collect_coverage(None, frame, {"city": held("city", ["a"])}) == {"city": Coverage(0, 0, 0, 0)}
    assert collect_coverage(None, frame, {}) == {}
