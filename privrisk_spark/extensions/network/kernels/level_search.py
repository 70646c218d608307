"""Search of many pairs' level vectors: local ascent, boxes, enumeration."""

from __future__ import annotations

import numpy as np

from privrisk_spark.extensions.network.kernels.level_boxes import by_boxes, corner_boxes
from privrisk_spark.extensions.network.kernels.pair_lattice import (
    Best,
    Pair,
    ascend,
    count,
    nodes_of,
    offer,
    pair_of,
    power,
    total,
    value,
)
from privrisk_spark.kernels.arrays import FloatArray, LevelArray, LongArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.row_sets import bits_in
from privrisk_spark.machine_code import compiled


@compiled
def started(pair: Pair) -> Best:
    """The best of local ascents: from everything shown, and from the tops of the boxes."""
    a = len(pair.heights)
    best = Best(np.zeros(a, dtype=np.int64), np.array([-np.inf, 0.0, 0.0]))
    offer(pair, best, np.zeros(a, dtype=np.int64))
    ascend(pair, best)
    los, his, _ = corner_boxes(pair)
    better = False
    for box in range(len(los)):
        better |= offer(pair, best, his[box])
    if better:
        ascend(pair, best)
    return best


@compiled
def enumerated(pair: Pair, best: Best) -> int:
    """Look at every level vector; how many there are. Friends are sets of bits, one for each level of an attribute."""
    a, m = len(pair.heights), len(pair.rows)
    words = (m + 63) // 64
    sets = np.zeros((a, pair.weights.shape[1], words), dtype=np.uint64)
    for i in range(a):
        for row in range(m):
            for s in range(pair.rows[row, i], pair.heights[i] + 1):
                sets[i, s, row // 64] |= np.uint64(1) << np.uint64(row % 64)
    # Of the attributes up to each: the friends left or found, Φ and u.
    friends = np.zeros((a + 1, words), dtype=np.uint64)
    if not pair.any_of:
        for row in range(m):
            friends[0, row // 64] |= np.uint64(1) << np.uint64(row % 64)
    phi, utility = np.zeros(a + 1), np.zeros(a + 1)
    levels = np.full(a, -1, dtype=np.int64)
    visited, i = 0, 0
    while i >= 0:
        levels[i] += 1
        if levels[i] > pair.heights[i]:
            levels[i] = -1
            i -= 1
            continue
        s = levels[i]
        for word in range(words):
            if pair.any_of:
                friends[i + 1, word] = friends[i, word] | sets[i, s, word]
            else:
                friends[i + 1, word] = friends[i, word] & sets[i, s, word]
        phi[i + 1] = phi[i] + pair.weights[i, s]
        utility[i + 1] = utility[i] + pair.utilities[i, s]
        if i + 1 < a:
            i += 1
            continue
        visited += 1
        consistent = 0
        for word in range(words):
            consistent += bits_in(friends[a, word])
        if value(pair, float(consistent), phi[a], utility[a]) >= best.figures[2] * (1.0 - TOLERANCE):
            offer(pair, best, levels)
    return visited


@compiled
def search_pairs(
    heights: LevelArray,
    weights: FloatArray,
    utilities: FloatArray,
    first: LongArray,
    rows: LevelArray,
    trade_off: float,
    kappa: float,
    any_of: bool,
    floor: bool,
    most_nodes: int,
    most_boxes: int,
    at_once: int,
) -> tuple[LevelArray, FloatArray, LongArray]:
    """Search all pairs.

    Lattices of up to ``at_once`` nodes are enumerated, others divided into at most ``most_boxes`` boxes, and if that
    proves nothing enumerated up to ``most_nodes`` nodes.

    Returns
    -------
    levels : ndarray of int8, shape (n, k)
    figures : ndarray of float64, shape (n, 4)
        f, its bound, Φ and u.
    counts : ndarray of int64, shape (n, 3)
        ξ, nodes or boxes visited, and whether no box is left.
    """
    n, k = heights.shape
    levels, figures, counts = np.zeros((n, k), dtype=np.int8), np.zeros((n, 4)), np.zeros((n, 3), dtype=np.int64)
    for p in range(n):
        pair, attributes = pair_of(
            heights[p],
            weights[p],
            utilities[p],
            rows[first[p] : first[p + 1]],
            trade_off,
            kappa,
            any_of,
            floor,
        )
        zero = np.zeros(len(attributes), dtype=np.int64)
        if trade_off == 0.0 or total(pair.weights, zero) == 0.0:
            # The utility decides alone: without λ, or as there is no risk to run.
            best = Best(zero, np.array([power(total(pair.utilities, zero), kappa), total(pair.utilities, zero), 0.0]))
            left, visited, settled = best.figures[0], 0, True
        else:
            nodes = nodes_of(pair, most_nodes)
            if nodes <= at_once and nodes <= most_nodes:
                best = Best(zero, np.array([-np.inf, 0.0, 0.0]))
                visited = enumerated(pair, best)
                left, settled = best.figures[2], True
            else:
                best = started(pair)
                left, visited, settled = by_boxes(pair, best, most_boxes)
                if not settled and nodes <= most_nodes:
                    visited += enumerated(pair, best)
                    left, settled = best.figures[2], True
            left = max(left, best.figures[0])
        for i in range(len(attributes)):
            levels[p, attributes[i]] = best.levels[i]
        figures[p, 0], figures[p, 1] = best.figures[0], left
        figures[p, 2], figures[p, 3] = total(pair.weights, best.levels), total(pair.utilities, best.levels)
        counts[p, 0], counts[p, 1] = count(pair, best.levels), visited
        counts[p, 2] = settled
    return levels, figures, counts
