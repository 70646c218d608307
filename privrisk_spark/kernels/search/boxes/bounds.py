"""Bounds of a box of level vectors, and its best one where the risk depends on the sum of weights alone.

What is proved of them is said in :mod:`privrisk_spark.kernels.search.branch_and_bound`.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray, WordArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.boxes.arrays import GREATEST_UTILITY, LEAST_RISK, Record, sum_of
from privrisk_spark.kernels.search.row_sets import bits_in
from privrisk_spark.machine_code import compiled

SLACK = 1e-13
"""Relative rounding error of a sum over attributes, generously."""

_CHOSEN = 2.0**-51
"""Rounding error of ``w - slope · d``, relative to ``slope · d``: by so much a level taken may not be the least."""


@compiled
def reached(record: Record, lo: LongArray, rows: WordArray, floor: float, rho: LongArray) -> None:
    """Count those of the rows whose join with ``lo`` reaches a utility."""
    rho[:] = 0
    slack = SLACK * max(1.0, abs(floor)) * len(lo)
    for word in range(len(rows)):
        left = rows[word]
        while left:
            lowest = left & (~left + np.uint64(1))
            row = word * 64 + bits_in(lowest - np.uint64(1))
            left ^= lowest
            total = 0.0
            for i in range(len(lo)):
                total += record.utilities[i, max(lo[i], record.rows.vectors[row, i])]
            if total >= floor - slack:
                for d in range(len(rho)):
                    rho[d] += record.rows.counts[d, row]


@compiled
def least_sum(record: Record, lo: LongArray, hi: LongArray, floor: float, chosen: LongArray) -> float:
    """Lower bound of the sum of weights in a box where the utility reaches ``floor``, which ``lo`` does.

    By the dual of the knapsack's linear relaxation: for every slope ``λ >= 0`` the sum is at least
    ``λ c + Σ_i min_s (w_i(s) - λ d_i(s))``, a concave function whose maximum is where the utility of the minimizers
    crosses c. Sets ``chosen`` to minimizers that reach it.
    """
    low, high = 0, len(record.slopes) - 1
    while low < high:
        middle = (low + high) // 2
        utility = 0.0
        for i in range(len(lo)):
            utility += record.utilities[i, record.cheapest[i, lo[i], hi[i], middle]]
        if utility >= floor:
            high = middle
        else:
            low = middle + 1
    best, highest = -np.inf, sum_of(record.utilities, lo)
    for slope in range(max(0, low - 1), low + 1):
        utility = total = 0.0
        for i in range(len(lo)):
            level = record.cheapest[i, lo[i], hi[i], slope]
            utility += record.utilities[i, level]
            total += record.weights[i, level]
            chosen[i] = level
        part = record.slopes[slope] * (floor - utility)
        # What may have been lost to rounding is given back.
        lost = SLACK * (total + record.slopes[slope] * (abs(floor) + utility))
        best = max(best, total + part - lost - _CHOSEN * record.slopes[slope] * highest)
    return best


@compiled
def most_utility(record: Record, lo: LongArray, hi: LongArray, affordable: float, chosen: LongArray) -> float:
    """Upper bound of the utility in a box where the sum of weights is at most ``affordable``, as it is at ``hi``.

    By the same dual: for every slope ``λ > 0`` the utility is at most
    ``(affordable - Σ_i min_s (w_i(s) - λ d_i(s))) / λ``. Sets ``chosen`` to minimizers that are affordable, if any.
    """
    low, high = 0, len(record.slopes) - 1
    while low < high:
        middle = (low + high + 1) // 2
        total = 0.0
        for i in range(len(lo)):
            total += record.weights[i, record.cheapest[i, lo[i], hi[i], middle]]
        if total <= affordable:
            low = middle
        else:
            high = middle - 1
    best, highest = np.inf, sum_of(record.utilities, lo)
    for slope in range(min(low + 1, len(record.slopes) - 1), low - 1, -1):
        utility = total = 0.0
        for i in range(len(lo)):
            level = record.cheapest[i, lo[i], hi[i], slope]
            utility += record.utilities[i, level]
            total += record.weights[i, level]
            chosen[i] = level
        if record.slopes[slope] > 0:
            rate = 1.0 / record.slopes[slope]
            bound = utility + (affordable - total) * rate
            lost = SLACK * (utility + (abs(affordable) + total) * rate)
            best = min(best, bound + lost + _CHOSEN * highest)
    return best


@compiled
def utility_bound(
    record: Record, lo: LongArray, hi: LongArray, at_lo: float, factor: float, chosen: LongArray
) -> float:
    """Least negative utility of a box where the risk is within the ceiling; infinity where it is nowhere."""
    affordable = affordable_sum(record, factor)
    if affordable < 0 or sum_of(record.weights, hi) > affordable * (1 + SLACK):
        chosen[:] = hi
        return np.inf
    if sum_of(record.weights, lo) <= affordable:
        chosen[:] = lo
        return -at_lo
    return -min(at_lo, most_utility(record, lo, hi, affordable, chosen))


@compiled
def least_penalized(
    record: Record, lo: LongArray, hi: LongArray, factor: float, trade: float, chosen: LongArray
) -> float:
    """Lower bound of ``factor · Φ - trade · u`` in a box, attribute by attribute; sets ``chosen`` to its minimizers.

    An exponential Φ is bounded by its tangent at ``t``, ``exp(S) >= exp(t) (1 + S - t)``, for two values of t.
    """
    best = -np.inf
    at, highest = sum_of(record.weights, hi), sum_of(record.utilities, lo)
    for _ in range(2 if record.exponential else 1):
        rate = factor * np.exp(at) if record.exponential else factor
        total = rate * (1.0 - at) if record.exponential else factor * record.base
        size = abs(total)
        sum_chosen = 0.0
        for i in range(len(lo)):
            least, chosen[i] = np.inf, lo[i]
            for s in range(lo[i], hi[i] + 1):
                value = rate * record.weights[i, s] - trade * record.utilities[i, s]
                if value < least:
                    least, chosen[i] = value, s
            total += least
            size += abs(least)
            sum_chosen += record.weights[i, chosen[i]]
        best = max(best, total - SLACK * size - 2 * _CHOSEN * trade * highest)
        at = sum_chosen
    return best


@compiled
def flat_optimum(
    record: Record, lo: LongArray, hi: LongArray, floor: float, affordable: float, table: FloatArray, chosen: LongArray
) -> bool:
    """Best level vector of a box where the risk depends on the sum of weights alone, ties included.

    By dynamic programming over the whole units of utility lost: ``table[i, b]`` is the least sum of the weights from
    attribute i on where exactly b is lost from ``lo`` on. For the least risk the least b of the least sum is taken;
    for the greatest utility, the least b whose sum is affordable; then the smallest level vector.

    Returns
    -------
    bool
        Whether anything satisfies the constraint, up to rounding: what is chosen may miss it by that, and something
        else may not.
    """
    k = len(lo)
    start = sum_of(record.utilities, lo)
    budget = np.int64(0)
    for i in range(k):
        budget += record.steps[i, hi[i]] - record.steps[i, lo[i]]
    affords = np.floor((start - floor + TOLERANCE * max(1.0, start)) / record.unit)
    if affords < 0:
        return False
    if affords < budget:
        budget = np.int64(affords)
    for b in range(budget + 1):
        table[k, b] = np.inf
    table[k, 0] = 0.0
    for i in range(k - 1, -1, -1):
        for b in range(budget + 1):
            table[i, b] = np.inf
        for s in range(lo[i], hi[i] + 1):
            lost = record.steps[i, s] - record.steps[i, lo[i]]
            weight = record.weights[i, s]
            for b in range(lost, budget + 1):
                value = weight + table[i + 1, b - lost]
                if value < table[i, b]:
                    table[i, b] = value
    ceiling = np.inf
    if record.objective == LEAST_RISK:
        for b in range(budget + 1):
            ceiling = min(ceiling, table[0, b])
    else:
        ceiling = affordable
    ceiling = widened(record, ceiling)
    left = np.int64(0)
    while left <= budget and table[0, left] > ceiling:
        left += 1
    if left > budget or not np.isfinite(table[0, left]):
        return False
    if record.objective == GREATEST_UTILITY:
        ceiling = widened(record, table[0, left])
    spent = 0.0
    for i in range(k):
        for s in range(lo[i], hi[i] + 1):
            lost = record.steps[i, s] - record.steps[i, lo[i]]
            if lost <= left and spent + record.weights[i, s] + table[i + 1, left - lost] <= ceiling:
                chosen[i] = s
                left -= lost
                spent += record.weights[i, s]
                break
    return True


@compiled
def widened(record: Record, total: float) -> float:
    """Largest sum of weights whose Φ counts as equal to that of ``total``."""
    if record.exponential:
        return total + TOLERANCE
    return total + TOLERANCE * (record.base + abs(total))


@compiled
def affordable_sum(record: Record, factor: float) -> float:
    """Largest sum of weights at which the risk is within the ceiling, for a factor of the risk."""
    most = record.constraint * (1 + 2 * TOLERANCE)
    if factor <= 0:
        return np.inf
    if record.exponential:
        return np.log(most / factor) + 2 * TOLERANCE if most > 0 else -np.inf
    return most / factor - record.base
