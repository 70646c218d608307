"""Pieces of Parquet files that tasks open themselves, some row groups a piece, whatever gives the list of files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import signature
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from privrisk_spark.engine.batches import CHUNK_ROWS, Batches
from privrisk_spark.errors import SchemaError, listing
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.storage.lakes.snapshot import Snapshot, Value, name_of
from privrisk_spark.storage.table_files import ObjectFile
from privrisk_spark.tables.parquet_types import as_plain, encodes_plainly
from privrisk_spark.tables.partitions import repeated

ROWS_PER_TASK = 2 * CHUNK_ROWS

WHOLE_ROWS = 2**16
"""Rows that are read at once of all columns, of which there may be hundreds."""

ALIKE: dict[type[T.DataType], tuple[pa.DataType, ...]] = {
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
"""Types of Spark, and those of Arrow that both engines' own readers read as these."""


@dataclass(frozen=True)
class Wanted:
    """One column a stage asks for.

    Attributes
    ----------
    alias : str
        Its name there.
    name : str
        Its name in the source.
    kind : {"text", "number", "value", "raw"}
        ``text``: to be read as a text; a source may leave that to who looks at distinct values. ``number``: as a
        double, null if it is none. ``value``: as it is, null for NaN. ``raw``: as it is; for tables that tasks read.
    distinct : bool
        Whether its values hardly repeat, so that a dictionary of them would be of no use.
    """

    alias: str
    name: str
    kind: Literal["text", "number", "value", "raw"]
    distinct: bool = False


def without_nan(values: pa.Array) -> pa.Array:
    """Return values with NaN as a missing value: what is missing is one value, whatever a source writes for it."""
    if not pa.types.is_floating(values.type):
        return values
    return pc.if_else(pc.is_nan(values), pa.scalar(None, values.type), values)


Source = str | ObjectFile
"""A Parquet file: its path, or where it is in an object store."""


def opened(file: Source) -> str | IO[bytes]:
    """Open a file for a reader of Parquet, or leave it to it."""
    return file if isinstance(file, str) else file.reader()


@contextmanager
def _parquet(task: RowGroups, texts: Sequence[str]) -> Iterator[pq.ParquetFile]:
    """Open a file, with texts as dictionaries where Arrow can read them as such."""
    source = opened(task.file)
    metadata = pq.read_metadata(source)
    encoded = encodes_plainly(metadata, range(task.first, task.end))
    # What is mapped needs no reading ahead; of what is fetched by ranges, neighbours are fetched together.
    mapped = isinstance(source, str)
    with pq.ParquetFile(
        source,
        metadata=metadata,
        read_dictionary=[name for name in texts if name in encoded],
        memory_map=mapped,
        pre_buffer=not mapped,
        # Nanoseconds, as they would be read else, do not hold the year 9999 and turn it into another.
        coerce_int96_timestamp_unit="us",
    ) as file:
        yield file


@dataclass(frozen=True)
class RowGroups:
    """Some row groups of a file.

    Attributes
    ----------
    values : mapping of column to Value
        Of the columns that the file does not hold: they are in the names of its directories, or in the log of a lake
        table.
    columns : mapping of column to its name in the file
        Of those that have another name there.
    deleted : tuple of ndarray of int64, or None
        Of each row group the places of rows that are not read, ascending.
    """

    file: Source
    first: int
    end: int
    rows: int
    values: Mapping[str, Value]
    columns: Mapping[str, str] = field(default_factory=dict)
    deleted: tuple[LongArray, ...] | None = field(default=None, compare=False)

    def find_deleted(self, metadata: pq.FileMetaData) -> LongArray | None:
        """Return the places of deleted rows among all rows of these row groups, ascending."""
        if self.deleted is None:
            return None
        rows = [metadata.row_group(group).num_rows for group in range(self.first, self.end)]
        starts = np.cumsum([0, *rows[:-1]])
        return np.concatenate([part + start for part, start in zip(self.deleted, starts, strict=True)])

    def held(self, column: str) -> str:
        """Return the name of a column in the file."""
        return self.columns.get(column, column)


_FEW_ROWS = 2**16
"""Tasks with fewer rows are put together."""


