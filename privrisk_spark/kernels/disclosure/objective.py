"""What a search over one record's lattice is to find (F12 eqs 4.1 to 4.3, 5.1), and its tie rule.

==========================  ========================================  ================================================
objective                   problem                                   ties
==========================  ========================================  ================================================
:class:`LeastRisk`          min r(x) subject to u(x) >= c    (4.2)    higher utility, then smallest level vector
:class:`GreatestUtility`    max u(x) subject to r(x) <= c    (4.1)    lower risk, then smallest level vector
:class:`LeastPenalized`     min r(x) - λ u(x)                (4.3)    lower risk, higher utility, smallest level vector
:class:`GreatestAggregate`  max λ/r(x) + u(x)^κ              (5.1)    higher utility, then smallest level vector
==========================  ========================================  ================================================

"Smallest" is lexicographic. Two risks, two values of ``λ/r + u^κ``, a risk and its ceiling, two utilities, or a utility
and its floor, count as equal within :data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE`; a penalized risk, within
that times ``max(1, |·|)``. An infinite number is equal to itself alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.disclosure.risk import RiskModel, identification_risk
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, reaches

Valued = tuple[float, float, Sequence[int]]
"""Risk, utility and levels of a level vector."""


def better(risk: float, utility: float, levels: Sequence[int], than: tuple[float, float, Sequence[int]]) -> bool:
    """The tie rule of every search that minimizes risk.

    Lower risk, then higher utility, then the lexicographically smaller level vector; numbers within
    :data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE` of each other count as equal.
    """
    other_risk, other_utility, other_levels = than
    if risk < other_risk * (1 - TOLERANCE) or risk > other_risk * (1 + TOLERANCE):
        return risk < other_risk
    slack = TOLERANCE * max(1.0, abs(other_utility))
    if abs(utility - other_utility) > slack:
        return utility > other_utility
    return tuple(levels) < tuple(other_levels)


@dataclass(frozen=True)
class LeastRisk:
    """Minimize the risk among level vectors of utility at least ``floor``."""

    floor: float

    def value(self, risk: FloatArray, utility: FloatArray) -> FloatArray:
        """What is minimized, shape (n,)."""
        del utility
        return risk

    def admits(self, risk: FloatArray, utility: FloatArray) -> BoolArray:
        """Which level vectors satisfy the constraint, shape (n,)."""
        del risk
        return reaches(utility, self.floor)

    def prefers(self, one: Valued, than: Valued) -> bool:
        """Whether the first of two admitted level vectors is better."""
        return better(*one, than)

    def ahead(
        self, risk: FloatArray, utility: FloatArray, than_risk: FloatArray, than_utility: FloatArray
    ) -> BoolArray:
        """Where one of two admitted level vectors is better in numbers, shape (n,)."""
        below, level = _less(risk, than_risk)
        return below | (level & _greater(utility, than_utility)[0])


def _less(one: FloatArray, than: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Where a risk is less than another, and where both are equal."""
    below = one < than * (1 - TOLERANCE)
    return below, ~below & ~(one > than * (1 + TOLERANCE))


def _greater(one: FloatArray, than: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Where a utility is greater than another, and where both are equal; of either sign, or infinite."""
    slack = np.where(np.isinf(than), 0.0, TOLERANCE * np.maximum(1.0, np.abs(than)))
    above = one > than + slack
    return above, ~above & ~(one < than - slack)


@dataclass(frozen=True)
class GreatestUtility:
    """Maximize the utility among level vectors of risk at most ``ceiling``."""

    ceiling: float

    def value(self, risk: FloatArray, utility: FloatArray) -> FloatArray:
        """What is maximized, shape (n,)."""
        del risk
        return utility

    def admits(self, risk: FloatArray, utility: FloatArray) -> BoolArray:
        """Which level vectors satisfy the constraint, shape (n,)."""
        del utility
        within: BoolArray = risk <= self.ceiling * (1 + TOLERANCE)
        return within

    def prefers(self, one: Valued, than: Valued) -> bool:
        """Whether the first of two admitted level vectors is better."""
        if abs(one[1] - than[1]) > TOLERANCE * max(1.0, abs(than[1])):
            return one[1] > than[1]
        return better(one[0], 0.0, one[2], (than[0], 0.0, than[2]))

    def ahead(
        self, risk: FloatArray, utility: FloatArray, than_risk: FloatArray, than_utility: FloatArray
    ) -> BoolArray:
        """Where one of two admitted level vectors is better in numbers, shape (n,)."""
        above, level = _greater(utility, than_utility)
        return above | (level & _less(risk, than_risk)[0])


@dataclass(frozen=True)
class LeastPenalized:
    """Minimize ``r - λ u`` over all level vectors.

    The objective is not monotone in the levels, so neither BTDA nor ARUBA applies to it.

    Raises
    ------
    InputError
        If ``λ`` is negative or not finite.
    """

    trade: float

    def __post_init__(self) -> None:
        if not 0 <= self.trade < np.inf:
            raise InputError(f"λ of risk - λ · utility must be finite and not negative. Got {self.trade}.")

    def value(self, risk: FloatArray, utility: FloatArray) -> FloatArray:
        """What is minimized, shape (n,)."""
        return risk - self.trade * utility

    def admits(self, risk: FloatArray, utility: FloatArray) -> BoolArray:
        """All level vectors, shape (n,)."""
        del utility
        return np.ones(len(risk), dtype=np.bool_)

    def prefers(self, one: Valued, than: Valued) -> bool:
        """Whether the first of two level vectors is better."""
        mine, other = one[0] - self.trade * one[1], than[0] - self.trade * than[1]
        if np.isinf(mine) or np.isinf(other):
            if mine != other:
                return mine < other
        elif abs(mine - other) > TOLERANCE * max(1.0, abs(other)):
            return mine < other
        return better(*one, than)

    def ahead(
        self, risk: FloatArray, utility: FloatArray, than_risk: FloatArray, than_utility: FloatArray
    ) -> BoolArray:
        """Where one of two level vectors is better in numbers, shape (n,)."""
        mine, other = self.value(risk, utility), self.value(than_risk, than_utility)
        above, level = _greater(-mine, -other)
        below, alike = _less(risk, than_risk)
        return above | (level & (below | (alike & _greater(utility, than_utility)[0])))


@dataclass(frozen=True)
class GreatestAggregate:
    """Maximize ``λ/r + u^κ`` (F12 ch. 5).

    A record whose risk is 0 as it is, is released as it is: it loses nothing and gains nothing. Of any other a level
    vector of risk 0 has no ``1/r``, which would be infinite. It is no candidate (``exclude``); or (``floor``) what
    makes its risk 0 counts as the least that does not: a ``Φ`` of 0 as the record's smallest positive ``Φ`` on its
    lattice, and, under risk model III, ``ρ_θ = N_θ`` rows as ``N_θ - 1``, by :func:`least_positive_risk`.

    Attributes
    ----------
    trade_off : float
        ``λ >= 0``, finite.
    kappa : float
        ``κ >= 0``, finite; ``0^0`` is 1.
    zero_phi : {"exclude", "floor"}

    Raises
    ------
    InputError
        If λ or κ is negative or not finite.

    Notes
    -----
    Whoever enumerates needs nothing else: any κ, risk model and form of sensitivity will do, and a risk over several
    dictionaries. The minimum cuts of :mod:`privrisk_spark.kernels.search.aggregate` need ``ρ/Φ`` with a sum ``Φ`` and
    an integer κ, and have the same rule for ties.
    """

    trade_off: float
    kappa: float = 1.0
    zero_phi: Literal["exclude", "floor"] = "exclude"

    def __post_init__(self) -> None:
        for name, number in (("λ", self.trade_off), ("κ", self.kappa)):
            if not 0 <= number < np.inf:
                raise InputError(f"{name} of λ / risk + utility^κ must be finite and not negative. Got {number}.")

    def value(self, risk: FloatArray, utility: FloatArray) -> FloatArray:
        """What is maximized, shape (n,); infinite where the risk is 0 and λ is not."""
        with np.errstate(divide="ignore", over="ignore"):
            worth: FloatArray = utility**self.kappa
            return worth if self.trade_off == 0 else self.trade_off / risk + worth

    def admits(self, risk: FloatArray, utility: FloatArray) -> BoolArray:
        """Which level vectors but the record as it is are candidates, shape (n,)."""
        del utility
        return risk > 0

    def reaches(self, value: FloatArray, highest: FloatArray) -> BoolArray:
        """Where a value is at least another, within the tolerance, shape (n,)."""
        enough: BoolArray = value >= highest * (1 - TOLERANCE)
        return enough

    def more_useful(self, utility: FloatArray, than: FloatArray) -> BoolArray:
        """Where, of two equal values, one is preferred for its utility, shape (n,)."""
        more: BoolArray = utility > than + TOLERANCE * np.maximum(1.0, utility)
        return more


def least_positive_risk(
    model: RiskModel,
    sensitivity: FloatArray,
    consistent: LongArray,
    *,
    dictionary_rows: int | LongArray,
    least_sensitivity: FloatArray,
) -> FloatArray:
    """Risk of level vectors whose risk is 0, with the least positive of what makes it so.

    Parameters
    ----------
    model : {"I", "II", "III"}
    sensitivity : ndarray of float64, shape (n,)
        ``Φ``.
    consistent : ndarray of int64, shape (n,)
        ``ρ``.
    dictionary_rows : int or ndarray of int64, shape (n,)
        ``N``.
    least_sensitivity : ndarray of float64, shape (n,)
        Smallest positive ``Φ`` of each record; infinity where there is none.

    Returns
    -------
    ndarray of float64, shape (n,)
        A ``Φ`` of 0 counts as the smallest positive one; under model III, ``ρ = N`` as ``N - 1``, the most that leaves
        a surprisal. Where ``N`` is 1 that is none, and the risk 0.
    """
    if model == "III":
        consistent = np.where(consistent == dictionary_rows, consistent - 1, consistent)
    phi = np.where(sensitivity > 0, sensitivity, least_sensitivity)
    return identification_risk(model, phi, consistent, dictionary_rows=dictionary_rows)


Objective = LeastRisk | GreatestUtility | LeastPenalized
"""What branch and bound finds."""

AnyObjective = Objective | GreatestAggregate
"""What enumeration finds."""


def preferred(
    objective: Objective,
    best: Valued | None,
    levels: LongArray,
    risk: FloatArray,
    utility: FloatArray,
) -> Valued | None:
    """Best of the best so far and of the level vectors that satisfy the constraint.

    Parameters
    ----------
    objective : LeastRisk or GreatestUtility or LeastPenalized
    best : (risk, utility, levels) or None
    levels : ndarray of int64, shape (n, k)
    risk, utility : ndarray of float64, shape (n,)

    Returns
    -------
    (risk, utility, levels) or None
    """
    admitted = np.flatnonzero(objective.admits(risk, utility))
    if not len(admitted):
        return best
    # Only those whose value comes near the best can win.
    values = objective.value(risk, utility)[admitted]
    loss = -values if isinstance(objective, GreatestUtility) else values
    least = float(loss.min())
    near = admitted[loss <= least + 1e-9 * abs(least) + 1e-11]
    near = near[np.lexsort(levels[near].T[::-1])]
    # A population that has converged holds one node many times.
    again = (levels[near[1:]] == levels[near[:-1]]).all(axis=1)
    for j in near[np.concatenate([[True], ~again])].tolist():
        one = (float(risk[j]), float(utility[j]), tuple(levels[j].tolist()))
        if best is None or objective.prefers(one, best):
            best = one
    return best
