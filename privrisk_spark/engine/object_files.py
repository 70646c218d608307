"""Tables in object stores that tasks read themselves: which these are, their files, and what directories are named."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine.partitions import partition_texts, partition_values
from privrisk_spark.errors import Fault, InputError, SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.files import LineFile, ObjectFile, files_below
from privrisk_spark.storage.lakes.snapshot import Value
from privrisk_spark.storage.locations import is_remote, locate

__all__ = [
    "CSV_PARSING",
    "csv_separator",
    "in_object_store",
    "is_csv_by_lines",
    "named_columns",
    "object_files",
    "object_partitions",
]

_PATTERN = frozenset("*[{")

CSV_PARSING: Final = {"sep", "delimiter", "quote", "escape", "nullvalue", "emptyvalue", "comment"}
"""Options that say how a line is parsed, which Spark's parser is given as they are."""

_READING: Final = {"header", "encoding", "charset", "multiline", "inferschema", "mode", "enforceschema"}
"""Options of which one value is read here."""


def in_object_store(table: Table) -> bool:
    """Tell whether a table is files in an object store that tasks read themselves: Parquet, or CSV by lines."""
    if table.path is None or table.catalog is not None or not is_remote(table.path) or _PATTERN & set(table.path):
        return False
    form = table.format.lower()
    return (form == "parquet" and not table.options) or (form == "csv" and is_csv_by_lines(table))


def is_csv_by_lines(table: Table, *, encodings: bool = False) -> bool:
    """Return True if a CSV table has one line a row and plain options; only Spark reads others.

    Parameters
    ----------
    table : Table
    encodings : bool
        Whether texts may have any encoding of one byte a letter, and not only UTF-8.
    """
    options = {name.lower(): value for name, value in table.option_texts.items()}
    said = {name: value.lower() for name, value in options.items()}
    return (
        not set(options) - CSV_PARSING - _READING
        and _is_of_bytes(said.get("encoding", said.get("charset", "utf-8")), encodings=encodings)
        and said.get("multiline", "false") == said.get("inferschema", "false") == "false"
        and said.get("mode", "permissive") == "permissive"
        and said.get("header", "false") in ("true", "false")
        and len(csv_separator(options)) == 1
        and csv_separator(options) not in ("\n", "\r", options.get("quote", '"'))
        and all(len(options.get(name, "x")) == 1 for name in ("quote", "escape", "comment"))
        and options.get("comment", "#").isascii()
    )


def _is_of_bytes(encoding: str, *, encodings: bool) -> bool:
    """Whether an end of line is one byte, as in ASCII."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError:
        return False
    return name == "utf-8" or (encodings and name.startswith(("ascii", "iso8859", "cp125")))


def csv_separator(options: Mapping[str, str]) -> str:
    """Return what separates values, by options whose names are in small letters; tabs may be written as in Java."""
    given = options.get("sep", options.get("delimiter", ","))
    return "\t" if given == r"\t" else given


def object_files(table: Table, *, key: str) -> list[ObjectFile]:
    """List the files of a table.

    Parameters
    ----------
    table : Table
        In an object store.
    key : str
        Of the policy, for messages.

    Raises
    ------
    SchemaError
        If there are none, one has no bytes, or there is no such bucket.
    """
    location = locate(table.path or "", key=f"{key}.path")
    try:
        files = files_below(location)
    except InputError as error:  # no such bucket, or access is denied
        raise SchemaError([Fault(f"{key}.path", error.faults[0].rule)]) from None
    if not files:
        raise SchemaError(f"{key}.path: '{location}' cannot be read as {table.format}: there is nothing there.")
    options = {name.lower(): value.lower() for name, value in table.option_texts.items()}
    full = table.format.lower() == "parquet" or options.get("header") == "true"
    empty = next((file for file in files if full and not file.size), None)
    if empty is not None:
        raise SchemaError(
            f"{key}.path: '{location}': file {empty.name} has 0 bytes, so what it held is lost; write it anew or "
            "remove it."
        )
    return files


def named_columns(files: Sequence[LineFile], where: str, columns: Sequence[str]) -> list[str]:
    """Return the columns in the names of directories, outermost first; what is not plain is refused, never misread.

    Parameters
    ----------
    files : sequence of LineFile
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
    root = PurePosixPath("/")
    texts = [partition_texts(root, root / file.key) for file in files]
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
    files : sequence of LineFile
    types : mapping of column to DataType
        Of these columns, or of more.

    Returns
    -------
    list of dict of column to value
        None instead if a name is not plainly a column and its value.
    """
    if not any("=" in file.key for file in files):
        return [{} for _ in files]
    root = PurePosixPath("/")
    texts = [partition_texts(root, root / file.key, named_by_us=True) for file in files]
    known = [of_file for of_file in texts if of_file is not None]
    return partition_values(known, dict(types)) if len(known) == len(texts) else None
