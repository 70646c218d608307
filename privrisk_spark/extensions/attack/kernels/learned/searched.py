"""The records of a file nearest to a known one by any aggregate: every one is compared, in blocks.

A weighted mean is left to :class:`~privrisk_spark.extensions.attack.kernels.nearest.SearchedFile`, which passes
records over that
cannot be nearest. Ties are those of :func:`~privrisk_spark.extensions.attack.kernels.nearest.tie`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.differences import Difference
from privrisk_spark.extensions.attack.kernels.learned.aggregates import Aggregate, WeightedMean
from privrisk_spark.extensions.attack.kernels.nearest import Linked, SearchedFile, tie
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray

__all__ = ["Compared", "ComparedFile", "Searched", "searched_by"]

_PAIRS = 2**21
"""Distances kept at once; does not change a result."""

_AT_ONCE = 2**14
"""Pairs whose differences are looked up together, so that they stay near the processor; does not change a result."""


class Searched(Protocol):
    """A file in which is searched."""

    def linked(self, known: IntArray) -> Linked:
        """Find what is nearest to known records.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
            Nodes, as each attribute's difference takes them.
        """

    def distances(self, known: IntArray, record: LongArray) -> FloatArray:
        """Distance of each known record from one record of the file.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
        record : ndarray of int64, shape (m,)
            Positions among the distinct records.
        """

    def holds(self, known: IntArray, record: LongArray, linked: Linked) -> BoolArray:
        """Mark the known records whose own record is among the nearest.

        Parameters
        ----------
        known : ndarray of int32, shape (m, k)
        record : ndarray of int64, shape (m,)
            Position of each one's own among the distinct records, -1 if it has none.
        linked : Linked
            Of the same.
        """


def searched_by(aggregate: Aggregate, differences: Sequence[Difference], cells: IntArray, rows: LongArray) -> Searched:
    """Return a file in which is searched by an aggregate.

    Parameters
    ----------
    aggregate : Aggregate
        Of k attributes.
    differences : sequence of k Difference
    cells : ndarray of int32, shape (p, k)
        Which of the distinct cells of each attribute a record has.
    rows : ndarray of int64, shape (p,)
        At least 1.

    Raises
    ------
    InputError
        If there is no record, or not one difference for each attribute of the aggregate.
    """
    if isinstance(aggregate, WeightedMean):
        return SearchedFile(tuple(differences), aggregate.weights, cells, rows)
    return ComparedFile(aggregate, tuple(differences), cells, rows)


@dataclass(frozen=True, eq=False)
class Compared:
    """Known records of a block, ready to be compared with any record of a file.

    Attributes
    ----------
    tables : tuple of k ndarray of float64, shape (u, v)
        Differences of distinct known cells of each attribute from the distinct cells of the file.
    places : tuple of k ndarray of int64, shape (b,)
        Which of the known cells each record has.
    cells : tuple of k ndarray of int32, shape (p,)
        Of the file.
    """

    tables: tuple[FloatArray, ...]
    places: tuple[LongArray, ...]
    cells: tuple[IntArray, ...]

    @classmethod
    def of(cls, differences: Sequence[Difference], cells: Sequence[IntArray], known: IntArray) -> Compared:
        """Look up the differences of known records.

        Parameters
        ----------
        differences : sequence of k Difference
        cells : sequence of k ndarray of int32, shape (p,)
        known : ndarray of int32, shape (b, k)
        """
        tables, places = [], []
        for i, one in enumerate(differences):
            codes, place = np.unique(known[:, i], return_inverse=True)
            tables.append(one.of(codes))
            places.append(place.reshape(-1).astype(np.int64))
        return cls(tuple(tables), tuple(places), tuple(cells))

    def with_all(self, records: slice) -> FloatArray:
        """Differences of all known records from a slice of the file; ndarray of float64, shape (k, b, r)."""
        found = [
            table[place][:, cell[records]]
            for table, place, cell in zip(self.tables, self.places, self.cells, strict=True)
        ]
        return np.stack(found)

    def with_each(self, known: LongArray, record: LongArray) -> FloatArray:
        """Differences of pairs; ndarray of float64, shape (k, r).

        Parameters
        ----------
        known, record : ndarray of int64, shape (r,)
            Positions in the block and in the file; either may be one for all.
        """
        found = [
            table[place[known], cell[record]]
            for table, place, cell in zip(self.tables, self.places, self.cells, strict=True)
        ]
        return np.stack(found)


def in_blocks(
    differences: Sequence[Difference], cells: Sequence[IntArray], known: IntArray
) -> Iterator[tuple[slice, Compared]]:
    """Compare known records with a file, so many at once that their distances fit into memory.

    Parameters
    ----------
    differences : sequence of k Difference
    cells : sequence of k ndarray of int32, shape (p,)
    known : ndarray of int32, shape (m, k)

    Yields
    ------
    tuple of (slice, Compared)
        Which of the known records, and what compares them.
    """
    widest = max(one.cells for one in differences)
    block = max(1, min(256, _PAIRS // max(len(cells[0]), widest)))
    for begin in range(0, len(known), block):
        part = slice(begin, min(begin + block, len(known)))
        yield part, Compared.of(differences, cells, known[part])


def all_distances(aggregate: Aggregate, compared: Compared) -> FloatArray:
    """Distances of a block of known records from every record of a file; ndarray of float64, shape (b, p)."""
    b, p = len(compared.places[0]), len(compared.cells[0])
    found = np.empty((b, p))
    step = max(1, _AT_ONCE // max(b, 1))
    for begin in range(0, p, step):
        part = slice(begin, begin + step)
        found[:, part] = aggregate.distance(np.moveaxis(compared.with_all(part), 0, -1))
    return found


@dataclass(frozen=True, eq=False)
class ComparedFile:
    """The distinct records of a file, every one of which is compared.

    Attributes
    ----------
    differences : tuple of k Difference
    cells : ndarray of int32, shape (p, k)
        Which of the distinct cells of each attribute a record has.
    rows : ndarray of int64, shape (p,)
        At least 1.

    Raises
    ------
    InputError
        If there is no record, or not one difference for each attribute of the aggregate.
    """

    aggregate: Aggregate
    differences: tuple[Difference, ...]
    cells: IntArray
    rows: LongArray

    def __post_init__(self) -> None:
        """Refuse a file with nothing in it, and an aggregate of other attributes."""
        if not len(self.cells) or (self.rows < 1).any():
            raise InputError("Record linkage: the file has no records.")
        if len({self.aggregate.n, len(self.differences), self.cells.shape[1]}) > 1:
            raise InputError("Record linkage: there must be one difference for each attribute of the aggregate.")

    @property
    def columns(self) -> tuple[IntArray, ...]:
        """Cells, attribute by attribute."""
        return tuple(np.ascontiguousarray(self.cells[:, i]) for i in range(self.cells.shape[1]))

    def linked(self, known: IntArray) -> Linked:
        """As :meth:`Searched.linked`."""
        distance = np.zeros(len(known))
        rows, first = (np.zeros(len(known), dtype=np.int64) for _ in range(2))
        for part, compared in in_blocks(self.differences, self.columns, known):
            every = all_distances(self.aggregate, compared)
            distance[part] = every.min(axis=1)
            near = every <= tie(distance[part])[:, None]
            rows[part], first[part] = near @ self.rows, near.argmax(axis=1)
        return Linked(distance, rows, first)

    def distances(self, known: IntArray, record: LongArray) -> FloatArray:
        """As :meth:`Searched.distances`."""
        found = np.zeros(len(known))
        for part, compared in in_blocks(self.differences, self.columns, known):
            pairs = compared.with_each(np.arange(part.stop - part.start), record[part])
            found[part] = self.aggregate.distance(np.moveaxis(pairs, 0, -1))
        return found

    def holds(self, known: IntArray, record: LongArray, linked: Linked) -> BoolArray:
        """As :meth:`Searched.holds`."""
        there = record >= 0
        near: BoolArray = np.zeros(len(known), dtype=np.bool_)
        near[there] = self.distances(known[there], record[there]) <= tie(linked.distance[there])
        return near
