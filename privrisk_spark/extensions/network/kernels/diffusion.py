"""What leaks to whom: diffusion on the graph (F12 §7.3), ``R(u, x, v) = Φ_u(x) Σ_j K_vj T_uj`` with ``K = exp(tL)``.

The thesis says of one L that its rows sum to one and that it is a Laplacian, which are two different matrices:

* ``laplacian``: ``L = A - D``. Every edge leaks at rate 1. The rows of K sum to one; where edges go both ways K is
  symmetric, and its columns do too.
* ``stochastic``: ``L = D^-1 A - I``. Every user leaks at rate 1, to a friend drawn evenly; one without friends keeps
  what he has. The rows of K sum to one.

In a directed graph ``A_ij`` is 1 where i tells j, and ``D_ii`` is how many i tells. Nothing flows against an edge.

K is never formed. With a rate ``q`` at least as large as every ``-L_ii``, ``B = I + L/q`` has non-negative entries and
rows that sum to one, and ``K = Σ_k P(N = k) B^k`` for N of the Poisson law of mean ``qt`` (uniformization: Jensen
1953). Cut off after some terms the series is at most K in every entry, so that what is missing of the sum of a row
bounds its error in the 1-norm; the weights are rounded down, so that this is a bound for the computed weights too.
Walks of p steps (``L^p`` for the row-stochastic leak matrix) and personalized PageRank are the same sum with other
weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray

Leak = Literal["laplacian", "stochastic"]

MOST_STEPS = 1_000_000
"""Largest mean ``qt`` of a series. Under ``laplacian`` it is the time times the largest degree."""

LEAST_ERROR = 1e-12
"""Smallest error that can be asked of a series: below, its weights in 64 bits miss as much."""

SQUARED_USERS, SQUARED_FROM = 500, 1000
"""Users of a graph for which :func:`squared` is used, at most, and steps of a series above which it is."""

_TERMS = 40
"""Terms of the exponential of a mean of at most 1: those left out sum to less than 1e-47."""

_UP = 2.0**-52


@dataclass(frozen=True, eq=False)
class Series:
    """``Σ_k weights[k] B^k``, cut off.

    Attributes
    ----------
    weights : ndarray of float64, shape (steps + 1,)
        Non-negative; none is above the exact one.
    missing : float
        At least 1 - the exact sum of ``weights``; their exact values sum to one.
    """

    weights: FloatArray
    missing: float

    @classmethod
    def poisson(cls, mean: float, error: float) -> Series:
        """Diffusion: the law of Poisson of mean ``qt``, as many terms as make ``missing <= error``.

        Parameters
        ----------
        mean : float
            At least 0, at most 1e6.
        error : float
            In [1e-12, 1).
        """
        if not 0 <= mean <= MOST_STEPS:
            raise InputError(f"sharing.model.time: rate times time must be in [0, {MOST_STEPS}], not {mean:g}.")
        if mean == 0:
            return cls(np.ones(1), 0.0)
        # Relative to the weight of the mode, outwards (Fox and Glynn 1988); each further step is rounded twice.
        mode = math.floor(mean)
        beyond = math.ceil(20 * math.sqrt(mean) + 200)
        low = max(0, mode - beyond)
        down = np.cumprod(np.arange(mode, low, -1) / mean)[::-1] if mode > low else np.zeros(0)
        up = np.cumprod(mean / np.arange(mode + 1, mode + beyond + 1))
        relative = np.concatenate([down, [1.0], up])
        step = np.abs(np.arange(low, mode + beyond + 1) - mode)
        # The ratios fall, so what is beyond either end sums to less than its last one but for a factor 1/(1 - ratio).
        ratio = max(mean / (mode + beyond + 1), low / mean)
        ends = (relative[-1] + (relative[0] if low else 0.0)) * ratio / (1.0 - ratio)
        whole = (math.fsum((relative * (1.0 + (step + 4) * _UP)).tolist()) + ends) * (1.0 + 4 * _UP)
        weights = np.concatenate([np.zeros(low), np.maximum(relative / whole * (1.0 - (step + 4) * _UP), 0.0)])
        return cls._cut(weights, error)

    @classmethod
    def _cut(cls, weights: FloatArray, error: float) -> Series:
        """Keep as many weights as are needed."""
        if not LEAST_ERROR <= error < 1:
            raise InputError(f"sharing.model.error: must be in [{LEAST_ERROR:g}, 1), not {error:g}.")
        enough = int(np.searchsorted(np.cumsum(weights), 1.0 - error, side="left")) + 1
        while True:
            missing = _missing(weights[:enough])
            if missing <= error:
                return cls(weights[:enough], missing)
            if enough >= len(weights):
                raise InputError(f"sharing.model.error: {error:g} is less than the arithmetic can promise here.")
            enough += 1

    @classmethod
    def geometric(cls, restart: float, error: float) -> Series:
        """Personalized PageRank: ``weights[k] = a (1 - a)^k``.

        Parameters
        ----------
        restart : float
            ``a`` in (0, 1].
        error : float
            In [1e-12, 1).
        """
        if not 0 < restart <= 1:
            raise InputError(f"sharing.trust.restart: must be in (0, 1], not {restart:g}.")
        steps = 0 if restart == 1 else math.ceil(math.log(LEAST_ERROR / 4) / math.log1p(-restart))
        if steps > MOST_STEPS:
            raise InputError(f"sharing.trust.restart: {restart:g} is so small that it takes {steps} steps.")
        powers = np.concatenate([[1.0], np.cumprod(np.full(steps, 1.0 - restart))])
        return cls._cut(np.maximum(restart * powers * (1.0 - (np.arange(steps + 1) + 4) * _UP), 0.0), error)

    @classmethod
    def walk(cls, steps: int) -> Series:
        """``L^p``: exactly p steps; nothing is missing."""
        if not 0 <= steps <= MOST_STEPS:
            raise InputError(f"sharing.model.steps: must be in [0, {MOST_STEPS}], not {steps}.")
        return cls(np.concatenate([np.zeros(steps), [1.0]]), 0.0)


def _missing(values: FloatArray) -> float:
    """At least 1 - the exact sum of non-negative numbers that sum to at most 1."""
    return max(1.0 - math.fsum(values.tolist()), 0.0) + 2 * _UP


@dataclass(frozen=True, eq=False)
class Spread:
    """Rows of K, cut off.

    Attributes
    ----------
    values : ndarray of float64, shape (n, b)
        Column c is ``K_v·`` of start c; no entry is above the exact one but for rounding.
    error : float
        Bound on the 1-norm of the error of a column, per unit of the 1-norm of its start; rounding included.
    """

    values: FloatArray
    error: float


def rate(graph: Graph, leak: Leak) -> float:
    """Rate ``q``: the largest degree for ``laplacian``, 1 for ``stochastic``."""
    return float(graph.degree.max(initial=0)) if leak == "laplacian" else 1.0


def spread(graph: Graph, leak: Leak, series: Series, starts: FloatArray) -> Spread:
    """Spread given amounts over the whole graph.

    Parameters
    ----------
    leak : {"laplacian", "stochastic"}
        For a walk of p steps and PageRank ``stochastic``.
    series : Series
        Of mean ``rate(graph, leak) t`` for diffusion over a time t.
    starts : ndarray of float64, shape (n, b)
        What there is at first; column c starts at v where it is 1 at v and 0 elsewhere (:func:`unit_starts`). Any sign.
    """
    values = _series_of(graph, graph.degree, leak, rate(graph, leak), series, starts)
    return Spread(values, series.missing + _rounding(graph.transposed.degree, series))


def expected(graph: Graph, leak: Leak, series: Series, trust: FloatArray) -> Spread:
    """``Σ_j K_vj T_uj`` of some users u and of all users v at once: the same sum from the other end.

    Cheaper than :func:`spread` where there are fewer users u than users v.

    Parameters
    ----------
    graph, leak, series
        As of :func:`spread`.
    trust : ndarray of float64, shape (n, b)
        Column c holds ``T_u·`` of a user u, or any function of it.

    Returns
    -------
    Spread
        Row v of ``values`` is about v; ``error`` bounds each entry's error, per unit of the largest absolute value of
        its column of ``trust``.
    """
    values = _series_of(graph, graph.degree, leak, rate(graph, leak), series, trust, backward=True)
    return Spread(values, series.missing + _rounding(graph.degree, series))


def _rounding(degree: LongArray, series: Series) -> float:
    """Bound on what rounding does: every step adds up at most as many terms of one sign as there are friends."""
    return float((int(degree.max(initial=0)) + 8) * (len(series.weights) + 1)) * _UP


def _series_of(
    graph: Graph,
    degree: LongArray,
    leak: Leak,
    q: float,
    series: Series,
    starts: FloatArray,
    *,
    backward: bool = False,
) -> FloatArray:
    """``Σ_k weights[k] B^k`` times starts from the left, or ``backward`` from the right.

    With degrees that count friends outside the graph, what goes to these is lost.
    """
    amount = np.array(starts, dtype=np.float64)
    total: FloatArray = series.weights[0] * amount
    friends = degree.astype(np.float64)[:, None]
    alone = friends == 0
    over = graph if backward else graph.transposed
    for weight in series.weights[1:].tolist():
        if leak == "stochastic" and backward:
            amount = np.where(alone, amount, over.summed(amount) / np.maximum(friends, 1.0))
        elif leak == "stochastic":
            to_each = np.divide(amount, friends, out=np.zeros_like(amount), where=~alone)
            amount = np.where(alone, amount, 0.0) + over.summed(to_each)
        elif q > 0:
            amount = amount * ((q - friends) / q) + over.summed(amount / q)
        if weight:
            total += weight * amount
    return total


def unit_starts(n: int, users: IntArray) -> FloatArray:
    """float64 (n, b): 1 at each user's place in his column."""
    starts = np.zeros((n, len(users)))
    starts[users, np.arange(len(users))] = 1.0
    return starts


