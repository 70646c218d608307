"""Parquet tables that tasks read themselves: in object stores, and on this machine what the embedded engine misreads.

Spark is told of the rows as of any others; what a stage takes of a table's columns is read by ranges of the files.
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
from privrisk_spark.engine.row_groups import counts_days_otherwise
from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.files import LineFile

_INSTANT = pa.timestamp("us", "UTC")
_PLAIN = {
    pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(), pa.large_binary(): pa.binary(),
}  # fmt: skip
"""Types that Spark reads as another one."""


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
    return files_frame(spark, object_files(table, key=key), key=key, partitions=partitions)


def files_frame(
    spark: SparkSession, files: Sequence[LineFile], *, key: str, partitions: Sequence[T.StructField] | None = None
) -> DataFrame:
    """Open Parquet files as :func:`object_frame` does.

    Parameters
    ----------
    spark : SparkSession
    files : sequence of LineFile
        At least one.
    key, partitions
        As :func:`object_frame` takes them.
    """
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

    def read(numbered: int) -> Iterator[pa.Table]:
        file, of_file = files[numbered], values[numbered]
        with (
            file.reader() as source,
            pq.ParquetFile(source, pre_buffer=True, coerce_int96_timestamp_unit="us") as opened,
        ):
            for batch in opened.iter_batches(columns=names):
                there = dict(zip(batch.schema.names, batch.columns, strict=True))
                missing = pa.nulls(batch.num_rows)
                arrays = [there.get(field.name, missing).cast(field.type) for field in first]
                rows = pa.Table.from_arrays(arrays, names=names)
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
            said = opened.metadata.metadata or {}
    except pa.ArrowException:
        raise SchemaError(
            f"{key}.path: '{file.root}': file {file.name} cannot be read as parquet: it is damaged, cut or of another "
            "format; write it anew."
        ) from None
    # What a writer kept by distinct values is plain to Spark.
    plain = [
        field.with_type(field.type.value_type)
        if pa.types.is_dictionary(field.type)
        else field.with_type(_PLAIN.get(field.type, field.type))
        for field in schema
    ]
    days = any(pa.types.is_date(field.type) or pa.types.is_timestamp(field.type) for field in schema)
    if days and counts_days_otherwise(said):
        raise SchemaError(
            f"{key}.path: '{file.root}': file {file.name} counts days before 1582 by another calendar, as Spark 2 did; "
            "write it anew by Spark 3 or later, or give --engine spark."
        )
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


__all__ = ["files_frame", "object_frame"]
