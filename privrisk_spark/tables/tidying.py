"""Values tidied when they are read, and numbers made coarser before they are released: expressions on one row alone.

Whoever reads a table of a policy reads it through here, so that hierarchies, leaves, contracts and what is released see
the same values. A column that is no longer as its files have it is marked, and only Spark reads it then
(:func:`privrisk_spark.tables.sources.scan`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.number_texts import (
    INEXACT,
    SPELLED,
    as_double,
    column,
    exact_text,
    plain_text,
    present,
    text_of,
)
from privrisk_spark.errors import Fault, SchemaError
from privrisk_spark.hierarchies.numbers import equal_text, spellings
from privrisk_spark.hierarchies.scales import interval_labels
from privrisk_spark.planning.readings import Declared
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.values import BLANKS, NumberMarks, Reading, Recoding
from privrisk_spark.results.facts import ValuesRead
from privrisk_spark.tables.sources import computed

_TEXTS = (T.StringType, T.CharType, T.VarcharType)
_DAYS = (T.TimestampType, T.TimestampNTZType, T.DateType)
_FORMS = {
    # What follows a day must be a time of day. To the embedded engine \d is a digit of any script.
    "date": (
        r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
        r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)? ?(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?\z"
    ),
    "integer": r"^[+-]?[0-9]+\z",
    "number": r"^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\z",
}
_DOUBLE = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:E-?[0-9]+)?|Infinity)")
_KINDS: dict[str, T.DataType] = {"date": T.DateType(), "integer": T.LongType(), "number": T.DoubleType()}
_MEANT = {"date": "dates (YYYY-MM-DD)", "integer": "whole numbers", "number": "numbers"}


@dataclass(frozen=True, eq=False)
class OpenTable:
    """A table as it is used, and as its files have it.

    Attributes
    ----------
    rows : DataFrame
        With its values tidied.
    declared : mapping of column to Declared
    """

    rows: DataFrame
    as_read: DataFrame
    declared: Mapping[str, Declared]


def tidied(frame: DataFrame, declared: Mapping[str, Declared]) -> OpenTable:
    """Tidy the values of a table; the same rows, one for one.

    Parameters
    ----------
    declared : mapping of column to Declared
        Those of columns that are not there, or there twice, are left to who checks columns.

    Raises
    ------
    SchemaError
        If a column is of a type that cannot be read so.
    """
    there = frame.columns
    if not set(declared) & set(there) or len(set(there)) < len(there):
        return OpenTable(frame, frame, {})
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    used = {name: one for name, one in declared.items() if name in kinds}
    faults = [fault for name, one in used.items() for fault in _faults(one, kinds[name])]
    if faults:
        raise SchemaError(faults)
    columns = [
        computed(_values(column(name), kinds[name], used[name].reading)[-1][1], name) if name in used else column(name)
        for name in there
    ]
    return OpenTable(frame.select(*columns), frame, used)


def _faults(declared: Declared, kind: T.DataType) -> list[Fault]:
    reading, key = declared.reading, declared.key
    faults = [
        Fault(f"{key}.{step}", f"the column holds {kind.simpleString()}, not texts; leave it out")
        for step in ("trim", "case")
        if getattr(reading, step) and not isinstance(kind, _TEXTS)
    ]
    numbers = (*_TEXTS, T.IntegralType, T.DecimalType, *INEXACT)
    allowed = (*_TEXTS, *_DAYS) if reading.cast == "date" else numbers
    if reading.cast is not None and not isinstance(kind, allowed):
        what = "texts, dates or timestamps" if reading.cast == "date" else "texts or numbers"
        rule = f"only {what} can be read as a {reading.cast}, not {kind.simpleString()}"
        faults.append(Fault(f"{key}.cast", rule))
    simple = (*numbers, *_DAYS, T.BooleanType)
    if (reading.null_if or reading.map) and not isinstance(kind, simple):
        faults.append(Fault(key, f"values of the type {kind.simpleString()} have no text to compare; drop the column"))
    return faults


def _values(value: Column, kind: T.DataType, reading: Reading) -> list[tuple[str, Column, T.DataType]]:
    """Return a value as it is, and after each step, with its type."""
    found: list[tuple[str, Column, T.DataType]] = [("", value, kind)]
    for step in reading.steps:
        _, before, of = found[-1]
        as_text = text_of(before, of)
        if step == "trim":
            after, of = F.btrim(as_text, F.lit(BLANKS)), T.StringType()
        elif step == "case":
            after, of = (F.upper if reading.case == "upper" else F.lower)(as_text), T.StringType()
        elif step == "null_if":
            after = F.when(_is_one_of(before, of, reading.null_if), None).otherwise(before)
        elif step == "map":
            pairs = [F.lit(text) for pair in _meant(reading.map, of).items() for text in pair]
            after, of = F.coalesce(F.try_element_at(F.create_map(*pairs), as_text), as_text), T.StringType()
        else:
            assert reading.cast is not None
            if reading.number is not None and isinstance(of, _TEXTS):
                before = _without_marks(before, reading.number)
            after, of = _cast(before, of, reading.cast), _KINDS[reading.cast]
        found.append((step, after, of))
    return found


def _without_marks(value: Column, marks: NumberMarks) -> Column:
    """Write a number with a point before its decimals and no other mark; missing if it is not written with marks."""
    plain = value if marks.thousands is None else F.replace(value, F.lit(marks.thousands), F.lit(""))
    return F.when(value.rlike(rf"^(?:{marks.pattern})\z"), F.replace(plain, F.lit(marks.decimal), F.lit(".")))


def _is_one_of(value: Column, kind: T.DataType, texts: Sequence[str]) -> Column:
    """Whether a value is one of some texts."""
    if isinstance(kind, T.DoubleType):  # far faster on the embedded engine than to write the number
        numbers = [float(text) for text in map(equal_text, texts) if _DOUBLE.fullmatch(text)]
        return (value + F.lit(0.0)).isin(*numbers) if numbers else F.lit(False)  # -0.0 becomes 0.0, which hashes alike
    return text_of(value, kind).isin(*_meant(dict.fromkeys(texts, ""), kind))


def _meant(texts: Mapping[str, str], kind: T.DataType) -> dict[str, str]:
    """Return what stands instead of texts of the policy, by each way in which ``number_text`` may write them."""
    if not isinstance(kind, SPELLED):
        return dict(texts)
    return {way: instead for text, instead in reversed([*texts.items()]) for way in spellings(text)}


def _cast(value: Column, kind: T.DataType, to: str) -> Column:
    """Value as a date or number, missing if it is none; no value makes it fail."""
    if isinstance(kind, _TEXTS):
        as_text = F.substring(value, 1, 10) if to == "date" else value
        fits = value.rlike(_FORMS[to])
        if to == "date":
            fits &= ~F.startswith(value, F.lit("0000"))  # a year 0 is what some systems write for none
        read = F.when(fits, as_text.try_cast(_KINDS[to]))
        # Larger than any double is infinite to Spark, and no number of the table.
        return F.when(F.abs(read) < math.inf, read) if to == "number" else read
    if to == "integer" and not isinstance(kind, T.IntegralType):
        whole = value.try_cast(_KINDS[to])
        if not isinstance(kind, INEXACT):
            return F.when(whole.cast(T.DecimalType(38, 0)) == value, whole)
        # To Spark 2^63 is a long, as the largest one is the same double.
        return F.when((whole.cast(kind) == value) & (value < 2.0**63), whole)
    if to == "number":
        return as_double(value, kind)
    # An instant becomes its day in the session's time zone, which is UTC.
    return value.try_cast(_KINDS[to])


def collect_values_read(opened: OpenTable) -> tuple[ValuesRead, ...]:
    """Count what reading changed, in a pass over the columns that are read so; of others there is none.

    Raises
    ------
    SchemaError
        If there are values that cannot be read as what the policy says, and it does not say that they are missing then.
    """
    if not opened.declared:
        return ()
    frame, counts = opened.as_read, []
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    for i, (name, one) in enumerate(opened.declared.items()):
        values = _values(column(name), kinds[name], one.reading)
        for (_, before, kind), (step, after, of) in pairwise(values):
            as_it_is = present if kind == of else text_of
            texts = as_it_is(before, kind), as_it_is(after, of)
            counts.append(F.count_if(~texts[0].eqNullSafe(texts[1])).alias(f"{i} {step}"))
            if step == "cast":
                counts.append(F.count_if(texts[0].isNotNull() & texts[1].isNull()).alias(f"{i} uncast"))
    told = frame.agg(*counts).toArrow().to_pylist()[0]
    found = tuple(
        ValuesRead(one.key, {step: told[f"{i} {step}"] for step in one.reading.steps}, told.get(f"{i} uncast", 0))
        for i, one in enumerate(opened.declared.values())
    )
    faults = [
        Fault(
            f"{one.key}.cast",
            f"{values.uncast:,} values are no {_MEANT[str(one.reading.cast)]}. Fix: correct them, or set "
            f"{one.key}.null_if or .map{_number_instead(one.reading)}{_suppressed_instead(one.key)}",
        )
        for one, values in zip(opened.declared.values(), found, strict=True)
        if values.uncast and not one.lenient
    ]
    if faults:
        raise SchemaError(faults)
    return found


def _number_instead(reading: Reading) -> str:
    is_number = reading.cast in ("integer", "number") and reading.number is None
    return ", or .number if they are written as 1.234,5" if is_number else ""


def _suppressed_instead(key: str) -> str:
    column = key.removesuffix(".read")
    return f" (or set {column}.unknown: suppress)" if key.startswith("columns.") else ""


def recoded(frame: DataFrame, policy: Policy) -> DataFrame:
    """Make the numbers of kept columns coarser as the policy says; the same rows, one for one.

    Raises
    ------
    SchemaError
        If a column does not hold numbers, or a bound does not fit its type.
    """
    kinds = {field.name: field.dataType for field in frame.schema.fields}
    asked = policy.recodings
    if not asked:
        return frame
    faults = [fault for name, recoding in asked.items() for fault in _unfit(name, kinds[name], recoding)]
    if faults:
        raise SchemaError(faults)
    # A formula repeats its argument, so nested formulas grow exponentially. Each step is a projection instead.
    bounded = _replace(frame, {name: _bound(column(name), kinds[name], one) for name, one in asked.items()})
    longest = "_" * max(map(len, frame.columns))
    rounded = {name: f"{longest}{i}" for i, name in enumerate(asked) if asked[name].round is not None}
    texts = [
        exact_text(column(name), kinds[name]).alias(f"{to}t")
        for name, to in rounded.items()
        if isinstance(kinds[name], INEXACT)
    ]
    decimals = [_as_decimal(column(name), kinds[name], f"{to}t").alias(to) for name, to in rounded.items()]
    exact = bounded.select("*", *texts).select("*", *decimals)
    values = {
        name: _rounded(column(name), kinds[name], one.round, F.col(rounded[name]))
        if one.round is not None
        else _label(column(name), kinds[name], one)
        for name, one in asked.items()
    }
    return _replace(exact, values).select(*map(column, frame.columns))


def _replace(frame: DataFrame, values: Mapping[str, Column]) -> DataFrame:
    """Return a frame with new values in some columns."""
    return frame.select(*[computed(values[name], name) if name in values else column(name) for name in frame.columns])


def _unfit(name: str, kind: T.DataType, recoding: Recoding) -> list[Fault]:
    key = f"columns.{name}.release"
    if not isinstance(kind, T.IntegralType | T.DecimalType | T.FractionalType):
        hint = f"; set columns.{name}.read: {{cast: number}}" if isinstance(kind, _TEXTS) else ""
        return [Fault(key, f"only numbers can be recoded, and the column holds {kind.simpleString()}{hint}")]
    places = 0 if isinstance(kind, T.IntegralType) else kind.scale if isinstance(kind, T.DecimalType) else None
    bounds = {"bottom_code": recoding.bottom_code, "top_code": recoding.top_code, "round": recoding.round}
    faults = [
        Fault(f"{key}.{step}", f"must have at most {places} decimals, as the column has. Got {bound}")
        for step, bound in bounds.items()
        if bound is not None and places is not None and -_exponent(bound) > places
    ]
    low, high = _range(kind)
    for step in ("bottom_code", "top_code"):
        bound = bounds[step]
        if bound is not None and (bound > high if step == "bottom_code" else bound < low):
            rule = f"must be a number the column's type {kind.simpleString()} holds. Got {bound}"
            faults.append(Fault(f"{key}.{step}", rule))
        elif bound is not None and recoding.round is not None and bound % recoding.round:
            rule = f"must be a multiple of {key}.round, to which it is rounded. Got {bound}"
            faults.append(Fault(f"{key}.{step}", rule))
    return faults


def _range(kind: T.DataType) -> tuple[Decimal, Decimal]:
    """Least and greatest number of a type."""
    for of, bits in ((T.ByteType, 8), (T.ShortType, 16), (T.IntegerType, 32), (T.LongType, 64)):
        if isinstance(kind, of):
            return Decimal(-(2 ** (bits - 1))), Decimal(2 ** (bits - 1) - 1)
    if isinstance(kind, T.DecimalType):
        most = Decimal(10 ** (kind.precision - kind.scale)) - Decimal(1).scaleb(-kind.scale)
        return -most, most
    return Decimal("-Infinity"), Decimal("Infinity")


def _exponent(number: Decimal) -> int:
    return int(number.normalize().as_tuple().exponent)


def _literal(number: Decimal, kind: T.DataType | None = None) -> Column:
    """Exact literal, of the tightest type; a double if it is compared with floating-point numbers."""
    if isinstance(kind, INEXACT):
        return F.lit(float(number))
    places = max(0, -_exponent(number))
    digits = len(format(abs(number.normalize()), "f").replace(".", "").lstrip("0"))
    return F.lit(format(number, "f")).cast(T.DecimalType(max(digits, places, 1), places))


def _bound(value: Column, kind: T.DataType, recoding: Recoding) -> Column:
    """Return a value within its bounds. NaN is missing."""
    value = present(value, kind)
    bottom, top = recoding.bottom_code, recoding.top_code
    if bottom is not None:
        bound = _literal(bottom, kind)
        value = F.when(value < bound, bound.try_cast(kind)).otherwise(value)
    if top is not None:
        bound = _literal(top, kind)
        value = F.when(value > bound, bound.try_cast(kind)).otherwise(value)
    return value


def _label(value: Column, kind: T.DataType, recoding: Recoding) -> Column:
    """Return the label of the interval of a value, or the value if there are no intervals."""
    if not recoding.intervals:
        return value
    below, *others = interval_labels(recoding.intervals)
    lowest = F.when(value < _literal(recoding.intervals[0], kind), F.lit(below))
    pairs = zip(recoding.intervals[1:], others, strict=False)
    labelled = reduce(lambda made, pair: made.when(value < _literal(pair[0], kind), F.lit(pair[1])), pairs, lowest)
    return labelled.when(value.isNotNull(), F.lit(others[-1]))


def _as_decimal(value: Column, kind: T.DataType, text: str) -> Column:
    """Return a value as a decimal. ``text`` is the column with the text of a floating-point number."""
    if isinstance(kind, INEXACT):
        # By its binary value 0.35 is less than halfway from 0.3 to 0.4.
        return plain_text(F.col(text)).try_cast(T.DecimalType(30, 12))
    if isinstance(kind, T.IntegralType):
        return value.cast(T.DecimalType(19, 0))
    assert isinstance(kind, T.DecimalType)
    return value.try_cast(T.DecimalType(min(kind.precision, 36), kind.scale))


def _rounded(value: Column, kind: T.DataType, step: Decimal, exact: Column) -> Column:
    """Nearest multiple of a step, halves away from zero, in decimals: 0.15 is halfway between 0.1 and 0.2.

    Floating-point numbers from 10^18 on, decimals of more than 36 digits, and numbers whose multiple their type does
    not hold, stay as they are.
    """
    multiple = _multiple(exact, step)
    if isinstance(kind, INEXACT):
        return F.coalesce(multiple.cast("string").try_cast(kind), value)
    if isinstance(kind, T.IntegralType):
        return F.coalesce(multiple.try_cast(T.LongType()), value)
    assert isinstance(kind, T.DecimalType)
    wider = T.DecimalType(min(kind.precision + 1, 38), kind.scale)
    return F.coalesce(multiple.try_cast(wider), value.cast(wider))


def _multiple(exact: Column, step: Decimal) -> Column:
    """Multiple of a decimal of at most 36 digits: no sum overflows, which an error would quote."""
    width, rest = _literal(step), exact % _literal(step)
    up = F.when(exact > 0, width).otherwise(-width)
    return F.when(F.abs(rest) < width - F.abs(rest), exact - rest).otherwise(exact - rest + up)
