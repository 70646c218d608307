"""How far a release is from the distribution of the original quasi-identifiers: divergence and entropy.

Kullback-Leibler divergence. ``p(x)`` is the share of the ``n`` original rows that are the leaf vector ``x``. A reader
of the release spreads each released row evenly over its cell, ``q(x) = Σ_cells rows(cell)/n' · [x in cell]/|cell|``
with ``n'`` released rows. Under full-domain recoding cells are disjoint and the sum has one term. Under local recoding
they overlap, and it has as many as there are cells that hold ``x``. The divergence is ``Σ_x p(x) ln(p(x)/q(x))`` (Kifer
and Gehrke, SIGMOD 2006).

Non-uniform entropy. A released node ``v`` leaves of the value ``a`` the uncertainty ``-log2 Pr(a | v)``, where
``Pr(a | v)`` is the share of ``a`` among the rows of the original table under ``v`` (Gionis and Tassa, "k-Anonymization
with Minimal Loss of Information", IEEE TKDE 21(2), 2009). It needs only each attribute's own counts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.measures.loss import cell_volumes, refuse_nodes
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.exact_sums import UNIT_BITS, exact_total, weighted_total
from privrisk_spark.kernels.numeric.fold import refuse_other

_KEY_LIMIT = 2**63 - 1


@dataclass(frozen=True)
class DivergenceTally:
    """Kullback-Leibler divergence of the original leaf vectors from the release.

    Attributes
    ----------
    records : int
        Original rows.
    outside : int
        Original rows whose leaf vector lies in no released cell.
    total : int
        ``Σ rows ln(rows / spread)`` over the distinct leaf vectors inside, exact in units of 2^-1074.
    """

    records: int = 0
    outside: int = 0
    total: int = 0

    @classmethod
    def of(cls, rows: LongArray, spread: FloatArray) -> DivergenceTally:
        """Tally distinct leaf vectors; each must come once, in one task.

        Parameters
        ----------
        rows : ndarray of int64, shape (n,)
            Original rows of each distinct leaf vector, at least 1.
        spread : ndarray of float64, shape (n,)
            Released rows that fall to the vector, ``n' q(x) = Σ_cells rows(cell) [x in cell]/|cell|``, at least 0; see
            :func:`spread_over`.

        Raises
        ------
        InputError
            If shapes differ or a value is out of range.
        """
        if rows.shape != spread.shape or (len(rows) and (int(rows.min()) < 1 or not np.all(np.isfinite(spread)))):
            raise InputError("Every leaf vector must have at least one row and a finite spread.")
        if np.any(spread < 0):
            raise InputError("Released rows that fall to a leaf vector must be at least 0, and some are negative.")
        inside = spread > 0
        held = np.ascontiguousarray(rows[inside])
        ratio = np.log(held / np.ascontiguousarray(spread[inside]))
        return cls(exact_total(rows), exact_total(rows[~inside]), weighted_total(ratio, held))

    @classmethod
    def empty(cls) -> DivergenceTally:
        """Tally of no leaf vector."""
        return cls()

    def plus(self, other: DivergenceTally) -> DivergenceTally:
        """Tally of both together."""
        return DivergenceTally(self.records + other.records, self.outside + other.outside, self.total + other.total)

    def nats(self, released: int) -> float:
        """Divergence in nats.

        Parameters
        ----------
        released : int
            Rows of the release, ``n'``; at least 1 if there are records.

        Returns
        -------
        float
            At least 0; inf if an original vector lies in no released cell; 0 without records. Rounding below 0 is
            cut off: where ``q`` adds up to at most 1, the divergence is not negative.

        Notes
        -----
        With ``p = rows/n`` and ``q = spread/n'``: ``Σ p ln(p/q) = (1/n) Σ rows ln(rows/spread) + ln(n'/n)``. Neither
        total is needed before the tallies are added, and an identical release gives exactly 0.
        """
        if not self.records:
            return 0.0
        if released < 1:
            raise InputError(f"Released rows must be at least 1. Got {released}.")
        if self.outside:
            return math.inf
        mean = float(Fraction(self.total, self.records << UNIT_BITS))
        return max(0.0, mean + math.log(released / self.records))

    def bits(self, released: int) -> float:
        """Divergence in bits; see :meth:`nats`."""
        return self.nats(released) / math.log(2)


def spread_over(
    vectors: IntArray,
    nodes: IntArray,
    rows: LongArray,
    *,
    at_depth: Sequence[IntArray],
    leaves: Sequence[LongArray],
) -> FloatArray:
    """Released rows that fall to each leaf vector if every cell spreads its rows evenly; cells may overlap.

    Parameters
    ----------
    vectors : ndarray of int32, shape (n, k)
        Leaf codes. A value that is suppressed from the start is the root, and lies in the root's cell only.
    nodes : ndarray of int32, shape (m, k)
        All distinct released cells, in any order.
    rows : ndarray of int64, shape (m,)
    at_depth : sequence of k ndarrays of int32, shape (n_nodes_i, h_i + 1)
        Ancestor-or-self of each node at each depth; -1 below the node.
    leaves : sequence of k ndarrays of int64, shape (n_nodes_i,)
        Leaves below each node.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``Σ_cells rows(cell) [x in cell]/|cell|``. Terms are added in the order of the cells' depth vectors, so the
        result depends neither on the order of the cells nor on how vectors are dealt to tasks.

    Raises
    ------
    InputError
        If the shapes do not fit, a number is not in its hierarchy, or a cell comes twice.

    Notes
    -----
    A leaf vector lies in at most one cell of a given depth in every attribute: its ancestors there. So one look-up per
    different depth vector of the release, at most one per node of the lattice, finds all cells that hold it.
    """
    k = len(at_depth)
    if vectors.ndim != 2 or vectors.shape[1] != k or nodes.shape != (len(rows), k):
        raise InputError(
            "There must be one column per attribute and one number of rows per cell. "
            f"Got {k} attributes, vectors of shape {vectors.shape}, cells of shape {nodes.shape}."
        )
    for i, of_node in enumerate(at_depth):
        refuse_nodes(vectors[:, i], len(of_node), i)
        refuse_nodes(nodes[:, i], len(of_node), i)
    density = rows / cell_volumes(nodes, leaves)
    depth = np.empty(nodes.shape, dtype=np.int32)
    for i, of_node in enumerate(at_depth):
        depth[:, i] = (of_node >= 0).sum(axis=1)[nodes[:, i]] - 1
    result = np.zeros(len(vectors))
    if not len(nodes) or not len(vectors):
        return result
    first, group = distinct_rows(list(depth.T))
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(len(first) + 1))
    for number, one in enumerate(depth[first]):
        cells = order[bounds[number] : bounds[number + 1]]
        lifted = np.stack([of_node[vectors[:, i], one[i]] for i, of_node in enumerate(at_depth)], axis=1)
        wanted, held = _keys(lifted, nodes[cells], [len(of_node) for of_node in at_depth])
        rank = np.argsort(held)
        held = held[rank]
        if np.any(held[1:] == held[:-1]):
            raise InputError("Every released cell must come once, and some come again.")
        place = np.minimum(np.searchsorted(held, wanted), len(held) - 1)
        result += np.where(held[place] == wanted, density[cells][rank][place], 0.0)
    return result


def _keys(first: IntArray, second: IntArray, radices: Sequence[int]) -> tuple[LongArray, LongArray]:
    """One number per row of two matrices, equal where rows are; entries in ``-1 … radix - 1``."""
    both = np.concatenate([first, second]).astype(np.int64) + 1
    key = np.zeros(len(both), dtype=np.int64)
    bound = 1
    for i, radix in enumerate(radices):
        if bound > _KEY_LIMIT // (radix + 1):
            distinct, key = np.unique(key, return_inverse=True)
            bound = len(distinct)
        key = key * (radix + 1) + both[:, i]
        bound *= radix + 1
    return key[: len(first)], key[len(first) :]


# --------------------------------------------------------------------------------------------------- entropy


@dataclass(frozen=True)
class LeafCounts:
    """Rows of the original table by leaf, for each attribute: what :func:`entropy_loss` needs of it.

    Attributes
    ----------
    rows : tuple of tuple of (int, int)
        Leaves that occur, ascending, with their rows. A value that is suppressed from the start is no leaf.
    """

    n_leaves: tuple[int, ...]
    rows: tuple[tuple[tuple[int, int], ...], ...]

    @classmethod
    def of(cls, vectors: IntArray, rows: LongArray, n_leaves: Sequence[int]) -> LeafCounts:
        """Count the leaves of vectors, which need not be distinct.

        Parameters
        ----------
        vectors : ndarray of int32, shape (n, k)
            Codes; those from ``n_leaves_i`` on are no leaves and are left out.
        rows : ndarray of int64, shape (n,)
            At least 0.
        n_leaves : sequence of int, length k

        Raises
        ------
        InputError
            If the shapes do not fit or a code is negative.
        """
        if vectors.ndim != 2 or vectors.shape != (len(rows), len(n_leaves)) or (vectors.size and vectors.min() < 0):
            raise InputError(f"There must be one column of codes per attribute, none below 0. Got {vectors.shape}.")
        exact_total(rows)  # refuses negative ones
        found = []
        for i, n in enumerate(n_leaves):
            counts = np.zeros(n + 1, dtype=np.int64)
            np.add.at(counts, np.minimum(vectors[:, i], n), rows)
            there = np.flatnonzero(counts[:n])
            found.append(tuple(zip(there.tolist(), counts[there].tolist(), strict=True)))
        return cls(tuple(n_leaves), tuple(found))

    @classmethod
    def empty(cls, n_leaves: Sequence[int]) -> LeafCounts:
        """Counts of no vector."""
        return cls(tuple(n_leaves), ((),) * len(n_leaves))

    def plus(self, other: LeafCounts) -> LeafCounts:
        """Counts of both together.

        Raises
        ------
        InternalError
            If the two have different leaves.
        """
        refuse_other(self.n_leaves, other.n_leaves, "Counts over the same hierarchies")
        added = []
        for mine, theirs in zip(self.rows, other.rows, strict=True):
            total = dict(mine)
            for leaf, n in theirs:
                total[leaf] = total.get(leaf, 0) + n
            added.append(tuple(sorted(total.items())))
        return LeafCounts(self.n_leaves, tuple(added))

    def under(self, attribute: int, first_leaf: IntArray, last_leaf: IntArray) -> LongArray:
        """Rows under each node of an attribute.

        Parameters
        ----------
        first_leaf, last_leaf : ndarrays of int32, shape (n_nodes,)
            Leaves under a node are ``first_leaf … last_leaf - 1``.

        Returns
        -------
        ndarray of int64, shape (n_nodes,)
        """
        counts = np.zeros(self.n_leaves[attribute] + 1, dtype=np.int64)
        for leaf, n in self.rows[attribute]:
            counts[leaf + 1] = n
        running = np.cumsum(counts)
        result: LongArray = running[last_leaf] - running[first_leaf]
        return result


def entropy_loss(originals: IntArray, nodes: IntArray, under: LongArray) -> FloatArray:
    """Uncertainty ``-log2 Pr(a | v)`` each released node of an attribute leaves of its original value.

    Put it into an :class:`~privrisk_spark.kernels.numeric.exact_sums.ExactMean` with rows or weights, one per
    attribute.

    Parameters
    ----------
    originals : ndarray of int32, shape (n,)
        Leaf code, or the root for a value that is suppressed from the start, which can lose nothing.
    nodes : ndarray of int32, shape (n,)
        Released node: the original or an ancestor of it.
    under : ndarray of int64, shape (n_nodes,)
        Rows of the original table under each node, see :meth:`LeafCounts.under`.

    Returns
    -------
    ndarray of float64, shape (n,)
        Bits; 0 for a value released as it is, and at most log2 of the table's rows.

    Raises
    ------
    InputError
        If a node is not in the hierarchy, or the counts are not those of a table that holds the originals.
    """
    refuse_nodes(originals, len(under), 0)
    refuse_nodes(nodes, len(under), 0)
    had, has = under[originals], under[nodes]
    moved = originals != nodes
    if np.any((had[moved] < 1) | (has[moved] < had[moved])):
        raise InputError("Counts must be of the table that holds the original values, and nodes must be above these.")
    result = np.zeros(len(nodes))
    result[moved] = np.log2(has[moved] / had[moved])
    return result
