"""Distance between the sensitive values of an equivalence class and those of the whole table: one number per class.

With ``q`` the shares of the sensitive values in the class and ``p`` those in the table:

* t-closeness: the earth mover's distance of ``q`` and ``p`` under the equal, ordered or hierarchical ground distance,
  asked to be at most t (Li, Li and Venkatasubramanian, t-closeness, ICDE 2007);
* β-likeness: ``max (q_s - p_s) / p_s`` over values with ``q_s > p_s``, asked to be at most β, or at most
  ``min(β, -ln p_s)`` (Cao and Karras, Publishing microdata with a robust privacy guarantee, PVLDB 2012);
* δ-disclosure: ``max |ln(q_s/p_s)|``, asked to be below δ (Brickell and Shmatikov, The cost of privacy, KDD 2008). A
  value of the table that the class lacks makes this infinite.

All earth mover's distances below lie in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.bounds import TOLERANCE
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.lattice.levels import counted_from_root

_WHOLE = 2**62


@dataclass(frozen=True, eq=False)
class TableDistribution:
    """The sensitive attribute in the whole table.

    Attributes
    ----------
    count : ndarray of int64, shape (v,)
        Rows with each value, at least 0. For the ordered distance, codes are in the order of the domain, and values
        that no row has are part of the domain all the same.

    Raises
    ------
    InputError
        If there is no row, a count is negative, or ``v`` times the rows reaches 2^62.
    """

    count: LongArray

    def __post_init__(self) -> None:
        if self.count.ndim != 1 or (self.count < 0).any():
            raise InputError("Sensitive values of the table: the rows of a value must be at least 0.")
        total = int(self.count.astype(object).sum()) if len(self.count) else 0
        if total < 1:
            raise InputError("Sensitive values of the table: there must be at least 1 row.")
        if total * len(self.count) >= _WHOLE:
            raise InputError("Sensitive values of the table: values times rows must be below 2^62.")

    @cached_property
    def rows(self) -> int:
        """Rows of the table."""
        return int(self.count.sum())

    @cached_property
    def share(self) -> FloatArray:
        """``p`` of each value, ndarray of float64, shape (v,)."""
        return np.asarray(self.count / self.rows)

    @cached_property
    def present(self) -> int:
        """Different values in the table."""
        return int(np.count_nonzero(self.count))

    def holds(self, runs: SensitiveRuns) -> None:
        """Refuse classes that are no part of the table.

        Raises
        ------
        InputError
            If a class has a value more often than the table.
        """
        if not runs.n_classes:
            return
        if int(runs.value.max()) >= len(self.count) or (runs.count > self.count[runs.value]).any():
            raise InputError(
                "Sensitive values of the table: a class has a value more often than the whole table; count both from "
                "the same rows."
            )


def equal_distance(runs: SensitiveRuns, table: TableDistribution) -> FloatArray:
    """Earth mover's distance where all values are 1 apart: ``Σ max(q_s - p_s, 0)``, the total variation.

    Shares sum to 1 on both sides, so what exceeds is what lacks, and only values of the class can exceed.

    Returns
    -------
    ndarray of float64, shape (m,)

    Raises
    ------
    InputError
        If a class is no part of the table.
    """
    table.holds(runs)
    return _at_most_one(runs.added(np.maximum(runs.share - table.share[runs.value], 0.0)))


def ordered_distance(runs: SensitiveRuns, table: TableDistribution) -> FloatArray:
    """Earth mover's distance where values of ranks ``i`` and ``j`` are ``|i - j| / (v - 1)`` apart.

    It is ``Σ_i |Q_i - P_i| / (v - 1)`` over the cumulated shares (Li et al. 2007, section 5.1). Between two values of a
    class ``Q`` is constant and ``P`` rises, so the sum over the ranks between is two differences of prefix sums, of
    integers, around the rank where ``P`` passes ``Q``: ``O(log v)`` a run, whatever the domain.

    Returns
    -------
    ndarray of float64, shape (m,)
        0 for a domain of one value.

    Raises
    ------
    InputError
        If a class is no part of the table.
    """
    table.holds(runs)
    v = len(table.count)
    if v == 1 or not runs.n_classes:
        return np.zeros(runs.n_classes)
    below = np.cumsum(table.count)  # rows with the value or a lower one
    prefix = np.concatenate([[0], np.cumsum(below)])
    cumulated = np.cumsum(runs.count)
    start = runs.class_start[:-1]
    inside = cumulated - (cumulated - runs.count)[start][runs.owner]
    share = inside / runs.rows[runs.owner]
    first = runs.value.astype(np.int64)
    end = np.append(first[1:], v)
    end[runs.class_start[1:] - 1] = v
    crossing = np.clip(np.searchsorted(below / table.rows, share, side="left"), first, end)
    before = share * (crossing - first) - (prefix[crossing] - prefix[first]) / table.rows
    after = (prefix[end] - prefix[crossing]) / table.rows - share * (end - crossing)
    between = runs.added(np.maximum(before, 0.0) + np.maximum(after, 0.0))
    return _at_most_one((prefix[first[start]] / table.rows + between) / (v - 1))


def hierarchical_distance(runs: SensitiveRuns, table: TableDistribution, ancestor: IntArray) -> FloatArray:
    """Earth mover's distance where two values are ``level / H`` apart, the level of their lowest common ancestor.

    Levels count from the root, which has level ``H``: a value that lies less deep than others starts at a higher one.

    Parameters
    ----------
    table : TableDistribution
        Of ``v`` values.
    ancestor : ndarray of int32, shape (at least v, H + 1)
        Node of each value after so many steps up, of the sensitive attribute's hierarchy: the value itself after none,
        one root for all after ``H >= 1``.

    Returns
    -------
    ndarray of float64, shape (m,)

    Raises
    ------
    InputError
        If a class is no part of the table, or the levels do not form a hierarchy.

    Notes
    -----
    It is the mean of the total variation over the levels ``0 … H - 1``. Proof: give every edge from level ``x`` to
    ``x + 1`` the length ``1 / 2H``; leaves that meet at level ``y`` are ``y / H`` apart. On a tree the mass that
    crosses an edge is the excess ``|q_N - p_N|`` of the node below it, so the distance is ``Σ_x Σ_N |q_N - p_N| / 2H``,
    and ``Σ_N |q_N - p_N|`` is twice the total variation. It is the sum of ``cost(N)`` of Li et al. 2007, section 5.2:
    a node of height ``y`` with positive excesses ``a`` and negative ones ``b`` of its children costs
    ``(y / H) min(a, b)``, and ``2 min(a, b) = a + b - |a - b|``, which telescopes.
    """
    table.holds(runs)
    v = len(table.count)
    rank, nodes = _nested(ancestor, v)
    height = nodes.shape[1] - 1
    table_count = np.empty(v, dtype=np.int64)
    table_count[rank] = table.count
    if not runs.n_classes:
        return np.zeros(0)
    place = rank[runs.value]
    order = np.lexsort((place, runs.owner))
    place, count, owner = place[order], runs.count[order], runs.owner
    total = np.zeros(runs.n_classes)
    for x in range(height):
        share = np.add.reduceat(table_count, np.flatnonzero(np.diff(nodes[:, x], prepend=-1))) / table.rows
        node = nodes[place, x]
        new = np.ones(len(node), dtype=np.bool_)
        new[1:] = (node[1:] != node[:-1]) | (owner[1:] != owner[:-1])
        begin = np.flatnonzero(new)
        of_node = np.add.reduceat(count, begin)
        owner_of = owner[begin]
        excess = np.maximum(of_node / runs.rows[owner_of] - share[node[begin]], 0.0)
        total += np.add.reduceat(excess, np.searchsorted(owner_of, np.arange(runs.n_classes)))
    return _at_most_one(total / height)


def greatest_gain(runs: SensitiveRuns, table: TableDistribution) -> FloatArray:
    """``max (q_s - p_s) / p_s`` of each class, the least β for which it has basic β-likeness.

    Returns
    -------
    ndarray of float64, shape (m,)
        0 if no share is greater than in the table.

    Raises
    ------
    InputError
        If a class is no part of the table.
    """
    return runs.greatest(_gain(runs, table))


def greatest_enhanced_gain(runs: SensitiveRuns, table: TableDistribution) -> FloatArray:
    """:func:`greatest_gain` where a gain must be at most ``-ln p_s`` as well, for enhanced β-likeness.

    Parameters and errors as there.

    Returns
    -------
    ndarray of float64, shape (m,)
        inf if a gain is more than ``-ln p_s``, as no β helps.
    """
    gain, bound = _gain(runs, table), -np.log(table.share[runs.value])
    return runs.greatest(np.where(gain > bound + TOLERANCE * np.maximum(1.0, bound), np.inf, gain))


def _gain(runs: SensitiveRuns, table: TableDistribution) -> FloatArray:
    """Relative gain of each run, at least 0."""
    table.holds(runs)
    share = table.share[runs.value]
    return np.maximum((runs.share - share) / share, 0.0)


def greatest_log_ratio(runs: SensitiveRuns, table: TableDistribution) -> FloatArray:
    """``max |ln(q_s / p_s)|`` of each class over the values of the table.

    Returns
    -------
    ndarray of float64, shape (m,)
        inf if the class lacks a value that the table has.

    Raises
    ------
    InputError
        If a class is no part of the table.
    """
    ratio = greatest_log_ratio_present(runs, table)
    return np.where(np.diff(runs.class_start) < table.present, np.inf, ratio)


def greatest_log_ratio_present(runs: SensitiveRuns, table: TableDistribution) -> FloatArray:
    """:func:`greatest_log_ratio` over the values that the class holds: finite.

    Parameters and errors as there. It is no criterion: what is said of a value that is missing is nothing.

    Returns
    -------
    ndarray of float64, shape (m,)
    """
    table.holds(runs)
    return runs.greatest(np.abs(np.log(runs.share / table.share[runs.value])))


def _at_most_one(distance: FloatArray) -> FloatArray:
    """Take away what rounding adds to a distance of 1."""
    return np.asarray(np.minimum(distance, 1.0))


def _nested(ancestor: IntArray, v: int) -> tuple[LongArray, LongArray]:
    """Order the values so that every node of every level is an interval.

    Returns
    -------
    rank : ndarray of int64, shape (v,)
        Place of each value.
    nodes : ndarray of int64, shape (v, H + 1)
        Dense number of the node of each place at each level counted from the root, non-decreasing along the places.
    """
    if ancestor.ndim != 2 or len(ancestor) < v or ancestor.shape[1] < 2:
        raise InputError(
            f"Hierarchy of the sensitive attribute: nodes of {v} values at two levels or more are needed, not an array "
            f"of the shape {ancestor.shape}."
        )
    if (ancestor[:v, -1] != ancestor[:1, -1]).any():
        raise InputError("Hierarchy of the sensitive attribute: the last level must be one root for all values.")
    above, _ = counted_from_root(ancestor[:v])
    order = np.lexsort(above.T)  # by the highest level first
    sorted_nodes = above[order]
    nodes = np.zeros((v, ancestor.shape[1]), dtype=np.int64)
    np.cumsum(sorted_nodes[1:] != sorted_nodes[:-1], axis=0, out=nodes[1:])
    for x in range(ancestor.shape[1]):
        if nodes[-1, x] + 1 != len(np.unique(sorted_nodes[:, x])):
            raise InputError(f"Hierarchy of the sensitive attribute: values that share a node at level {x} part above.")
    if nodes[-1, 0] + 1 != v:
        raise InputError("Hierarchy of the sensitive attribute: level 0 must tell all values apart.")
    rank = np.empty(v, dtype=np.int64)
    rank[order] = np.arange(v)
    return rank, nodes
