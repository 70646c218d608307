"""Columns of a table nobody has described: the same figures and the same sample under any partitioning."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from privrisk_spark.stages.profiling.columns import (
    collect_columns,
    collect_keys,
    collect_rows_of_values,
    collect_sample,
    collect_values,
    simple_columns,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "id int, text string, day date, weight double, flag boolean, parts array<int>, `a.b` string"
ROWS = [
    (1, " x", dt.date(2001, 2, 3), 1.5, True, [1], "007"),
    (2, "x", None, float("nan"), None, None, "12"),
    (3, "  ", dt.date(1999, 1, 1), -2.0, False, [2], "1e3"),
    (4, None, dt.date(2001, 2, 3), None, True, [], None),
    (5, "yy", None, 4.0, None, None, "x"),
]


def table(spark: SparkSession, partitions: int = 1, rows: list[tuple[object, ...]] | None = None) -> DataFrame:
    return spark.createDataFrame(ROWS if rows is None else rows, SCHEMA).repartition(partitions)


def test_figures_of_every_column(spark: SparkSession) -> None:
    found = collect_columns(table(spark), quantiles=(0.5,))
    assert found["rows"] == 5
    text, day, weight = (found["columns"][name] for name in ("text", "day", "weight"))
    assert (text["missing"], text["blank"], text["distinct"]) == (1, 1, 3)
    assert (text["shortest"], text["longest"], text["length"]) == (1, 2, pytest.approx(5 / 3))
    assert (day["missing"], day["least"], day["greatest"]) == (2, "1999-01-01", "2001-02-03")
    assert (weight["missing"], weight["numbers"], weight["quantiles"]) == (1, 3, [1.5]), "NaN is no number"
    assert found["columns"]["parts"] == {"missing": 2}, "what has no text is only counted"
    odd = found["columns"]["a.b"]
    assert (odd["numbers"], odd["leadingzeros"]) == (3, 1), "007 is a code, 1e3 a number, x none"


@pytest.mark.parametrize("partitions", [4, 11])
def test_nothing_depends_on_partitions(spark: SparkSession, partitions: int) -> None:
    one, many = table(spark), table(spark, partitions, ROWS[::-1])
    names = simple_columns(one)
    assert collect_columns(one, quantiles=(0.5,)) == collect_columns(many, quantiles=(0.5,))
    assert collect_sample(one, names, rows=5, most=3) == collect_sample(many, names, rows=5, most=3)
    assert collect_values(one, names, most=9) == collect_values(many, names, most=9)


def test_values_are_counted_and_columns_with_many_left_out(spark: SparkSession) -> None:
    found = collect_values(table(spark), ["id", "day", "text"], most=4)
    assert found == {
        "day": {"2001-02-03": 2, "1999-01-01": 1},
        "text": {" x": 1, "x": 1, "  ": 1, "yy": 1},
    }, "five ids are more than four"
    assert collect_values(table(spark), [], most=4) == {}


def test_a_large_table_is_sampled_within_bounds(spark: SparkSession) -> None:
    frame = spark.range(5000).selectExpr("cast(id as string) as id")
    found = collect_sample(frame, ["id"], rows=5000, most=100)
    assert found.num_rows == 100
    assert len(set(found.column(0).to_pylist())) == 100
    assert found == collect_sample(frame.repartition(7), ["id"], rows=5000, most=100)


def test_ids_are_counted_exactly(spark: SparkSession) -> None:
    frame = table(spark)
    assert collect_keys(frame, ["id", "day"]) == {"id": 5, "day": 2}
    assert collect_rows_of_values(frame, ["day", "a.b"]) == {"day": (2, 2), "a.b": (4, 1)}


def test_an_empty_table_has_figures(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], SCHEMA)
    found = collect_columns(empty, quantiles=(0.5,))
    assert found["rows"] == 0
    assert found["columns"]["text"]["least"] is None
    assert collect_rows_of_values(empty, ["id"]) == {"id": (0, 0)}
