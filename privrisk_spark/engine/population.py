"""People a class has in a dictionary: a population, or the table itself where a missing value may be any."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import consistent_at
from privrisk_spark.kernels.numeric.distinct import distinct_rows


@dataclass(frozen=True, eq=False)
class PeopleOf:
    """Looks classes up in a count of a dictionary.

    Attributes
    ----------
    hierarchies : tuple of Hierarchy
        Of all attributes of the dictionary.
    positions : tuple of int
        Attributes of the classes among them; the others may be anything.
    """

    counts: StoredCounts
    hierarchies: tuple[Hierarchy, ...]
    positions: tuple[int, ...]

    def __call__(self, nodes: IntArray) -> LongArray:
        """Dictionary rows consistent with each class.

        Parameters
        ----------
        nodes : ndarray of int32, shape (m, len(positions))
        """
        result = np.zeros(len(nodes), dtype=np.int64)
        if not len(nodes):
            return result
        shape = (len(nodes), len(self.hierarchies))
        codes, steps = np.empty(shape, dtype=np.int32), np.zeros(shape, dtype=np.int32)
        for i, hierarchy in enumerate(self.hierarchies):
            codes[:, i] = hierarchy.n_leaves  # ⊥
            if i in self.positions:
                node = nodes[:, self.positions.index(i)]
                leaf = hierarchy.first_leaf[node]
                below = node != hierarchy.root
                codes[below, i] = leaf[below]
                steps[below, i] = (hierarchy.depth[leaf] - hierarchy.depth[node])[below]
        depth = [axis.code_depth for axis in self.counts.axes]
        counts = self.counts.load()
        first, member = distinct_rows(list(steps.T))
        for number, row in enumerate(first):
            rows = np.flatnonzero(member == number)
            result[rows] = consistent_at(counts, depth, codes[rows], steps[row].tolist())
        return result
