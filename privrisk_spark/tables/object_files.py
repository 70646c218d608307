"""Tables in object stores that tasks read themselves: which these are, their files, and what directories are named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.errors import Fault, InputError, MissingError, SchemaError
from privrisk_spark.policy.csv_dialect import parse_csv_dialect
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.lakes.snapshot import Value
from privrisk_spark.storage.locations import is_remote, locate
from privrisk_spark.storage.table_files import LineFile, ObjectFile, files_below
from privrisk_spark.tables.partitions import partition_texts, partition_values

__all__ = [
    "in_object_store",
    "named_columns",
    "object_files",
    "object_partitions",
]

_PATTERN = frozenset("*[{")


def in_object_store(table: Table) -> bool:
    """Return True if a table is files of Parquet or CSV in an object store, which tasks read themselves."""
    if table.path is None or table.catalog is not None or not is_remote(table.path) or _PATTERN & set(table.path):
        return False
    form = table.format.lower()
    return (form == "parquet" and not table.options) or form == "csv"


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
        If there are none (MissingError), one has no bytes, or there is no such bucket.
    """
    location = locate(table.path or "", key=f"{key}.path")
    try:
        files = files_below(location)
    except InputError as error:  # no such bucket, or access is denied
        raise SchemaError([Fault(f"{key}.path", error.faults[0].rule)]) from None
    if not files:
        raise MissingError(f"{key}.path: '{location}' cannot be read as {table.format}: there is nothing there.")
    full = table.format.lower() == "parquet" or parse_csv_dialect(table.option_texts, f"{key}.options").header
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
