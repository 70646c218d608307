"""A frame as Arrow batches in tasks, and what is done to them there.

Every step between two shuffles is one Python function over Arrow tables; steps are composed, so that rows cross
between Spark and Python once, whatever the number of steps. A step may read parts that lie in the run's scratch
directory and write new ones there; only names of parts and small facts then travel through Spark. A part counts if the
task that wrote it succeeded and said so: what retried or speculative tasks leave behind is never read.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.embedded import runs_here, take_turns
from privrisk_spark.engine.failures import carried
from privrisk_spark.json_values import as_json
from privrisk_spark.storage.directories import make
from privrisk_spark.storage.part_files import mapped_arrow, writing_arrow
from privrisk_spark.storage.parts import LocalParts, ObjectParts, PartDirectory

CHUNK_ROWS = 2**19
"""Rows a step sees at once; does not change a result."""

Step = Callable[[Iterable[pa.Table]], Iterator[pa.Table]]

PARTS = T.StructType([T.StructField("name", T.StringType()), T.StructField("facts", T.StringType())])
"""What a step that writes parts returns: one row a part, facts as JSON."""


@dataclass(frozen=True)
class Batches:
    """A lazy frame: a base frame of Spark and steps over its Arrow batches.

    Attributes
    ----------
    steps : tuple of Step
        Composed in order; none means the base frame itself.
    schema : StructType
        Of what the last step yields.
    read : int or None
        Rows before the first step, where footers tell them.
    """

    base: DataFrame
    steps: tuple[Step, ...]
    schema: T.StructType
    read: int | None = None

    @classmethod
    def of_frame(cls, frame: DataFrame) -> Batches:
        """Rows as Spark reads or computes them."""
        names = frame.columns
        if not any(sign in name for name in names for sign in ".`"):
            return cls(frame, (), frame.schema)

        # Spark reads a dot in a column's name as the field of a struct when it passes rows to tasks.
        def renamed(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
            for table in tables:
                yield table.rename_columns(names)

        return cls(frame.toDF(*(f"c{i}" for i in range(len(names)))), (renamed,), frame.schema)

    @classmethod
    def of_parts(
        cls,
        spark: SparkSession,
        parts: Sequence[Any],
        read: Callable[[Any], Iterator[pa.Table]],
        schema: T.StructType,
        *,
        rows: int | None = None,
    ) -> Batches:
        """Rows that tasks read themselves, one part a task.

        Parameters
        ----------
        parts : sequence
            Descriptions of parts; must be small.
        read : callable
            Yields the tables of a part.
        rows : int, optional
            Of all parts, where footers tell them.
        """
        held = tuple(parts)

        def opened(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
            for table in tables:
                for number in table.column(0).to_pylist():
                    yield from read(held[number])

        return cls(spark.range(0, len(held), 1, max(1, len(held))).toDF("part"), (opened,), schema, rows)

    def then(self, step: Step, schema: T.StructType) -> Batches:
        """Add a step, run in the same tasks."""
        return replace(self, steps=(*self.steps, step), schema=schema)

    def within(self, tasks: int) -> Batches:
        """The same rows in at most so many tasks, without a shuffle."""
        return replace(self, base=self.base.coalesce(tasks))

    def frame(self) -> DataFrame:
        """Hand the rows to Spark."""
        if not self.steps:
            return self.base
        steps = self.steps

        def apply_steps(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            tables: Iterator[pa.Table] = (pa.Table.from_batches([batch]) for batch in batches)
            for step in steps:
                tables = step(tables)
            for table in tables:
                yield from decoded(table).to_batches()

        def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            with carried():
                if runs_here():
                    yield from take_turns(apply_steps, batches)
                else:
                    # The worker collected garbage after its last task, so all objects of now are in use.
                    gc.freeze()
                    yield from apply_steps(batches)

        made = self.base.mapInArrow(run, self.schema)
        _BATCHES_OF[made] = self
        return made


_BATCHES_OF: WeakKeyDictionary[DataFrame, Batches] = WeakKeyDictionary()


def find_batches(frame: DataFrame) -> Batches | None:
    """Return the batches of a frame that :meth:`Batches.frame` made, to add steps that run in the same tasks."""
    return _BATCHES_OF.get(frame)


def in_chunks(tables: Iterable[pa.Table], *, rows: int | None = None) -> Iterator[pa.Table]:
    """Gather tables into chunks of about so many rows, :data:`CHUNK_ROWS` by default; empty ones are dropped."""
    most = CHUNK_ROWS if rows is None else rows
    held: list[pa.Table] = []
    there = 0
    for table in tables:
        if table.num_rows == 0:
            continue
        held.append(table)
        there += table.num_rows
        if there >= most:
            yield together(held)
            held, there = [], 0
    if there:
        yield together(held)


def together(tables: Sequence[pa.Table]) -> pa.Table:
    """One table with one array a column."""
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks() if len(tables) > 1 else tables[0]


def decoded(table: pa.Table) -> pa.Table:
    """Dictionary-encoded columns as plain ones, which is all Spark takes."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


