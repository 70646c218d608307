"""Modified-Aggregate in tasks (F12 §7.5, Algorithm 8): what each user shows another by their common friends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from privrisk_spark.extensions.network.kernels.algorithm8 import Reading, algorithm8
from privrisk_spark.extensions.network.kernels.modified_aggregate import (
    Consistency,
    Pairs,
    Shown,
    ZeroPhi,
    modified_aggregate,
)
from privrisk_spark.extensions.network.stages.deciding import Acquainted, Showing
from privrisk_spark.extensions.network.stages.worth import Sensitivity, Utility
from privrisk_spark.kernels.arrays import FloatArray, LevelArray

NoCommonFriend = Literal["reject", "owner", "as-published"]


@dataclass(frozen=True)
class Layers:
    """Algorithm 8 as it was published.

    Attributes
    ----------
    reading : {"layer", "equality"}
    """

    epsilon: float
    reading: Reading


@dataclass(frozen=True)
class ByCommonFriends:
    """Decides by ``λ ξ(x)/Φ(x) + u(x)^κ``.

    Attributes
    ----------
    consistency : {"all", "any"}
    zero_phi : {"exclude", "floor"}
    no_common_friend : {"reject", "owner", "as-published"}
        A pair without common friends shows nothing, counts the owner as its only common friend, or counts no one.
    layers : Layers or None
        By which Algorithm 8 decides as it was published; its gap is to the exact answer.
    """

    sensitivity: Sensitivity
    utility: Utility
    trade_off: float
    kappa: float
    consistency: Consistency
    zero_phi: ZeroPhi
    no_common_friend: NoCommonFriend
    most_boxes: int
    layers: Layers | None = None
    whole_users = False

    def at(self, trade_off: float) -> ByCommonFriends:
        """Return the same with another λ."""
        return replace(self, trade_off=trade_off)

    def decide(self, pairs: Acquainted) -> Showing:
        """Decide some pairs."""
        n, k = pairs.codes.shape
        empty = pairs.levels.sum(axis=1, dtype=np.int64) == 0
        rejected = (pairs.common == 0) & (self.no_common_friend == "reject") & ~empty
        asked = np.flatnonzero(~(rejected | empty))
        shown, numbers, objective = np.zeros((n, k), dtype=np.int8), np.zeros((4, n)), np.full(n, np.nan)
        if len(asked):
            found = self._found(self._asked(pairs, asked))
            shown[asked] = pairs.levels[asked] - np.minimum(found.levels, pairs.levels[asked])
            trust = found.consistent.astype(np.float64)
            numbers[:, asked] = (found.sensitivity / np.maximum(trust, 1), found.utility, trust, found.gap)
            objective[asked] = found.objective
        loss, utility, trust, gap = numbers
        return Showing(shown, loss, utility, trust, objective, gap, rejected)

    def _found(self, pairs: Pairs) -> Shown:
        layers = self.layers
        exact = modified_aggregate(
            pairs,
            trade_off=self.trade_off,
            kappa=self.kappa,
            consistency=self.consistency,
            zero_phi=self.zero_phi,
            most_boxes=self.most_boxes,
        )
        if layers is None:
            return exact
        return algorithm8(
            pairs,
            trade_off=self.trade_off,
            kappa=self.kappa,
            epsilon=layers.epsilon,
            consistency=self.consistency,
            reading=layers.reading,
        ).beside(exact)

    def _asked(self, pairs: Acquainted, asked: np.ndarray) -> Pairs:
        levels, counts, friends = pairs.levels[asked], pairs.common, pairs.friends
        if self.no_common_friend == "owner":
            # The owner's profile is consistent with whatever is shown of it, so ξ is 1.
            alone = counts == 0
            friends = np.insert(friends, pairs.first[:-1][alone], pairs.u[alone])
            counts = np.maximum(counts, 1)
        of = np.repeat(np.arange(len(pairs.u)), counts)
        kept = np.isin(of, asked)
        of, friends = of[kept], friends[kept]
        first = np.concatenate([[0], np.cumsum(counts[asked])]).astype(np.int64)
        theirs = pairs.users.profiles.take(friends)
        agreements = pairs.trees.agreements(pairs.codes[of], theirs)
        most = max(pairs.trees.heights)
        weights = by_level(self.sensitivity.of(pairs)[asked], levels, most)
        utilities = by_level(self.utility.of(pairs)[asked], levels, most)
        return Pairs(levels, weights, utilities, first, agreements)


def by_level(each: FloatArray, levels: LevelArray, height: int) -> FloatArray:
    """Return what a value costs, or is worth, at each number of generalization steps, if every level counts alike.

    Parameters
    ----------
    each : ndarray of float64, shape (n, k)
        Of a level.
    levels : ndarray of int8, shape (n, k)
    height : int
        The greatest number of steps.

    Returns
    -------
    ndarray of float64, shape (n, k, height + 1)
    """
    left = np.maximum(levels[:, :, None].astype(np.int16) - np.arange(height + 1, dtype=np.int16), 0)
    return each[:, :, None] * left
