"""Sharing by diffusion in tasks (F12 §7.3): what reaches others from the one who sees, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.sharing.access import Entries, most_utility
from privrisk_spark.kernels.sharing.diffusion import Leak, diffused
from privrisk_spark.kernels.sharing.trust import Exposure
from privrisk_spark.stages.sharing.deciding import Acquainted, Showing
from privrisk_spark.stages.sharing.network import StoredNetwork
from privrisk_spark.stages.sharing.trusting import whole_graph
from privrisk_spark.stages.sharing.worth import Sensitivity, Utility

AT_ONCE = 16
"""Users from whom information spreads at once; does not change a result but for rounding."""


@dataclass(frozen=True)
class ByDiffusion:
    """Shows what is worth the most while ``R(u, x, v) = Φ_u(x) Σ_j K_vj f(T_uj)`` is at most a limit.

    F12 has T where f(T) stands here, by which the risk rises with trust.

    Attributes
    ----------
    sensitivity : Sensitivity
    utility : Utility
    exposure : Exposure
    table : StoredNetwork
        Stated trust, with values; 0 elsewhere.
    network : StoredNetwork
        Who is whose friend; a task holds all of it.
    leak : {"stochastic", "laplacian"}
    time, error, limit : float
    """

    sensitivity: Sensitivity
    utility: Utility
    exposure: Exposure
    table: StoredNetwork
    network: StoredNetwork
    leak: Leak
    time: float
    error: float
    limit: float
    whole_users = False

    def at(self, trade_off: float) -> ByDiffusion:
        """Return the same with another limit of the risk."""
        return replace(self, limit=trade_off)

    def decide(self, pairs: Acquainted) -> Showing:
        """Decide some pairs."""
        reach, k = self.reached(pairs), pairs.levels.shape[1]
        cost, worth = reach[:, None] * self.sensitivity.of(pairs), self.utility.of(pairs)
        shown, gap = np.zeros((len(pairs.u), k), dtype=np.int8), np.zeros(len(pairs.u))
        for p in range(len(pairs.u)):
            found = most_utility(Entries(cost[p], worth[p], pairs.levels[p]), self.limit)
            shown[p], gap[p] = found.levels, found.gap
        trust = self.table.load().value(pairs.u, pairs.v, otherwise=0.0)
        loss, utility = (cost * shown).sum(axis=1), (worth * shown).sum(axis=1)
        return Showing(shown, loss, utility, trust, gap, np.zeros(len(pairs.u), dtype=np.bool_))

    def reached(self, pairs: Acquainted) -> FloatArray:
        """Return ``Σ_j K_vj f(T_uj)`` of each pair: all share what f is without information, but for whom u names.

        It is never less than that: of what the series leaves out, the worst is assumed.
        """
        graph, stated = whole_graph(self.network), self.table.load()
        neutral = float(self.exposure.of(np.zeros(1))[0])
        seeing, of = np.unique(pairs.v, return_inverse=True)
        first, whom, values = stated.valued(pairs.u)
        named = np.repeat(np.arange(len(pairs.u)), np.diff(first))
        surplus = self.exposure.of(values) - neutral
        found = np.full(len(pairs.u), neutral)
        for begin in range(0, len(seeing), AT_ONCE):
            some = seeing[begin : begin + AT_ONCE].astype(np.int32)
            spread = diffused(graph, self.leak, self.time, some, self.error).values
            here = (of[named] >= begin) & (of[named] < begin + AT_ONCE)
            part = surplus[here] * spread[whom[here], of[named[here]] - begin]
            found += np.bincount(named[here], part, minlength=len(found))
        worst = np.full(len(pairs.u), abs(neutral))
        np.maximum.at(worst, named, np.abs(surplus))
        kept: FloatArray = np.maximum(found, 0.0) + self.error * worst
        return kept
