"""Columns of a table nobody has described: the same figures and the same sample under any partitioning."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import pytest

from privrisk_spark.stages.profiling.columns import (
    Values,
    collect_columns,
    collect_counts,
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


def values(frame: DataFrame, *, most: int = 9, sampled: int = 9, counted: tuple[str, ...] = ()) -> Values:
    """All simple columns listed and sampled."""
    names = simple_columns(frame)
    return collect_values(
        frame, listed=names, most_listed=most, counted=counted, sampled=names, rows=5, most_sampled=sampled
    )


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
    assert collect_columns(one, quantiles=(0.5,)) == collect_columns(many, quantiles=(0.5,))
    alone, dealt = (values(frame, sampled=3, counted=("id", "day")) for frame in (one, many))
    assert alone.sample.num_rows == 3
    assert (alone.listed, alone.counted, alone.sample) == (dealt.listed, dealt.counted, dealt.sample)


def test_values_are_counted_and_columns_with_many_left_out(spark: SparkSession) -> None:
    found = values(table(spark), most=4, counted=("id", "day", "a.b"))
    assert {name: found.listed[name] for name in ("day", "text")} == {
        "day": {"2001-02-03": 2, "1999-01-01": 1},
        "text": {" x": 1, "x": 1, "  ": 1, "yy": 1},
    }
    assert "id" not in found.listed, "five ids are more than four"
    assert found.counted == {"id": (5, 1), "day": (2, 2), "a.b": (4, 1)}
    assert collect_counts(table(spark), ["day", "a.b"]) == {"day": (2, 2), "a.b": (4, 1)}


def test_the_sample_of_a_small_table_is_the_table(spark: SparkSession) -> None:
    """Rows that are equal as well, and missing values where they are."""
    found = values(table(spark, 4, [*ROWS, ROWS[0]]))
    every = sorted(zip(*(found.sample.column(place).to_pylist() for place in (0, 1)), strict=True), key=str)
    assert every == [("1", " x"), ("1", " x"), ("2", "x"), ("3", "  "), ("4", None), ("5", "yy")]


def test_a_large_table_is_sampled_within_bounds(spark: SparkSession) -> None:
    frame = spark.range(5000).selectExpr("cast(id as string) as id")

    def sample(frame: DataFrame) -> list[str]:
        drawn = collect_values(
            frame, listed=(), most_listed=0, counted=(), sampled=["id"], rows=5000, most_sampled=100
        ).sample
        found: list[str] = drawn.column(0).to_pylist()
        return found

    found = sample(frame)
    least = frame.selectExpr("id", "xxhash64(id) as draw").orderBy("draw").limit(100).toArrow()
    assert found == least.column(0).to_pylist()
    assert found == sample(frame.repartition(7))


def test_an_empty_table_has_figures(spark: SparkSession) -> None:
    empty = spark.createDataFrame([], SCHEMA)
    found = collect_columns(empty, quantiles=(0.5,))
    assert found["rows"] == 0
    assert found["columns"]["text"]["least"] is None
    found_values = values(empty, counted=("id",))
    assert found_values.counted == {"id": (0, 0)}
    assert found_values.listed["text"] == {}
    assert (found_values.sample.num_rows, found_values.sample.num_columns) == (0, 6)


def test_collect_columns_of_a_wide_table_equals_its_parts(spark: SparkSession) -> None:
    frame = spark.createDataFrame([tuple(range(90)), tuple(range(1, 91))], [f"c{i}" for i in range(90)])
    whole = collect_columns(frame, quantiles=(0.5,))
    assert whole["rows"] == 2
    for names in (frame.columns[:3], frame.columns[39:42], frame.columns[88:]):
        parts = collect_columns(frame.select(*names), quantiles=(0.5,))["columns"]
        assert {name: whole["columns"][name] for name in names} == parts
    assert [whole["columns"][f"c{i}"]["least"] for i in range(90)] == [str(i) for i in range(90)]


def test_sampled_texts_are_kept_sign_by_sign(spark: SparkSession) -> None:
    odd = ['"', "\\", "a\nb\tc", "\u00fc\U0001f600", "\x01", "{}", "null", ""]
    found = values(spark.createDataFrame([(text,) for text in odd], "c string"))
    assert sorted(found.sample.column(0).to_pylist()) == sorted(odd)
