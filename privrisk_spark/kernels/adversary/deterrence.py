"""What deters a planned attack: the least penalty, the least group size, and thresholds under other parameters.

Source: Xia et al., Process-driven data privacy, CIKM 2015 (X15), §7.3 and Figures 8 and 10; the process is in
:mod:`privrisk_spark.kernels.adversary.process`. What is monotone, and what is not:

- *The penalty.* A plan loses no less under a higher penalty, so no ``Q`` and no payoff rises with it. An adversary
  starts only where the payoff, and goes on only where ``Q``, exceeds the tolerance; the fines that were paid by an
  exploit depend on the detections alone. So along every sequence of detections he stops no later, and ``P_reid`` never
  rises with the penalty, whatever the other parameters, whether he knows the group size or not. ``Q`` is continuous in
  the penalty, and stopping is ``Q <= tolerance``: the penalties that suffice are all from a least one on. It suffices
  that ``C_p >= G / d(0)``, as then the first exploit loses: ``Q <= γ (G - d(0) C_p)``.
- *The group size.* The payoff never rises with it, but ``P_reid`` may: once a first fine is paid, or detection grows,
  a larger group with some candidates exploited holds the person with a greater probability than a smaller one
  (where ``π < 1``). So a group size is taken as sufficient only if all larger ones are under the bound too.
- *The probability of detection.* Thresholds never rise with it. ``P_reid`` may where the number of fines is limited:
  the sooner all of them are paid, the sooner the adversary has nothing to lose.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError, listing, nearest
from privrisk_spark.kernels.adversary.process import (
    TOLERANCE,
    Attack,
    solve,
)
from privrisk_spark.kernels.adversary.risk import payoff_of_belief, reidentification_probability, risk
from privrisk_spark.kernels.arrays import FloatArray, LongArray

Statistic = Literal["mean", "max"]

SLACK = 1e-12
"""A risk meets a bound that it exceeds by no more than this share of it: rounding."""

_CHANGED: dict[str, Callable[[Attack, float], Attack]] = {
    "cost_access": lambda attack, value: replace(attack, cost_access=value),
    "cost_link": lambda attack, value: replace(attack, cost_link=value),
    "cost_exploit": lambda attack, value: replace(attack, cost_exploit=value),
    "penalty": lambda attack, value: replace(attack, penalty=value),
    "detection": lambda attack, value: attack.with_detection(value),
    "gain": lambda attack, value: replace(attack, gain=value),
    "prior": lambda attack, value: replace(attack, prior=value),
    "gamma": lambda attack, value: replace(attack, gamma=value),
}
SWEPT = tuple(_CHANGED)
"""Parameters that can be swept; ``detection`` is one probability for all exploits."""


@dataclass(frozen=True, eq=False)
class Table:
    """The records of a table, as far as an attack tells them apart.

    Attributes
    ----------
    group_sizes : ndarray of int64, shape (n,)
        Actual ones, at least 0; may repeat.
    counts : ndarray of int64, shape (n,)
        Records; at least 0, and at least one in all.
    losses : ndarray of float64, shape (n,)
        The publisher's loss by each of these records.
    rows, densities : ndarray of int64 and of float64, shape (n,), optional
        Both, if the adversary does not know group sizes: the binomial he believes them to follow.

    Raises
    ------
    InputError
        If shapes differ or a value is outside its range.
    """

    group_sizes: LongArray
    counts: LongArray
    losses: FloatArray
    rows: LongArray | None = None
    densities: FloatArray | None = None

    def __post_init__(self) -> None:
        if (self.rows is None) != (self.densities is None):
            raise InputError("The rows of the identified table and the densities are given both or not at all.")
        given = [self.counts, self.losses, *(a for a in (self.rows, self.densities) if a is not None)]
        if any(array.shape != self.group_sizes.shape for array in given):
            raise InputError("Group sizes, counts, losses, rows and densities must be of one length.")
        if (self.group_sizes < 0).any():
            raise InputError("A group size must be at least 0.")
        if (self.counts < 0).any() or not self.counts.any():
            raise InputError("Counts must be at least 0, and one of them at least 1.")
        if not ((self.losses >= 0) & (self.losses < np.inf)).all():
            raise InputError("A loss must be a finite number of at least 0.")

    def risk(self, probability: FloatArray, statistic: Statistic) -> float:
        """Return the mean or the greatest risk over the records, of one probability for each entry."""
        risks = risk(probability, self.losses)
        if statistic == "max":
            return float(risks[self.counts > 0].max())
        return math.fsum((risks * self.counts).tolist()) / int(self.counts.sum())

    def attacked(self, attack: Attack, statistic: Statistic) -> float:
        """Return the mean or the greatest risk under an attack."""
        if self.rows is None or self.densities is None:
            solution = solve(attack, int(self.group_sizes.max()))
            return self.risk(reidentification_probability(solution, self.group_sizes), statistic)
        # Small costs bound groups by far more than there are people.
        solution = solve(attack, int(max(self.rows.max(), self.group_sizes.max())))
        access = payoff_of_belief(solution, self.rows, self.densities) > TOLERANCE
        return self.risk(reidentification_probability(solution, self.group_sizes, access), statistic)


@dataclass(frozen=True)
class LeastPenalty:
    """The least penalty that deters.

    Attributes
    ----------
    penalty : float
        The least number of those a float64 can be that meets the bound; 0 if nothing need be threatened.
    risk : float
        Under this penalty, solved again.
    risk_below : float
        Under the next smaller number, solved again; above the bound. NaN if the penalty is 0.
    """

    penalty: float
    risk: float
    risk_below: float


def least_penalty(attack: Attack, table: Table, bound: float, statistic: Statistic = "max") -> LeastPenalty | None:
    """Return the least penalty under which the risk of a table is at most a bound.

    The risk never rises with the penalty, so it is bisected down to neighbouring numbers.

    Parameters
    ----------
    attack : Attack
        Its own penalty does not matter.
    bound : float
        On the mean or the greatest risk, in units of loss; at least 0.
    statistic : {"max", "mean"}

    Returns
    -------
    LeastPenalty or None
        None if no penalty suffices: no fine is ever paid, or no exploit that matters is ever detected.
    """
    _check(bound, statistic)

    def at(penalty: float) -> float:
        return table.attacked(replace(attack, penalty=penalty), statistic)

    none = at(0.0)
    if _meets(none, bound):
        return LeastPenalty(0.0, none, math.nan)
    detected = float(attack.detection(0))
    largest = float(np.finfo(np.float64).max)
    enough = 2 * attack.gain / detected if detected > attack.gain / largest * 4 else largest
    found = at(enough)
    if not _meets(found, bound):
        return None
    # the order of positive numbers is that of their bits as integers
    low, high = 0, int(np.float64(enough).view(np.int64))
    below = none
    while high - low > 1:
        middle = (low + high) // 2
        reached = at(float(np.int64(middle).view(np.float64)))
        if _meets(reached, bound):
            high, found = middle, reached
        else:
            low, below = middle, reached
    return LeastPenalty(float(np.int64(high).view(np.float64)), found, below)


@dataclass(frozen=True)
class LeastGroup:
    """The least group size that deters.

    Attributes
    ----------
    group_size : int
        The bound is met by groups of this size and by all larger ones; at least 1.
    risk : float
        The greatest one that groups of at least this size can bring about.
    first : int
        The least size of at least 1 to meet the bound where all smaller groups are made just as large; smaller than
        ``group_size`` where the risk rises again.
    """

    group_size: int
    risk: float
    first: int


def least_group(
    attack: Attack,
    table: Table,
    bound: float,
    statistic: Statistic = "max",
    *,
    accessed: bool = False,
    largest_group: int | None = None,
) -> LeastGroup | None:
    """Return the least group size to which smaller groups of a table must grow, so that its risk is at most a bound.

    Every record in a smaller group, or in none, is taken into a group of at least that size, and then counts with the
    greatest probability of any group at least as large as its own: so the answer holds however far groups grow.

    Parameters
    ----------
    table : Table
        Rows and densities must not be given: a belief changes with the group in a way not known here.
    bound : float
        On the mean or the greatest risk, in units of loss; at least 0.
    statistic : {"max", "mean"}
    accessed : bool, default False
        Count with adversaries who have accessed the identified table whatever it paid. On the safe side where they do
        not know the group sizes.
    largest_group : int, optional
        Largest group there can be; needed where no cost limits the groups worth attacking.

    Returns
    -------
    LeastGroup or None
        None if no size up to ``largest_group`` suffices.

    Raises
    ------
    InputError
        If the table has beliefs, or a group larger than ``largest_group``.
    """
    _check(bound, statistic)
    if table.rows is not None:
        raise InputError(
            "Where group sizes are not known to the adversary, count with access (accessed) without beliefs."
        )
    solution = solve(attack, largest_group)
    solution.within(table.group_sizes)
    # beyond the end of a complete table nothing is exploited
    end = len(solution.values) - (not solution.complete)
    sizes = np.arange(end + 1, dtype=np.int64)
    probability = reidentification_probability(
        solution, sizes, np.ones(len(sizes), dtype=np.bool_) if accessed else None
    )
    worst = np.maximum.accumulate(probability[::-1])[::-1]
    own = np.minimum(table.group_sizes, end)

    def grown(size: int, probabilities: FloatArray) -> float:
        return table.risk(probabilities[np.maximum(own, size)], statistic)

    met = (size for size in range(1, end + 1) if _meets(grown(size, worst), bound))
    group_size = next(met, None)
    if group_size is None:
        return None
    first = next(size for size in range(1, end + 1) if _meets(grown(size, probability), bound))
    return LeastGroup(group_size, grown(group_size, worst), first)


@dataclass(frozen=True, eq=False)
class Sweep:
    """Thresholds of the group size under values of one parameter (X15 Figure 10).

    Attributes
    ----------
    values : ndarray of float64, shape (n,)
    known : ndarray of int64, shape (n,)
        Least group size that an adversary who knows it does not attack; -1 if it is beyond the largest group.
    sunk : ndarray of int64, shape (n,)
        The same of one who has paid for access.
    """

    parameter: str
    values: FloatArray
    known: LongArray
    sunk: LongArray


def sweep(attack: Attack, parameter: str, values: Sequence[float], *, largest_group: int | None = None) -> Sweep:
    """Return the thresholds under values of one parameter, all others as they are.

    Parameters
    ----------
    parameter : str
        One of ``SWEPT``.
    largest_group : int, optional
        Needed where no cost limits the groups worth attacking.

    Raises
    ------
    InputError
        If there is no such parameter, or a value is outside its range.
    """
    if parameter not in _CHANGED:
        raise InputError(
            f"No parameter of a sweep is named '{parameter}'{nearest(parameter, SWEPT)}; there are: {listing(SWEPT)}."
        )
    solutions = [solve(_CHANGED[parameter](attack, float(value)), largest_group) for value in values]
    return Sweep(
        parameter=parameter,
        values=np.array(values, dtype=np.float64),
        known=_or_none([one.known_threshold for one in solutions]),
        sunk=_or_none([one.sunk_threshold for one in solutions]),
    )


def _or_none(thresholds: Sequence[int | None]) -> LongArray:
    return np.array([-1 if one is None else one for one in thresholds], dtype=np.int64)


def _check(bound: float, statistic: str) -> None:
    if not 0 <= bound < math.inf:
        raise InputError(f"The bound of the risk must be a finite number of at least 0. Got {bound}.")
    if statistic not in ("mean", "max"):
        raise InputError(f"The statistic of the risk must be mean or max. Got '{statistic}'.")


def _meets(found: float, bound: float) -> bool:
    return found <= bound * (1 + SLACK)
