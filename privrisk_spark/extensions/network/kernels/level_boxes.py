"""Boxes of one pair's level vectors: what is better in them, by bounds and by division.

Status: *proved*, by these arguments.

* For one number of friends n the function ``λn/Φ + u^κ`` is convex in (Φ, u) for κ = 0 and κ >= 1. Every level vector
  of a box lies in the polygon that the lines ``u - rΦ <= max (u - rΦ)``, a sum of maxima of single attributes, cut out
  for a few slopes r. So with ``n = ξ(top of the box)`` no f of the box exceeds the largest value at a corner of it.
* Let α be the best value known. ``Φ(u^κ - α)`` is supermodular: what raising one attribute gains at the bottom of a box
  it gains everywhere, and what lowering one gains at its top. ξ is supermodular under ``all``; under ``any`` it is
  submodular, and what raising gains at the top, or lowering at the bottom, it gains everywhere. Levels that lose
  against a higher one at the bottom, or against a lower one at the top, hold nothing as good as α.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.extensions.network.kernels.pair_lattice import (
    Best,
    Pair,
    all_but_one,
    ascend,
    before,
    count,
    counts_around,
    offer,
    power,
    total,
)
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.machine_code import compiled

_ROUNDING = 1e-14
"""Bound on the relative error of a sum of up to 90 terms."""


@compiled
def corner_boxes(pair: Pair) -> tuple[LongArray, LongArray, FloatArray]:
    """Bottoms, tops and bases of disjoint boxes that hold all candidates.

    Each box of ``Φ > 0`` holds the level vectors whose first attribute of positive weight is a certain one, in the
    order of ``1/r`` at its top; the last box, if there is a φ, those of ``Φ = 0``.
    """
    a = len(pair.heights)
    zero = np.zeros(a, dtype=np.int64)
    everywhere = True
    for i in range(a):
        while zero[i] <= pair.heights[i] and pair.weights[i, zero[i]] > 0.0:
            zero[i] += 1
        everywhere = everywhere and zero[i] <= pair.heights[i]
    los, his, bases = np.zeros((a + 1, a), dtype=np.int64), np.zeros((a + 1, a), dtype=np.int64), np.zeros(a + 1)
    if not everywhere:
        his[0] = pair.heights
        return los[:1], his[:1], bases[:1]
    counts = np.empty((a, pair.weights.shape[1]))
    counts_around(pair, pair.heights, counts)
    worth = np.full(a, np.inf)
    for i in range(a):
        if zero[i] > 0:
            worth[i] = counts[i, zero[i] - 1] / pair.weights[i, zero[i] - 1]
    n = 0
    bottom = np.zeros(a, dtype=np.int64)
    # A stable order: the boxes must be the same on every machine.
    for i in np.argsort(worth, kind="mergesort"):
        if zero[i] > 0:
            los[n] = bottom
            his[n] = pair.heights
            his[n, i] = zero[i] - 1
            n += 1
            bottom[i] = zero[i]
    if pair.phi > 0.0:
        los[n], his[n], bases[n] = zero, pair.heights, pair.phi
        n += 1
    return los[:n], his[:n], bases[:n]


@compiled
def shrink(pair: Pair, lo: LongArray, hi: LongArray, base: float, alpha: float) -> None:
    """Cut a box, in place, to a part that holds all of it with ``f >= α``, if there is any.

    ``base`` is what is added to Φ: φ in a box of ``Φ = 0``.
    """
    a = len(lo)
    counts = np.empty((2, a, pair.weights.shape[1]))
    others, worth = np.empty((2, a)), np.empty((2, a))
    values = np.empty(pair.weights.shape[1])
    changed = True
    while changed:
        changed = False
        for end in range(2):
            corner = lo if end == 0 else hi
            counts_around(pair, corner, counts[1 - end if pair.any_of else end])
            all_but_one(pair.weights, corner, others[end])
            all_but_one(pair.utilities, corner, worth[end])
        phi, utility = base + total(pair.weights, lo), total(pair.utilities, lo)
        # No term of a gain is larger.
        size = pair.trade_off * len(pair.rows) + phi * (power(utility, pair.kappa) + alpha)
        slack = TOLERANCE * size
        for i in range(a):
            low, high = lo[i], hi[i]
            if low == high:
                continue
            for end in range(2):
                most = -np.inf
                for s in range(low, high + 1):
                    here = base + others[end, i] + pair.weights[i, s]
                    here *= power(worth[end, i] + pair.utilities[i, s], pair.kappa) - alpha
                    values[s] = here + pair.trade_off * counts[end, i, s]
                    most = max(most, values[s])
                if end == 0:
                    s = low
                    while values[s] < most - slack:
                        s += 1
                    if s > lo[i]:
                        lo[i] = s
                        changed = True
                else:
                    s = high
                    while values[s] < most - slack:
                        s -= 1
                    s = max(s, lo[i])
                    if s < hi[i]:
                        hi[i] = s
                        changed = True


@compiled
def bound(pair: Pair, lo: LongArray, hi: LongArray, base: float, enough: float) -> float:
    """What f cannot exceed in a box; see the module's docstring. The first bound below ``enough`` will do."""
    highest = base + total(pair.weights, lo)
    least = base + total(pair.weights, hi)
    most = total(pair.utilities, lo)
    reward = pair.trade_off * float(count(pair, hi))
    if least <= 0.0:
        return np.inf
    n = len(pair.slopes)
    simple = reward / least + power(most, pair.kappa)
    if n == 0 or base > 0.0 or simple < enough:
        return simple
    reach = np.zeros(n)
    here = np.empty(n)
    for i in range(len(lo)):
        here[:] = pair.reach[i, lo[i]]
        for s in range(lo[i] + 1, hi[i] + 1):
            for t in range(n):
                here[t] = max(here[t], pair.reach[i, s, t])
        reach += here
    for t in range(n):
        reach[t] += _ROUNDING * (most + pair.slopes[t] * highest)
    # Corners: where u stops growing with Φ, where two lines meet, where Φ is least.
    found = 0.0
    for t in range(n + 1):
        if t == 0:
            phi, slope, height = (most - reach[0]) / pair.slopes[0], pair.slopes[0], reach[0]
        elif t < n:
            phi = (reach[t - 1] - reach[t]) / (pair.slopes[t] - pair.slopes[t - 1])
            slope, height = pair.slopes[t - 1], reach[t - 1]
        else:
            phi, slope, height = least, pair.slopes[n - 1], reach[n - 1]
        phi = min(max(phi, least), highest)
        utility = min(max(height + slope * phi, 0.0), most)
        found = max(found, reward / phi + power(utility, pair.kappa))
    return min(found, simple)


