"""Counts of cells that were counted elsewhere: what the distributed plans hand to deciding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.counting.cell_index import CellIndex
from privrisk_spark.kernels.counting.cells import CellSpace


@dataclass(frozen=True, eq=False)
class GivenCounts:
    """``ρ`` of the cells some records need, counted elsewhere.

    Implements :class:`privrisk_spark.kernels.counting.consistent.Counts`.

    Attributes
    ----------
    values : tuple of ndarrays of int64
        Distinct values of each word, ascending.
    index : CellIndex or None
        Of the ranks of the words; None for one word.
    counts : ndarray of int64, shape (n_cells,)
        By position in the index.
    dictionary_rows : int
        ``N``.
    """

    space: CellSpace
    values: tuple[LongArray, ...]
    index: CellIndex | None
    counts: LongArray
    dictionary_rows: int

    @classmethod
    def of(cls, space: CellSpace, words: Sequence[LongArray], counts: LongArray, dictionary_rows: int) -> GivenCounts:
        """Index counted cells.

        Parameters
        ----------
        words : sequence of ndarrays of int64, shape (n_cells,)
            Distinct cells, in any order.
        counts : ndarray of int64, shape (n_cells,)
            ``ρ`` of each, 0 where no dictionary row is consistent.

        Raises
        ------
        InternalError
            If a cell is given twice.
        """
        ranked = [np.unique(word, return_inverse=True) for word in words]
        values = tuple(distinct for distinct, _ in ranked)
        index = None
        position = ranked[0][1]
        if len(words) > 1:
            radices = [max(len(distinct), 1) for distinct in values]
            index, position = CellIndex.build([rank.astype(np.int64) for _, rank in ranked], radices, len(counts))
        ordered = np.zeros(len(counts), dtype=np.int64)
        ordered[position] = counts
        if len(counts) and int(position.max()) + 1 < len(counts):
            raise InternalError("counting: a cell was given twice.")
        return cls(space, values, index, ordered, dictionary_rows)

    @property
    def monotone(self) -> bool:
        """Whether ``ρ`` never falls when a value is generalized."""
        return self.space.monotone

    @property
    def alike(self) -> tuple[IntArray, ...]:
        """Codes that share all their cells."""
        return self.space.alike

    def consistent(self, codes: Sequence[IntArray], levels: Sequence[int], depths: Sequence[int]) -> LongArray:  # noqa: ARG002
        """``ρ`` by binary search; see :meth:`privrisk_spark.kernels.counting.consistent.Counts.consistent`.

        Raises
        ------
        InternalError
            If a cell is asked for that was not given.
        """
        words = self.space.words_at(codes, levels)
        n = len(words[0])
        found = np.ones(n, dtype=np.bool_)
        ranks = []
        for value, word in zip(self.values, words, strict=True):
            if n and not len(value):
                raise InternalError("counting: a cell was asked for that had not been counted.")
            rank = np.minimum(np.searchsorted(value, word), max(len(value) - 1, 0))
            found &= value[rank] == word
            ranks.append(rank)
        position = ranks[0]
        if self.index is not None:
            position, there = self.index.find(ranks, n)
            found &= there
        if not found.all():
            raise InternalError("counting: a cell was asked for that had not been counted.")
        result: LongArray = self.counts[position]
        return result
