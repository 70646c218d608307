"""Where rows come from: any source Spark can read, or plain Parquet files that the tasks open themselves.

Spark hands rows to Python one value at a time, which costs more than everything a task then does with them. Parquet
files on a local or mounted path, of types both sides read alike, are therefore read by the tasks as Arrow; Spark says
which files there are.
"""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema

from privrisk_spark.engine.batches import CHUNK_ROWS, Batches
from privrisk_spark.engine.formulas import without_quoted_formulas
from privrisk_spark.engine.object_tables import in_object_store, object_files
from privrisk_spark.engine.partitions import Value, partition_texts, partition_values, repeated
from privrisk_spark.errors import SchemaError, listing
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Output
from privrisk_spark.storage.files import ObjectFile
from privrisk_spark.storage.parts import PartDirectory

ROWS_PER_TASK = 2 * CHUNK_ROWS

_ALIKE: dict[type[T.DataType], tuple[pa.DataType, ...]] = {
    T.StringType: (pa.string(), pa.large_string()),
    T.ByteType: (pa.int8(),),
    T.ShortType: (pa.int16(),),
    T.IntegerType: (pa.int32(),),
    T.LongType: (pa.int64(),),
    T.BooleanType: (pa.bool_(),),
    T.DateType: (pa.date32(),),
    T.FloatType: (pa.float32(),),
    T.DoubleType: (pa.float64(),),
}
_NUMBERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType, T.FloatType, T.DoubleType)
_INEXACT = (T.FloatType, T.DoubleType)


@dataclass(frozen=True)
class Wanted:
    """One column a stage asks for.

    Attributes
    ----------
    alias : str
        Its name there.
    name : str
        Its name in the source.
    kind : {"text", "number", "value"}
        ``text``: to be read as a text; a source may leave that to who looks at distinct values. ``number``: as a
        double, null if it is none. ``value``: as it is.
    distinct : bool
        Whether its values hardly repeat, so that a dictionary of them would be of no use.
    """

    alias: str
    name: str
    kind: Literal["text", "number", "value"]
    distinct: bool = False


def column(name: str) -> Column:
    """Return a column by its exact name, dots and backticks included."""
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def text(frame: DataFrame, name: str) -> Column:
    """Text of a column, the form hierarchies are written in; NaN is missing."""
    return text_of(column(name), frame.schema[name].dataType)


def text_of(value: Column, kind: T.DataType) -> Column:
    """Text of a value of a type; NaN is missing."""
    as_text = value.cast("string")
    return F.when(~F.isnan(value), as_text) if isinstance(kind, _INEXACT) else as_text


def computed(value: Column, name: str) -> Column:
    """Name a column that is no longer as the files of its table have it: tasks must not read it from them."""
    return value.alias(name, metadata={_COMPUTED: True})


_COMPUTED = "privrisk.computed"


def scan(
    table: Table | None,
    frame: DataFrame,
    wanted: Sequence[Wanted],
    *,
    more: Sequence[Column] = (),
    rows_per_task: int | None = None,
) -> Batches:
    """Open the wanted columns.

    Parameters
    ----------
    table : Table or None
        Of the policy; None for a frame that a caller gave, which may be any rows of any files: only Spark can
        read it.
    frame : DataFrame
        The table as Spark opened it.
    wanted : sequence of Wanted
    more : sequence of Column
        Expressions only Spark can compute; they come first.
    rows_per_task : int, optional
        About so many rows a task, where tasks read the files themselves; :data:`ROWS_PER_TASK` by default.
    """
    files = None
    if table is not None and not more:
        files = _plain_files(table, frame, wanted, rows_per_task or ROWS_PER_TASK)
    if files is not None:
        return _of_files(frame.sparkSession, frame.schema, files, wanted)
    chosen = {
        "text": lambda name: text(frame, name),
        "number": lambda name: column(name).try_cast("double"),
        "value": column,
    }
    return Batches.of_frame(frame.select(*more, *[chosen[w.kind](w.name).alias(w.alias) for w in wanted]))


Source = str | ObjectFile
"""A Parquet file: its path, or where it is in an object store."""


def _opened(file: Source) -> str | IO[bytes]:
    return file if isinstance(file, str) else file.open()


def _parquet(file: Source, texts: Sequence[str]) -> pq.ParquetFile:
    # What is mapped needs no reading ahead; of what is fetched by ranges, neighbours are fetched together.
    mapped = isinstance(file, str)
    return pq.ParquetFile(_opened(file), read_dictionary=texts, memory_map=mapped, pre_buffer=not mapped)


