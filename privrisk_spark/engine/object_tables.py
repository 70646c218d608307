"""Parquet tables in object stores, read by the tasks themselves: no connector of Spark's, no file fetched whole.

Spark is told of the rows as of any others; what a stage takes of a table's columns is read by ranges of the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.partitions import partition_texts, partition_values, repeated
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.files import ObjectFile, files_below
from privrisk_spark.storage.lakes.snapshot import Value
from privrisk_spark.storage.locations import is_remote, locate

_PATTERN = frozenset("*[{")
_INSTANT = pa.timestamp("us", "UTC")


def in_object_store(table: Table) -> bool:
    """Tell whether a table is Parquet files in an object store, which tasks read themselves."""
    if table.path is None or table.catalog is not None or table.format.lower() != "parquet" or table.options:
        return False
    return is_remote(table.path) and not _PATTERN & set(table.path)


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
        If there are none, or one has no bytes.
    """
    location = locate(table.path or "", key=f"{key}.path")
    files = files_below(location)
    if not files:
        raise SchemaError(f"{key}.path: '{location}' cannot be read as {table.format}: there is nothing there.")
    empty = next((file for file in files if not file.size and table.format == "parquet"), None)
    if empty is not None:
        raise SchemaError(
            f"{key}.path: '{location}': file {empty.name} has 0 bytes, so what it held is lost; write it anew or "
            "remove it."
        )
    return files


def object_frame(
    spark: SparkSession, table: Table, *, key: str, partitions: Sequence[T.StructField] | None = None
) -> DataFrame:
    """Open a table; footers are read, and no rows.

    Parameters
    ----------
    spark : SparkSession
    table : Table
        In an object store.
    key : str
        Of the policy, for messages.
    partitions : sequence of StructField, optional
        Columns that are in the names of directories of a release of ours; by default those of a table, as texts, which
        is how the settings of a run have Spark read them. They come last.

    Raises
    ------
    SchemaError
        If a file cannot be read, files have columns of different types, or it is not plain what directories are named
        for.
    """
    files = object_files(table, key=key)
    first, *others = (_schema(file, key) for file in files)
    for file, schema in zip(files[1:], others, strict=True):
        kinds = {field.name: field.type for field in schema}
        wrong = [field.name for field in first if field.name in kinds and kinds[field.name] != field.type]
        if wrong:
            raise SchemaError(
                f"{key}.path: '{file.root}': file {file.name} has column {wrong[0]!r} of type {kinds[wrong[0]]}, and "
                f"file {files[0].name} of type {first.field(wrong[0]).type}; write one of them anew."
            )
    types = from_arrow_schema(first, prefer_timestamp_ntz=True)
    if partitions is None:
        columns = _named_columns(files, f"{key}.path: '{files[0].root}'", first.names)
        partitions = [T.StructField(column, T.StringType()) for column in columns]
    added = [one for one in partitions if one.name not in first.names]  # what has no rows has them in its file
    values = object_partitions(files, {one.name: one.dataType for one in added})
    if values is None:
        raise SchemaError(f"{key}.path: '{files[0].root}': a directory's name is not a column and its value.")
    kinds_of = {one.name: to_arrow_type(one.dataType) for one in added}
    names = first.names
    instants = [field.name for field in first if field.type == _INSTANT]

    def read(numbered: int) -> Iterator[pa.Table]:
        file, of_file = files[numbered], values[numbered]
        with pq.ParquetFile(file.reader(), pre_buffer=True, coerce_int96_timestamp_unit="us") as opened:
            for batch in opened.iter_batches(columns=names):
                rows = pa.Table.from_batches([batch]).select(names)
                for column in instants:
                    at = names.index(column)
                    rows = rows.set_column(at, column, rows.column(column).cast(_INSTANT))
                for column, value in of_file.items():
                    rows = rows.append_column(column, repeated(value, kinds_of[column], rows.num_rows, encoded=False))
                yield rows

    schema = T.StructType([*types.fields, *added])
    return Batches.of_parts(spark, range(len(files)), read, schema).frame()


def _named_columns(files: Sequence[ObjectFile], where: str, columns: Sequence[str]) -> list[str]:
    """Columns in the names of directories, outermost first; what is not plain is refused, never misread."""
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


def object_partitions(files: Sequence[ObjectFile], types: Mapping[str, T.DataType]) -> list[dict[str, Value]] | None:
    """Return the values of the columns in the names of each file's directories below those of a release of ours.

    Parameters
    ----------
    files : sequence of ObjectFile
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


def _schema(file: ObjectFile, key: str) -> pa.Schema:
    try:
        # Times of 96 bits as nanoseconds, as they would be read else, do not hold the year 9999.
        with file.reader() as source, pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as opened:
            schema = opened.schema_arrow.remove_metadata()
            columns = [opened.schema.column(i) for i in range(opened.metadata.num_columns)]
    except pa.ArrowException:
        raise SchemaError(
            f"{key}.path: '{file.root}': file {file.name} cannot be read as parquet: it is damaged, cut or of another "
            "format; write it anew."
        ) from None
    # What a writer kept by distinct values is plain to Spark.
    plain = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field for field in schema
    ]
    # They are instants to all who write them, without a time zone by their type.
    instants = {column.path for column in columns if column.physical_type == "INT96"}
    within = sorted(instants - set(schema.names))
    if within:
        raise SchemaError(
            f"{key}.path: '{file.root}': file {file.name} has times of 96 bits within the list or structure "
            f"'{within[0]}', which are read as columns of their own alone; write them as timestamps "
            "(spark.sql.parquet.outputTimestampType: TIMESTAMP_MICROS)."
        )
    return pa.schema([field.with_type(_INSTANT) if field.name in instants else field for field in plain])


__all__ = ["in_object_store", "object_files", "object_frame", "object_partitions"]
