"""Exact look-up of integer vectors by packed keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray

_KEY_LIMIT = 2**63 - 1


@dataclass(frozen=True, eq=False)
class CellIndex:
    """Exact look-up of integer vectors by packed keys.

    A vector is packed in mixed radix into one 63-bit key. Where the key would overflow, the key so far is replaced by
    its rank among the indexed vectors; no hashing, so no collision.

    Attributes
    ----------
    radices : tuple of k int
        Exclusive upper bound of each column.
    ranks : tuple of ndarrays of int64
        Distinct keys at each replacement, ascending; the distinct final keys last.
    """

    radices: tuple[int, ...]
    ranks: tuple[LongArray, ...]

    @classmethod
    def build(cls, columns: Sequence[IntArray], radices: Sequence[int], n: int) -> tuple[CellIndex, LongArray]:
        """Index the distinct vectors among ``n`` rows.

        Returns
        -------
        index : CellIndex
        member : ndarray of int64, shape (n,)
            Position of each row among the distinct vectors, which are in lexicographic order.
        """
        key = np.zeros(n, dtype=np.int64)
        ranks: list[LongArray] = []
        bound = 1
        for column, radix in zip(columns, radices, strict=True):
            if bound > _KEY_LIMIT // radix:
                distinct, key = np.unique(key, return_inverse=True)
                ranks.append(distinct)
                bound = len(distinct) + 1
            key = key * radix + column
            bound *= radix
        distinct, member = np.unique(key, return_inverse=True)
        return cls(tuple(radices), (*ranks, distinct)), member

    def find(self, columns: Sequence[IntArray], n: int) -> tuple[LongArray, BoolArray]:
        """Position of each of ``n`` vectors among the indexed ones, and whether it is there at all."""
        key = np.zeros(n, dtype=np.int64)
        found = np.ones(n, dtype=np.bool_)
        step = 0
        bound = 1
        for column, radix in zip(columns, self.radices, strict=True):
            if bound > _KEY_LIMIT // radix:
                key, found = _rank(self.ranks[step], key, found)
                bound, step = len(self.ranks[step]) + 1, step + 1
            key = key * radix + column
            bound *= radix
        return _rank(self.ranks[step], key, found)


def _rank(keys: LongArray, wanted: LongArray, found: BoolArray) -> tuple[LongArray, BoolArray]:
    if not len(keys):
        return np.zeros(len(wanted), dtype=np.int64), np.zeros(len(wanted), dtype=np.bool_)
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return position, found & (keys[position] == wanted)
