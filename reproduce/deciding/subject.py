"""What an experiment is made on: a table of codes over hierarchies, known to the attacker as it is.

As in section 4.6 of Fouad (2012; F12), utility is depth, ``u(a) = Σ depth(a_i)``, sensitivity is additive with modified
harmonic means for inner nodes, and the dictionary is the table; consistency is generalization instead of likeness of
labels, under which risk need not be monotone and none of the searches applies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Axis, SortedCounts
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.kernels.disclosure.sensitivity import harmonic_weights
from privrisk_spark.kernels.lattice.lattice import Lattice
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.search.dictionary_view import DictionaryRows
from privrisk_spark.kernels.search.record import RecordLattice
from reproduce.generated.clustered import BalancedTree, clustered_table, keyed_uniforms

HEIGHTS = (1, 5)
"""Least and greatest height of a generated hierarchy (F12 §4.6)."""

BRANCHING = 3

WEIGHTINGS = 5
"""Draws of a generated table's weights; F12 §4.6 averages each point over so many."""


@dataclass(frozen=True, eq=False)
class Subject:
    """A table, its hierarchies and weights.

    Attributes
    ----------
    attributes : tuple of k str
    axes : tuple of k Axis
        With consistency ``subsumes``.
    weights, utilities : tuple of k ndarrays of float64, shape (n_nodes_i,)
        Of every node.
    vectors : ndarray of int32, shape (m, k)
        Leaf codes of the distinct records.
    counts : ndarray of int64, shape (m,)
        Rows of each.
    more_weights : tuple of tuples of k ndarrays of float64
        Further draws of ``weights`` where they are random: a mean over records is then one over the draws too, as
        records take them in turn.
    """

    name: str
    attributes: tuple[str, ...]
    axes: tuple[Axis, ...]
    weights: tuple[FloatArray, ...]
    utilities: tuple[FloatArray, ...]
    vectors: IntArray
    counts: LongArray
    more_weights: tuple[tuple[FloatArray, ...], ...] = ()

    @classmethod
    def generated(cls, seed: int, rows: int, attributes: int) -> Subject:
        """A table of clusters over hierarchies of random heights, with :data:`WEIGHTINGS` draws of random weights.

        Parameters
        ----------
        attributes : int
            Number of attributes; the first ones do not depend on how many follow.
        """
        low, high = HEIGHTS
        heights = low + ((high - low + 1) * keyed_uniforms(seed, "heights", (attributes,))).astype(np.int64)
        trees = [BalancedTree(height, BRANCHING) for height in heights.tolist()]
        labels = ("weights", *(f"weights {i}" for i in range(2, WEIGHTINGS + 1)))
        drawn = [(0.1 + 0.9 * keyed_uniforms(seed, label, (attributes,))).tolist() for label in labels]
        weights = [
            tuple(
                harmonic_weights(tree.parent, tree.depth, tree.leaves, np.full(tree.leaves, w))
                for tree, w in zip(trees, of_leaves, strict=True)
            )
            for of_leaves in drawn
        ]
        first, times = counted(clustered_table(seed, rows, trees))
        return cls(
            "generated",
            tuple(f"attribute {i + 1}" for i in range(attributes)),
            tuple(Axis(tree.at_depth, tree.ancestor) for tree in trees),
            weights[0],
            tuple(tree.depth.astype(np.float64) for tree in trees),
            first,
            times,
            tuple(weights[1:]),
        )

    @property
    def weightings(self) -> tuple[tuple[FloatArray, ...], ...]:
        """Every draw of the weights."""
        return (self.weights, *self.more_weights)

    @property
    def k(self) -> int:
        """Number of attributes."""
        return len(self.axes)

    @property
    def rows(self) -> int:
        """Rows of the table."""
        return int(self.counts.sum())

    @property
    def heights(self) -> tuple[int, ...]:
        """Height of each hierarchy."""
        return tuple(axis.ancestor.shape[1] - 1 for axis in self.axes)

    @cached_property
    def greatest_utility(self) -> float:
        """Utility of a record that lies deepest in every hierarchy and is released as it is."""
        return float(sum(float(values.max()) for values in self.utilities))

    @cached_property
    def nodes(self) -> IntArray:
        """int32 (m, k): node of every value, as a dictionary has it."""
        return np.column_stack([axis.ancestor[self.vectors[:, i], 0] for i, axis in enumerate(self.axes)])

    @cached_property
    def dictionary(self) -> DictionaryRows:
        """The table as one record sees it."""
        return DictionaryRows(self.axes, self.nodes, self.counts)

    @cached_property
    def held(self) -> SortedCounts:
        """The table, counted."""
        return SortedCounts.group(self.axes, self.nodes, self.counts)

    def first(self, k: int) -> Subject:
        """The same table without the attributes from number ``k`` on.

        Raises
        ------
        InputError
            If there are not so many, or none.
        """
        if not 1 <= k <= self.k:
            raise InputError(f"A table of {self.k} attributes has no first {k}.")
        if k == self.k:
            return self
        vectors, counts = counted(self.vectors[:, :k], self.counts)
        return replace(
            self,
            attributes=self.attributes[:k],
            axes=self.axes[:k],
            weights=self.weights[:k],
            utilities=self.utilities[:k],
            vectors=vectors,
            counts=counts,
            more_weights=tuple(weights[:k] for weights in self.more_weights),
        )

    def within(self, nodes: int) -> Subject:
        """The same table with as many first attributes, at least one, as keep the lattice within so many nodes."""
        k = 1
        while k < self.k and Lattice(self.heights[: k + 1]).n_nodes <= nodes:
            k += 1
        return self.first(k)

    def disclosed(self, levels: Sequence[int]) -> list[IntArray]:
        """Nodes of the distinct records at one level vector, per attribute; cut at each value's depth."""
        return [
            np.ascontiguousarray(axis.ancestor[:, level])[self.vectors[:, i]]
            for i, (axis, level) in enumerate(zip(self.axes, levels, strict=True))
        ]

    def precision(self, nodes: Sequence[IntArray]) -> FloatArray:
        """Mean over the attributes of ``depth / height``: 1 as deep as can be, 0 suppressed; shape (n,)."""
        parts = [
            ((axis.at_depth >= 0).sum(axis=1) - 1)[node] / max(height, 1)
            for axis, node, height in zip(self.axes, nodes, self.heights, strict=True)
        ]
        mean: FloatArray = np.sum(parts, axis=0) / self.k
        return mean

    def thinned(self, seed: int, share: float) -> Subject:
        """The same table with each row kept with a probability; smaller shares are parts of larger ones."""
        row = np.repeat(np.arange(len(self.counts)), self.counts)
        kept = row[keyed_uniforms(seed, "thinned", (len(row),)) < share]
        counts = np.bincount(kept, minlength=len(self.counts))
        there = counts > 0
        return replace(self, vectors=self.vectors[there], counts=counts[there].astype(np.int64))

    def drawn(self, seed: int, records: int) -> LongArray:
        """Rows of distinct records, drawn without replacement by how often they occur.

        Parameters
        ----------
        records : int
            At most so many.

        Returns
        -------
        ndarray of int64
            Ascending.
        """
        # The smallest of independent exponentials with these rates (Efraimidis and Spirakis 2006).
        waits = -np.log(keyed_uniforms(seed, f"records {self.k}", (len(self.counts),))) / self.counts
        return np.sort(np.argsort(waits, kind="stable")[:records])

    def record(self, row: int, model: RiskModel = "I", *, turn: int = 0) -> RecordLattice:
        """One record's decision problem against the table.

        Parameters
        ----------
        row : int
            Of :attr:`vectors`.
        model : {"I", "II", "III"}
        turn : int
            Number of the record among those searched: it takes that draw of the weights, from the first again after
            the last.
        """
        weights = self.weightings[turn % len(self.weightings)]
        codes = self.vectors[row].tolist()
        chains = [
            axis.ancestor[code, : int(axis.code_depth[code]) + 1] for axis, code in zip(self.axes, codes, strict=True)
        ]
        return RecordLattice.of_rows(
            self.dictionary.levels(codes),
            [values[chain] for values, chain in zip(weights, chains, strict=True)],
            [values[chain] for values, chain in zip(self.utilities, chains, strict=True)],
            counts=self.counts,
            model=model,
        )


def counted(codes: IntArray, counts: LongArray | None = None) -> tuple[IntArray, LongArray]:
    """Distinct rows in lexicographic order, and the rows of each.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
    counts : ndarray of int64, shape (n,), optional
        One each by default.
    """
    first, member = distinct_rows([np.ascontiguousarray(column) for column in codes.T])
    times = np.zeros(len(first), dtype=np.int64)
    np.add.at(times, member, np.ones(len(codes), dtype=np.int64) if counts is None else counts)
    order = np.lexsort(codes[first].T[::-1])
    return codes[first][order], times[order]