def diffused(graph: Graph, leak: Leak, time: float, users: IntArray, error: float) -> Spread:
    """``K_v·`` for users v over a time, on the whole graph.

    Parameters
    ----------
    leak : {"laplacian", "stochastic"}
    time : float
        ``t``: at least 0; infinity is the limit, :func:`settled`.
    users : ndarray of int32, shape (b,)
    error : float
        In [1e-12, 1): bound on the 1-norm of the error of each column.
    """
    if time == np.inf:
        return Spread(settled(graph, leak, users), 4 * _UP)
    series = Series.poisson(rate(graph, leak) * time, error)
    return spread(graph, leak, series, unit_starts(graph.n, users))


def settled(graph: Graph, leak: Leak, users: IntArray) -> FloatArray:
    """``K_v·`` for ``t`` to infinity.

    Under ``laplacian`` even over v's component; under ``stochastic`` in it in proportion to degrees. Of a
    directed graph it is not known here.

    Returns
    -------
    ndarray of float64, shape (n, b)
    """
    if graph.directed:
        raise InternalError("where a directed graph settles is not known here")
    links = scipy.sparse.csr_array(
        (np.ones(len(graph.indices), dtype=np.int8), graph.indices, graph.indptr), shape=(graph.n, graph.n)
    )
    n_components, component = scipy.sparse.csgraph.connected_components(links, directed=False)
    # A user without friends is a component of his own, in which everything stays with him.
    share = np.ones(graph.n) if leak == "laplacian" else np.maximum(graph.degree, 1).astype(np.float64)
    whole = np.bincount(component, weights=share, minlength=n_components)
    there = component[:, None] == component[users][None, :]
    found: FloatArray = np.where(there, (share / whole[component])[:, None], 0.0)
    return found