def pieces_of(
    file: Source,
    groups: Sequence[int],
    rows_per_task: int,
    values: Mapping[str, Value],
    columns: Mapping[str, str] | None = None,
    deleted: Sequence[LongArray] | None = None,
) -> list[RowGroups]:
    """Cut a file into pieces of about the same size: a core that waits for the last one is lost.

    Parameters
    ----------
    groups : sequence of int
        Rows of its row groups that are read.
    values, columns, deleted
        As of :class:`RowGroups`.
    """
    rows = np.array(groups, dtype=np.int64)
    total = int(rows.sum())
    n = max(1, -(-total // rows_per_task))
    inner = np.searchsorted(np.cumsum(rows) - rows / 2, total * np.arange(1, n) / n)
    bounds = np.unique([0, *inner, len(rows)]).tolist()
    named = {column: name for column, name in (columns or {}).items() if column != name}
    return [
        RowGroups(file, a, b, int(rows[a:b].sum()), values, named, None if deleted is None else tuple(deleted[a:b]))
        for a, b in itertools.pairwise(bounds)
    ]


def together(tasks: Sequence[RowGroups], rows_per_task: int) -> list[tuple[RowGroups, ...]]:
    """Neighbouring small pieces as one task: a task costs as much as reading tens of thousands of rows."""
    most = min(rows_per_task, max(_FEW_ROWS, sum(task.rows for task in tasks) // 8))
    gathered: list[list[RowGroups]] = []
    held = most + 1
    for task in tasks:
        if held + task.rows > most:
            gathered.append([])
            held = 0
        gathered[-1].append(task)
        held += task.rows
    return [tuple(of_task) for of_task in gathered]


# Spark 4.0 and 4.1 know no time zone there, and take UTC.
_IN_UTC: dict[str, Any] = {"timezone": "UTC"} if "timezone" in signature(to_arrow_type).parameters else {}


def batches_of(
    spark: SparkSession,
    schema: T.StructType,
    tasks: Sequence[tuple[RowGroups, ...]],
    wanted: Sequence[Wanted],
    *,
    chunk_rows: int = CHUNK_ROWS,
) -> Batches:
    """Open the wanted columns of pieces.

    Parameters
    ----------
    schema : StructType
        Of the table; files may hold its columns in types that are read as these.
    tasks : sequence of tuple of RowGroups
        The pieces of each task.
    chunk_rows : int
        About so many rows at once.
    """
    kinds = {field.name: field.dataType for field in schema.fields}
    plain = {want.name for want in wanted if want.distinct}
    encoded = {want.name for want in wanted if isinstance(kinds[want.name], T.StringType)} - plain
    types = {name: to_arrow_type(kinds[name], **_IN_UTC) for name in {want.name for want in wanted}}

    def read(task: tuple[RowGroups, ...]) -> Iterator[pa.Table]:
        for piece in task:
            yield from read_piece(piece)

    def read_piece(piece: RowGroups) -> Iterator[pa.Table]:
        names = list(dict.fromkeys(want.name for want in wanted if want.name not in piece.values))
        # A few rows more than a chunk are no chunk of their own.
        size = max(1, -(-piece.rows // max(1, round(piece.rows / chunk_rows))))
        if not piece.rows:
            return
        if not names:
            for start in range(0, piece.rows, size):
                yield table_of(piece, min(size, piece.rows - start), {})
            return
        there = [piece.held(name) for name in names]
        texts = [piece.held(name) for name in names if name in encoded]
        groups = range(piece.first, piece.end)
        with _named(piece, there), _parquet(piece, texts) as file:
            lost, start = piece.find_deleted(file.metadata), 0
            for batch in file.iter_batches(batch_size=size, row_groups=groups, columns=there):
                if lost is not None:
                    start, batch = start + batch.num_rows, _drop_rows(batch, lost - start)  # noqa: PLW2901
                arrays = {name: batch.column(batch.schema.get_field_index(piece.held(name))) for name in names}
                yield table_of(piece, batch.num_rows, arrays)

    def table_of(piece: RowGroups, rows: int, arrays: Mapping[str, pa.Array]) -> pa.Table:
        columns = []
        for want in wanted:
            name = want.name
            if name not in arrays:
                array = repeated(piece.values[name], types[name], rows, encoded=name in encoded)
            else:
                array = as_plain(arrays[name], types[name])
                if pa.types.is_dictionary(array.type) != (name in encoded):
                    array = array.dictionary_encode() if name in encoded else array.dictionary_decode()
            if want.kind == "number":
                array = array.cast(pa.float64(), safe=False)
            columns.append(without_nan(array) if want.kind in ("text", "value") else array)
        return pa.Table.from_arrays(columns, names=[want.alias for want in wanted])

    fields = [
        T.StructField(want.alias, T.DoubleType() if want.kind == "number" else kinds[want.name]) for want in wanted
    ]
    rows = sum(piece.rows for task in tasks for piece in task)
    return Batches.of_parts(spark, tasks, read, T.StructType(fields), rows=rows)


def _drop_rows(batch: pa.RecordBatch, places: LongArray) -> pa.RecordBatch:
    """Return the rows of a batch that are not at some places; places outside of it do not count."""
    left = np.ones(batch.num_rows, dtype=np.bool_)
    left[places[(places >= 0) & (places < batch.num_rows)]] = False
    return batch.filter(pa.array(left))


@contextmanager
def _named(task: RowGroups, names: Sequence[str]) -> Iterator[None]:
    """Name file and column where data cannot be read; what a file system says of itself is another failure."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        damaged = [name for name in names if not _readable(task, name)]
        columns = f"column {listing([repr(name) for name in damaged])}" if damaged else "its data"
        parent = Path(task.file).parent if isinstance(task.file, str) else task.file.path.parent
        name = name_of(task.file)
        raise SchemaError(
            f"The table at '{parent}': file {name}: {columns} cannot be read: the file is damaged or cut; "
            "write it anew."
        ) from None


def _readable(task: RowGroups, name: str) -> bool:
    try:
        with pq.ParquetFile(opened(task.file)) as file:
            for group in range(task.first, task.end):
                file.read_row_group(group, columns=[name])
    except (pa.ArrowException, OSError):
        return False
    return True


def lake_tasks(snapshot: Snapshot, rows_per_task: int) -> list[tuple[RowGroups, ...]]:
    """Cut the files of a version into tasks.

    Parameters
    ----------
    rows_per_task : int
        About so many rows.
    """
    pieces = [
        piece
        for of in snapshot.files
        for piece in pieces_of(of.file, of.groups, rows_per_task, of.values, of.columns, of.deleted)
    ]
    return together(pieces, rows_per_task)


def lake_frame(spark: SparkSession, snapshot: Snapshot) -> DataFrame:
    """Open all columns of a version; no rows are read yet."""
    schema = T.StructType(from_arrow_schema(snapshot.schema, prefer_timestamp_ntz=True).fields)
    wanted = [Wanted(name, name, "value", distinct=True) for name in schema.names]
    return batches_of(spark, schema, lake_tasks(snapshot, ROWS_PER_TASK), wanted, chunk_rows=WHOLE_ROWS).frame()
