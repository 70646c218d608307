"""One pair's level vectors: what they count, cost and are worth, and the best of those looked at.

The functions are compiled (:mod:`privrisk_spark.machine_code`). What is maximized says
:mod:`~privrisk_spark.extensions.network.kernels.modified_aggregate`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LevelArray, LongArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.machine_code import compiled

SLOPES = 16
"""Directions of the polygon that bounds Φ and u; more make the bound tighter and dearer. Does not change a result."""


class Pair(NamedTuple):
    """One pair's problem; made by :func:`pair_of`.

    Attributes
    ----------
    heights : ndarray of int64, shape (a,)
        Of the attributes that count, all positive.
    weights, utilities : ndarray of float64, shape (a, H + 1)
    rows : ndarray of int8, shape (m, a)
        Agreements of the friends.
    any_of : bool
        Whether one consistent attribute is enough.
    phi : float
        What stands for a Φ of 0; 0 if such level vectors are no candidates.
    slopes : ndarray of float64, shape (t,)
        Ascending, positive; may be empty.
    reach : ndarray of float64, shape (a, H + 1, t)
        ``d_i(s) - r w_i(s)``.
    """

    heights: LongArray
    weights: FloatArray
    utilities: FloatArray
    rows: LevelArray
    any_of: bool
    trade_off: float
    kappa: float
    phi: float
    slopes: FloatArray
    reach: FloatArray


class Best(NamedTuple):
    """The best level vector so far, changed in place.

    Attributes
    ----------
    levels : ndarray of int64, shape (a,)
    figures : ndarray of float64, shape (3,)
        Its f and u, and the highest f seen.
    """

    levels: LongArray
    figures: FloatArray


@compiled
def pair_of(
    heights: LevelArray,
    weights: FloatArray,
    utilities: FloatArray,
    rows: LevelArray,
    trade_off: float,
    kappa: float,
    any_of: bool,
    floor: bool,
) -> tuple[Pair, LongArray]:
    """One pair's problem, and which attributes count in it.

    Parameters
    ----------
    heights : ndarray of int8, shape (k,)
    weights, utilities : ndarray of float64, shape (k, H + 1)
    rows : ndarray of int8, shape (m, k)
    any_of, floor : bool
        Whether one consistent attribute is enough, and Φ = 0 stands for φ.
    """
    attributes = np.flatnonzero(heights)
    a, m = len(attributes), len(rows)
    of_heights = heights[attributes].astype(np.int64)
    of_weights, of_utilities = weights[attributes], utilities[attributes]
    of_rows = np.empty((m, a), dtype=np.int8)
    for row in range(m):
        for i in range(a):
            of_rows[row, i] = rows[row, attributes[i]]
    phi = 0.0
    flattest, steepest = np.inf, 0.0
    for i in range(a):
        for s in range(of_heights[i] + 1):
            if of_weights[i, s] > 0.0 and (phi == 0.0 or of_weights[i, s] < phi):
                phi = of_weights[i, s]
            if s > 0:
                down = of_weights[i, s - 1] - of_weights[i, s]
                lost = of_utilities[i, s - 1] - of_utilities[i, s]
                if down > 0.0 and lost > 0.0:
                    flattest, steepest = min(flattest, lost / down), max(steepest, lost / down)
    n = 0 if steepest == 0.0 or steepest == np.inf else (SLOPES if steepest > flattest * 1.01 else 1)
    slopes = np.empty(n)
    for t in range(n):
        slopes[t] = flattest * (steepest / flattest) ** (t / max(n - 1, 1))
    reach = np.empty((a, weights.shape[1], n))
    for i in range(a):
        for s in range(of_heights[i] + 1):
            for t in range(n):
                reach[i, s, t] = of_utilities[i, s] - slopes[t] * of_weights[i, s]
    pair = Pair(
        of_heights, of_weights, of_utilities, of_rows, any_of, trade_off, kappa, phi if floor else 0.0, slopes, reach
    )
    return pair, attributes


@compiled
def power(utility: float, kappa: float) -> float:
    """``u^κ`` with ``0^0 = 1``."""
    if kappa == 0.0:
        return 1.0
    if kappa == 1.0:
        return utility
    if kappa == 2.0:
        return utility * utility
    return float(utility**kappa)


@compiled
def count(pair: Pair, levels: LongArray) -> int:
    """ξ of a level vector."""
    # At its height an attribute is consistent with everyone.
    low = np.flatnonzero(levels < pair.heights)
    if len(low) < len(levels) if pair.any_of else len(low) == 0:
        return len(pair.rows)
    found = 0
    for row in range(len(pair.rows)):
        agreeing = not pair.any_of
        for i in low:
            if (pair.rows[row, i] <= levels[i]) == pair.any_of:
                agreeing = pair.any_of
                break
        if agreeing:
            found += 1
    return found


@compiled
def total(values: FloatArray, levels: LongArray) -> float:
    """Sum over the attributes, from the first to the last."""
    found = 0.0
    for i in range(len(levels)):
        found += values[i, levels[i]]
    return found


@compiled
def value(pair: Pair, consistent: float, sensitivity: float, utility: float) -> float:
    """``f``; minus infinity for what is no candidate."""
    if sensitivity <= 0.0:
        if pair.phi <= 0.0:
            return -np.inf
        sensitivity = pair.phi
    return pair.trade_off * (consistent / sensitivity) + power(utility, pair.kappa)


@compiled
def offer(pair: Pair, best: Best, levels: LongArray) -> bool:
    """Take a level vector if it is better; whether its f is."""
    utility = total(pair.utilities, levels)
    here = value(pair, float(count(pair, levels)), total(pair.weights, levels), utility)
    highest = best.figures[2]
    if here == -np.inf or here < highest * (1.0 - TOLERANCE):
        return False
    higher: bool = here > highest * (1.0 + TOLERANCE)
    highest = max(highest, here)
    best.figures[2] = highest
    if best.figures[0] >= highest * (1.0 - TOLERANCE):
        slack = TOLERANCE * max(1.0, best.figures[1])
        if utility < best.figures[1] - slack:
            return False
        if utility <= best.figures[1] + slack and not before(levels, best.levels):
            return False
    best.levels[:] = levels
    best.figures[0], best.figures[1] = here, utility
    return higher


@compiled
def before(one: LongArray, other: LongArray) -> bool:
    """Whether a level vector is lexicographically smaller."""
    for i in range(len(one)):
        if one[i] != other[i]:
            smaller: bool = one[i] < other[i]
            return smaller
    return False


@compiled
def counts_around(pair: Pair, levels: LongArray, found: FloatArray) -> None:
    """ξ wherever at most one attribute differs from a level vector, into float64 (a, H + 1)."""
    a = len(pair.heights)
    found[:a] = 0.0
    always = 0.0
    alone = np.zeros(a, dtype=np.int64)
    lonely = 0
    for row in range(len(pair.rows)):
        # Attributes that decide the row: the violated ones under all, the consistent ones under any; two settle it.
        deciding, which = 0, -1
        for i in range(a):
            if (pair.rows[row, i] <= levels[i]) == pair.any_of:
                deciding += 1
                which = i
                if deciding == 2:
                    break
        if deciding == 2:
            if pair.any_of:
                always += 1.0
        elif deciding == 1:
            found[which, pair.rows[row, which]] += 1.0
            alone[which] += 1
            lonely += 1
        else:
            for i in range(a):
                found[i, pair.rows[row, i]] += 1.0
    for i in range(a):
        running = always + (float(lonely - alone[i]) if pair.any_of else 0.0)
        for s in range(pair.heights[i] + 1):
            running += found[i, s]
            found[i, s] = running


@compiled
def all_but_one(values: FloatArray, levels: LongArray, found: FloatArray) -> None:
    """Sum of all other attributes' values, for every attribute, without subtraction: what is 0 stays 0."""
    running = 0.0
    for i in range(len(levels)):
        found[i] = running
        running += values[i, levels[i]]
    running = 0.0
    for i in range(len(levels) - 1, -1, -1):
        found[i] += running
        running += values[i, levels[i]]


@compiled
def ascend(pair: Pair, best: Best) -> None:
    """Change one attribute of the best level vector at a time while that makes f larger."""
    a = len(pair.heights)
    counts = np.empty((a, pair.weights.shape[1]))
    others, worth = np.empty(a), np.empty(a)
    while True:
        counts_around(pair, best.levels, counts)
        all_but_one(pair.weights, best.levels, others)
        all_but_one(pair.utilities, best.levels, worth)
        most, attribute, level = -np.inf, 0, 0
        for i in range(a):
            for s in range(pair.heights[i] + 1):
                here = value(pair, counts[i, s], others[i] + pair.weights[i, s], worth[i] + pair.utilities[i, s])
                if here > most:
                    most, attribute, level = here, i, s
        levels = best.levels.copy()
        levels[attribute] = level
        if not offer(pair, best, levels):
            return


@compiled
def nodes_of(pair: Pair, most: int) -> int:
    """Level vectors of a pair; ``most + 1`` if there are more than ``most``."""
    found = 1
    for i in range(len(pair.heights)):
        if found > most:
            break
        found *= pair.heights[i] + 1
    return min(found, most + 1)