def squared(graph: Graph, leak: Leak, time: float, steps: int | None = None) -> Spread:
    """``K`` of a small graph by repeated squaring, whose cost grows with the logarithm of the time.

    Products of matrices whose rows sum to one add up their errors: ``|A'B' - AB| <= |A' - A| + |B' - B|`` in the norm
    of the rows, so each squaring doubles the error, and the rounding of one product is added.

    Parameters
    ----------
    leak : {"laplacian", "stochastic"}
    time : float
        At least 0.
    steps : int, optional
        Of a walk that is taken instead.

    Returns
    -------
    Spread
        ``values`` has a row for each v; ``error`` bounds the 1-norm of the error of each row.
    """
    q, one = rate(graph, leak), np.eye(graph.n)
    step = _series_of(graph, graph.degree, leak, q, Series.walk(1), one, backward=True)
    rounding = 2 * (graph.n + _TERMS + 24) * _UP
    if steps is not None:
        return Spread(np.linalg.matrix_power(step, steps), min((steps + 1) * rounding, 2.0))
    doublings = max(0, math.ceil(math.log2(max(q * time, 1.0))))
    mean = q * time / 2.0**doublings
    values = term = math.exp(-mean) * one
    for k in range(1, _TERMS):
        term = term @ step * (mean / k)
        values = values + term
    for _ in range(doublings):
        values = values @ values
    return Spread(values, min(2.0 ** (doublings + 1) * rounding, 2.0))


