"""Data of a release opened again: as they are staged, and where they were published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import from_arrow_schema

from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.formulas import quoted_names, without_quoted_formulas
from privrisk_spark.engine.number_texts import column
from privrisk_spark.engine.settings import FILES_OF
from privrisk_spark.errors import EngineError, InternalError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Output
from privrisk_spark.storage.directories import files_below, is_directory
from privrisk_spark.storage.lakes.snapshot import Value
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.parts import PartDirectory
from privrisk_spark.storage.table_files import ObjectFile
from privrisk_spark.tables.csv_tables import csv_frame
from privrisk_spark.tables.parquet_tables import files_frame, object_frame, plain_frame
from privrisk_spark.tables.partitions import NAMES, partition_values
from privrisk_spark.tables.source_files import local_files, object_files


@dataclass(frozen=True)
class Partitions:
    """What the names of a release's directories hold of it.

    Attributes
    ----------
    types : dict of column to type, as Spark writes it
        Of the columns that are not in the files, outermost directory first; empty if all are in them.
    columns : tuple of str
        All of the release, in their order.
    """

    types: dict[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Sequence[str], release: T.StructType) -> Partitions:
        """Return those of a release as it is written.

        Parameters
        ----------
        release : StructType
            The first column is no column of it.
        """
        types = {
            name: next(said for said, kind in NAMES.items() if isinstance(release[name].dataType, type(kind)))
            for name in names
        }
        return cls(types, tuple(release.fieldNames()[1:]))

    @classmethod
    def of_manifest(cls, manifest: Mapping[str, Any]) -> Partitions:
        """Return those of a published release."""
        columns = tuple(column["name"] for column in manifest.get("columns", ()))
        return cls(dict(manifest["data"].get("partition_types", {})), columns)

    @property
    def fields(self) -> list[T.StructField]:
        """Their columns."""
        return [T.StructField(name, NAMES[kind]) for name, kind in self.types.items()]

    def values(self, files: Sequence[str]) -> list[dict[str, Value]]:
        """Return what the names of files' directories hold, as readers take it.

        Parameters
        ----------
        files : sequence of str
            Below the release's data, directories divided by slashes.

        Raises
        ------
        InternalError
            If a name is none of a value of its column.
        """
        found = partition_values(files, {one.name: one.dataType for one in self.fields}, named_by_us=True)
        if found is None or any(list(of_file) != list(self.types) for of_file in found):
            raise InternalError("output.partition_by: a directory of the release is not named after values.")
        return found


def no_rows(spark: SparkSession, file: Path, partitions: Partitions) -> DataFrame:
    """Return a frame with the columns of a staged Parquet file, and of its directories, and no rows.

    Nobody but the driver reads the file.
    """
    held = from_arrow_schema(pq.read_schema(file), prefer_timestamp_ntz=True)
    fields = [one for one in held.fields if one.name not in partitions.types] + partitions.fields
    frame = spark.createDataFrame([], T.StructType(fields))
    return frame.select(*map(column, partitions.columns))


def read_published(
    spark: SparkSession, output: Output, data: Location, *, key: str, partitions: Partitions
) -> DataFrame:
    """Open a release's data where they were published.

    Parameters
    ----------
    output : Output
        How they were written.
    data : Location
        Their directory.
    key : str
        Of the policy, for messages.
    partitions : Partitions
        As the manifest tells them.

    Raises
    ------
    SchemaError
        If there are none, or they are not as they were published.
    """
    if not data.remote:
        frame = read_back(spark, output, Path(data.path), partitions)
        FILES_OF[frame] = [file.absolute().as_uri() for file in files_below(Path(data.path))]
        return frame
    files = object_files(Table(path=str(data), format=output.format), key=key)
    if output.format == "csv":
        frame = _read_csv(spark, output, files, ObjectFile.reader, partitions.columns, where=f"{key}: '{data}'")
    else:
        frame = object_frame(spark, Table(path=str(data)), key=key, partitions=partitions.fields)
        frame = frame.select(*map(column, partitions.columns)) if partitions.types else frame
    FILES_OF[frame] = [str(file.root.below(file.key)) for file in files]
    return frame


def parts_at(spark: SparkSession, directory: Location, schema: T.StructType | None = None) -> DataFrame:
    """Open Parquet files that a run left in a vault.

    Parameters
    ----------
    schema : StructType, optional
        Theirs; by default as a file says.
    """
    if directory.remote:
        found = object_frame(spark, Table(path=str(directory)), key="output.vault")
        return found if schema is None else found.select(*schema.fieldNames())
    _refuse_missing(directory.path)
    reader = spark.read if schema is None else spark.read.schema(schema)
    return reader.parquet(directory.path)


def read_csv_parts(
    spark: SparkSession, output: Output, directory: PartDirectory, names: Sequence[str], columns: Sequence[str]
) -> DataFrame:
    """Open CSV parts that tasks wrote, and that nobody else sees yet, as a consumer would.

    The columns are those of the release, in their order.
    """
    return _read_csv(spark, output, names, directory.path, columns, where="output.path: the release that was written")


def _read_csv(
    spark: SparkSession,
    output: Output,
    files: Sequence[Any],
    opened: Callable[[Any], str | IO[bytes]],
    columns: Sequence[str],
    *,
    where: str,
) -> DataFrame:
    """Open CSV files of a release that has these columns; the other parameters are those of :func:`csv_frame`."""
    if not output.quote_formulas:
        return csv_frame(spark, files, opened, columns, where=where)
    return without_quoted_formulas(csv_frame(spark, files, opened, quoted_names(columns), where=where))


def read_back(spark: SparkSession, output: Output, directory: Path, partitions: Partitions) -> DataFrame:
    """Open staged data as a consumer would."""
    _refuse_missing(directory)
    if output.format == "csv":
        # On each engine: Sail's own reader takes an empty text in quotes for a missing value.
        paths = [str(file) for file in files_below(directory) if file.suffix == ".csv"]
        return _read_csv(spark, output, paths, str, partitions.columns, where="output.path: the release")
    if partitions.types and is_embedded(spark):
        # The engine reads the names of directories in ways of its own.
        files = local_files(Table(path=str(directory)))
        rows = files_frame(spark, files, key="output.path", partitions=partitions.fields)
        return rows.select(*map(column, partitions.columns))
    if partitions.types:
        file = next(file for file in files_below(directory) if file.suffix == ".parquet")
        held = from_arrow_schema(pq.read_schema(file), prefer_timestamp_ntz=True)
        fields = [one for one in held.fields if one.name not in partitions.types]
        read = spark.read.schema(T.StructType([*fields, *partitions.fields])).parquet(str(directory))
        return read.select(*map(column, partitions.columns))
    return plain_frame(spark, Table(path=str(directory))) or spark.read.parquet(str(directory))


def _refuse_missing(directory: str | Path) -> None:
    """Refuse a path without files, which the embedded engine takes for a table without columns."""
    if not is_directory(Path(directory)):
        raise EngineError(f"'{directory}' does not exist. A closed result, or a later run, has removed it.")
