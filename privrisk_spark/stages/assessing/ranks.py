"""Global ranks of a numeric column, and interval disclosure by them, without collecting rows.

Each task counts distinct values, and one task a range merges them into a sorted part. The driver learns of each part
its least value and its rows, and adds these up to the position at which each part starts. A rank is then looked up in
the parts, which every worker maps: no window over the whole table, no shuffle of records. The mathematics is in
:mod:`privrisk_spark.kernels.measures.interval_disclosure`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, read_ipc, report, write_ipc
from privrisk_spark.engine.number_texts import as_double, column
from privrisk_spark.engine.schemas import N_ROWS
from privrisk_spark.errors import SchemaError
from privrisk_spark.kernels.measures.interval_disclosure import (
    Deviation,
    IntervalTally,
    RankBlock,
    Ranks,
    rid,
)
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.storage.parts import PartDirectory

VALUE = "value"
FIRST_POSITION = "first_position"
_ORIGINAL, _MASKED = "original", "masked"

RANKS = T.StructType(
    [
        T.StructField(VALUE, T.DoubleType(), False),
        T.StructField(N_ROWS, T.LongType(), False),
        T.StructField(FIRST_POSITION, T.LongType(), False),
    ]
)
"""Distinct values of a column, the rows of each, and its first position among all sorted rows, from 0."""


@dataclass(frozen=True)
class StoredRanks:
    """Sorted distinct values of a column in parts.

    Attributes
    ----------
    directory : PartDirectory
        Must be readable by every worker.
    parts : tuple of (str, int)
        Name of each part and the rows before it, in ascending order of the values.
    rows : int
        Rows that have a value.
    distinct : int
        Distinct values.
    """

    directory: PartDirectory
    parts: tuple[tuple[str, int], ...]
    rows: int
    distinct: int

    def frame(self, spark: SparkSession) -> DataFrame:
        """Return RANKS, one part a task."""
        directory = self.directory

        def read(part: tuple[str, int]) -> Iterator[pa.Table]:
            block = _mapped(directory, *part)
            yield pa.table({VALUE: block.values, N_ROWS: block.rows, FIRST_POSITION: block.first + block.offset})

        return Batches.of_parts(spark, self.parts, read, RANKS).frame()

    def quantiles(self, shares: Sequence[float]) -> tuple[float, ...]:
        """Values at shares of the ranks, in [0, 1], those at ``⌊q (n - 1)⌋``; none where no row has a value."""
        if not self.rows:
            return ()
        positions = [math.floor(Fraction(str(share)) * (self.rows - 1)) for share in shares]
        return tuple(self.load().at(np.array(positions, dtype=np.int64)).tolist())

    def load(self) -> Ranks:
        """Map the parts; only their ends and what is looked up are read."""
        return Ranks([_mapped(self.directory, name, offset) for name, offset in self.parts])


VALUES_PER_RANGE = 4_000_000
"""Distinct values of the parts in a range, about; a task of :func:`collect_ranks_of` holds them."""

_SAMPLE = 256  # values of a part from which the bounds of ranges are chosen


def collect_ranks_of(scratch: Scratch, rows: Batches, name: str, *, store: str) -> StoredRanks:
    """Rank the doubles that tasks hold; NaN has no rank.

    Parameters
    ----------
    name : str
        A column of doubles, NaN for a missing value.
    store : str
        Name of new directories in the scratch directory.
    """
    directory, unmerged = scratch.directory(store), scratch.directory(f"{store}-parts")

    def counted(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            values = _values(table, name)
            found, times = np.unique(values[~np.isnan(values)] + 0.0, return_counts=True)
            part = pa.table({VALUE: found, N_ROWS: times.astype(np.int64)})
            some = found[np.linspace(0, len(found) - 1, min(_SAMPLE, len(found))).astype(np.int64)]
            yield report(write_ipc(part, unmerged), {"distinct": len(found), "some": [v.hex() for v in some.tolist()]})

    found = scratch.collect_parts(rows.then(counted, PARTS))
    some = np.sort([float.fromhex(value) for part in found for value in part["some"]])
    ranges = max(1, -(-sum(part["distinct"] for part in found) // VALUES_PER_RANGE))
    cuts = np.unique(some[len(some) * np.arange(1, ranges) // ranges]).tolist() if len(some) else []
    bounds = [-np.inf, *cuts, np.inf]
    names = tuple(part["name"] for part in found)

    def merged(number: int) -> Iterator[pa.Table]:
        pieces = []
        for part in names:
            table = read_ipc(unmerged, part)
            values = table.column(VALUE).to_numpy()
            ends = np.searchsorted(values, bounds[number : number + 2], side="left")
            if number == len(bounds) - 2:
                ends[1] = len(values)
            pieces.append(table.slice(int(ends[0]), int(ends[1] - ends[0])))
        here = pa.concat_tables(pieces)
        if here.num_rows:
            values, place = np.unique(here.column(VALUE).to_numpy(), return_inverse=True)
            times = np.zeros(len(values), dtype=np.int64)
            np.add.at(times, place, here.column(N_ROWS).to_numpy())
            yield _written(RankBlock.of(values, times), directory)

    tasks = range(len(bounds) - 1) if names else ()
    return _stored(directory, scratch.collect_parts(Batches.of_parts(scratch.spark, tasks, merged, PARTS)))


def _written(block: RankBlock, directory: PartDirectory) -> pa.Table:
    """Write a block as a part, and report it."""
    table = pa.table({VALUE: block.values, N_ROWS: block.rows, FIRST_POSITION: block.first})
    least = float(block.values[0]).hex()
    facts = {"least": least, "rows": int(block.rows.sum()), "distinct": len(block.values)}
    return report(write_ipc(table, directory), facts)


def _stored(directory: PartDirectory, found: list[dict[str, Any]]) -> StoredRanks:
    """Put blocks one after the other."""
    found.sort(key=lambda part: float.fromhex(part["least"]))
    before = np.concatenate([[0], np.cumsum([part["rows"] for part in found], dtype=np.int64)]).tolist()
    parts = tuple((part["name"], offset) for part, offset in zip(found, before, strict=False))
    return StoredRanks(directory, parts, before[-1], sum(part["distinct"] for part in found))


def collect_rank_disclosure(
    scratch: Scratch, rows: Batches, original: str, masked: str, ranks: StoredRanks, *, p: float
) -> IntervalTally:
    """Rank-based interval disclosure of doubles that tasks hold, counted.

    Parameters
    ----------
    original, masked : str
        Columns of doubles, NaN for a missing value.
    ranks : StoredRanks
        Of the masked column of the whole file, see :func:`collect_ranks_of`.
    p : float
        Percentage in [0, 100].
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            before, after = _values(table, original), _values(table, masked)
            told = rid(before, after, p, ranks=ranks.load())
            yield report("", IntervalTally.of(before, after, told))

    return folded_dicts(IntervalTally.empty(), scratch.collect_parts(rows.then(step, PARTS)))


