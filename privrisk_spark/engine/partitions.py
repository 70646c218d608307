"""Columns of a table that are in the names of its directories, ``ward=surgery/part-0.parquet``, as Hive writes them.

Spark says which columns there are and of what type; what is read from a name here is what Spark reads from it, and of
any name that is not plainly one of these nothing is said, so that it is left to Spark.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.storage.lakes.snapshot import Value

MISSING = "__HIVE_DEFAULT_PARTITION__"
"""What stands in a name for a missing value."""

_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")
_WHOLE = re.compile("-?(0|[1-9][0-9]{0,18})")
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_BITS: dict[type[T.DataType], int] = {T.IntegerType: 32, T.LongType: 64}


def partition_texts(root: Path, file: Path) -> dict[str, str | None] | None:
    """Return the columns a file has from the directories between it and the table's, outermost first.

    Parameters
    ----------
    root : Path
        Directory of the table.
    file : Path

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
        if not column or not equals or not value or "%" in column or column in found:
            return None
        if "%" in _ESCAPE.sub("", value):
            return None
        # An escape is one character, and not one byte of UTF-8.
        found[column] = None if value == MISSING else _ESCAPE.sub(lambda code: chr(int(code[1], 16)), value)
    return found


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
