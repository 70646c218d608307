"""Sizes of the cells of dictionary vectors, by the rank of a vector: one pass over ranks instead of a search a record.

A record is looked up once in each group of vectors of one depth signature, at the deepest cell the two can be compared
in. If a vector is there, the record shares every coarser cell with that vector, whatever node the record is disclosed
at, and what it counts there is the size of that vector's cell.

Vectors are in lexicographic order, so cells that agree in the leading attributes are runs of neighbours; other cells
are counted by direct addressing where there are not many more of them than vectors, and sorted only where there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.counting.cell_index import CellIndex
from privrisk_spark.kernels.numeric.distinct import distinct_rows

Sizes = npt.NDArray[np.int32] | npt.NDArray[np.int64]

_CELLS = 8
"""Cells a vector up to which an array holds one for each; :data:`_FEW_CELLS` are never too many."""

_FEW_CELLS = 2**22

_KEY_LIMIT = 2**62


@dataclass(frozen=True, eq=False)
class RankedVectors:
    """Distinct dictionary vectors of one depth signature.

    Attributes
    ----------
    vectors : ndarray of int32, shape (m, k)
    counts : ndarray of int64, shape (m,)
        Of either sign.
    chains : tuple of k ndarrays of int32
        Ancestors of every dictionary code by depth.
    leaves : tuple of k ndarrays of int32, shape (n_leaves_i + 1,)
        Node of each leaf code.
    cache_bytes : int
        Sizes by rank are kept for later nodes up to this in all.
    """

    vectors: IntArray
    counts: LongArray
    chains: tuple[IntArray, ...]
    leaves: tuple[IntArray, ...]
    cache_bytes: int
    _sizes: dict[tuple[int, ...], Sizes] = field(default_factory=dict)
    _indexes: dict[tuple[int, ...], tuple[CellIndex, LongArray]] = field(default_factory=dict)

    def places(self, codes: Sequence[IntArray], depths: Sequence[int]) -> LongArray:
        """Rank of a vector in the cell of each record at the depths, which are none's deeper; -1 where none is there.

        Parameters
        ----------
        codes : sequence of k ndarrays of int32, shape (n,)
        depths : sequence of k int
        """
        used, compared = [i for i, depth in enumerate(depths) if depth > 0], tuple(depths)
        if compared not in self._indexes:
            radices = [len(self.chains[i]) + 1 for i in used]
            index, member = CellIndex.build(self._cells(compared), radices, len(self.vectors))
            first = np.empty(len(index.ranks[-1]), dtype=np.int64)
            first[member[::-1]] = np.arange(len(member) - 1, -1, -1)
            self._indexes[compared] = (index, first)
        index, first = self._indexes[compared]
        columns = [np.ascontiguousarray(self.chains[i][self.leaves[i], depths[i]]).take(codes[i]) for i in used]
        position, found = index.find(columns, len(codes[0]))
        return np.where(found, first.take(position), -1)

    def sizes(self, depths: Sequence[int]) -> Sizes:
        """Rows in the cell of each vector at the depths, none deeper than its own.

        Parameters
        ----------
        depths : sequence of k int

        Returns
        -------
        ndarray of integers, shape (m,)
        """
        compared = tuple(depths)
        found = self._sizes.get(compared)
        if found is None:
            found = _cell_sizes(self._cells(compared), self.counts)
            if int(np.abs(self.counts).sum()) < 2**31:
                found = found.astype(np.int32)
            # All kept are of one length and type.
            if (len(self._sizes) + 1) * found.nbytes <= self.cache_bytes:
                self._sizes[compared] = found
        return found

    def _cells(self, depths: Sequence[int]) -> list[IntArray]:
        return [
            np.ascontiguousarray(chain[:, depth]).take(self.vectors[:, i])
            for i, (chain, depth) in enumerate(zip(self.chains, depths, strict=True))
            if depth > 0
        ]


def _cell_sizes(columns: Sequence[IntArray], counts: LongArray) -> LongArray:
    """Sum of the counts of all rows that agree with each row."""
    if not columns:
        return np.full(len(counts), counts.sum())
    key, bound = np.zeros(len(counts), dtype=np.int64), 1
    for column in columns:
        values, radix = _numbered(column)
        if bound > _KEY_LIMIT // radix:
            first, key = distinct_rows([key])
            bound = len(first)
        key *= radix
        key += values
        bound *= radix
    if bound <= max(_FEW_CELLS, _CELLS * len(key)) and int(np.abs(counts).sum()) < 2**53:
        # Sums of whole numbers below 2^53 are exact in doubles.
        return np.bincount(key, weights=counts).take(key).astype(np.int64)
    order = None
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key)
        key, counts = key.take(order), counts.take(order)
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    sizes = np.repeat(np.add.reduceat(counts, starts), np.diff(np.append(starts, len(key))))
    if order is None:
        return sizes
    result = np.empty_like(sizes)
    result[order] = sizes
    return result


def _numbered(column: IntArray) -> tuple[LongArray, int]:
    """Rank of each node among those that occur, and how many do."""
    low = int(column.min())
    place = np.zeros(int(column.max()) - low + 1, dtype=np.int64)
    place[column - low] = 1
    place = np.cumsum(place)
    return place.take(column - low) - 1, int(place[-1])