def collect_deviation_of(scratch: Scratch, rows: Batches, name: str) -> Deviation:
    """Exact moments of a column of doubles that tasks hold; null and NaN are left out."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield report("", Deviation.of(_values(table, name)))

    return folded_dicts(Deviation.empty(), scratch.collect_parts(rows.then(step, PARTS)))


def _mapped(directory: PartDirectory, name: str, offset: int) -> RankBlock:
    """A part as arrays over its mapped file; positions in it are those within the part."""
    table = read_ipc(directory, name)
    values, rows, first = (table.column(of).chunk(0).to_numpy() for of in (VALUE, N_ROWS, FIRST_POSITION))
    return RankBlock(values, rows, first, offset)


def _values(table: pa.Table, name: str) -> npt.NDArray[np.float64]:
    """Column of doubles with NaN for null."""
    values: npt.NDArray[np.float64] = table.column(name).to_numpy(zero_copy_only=False).astype(np.float64)
    return values


def number(frame: DataFrame, name: str) -> Column:
    """Column as doubles.

    Raises
    ------
    SchemaError
        If there is no such column, or it is not numeric.
    """
    kind = frame.schema[name].dataType if name in frame.columns else None
    if not isinstance(kind, T.NumericType):
        given = "there is none" if kind is None else f"it is {kind.simpleString()}"
        raise SchemaError(f"Column {name} must be numeric to be ranked, and {given}; cast it, or choose another one.")
    return as_double(column(name), kind)
