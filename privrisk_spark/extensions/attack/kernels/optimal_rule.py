"""Which pairs are linked, which are not, and which a clerk must look at: the optimal rule of Fellegi and Sunter (1969).

Patterns are taken in the order of their match weights. From the top they are linked as long as the share of the pairs
that are not of one person stays within what is allowed, from the bottom they are not linked as long as the share of the
pairs that are stays within; those between are left to a clerk. Patterns of one weight are decided alike. The pattern at
a boundary may be decided by a coin, so that the rates are exactly those asked for.

Status: *proved* for known probabilities: among all rules with at most these rates of error, none leaves fewer pairs to
the clerk (their fundamental theorem). Rates are of each class of pairs. Nearly all pairs are not of one person, so that
a small share of them may still be more pairs than there are persons.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray

__all__ = ["OptimalRule", "optimal_rule"]

_TOLERANCE = 1e-9
"""Bits by which weights may differ that are ties, and by which a share may miss a whole: what rounding adds."""


@dataclass(frozen=True)
class OptimalRule:
    """Thresholds of match weights.

    Attributes
    ----------
    upper, lower : float
        A pair of greater weight than ``upper`` is linked, one of less than ``lower`` is not, in bits. ``lower`` is at
        most ``upper``.
    linked_at_upper : float
        Probability with which a pair of weight ``upper`` is linked.
    apart_at_lower : float
        Probability with which a pair of weight ``lower`` is not linked. What is neither is left to a clerk.
    false_links : float
        Probability that a pair that is not of one person is linked.
    false_non_links : float
        Probability that a pair of one person is not linked.
    clerical_others, clerical_links : float
        Probabilities that a pair of either class is left to a clerk.
    """

    upper: float
    lower: float
    linked_at_upper: float
    apart_at_lower: float
    false_links: float
    false_non_links: float
    clerical_others: float
    clerical_links: float

    def shares(self, weights: FloatArray) -> FloatArray:
        """Probabilities with which pairs are linked, left to a clerk, and not linked.

        Parameters
        ----------
        weights : ndarray of float64, shape (n,)
            In bits.

        Returns
        -------
        ndarray of float64, shape (n, 3)
            Of sum 1.
        """
        return _shares(weights, self.upper, self.lower, self.linked_at_upper, self.apart_at_lower)


def optimal_rule(
    weights: FloatArray,
    of_links: FloatArray,
    of_others: FloatArray,
    *,
    false_links: float,
    false_non_links: float,
    coins: bool = True,
) -> OptimalRule:
    """Return the rule that leaves the fewest pairs to a clerk.

    Parameters
    ----------
    weights : ndarray of float64, shape (n,)
        Of patterns, in bits; finite.
    of_links, of_others : ndarray of float64, shape (n,)
        Probability of each pattern among pairs of one person, and among the others; of sum 1. Those of all patterns,
        or of the observed ones (:meth:`LinkageModel.expected`).
    false_links, false_non_links : float
        Greatest rates of error, in [0, 1].
    coins : bool
        Whether a coin decides at the boundaries, so that the rates are met exactly. Otherwise a pattern that does not
        fit wholly is left to the clerk.

    Returns
    -------
    OptimalRule
        Where both rates can be kept without a clerk, links are taken as far as their rate allows, and no other pair
        is linked.

    Raises
    ------
    InputError
        If there is no pattern, or what is given is no probability.
    """
    if not len(weights) or not np.isfinite(weights).all():
        raise InputError("Record linkage: there must be patterns, each with a finite weight.")
    if not (0 <= false_links <= 1 and 0 <= false_non_links <= 1):
        raise InputError(f"Record linkage: rates of error must be in [0, 1]. Got {false_links} and {false_non_links}.")
    for one in (of_links, of_others):
        if one.shape != weights.shape or one.min() < 0 or abs(float(one.sum()) - 1) > 1e-6:
            raise InputError("Record linkage: the probabilities of the patterns must be at least 0 and of sum 1.")
    order = np.argsort(-weights, kind="stable")
    group = np.cumsum(np.append(False, -np.diff(weights[order]) > _TOLERANCE))
    links, others = (np.bincount(group, of[order]).astype(np.float64) for of in (of_links, of_others))
    weight = weights[order][np.searchsorted(group, np.arange(len(links)))]
    first, linked = _boundary(others, false_links, coins)
    back, apart = _boundary(links[::-1], false_non_links, coins)
    last = len(links) - 1 - back
    if first > last or (first == last and linked + apart > 1):
        last, apart = first, 1 - linked
    upper, lower = float(weight[first]), float(weight[last])
    decided = _shares(weight, upper, lower, linked, apart)
    return OptimalRule(
        upper,
        lower,
        linked,
        apart,
        float(others @ decided[:, 0]),
        float(links @ decided[:, 2]),
        float(others @ decided[:, 1]),
        float(links @ decided[:, 1]),
    )


def _boundary(errors: FloatArray, allowed: float, coins: bool) -> tuple[int, float]:
    """The first group that cannot wholly be decided in one way, and the share of it that can."""
    total = np.cumsum(errors)
    fits = total <= allowed + _TOLERANCE * np.maximum(total, allowed)
    if fits.all():
        return len(errors) - 1, 1.0
    first = int(np.argmin(fits))
    before = float(total[first - 1]) if first else 0.0
    share = min(max((allowed - before) / float(errors[first]), 0.0), 1.0)
    return first, share if coins else 0.0


def _shares(weights: FloatArray, upper: float, lower: float, linked: float, apart: float) -> FloatArray:
    found = np.zeros((len(weights), 3))
    above, below = weights - upper, weights - lower
    found[:, 0] = np.where(above > _TOLERANCE, 1.0, np.where(above >= -_TOLERANCE, linked, 0.0))
    found[:, 2] = np.where(below < -_TOLERANCE, 1.0, np.where(below <= _TOLERANCE, apart, 0.0))
    found[:, 1] = 1 - found[:, 0] - found[:, 2]
    return found
