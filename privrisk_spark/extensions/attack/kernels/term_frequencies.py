"""Agreement on a rare value says more than agreement on a frequent one: Winkler's adjustment by term frequencies.

Two people agree on a value ``v`` by chance with the probability ``f_v`` of the value, not with the mean ``u`` over all
values. So the weight of agreement, ``log2(m/u)``, becomes ``log2(m/u) + log2(u/f_v) = log2(m/f_v)``; the other levels
stay (Winkler; Splink does the same, with its default weight of the adjustment, 1).

The frequency of a cell is the share of the records of both files whose cell it equals or covers; what cannot be
compared is left out. Of two cells that agree as one covers the other, the greater frequency counts, that of the coarser
one, as Splink takes the greater one of two values that are alike.

References
----------
T. N. Herzog, F. J. Scheuren, W. E. Winkler, "Data Quality and Record Linkage Techniques" (2007), frequency-based
matching.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.agreement import LevelAgreement, Misfit
from privrisk_spark.extensions.attack.kernels.differences import narrowed
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray

__all__ = ["TermWeight", "greatest_weight", "rarest_of", "term_frequencies"]


def term_frequencies(at_depth: IntArray, rows: LongArray) -> FloatArray:
    """Share of the records of both files that each node equals or covers.

    Parameters
    ----------
    at_depth : ndarray of int32, shape (n_nodes, H + 1)
        As :class:`~privrisk_spark.extensions.attack.kernels.agreement.LevelAgreement` has it.
    rows : ndarray of int64, shape (n_nodes,)
        Records of both files with each node; those with the root, which cannot be compared, do not count.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
        0 of a node that no record has; 1 of the root.
    """
    own = (at_depth >= 0).sum(axis=1)
    counted = np.where(own > 1, rows, 0)
    below = np.zeros(len(at_depth), dtype=np.int64)
    for depth in range(at_depth.shape[1]):
        there = at_depth[:, depth] >= 0
        np.add.at(below, at_depth[there, depth], counted[there])
    total = int(counted.sum())
    found = below / max(total, 1)
    found[own == 1] = 1.0
    return np.asarray(found)


def rarest_of(frequencies: FloatArray) -> float:
    """Least frequency of a value that occurs; 1 if none does."""
    return float(frequencies[frequencies > 0].min(initial=1.0))


def greatest_weight(weights: Sequence[float], u: float, rarest: float | None) -> float:
    """Greatest match weight of a pair of cells of one attribute, in bits.

    Parameters
    ----------
    weights : sequence of L + 1 float
        Of each level.
    u : float
        Probability of agreement among pairs of two people, above 0.
    rarest : float or None
        As :func:`rarest_of` returns it; None where frequencies do not count.
    """
    most = max(weights)
    return most if rarest is None else max(most, weights[0] + math.log2(u / rarest))


@dataclass(frozen=True, eq=False)
class TermWeight:
    """Match weight that a pair of cells lacks of the greatest there is, where agreement counts by how rare it is.

    A :class:`~privrisk_spark.extensions.attack.kernels.differences.Difference`, as
    :class:`~privrisk_spark.extensions.attack.kernels.agreement.LostWeight`.

    Attributes
    ----------
    weights : tuple of L + 1 float
        Of each level, in bits; the last is that of pairs that cannot be compared.
    u : float
        Probability of agreement among pairs of two people, above 0.
    frequencies : ndarray of float64, shape (n_nodes,)
        As :func:`term_frequencies` returns them.

    Raises
    ------
    InputError
        If there is not one finite weight a level, or ``u`` is no probability above 0.
    """

    agreement: LevelAgreement
    weights: tuple[float, ...]
    u: float
    frequencies: FloatArray

    def __post_init__(self) -> None:
        """Refuse weights that are none."""
        if len(self.weights) != self.agreement.levels + 1 or not np.isfinite(self.weights).all():
            raise InputError("Record linkage: every agreement level must have one finite weight.")
        if not 0 < self.u <= 1:
            raise InputError(f"Record linkage: agreement by chance must have a probability in (0, 1]. Got {self.u}.")

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return self.agreement.cells

    def among(self, places: LongArray) -> TermWeight:
        """As :meth:`Difference.among`."""
        _ = self.greatest  # once for all parts
        return narrowed(self, agreement=self.agreement.among(places))

    @property
    def misfit(self) -> Misfit:
        """What cells lack that do not fit each other, by the weights of the levels alone."""
        return Misfit(self.agreement, self.weights)

    @cached_property
    def greatest(self) -> float:
        """Greatest weight of a pair of cells, in bits."""
        return greatest_weight(self.weights, self.u, rarest_of(self.frequencies))

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`Difference.of`; in bits."""
        levels = self.agreement.of(known)
        weight = np.array(self.weights)[levels]
        frequency = np.maximum(self.frequencies[known][:, None], self.frequencies[self.agreement.nodes][None, :])
        agree = (levels == 0) & (frequency > 0)
        weight[agree] += np.log2(self.u / frequency[agree])
        return np.asarray(np.maximum(self.greatest - weight, 0.0))
