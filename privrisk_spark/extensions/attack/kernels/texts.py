"""How far two texts are apart: 1 less their Jaro-Winkler similarity (T20; Winkler 1990).

    winkler = jaro + p l (1 - jaro),

with ``l`` the length of the common beginning, four characters at most, and ``p = 0.1``, where ``jaro`` is above 0.7;
else it is ``jaro`` itself. Names that are spelled in two ways are then near to each other, where a hierarchy of names
knows only equal and different ones.

References
----------
W. Winkler, "String comparator metrics and enhanced decision rules in the Fellegi-Sunter model of record linkage", 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.differences import narrowed
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray

__all__ = ["TextDifference"]


@dataclass(frozen=True, eq=False)
class TextDifference:
    """Difference of the texts that nodes stand for; of a generalized cell, that of the nearest one it covers.

    Attributes
    ----------
    labels : sequence of n_leaves str
        Text of each leaf; that of the leaf of missing values is not looked at.
    first_leaf, last_leaf : ndarray of int32, shape (n_nodes,)
        Leaves under each node, the last one excluded. Where two cells have one in common they are at no difference.
    unknown : ndarray of int64, shape (u,)
        Nodes that stand for any text, such as that of missing values.
    nodes : ndarray of int32, shape (v,)
        Of the distinct cells of the file.

    Raises
    ------
    InputError
        If a cell is no node.
    """

    labels: Sequence[str]
    first_leaf: IntArray
    last_leaf: IntArray
    unknown: LongArray
    nodes: IntArray

    def __post_init__(self) -> None:
        """Refuse cells that are no nodes."""
        if len(self.nodes) and (self.nodes.min() < 0 or self.nodes.max() >= len(self.first_leaf)):
            raise InputError("Record linkage: every cell must be a node of its hierarchy.")

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return len(self.nodes)

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`privrisk_spark.extensions.attack.kernels.differences.Difference.of`."""
        from rapidfuzz import process
        from rapidfuzz.distance import JaroWinkler

        found = np.zeros((len(known), len(self.nodes)))
        mine, theirs = ~np.isin(known, self.unknown), ~np.isin(self.nodes, self.unknown)
        if not mine.any() or not theirs.any():
            return found
        rows, row_starts = self._leaves(known[mine])
        columns, column_starts = self._leaves(self.nodes[theirs])
        table = process.cdist(
            [self.labels[leaf] for leaf in rows],
            [self.labels[leaf] for leaf in columns],
            scorer=JaroWinkler.distance,
            dtype=np.float64,
        )
        least = np.minimum.reduceat(np.minimum.reduceat(table, row_starts, axis=0), column_starts, axis=1)
        found[np.ix_(mine, theirs)] = least
        return found

    def among(self, places: LongArray) -> TextDifference:
        """As :meth:`privrisk_spark.extensions.attack.kernels.differences.Difference.among`."""
        return narrowed(self, nodes=self.nodes[places])

    def _leaves(self, nodes: IntArray) -> tuple[LongArray, LongArray]:
        """Leaves under each of the nodes, one after the other, and where those of each begin."""
        first, sizes = self.first_leaf[nodes], self.last_leaf[nodes].astype(np.int64) - self.first_leaf[nodes]
        starts = np.cumsum(sizes) - sizes
        return np.arange(sizes.sum()) + np.repeat(first - starts, sizes), starts
