"""Whether what searches prune by holds: that coarser schemes are safer, and cost more.

Source: Raschia (2023; R23): if a scheme keeps k-anonymity, so does every coarser one; "utility is monotone" for all
metrics discussed; "what is the impact of suppression on monotonicity?"; so only the minimal schemes that are safe are
needed. Every node of the lattice is measured for every k, and every step up in one attribute is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.recoding.metrics import METRICS, Facts, order
from privrisk_spark.kernels.recoding.problem import Problem, at_least
from reproduce.deciding.subject import Subject
from reproduce.recoding.algorithms import COSTS, measured_of


@dataclass(frozen=True, eq=False)
class Monotone:
    """Of each limit and k, over the nodes of a lattice and the steps between them; L limits, A values of k.

    Attributes
    ----------
    limits : ndarray of int64, shape (L,)
        Rows that may be suppressed.
    anonymity : ndarray of int64, shape (A,)
    nodes : int
        Of the lattice.
    kept : ndarray of int64, shape (L, A)
        Nodes that keep the limit.
    minimal : ndarray of int64, shape (L, A)
        Those of them below which no node keeps it.
    unsafe : ndarray of int64, shape (L, A)
        Steps up from a node that keeps the limit to one that does not.
    steps : ndarray of int64, shape (L, A)
        Steps up between two nodes that keep it.
    cheaper : ndarray of int64, shape (L, A, M)
        Those of them that lead to less of each of :data:`~.algorithms.COSTS`.
    best_is_minimal : ndarray of int64, shape (L, A, M)
        1 if the optimum is a minimal node, 0 if not, -1 if there is none.
    """

    limits: LongArray
    anonymity: LongArray
    nodes: int
    kept: LongArray
    minimal: LongArray
    unsafe: LongArray
    steps: LongArray
    cheaper: LongArray
    best_is_minimal: LongArray


def monotone(subject: Subject, ks: Sequence[int], limits: Sequence[int]) -> Monotone:
    """Measure every node of a table's lattice.

    Parameters
    ----------
    limits : sequence of int
        Rows that may be suppressed.
    """
    measured = measured_of(subject)
    problems = [Problem(measured, (at_least(k),), METRICS[COSTS[0]]) for k in ks]
    shape = measured.table.lattice.shape
    found: list[list[Facts]] = [[] for _ in ks]
    for levels, classes in measured.table.every_node():
        for facts, problem in zip(found, problems, strict=True):
            facts.append(problem.facts(levels, classes))
    size = (len(limits), len(ks))
    kept, minimal, unsafe, steps = (np.zeros(size, dtype=np.int64) for _ in range(4))
    cheaper, best = (np.zeros((*size, len(COSTS)), dtype=np.int64) for _ in range(2))
    for a, facts in enumerate(found):
        suppressed = np.array([one.suppressed for one in facts]).reshape(shape)
        # Compared exactly: the rank of a cost among the nodes' is a whole number.
        ranks = [_ranks([METRICS[name].key(one) for one in facts]).reshape(shape) for name in COSTS]
        for i, limit in enumerate(limits):
            safe = suppressed <= limit
            covered = np.zeros(shape, dtype=np.bool_)
            for axis, length in enumerate(shape):
                below = tuple(slice(0, length - 1) if j == axis else slice(None) for j in range(len(shape)))
                above = tuple(slice(1, length) if j == axis else slice(None) for j in range(len(shape)))
                both = safe[below] & safe[above]
                covered[above] |= safe[below]
                unsafe[i, a] += int((safe[below] & ~safe[above]).sum())
                steps[i, a] += int(both.sum())
                for m, rank in enumerate(ranks):
                    cheaper[i, a, m] += int((both & (rank[above] < rank[below])).sum())
            lowest = safe & ~covered
            kept[i, a], minimal[i, a] = int(safe.sum()), int(lowest.sum())
            for m, name in enumerate(COSTS):
                those = [one for one in facts if one.suppressed <= limit]
                least = min(those, key=lambda one: order(METRICS[name], one), default=None)
                best[i, a, m] = -1 if least is None else int(lowest[least.levels])
    return Monotone(
        np.array(limits, dtype=np.int64),
        np.array(ks, dtype=np.int64),
        int(np.prod(shape)),
        kept,
        minimal,
        unsafe,
        steps,
        cheaper,
        best,
    )


def _ranks(values: Sequence[object]) -> LongArray:
    """Number different values by their order."""
    number = {value: i for i, value in enumerate(sorted(set(values)))}  # type: ignore[type-var]
    return np.array([number[value] for value in values], dtype=np.int64)
