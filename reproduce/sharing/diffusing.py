"""Diffusion computed in three ways, against dense exponentials of small networks (F12 §7.3).

``whole``: a truncated series on the whole graph. ``ego network``: on the ball around the one who sees. ``integers``: as
tasks compute it step by step, in units of 2^-62, so that sums do not depend on their order. Each says beforehand, or
with its answer, how far it is from ``exp(tL)`` in the 1-norm of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import process_time
from typing import get_args

import numpy as np
import scipy

from privrisk_spark.extensions.network.kernels.diffusion import (
    UNIT_BITS,
    Leak,
    Series,
    diffused,
    ego_average,
    flow,
    rate,
    settled,
    unit_weights,
    weighted,
)
from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from reproduce.generated.clustered import keyed_uniforms
from reproduce.generated.network import SocialNetwork

LEAKS: tuple[Leak, ...] = get_args(Leak)
WHOLE, EGO, INTEGERS, DENSE = "whole graph", "ego network", "integers, as in tasks", "dense exponential"

TIMES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
NETWORKS = (32, 64, 128, 256)
"""Users of the small networks; errors are told of the largest."""

FRIENDS = 4
"""Friendships that are drawn for each user, so that small networks have no more than a few."""

RADIUS, ERROR = 2, 1e-6
"""Of the ego network, and of every series."""

_STARTS = 8
_ROUNDING = 1e-12
"""What the dense exponential itself may be off by."""


@dataclass(frozen=True)
class Computed:
    """One way to compute rows of ``exp(tL)``.

    Attributes
    ----------
    leak : {"laplacian", "stochastic"}
    users : int
        Of the network.
    error : float
        Greatest 1-norm of the difference of a row from the dense exponential's.
    bound : float
        What the method says it is at most, of the same row or of all.
    held : bool
        Whether no row is farther off than its bound.
    seconds : float
        CPU time of a row.
    """

    method: str
    leak: Leak
    users: int
    time: float
    error: float
    bound: float
    held: bool
    seconds: float


@dataclass(frozen=True)
class Kernel:
    """What ``exp(tL)`` is like.

    Attributes
    ----------
    leak : {"laplacian", "stochastic"}
    rows, columns : float
        Greatest difference of the sum of a row, and of a column, from 1.
    asymmetry : float
        Greatest difference of an entry from that across the diagonal.
    moved, left : float
        Greatest 1-norm of the difference of a row from its start, and from its limit.
    """

    leak: Leak
    time: float
    rows: float
    columns: float
    asymmetry: float
    moved: float
    left: float


@dataclass(frozen=True)
class Matrix:
    """What one of the two matrices L is like.

    Attributes
    ----------
    rows : float
        Greatest sum of a row, in absolute value, if all are the same; NaN if they differ.
    largest, smallest : float
        Real parts of the eigenvalues.
    eigen : float
        Greatest difference of ``Σ v e^{tλ} v^T`` from the exponential at t = 1, with L's symmetric eigenvectors.
    """

    name: str
    rows: float
    largest: float
    smallest: float
    eigen: float


@dataclass(frozen=True, eq=False)
class Diffusing:
    """Everything about diffusion.

    Attributes
    ----------
    users, edges, components : int
        Of the largest small network.
    reached : tuple of float
        Share of ordered pairs of different users of one component between whom ``L^p`` is positive, for p = 1, 2, 4 of
        the leak matrix, and whether ``exp(L)`` is.
    rises : tuple of int
        Of pairs (u, v), those whose risk R falls and rises where u trusts everybody more by 1; and how many there are.
    """

    users: int
    edges: int
    components: int
    computed: tuple[Computed, ...]
    kernels: tuple[Kernel, ...]
    matrices: tuple[Matrix, ...]
    reached: tuple[float, ...]
    rises: tuple[int, int, int]


def small_network(users: int, seed: int) -> Graph:
    """The first friendships of a generated network, a few of each user."""
    u, v = next(SocialNetwork(users, 1, seed).friendships())
    return Graph.of_edges(users, *(end[: FRIENDS * users].astype(np.int32) for end in (u, v)))


def adjacency(graph: Graph) -> FloatArray:
    """float64 (n, n)."""
    found = np.zeros((graph.n, graph.n))
    found[np.repeat(np.arange(graph.n), graph.degree), graph.indices] = 1.0
    return found


def leak_matrix(graph: Graph) -> FloatArray:
    """The row-stochastic matrix: each user tells one friend, and one without friends nobody."""
    friends = adjacency(graph)
    found: FloatArray = friends / np.maximum(graph.degree, 1)[:, None] + np.diag((graph.degree == 0).astype(np.float64))
    return found


def generator(graph: Graph, leak: Leak) -> FloatArray:
    """``L``: ``A - D``, or the leak matrix less the identity."""
    if leak == "laplacian":
        found: FloatArray = adjacency(graph) - np.diag(graph.degree.astype(np.float64))
        return found
    return leak_matrix(graph) - np.eye(graph.n)


def in_integers(graph: Graph, leak: Leak, time: float, users: IntArray, error: float) -> tuple[FloatArray, FloatArray]:
    """Rows of ``exp(tL)`` as tasks compute them, and what their sums miss of 1: the 1-norm of the error.

    Returns
    -------
    values : ndarray of float64, shape (n, b)
    bounds : ndarray of float64, shape (b,)
    """
    q = int(rate(graph, leak))
    weights = unit_weights(Series.poisson(q * time, error)).tolist()
    whole = 1 << UNIT_BITS
    values, bounds = np.zeros((graph.n, len(users))), np.zeros(len(users))
    owner = np.repeat(np.arange(graph.n), graph.degree)
    for column, user in enumerate(users.tolist()):
        amount = np.zeros(graph.n, dtype=np.int64)
        amount[user] = whole
        total = weighted(amount, weights[0])
        for weight in weights[1:]:
            kept, to_each = flow(leak, q, amount, graph.degree)
            np.add.at(kept, owner, to_each[graph.indices])
            amount = kept
            total = total + weighted(amount, weight)
        values[:, column] = np.ldexp(total.astype(np.float64), -UNIT_BITS)
        bounds[column] = (whole - int(total.sum())) / whole
    return values, bounds


def diffusing(seed: int) -> Diffusing:
    """Compute everything on generated small networks."""
    computed, kernels = [], []
    for users in NETWORKS:
        graph = small_network(users, seed)
        last = users == NETWORKS[-1]
        for leak in LEAKS:
            for time in TIMES if last else (1.0,):
                started = process_time()
                dense: FloatArray = scipy.linalg.expm(time * generator(graph, leak))
                seconds = (process_time() - started) / users
                computed.append(Computed(DENSE, leak, users, time, 0.0, _ROUNDING, True, seconds))
                computed += _ways(graph, leak, time, dense)
                if last:
                    kernels.append(_kernel(graph, leak, time, dense))
    graph = small_network(NETWORKS[-1], seed)
    ends = settled(graph, "laplacian", np.arange(graph.n, dtype=np.int32))
    return Diffusing(
        graph.n,
        len(graph.indices) // 2,
        round(float(ends.max(axis=0).sum())),
        tuple(computed),
        tuple(kernels),
        tuple(_matrices(graph)),
        _reached(graph, ends > 0),
        _rises(graph, seed),
    )


def _starts(graph: Graph) -> IntArray:
    """Users evenly from the ends of the list to the middle of it, of many friends and of few."""
    return np.unique(np.linspace(0, graph.n - 1, _STARTS).astype(np.int32))


def _ways(graph: Graph, leak: Leak, time: float, dense: FloatArray) -> Iterator[Computed]:
    users = _starts(graph)

    def judged(method: str, errors: FloatArray, bounds: FloatArray, seconds: float) -> Computed:
        worst = int(errors.argmax())
        held = bool((errors <= bounds + _ROUNDING).all())
        return Computed(
            method, leak, graph.n, time, float(errors[worst]), float(bounds[worst]), held, seconds / len(users)
        )

    def of_columns(values: FloatArray) -> FloatArray:
        errors: FloatArray = np.abs(values - dense[users].T).sum(axis=0)
        return errors

    started = process_time()
    spread = diffused(graph, leak, time, users, ERROR)
    seconds = process_time() - started
    yield judged(WHOLE, of_columns(spread.values), np.full(len(users), spread.error), seconds)
    # What an ego network tells of v is an average over where information spreads to: here of +1 and -1 in turn.
    signs = np.where(np.arange(graph.n) % 2, -1.0, 1.0)
    started = process_time()
    egos = [_ego(graph, leak, time, user, signs) for user in users.tolist()]
    seconds = process_time() - started
    errors = np.abs(np.array([value for value, _ in egos]) - dense[users] @ signs)
    yield judged(EGO, errors, np.array([error for _, error in egos]), seconds)
    started = process_time()
    values, bounds = in_integers(graph, leak, time, users, ERROR)
    yield judged(INTEGERS, of_columns(values), bounds, process_time() - started)


def _ego(graph: Graph, leak: Leak, time: float, user: int, function: FloatArray) -> tuple[float, float]:
    """An average on the ball around a user, and the bound on its error; the function is 1 at most."""
    ball = graph.ball(user, RADIUS)
    degrees = graph.degree[ball]
    q = float(degrees.max(initial=0)) if leak == "laplacian" else 1.0
    series = Series.poisson(q * time, ERROR)
    values, error = ego_average(
        graph.within(ball),
        degrees,
        leak,
        q,
        series,
        function[ball],
        np.searchsorted(ball, [user]),
        largest=1.0,
    )
    return float(values[0]), float(error[0])


def _kernel(graph: Graph, leak: Leak, time: float, dense: FloatArray) -> Kernel:
    limit = settled(graph, leak, np.arange(graph.n, dtype=np.int32)).T
    return Kernel(
        leak,
        time,
        float(np.abs(dense.sum(axis=1) - 1).max()),
        float(np.abs(dense.sum(axis=0) - 1).max()),
        float(np.abs(dense - dense.T).max()),
        float(np.abs(dense - np.eye(graph.n)).sum(axis=1).max()),
        float(np.abs(dense - limit).sum(axis=1).max()),
    )


def _matrices(graph: Graph) -> Iterator[Matrix]:
    named = {
        "A - D": generator(graph, "laplacian"),
        "D⁻¹A - I": generator(graph, "stochastic"),
        "D⁻¹A": leak_matrix(graph),
    }
    for name, matrix in named.items():
        sums = matrix.sum(axis=1)
        same = float(sums[0]) if np.ptp(sums) < _ROUNDING * graph.n else float("nan")
        values = scipy.linalg.eigvals(matrix).real
        # What a symmetric solver takes for the eigenvectors of whatever it is given.
        of, vectors = scipy.linalg.eigh(matrix)
        rebuilt = (vectors * np.exp(of)) @ vectors.T
        yield Matrix(
            name,
            same,
            float(values.max()),
            float(values.min()),
            float(np.abs(rebuilt - scipy.linalg.expm(matrix)).max()),
        )


def _reached(graph: Graph, together: np.ndarray) -> tuple[float, ...]:
    others = together & ~np.eye(graph.n, dtype=np.bool_)
    step = leak_matrix(graph)
    powers = [np.linalg.matrix_power(step, p) for p in (1, 2, 4)]
    powers.append(scipy.linalg.expm(generator(graph, "stochastic")))
    return tuple(float((power[others] > 0).mean()) for power in powers)


def _rises(graph: Graph, seed: int) -> tuple[int, int, int]:
    """Compare ``Σ_j K_vj T_uj`` with the same for a trust that is 1 higher everywhere."""
    dense = scipy.linalg.expm(generator(graph, "stochastic"))
    trust: LongArray = np.floor(3 * keyed_uniforms(seed, "trust of everybody", (graph.n, graph.n))).astype(np.int64) - 1
    before, after = trust @ dense.T, (trust + 1) @ dense.T
    return int((after < before).sum()), int((after > before).sum()), before.size
