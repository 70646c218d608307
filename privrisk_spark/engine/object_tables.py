"""Parquet tables in object stores, read by the tasks themselves: no connector of Spark's, no file fetched whole.

Spark is told of the rows as of any others; what a stage takes of a table's columns is read by ranges of the files.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import from_arrow_schema

from privrisk_spark.engine.batches import Batches
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.files import ObjectFile, files_below
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
        If there are none, or they are in directories named ``column=value``, which are not read there.
    """
    location = locate(table.path or "", key=f"{key}.path")
    files = files_below(location)
    where = f"{key}.path: '{location}'"
    if not files:
        raise SchemaError(f"{where} cannot be read as parquet: there is nothing there.")
    if any("=" in part for file in files for part in file.key.split("/")[:-1]):
        raise SchemaError(
            f"{where} has columns in the names of directories, which are not read in an object store; read it by Spark "
            "(table.catalog), or write these columns into the files."
        )
    return files


def object_frame(spark: SparkSession, table: Table, *, key: str) -> DataFrame:
    """Open a table; footers are read, and no rows.

    Parameters
    ----------
    spark : SparkSession
    table : Table
        In an object store.
    key : str
        Of the policy, for messages.

    Raises
    ------
    SchemaError
        If a file cannot be read, or files have columns of different types.
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
    names = first.names
    instants = [field.name for field in first if field.type == _INSTANT]

    def read(file: ObjectFile) -> Iterator[pa.Table]:
        with pq.ParquetFile(file.open(), pre_buffer=True, coerce_int96_timestamp_unit="us") as opened:
            for batch in opened.iter_batches(columns=names):
                rows = pa.Table.from_batches([batch]).select(names)
                for column in instants:
                    at = names.index(column)
                    rows = rows.set_column(at, column, rows.column(column).cast(_INSTANT))
                yield rows

    return Batches.of_parts(spark, files, read, T.StructType(types.fields)).frame()


def _schema(file: ObjectFile, key: str) -> pa.Schema:
    try:
        # Times of 96 bits as nanoseconds, as they would be read else, do not hold the year 9999.
        with file.open() as source, pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as opened:
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


__all__ = ["in_object_store", "object_files", "object_frame"]
