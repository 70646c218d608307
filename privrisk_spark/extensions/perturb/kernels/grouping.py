"""Loops of microaggregation, compiled; :mod:`~.microaggregation` checks what they take."""

from __future__ import annotations

import numpy as np

from privrisk_spark.extensions.perturb.kernels.point_tree import farthest, give_back, nearest, take, tree_of
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.machine_code import compiled

_RENEWED = 1
"""Points looked at, by those left, until they are put into order about the mean of now; changes no result."""

_ROUNDED_UP, _LEAST = 1.0 + 1e-9, 1e-150
"""Bounds on distances are by far more than rounding above what they bound."""


@compiled
def mdav_groups(points: FloatArray, k: int) -> LongArray:
    """Groups of MDAV-generic.

    Parameters
    ----------
    points : ndarray of float64, shape (n, p)
        C-contiguous.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    n, p = points.shape
    tree = tree_of(points)
    groups = np.full(n, -1)
    group = 0
    # Sums of what is left, as two numbers each: what rounding takes from the first is in the second.
    total = np.zeros(p)
    rest = np.zeros(p)
    for record in range(n):
        _add(total, rest, points[record], 1.0)
    anchor = np.zeros(p)
    outwards = np.arange(n)
    away = np.zeros(n)
    looked_at = _RENEWED * n + 1
    while tree.left[0] >= 2 * k:
        left = tree.left[0]
        mean = (total + rest) / left
        if looked_at > _RENEWED * left:
            anchor[:] = mean
            looked_at = 0
            outwards = np.sort(outwards[groups[outwards] < 0])
            away = np.empty(left)
            for at in range(left):
                away[at] = np.sqrt(_square(points[outwards[at]], anchor))
            order = np.argsort(-away, kind="mergesort")
            outwards, away = outwards[order], away[order]
        outer, looked = _outermost(points, mean, anchor, outwards, away, groups)
        looked_at += looked
        for turn in range(2 if left >= 3 * k else 1):
            centre = outer if turn == 0 else farthest(tree, points[outer])
            for member in nearest(tree, points[centre], k)[0]:
                groups[member] = group
                take(tree, member)
                _add(total, rest, points[member], -1.0)
            group += 1
    groups[groups < 0] = group
    return groups


@compiled
def _outermost(
    points: FloatArray, mean: FloatArray, anchor: FloatArray, outwards: LongArray, away: FloatArray, groups: LongArray
) -> tuple[int, int]:
    """Find the point without a group that is farthest from the mean, and count those looked at.

    The points left lie about their mean like a ball, many almost as far out as the farthest, and boxes hardly tell them
    apart. But the mean moves little: a point so far ``away`` from where it was, the anchor, is farther from it now by
    no more than the move.
    """
    found = -1
    most = -1.0
    move = np.sqrt(_square(mean, anchor))
    for at in range(len(outwards)):
        bound = (away[at] + move) * _ROUNDED_UP + _LEAST
        if bound * bound < most:
            return found, at + 1
        record = outwards[at]
        if groups[record] < 0:
            squares = _square(points[record], mean)
            if squares > most or (squares == most and record < found):
                most, found = squares, record
    return found, len(outwards)


@compiled
def _square(point: FloatArray, centre: FloatArray) -> float:
    squares = 0.0
    for i in range(len(point)):
        gap = point[i] - centre[i]
        squares += gap * gap
    return squares


@compiled
def _add(total: FloatArray, rest: FloatArray, point: FloatArray, sign: float) -> None:
    """Add a point to sums, and what rounding loses of each to ``rest`` (Knuth's exact sum of two numbers)."""
    for i in range(len(total)):
        value = sign * point[i]
        both = total[i] + value
        part = both - total[i]
        rest[i] += (total[i] - (both - part)) + (value - part)
        total[i] = both


@compiled
def variable_groups(points: FloatArray, k: int, gamma: float, order: LongArray) -> LongArray:
    """Groups of V-MDAV, before points that are left at the end join some.

    Parameters
    ----------
    points : ndarray of float64, shape (n, p)
        C-contiguous.
    order : ndarray of int64, shape (n,)
        Points in the order in which groups are begun with those that are left.

    Returns
    -------
    ndarray of int64, shape (n,)
        -1 of points that are left at the end.
    """
    n = len(points)
    tree = tree_of(points)
    groups = np.full(n, -1)
    members = np.empty(2 * k - 1, dtype=np.int64)
    group = 0
    at = 0
    while tree.left[0] >= k:
        while groups[order[at]] >= 0:
            at += 1
        size = 0
        for member in nearest(tree, points[order[at]], k)[0]:
            groups[member] = group
            take(tree, member)
            members[size] = member
            size += 1
        while size < 2 * k - 1 and tree.left[0] > 0:
            closest, inside = n, np.inf
            for m in range(size):
                record, squares = nearest(tree, points[members[m]], 1)
                if squares[0] < inside or (squares[0] == inside and record[0] < closest):
                    closest, inside = record[0], squares[0]
            take(tree, closest)
            others = nearest(tree, points[closest], 1)[1]
            outside = others[0] if len(others) > 0 else np.inf
            joins = gamma > 0 and np.sqrt(inside) < gamma * np.sqrt(outside)
            if not joins:
                give_back(tree, closest)
                break
            groups[closest] = group
            members[size] = closest
            size += 1
        group += 1
    return groups


@compiled
def optimal_starts(values: FloatArray, k: int) -> LongArray:
    """Shortest path over groups of k to 2k - 1 values.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Ascending.

    Returns
    -------
    ndarray of int64, shape (n,)
        1 where a group starts, else 0.
    """
    n = len(values)
    best = np.full(n + 1, np.inf)
    best[0] = 0.0
    size_of = np.zeros(n + 1, dtype=np.int64)
    for end in range(k, n + 1):
        mean = 0.0
        squares = 0.0
        for size in range(1, min(2 * k - 1, end) + 1):
            value = values[end - size]
            gap = value - mean
            mean += gap / size
            squares += gap * (value - mean)
            if size >= k and best[end - size] + squares < best[end]:
                best[end] = best[end - size] + squares
                size_of[end] = size
    starts = np.zeros(n, dtype=np.int64)
    end = n
    while end > 0:
        end -= size_of[end]
        starts[end] = 1
    return starts
