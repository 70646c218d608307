"""Access control (F12 §7.4): which level ``A_ijk`` of user i's attribute k user j sees.

Here levels count the other way round, as in §7.4: 0 shows nothing, ``g_k`` everything. Loss and utility are sums over
entries e = (i, j, k): ``L(A) = Σ a_e A_e`` with ``a_e = f(T_ij) Φ_ik``, and ``U(A) = Σ b_e A_e`` with ``b_e = Ψ_ik``.
Levels enter as numbers, so both are linear in every entry and neither concave nor convex in any narrower sense: an
entry's worth per level is the same from its first level to its last.

* ``min L - λU`` separates: an entry is shown whole where ``λb > a`` and not at all elsewhere. Exact.
* ``max U s.t. L <= c`` and ``min L s.t. U >= c`` are bounded integer knapsacks. :func:`solve` solves those of a user or
  a pair exactly. For whole networks there are the linear relaxations: they take entries in the order of ``b/a``, and at
  most one is not whole (Dantzig 1957). Rounded to a whole level, only that entry can be worth less than in the
  relaxation, by less than its last level: the gap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.network.kernels.knapsack import STATES, knapsack
from privrisk_spark.kernels.arrays import FloatArray, LevelArray, LongArray, WordArray
from privrisk_spark.kernels.numeric.exact_sums import UNIT_BITS, weighted_total
from privrisk_spark.kernels.numeric.rational import round_down, round_up

Problem = Literal["most-utility", "least-loss"]

LAST = np.uint64(2**64 - 1)
"""Place of entries that are never shown."""

_INFINITE = 0x7FF0000000000000
"""Bits of the float64 infinity, the largest of all that are not negative."""


@dataclass(frozen=True, eq=False)
class Entries:
    """What may be shown.

    Attributes
    ----------
    loss : ndarray of float64, shape (m,)
        ``a_e``, per level; non-negative, finite.
    utility : ndarray of float64, shape (m,)
        ``b_e``, per level; likewise.
    tops : ndarray of int8, shape (m,)
        ``g_e >= 0``.
    """

    loss: FloatArray
    utility: FloatArray
    tops: LevelArray

    def __post_init__(self) -> None:
        if not len(self.loss) == len(self.utility) == len(self.tops):
            raise InternalError("there must be a loss, a utility and a top per entry")
        for name, values in (("losses", self.loss), ("utilities", self.utility)):
            if not ((values >= 0) & (values < np.inf)).all():
                raise InternalError(f"{name} must be finite and at least 0")
        if (self.tops < 0).any():
            raise InternalError("tops must be at least 0")

    def part(self, rows: LongArray | slice) -> Entries:
        """Some of the entries."""
        return Entries(self.loss[rows], self.utility[rows], self.tops[rows])

    def places(self) -> WordArray:
        """uint64 (m,): the place of each entry by descending ``b/a``; equal for ratios that are equal in float64.

        Entries that are never shown, of no utility or no level, have the last place of all, :data:`LAST`.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = self.utility / self.loss
        shown = (self.utility > 0) & (self.tops > 0)
        bits = np.where(shown, ratio, 0.0).view(np.uint64)
        return np.where(shown, np.uint64(_INFINITE) - bits, LAST)


@dataclass(frozen=True, eq=False)
class Access:
    """What is shown, and what is proved about it.

    Attributes
    ----------
    levels : ndarray of int8, shape (m,)
    loss, utility : float
        ``L(A)`` and ``U(A)``.
    bound : float
        No admissible A does better: at most this utility, or at least this loss.
    gap : float
        Of the figure that is optimized to the bound; 0 where the answer is proved.
    """

    levels: LevelArray
    loss: float
    utility: float
    bound: float
    gap: float


def lagrangian(entries: Entries, trade_off: float) -> LevelArray:
    """Minimize ``L - λU``; exact, and of equals the one that shows less.

    Parameters
    ----------
    trade_off : float
        ``λ >= 0``.

    Returns
    -------
    ndarray of int8, shape (m,)
    """
    if not 0 <= trade_off < np.inf:
        raise InputError(f"sharing.lambda: must be finite and at least 0, not {trade_off:g}.")
    return np.where(trade_off * entries.utility > entries.loss, entries.tops, 0).astype(np.int8)


def most_utility(entries: Entries, most_loss: float) -> Access:
    """Maximize U subject to ``L <= c``: the relaxation, rounded down.

    Parameters
    ----------
    entries : Entries
        Entries of equal ``b/a`` are taken in the order given.
    most_loss : float
        ``c >= 0``.
    """
    _check_limit(most_loss)
    order, limit = _order(entries), Fraction(most_loss)
    whole = _first(order, lambda n: _sum(entries.loss, entries, order[:n]) > limit)
    levels, spent, found = _shown(entries, order[:whole])
    bound = found
    if whole < len(order):
        e = int(order[whole])
        left = (limit - spent) / Fraction(float(entries.loss[e]))
        levels[e] = int(left)
        bound += left * Fraction(float(entries.utility[e]))
        found += int(left) * Fraction(float(entries.utility[e]))
        spent += int(left) * Fraction(float(entries.loss[e]))
    return Access(levels, float(spent), float(found), round_up(bound), round_up(bound - found))


