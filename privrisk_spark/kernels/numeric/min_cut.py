"""Maximum flow and minimum cut of a directed network with 64-bit integer capacities.

Dinic's method (Dinic 1970): distances to the sink by reverse breadth-first search, then a blocking flow along arcs
that come one step nearer, until the source no longer reaches the sink. Integers make value and cut exact; SciPy's
routines hold capacities in 32 bits, too few for weights of many orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray
from privrisk_spark.machine_code import compiled

LARGEST_SUM = 2**61
"""Largest sum of the finite capacities, and largest capacity of an arc; the residuals then fit 64 bits."""


@dataclass(frozen=True, eq=False)
class Network:
    """A directed network.

    Attributes
    ----------
    tail, head : ndarray of int32, shape (n_arcs,)
        Ends of each arc, in [0, n_nodes); parallel arcs and arcs both ways are allowed.
    capacity : ndarray of int64, shape (n_arcs,)
        Non-negative, at most :data:`LARGEST_SUM`. Any number above the sum of the finite ones stands for "infinite".
    source, sink : int
        Two different nodes.
    """

    n_nodes: int
    tail: IntArray
    head: IntArray
    capacity: LongArray
    source: int
    sink: int

    @property
    def n_arcs(self) -> int:
        """Number of arcs."""
        return len(self.capacity)


@dataclass(frozen=True, eq=False)
class Cut:
    """A minimum cut.

    Attributes
    ----------
    value : int
        Value of the maximum flow, which is the capacity of the cut.
    source_side : ndarray of bool, shape (n_nodes,)
        Nodes on the source's side of the minimum cut whose source side is smallest: those that arcs with a residual
        capacity above 0 lead to.
    nearly : ndarray of bool, shape (n_nodes,)
        Nodes that arcs with a residual capacity above ``negligible`` lead to. If ``S`` is the source side of a cut
        whose capacity exceeds the minimum by at most ``negligible``, then ``nearly`` is within ``S``: the residual
        capacities that leave ``S`` sum to the excess.
    """

    value: int
    source_side: BoolArray
    nearly: BoolArray


def minimum_cut(network: Network, *, negligible: int = 0) -> Cut:
    """Find a minimum cut between source and sink.

    Parameters
    ----------
    negligible : int
        Residual capacity that counts as none in :attr:`Cut.nearly`.

    Returns
    -------
    Cut
        A function of the network alone: of all minimum cuts, the one with the smallest source side.

    Notes
    -----
    The search is compiled on first use, in about 2 s (:mod:`privrisk_spark.machine_code`).
    """
    if network.source == network.sink:
        raise InternalError("source and sink must differ")
    if network.n_arcs and (network.capacity.min() < 0 or network.capacity.max() > LARGEST_SUM):
        raise InternalError(f"capacities must lie in [0, {LARGEST_SUM}]")
    value, source_side, nearly = _search(
        network.n_nodes,
        np.ascontiguousarray(network.tail, dtype=np.int32),
        np.ascontiguousarray(network.head, dtype=np.int32),
        np.ascontiguousarray(network.capacity, dtype=np.int64),
        network.source,
        network.sink,
        negligible,
    )
    return Cut(int(value), source_side, nearly)


@compiled
def _search(
    n_nodes: int, tail: IntArray, head: IntArray, capacity: LongArray, source: int, sink: int, negligible: int
) -> tuple[int, BoolArray, BoolArray]:
    """Dinic's method over arcs grouped by tail; every arc has its reverse as ``mate``."""
    n_arcs = len(tail)
    start = np.zeros(n_nodes + 1, dtype=np.int64)
    for arc in range(n_arcs):
        start[tail[arc] + 1] += 1
        start[head[arc] + 1] += 1
    for node in range(n_nodes):
        start[node + 1] += start[node]
    free = start[:-1].copy()
    to = np.empty(2 * n_arcs, dtype=np.int32)
    mate = np.empty(2 * n_arcs, dtype=np.int32)
    residual = np.empty(2 * n_arcs, dtype=np.int64)
    for arc in range(n_arcs):
        u, v = tail[arc], head[arc]
        forth = free[u]
        free[u] += 1
        back = free[v]
        free[v] += 1
        to[forth], mate[forth], residual[forth] = v, back, capacity[arc]
        to[back], mate[back], residual[back] = u, forth, 0

    value = 0
    distance = np.empty(n_nodes, dtype=np.int32)
    queue = np.empty(n_nodes, dtype=np.int32)
    path = np.empty(n_nodes, dtype=np.int64)
    while True:
        # Distances to the sink, as far as the source needs them.
        distance[:] = -1
        distance[sink] = 0
        queue[0] = sink
        first, last = 0, 1
        while first < last:
            v = queue[first]
            first += 1
            if distance[source] >= 0 and distance[v] >= distance[source]:
                break
            for p in range(start[v], start[v + 1]):
                u = to[p]
                if distance[u] < 0 and residual[mate[p]] > 0:
                    distance[u] = distance[v] + 1
                    queue[last] = u
                    last += 1
        if distance[source] < 0:
            break
        # A blocking flow: depth first, never looking at an arc again that led nowhere.
        free[:] = start[:-1]
        length = 0
        u = source
        while True:
            if u == sink:
                least = residual[path[0]]
                for step in range(1, length):
                    least = min(least, residual[path[step]])
                value += least
                full = length
                for step in range(length - 1, -1, -1):
                    p = path[step]
                    residual[p] -= least
                    residual[mate[p]] += least
                    if residual[p] == 0:
                        full = step
                length = full
                u = to[mate[path[length]]]
            advanced = False
            while free[u] < start[u + 1]:
                p = free[u]
                v = to[p]
                if distance[v] == distance[u] - 1 and residual[p] > 0:
                    path[length] = p
                    length += 1
                    u = v
                    advanced = True
                    break
                free[u] += 1
            if not advanced:
                if u == source:
                    break
                distance[u] = -1
                length -= 1
                u = to[mate[path[length]]]
                free[u] += 1

    sides = np.zeros((2, n_nodes), dtype=np.bool_)
    for side in range(2):
        least = 0 if side == 0 else negligible
        reached = sides[side]
        reached[source] = True
        queue[0] = source
        first, last = 0, 1
        while first < last:
            u = queue[first]
            first += 1
            for p in range(start[u], start[u + 1]):
                if residual[p] > least and not reached[to[p]]:
                    reached[to[p]] = True
                    queue[last] = to[p]
                    last += 1
    return value, sides[0], sides[1]
