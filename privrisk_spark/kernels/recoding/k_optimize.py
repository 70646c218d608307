"""The best scheme by enumeration of sets: level vectors from the top down, without subtrees that cannot win.

Bayardo and Agrawal (Data privacy through optimal k-anonymization, ICDE 2005) start from the most general table and add
values to split at. Here what is added are steps down, in an order of the attributes: a vector whose last step was in
attribute ``j`` goes on with ``j`` and those after it, so that a subtree is a box of the lattice. It is left out if its
floor (:mod:`privrisk_spark.kernels.recoding.floors`) is above the best that is known; and where the problem is monotone
if its highest node does not keep the limit. Status: *proved*; where nothing may be ruled out by the limit, cost alone
prunes.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.recoding.bases import Bases
from privrisk_spark.kernels.recoding.floors import Floors, exceeds, look
from privrisk_spark.kernels.recoding.metrics import Facts, order
from privrisk_spark.kernels.recoding.problem import Problem, Scheme, best_of

__all__ = ["k_optimize"]

Levels = tuple[int, ...]


def k_optimize(problem: Problem, *, by_cost: bool = True, by_limit: bool = True) -> Scheme | None:
    """Return the best scheme; None if none keeps the limit.

    Parameters
    ----------
    by_cost, by_limit : bool
        Whether subtrees are left out for what they cost, and for what they suppress.
    """
    table, metric = problem.measured.table, problem.metric
    floors, heights = Floors(problem), table.lattice.heights
    bases = Bases(problem.measured.table)
    # What costs most comes first, so that the last subtrees, in which it stays at its top, are the dear ones.
    spans = floors.chains(bases.at((0,) * len(heights)))
    attributes = sorted(range(len(heights)), key=lambda i: (spans[i, 0] - spans[i, heights[i]], i))
    best: Facts | None = None
    looks = 0
    waiting: list[tuple[Levels, int]] = [(heights, 0)]
    while waiting:
        levels, first = waiting.pop()
        tail = set(attributes[first:])
        low = tuple(0 if i in tail else level for i, level in enumerate(levels))
        base = bases.at(low)
        key = np.inf if best is None else float(metric.key(best))
        if by_cost and exceeds(floors.least(base, low, None), key):
            continue
        seen, looks = look(problem, levels, base), looks + 1
        if seen.facts is None and problem.monotone and by_limit:
            continue
        if seen.facts is not None and (best is None or order(metric, seen.facts) < order(metric, best)):
            best = seen.facts
            key = float(metric.key(best))
        if by_cost and exceeds(floors.least(base, low, seen.lost if problem.monotone else None), key):
            continue
        for at in range(len(attributes) - 1, first - 1, -1):
            i = attributes[at]
            if levels[i]:
                waiting.append(((*levels[:i], levels[i] - 1, *levels[i + 1 :]), at))
    return best_of(problem, [] if best is None else [best], nodes_evaluated=looks, optimal=True)