def solve(entries: Entries, problem: Problem, limit: float, *, most_states: int = STATES) -> Access:
    """Solve one of the two knapsacks exactly, if that takes no more than some combinations.

    Parameters
    ----------
    problem : {"most-utility", "least-loss"}
        The second one hides as much loss as the utility that may be missing allows, which is the first one again.
    limit : float
        The most loss, or the least utility.
    most_states : int
        As of :func:`~privrisk_spark.extensions.network.kernels.knapsack.knapsack`.

    Raises
    ------
    InputError
        If showing everything has less utility.
    """
    _check_limit(limit)
    loss, utility, tops = entries.loss, entries.utility, entries.tops
    if problem == "most-utility":
        packed = knapsack(loss, utility, tops, Fraction(limit), most_states=most_states)
        levels, bound = packed.levels, round_up(packed.bound)
    else:
        tops = np.where(utility > 0, tops, 0).astype(np.int8) if limit else np.zeros_like(tops)
        missing = sum_of(utility, tops) - Fraction(limit)
        if missing < 0:
            raise unreachable(limit)
        packed = knapsack(utility, loss, tops, missing, most_states=most_states)
        levels, bound = tops - packed.levels, round_down(sum_of(loss, tops) - packed.bound)
    gap = round_up(packed.bound - packed.worth)
    return Access(levels, float(sum_of(loss, levels)), float(sum_of(utility, levels)), bound, gap)


def most_utility_of_each(
    loss: FloatArray, utility: FloatArray, tops: LevelArray, most_loss: float, *, at_least: FloatArray
) -> tuple[LevelArray, FloatArray]:
    """Maximize U of each of many pairs subject to ``L <= c``, of losses that are known within bounds.

    Parameters
    ----------
    loss : ndarray of float64, shape (n, k)
        The most an entry may cost: the limit is held by these.
    utility : ndarray of float64, shape (n, k)
    tops : ndarray of int8, shape (n, k)
    most_loss : float
        ``c >= 0``.
    at_least : ndarray of float64, shape (n, k)
        The least it costs.

    Returns
    -------
    levels : ndarray of int8, shape (n, k)
    gap : ndarray of float64, shape (n,)
        To the best by the least costs, which is none if that keeps the limit by the greatest ones.
    """
    _check_limit(most_loss)
    levels, gap = np.where(utility > 0, tops, 0).astype(np.int8), np.zeros(len(loss))
    limit = Fraction(most_loss)
    # Where everything fits, but for rounding, there is nothing to choose.
    for p in np.flatnonzero((loss * levels).sum(axis=1) * (1 + 1e-12) > most_loss).tolist():
        best = found = knapsack(at_least[p], utility[p], tops[p], limit)
        if (at_least[p] != loss[p]).any() and sum_of(loss[p], best.levels) > limit:
            found = knapsack(loss[p], utility[p], tops[p], limit)
        levels[p], gap[p] = found.levels, round_up(best.bound - found.worth)
    return levels, gap


def _check_limit(limit: float) -> None:
    if not 0 <= limit < np.inf:
        raise InputError(f"sharing.limit: must be finite and at least 0, not {limit:g}.")


def _order(entries: Entries) -> LongArray:
    """Entries that may be shown, by descending ratio."""
    places = entries.places()
    order = np.argsort(places, kind="stable")
    return order[: int((places != LAST).sum())]


def _sum(values: FloatArray, entries: Entries, rows: LongArray) -> Fraction:
    """Exact sum with all levels shown."""
    return Fraction(weighted_total(values[rows], entries.tops[rows].astype(np.int64)), 1 << UNIT_BITS)


def _first(order: LongArray, reached: Callable[[int], bool]) -> int:
    """Least n in ``[0, len(order))`` for which the first n + 1 entries have reached a limit; else ``len(order)``."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        if reached(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


def _shown(entries: Entries, rows: LongArray) -> tuple[LevelArray, Fraction, Fraction]:
    """Levels with some entries shown whole, and exact loss and utility."""
    levels = np.zeros(len(entries.tops), dtype=np.int8)
    levels[rows] = entries.tops[rows]
    return levels, _sum(entries.loss, entries, rows), _sum(entries.utility, entries, rows)


def least_loss(entries: Entries, least_utility: float) -> Access:
    """Minimize L subject to ``U >= c``: the relaxation, rounded up.

    Parameters
    ----------
    entries : Entries
        Entries of equal ``b/a`` are taken in the order given.
    least_utility : float
        ``c``.

    Raises
    ------
    InputError
        If showing everything has less utility.
    """
    _check_limit(least_utility)
    order, floor = _order(entries), Fraction(least_utility)
    whole = _first(order, lambda n: _sum(entries.utility, entries, order[:n]) >= floor) if floor > 0 else 0
    if floor > 0 and whole == len(order):
        raise unreachable(least_utility)
    levels, lost, gained = _shown(entries, order[:whole])
    bound = lost
    if gained < floor:
        e = int(order[whole])
        left = (floor - gained) / Fraction(float(entries.utility[e]))
        shown = -int(-left // 1)
        levels[e] = shown
        bound += left * Fraction(float(entries.loss[e]))
        lost += shown * Fraction(float(entries.loss[e]))
        gained += shown * Fraction(float(entries.utility[e]))
    return Access(levels, float(lost), float(gained), round_down(bound), round_up(lost - bound))


def unreachable(least_utility: float) -> InputError:
    """The error of a utility that showing everything does not reach."""
    return InputError(f"sharing.utility: {least_utility:g} is more than all there is to show is worth; ask for less.")


def sum_of(values: FloatArray, levels: LevelArray) -> Fraction:
    """Return the exact sum of values times levels.

    Parameters
    ----------
    values : ndarray of float64, shape (m,)
    levels : ndarray of int8, shape (m,)
    """
    return Fraction(weighted_total(values, levels.astype(np.int64)), 1 << UNIT_BITS)
