"""Parquet tables that tasks read: in object stores, and on the embedded engine those with named directories.

Spark is told of the rows as of any others; what a stage takes of a table's columns is read by ranges of the files. The
embedded engine reads a missing value in the name of a directory as the text that stands for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.object_files import named_columns, object_files, object_partitions
from privrisk_spark.engine.partitions import repeated
from privrisk_spark.engine.source_files import local_line_files
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.files import LineFile

_INSTANT = pa.timestamp("us", "UTC")


def object_frame(
    spark: SparkSession, table: Table, *, key: str, partitions: Sequence[T.StructField] | None = None
) -> DataFrame:
    """Open a table; footers are read, and no rows.

    Parameters
    ----------
    spark : SparkSession
    table : Table
        In an object store, or on this machine.
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
    files: Sequence[LineFile] = local_line_files(table) or object_files(table, key=key)
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
        columns = named_columns(files, f"{key}.path: '{files[0].root}'", first.names)
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
        with (
            file.reader() as source,
            pq.ParquetFile(source, pre_buffer=True, coerce_int96_timestamp_unit="us") as opened,
        ):
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


def _schema(file: LineFile, key: str) -> pa.Schema:
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


__all__ = ["object_frame"]