@dataclass(frozen=True)
class _RowGroups:
    """Some of a file, and the values of the columns that are in the names of its directories."""

    file: Source
    first: int
    end: int
    rows: int
    values: tuple[tuple[str, Value], ...]


_FEW_ROWS = 2**16
"""Tasks with fewer rows are put together."""


def _plain_files(
    table: Table, frame: DataFrame, wanted: Sequence[Wanted], rows_per_task: int
) -> list[tuple[_RowGroups, ...]] | None:
    """Row groups of Parquet files that tasks read as Spark would, or None if that is not sure."""
    stored = in_object_store(table)
    if table.catalog is not None or table.format != "parquet" or table.options or not wanted:
        return None
    types = {field.name: field.dataType for field in frame.schema.fields}
    names = {want.name for want in wanted}
    if any(_COMPUTED in frame.schema[name].metadata for name in names):
        return None
    for want in wanted:
        kind = types[want.name]
        numeric = isinstance(kind, _NUMBERS)
        if type(kind) not in _ALIKE or (want.kind == "number" and not numeric):
            return None
        if want.kind == "text" and isinstance(kind, _INEXACT):
            return None
    files: list[Source] = []
    if stored:
        files = list(object_files(table, key="table"))
        found: list[dict[str, Value]] | None = [{} for _ in files]
    else:
        uris = sorted(frame.inputFiles())
        if any(urlparse(uri).scheme != "file" for uri in uris):
            return None
        paths = [Path(unquote(urlparse(uri).path)) for uri in uris]
        files = [str(path) for path in paths if path.is_file()]
        found = _partitions(table, paths, types, names) if len(files) == len(paths) else None
    if not found or not names - set(found[0]):
        return None
    tasks: list[_RowGroups] = []
    for file, values in zip(files, found, strict=True):
        try:
            metadata = pq.read_metadata(_opened(file))
            schema = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError):
            return None
        # Spark believes a directory's name rather than the file, and old writers count days by another calendar.
        if {name.casefold() for name in values} & {name.casefold() for name in schema.names}:
            return None
        said = metadata.metadata or {}
        if b"org.apache.spark.legacyDateTime" in said or said.get(b"org.apache.spark.version", b"3") < b"3":
            return None
        for want in wanted:
            if want.name in values:
                continue
            if schema.get_field_index(want.name) < 0:
                return None
            if schema.field(want.name).type not in _ALIKE[type(types[want.name])]:
                return None
        # Tasks of about the same size: a core that waits for the last one is lost.
        rows = np.array([metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)])
        n = max(1, -(-metadata.num_rows // rows_per_task))
        inner = np.searchsorted(np.cumsum(rows) - rows / 2, metadata.num_rows * np.arange(1, n) / n)
        bounds = np.unique([0, *inner, len(rows)]).tolist()
        of_file = tuple(values.items())
        tasks += [_RowGroups(file, a, b, int(rows[a:b].sum()), of_file) for a, b in itertools.pairwise(bounds)]
    return _together(tasks, rows_per_task)


def _partitions(
    table: Table, files: Sequence[Path], types: dict[str, T.DataType], names: Set[str]
) -> list[dict[str, Value]] | None:
    """Values of the columns in the names of each file's directories; None where Spark might read others for ``names``.

    What a pattern or a file stands for, Spark begins to read names at another directory.
    """
    root = Path(table.path or "").absolute()
    if root.is_dir():
        texts = [partition_texts(root, file) for file in files]
        known = [of_file for of_file in texts if of_file is not None]
        values = partition_values(known, types) if len(known) == len(texts) else None
        if values is not None:
            return values
    columns = {unquote(part.partition("=")[0]) for file in files for part in file.parts if "=" in part}
    return None if columns & names else [{} for _ in files]


def _together(tasks: Sequence[_RowGroups], rows_per_task: int) -> list[tuple[_RowGroups, ...]]:
    """Neighbouring small pieces as one task: a task costs as much as reading tens of thousands of rows."""
    most = min(rows_per_task, max(_FEW_ROWS, sum(task.rows for task in tasks) // 8))
    gathered: list[list[_RowGroups]] = []
    held = most + 1
    for task in tasks:
        if held + task.rows > most:
            gathered.append([])
            held = 0
        gathered[-1].append(task)
        held += task.rows
    return [tuple(of_task) for of_task in gathered]


def _of_files(
    spark: SparkSession, schema: T.StructType, tasks: Sequence[tuple[_RowGroups, ...]], wanted: Sequence[Wanted]
) -> Batches:
    kinds = {field.name: field.dataType for field in schema.fields}
    outside = {name for task in tasks for piece in task for name, _ in piece.values}
    names = list(dict.fromkeys(want.name for want in wanted if want.name not in outside))
    plain = {want.name for want in wanted if want.distinct}
    encoded = {want.name for want in wanted if isinstance(kinds[want.name], T.StringType)} - plain
    texts = [name for name in names if name in encoded]

    def read(task: tuple[_RowGroups, ...]) -> Iterator[pa.Table]:
        for piece in task:
            yield from read_piece(piece)

    def read_piece(piece: _RowGroups) -> Iterator[pa.Table]:
        values = dict(piece.values)
        with (
            _named(piece, names),
            pq.ParquetFile(
                _opened(piece.file), read_dictionary=texts, memory_map=True, pre_buffer=not isinstance(piece.file, str)
            ) as file,
        ):
            groups = range(piece.first, piece.end)
            # A few rows more than a chunk are no chunk of their own.
            size = -(-piece.rows // max(1, round(piece.rows / CHUNK_ROWS)))
            for batch in file.iter_batches(batch_size=max(1, size), row_groups=groups, columns=names):
                columns = [
                    repeated(
                        values[want.name],
                        _ALIKE[type(kinds[want.name])][0],
                        batch.num_rows,
                        encoded=want.name in encoded,
                    )
                    if want.name in values
                    else batch.column(batch.schema.get_field_index(want.name))
                    for want in wanted
                ]
                yield pa.Table.from_arrays(
                    [
                        array.cast(pa.float64(), safe=False) if want.kind == "number" else array
                        for want, array in zip(wanted, columns, strict=True)
                    ],
                    names=[want.alias for want in wanted],
                )

    fields = [
        T.StructField(want.alias, T.DoubleType() if want.kind == "number" else kinds[want.name]) for want in wanted
    ]
    return Batches.of_parts(spark, tasks, read, T.StructType(fields))


@contextmanager
def _named(task: _RowGroups, names: Sequence[str]) -> Iterator[None]:
    """Name file and column where data cannot be read; what a file system says of itself is another failure."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        damaged = [name for name in names if not _readable(task, name)]
        columns = f"column {listing([repr(name) for name in damaged])}" if damaged else "its data"
        path = Path(task.file) if isinstance(task.file, str) else task.file.path
        raise SchemaError(
            f"The table at '{path.parent}': file {path.name}: {columns} cannot be read: the file is damaged or cut; "
            "write it anew."
        ) from None


def _readable(task: _RowGroups, name: str) -> bool:
    try:
        with pq.ParquetFile(_opened(task.file)) as file:
            for group in range(task.first, task.end):
                file.read_row_group(group, columns=[name])
    except (pa.ArrowException, OSError):
        return False
    return True


def scan_parts(
    spark: SparkSession, directory: PartDirectory, names: Sequence[str], schema: T.StructType, wanted: Sequence[Wanted]
) -> Batches:
    """Open the wanted columns of Parquet parts, one a task.

    Parameters
    ----------
    spark : SparkSession
    directory : PartDirectory
    names : sequence of str
    schema : StructType
        Of the parts.
    wanted : sequence of Wanted
    """
    held = tuple(names)
    columns = list(dict.fromkeys(want.name for want in wanted))
    kinds = {field.name: field.dataType for field in schema.fields}

    def read(name: str) -> Iterator[pa.Table]:
        with pq.ParquetFile(directory.path(name), memory_map=True) as file:
            for batch in file.iter_batches(batch_size=CHUNK_ROWS, columns=columns):
                arrays = [batch.column(batch.schema.get_field_index(want.name)) for want in wanted]
                yield pa.Table.from_arrays(arrays, names=[want.alias for want in wanted])

    fields = [T.StructField(want.alias, kinds[want.name]) for want in wanted]
    return Batches.of_parts(spark, held, read, T.StructType(fields))


def files_only_spark_knows(
    spark: SparkSession, given: DataFrame | None, tables: Mapping[str, Table]
) -> dict[str, list[Path]]:
    """Return the files on local and mounted paths of what is read, but of tables whose path the policy names.

    Parameters
    ----------
    spark : SparkSession
    given : DataFrame or None
        Read instead of the policy's table.
    tables : mapping of key to Table

    Returns
    -------
    dict of key to list of Path
        As Spark lists them; links followed. A table of a catalog that is not there has none.
    """
    frames = {
        key: spark.table(table.catalog)
        for key, table in tables.items()
        if table.catalog is not None and spark.catalog.tableExists(table.catalog)
    }
    if given is not None:
        frames["the given frame"] = given
    return {key: _local_files(frame) for key, frame in frames.items()}


def _local_files(frame: DataFrame) -> list[Path]:
    found = (urlparse(uri) for uri in frame.inputFiles())
    return [Path(unquote(uri.path)).resolve() for uri in found if uri.scheme == "file"]


def as_texts(values: pa.Array) -> pa.Array:
    """Texts of distinct values, as Spark writes them."""
    if pa.types.is_string(values.type):
        return values
    texts = values.cast(pa.string())
    if pa.types.is_date32(values.type):
        late = pc.greater(values.cast(pa.int32()), _LAST_DAY)
        texts = pc.if_else(late, pc.binary_join_element_wise("+", texts, ""), texts)
    return texts


_LAST_DAY = (dt.date.max - dt.date(1970, 1, 1)).days
"""9999-12-31; Spark writes a sign before longer years."""


def dictionary_of(values: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
    """Distinct values of a column, and the place of each row's value among them (null for a missing one)."""
    array = values.combine_chunks()
    if isinstance(array, pa.ChunkedArray):  # more than one chunk only beyond 2^31 bytes
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], values.type)
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    return encoded.dictionary, encoded.indices


def plain_frame(spark: SparkSession, table: Table) -> DataFrame | None:
    """Open Parquet files with the schema their footers agree on, which Spark would infer by a job of its own.

    Parameters
    ----------
    spark : SparkSession
    table : Table

    Returns
    -------
    DataFrame or None
        None if it is not sure that Spark would infer the same of the same files, as when the path means another file
        system to it.
    """
    if table.catalog is not None or table.format != "parquet" or table.options or table.path is None:
        return None
    path = Path(table.path).absolute()
    files = list(_below(path)) if path.is_dir() else [path]
    partitions = [partition_texts(path, file) for file in files] if path.is_dir() else [{}]
    columns = {name.casefold() for of_file in partitions for name in of_file or ()}
    if any(of_file is None or list(of_file) != list(partitions[0] or ()) for of_file in partitions):
        return None
    kinds = {arrow: kind for kind, types in _ALIKE.items() for arrow in types}
    schemas = []
    for file in files:
        try:
            metadata = pq.read_metadata(file)
        except (pa.ArrowException, OSError):
            return None
        fields = metadata.schema.to_arrow_schema()
        by_spark = any(key.startswith(b"org.apache.spark") for key in metadata.metadata or {})
        if by_spark or any(field.type not in kinds or field.name.casefold() in columns for field in fields):
            return None
        schemas.append(T.StructType([T.StructField(field.name, kinds[field.type]()) for field in fields]))
    if not schemas or any(schema != schemas[0] for schema in schemas):
        return None
    frame = spark.read.schema(schemas[0]).parquet(table.path)
    found = {unquote(urlparse(uri).path) for uri in frame.inputFiles() if urlparse(uri).scheme == "file"}
    return frame if found == {str(file) for file in files} else None


def no_rows(spark: SparkSession, file: Path) -> DataFrame:
    """Return a frame with the columns of a Parquet file and no rows; nobody but the driver reads the file."""
    schema = from_arrow_schema(pq.read_schema(file), prefer_timestamp_ntz=True)
    return spark.createDataFrame([], T.StructType(schema.fields))


def _below(directory: Path) -> Iterator[Path]:
    """Files of a directory and those below it, but those Spark leaves out."""
    for entry in directory.iterdir():
        if entry.name.startswith(("_", ".")):
            continue
        if entry.is_dir():
            yield from _below(entry)
        else:
            yield entry


def read_back(spark: SparkSession, output: Output, directory: Path) -> DataFrame:
    """Open staged data as a consumer would."""
    if output.format == "csv":
        texts = spark.read.options(header=True, escape='"', multiLine=True).csv(str(directory))
        return without_quoted_formulas(texts) if output.quote_formulas else texts
    frame = plain_frame(spark, Table(path=str(directory)))
    return spark.read.parquet(str(directory)) if frame is None else frame
