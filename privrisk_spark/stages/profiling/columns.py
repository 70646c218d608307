"""Columns of a table nobody has described: counted in one pass; values of some, and a sample of rows, in another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.number_texts import as_double, column, exact_text, text_of

SIMPLE = (T.StringType, T.BooleanType, T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType)
"""Types whose values have a text; of columns of other types only the missing values are counted."""

_BLANK = r"[ \t\n\x0b\f\r]*"  # to the embedded engine \s has all of Unicode
_NUMBER = rf"^{_BLANK}[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{{1,3}})?{_BLANK}$"
_ACCURACY = 1000
"""Of quantiles: a rank is wrong by at most a thousandth of the rows."""


def simple_columns(frame: DataFrame) -> list[str]:
    """Names of the columns whose values have a text."""
    return [one.name for one in frame.schema.fields if isinstance(one.dataType, SIMPLE)]


def collect_columns(frame: DataFrame, *, quantiles: Sequence[float]) -> dict[str, Any]:
    """Count every column, in one pass over the table for each :data:`_AT_ONCE` columns.

    Parameters
    ----------
    quantiles : sequence of float
        Shares of a column's numbers below those asked for.

    Returns
    -------
    dict
        ``rows``, and under ``columns`` of each by name: ``missing``, and of simple ones ``blank``, ``distinct``
        (approximate), ``shortest``, ``longest``, ``length`` (mean), ``least``, ``greatest`` (texts), ``numbers``,
        ``leading_zeros``, ``quantiles``.
    """
    fields = frame.schema.fields
    found: dict[str, dict[str, Any]] = {one.name: {} for one in fields}
    rows = 0
    for first in range(0, len(fields), _AT_ONCE):
        asked: list[Column] = [F.count(F.lit(1)).alias("rows")]
        for place, one in enumerate(fields[first : first + _AT_ONCE], start=first):
            asked.append(F.count(F.when(column(one.name).isNull(), 1)).alias(f"missing_{place}"))
            if isinstance(one.dataType, SIMPLE):
                asked += _of_simple(one, place, quantiles, one_by_one=is_embedded(frame.sparkSession))
        (row,) = frame.agg(*asked).toArrow().to_pylist()
        rows = row.pop("rows")
        for name, value in row.items():
            figure, _, place = name.rpartition("_")
            found[fields[int(place)].name][figure] = value
    return {"rows": rows, "columns": found}


_AT_ONCE = 40
"""Columns that are counted in one pass. Java does not compile the code of an aggregate of hundreds."""


def _of_simple(one: T.StructField, place: int, quantiles: Sequence[float], *, one_by_one: bool) -> list[Column]:
    kind = one.dataType
    value = text_of(column(one.name), kind)
    blank = F.trim(value) == ""
    there = F.when(~blank, value)
    is_number = isinstance(kind, T.NumericType)
    # What is no number in a text is none of its quantiles.
    number = as_double(column(one.name), kind) if is_number else F.trim(value).try_cast("double")
    finite = F.when(~F.isnan(number) & (F.abs(number) != float("inf")), number)
    if not is_number:
        finite = F.when(value.rlike(_NUMBER), finite)
    ordered = isinstance(kind, T.NumericType | T.DateType | T.TimestampType | T.TimestampNTZType)
    ends = column(one.name) if ordered else there
    figures = {
        "blank": F.count(F.when(blank, 1)),
        "distinct": F.approx_count_distinct(there),
        "shortest": F.min(F.length(there)),
        "longest": F.max(F.length(there)),
        "length": F.avg(F.length(there)),
        "least": exact_text(F.min(ends), kind),
        "greatest": exact_text(F.max(ends), kind),
        "numbers": F.count(finite),
        "leadingzeros": F.count(F.when(value.rlike(rf"^{_BLANK}0[0-9]"), 1)),
    }
    if is_number or isinstance(kind, T.StringType):
        # The embedded engine takes one share at a time; Spark is faster with all of them.
        figures["quantiles"] = (
            F.array(*[F.percentile_approx(finite, share, _ACCURACY) for share in quantiles])
            if one_by_one
            else F.percentile_approx(finite, list(quantiles), _ACCURACY)
        )
    return [figure.alias(f"{name}_{place}") for name, figure in figures.items()]


@dataclass(frozen=True, eq=False)
class Values:
    """Values of a table, counted exactly, and a sample of its rows.

    Attributes
    ----------
    listed : dict of column to dict of value to rows
        Missing values left out; so are columns with more values than were asked for.
    counted : dict of column to (values, most rows of one)
        Missing values left out.
    sample : pyarrow.Table
        A column of texts for each that was asked for, by place: ``c0``, ``c1``, …, in the order of the hash.
    """

    listed: dict[str, dict[str, int]]
    counted: dict[str, tuple[int, int]]
    sample: pa.Table


def collect_values(
    frame: DataFrame,
    *,
    listed: Sequence[str],
    most_listed: int,
    counted: Sequence[str],
    sampled: Sequence[str],
    rows: int,
    most_sampled: int,
) -> Values:
    """Count values of columns exactly, and sample rows, in one pass over the table and one shuffle.

    A row becomes a pair of place and value for each column that is asked for, and one more if it is in the sample;
    equal ones are counted. The sample is the rows of the least hash of what they hold: the same ones whatever the
    partitions. Rows that are equal in all columns are drawn together.

    Parameters
    ----------
    listed : sequence of str
        Simple columns whose values are wanted.
    most_listed : int
        Values of a column; one that has more is left out.
    counted : sequence of str
        Simple columns whose values are only counted. Few: what is shuffled grows with their values.
    sampled : sequence of str
        Simple columns of the sample; none, and no rows are drawn.
    rows : int
        Of the table.
    most_sampled : int
        Rows of the sample; all if the table has fewer.
    """
    columns = [*listed, *counted]

    kinds = {one.name: one.dataType for one in frame.schema.fields}

    def texts_of(names: Sequence[str]) -> list[Column]:
        return [text_of(column(name), kinds[name]) for name in names]

    def pair(place: int, value: Column) -> Column:
        return F.struct(F.lit(place).alias("place"), value.alias("value"))

    pairs = [pair(place, value) for place, value in enumerate(texts_of(columns))]
    if sampled:
        texts = texts_of(sampled)
        draw = F.xxhash64(*texts)
        # One text a row, in the order of the hash: a struct of all columns would be a part of every pair.
        row = F.concat(F.lpad(F.hex(draw.bitwiseXOR(F.lit(-(2**63)))), _HASH_DIGITS, "0"), F.to_json(F.array(*texts)))
        if rows > 2 * most_sampled:
            # Twice the share asked for, so that a large table moves few rows.
            row = F.when(draw < int(2**63 * (2 * 2 * most_sampled / rows - 1)), row)
        pairs.append(pair(_SAMPLE, row))
    there = F.filter(F.array(*pairs), lambda one: one["value"].isNotNull())
    grouped = (
        frame.select(F.explode(there).alias("pair"))
        .groupBy(F.col("pair.place").alias("place"), F.col("pair.value").alias("value"))
        .agg(F.count(F.lit(1)).alias("n"))
    )
    is_listed = F.col("place").between(0, len(listed) - 1)
    values = F.collect_list(F.when(is_listed, F.struct("value", "n")))
    drawn = F.sort_array(F.collect_list(F.when(F.col("place") == _SAMPLE, F.struct("value", "n"))))
    found = grouped.groupBy("place").agg(
        F.count(F.lit(1)).alias("values"),
        F.max("n").alias("most"),
        F.when(F.count(F.lit(1)) <= most_listed, values).alias("listed"),
        F.slice(drawn, 1, most_sampled).alias("drawn"),
    )
    of_place = {one["place"]: one for one in found.toArrow().to_pylist()}
    return Values(
        {
            name: {one["value"]: one["n"] for one in sorted(of_place[place]["listed"], key=itemgetter("value"))}
            if place in of_place
            else {}
            for place, name in enumerate(listed)
            if place not in of_place or of_place[place]["listed"] is not None
        },
        {
            name: (of_place[place]["values"], of_place[place]["most"]) if place in of_place else (0, 0)
            for place, name in enumerate(counted, start=len(listed))
        },
        _sample(of_place[_SAMPLE]["drawn"] if _SAMPLE in of_place else (), sampled, most_sampled),
    )


_SAMPLE = -1
"""The place of a row of the sample, among those of the columns."""

_HASH_DIGITS = 16
"""Hexadecimal digits of a row's hash."""


def _sample(drawn: Sequence[Mapping[str, Any]], names: Sequence[str], most: int) -> pa.Table:
    rows = [row for one in drawn for row in [json.loads(one["value"][_HASH_DIGITS:])] * one["n"]][:most]
    columns = zip(*rows, strict=True) if rows else [()] * len(names)
    return pa.table({f"c{place}": pa.array(column, pa.string()) for place, column in enumerate(columns)})


def collect_counts(frame: DataFrame, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count the values of columns exactly, and the most rows one of them has.

    Parameters
    ----------
    names : sequence of str
        Few: what is shuffled grows with their values.

    Returns
    -------
    dict of column to (values, most rows of one)
        Missing values left out.
    """
    return collect_values(frame, listed=(), most_listed=0, counted=names, sampled=(), rows=0, most_sampled=1).counted
