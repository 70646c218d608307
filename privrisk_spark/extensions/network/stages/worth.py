"""What a shown level costs a user and what it is worth to another: Φ_ik and Ψ_ik of F12 §7.4, in tasks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.extensions.network.stages.deciding import Acquainted
from privrisk_spark.extensions.network.stages.network import StoredNetwork
from privrisk_spark.kernels.arrays import FloatArray, LongArray


@dataclass(frozen=True)
class Sensitivity:
    """What a shown level of each attribute costs.

    Attributes
    ----------
    weights : tuple of k float
        Of each attribute.
    columns : tuple of k int or None
        Personal weight that multiplies it; None for none.
    table : StoredNetwork or None
        What a table says of users, by the number of the attribute, instead of the weights.
    """

    weights: tuple[float, ...]
    columns: tuple[int | None, ...]
    table: StoredNetwork | None = None

    def of(self, pairs: Acquainted) -> FloatArray:
        """Φ of the one who shows, float64 (n, k)."""
        found = np.tile(np.array(self.weights), (len(pairs.u), 1))
        if any(column is not None for column in self.columns):
            personal = pairs.users.weights.take(pairs.u)
            for j, column in enumerate(self.columns):
                if column is not None:
                    found[:, j] *= personal[:, column]
        if self.table is not None:
            _put(found, self.table, pairs.u)
        return found


@dataclass(frozen=True)
class Utility:
    """What a shown level of each attribute is worth.

    Attributes
    ----------
    weights : tuple of k float
        Of each attribute.
    table : StoredNetwork or None
        What a table says of the one who sees, by the number of the attribute, instead of the weights.
    diverse : bool
        Whether it is multiplied by the difference of the two profiles.
    """

    weights: tuple[float, ...]
    table: StoredNetwork | None = None
    diverse: bool = False

    def of(self, pairs: Acquainted) -> FloatArray:
        """Ψ in each pair, float64 (n, k)."""
        found = np.tile(np.array(self.weights), (len(pairs.u), 1))
        if self.table is not None:
            _put(found, self.table, pairs.v)
        if self.diverse:
            found *= difference(pairs)[:, None]
        return found


def difference(pairs: Acquainted) -> FloatArray:
    """Return how far the profiles of each pair differ, float64 (n,) in [0, 1].

    The mean over the attributes that both show of the levels in which the values of the first differ from the other's,
    as a share of its levels; 0 where there is no such attribute.
    """
    theirs = pairs.users.profiles.take(pairs.v)
    agreements = pairs.trees.agreements(pairs.codes, theirs)
    both = (pairs.levels > 0) & (pairs.trees.levels(theirs) > 0)
    share = np.where(both, agreements / np.maximum(pairs.levels, 1), 0.0)
    mean: FloatArray = share.sum(axis=1) / np.maximum(both.sum(axis=1), 1)
    return mean


def _put(found: FloatArray, table: StoredNetwork, users: LongArray) -> None:
    """Put what a table says of users and attributes in its place."""
    first, attributes, values = table.load().valued(users)
    found[np.repeat(np.arange(len(users)), np.diff(first)), attributes] = values