def ego_average(
    ball: Graph, degree: LongArray, leak: Leak, q: float, series: Series, function: FloatArray, wanted: LongArray, *,
    largest: float,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Average a function over where information has spread to, on the ego network of a user.

    A walk that starts d steps from him, along the edges, and leaves a ball of radius r takes more than ``r - d`` steps;
    until then it is at most as fast as a Poisson process of the largest rate in the ball (:func:`ego_tail`). How much
    leaves is found exactly, by averaging 1 as well: ``1 - (K 1)(v)`` is what is missing of v.

    Parameters
    ----------
    ball : Graph
        Friendships within the ball.
    degree : ndarray of int64, shape (m,)
        Number of friends of each of its users, those outside included.
    leak : {"laplacian", "stochastic"}
    q : float
        The rate: at least every degree for ``laplacian``, 1 for ``stochastic``.
    series : Series
        Of mean ``qt`` for diffusion over a time t; what it lacks counts besides what leaves the ball.
    function : ndarray of float64, shape (m,)
        g in the ball.
    wanted : ndarray of int64, shape (n_wanted,)
        Places in the ball of users v.
    largest : float
        Largest absolute value of g, in the ball or outside.

    Returns
    -------
    values : ndarray of float64, shape (n_wanted,)
        ``Σ_j K_vj g(j)`` as far as it comes from walks that never leave the ball.
    error : ndarray of float64, shape (n_wanted,)
        Bound on the error of each: what left the ball or the series lacks, times ``largest``.
    """
    both = np.column_stack([function, np.ones(len(degree))])
    found = _series_of(ball, degree, leak, q, series, both, backward=True)[wanted]
    missing = np.maximum(1.0 - found[:, 1], 0.0) + _rounding(degree, series)
    return found[:, 0], np.minimum(missing, 1.0) * largest


def ego_spread(ball: Graph, degree: LongArray, leak: Leak, q: float, series: Series, start: int) -> Spread:
    """Spread from the user in the middle of a ball, whose radius he needs more steps than to leave (:func:`ego_tail`).

    Parameters
    ----------
    ball, degree, leak, q, series
        As of :func:`ego_average`.
    start : int
        His place in the ball.

    Returns
    -------
    Spread
        One column; ``error`` counts what leaves the ball and what the series lacks.
    """
    values = _series_of(ball, degree, leak, q, series, unit_starts(len(degree), np.array([start], dtype=np.int32)))
    missing = max(1.0 - float(values.sum()), 0.0) + _rounding(ball.transposed.degree, series)
    return Spread(values, min(missing, 1.0))


def ego_tail(mean: float, steps: int) -> float:
    """Bound on the probability that a Poisson process of this mean takes more than so many steps."""
    if steps < 0:
        return 1.0
    series = Series.poisson(mean, LEAST_ERROR)
    return min(_missing(series.weights[: steps + 1]), 1.0)


def ego_radius(mean: float, error: float, most: int) -> int | None:
    """Least radius, up to ``most``, that no more than ``error`` of what starts one step away leaves; None for none."""
    return next((radius for radius in range(1, most + 1) if ego_tail(mean, radius - 1) <= error), None)


UNIT_BITS = 62
"""Amounts in tasks are integers in units of 2^-62: their sums do not depend on the order, and are rounded down."""


def whole_unit() -> int:
    """All there is at first, in units of 2^-62."""
    return 1 << UNIT_BITS


def of_units(amount: LongArray) -> FloatArray:
    """float64: amounts in units of 2^-62, rounded to the nearest."""
    return np.ldexp(amount.astype(np.float64), -UNIT_BITS)


def missing_units(amount: LongArray) -> FloatArray:
    """float64: at least what amounts lack of one, which none is above; exact but for rounding up."""
    return np.ldexp((whole_unit() - amount).astype(np.float64), -UNIT_BITS) * (1 + 4 * _UP)


def unit_weights(series: Series) -> LongArray:
    """int64 (steps + 1,): the weights in units of 2^-62, rounded down."""
    return np.floor(np.ldexp(series.weights, UNIT_BITS)).astype(np.int64)


def flow(leak: Leak, rate: int, amount: LongArray, degree: LongArray) -> tuple[LongArray, LongArray]:
    """One step ``B`` from a user's side: what he keeps and what goes to each of his friends.

    Parameters
    ----------
    leak : {"laplacian", "stochastic"}
    rate : int
        ``q``: at least the largest degree for ``laplacian``; 1 for ``stochastic``.
    amount : ndarray of int64, shape (m,)
        In units of 2^-62, non-negative.
    degree : ndarray of int64, shape (m,)

    Returns
    -------
    kept, to_each : ndarray of int64, shape (m,)
        Rounded down.
    """
    if leak == "stochastic":
        return np.where(degree == 0, amount, 0), np.where(degree == 0, 0, amount // np.maximum(degree, 1))
    if rate == 0:
        return amount.copy(), np.zeros_like(amount)
    whole, rest = np.divmod(amount, rate)
    return whole * (rate - degree) + rest * (rate - degree) // rate, whole


def weighted(amount: LongArray, weight: int) -> LongArray:
    """``amount · weight`` in units of 2^-62, rounded down: too small by less than three units.

    Parameters
    ----------
    amount : ndarray of int64, shape (m,)
        In [0, 2^62].
    weight : int
        In [0, 2^62], of :func:`unit_weights`.
    """
    half = UNIT_BITS // 2
    high, low = amount >> half, amount & ((1 << half) - 1)
    weight_high, weight_low = weight >> half, weight & ((1 << half) - 1)
    found: LongArray = high * weight_high + (high * weight_low >> half) + (low * weight_high >> half)
    return found
