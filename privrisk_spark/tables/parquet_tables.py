"""Parquet tables as frames: read by Spark, or by tasks in object stores and if an engine's reader misreads them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import from_arrow_type

from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.errors import Fault, SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.directories import is_directory
from privrisk_spark.storage.table_files import LineFile, LocalFile, files_of
from privrisk_spark.tables.parquet_types import Footer, Unreadable, read_footer
from privrisk_spark.tables.partitions import named_columns, object_partitions, partition_texts
from privrisk_spark.tables.row_groups import ALIKE, ROWS_PER_TASK, WHOLE_ROWS, Wanted, batches_of, pieces_of, together
from privrisk_spark.tables.source_files import (
    in_object_store,
    is_read_by_tasks,
    local_files,
    merges_schemas,
    object_files,
    path_for_spark,
)

__all__ = ["files_frame", "object_frame", "parquet_frame", "plain_frame"]


def parquet_frame(spark: SparkSession, table: Table, *, key: str, used: Collection[str] | None) -> DataFrame | None:
    """Open a table: by Spark if its reader reads the files as tasks do, which saves reading columns without a use.

    Parameters
    ----------
    table : Table
        Of the format Parquet.
    key, used
        As :func:`object_frame` takes them.

    Returns
    -------
    DataFrame or None
        None if Spark is to find out the types, too.
    """
    if in_object_store(table):
        return object_frame(spark, table, key=key, used=used)
    frame, files = plain_frame(spark, table), local_files(table)
    if frame is not None or not files or not (is_embedded(spark) or is_read_by_tasks(table, files)):
        return frame
    return files_frame(spark, files, key=key, used=used, merged=merges_schemas(table))


def object_frame(
    spark: SparkSession,
    table: Table,
    *,
    key: str,
    partitions: Sequence[T.StructField] | None = None,
    used: Collection[str] | None = None,
) -> DataFrame:
    """Open a table; footers are read, and no rows.

    Parameters
    ----------
    table : Table
        In an object store.
    key : str
        Of the policy, for messages.
    partitions : sequence of StructField, optional
        Columns that are in the names of directories of a release of ours; by default those of a table, as texts, which
        is how the settings of a run have Spark read them. They come last.
    used : collection of str, optional
        Columns that must be readable; all by default. Others that are not have the type void and no values.

    Raises
    ------
    SchemaError
        If a file cannot be read, files have columns of different types, or it is not plain what directories are named
        for.
    """
    return files_frame(spark, object_files(table, key=key), key=key, partitions=partitions, used=used)


def files_frame(
    spark: SparkSession,
    files: Sequence[LineFile],
    *,
    key: str,
    partitions: Sequence[T.StructField] | None = None,
    used: Collection[str] | None = None,
    merged: bool = False,
) -> DataFrame:
    """Open Parquet files as :func:`object_frame` does.

    Parameters
    ----------
    files : sequence of LineFile
        At least one.
    key, partitions, used
        As :func:`object_frame` takes them.
    merged : bool
        Whether the table has the columns of all files, and not only those of the first one.
    """
    footers = [_footer(file, key) for file in files]
    where = f"{key}.path: '{files[0].root}'"
    types: dict[str, pa.DataType] = {}
    origin: dict[str, LineFile] = {}
    unreadable: dict[str, Unreadable] = {}
    for file, footer in zip(files, footers, strict=True):
        for name, kind in footer.types.items():
            if name in types and types[name] != kind and not {name} & {*unreadable, *footer.unreadable}:
                raise SchemaError(
                    f"{where}: file {file.name} has column {name!r} of type {kind}, and file {origin[name].name} of "
                    f"type {types[name]}. Fix: write one of them again."
                )
            if merged or file is files[0]:
                types.setdefault(name, kind)
                origin.setdefault(name, file)
        unreadable |= footer.unreadable
        twice = next((name for name in footer.types if footer.written.names.count(name) > 1), None)
        if twice is not None:
            raise SchemaError(f"{where}: file {file.name} has several columns {twice!r}; rename all but one.")
    unreadable = {name: unreadable[name] for name in types if name in unreadable}
    faults = [
        Fault(f"{key}.path", f"'{files[0].root}': {_describe(name, of)}")
        for name, of in unreadable.items()
        if used is None or name in used
    ]
    if faults:
        raise SchemaError(faults)
    if partitions is None:
        columns = named_columns(files, where, list(types))
        partitions = [T.StructField(column, T.StringType()) for column in columns]
    added = [one for one in partitions if one.name not in types]  # what has no rows has them in its file
    values = object_partitions(files, {one.name: one.dataType for one in added})
    if values is None:
        raise SchemaError(f"{where}: a directory's name is not a column and its value.")
    pieces = []
    for file, footer, of_file in zip(files, footers, values, strict=True):
        missing = [name for name in types if name in unreadable or name not in footer.types]
        source = file.place if isinstance(file, LocalFile) else file
        pieces += pieces_of(source, footer.groups, ROWS_PER_TASK, {**of_file, **dict.fromkeys(missing)})
    kinds = {name: pa.null() if name in unreadable else kind for name, kind in types.items()}
    fields = [T.StructField(name, from_arrow_type(kind, prefer_timestamp_ntz=True)) for name, kind in kinds.items()]
    schema = T.StructType([*fields, *added])
    wanted = [Wanted(name, name, "raw", distinct=True) for name in schema.names]
    return batches_of(spark, schema, together(pieces, ROWS_PER_TASK), wanted, chunk_rows=WHOLE_ROWS).frame()


def _footer(file: LineFile, key: str) -> Footer:
    try:
        with file.reader() as source:
            return read_footer(source)
    except pa.ArrowException:
        raise SchemaError(
            f"{key}.path: '{file.root}': file {file.name} cannot be read as parquet: it is damaged, cut or of another "
            "format. Fix: write it again."
        ) from None


def _describe(name: str, of: Unreadable) -> str:
    return f"column {name!r} is of type {of.kind}, which cannot be read. Fix: {of.fix}, or drop the column"


def plain_frame(spark: SparkSession, table: Table) -> DataFrame | None:
    """Open Parquet files with the schema their footers agree on, which Spark would infer by a job of its own.

    Returns
    -------
    DataFrame or None
        None if it is not sure that Spark would infer the same of the same files, as when the path means another file
        system to it.
    """
    if table.catalog is not None or table.format != "parquet" or table.options or table.path is None:
        return None
    path = Path(table.path).absolute()
    files = list(files_of(path))
    inside = is_directory(path)
    partitions = [partition_texts(file.relative_to(path).as_posix()) for file in files] if inside else [{}]
    columns = {name.casefold() for of_file in partitions for name in of_file or ()}
    if is_embedded(spark) and (columns or path_for_spark(spark, table) != table.path):
        return None  # it adds no such columns to a schema, and takes no escaped path
    if any(of_file is None or list(of_file) != list(partitions[0] or ()) for of_file in partitions):
        return None
    kinds = {arrow: kind for kind, types in ALIKE.items() for arrow in types}
    schemas, written = [], set()
    for file in files:
        try:
            footer = read_footer(str(file))
        except (pa.ArrowException, OSError):
            return None
        fields = footer.written
        plain = not (footer.by_spark or footer.unusual or (footer.retyped and is_embedded(spark)))
        if not plain or any(field.type not in kinds or field.name.casefold() in columns for field in fields):
            return None
        schemas.append(T.StructType([T.StructField(field.name, kinds[field.type]()) for field in fields]))
        written.add(tuple(fields.types))
    if len(written) > 1 and is_embedded(spark):
        return None  # it does not read texts with offsets of 32 and of 64 bits as one column
    if not schemas or any(schema != schemas[0] for schema in schemas):
        return None
    frame = spark.read.schema(schemas[0]).parquet(path_for_spark(spark, table))
    found = {unquote(urlparse(uri).path) for uri in frame.inputFiles() if urlparse(uri).scheme == "file"}
    return frame if found == {str(file) for file in files} else None
