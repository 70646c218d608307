"""``ρ`` of the same records at many lattice nodes, each looked up in the order that costs least."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Counts, SortedCounts

BY_RANK = True
"""Whether records are placed among the vectors of a sorted count once. Does not change a result."""


class CountedRecords:
    """Records of one depth vector, and a count.

    Parameters
    ----------
    columns : sequence of k ndarrays of int32, shape (n,)
        Leaf codes, all of the same depth per attribute.
    depths : sequence of k int
        Depth of the leaf codes.
    """

    def __init__(self, counts: Counts, columns: Sequence[IntArray], depths: Sequence[int]) -> None:
        self.counts, self.columns, self.depths = counts, columns, depths
        self._places: list[LongArray] = []
        if BY_RANK and isinstance(counts, SortedCounts):
            for group, ranked in zip(counts.groups, counts.ranked, strict=True):
                deepest = [
                    min(own, depth) if axis.known else 0
                    for axis, own, depth in zip(counts.axes, group.depths, depths, strict=True)
                ]
                self._places.append(ranked.places(columns, deepest))

    def consistent(self, rows: LongArray | slice, levels: Sequence[int]) -> LongArray:
        """``ρ`` of some of the records disclosed at one level vector.

        Parameters
        ----------
        rows : ndarray of int64 or slice
        levels : sequence of k int
            At most the depths.

        Returns
        -------
        ndarray of int64
        """
        counts = self.counts
        if not self._places or not isinstance(counts, SortedCounts):
            return counts.consistent(self._of(rows), levels, self.depths)
        disclosed = [depth - level for depth, level in zip(self.depths, levels, strict=True)]
        total = np.zeros(len(self.columns[0][rows]), dtype=np.int64)
        for g, places in enumerate(self._places):
            compared = counts.compared_depths(g, disclosed)
            if compared is None:
                continue
            place = places[rows]
            elsewhere = np.flatnonzero(place < 0)
            if not len(elsewhere):
                total += counts.ranked[g].sizes(compared).take(place)
            elif 2 * len(elsewhere) > len(place):
                total += counts.searched(g, compared, self._of(rows))
            else:
                found = counts.ranked[g].sizes(compared).take(place)
                some = [column[elsewhere] for column in self._of(rows)]
                found[elsewhere] = counts.searched(g, compared, some)
                total += found
        return total

    def _of(self, rows: LongArray | slice) -> list[IntArray]:
        return list(self.columns) if isinstance(rows, slice) else [column.take(rows) for column in self.columns]
