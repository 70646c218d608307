"""Columns of a table that are in the names of its directories, ``ward=surgery/part-0.parquet``, as Hive writes them.

Spark says which columns there are and of what type; what is read from a name here is what Spark reads from it, and of
any name that is not plainly one of these nothing is said, so that it is left to Spark.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import PurePath

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.storage.lakes.snapshot import Value

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""What stands in a name for a missing value."""

NAMES: dict[str, T.DataType] = {
    kind.simpleString(): kind
    for kind in (
        T.StringType(),
        T.ByteType(),
        T.ShortType(),
        T.IntegerType(),
        T.LongType(),
        T.BooleanType(),
        T.DateType(),
    )
}
"""Types, by how Spark writes them, of which a text stands for one value, which every reader makes of it."""

_TO_ESCAPE = re.compile("[\\x00-\\x1f\\x7f\"#%'*/:=?\\\\{\\[\\]^]")
"""What Spark does not write into a name as it is; also the character 0, which no name holds."""

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_WHOLE = re.compile("-?(0|[1-9][0-9]{0,18})")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BITS: dict[type[T.DataType], int] = {T.ByteType: 8, T.ShortType: 16, T.IntegerType: 32, T.LongType: 64}
_TRUTH = {"true": True, "false": False}


def partition_texts(root: PurePath, file: PurePath, *, named_by_us: bool = False) -> dict[str, str | None] | None:
    """Return the columns a file has from the directories between it and the table's, outermost first.

    Parameters
    ----------
    root : PurePath
        Directory of the table.
    file : PurePath
    named_by_us : bool
        Whether :func:`directory_name` made the names, so that columns may be escaped in them, too.

    Returns
    -------
    dict of column to text, or None for a missing value
        None instead if a directory's name is not plainly a column and its value.
    """
    try:
        names = file.relative_to(root).parts[:-1]
    except ValueError:
        return None
    found: dict[str, str | None] = {}
    for name in names:
        column, equals, value = name.partition("=")
        if not column or not equals or not value or "%" in _ESCAPE.sub("", name):
            return None
        if "%" in column and not named_by_us:
            return None
        column = _unescaped(column)
        if column in found:
            return None
        found[column] = None if value == MISSING else _unescaped(value)
    return found


def _unescaped(text: str) -> str:
    # An escape is one character, and not one byte of UTF-8.
    return _ESCAPE.sub(lambda code: chr(int(code[1], 16)), text)


def directory_name(column: str, text: str | None) -> str:
    """Return the name of the directory that stands for a value, as Spark writes it.

    Parameters
    ----------
    column : str
    text : str or None
        Of the value; neither empty nor :data:`MISSING`, which both are read as a missing value. None for that.
    """
    return f"{_escaped(column)}={MISSING if text is None else _escaped(text)}"


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: f"%{ord(found[0]):02X}", text)


def partition_values(
    texts: Sequence[dict[str, str | None]], types: dict[str, T.DataType]
) -> list[dict[str, Value]] | None:
    """Return the values of files' columns, of the types Spark found for them.

    Parameters
    ----------
    texts : sequence of dict
        Of each file, as :func:`partition_texts` returns them.
    types : dict of column to DataType
        Of the table.

    Returns
    -------
    list of dict of column to value
        None instead if the files have not the same columns, or a text is not plainly of its type.
    """
    columns = list(texts[0]) if texts else []
    if any(list(of_file) != columns for of_file in texts) or not set(columns) <= set(types):
        return None
    found: list[dict[str, Value]] = []
    for of_file in texts:
        values: dict[str, Value] = {}
        for column, text in of_file.items():
            kind = types[column]
            if text is None or isinstance(kind, T.StringType):
                values[column] = text
            elif (
                type(kind) in _BITS
                and _WHOLE.fullmatch(text)
                and -(limit := 2 ** (_BITS[type(kind)] - 1)) <= int(text) < limit
            ):
                values[column] = int(text)
            elif isinstance(kind, T.BooleanType) and text in _TRUTH:
                values[column] = _TRUTH[text]
            elif isinstance(kind, T.DateType) and _DAY.fullmatch(text):
                try:
                    values[column] = dt.date.fromisoformat(text)
                except ValueError:
                    return None
            else:
                return None
        found.append(values)
    return found


def repeated(value: Value, kind: pa.DataType, n: int, *, encoded: bool) -> pa.Array:
    """Return a column of one value.

    Parameters
    ----------
    value : Value
    kind : DataType of Arrow
    n : int
    encoded : bool
        Whether it is to be dictionary-encoded.
    """
    if not encoded:
        return pa.nulls(n, kind) if value is None else pa.repeat(pa.scalar(value, kind), n)
    places = pa.nulls(n, pa.int32()) if value is None else pa.repeat(pa.scalar(0, pa.int32()), n)
    return pa.DictionaryArray.from_arrays(places, pa.array([] if value is None else [value], kind))
