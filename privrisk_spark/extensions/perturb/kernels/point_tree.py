"""Points in a tree of boxes (a k-d tree), out of which points are taken one by one: the nearest and the farthest left.

The least and the greatest distance from a box to a centre are computed like those of a point, term by term and in the
same order; subtraction, multiplication and addition of float64 are monotone, so no point of the box is nearer or
farther *as computed*. A box is passed over only if every point in it is beaten, by distance or, at the same distance,
by its number. What is found is therefore what comparing with every point finds, bit for bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.machine_code import compiled

LEAF = 8
"""Most points of a box that is not divided; changes no result."""

_DEEPEST = 256


class PointTree(NamedTuple):
    """Points that are left, and the boxes they lie in. Box ``b`` is divided into boxes ``2 b + 1`` and ``2 b + 2``.

    Attributes
    ----------
    points : ndarray of float64, shape (n, p)
        In the order of the boxes; those of a box that are left stand first.
    record : ndarray of int64, shape (n,)
        Number of each.
    place : ndarray of int64, shape (n,)
        Where the point of each number stands.
    box : ndarray of int64, shape (n,)
        Undivided box of each place.
    start, left, first : ndarrays of int64, shape (b,)
        Of each box, its first place, how many points are left in it and the least number of them.
    low, high : ndarrays of float64, shape (b, p)
        Least and greatest coordinates of the points left in each box.
    """

    points: FloatArray
    record: LongArray
    place: LongArray
    box: LongArray
    start: LongArray
    left: LongArray
    first: LongArray
    low: FloatArray
    high: FloatArray


@compiled
def tree_of(points: FloatArray) -> PointTree:
    """Put points into a tree.

    Parameters
    ----------
    points : ndarray of float64, shape (n, p)
        C-contiguous and finite; n at least 1.
    """
    n, p = points.shape
    depth = 0
    while (n - 1) // 2**depth + 1 > LEAF:
        depth += 1
    boxes = 2 ** (depth + 1) - 1
    inner = 2**depth - 1
    record = np.arange(n)
    start = np.zeros(boxes, dtype=np.int64)
    left = np.zeros(boxes, dtype=np.int64)
    left[0] = n
    for b in range(inner):
        begin, size = start[b], left[b]
        widest, width = 0, -1.0
        for i in range(p):
            low = np.inf
            high = -np.inf
            for place in range(begin, begin + size):
                value = points[record[place], i]
                low = min(low, value)
                high = max(high, value)
            if high - low > width:
                widest, width = i, high - low
        part = np.sort(record[begin : begin + size])
        keys = np.empty(size)
        for m in range(size):
            keys[m] = points[part[m], widest]
        record[begin : begin + size] = part[np.argsort(keys, kind="mergesort")]  # stable: equal ones by number
        half = (size + 1) // 2
        start[2 * b + 1], left[2 * b + 1] = begin, half
        start[2 * b + 2], left[2 * b + 2] = begin + half, size - half
    box = np.zeros(n, dtype=np.int64)
    for b in range(inner, boxes):
        box[start[b] : start[b] + left[b]] = b
    place_of = np.empty(n, dtype=np.int64)
    for place in range(n):
        place_of[record[place]] = place
    first = np.empty(boxes, dtype=np.int64)
    low_of = np.empty((boxes, p))
    high_of = np.empty((boxes, p))
    tree = PointTree(points[record], record, place_of, box, start, left, first, low_of, high_of)
    for b in range(boxes - 1, -1, -1):
        _bound(tree, b)
    return tree


@compiled
def _bound(tree: PointTree, b: int) -> None:
    """Find the bounds of a box: of its points, if it is not divided, or of the two boxes it is divided into."""
    n, p = tree.points.shape
    tree.first[b] = n
    for i in range(p):
        tree.low[b, i] = np.inf
        tree.high[b, i] = -np.inf
    if 2 * b + 1 < len(tree.left):
        for part in (2 * b + 1, 2 * b + 2):
            tree.first[b] = min(tree.first[b], tree.first[part])
            for i in range(p):
                tree.low[b, i] = min(tree.low[b, i], tree.low[part, i])
                tree.high[b, i] = max(tree.high[b, i], tree.high[part, i])
    else:
        for place in range(tree.start[b], tree.start[b] + tree.left[b]):
            tree.first[b] = min(tree.first[b], tree.record[place])
            for i in range(p):
                tree.low[b, i] = min(tree.low[b, i], tree.points[place, i])
                tree.high[b, i] = max(tree.high[b, i], tree.points[place, i])


@compiled
def take(tree: PointTree, record: int) -> None:
    """Take the point of a number out, which must be left."""
    p = tree.points.shape[1]
    place = tree.place[record]
    b = tree.box[place]
    last = tree.start[b] + tree.left[b] - 1
    other = tree.record[last]
    for i in range(p):
        here = tree.points[place, i]
        tree.points[place, i] = tree.points[last, i]
        tree.points[last, i] = here
    tree.record[place], tree.record[last] = other, record
    tree.place[other], tree.place[record] = place, last
    while True:
        tree.left[b] -= 1
        _bound(tree, b)
        if b == 0:
            break
        b = (b - 1) // 2


@compiled
def give_back(tree: PointTree, record: int) -> None:
    """Put back the point that was taken out last."""
    b = tree.box[tree.place[record]]
    while True:
        tree.left[b] += 1
        _bound(tree, b)
        if b == 0:
            break
        b = (b - 1) // 2


@compiled
def farthest(tree: PointTree, centre: FloatArray) -> int:
    """Number of the point left that is farthest from a centre, the least of equally far ones; -1 of none."""
    p = tree.points.shape[1]
    found = -1
    most = -1.0
    stack = np.empty(_DEEPEST, dtype=np.int64)
    bounds = np.empty(_DEEPEST)
    stack[0], bounds[0] = 0, np.inf
    height = 1 if tree.left[0] > 0 else 0
    while height > 0:
        height -= 1
        b = stack[height]
        if bounds[height] < most or (bounds[height] == most and tree.first[b] > found):
            continue
        if 2 * b + 1 < len(tree.left):
            one = _most(tree, 2 * b + 1, centre)
            two = _most(tree, 2 * b + 2, centre)
            nearer = 2 * b + 1 if one < two else 2 * b + 2
            for part, bound in ((nearer, min(one, two)), (4 * b + 3 - nearer, max(one, two))):
                if tree.left[part] > 0:
                    stack[height], bounds[height] = part, bound
                    height += 1
            continue
        for place in range(tree.start[b], tree.start[b] + tree.left[b]):
            squares = 0.0
            for i in range(p):
                gap = tree.points[place, i] - centre[i]
                squares += gap * gap
            if squares > most or (squares == most and tree.record[place] < found):
                most, found = squares, tree.record[place]
    return found


@compiled
def nearest(tree: PointTree, centre: FloatArray, wanted: int) -> tuple[LongArray, FloatArray]:
    """Find the points left that are nearest to a centre, equally near ones in the order of their numbers.

    Returns
    -------
    record : ndarray of int64, shape (min(wanted, left),)
        Ascending by distance, then by number.
    squares : ndarray of float64, shape (min(wanted, left),)
        Squared distances.
    """
    p = tree.points.shape[1]
    wanted = min(wanted, tree.left[0])
    record = np.full(wanted, len(tree.record))
    squares = np.full(wanted, np.inf)
    stack = np.empty(_DEEPEST, dtype=np.int64)
    bounds = np.empty(_DEEPEST)
    stack[0], bounds[0] = 0, 0.0
    height = 1 if wanted > 0 else 0
    while height > 0:
        height -= 1
        b = stack[height]
        worst = squares[wanted - 1]
        if bounds[height] > worst or (bounds[height] == worst and tree.first[b] > record[wanted - 1]):
            continue
        if 2 * b + 1 < len(tree.left):
            one = _least(tree, 2 * b + 1, centre)
            two = _least(tree, 2 * b + 2, centre)
            farther = 2 * b + 1 if one > two else 2 * b + 2
            for part, bound in ((farther, max(one, two)), (4 * b + 3 - farther, min(one, two))):
                if tree.left[part] > 0:
                    stack[height], bounds[height] = part, bound
                    height += 1
            continue
        for place in range(tree.start[b], tree.start[b] + tree.left[b]):
            here = 0.0
            for i in range(p):
                gap = tree.points[place, i] - centre[i]
                here += gap * gap
            number = tree.record[place]
            at = wanted
            while at > 0 and (here < squares[at - 1] or (here == squares[at - 1] and number < record[at - 1])):
                at -= 1
            if at < wanted:
                for m in range(wanted - 1, at, -1):
                    squares[m], record[m] = squares[m - 1], record[m - 1]
                squares[at], record[at] = here, number
    return record, squares


@compiled
def _most(tree: PointTree, b: int, centre: FloatArray) -> float:
    """Greatest squared distance of a point of a box from a centre, at most."""
    squares = 0.0
    for i in range(len(centre)):
        gap = max(abs(tree.low[b, i] - centre[i]), abs(tree.high[b, i] - centre[i]))
        squares += gap * gap
    return squares


@compiled
def _least(tree: PointTree, b: int, centre: FloatArray) -> float:
    """Least squared distance of a point of a box from a centre, at least."""
    squares = 0.0
    for i in range(len(centre)):
        gap = max(tree.low[b, i] - centre[i], centre[i] - tree.high[b, i], 0.0)
        squares += gap * gap
    return squares
