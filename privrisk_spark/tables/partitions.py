"""Columns of a table that are in the names of its directories, ``ward=surgery/part-0.parquet``, as Hive writes them.

Spark says which columns there are and of what type; what is read from a name here is what Spark reads from it, and of
any name that is not plainly one of these nothing is said, so that it is left to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import to_arrow_type

from privrisk_spark.errors import SchemaError
from privrisk_spark.storage.lakes.snapshot import Value
from privrisk_spark.storage.table_files import LineFile

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


def partition_texts(key: str, *, named_by_us: bool = False) -> dict[str, str | None] | None:
    """Return the columns a file has from the names of its directories, outermost first.

    Parameters
    ----------
    key : str
        Path of the file below its table, directories divided by slashes.
    named_by_us : bool
        Whether :func:`directory_name` made the names, so that columns may be escaped in them, too.

    Returns
    -------
    dict of column to text, or None for a missing value
        None instead if a directory's name is not plainly a column and its value.
    """
    found: dict[str, str | None] = {}
    for name in key.split("/")[:-1]:
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
    text : str or None
        Of the value; neither empty nor :data:`MISSING`, which both are read as a missing value. None for that.
    """
    return f"{_escaped(column)}={MISSING if text is None else _escaped(text)}"


def _escaped(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: f"%{ord(found[0]):02X}", text)


def partition_values(
    keys: Sequence[str], types: Mapping[str, T.DataType], *, named_by_us: bool = False
) -> list[dict[str, Value]] | None:
    """Return the values of files' columns, of the types Spark found for them.

    Parameters
    ----------
    keys : sequence of str
        Paths of the files, as :func:`partition_texts` takes them.
    types : mapping of column to DataType
        Of the table.
    named_by_us : bool
        As :func:`partition_texts` takes it.

    Returns
    -------
    list of dict of column to value
        None instead if the files have not the same columns, or a text is not plainly of its type.
    """
    texts = [of_file for key in keys if (of_file := partition_texts(key, named_by_us=named_by_us)) is not None]
    columns = list(texts[0]) if texts else []
    if len(texts) < len(keys) or any(list(of_file) != columns for of_file in texts):
        return None
    values: dict[str, list[Value]] = {}
    for column in columns:
        if not isinstance(types.get(column), tuple(map(type, NAMES.values()))):
            return None
        try:
            given = pa.array([of_file[column] for of_file in texts], pa.string())
            found = given.cast(to_arrow_type(types[column]))
            values[column] = found.to_pylist()
        except (ValueError, OverflowError):  # no UTF-8, a text that is none of the type, or no date of Python's
            return None
        # Other readers take 007, 0x7 and True for texts.
        if not found.cast(pa.string()).equals(given):
            return None
    return [{column: values[column][i] for column in columns} for i in range(len(keys))]


def named_columns(files: Sequence[LineFile], where: str, columns: Sequence[str]) -> list[str]:
    """Return the columns in the names of directories, outermost first; what is not plain is refused, never misread.

    Parameters
    ----------
    where : str
        The table, for messages.
    columns : sequence of str
        In the files.

    Raises
    ------
    SchemaError
        If directories are named otherwise, or a column is there twice.
    """
    if not any("=" in part for file in files for part in file.key.split("/")[:-1]):
        return []
    texts = [partition_texts(file.key) for file in files]
    named = list(texts[0] or ())
    if any(of_file is None or list(of_file) != named for of_file in texts):
        raise SchemaError(
            f"{where} has directories of which some are not named column=value, or not for the same columns as the "
            "others; name all of them alike, or read the table by Spark (table.catalog)."
        )
    taken = [name.casefold() for name in (*columns, *named)]
    twice = next((name for name in named if taken.count(name.casefold()) > 1), None)
    if twice is not None:
        raise SchemaError(
            f"{where} has the column {twice!r} twice, in files or names of directories, whatever the case of its "
            "letters; take it out of one of them."
        )
    return named


def object_partitions(files: Sequence[LineFile], types: Mapping[str, T.DataType]) -> list[dict[str, Value]] | None:
    """Return the values of the columns in the names of each file's directories below those of a release of ours.

    Parameters
    ----------
    types : mapping of column to DataType
        Of these columns, or of more.

    Returns
    -------
    list of dict of column to value
        None instead if a name is not plainly a column and its value.
    """
    if not any("=" in file.key for file in files):
        return [{} for _ in files]
    return partition_values([file.key for file in files], types, named_by_us=True)


def repeated(value: Value, kind: pa.DataType, n: int, *, encoded: bool) -> pa.Array:
    """Return a column of one value.

    Parameters
    ----------
    kind : DataType of Arrow
    encoded : bool
        Whether it is to be dictionary-encoded.
    """
    if not encoded:
        return pa.nulls(n, kind) if value is None else pa.repeat(pa.scalar(value, kind), n)
    places = pa.nulls(n, pa.int32()) if value is None else pa.repeat(pa.scalar(0, pa.int32()), n)
    return pa.DictionaryArray.from_arrays(places, pa.array([] if value is None else [value], kind))
