"""Sharing by diffusion in tasks (F12 §7.3): what reaches others from the one who sees, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privrisk_spark.extensions.network.kernels.access import most_utility_of_each
from privrisk_spark.extensions.network.kernels.trust import Exposure
from privrisk_spark.extensions.network.stages.deciding import Acquainted, Showing
from privrisk_spark.extensions.network.stages.network import StoredNetwork
from privrisk_spark.extensions.network.stages.reaching import StoredReach
from privrisk_spark.extensions.network.stages.worth import Sensitivity, Utility


@dataclass(frozen=True)
class ByDiffusion:
    """Shows what is worth the most while ``R(u, x, v) = Φ_u(x) Σ_j K_vj f(T_uj)`` is at most a limit.

    F12 has T where f(T) stands here, by which the risk rises with trust. Of what is not known exactly the worst is
    assumed, so that the limit holds; the gap is to what would be best if the best were true.

    Attributes
    ----------
    table : StoredNetwork
        Stated trust, with values; 0 elsewhere.
    reach : StoredReach
        Of every pair.
    """

    sensitivity: Sensitivity
    utility: Utility
    exposure: Exposure
    table: StoredNetwork
    reach: StoredReach
    limit: float
    whole_users = False

    def at(self, trade_off: float) -> ByDiffusion:
        """Return the same with another limit of the risk."""
        return replace(self, limit=trade_off)

    def decide(self, pairs: Acquainted) -> Showing:
        """Decide some pairs."""
        surplus, error = self.reach.of(pairs.numbers)
        # All share what f is without information, but for whom u names.
        reached = self.exposure.of_strangers + surplus
        phi, worth = self.sensitivity.of(pairs), self.utility.of(pairs)
        most, least = (np.maximum(reached + sign * error, 0.0)[:, None] * phi for sign in (1.0, -1.0))
        shown, gap = most_utility_of_each(most, worth, pairs.levels, self.limit, at_least=least)
        trust = self.table.load().value(pairs.u, pairs.v, otherwise=0.0)
        loss, utility = (most * shown).sum(axis=1), (worth * shown).sum(axis=1)
        return Showing(shown, loss, utility, trust, utility, gap, np.zeros(len(pairs.u), dtype=np.bool_))
