"""Bounded integer knapsacks in exact arithmetic: max ``Σ b_e x_e`` subject to ``Σ a_e x_e <= c``, ``0 <= x_e <= g_e``.

Amounts are the float64 numbers as given, as integers in a common unit, so nothing is rounded. Status: *proved* if the
search ends within its limit of states, by these arguments.

* For a ratio ``p/q >= 0``, no x is worth more than ``c p/q + Σ g_e max(b_e - a_e p/q, 0)`` (Lagrange). The ratio is
  that of the entry at which the limit is reached in the order of ``b/a``: the bound of the linear relaxation.
* An x that shows an entry whole if ``d_e = q b_e - p a_e`` is positive, and not at all otherwise, loses nothing against
  that bound but its slack. Each level that differs loses ``|d_e|``, each unit of slack p. Entries of which one level
  loses more than an improvement may are fixed (Balas and Zemel 1980); what is left is usually a handful.
* Of the others all combinations are listed, without those that cost as much as another one and are worth no more
  (Nemhauser and Ullmann 1969), and without those that lose too much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LevelArray

STATES = 10_000
"""Combinations after which a search ends by default, some hundredths of a second. Decides what is proved."""


@dataclass(frozen=True, eq=False)
class Packed:
    """What a knapsack holds.

    Attributes
    ----------
    levels : ndarray of int8, shape (m,)
    worth, bound : Fraction
        ``Σ b_e x_e``, and what no x exceeds; equal if the answer is proved.
    """

    levels: LevelArray
    worth: Fraction
    bound: Fraction


class _Item(NamedTuple):
    """Entries of the same cost and worth."""

    cost: int
    worth: int
    top: int
    members: list[int]


_State = tuple[int, int, int, int, Any]
"""A combination: its cost, its worth less than 0, the item changed last, its levels, and the combination before."""


def knapsack(
    cost: FloatArray, worth: FloatArray, tops: LevelArray, limit: Fraction, *, most_states: int = STATES
) -> Packed:
    """Solve one knapsack.

    Parameters
    ----------
    cost, worth : ndarray of float64, shape (m,)
        ``a_e`` and ``b_e``; at least 0, finite.
    tops : ndarray of int8, shape (m,)
        ``g_e``.
    limit : Fraction
        ``c >= 0``.
    most_states : int
        Combinations after which the search ends with the best one so far.

    Returns
    -------
    Packed
        An entry of no worth is not packed. Of equals, the one found first; entries alike are filled from the first on.
    """
    costs, of_cost = _integers(cost)
    worths, of_worth = _integers(worth)
    space = math.floor(limit * of_cost)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = worth / cost
    items = _items(costs, worths, tops.tolist(), ratio.tolist(), space)
    step = math.gcd(*(item.worth for item in items))
    levels, spent, found, (p, q) = _greedy(items, space)
    # In units of 1/q of a worth: the bound, and what each level that differs from the relaxation loses against it.
    loses = [q * item.worth - p * item.cost for item in items]
    bound = p * space + sum(d * item.top for d, item in zip(loses, items, strict=True) if d > 0)
    best, ended = _search(items, loses, (spent, -found, -1, 0, None), space, bound, (p, q, step), most_states)
    if best[2] >= 0:
        levels = [item.top if d > 0 else 0 for d, item in zip(loses, items, strict=True)]
        found = -best[1]
        _, _, i, change, before = best
        while before is not None:
            levels[i] += change
            _, _, i, change, before = before
    packed = np.zeros(len(tops), dtype=np.int8)
    for item, level in zip(items, levels, strict=True):
        left = level
        for e in item.members:
            packed[e] = min(left, int(tops[e]))
            left -= int(packed[e])
    most = found if ended else bound // q // step * step
    return Packed(packed, Fraction(found, of_worth), Fraction(most, of_worth))


def _integers(values: FloatArray) -> tuple[list[int], int]:
    """Non-negative numbers as integers, and how many of their unit make one."""
    mantissa, exponent = np.frexp(values)
    there = values > 0
    least = min(int(exponent.min(initial=1024, where=there)) - 53, 0)
    shifts = np.where(there, exponent - 53 - least, 0).tolist()
    return [m << s for m, s in zip(np.ldexp(mantissa, 53).astype(np.int64).tolist(), shifts, strict=True)], 1 << -least


def _items(costs: list[int], worths: list[int], tops: list[int], ratio: list[float], space: int) -> list[_Item]:
    """Items that may be packed, those that cost nothing whole, in the order of worth over cost."""
    members: dict[tuple[int, int], list[int]] = {}
    for e, (a, b, g) in enumerate(zip(costs, worths, tops, strict=True)):
        if b and g and a <= space:
            members.setdefault((a, b), []).append(e)
    items = [
        _Item(a, b, min(top, space // a) if a else top, of)
        for (a, b), of in members.items()
        for top in (sum(tops[e] for e in of),)
    ]
    return sorted(items, key=lambda item: -ratio[item.members[0]])


def _greedy(items: list[_Item], space: int) -> tuple[list[int], int, int, tuple[int, int]]:
    """Take as much of each item as still fits; levels, cost, worth, and the ratio of the first that does not fit."""
    levels, left, found, ratio = [], space, 0, (0, 1)
    for item in items:
        level = min(item.top, left // item.cost) if item.cost else item.top
        if level < item.top and not ratio[0]:
            ratio = (item.worth, item.cost)
        levels.append(level)
        left -= level * item.cost
        found += level * item.worth
    return levels, space - left, found, ratio


def _search(
    items: list[_Item],
    loses: list[int],
    best: _State,
    space: int,
    bound: int,
    prices: tuple[int, int, int],
    most_states: int,
) -> tuple[_State, bool]:
    """Return the best combination, the given one if there is none better, and whether that is proved."""
    p, q, step = prices
    start = [item.top if d > 0 else 0 for d, item in zip(loses, items, strict=True)]
    core = sorted(range(len(items)), key=lambda i: abs(loses[i]))
    adds = [(item.top - x) * item.cost for item, x in zip(items, start, strict=True)]
    drops = [x * item.cost for item, x in zip(items, start, strict=True)]
    add, drop = sum(adds), sum(drops)
    spent = sum(x * item.cost for item, x in zip(items, start, strict=True))
    states: list[_State] = [(spent, -sum(x * item.worth for item, x in zip(items, start, strict=True)), -1, 0, None)]
    seen = 0
    for i in core:
        # What a better combination may lose at most.
        afford = bound - (step - best[1]) * q
        if afford < 0:
            return best, True
        item, d = items[i], abs(loses[i])
        if d > afford:
            break
        add, drop = add - adds[i], drop - drops[i]
        sign, room = (-1, start[i]) if start[i] else (1, item.top)
        most = min(room, afford // d) if d else room
        seen += len(states) * (most + 1)
        if seen > most_states:
            return best, False
        grown = list(states)
        for change in range(sign, sign * (most + 1), sign):
            a, b = change * item.cost, change * item.worth
            grown += [(state[0] + a, state[1] - b, i, change, state) for state in states]
        grown.sort(key=lambda state: state[:2])
        states, least = [], 1
        for state in grown:
            left, less = space - state[0], state[1]
            if less >= least or left + drop < 0:
                continue
            # Slack that no item left can fill is lost as well.
            if bound + q * less - p * min(left, add) > afford:
                continue
            states.append(state)
            least = less
            if left >= 0 and less < best[1]:
                best = state
    return best, True