@compiled
def loses(pair: Pair, best: Best, most: float, lo: LongArray) -> bool:
    """Whether a box with this bound and bottom holds nothing that is better, or as good and before the best."""
    highest = best.figures[2]
    if most < highest * (1.0 - TOLERANCE):
        return True
    if most > highest * (1.0 + TOLERANCE):
        return False
    utility, slack = total(pair.utilities, lo), TOLERANCE * max(1.0, best.figures[1])
    if utility < best.figures[1] - slack:
        return True
    return utility <= best.figures[1] + slack and not before(lo, best.levels)


@compiled
def by_boxes(pair: Pair, best: Best, most_boxes: int) -> tuple[float, int, bool]:
    """Divide boxes until nothing in them is better, or as good and before the best.

    Returns what f cannot exceed, how many boxes were looked at, and whether none is left.

    What is cut off a box is worth less than something that is left, but by ``Φ(f - α)``, not by f. So it is settled
    when nothing that is left is better than α; where something is, the box is begun again. Of a box that is not
    settled, the bound is that of the box before anything was cut off.
    """
    a = len(pair.heights)
    los, his, bases = corner_boxes(pair)
    # A box has levels enough for so many on the stack at once, as each division leaves one part behind.
    size = int(pair.heights.sum()) + 2
    lo_stack, hi_stack = np.empty((size, a), dtype=np.int64), np.empty((size, a), dtype=np.int64)
    claims = np.empty(size)
    weight, worth = total(pair.weights, los[0]), max(total(pair.utilities, los[0]), 1e-300)
    left, visited, settled = -np.inf, 0, True
    for box in range(len(los)):
        base = bases[box]
        better = True
        while better:
            better = False
            alpha = best.figures[2]
            lo_stack[0], hi_stack[0], claims[0] = los[box], his[box], np.inf
            n = 1
            while n > 0:
                n -= 1
                lo, hi = lo_stack[n].copy(), hi_stack[n].copy()
                most = bound(pair, lo, hi, base, best.figures[2] * (1.0 - TOLERANCE))
                claim = min(claims[n], most) if claims[n] == np.inf else claims[n]
                if loses(pair, best, most, lo):
                    continue
                if visited >= most_boxes:
                    left, settled = max(left, claim), False
                    continue
                visited += 1
                shrink(pair, lo, hi, base, alpha)
                better = offer(pair, best, lo) or better
                better = offer(pair, best, hi) or better
                if better:
                    ascend(pair, best)
                    break
                if (lo == hi).all() or loses(pair, best, bound(pair, lo, hi, base, alpha * (1.0 - TOLERANCE)), lo):
                    continue
                attribute, split, first_above = division(pair, best, lo, hi, weight, worth)
                for second in range(2):
                    lo_stack[n], hi_stack[n], claims[n] = lo, hi, claim
                    if (second == 1) == first_above:
                        lo_stack[n, attribute] = split + 1
                    else:
                        hi_stack[n, attribute] = split
                    n += 1
    return max(left, best.figures[2]), visited, settled


@compiled
def division(
    pair: Pair, best: Best, lo: LongArray, hi: LongArray, weight: float, worth: float
) -> tuple[int, int, bool]:
    """Attribute and last level below at which to divide a box, and which part to look at first.

    Where Φ and u fall the most; in the middle, or, with the best level vector inside, next to it: what is cut off then
    often loses at once.
    """
    inside = True
    attribute, fall = -1, -1.0
    for i in range(len(lo)):
        inside = inside and lo[i] <= best.levels[i] <= hi[i]
        if lo[i] < hi[i]:
            here = (pair.weights[i, lo[i]] - pair.weights[i, hi[i]]) / weight
            here += (pair.utilities[i, lo[i]] - pair.utilities[i, hi[i]]) / worth
            if here > fall:
                attribute, fall = i, here
    if not inside:
        return attribute, (lo[attribute] + hi[attribute]) // 2, True
    if best.levels[attribute] < hi[attribute]:
        return attribute, best.levels[attribute], True
    return attribute, best.levels[attribute] - 1, False