def compact(table: pa.Table) -> pa.Table:
    """Dictionary-encoded columns with only the values that occur, in the order in which they do."""
    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            column = table.column(i).combine_chunks()
            indices = column.indices.fill_null(len(column.dictionary)).to_numpy(zero_copy_only=False)
            first = np.full(len(column.dictionary) + 1, len(indices), dtype=np.int64)
            np.minimum.at(first, indices, np.arange(len(indices)))
            order = np.argsort(first[:-1], kind="stable")[: int(np.count_nonzero(first[:-1] < len(indices)))]
            place = np.full(len(column.dictionary) + 1, -1, dtype=np.int32)
            place[order] = np.arange(len(order), dtype=np.int32)
            found = place[indices]
            codes = pa.array(found, mask=found < 0)
            table = table.set_column(
                i, field.name, pa.DictionaryArray.from_arrays(codes, column.dictionary.take(pa.array(order)))
            )
    return table


def grouped(columns: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Distinct rows of a chunk given by columns, by hashing; which comes first does not matter to who asks.

    Parameters
    ----------
    columns : sequence of ndarrays, shape (n,)
        Integers, or floats without NaN, to which 0.0 and -0.0 are equal; at least one.

    Returns
    -------
    first : ndarray of int64, shape (n_distinct,)
        The first row of each distinct one, ascending.
    member : ndarray of int64, shape (n,)
        Which distinct row each row is.
    """
    key = np.zeros(len(columns[0]), dtype=np.int64)
    bound = 1
    for column in columns:
        if not len(column):
            break
        if np.issubdtype(column.dtype, np.floating):
            number, radix = _numbered(np.ascontiguousarray(column + 0.0).view(np.int64))
        else:
            low = int(column.min())
            number, radix = column.astype(np.int64), int(column.max()) - low + 1
            number -= low
        if bound > _KEY_LIMIT // radix:
            key, bound = _numbered(key)
        if bound > _KEY_LIMIT // radix:
            number, radix = _numbered(number)
        key *= radix
        key += number
        bound *= radix
    member, n_distinct = _numbered(key)
    first = np.zeros(n_distinct, dtype=np.int64)
    first[member[::-1]] = np.arange(len(member) - 1, -1, -1)
    return first, member


_KEY_LIMIT = 2**63 - 1


def _numbered(keys: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], int]:
    """Number of each key in the order in which they occur, and how many there are."""
    encoded = pa.array(keys).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), max(len(encoded.dictionary), 1 if len(keys) else 0)


BROADCAST_BYTES = 2**26
"""Memory of a frame, about, up to which every task may hold all of it in a join."""


def broadcast_small(frame: DataFrame, rows: int) -> DataFrame:
    """Mark a side of a join to be broadcast if it is small in memory; otherwise the join shuffles both sides.

    Parameters
    ----------
    frame : DataFrame
        In files, as it is computed for the broadcast.
    rows : int
        It has, so that the decision does not depend on an estimate of Spark's.
    """
    words = sum(5 if isinstance(field.dataType, T.StringType) else 1 for field in frame.schema.fields)
    # A row of the hash table: its words, again those that are joined by, pointers and the bits of missing values.
    return F.broadcast(frame) if 8 * (2 * words + 6) * rows <= BROADCAST_BYTES else frame


def part_name(suffix: str) -> str:
    """A file name no other attempt of a task uses."""
    return f"part-{uuid4().hex}.{suffix}"


def write_ipc(table: pa.Table, directory: PartDirectory) -> str:
    """Write a table as one part that tasks can map; returns its name."""
    name = part_name("arrow")
    with writing_arrow(directory, name, table.schema) as writer:
        writer.write_table(table)
    return name


def read_ipc(directory: PartDirectory, name: str) -> pa.Table:
    """Map a part written by :func:`write_ipc`."""
    with mapped_arrow(directory, name) as reader:
        return reader.read_all()


def materialized(spark: SparkSession, directory: PartDirectory, names: Sequence[str], schema: T.StructType) -> Batches:
    """Parts written by :func:`write_ipc`, one a task."""

    def read(name: str) -> Iterator[pa.Table]:
        yield read_ipc(directory, name)

    return Batches.of_parts(spark, names, read, schema)


def report(name: str, facts: object) -> pa.Table:
    """Return the row a step yields for a part it wrote: facts, such as a tally, or a mapping to tallies and numbers."""
    text = json.dumps(facts, default=as_json)
    return pa.table({"name": pa.array([name], pa.string()), "facts": pa.array([text], pa.string())})


def written(rows: Batches, directory: PartDirectory, *, form: Literal["arrow", "parquet"] = "arrow") -> Batches:
    """Write rows as parts, one a chunk, and return PARTS."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield report((write_ipc if form == "arrow" else _write_parquet)(decoded(table), directory), {})

    return rows.then(step, PARTS)


def write_no_rows(spark: SparkSession, schema: T.StructType, directory: PartDirectory) -> str:
    """Write a Parquet part with columns and no rows, for a reader who looks for the columns; returns its name."""
    return _write_parquet(spark.createDataFrame([], schema).toArrow(), directory)


def _write_parquet(table: pa.Table, directory: PartDirectory) -> str:
    name = part_name("parquet")
    with directory.writing(name) as path:
        pq.write_table(table, path, store_schema=False)
    return name


@dataclass(frozen=True)
class Scratch:
    """The directories of a run: one that every worker reaches, with the Spark actions that fill it, and the driver's.

    Attributes
    ----------
    path : Path
        The driver's; workers use it too where nothing else is named.
    shared : PartDirectory or None
        That every worker reaches, if that is not ``path``.
    """

    spark: SparkSession
    path: Path
    shared: ObjectParts | None = None

    def directory(self, name: str) -> PartDirectory:
        """Make an empty directory for parts."""
        return (LocalParts(str(self.path)) if self.shared is None else self.shared).below(name)

    def below(self, name: str) -> Scratch:
        """Make directories in these, for work that names its own."""
        make(self.path / name)
        return Scratch(self.spark, self.path / name, None if self.shared is None else self.shared.below(name))

    def write_frame(self, frame: DataFrame, name: str) -> DataFrame:
        """Write a frame once and go on from the files: what follows cannot evaluate it again."""
        if self.shared is not None:
            directory = self.shared.below(name)
            parts = self.collect_parts(written(Batches.of_frame(frame), directory))
            return materialized(self.spark, directory, [part["name"] for part in parts], frame.schema).frame()
        place = str(self.path / name)
        frame.write.parquet(place)
        return self.spark.read.schema(frame.schema).parquet(place)

    def write_parquet(self, frame: DataFrame, name: str) -> Path:
        """Write a frame as Parquet to a new directory of the driver."""
        target, directory = self.path / name, self.directory(f"{name}-parts")
        parts = self.collect_parts(written(Batches.of_frame(frame), directory, form="parquet"))
        names = [part["name"] for part in parts]
        if not names:
            names = [write_no_rows(self.spark, frame.schema, directory)]
        directory.take(names, target)
        return target

    def collect_parts(self, written: Batches) -> list[dict[str, Any]]:
        """Run the tasks that write parts, and collect name and facts of each."""
        rows = written.frame().toArrow().to_pylist()
        return [{"name": row["name"], **json.loads(row["facts"])} for row in rows]
