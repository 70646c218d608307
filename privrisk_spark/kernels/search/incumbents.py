"""The best node so far of each of many records, while lattice nodes are offered one after the other.

Nodes are offered in ascending order, which is the lexicographic order of level vectors: of two that are equal in
numbers the first stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate, Objective
from privrisk_spark.kernels.lattice.lattice import TOLERANCE


@dataclass(frozen=True, eq=False)
class Incumbents:
    """The best node so far of each record.

    Attributes
    ----------
    node : ndarray of int64, shape (n,)
        -1 for none yet.
    risk, utility : ndarray of float64, shape (n,)
    consistent : ndarray of int64, shape (n,)
    rivals : ndarray of int32, shape (n,)
        Nodes that came as near as rounding allows to the least risk; of :meth:`offer` alone.
    """

    node: LongArray
    risk: FloatArray
    utility: FloatArray
    consistent: LongArray
    rivals: IntArray

    @classmethod
    def none(cls, n: int) -> Incumbents:
        """Nothing found yet for ``n`` records."""
        # A first node of infinite risk is no rival of the infinity here: one less than none.
        rivals = np.full(n, -1, dtype=np.int32)
        return cls(np.full(n, -1), np.full(n, np.inf), np.full(n, -np.inf), np.zeros(n, dtype=np.int64), rivals)

    def offer(
        self, rows: LongArray | slice, node: int, risk: FloatArray, utility: FloatArray, consistent: LongArray
    ) -> None:
        """Take ``node`` for the rows where its risk is less; nodes must be offered in ascending order."""
        # Few rows come near the best so far: everything else looks at those alone.
        near = np.flatnonzero(risk <= self.risk[rows] * (1 + TOLERANCE))
        if not len(near):
            return
        at = near if isinstance(rows, slice) else rows[near]
        risk, utility, consistent = risk[near], utility[near], consistent[near]
        lower = risk < self.risk[at] * (1 - TOLERANCE)
        slack = TOLERANCE * np.maximum(1.0, np.abs(utility))
        better = lower | (utility > self.utility[at] + slack)
        self.rivals[at] = np.where(lower, 0, self.rivals[at] + 1)
        taken = at[better]
        self.node[taken] = node
        self.risk[taken], self.utility[taken] = risk[better], utility[better]
        self.consistent[taken] = consistent[better]

    def offer_for(
        self,
        objective: Objective,
        rows: LongArray | slice,
        node: int,
        risk: FloatArray,
        utility: FloatArray,
        consistent: LongArray,
    ) -> None:
        """Take ``node`` for the rows where it serves the objective better; nodes must be offered in ascending order."""
        admitted = np.flatnonzero(objective.admits(risk, utility))
        at = admitted if isinstance(rows, slice) else rows[admitted]
        risk, utility, consistent = risk[admitted], utility[admitted], consistent[admitted]
        better = self.node[at] < 0
        later = np.flatnonzero(~better)
        better[later] = objective.ahead(risk[later], utility[later], self.risk[at[later]], self.utility[at[later]])
        taken = at[better]
        self.node[taken] = node
        self.risk[taken], self.utility[taken] = risk[better], utility[better]
        self.consistent[taken] = consistent[better]

    def replace(self, rows: LongArray, other: Incumbents) -> None:
        """Take over what another search found for some rows."""
        for mine, found in (
            (self.node, other.node),
            (self.risk, other.risk),
            (self.utility, other.utility),
            (self.consistent, other.consistent),
        ):
            mine[rows] = found


@dataclass(frozen=True, eq=False)
class AggregateIncumbents(Incumbents):
    """The node of greatest ``λ/r + u^κ`` so far of each record.

    Attributes
    ----------
    value : ndarray of float64, shape (n,)
        Of the node.
    highest : ndarray of float64, shape (n,)
        Of all nodes offered. Ties are against it: as it never falls, no chain of ties leads downwards.
    """

    value: FloatArray
    highest: FloatArray

    @classmethod
    def none(cls, n: int) -> AggregateIncumbents:
        """Nothing found yet for ``n`` records."""
        of_any = Incumbents.none(n)
        # Less than any value, which is not negative, by more than the tolerance.
        nothing = np.full(n, -1.0)
        return cls(of_any.node, of_any.risk, of_any.utility, of_any.consistent, of_any.rivals, nothing, nothing.copy())

    def offer_value(
        self,
        objective: GreatestAggregate,
        rows: LongArray | slice,
        node: int,
        value: FloatArray,
        risk: FloatArray,
        utility: FloatArray,
        consistent: LongArray,
    ) -> None:
        """Take ``node`` for the rows where its value is greater; nodes must be offered in ascending order.

        Parameters
        ----------
        rows : ndarray of int64, shape (n,), or slice
        value : ndarray of float64, shape (n,)
            Minus infinity where it is no candidate.
        risk, utility : ndarray of float64, shape (n,)
        consistent : ndarray of int64, shape (n,)
        """
        near = np.flatnonzero(objective.reaches(value, self.highest[rows]))
        if not len(near):
            return
        at = near if isinstance(rows, slice) else rows[near]
        value, utility = value[near], utility[near]
        highest = np.maximum(self.highest[at], value)
        self.highest[at] = highest
        better = ~objective.reaches(self.value[at], highest) | objective.more_useful(utility, self.utility[at])
        taken, of = at[better], near[better]
        self.node[taken] = node
        self.value[taken], self.utility[taken] = value[better], utility[better]
        self.risk[taken], self.consistent[taken] = risk[of], consistent[of]
