"""Finding the given cells of a scheme that records lie in.

Only nodes that occur among the cells are told apart, and all others are one more value; what is left of the possible
vectors is mostly few enough for an array with the place of each. Where it is not, places are found by bisection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.counting.cell_index import CellIndex
from privrisk_spark.kernels.numeric.packing import Packing

VECTORS_HELD = 2**22
"""Vectors of one scheme that an array may have places for. Does not change a result."""


@dataclass(frozen=True, eq=False)
class CellPlaces:
    """Make one with :meth:`of`.

    Attributes
    ----------
    n : int
        Number of cells.
    number : tuple of k ndarrays of int64, shape (n_leaves_i + 1,)
        Number of each leaf code's node among those that occur, their number for one that does not.
    radices : tuple of k int
    place : ndarray of int32 or None
        Cell of each vector of numbers, in mixed radix; ``n`` where there is none.
    index : CellIndex or None
        Of the cells' numbers, instead.
    """

    n: int
    number: tuple[LongArray, ...]
    radices: tuple[int, ...]
    place: IntArray | None
    index: tuple[CellIndex, LongArray] | None

    @classmethod
    def of(
        cls, ancestor: Sequence[IntArray], scheme: Sequence[int], nodes: IntArray, *, most: int = VECTORS_HELD
    ) -> CellPlaces:
        """Index cells.

        Parameters
        ----------
        ancestor : sequence of k ndarrays of int32, shape (n_leaves_i + 1, h_i + 1)
            Node of each leaf code at each level.
        scheme : sequence of k int
        nodes : ndarray of int32, shape (n, k)
            The cells, once each.
        most : int
            Vectors an array may have places for.
        """
        columns, number, radices = [], [], []
        for i, (of_code, level) in enumerate(zip(ancestor, scheme, strict=True)):
            there, column = np.unique(nodes[:, i], return_inverse=True)
            at_level = of_code[:, level]
            found = np.minimum(np.searchsorted(there, at_level), max(len(there) - 1, 0))
            known = there[found] == at_level if len(there) else np.zeros(len(at_level), dtype=np.bool_)
            columns.append(column.ravel().astype(np.int32))
            number.append(np.where(known, found, len(there)).astype(np.int64))
            radices.append(len(there) + 1)
        if prod(radices) > most:
            index, member = CellIndex.build(columns, radices, len(nodes))
            row = np.full(len(nodes) + 1, len(nodes), dtype=np.int64)
            row[member] = np.arange(len(nodes))
            return cls(len(nodes), tuple(number), tuple(radices), None, (index, row))
        place = np.full(prod(radices), len(nodes), dtype=np.int32)
        packing = Packing(tuple(radices))
        place[packing.pack(columns, len(nodes))[0]] = np.arange(len(nodes), dtype=np.int32)
        shares = tuple(numbers * stride for numbers, stride in zip(number, packing.stride, strict=True))
        return cls(len(nodes), shares, tuple(radices), place, None)

    def find(self, codes: Sequence[IntArray]) -> LongArray:
        """Cell of each record.

        Parameters
        ----------
        codes : sequence of k ndarrays of int32, shape (n_records,)
            Leaf codes, one array an attribute.

        Returns
        -------
        ndarray of int64, shape (n_records,)
            Row of the cell among those given; their number where the record lies in none of them.
        """
        if self.place is not None:
            word = self.number[0][codes[0]]
            for share, code in zip(self.number[1:], codes[1:], strict=True):
                word += share[code]
            return self.place[word].astype(np.int64)
        assert self.index is not None
        index, row = self.index
        numbers = [number[code].astype(np.int32) for number, code in zip(self.number, codes, strict=True)]
        position, found = index.find(numbers, len(codes[0]))
        result: LongArray = np.where(found, row[position], self.n)
        return result
