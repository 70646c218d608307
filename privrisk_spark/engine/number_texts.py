"""Texts of values, and of floating-point numbers as Spark writes them, on every engine.

The embedded engine finds the same digits, and writes ``10000000.0``, ``1e-7`` and ``inf`` where Spark writes ``1.0E7``,
``1.0E-7`` and ``Infinity``.
"""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.hierarchies.numbers import equal_text

INEXACT = (T.FloatType, T.DoubleType)
SPELLED = (T.NumericType, T.BooleanType)
"""Types whose values can be written in several ways: ``34`` and ``34.0``, ``true`` and ``True``."""


def number_text(value: Column, kind: T.DataType) -> Column:
    """Return the text of a value, of a whole number without decimals: ``10`` for 10, 10.0 and 10.00.

    :func:`equal_texts` also takes away exponents, which numbers with decimals and very large ones may have here.

    Parameters
    ----------
    kind : DataType
        Of the value.
    """
    text = exact_text(value, kind)
    if isinstance(kind, INEXACT):
        whole, most = value.try_cast("long"), 1e15 if isinstance(kind, T.DoubleType) else 1e7
        return F.when((F.abs(value) < most) & (whole.cast(kind) == value), whole.cast("string")).otherwise(text)
    if isinstance(kind, T.DecimalType):
        return F.regexp_replace(F.regexp_replace(text, r"^(-?[0-9]+\.[0-9]*?)0+$", "$1"), r"\.$", "")
    return text


def equal_texts(values: pa.Array) -> pa.Array:
    """Return texts in which equal numbers are equal, and so are the texts of true and of false.

    Parameters
    ----------
    values : pyarrow.Array
        Of a type of :data:`SPELLED`, or strings; see :func:`privrisk_spark.hierarchies.numbers.equal_text`.
    """
    texts = values.cast(pa.string())
    others = pc.match_substring_regex(texts, _OTHERWISE).fill_null(False)
    if not pc.any(others).as_py():
        return texts
    return pc.replace_with_mask(texts, others, pa.array(map(equal_text, texts.filter(others).to_pylist()), pa.string()))


def is_spelled(kind: pa.DataType) -> bool:
    """Whether a type is one of :data:`SPELLED`."""
    types = pa.types
    return any(of(kind) for of in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean))


_OTHERWISE = r"^[+.]|[0-9][.eE]|^-[0.]|^-?inf$|[0-9]{39}|^(?:True|TRUE|False|FALSE)$"
"""What a text may hold that is not written as :func:`equal_texts` writes it."""


def exact_text(value: Column, kind: T.DataType) -> Column:
    """Return the text of a value, for example ``1.0E7``.

    Parameters
    ----------
    kind : DataType
        Of the value.
    """
    text = value.cast("string")
    if not isinstance(kind, INEXACT):
        return text
    size = F.abs(value)
    as_it_is = F.isnan(value) | (size == 0) | ((size >= 1e-3) & (size < 1e7)) | F.contains(text, F.lit("E"))
    infinite = F.when(value > 0, "Infinity").otherwise("-Infinity")
    return F.when(as_it_is, text).when(size == math.inf, infinite).otherwise(_scientific(text, value < 0))


def _scientific(text: Column, negative: Column) -> Column:
    """Write a number of the embedded engine as ``d.dddE<exponent>``."""
    number = F.ltrim(F.substring_index(text, "e", 1), F.lit("-"))
    digits = F.replace(number, F.lit("."), F.lit(""))
    zeros = F.length(digits) - F.length(F.ltrim(digits, F.lit("0")))
    power = F.when(F.contains(text, F.lit("e")), F.substring_index(text, "e", -1)).otherwise("0").cast("int")
    power = power + F.length(F.substring_index(number, ".", 1)) - 1 - zeros
    digits = F.btrim(digits, F.lit("0"))
    rest = F.when(F.length(digits) > 1, F.substring(digits, 2, 20)).otherwise("0")
    sign = F.when(negative, "-").otherwise("")
    return F.concat(sign, F.substring(digits, 1, 1), F.lit("."), rest, F.lit("E"), power.cast("string"))


