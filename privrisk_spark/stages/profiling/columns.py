"""Columns of a table nobody has described: counted in one pass; a sample of rows; the values of columns with few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.sources import column, text

SIMPLE = (T.StringType, T.BooleanType, T.NumericType, T.DateType, T.TimestampType, T.TimestampNTZType)
"""Types whose values have a text; of columns of other types only the missing values are counted."""

_NUMBER = r"^\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*$"
_ERROR = 0.05
"""Relative standard deviation of approximate numbers of different values."""
_ACCURACY = 1000
"""Of quantiles: a rank is wrong by at most a thousandth of the rows."""


def simple_columns(frame: DataFrame) -> list[str]:
    """Names of the columns whose values have a text."""
    return [one.name for one in frame.schema.fields if isinstance(one.dataType, SIMPLE)]


def collect_columns(frame: DataFrame, *, quantiles: Sequence[float]) -> dict[str, Any]:
    """Count every column, in one pass over the table.

    Parameters
    ----------
    frame : DataFrame
    quantiles : sequence of float
        Shares of a column's numbers below those asked for.

    Returns
    -------
    dict
        ``rows``, and under ``columns`` of each by name: ``missing``, and of simple ones ``blank``, ``distinct``
        (approximate), ``shortest``, ``longest``, ``length`` (mean), ``least``, ``greatest`` (texts), ``numbers``,
        ``leading_zeros``, ``quantiles``.
    """
    simple = set(simple_columns(frame))
    asked: list[Column] = [F.count(F.lit(1)).alias("rows")]
    for place, one in enumerate(frame.schema.fields):
        asked.append(F.count(F.when(column(one.name).isNull(), 1)).alias(f"missing_{place}"))
        if one.name in simple:
            asked += _of_simple(frame, one, place, quantiles)
    (row,) = frame.agg(*asked).toArrow().to_pylist()
    found: dict[str, dict[str, Any]] = {one.name: {} for one in frame.schema.fields}
    for name, value in row.items():
        figure, _, place = name.rpartition("_")
        if figure:
            found[frame.columns[int(place)]][figure] = value
    return {"rows": row["rows"], "columns": found}


def _of_simple(frame: DataFrame, one: T.StructField, place: int, quantiles: Sequence[float]) -> list[Column]:
    value, kind = text(frame, one.name), one.dataType
    blank = F.trim(value) == ""
    there = F.when(~blank, value)
    is_number = isinstance(kind, T.NumericType)
    # What is no number in a text is none of its quantiles.
    number = column(one.name).cast("double") if is_number else F.trim(value).try_cast("double")
    finite = F.when(~F.isnan(number) & (F.abs(number) != float("inf")), number)
    if not is_number:
        finite = F.when(value.rlike(_NUMBER), finite)
    ordered = isinstance(kind, T.NumericType | T.DateType | T.TimestampType | T.TimestampNTZType)
    ends = column(one.name) if ordered else there
    figures = {
        "blank": F.count(F.when(blank, 1)),
        "distinct": F.approx_count_distinct(there, _ERROR),
        "shortest": F.min(F.length(there)),
        "longest": F.max(F.length(there)),
        "length": F.avg(F.length(there)),
        "least": F.min(ends).cast("string"),
        "greatest": F.max(ends).cast("string"),
        "numbers": F.count(finite),
        "leadingzeros": F.count(F.when(value.rlike(r"^\s*0[0-9]"), 1)),
    }
    if is_number or isinstance(kind, T.StringType):
        figures["quantiles"] = F.percentile_approx(finite, list(quantiles), _ACCURACY)
    return [figure.alias(f"{name}_{place}") for name, figure in figures.items()]


def collect_sample(frame: DataFrame, names: Sequence[str], *, rows: int, most: int) -> pa.Table:
    """Collect a sample of rows as texts: those of the least hash of what they hold.

    The same rows whatever the partitions. Rows that are equal in all columns are drawn together.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Simple columns.
    rows : int
        Of the table.
    most : int
        Rows of the sample; all if the table has fewer.

    Returns
    -------
    pyarrow.Table
        A column of texts for each name, by place: ``c0``, ``c1``, …, in the order of the hash.
    """
    texts = [text(frame, name).alias(f"c{place}") for place, name in enumerate(names)]
    drawn = frame.select(*texts)
    keys = [f"c{place}" for place in range(len(names))]
    hashed = drawn.withColumn("draw", F.xxhash64(*keys))
    if rows > 4 * most:
        # Twice the share asked for: so few that are kept need no sort of the whole table.
        bound = int(2**63 * (2 * 2 * most / rows - 1))
        hashed = hashed.where(F.col("draw") < bound)
    return hashed.orderBy("draw", *keys).limit(most).drop("draw").toArrow()


def collect_values(frame: DataFrame, names: Sequence[str], *, most: int) -> dict[str, dict[str, int]]:
    """Count every value of columns that have few, in one pass.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Simple columns.
    most : int
        Values of a column; one that has more is left out.

    Returns
    -------
    dict of column to dict of value to rows
        Missing values left out.
    """
    if not names:
        return {}
    pairs = F.array(
        *[F.struct(F.lit(place).alias("place"), text(frame, name).alias("value")) for place, name in enumerate(names)]
    )
    counted = (
        frame.select(F.explode(pairs).alias("pair"))
        .select("pair.place", "pair.value")
        .where(F.col("value").isNotNull())
        .groupBy("place", "value")
        .agg(F.count(F.lit(1)).alias("n"))
        .limit(len(names) * most + 1)
        .toArrow()
    )
    found: dict[str, dict[str, int]] = {name: {} for name in names}
    for row in counted.to_pylist():
        found[names[row["place"]]][row["value"]] = row["n"]
    whole = counted.num_rows <= len(names) * most
    return {name: values for name, values in found.items() if whole and len(values) <= most}


def collect_keys(frame: DataFrame, names: Sequence[str]) -> Mapping[str, int]:
    """Count the different values of columns exactly, the text of a value being what counts.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Few, as each is a shuffle of the table.
    """
    if not names:
        return {}
    asked = [F.count_distinct(text(frame, name)).alias(f"n{place}") for place, name in enumerate(names)]
    (row,) = frame.agg(*asked).toArrow().to_pylist()
    return {name: row[f"n{place}"] for place, name in enumerate(names)}


def collect_rows_of_values(frame: DataFrame, names: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count values exactly, and the most rows one of them has.

    Parameters
    ----------
    frame : DataFrame
    names : sequence of str
        Few: each is a shuffle of its own.

    Returns
    -------
    dict of column to (values, most rows of one)
    """
    found = {}
    for name in names:
        of_value = frame.where(column(name).isNotNull()).groupBy(text(frame, name).alias("value"))
        counted = of_value.agg(F.count(F.lit(1)).alias("n")).agg(F.count("n").alias("values"), F.max("n").alias("most"))
        (row,) = counted.toArrow().to_pylist()
        found[name] = (row["values"], row["most"] or 0)
    return found
