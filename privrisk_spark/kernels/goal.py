"""What a search over one record's lattice is to find (F12 eqs 4.1 to 4.3, 5.1), and its tie rule.

========================  ==========================================  ================================================
goal                      problem                                     ties
========================  ==========================================  ================================================
:class:`LeastRisk`        min r(x) subject to u(x) >= c      (4.2)    higher utility, then smallest level vector
:class:`GreatestUtility`  max u(x) subject to r(x) <= c      (4.1)    lower risk, then smallest level vector
:class:`LeastPenalized`   min r(x) - λ u(x)                  (4.3)    lower risk, higher utility, smallest level vector
========================  ==========================================  ================================================

"Smallest" is lexicographic. Two risks, a risk and its ceiling, two utilities, or a utility and its floor, count as
equal within :data:`privrisk_spark.kernels.lattice.TOLERANCE`; a penalized risk, within that times ``max(1, |·|)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.lattice import TOLERANCE, reaches
from privrisk_spark.kernels.record import better

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
Valued = tuple[float, float, Sequence[int]]
"""Risk, utility and levels of a level vector."""


@dataclass(frozen=True)
class LeastRisk:
    """Minimize the risk among level vectors of utility at least ``floor``."""

    floor: float

    def objective(self, risk: FloatArray, utility: FloatArray) -> FloatArray:
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
    """Where a utility is greater than another, and where both are equal."""
    slack = TOLERANCE * np.maximum(1.0, np.abs(than))
    above = one > than + slack
    return above, ~above & ~(one < than - slack)


@dataclass(frozen=True)
class GreatestUtility:
    """Maximize the utility among level vectors of risk at most ``ceiling``."""

    ceiling: float

    def objective(self, risk: FloatArray, utility: FloatArray) -> FloatArray:
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

    def objective(self, risk: FloatArray, utility: FloatArray) -> FloatArray:
        """What is minimized, shape (n,)."""
        return risk - self.trade * utility

    def admits(self, risk: FloatArray, utility: FloatArray) -> BoolArray:
        """All level vectors, shape (n,)."""
        del utility
        return np.ones(len(risk), dtype=np.bool_)

    def prefers(self, one: Valued, than: Valued) -> bool:
        """Whether the first of two level vectors is better."""
        mine, other = one[0] - self.trade * one[1], than[0] - self.trade * than[1]
        if abs(mine - other) > TOLERANCE * max(1.0, abs(other)):
            return mine < other
        return better(*one, than)

    def ahead(
        self, risk: FloatArray, utility: FloatArray, than_risk: FloatArray, than_utility: FloatArray
    ) -> BoolArray:
        """Where one of two level vectors is better in numbers, shape (n,)."""
        mine, other = self.objective(risk, utility), self.objective(than_risk, than_utility)
        above, level = _greater(-mine, -other)
        below, alike = _less(risk, than_risk)
        return above | (level & (below | (alike & _greater(utility, than_utility)[0])))


@dataclass(frozen=True)
class GreatestAggregate:
    """Maximize ``λ/r + u^κ`` (F12 ch. 5); see :mod:`privrisk_spark.kernels.aggregate` for its ties.

    Attributes
    ----------
    trade_off : float
        ``λ``.
    kappa : float
    zero_phi : {"exclude", "floor"}
    """

    trade_off: float
    kappa: float = 1.0
    zero_phi: Literal["exclude", "floor"] = "exclude"


Goal = LeastRisk | GreatestUtility | LeastPenalized
"""What enumeration and branch and bound find."""

AnyGoal = Goal | GreatestAggregate