def whole_text(value: Column, kind: T.DataType) -> Column:
    """Return a text that differs if the value does, the same on every engine; null for a missing value.

    The engines differ in how they write nested values as JSON.

    Parameters
    ----------
    kind : DataType
        Of the value; maps and variants become JSON.
    """
    if isinstance(kind, T.ArrayType):
        parts = F.transform(value, lambda one: framed_text(one, kind.elementType))
        return F.when(value.isNotNull(), F.concat_ws("", parts))
    if isinstance(kind, T.StructType):
        fields = [framed_text(value.getField(field.name), field.dataType) for field in kind.fields]
        return F.when(value.isNotNull(), F.concat(F.lit(""), *fields))
    if isinstance(kind, T.MapType | T.VariantType):
        return F.to_json(F.struct(value), _AS_JSON)
    return F.hex(value) if isinstance(kind, T.BinaryType) else exact_text(value, kind)


def framed_text(value: Column, kind: T.DataType) -> Column:
    """Return :func:`whole_text` after its length, or ``-`` for a missing value: joined texts differ if one differs."""
    text = whole_text(value, kind)
    return F.coalesce(F.concat(F.octet_length(text).cast("string"), F.lit(":"), text), F.lit("-"))


_AS_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""By default JSON leaves out fields without a value, and what is less than a millisecond."""


def as_double(value: Column, kind: T.DataType) -> Column:
    """Return the nearest double of a number, or of a text; null if there is none.

    The embedded engine divides the digits of a decimal by a power of ten, which need not give the nearest double. Only
    Spark takes texts such as ``7d`` and ``0x1p3`` for numbers.
    """
    if isinstance(kind, T.StringType):
        value = F.when(~value.rlike(_OF_JAVA), value)
    return (value.cast("string") if isinstance(kind, T.DecimalType) else value).try_cast("double")


_OF_JAVA = r"[0-9.][dDfF][ \t\n\x0b\f\r]*$|[xX]"


def plain_text(text: Column) -> Column:
    """Return a number in ``[10^-30, 10^30]`` without an exponent, for example ``0.00000015`` for ``1.5E-7``.

    The embedded engine casts only such texts to decimals. Smaller numbers become ``0``.

    Parameters
    ----------
    text : Column
        As :func:`exact_text` returns it.
    """
    number = F.ltrim(F.substring_index(text, "E", 1), F.lit("-"))
    digits = F.replace(number, F.lit("."), F.lit(""))
    power = F.substring_index(text, "E", -1).try_cast("int")
    large = F.concat(
        F.substring(F.rpad(digits, 31, "0"), F.lit(1), power + 1),
        F.lit("."),
        F.substring(digits, power + 2, F.lit(20)),
    )
    small = F.concat(F.lit("0."), F.repeat(F.lit("0"), -power - 1), digits)
    written = F.when(power < -30, "0").when(power < 0, small).otherwise(large)
    sign = F.when(F.startswith(text, F.lit("-")), "-").otherwise("")
    return F.when(F.contains(text, F.lit("E")), F.concat(sign, written)).otherwise(text)


def column(name: str) -> Column:
    """Return a column by its exact name, dots and backticks included."""
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def text_of(value: Column, kind: T.DataType) -> Column:
    """Text of a value of a type, one for equal numbers of all types; NaN is missing."""
    return number_text(present(value, kind), kind)


def present(value: Column, kind: T.DataType) -> Column:
    """Return a column in which NaN is missing, as :func:`~privrisk_spark.tables.row_groups.without_nan`."""
    return F.when(~F.isnan(value), value) if isinstance(kind, INEXACT) else value


def as_texts(values: pa.Array) -> pa.Array:
    """Texts of distinct values, as Spark writes them, but one for equal numbers of all types."""
    if pa.types.is_string(values.type):
        return values
    if pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
        return equal_texts(values)
    texts = values.cast(pa.string())
    if pa.types.is_date32(values.type):
        late = pc.greater(values.cast(pa.int32()), _LAST_DAY)
        texts = pc.if_else(late, pc.binary_join_element_wise("+", texts, ""), texts)
    return texts


_LAST_DAY = (dt.date.max - dt.date(1970, 1, 1)).days
"""9999-12-31; Spark writes a sign before longer years."""


def dictionary_of(values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Distinct values of a column, and the place of each row's value among them (null for a missing one)."""
    array = values.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # more than one chunk only beyond 2^31 bytes
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], values.type)
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return encoded.dictionary, encoded.indices
