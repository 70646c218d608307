"""Node by node searches of F12 chapter 4 on one record's lattice: least risk subject to ``u(x) >= c``.

* :func:`btda`, the basic top-down algorithm (F12 Algorithm 2): nodes in ascending order of risk, from the top down. As
  printed it never ends where no node is feasible, and its queue is a linked list; here it says so, and the queue is a
  heap.
* :func:`aruba` (F12 Algorithm 3): the frontier, node by node. As printed it has no answer where the top is feasible
  and the frontier therefore empty; the answer is then the top, or a node of the same risk.

Both need a risk that is non-increasing in every level, as every :class:`RecordLattice` has. That some optimum is a
maximal feasible node (for F12 Theorem 4.5.2: *the* optimum) says nothing about ties, so all nodes of least risk are
visited: they are an up-set among the feasible nodes, reached by specializing from those already found.

Status: *proved*. Kept to compare the visits of the source's algorithms; branch and bound visits fewer.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.disclosure.objective import LeastRisk, Valued, preferred
from privrisk_spark.kernels.lattice.lattice import (
    TOLERANCE,
    Lattice,
    Neighbourhood,
    frontier_moves,
    last_feasible_on_a_chain,
    reaches,
)
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound, root_bound
from privrisk_spark.kernels.search.evaluation import Evaluation
from privrisk_spark.kernels.search.record import Answer, RecordLattice, answer

MOST_NODES = 1_000_000
"""Nodes evaluated before a search gives up."""


def btda(lattice: RecordLattice, objective: LeastRisk, *, most_nodes: int = MOST_NODES) -> Answer | None:
    """Least risk by nodes in ascending order of risk, from the top down (F12 Algorithm 2).

    Parameters
    ----------
    lattice : RecordLattice
        Weights must be finite.
    most_nodes : int
        At least 1.

    Returns
    -------
    Answer or None
        ``visited`` counts distinct nodes evaluated. ``heuristic`` where the limit is reached first: the answer is then
        the best node seen or greedily found, and the bound the risk of the next node, as no node left has less. None
        if no node is feasible.
    """
    if most_nodes < 1:
        raise InputError(f"most_nodes must be at least 1. Got {most_nodes}.")
    evaluation = Evaluation(lattice)
    k = lattice.k
    if not objective.admits(np.zeros(1), evaluation.utility(np.zeros((1, k), dtype=np.int64)))[0]:
        return None
    top = lattice.heights
    heap: list[tuple[float, tuple[int, ...]]] = [(float(evaluation.risk(top[None, :])[0]), tuple(top.tolist()))]
    seen = {heap[0][1]}
    best: Valued | None = None
    while heap and (best is None or heap[0][0] <= best[0] * (1 + TOLERANCE)) and len(seen) < most_nodes:
        risk, levels = heapq.heappop(heap)
        at = np.array(levels, dtype=np.int64)
        best = preferred(objective, best, at[None, :], np.array([risk]), evaluation.utility(at[None, :]))
        below = [(*levels[:i], levels[i] - 1, *levels[i + 1 :]) for i in range(k) if levels[i]]
        fresh = [node for node in below if node not in seen]
        if fresh:
            seen.update(fresh)
            for one in zip(evaluation.risk(np.array(fresh)).tolist(), fresh, strict=True):
                heapq.heappush(heap, one)
    settled = best is not None and (not heap or heap[0][0] > best[0] * (1 + TOLERANCE))
    if not settled:
        # A local descent, and the corners of the lattice as one box.
        found = branch_and_bound(lattice, objective, most_boxes=1)
        if found is not None:
            there = np.array([found.levels], dtype=np.int64)
            best = preferred(objective, best, there, np.array([found.risk]), evaluation.utility(there))
    assert best is not None
    chosen = np.array(best[2], dtype=np.int64)
    least = lattice.risk(chosen)
    bound = least if settled else min(least, heap[0][0])
    return answer(lattice, chosen, objective=least, bound=bound, visited=len(seen), proved=settled)


@dataclass(frozen=True, eq=False)
class Frontier:
    """The frontier of one record's lattice and what it took to walk it.

    Attributes
    ----------
    levels : ndarray of int64, shape (n, k)
        Frontier nodes in lexicographic order. Just the top where every node is feasible; none where none is.
    distinct : int
        Distinct nodes whose utility was looked at.
    probes : int
        Moves tried, those that leave the lattice included.
    complete : bool
        False where the limit was reached first.
    """

    levels: LongArray
    distinct: int
    probes: int
    complete: bool


def walk(
    lattice: RecordLattice,
    objective: LeastRisk,
    *,
    neighbourhood: Neighbourhood = "swap",
    most_nodes: int = MOST_NODES,
) -> Frontier:
    """Walk the frontier from one of its nodes.

    Parameters
    ----------
    lattice : RecordLattice
        With fewer than 2**63 nodes.
    neighbourhood : {"swap", "cube"}
        As of :func:`privrisk_spark.kernels.lattice.lattice.walk_frontier`, where it is proved that both reach every
        node. ``cube`` has ``3**k - 1`` moves and is refused beyond 12 attributes.
    """
    if lattice.size >= 2**63:
        raise InputError(f"aruba numbers the nodes of a lattice, fewer than 2**63. Got {lattice.size}.")
    if neighbourhood == "cube" and lattice.k > 12:
        raise InputError(f"'cube' tries 3**k - 1 moves per node: at most 12 attributes; use 'swap'. Got {lattice.k}.")
    evaluation = _utilities_only(lattice)
    numbering = Lattice(tuple(lattice.heights.tolist()))
    tops = lattice.heights

    def feasible(levels: LongArray) -> BoolArray:
        total = np.zeros(len(levels))
        for of_levels, level in zip(evaluation, levels.T, strict=True):
            total += of_levels.take(level)
        return reaches(total, objective.floor)

    if not feasible(np.zeros((1, lattice.k), dtype=np.int64))[0]:
        return Frontier(np.zeros((0, lattice.k), dtype=np.int64), 1, 0, True)
    if feasible(tops[None, :])[0]:
        return Frontier(tops[None, :].copy(), 2, 0, True)
    moves = frontier_moves(lattice.k, neighbourhood)
    raises = np.eye(lattice.k, dtype=np.int64)
    wave = last_feasible_on_a_chain(tops, feasible)[None, :]
    frontier = wave @ numbering.strides
    tried = frontier
    distinct, probes = frontier, 0
    while len(wave) and len(distinct) < most_nodes:
        probes += len(wave) * len(moves)
        near = (wave[:, None, :] + moves[None]).reshape(-1, lattice.k)
        near = near[((near >= 0) & (near <= tops)).all(axis=1)]
        numbers = np.setdiff1d(near @ numbering.strides, tried)
        tried = np.union1d(tried, numbers)
        levels = numbering.levels(numbers)
        inside = feasible(levels)
        above = (levels[inside][:, None, :] + raises[None]).reshape(-1, lattice.k)
        within = (above <= tops).all(axis=1)
        leaves = np.zeros(len(above), dtype=np.bool_)
        leaves[within] = ~feasible(above[within])
        on = inside.copy()
        on[inside] = leaves.reshape(-1, lattice.k).any(axis=1)
        distinct = np.union1d(np.union1d(distinct, numbers), above[within] @ numbering.strides)
        wave = levels[on]
        frontier = np.union1d(frontier, numbers[on])
    return Frontier(numbering.levels(frontier), len(distinct), probes, not len(wave))


def aruba(
    lattice: RecordLattice,
    objective: LeastRisk,
    *,
    neighbourhood: Neighbourhood = "swap",
    most_nodes: int = MOST_NODES,
) -> Answer | None:
    """Least risk among the frontier nodes (F12 Algorithm 3).

    Parameters
    ----------
    lattice : RecordLattice
        With fewer than 2**63 nodes; weights must be finite.
    neighbourhood : {"swap", "cube"}
    most_nodes : int
        At least 1.

    Returns
    -------
    Answer or None
        ``visited`` counts the distinct nodes of the walk. ``heuristic`` where the limit was reached first; the bound is
        then that of the whole lattice as one box. None if no node is feasible.
    """
    if most_nodes < 1:
        raise InputError(f"most_nodes must be at least 1. Got {most_nodes}.")
    evaluation = Evaluation(lattice, floor=objective.floor)
    found = walk(lattice, objective, neighbourhood=neighbourhood, most_nodes=most_nodes)
    if not len(found.levels):
        return None
    risk = evaluation.risk(found.levels)
    best = preferred(objective, None, found.levels, risk, evaluation.utility(found.levels))
    assert best is not None
    ceiling = float(risk.min()) * (1 + TOLERANCE)
    # The nodes of least risk: down from those of the frontier as long as the risk stays.
    wave = found.levels[risk <= ceiling]
    seen = {node.tobytes() for node in wave}
    while len(wave):
        below = (wave[:, None, :] - np.eye(lattice.k, dtype=np.int64)[None]).reshape(-1, lattice.k)
        below = np.unique(below[(below >= 0).all(axis=1)], axis=0)
        fresh = np.array([node.tobytes() not in seen for node in below], dtype=np.bool_)
        below = below[fresh]
        seen.update(node.tobytes() for node in below)
        at = evaluation.risk(below)
        flat = at <= ceiling
        wave = below[flat]
        best = preferred(objective, best, wave, at[flat], evaluation.utility(wave))
    assert best is not None
    chosen = np.array(best[2], dtype=np.int64)
    least = lattice.risk(chosen)
    bound = least if found.complete else min(least, root_bound(lattice, objective))
    return answer(lattice, chosen, objective=least, bound=bound, visited=found.distinct, proved=found.complete)


def _utilities_only(lattice: RecordLattice) -> list[FloatArray]:
    return [np.ascontiguousarray(values, dtype=np.float64) for values in lattice.utilities]
