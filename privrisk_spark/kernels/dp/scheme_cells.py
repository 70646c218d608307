"""Counting the cells of schemes: how many records each scheme, a level vector, puts into each of its cells.

A cell is packed in mixed radix over the nodes that its scheme's levels have, so that its words follow from its records'
codes by one look-up and one sum an attribute, and words in order are cells in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.numeric.packing import Packing, gathered

DENSE_CELLS = 2**24
"""Possible cells up to which an array has a number for each."""

DENSE_PER_RECORD = 8
"""Possible cells per record up to which passing over all of them takes less than sorting the records."""


@dataclass(frozen=True, eq=False)
class SchemeCells:
    """The cells of one scheme. Make one with :meth:`of`.

    Attributes
    ----------
    nodes : tuple of k ndarrays of int32
        Nodes at the scheme's level, ascending.
    number : tuple of k ndarrays of int64, shape (n_leaves_i + 1,)
        Which of them each leaf code has.
    """

    nodes: tuple[IntArray, ...]
    number: tuple[LongArray, ...]

    @classmethod
    def of(cls, ancestor: Sequence[IntArray], scheme: Sequence[int]) -> SchemeCells:
        """From a scheme.

        Parameters
        ----------
        ancestor : sequence of k ndarrays of int32, shape (n_leaves_i + 1, h_i + 1)
            Node of each leaf code at each level.
        scheme : sequence of k int
        """
        found = [
            np.unique(of_code[:, level], return_inverse=True) for of_code, level in zip(ancestor, scheme, strict=True)
        ]
        return cls(
            tuple(nodes.astype(np.int32) for nodes, _ in found), tuple(n.astype(np.int64).ravel() for _, n in found)
        )

    @cached_property
    def packing(self) -> Packing:
        """Of the numbers of nodes."""
        return Packing(tuple(len(nodes) for nodes in self.nodes))

    @cached_property
    def _shares(self) -> tuple[LongArray, ...]:
        """What each leaf code adds to its word."""
        return tuple(number * stride for number, stride in zip(self.number, self.packing.stride, strict=True))

    def dense(self, n: int) -> bool:
        """Whether ``n`` records are counted in an array of all possible cells. Does not change a result."""
        return prod(self.packing.radices) <= min(DENSE_CELLS, DENSE_PER_RECORD * n)

    def words(self, codes: Sequence[npt.NDArray[np.integer]]) -> list[LongArray]:
        """Words of the cell of each record."""
        words: list[LongArray] = []
        for slot, (share, code) in enumerate(zip(self._shares, codes, strict=True)):
            if self.packing.word[slot] == len(words):
                words.append(share[code])
            else:
                words[-1] += share[code]
        return words

    def counted(
        self, codes: Sequence[npt.NDArray[np.integer]], times: LongArray | None = None
    ) -> tuple[list[LongArray], LongArray]:
        """Count the records of each cell.

        Parameters
        ----------
        codes : sequence of k ndarrays of int, shape (n,)
            Leaf codes, one array an attribute.
        times : ndarray of int64, shape (n,), optional
            Positive multiplicities; 1 if not given.

        Returns
        -------
        words : list of ndarrays of int64, shape (n_cells,)
            The non-empty cells, once each, in lexicographic order.
        counts : ndarray of int64, shape (n_cells,)
        """
        n = len(codes[0])
        words = self.words(codes)
        if not self.dense(n):
            return gathered(words, np.ones(n, dtype=np.int64) if times is None else times, distinct=False)
        tally = np.zeros(prod(self.packing.radices), dtype=np.int64)
        np.add.at(tally, words[0], 1 if times is None else times)
        cells = np.flatnonzero(tally)
        return [cells], tally[cells]

    def unpacked(self, words: Sequence[LongArray]) -> list[IntArray]:
        """Nodes of cells, per attribute."""
        return [nodes[self.packing.digit(words, slot)] for slot, nodes in enumerate(self.nodes)]


def standing(ancestor: Sequence[IntArray], schemes: Sequence[Sequence[int]]) -> tuple[IntArray, ...]:
    """One code for all values that no scheme tells apart.

    Values with one node at the lowest level any scheme has share their nodes at all levels above, so that cells and
    their counts stay as they are when one of them stands for all.

    Parameters
    ----------
    ancestor : sequence of k ndarrays of int32, shape (n_leaves_i + 1, h_i + 1)
    schemes : sequence of sequence of k int
        At least one.

    Returns
    -------
    tuple of k ndarrays of int32, shape (n_leaves_i + 1,)
    """
    result = []
    for of_code, level in zip(ancestor, np.min(schemes, axis=0), strict=True):
        _, first, member = np.unique(of_code[:, level], return_index=True, return_inverse=True)
        result.append(first[member.ravel()].astype(np.int32))
    return tuple(result)
