"""What leaks to whom: diffusion on the graph (F12 §7.3), ``R(u, x, v) = Φ_u(x) Σ_j K_vj T_uj`` with ``K = exp(tL)``.

The thesis says of one L that its rows sum to one and that it is a Laplacian, which are two different matrices:

* ``laplacian``: ``L = A - D``. Every friendship leaks at rate 1. K is symmetric; its rows and columns sum to one.
* ``stochastic``: ``L = D^-1 A - I``. Every user leaks at rate 1, to a friend drawn evenly; one without friends keeps
  what he has. The rows of K sum to one.

K is never formed. With a rate ``q`` at least as large as every ``-L_ii``, ``B = I + L/q`` has non-negative entries and
rows that sum to one, and ``K = Σ_k P(N = k) B^k`` for N of the Poisson law of mean ``qt`` (uniformization: Jensen
1953). Cut off after some terms the series is at most K in every entry, so that what is missing of the sum of a row
bounds its error in the 1-norm; the weights are rounded down, so that this is a bound for the computed weights too.
Walks of p steps (``L^p`` for the row-stochastic leak matrix) and personalized PageRank are the same sum with other
weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from scipy import sparse

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.sharing.graph import Graph

Leak = Literal["laplacian", "stochastic"]


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
            In [1e-14, 1).
        """
        raise NotImplementedError

    @classmethod
    def geometric(cls, restart: float, error: float) -> Series:
        """Personalized PageRank: ``weights[k] = a (1 - a)^k``.

        Parameters
        ----------
        restart : float
            ``a`` in (0, 1].
        error : float
            In [1e-14, 1).
        """
        raise NotImplementedError

    @classmethod
    def walk(cls, steps: int) -> Series:
        """``L^p``: exactly p steps; nothing is missing."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Spread:
    """Rows of K, cut off.

    Attributes
    ----------
    values : ndarray of float64, shape (n, b)
        Column c is ``K_v·`` of start c; no entry is above the exact one but for rounding.
    error : float
        Bound on the 1-norm of what is missing of a column, for starts of total 1; rounding included.
    """

    values: FloatArray
    error: float


def rate(graph: Graph, leak: Leak) -> float:
    """Rate ``q``: the largest degree for ``laplacian``, 1 for ``stochastic``."""
    raise NotImplementedError


def spread(graph: Graph, leak: Leak, series: Series, starts: FloatArray) -> Spread:
    """Spread given amounts over the whole graph.

    Parameters
    ----------
    graph : Graph
    leak : {"laplacian", "stochastic"}
        For a walk of p steps and PageRank ``stochastic``.
    series : Series
        Of mean ``rate(graph, leak) t`` for diffusion over a time t.
    starts : ndarray of float64, shape (n, b)
        What there is at first; column c starts at v where it is 1 at v and 0 elsewhere (:func:`unit_starts`). Any sign.

    Returns
    -------
    Spread
    """
    raise NotImplementedError


def unit_starts(n: int, users: IntArray) -> FloatArray:
    """float64 (n, b): 1 at each user's place in his column."""
    raise NotImplementedError


def diffused(graph: Graph, leak: Leak, time: float, users: IntArray, error: float) -> Spread:
    """``K_v·`` for users v over a time, on the whole graph.

    Parameters
    ----------
    graph : Graph
    leak : {"laplacian", "stochastic"}
    time : float
        ``t``: at least 0; infinity is the limit, :func:`settled`.
    users : ndarray of int32, shape (b,)
    error : float
        In [1e-14, 1): bound on the 1-norm of the error of each column.
    """
    raise NotImplementedError


def settled(graph: Graph, leak: Leak, users: IntArray) -> FloatArray:
    """``K_v·`` for ``t`` to infinity.

    Under ``laplacian`` even over v's component; under ``stochastic`` in it in proportion to degrees.

    Returns
    -------
    ndarray of float64, shape (n, b)
    """
    raise NotImplementedError


@dataclass(frozen=True, eq=False)
class EgoSpread:
    """``K_v·`` as far as it comes from walks that never leave the ball around v.

    Attributes
    ----------
    users : ndarray of int32, shape (m,)
        The ball, ascending.
    values : ndarray of float64, shape (m,)
    error : float
        Bound on the 1-norm of what is missing: what left the ball, and what the series lacks.
    tail : float
        Bound known beforehand: a walk that leaves the ball takes more than ``radius`` steps, at most as many as a
        Poisson process of the largest rate in the ball.
    """

    users: IntArray
    values: FloatArray
    error: float
    tail: float


def ego_diffused(graph: Graph, leak: Leak, time: float, user: int, radius: int, error: float) -> EgoSpread:
    """``K_v·`` on the ego network of v.

    Parameters
    ----------
    graph : Graph
    leak : {"laplacian", "stochastic"}
    time : float
        At least 0, finite.
    user : int
        v.
    radius : int
        At least 0.
    error : float
        What the series may lack, besides what leaves the ball.
    """
    raise NotImplementedError


UNIT_BITS = 62
"""Amounts in tasks are integers in units of 2^-62: their sums do not depend on the order, and are rounded down."""


def unit_weights(series: Series) -> LongArray:
    """int64 (steps + 1,): the weights in units of 2^-62, rounded down."""
    raise NotImplementedError


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
    raise NotImplementedError


def weighted(amount: LongArray, weight: int) -> LongArray:
    """``amount · weight`` in units of 2^-62, rounded down: too small by less than three units.

    Parameters
    ----------
    amount : ndarray of int64, shape (m,)
        In [0, 2^62].
    weight : int
        In [0, 2^62], of :func:`unit_weights`.
    """
    raise NotImplementedError


def expected_trust(values: FloatArray, starts: LongArray, trust: sparse.csr_array) -> FloatArray:
    """``Σ_j K_vj T_uj`` of pairs (u, v).

    Parameters
    ----------
    values : ndarray of float64, shape (n, b)
        Of :class:`Spread`.
    starts : ndarray of int64, shape (n_pairs,)
        Column of each pair's v.
    trust : csr_array of float64, shape (n_pairs, n)
        ``T_u·`` of each pair's u, or any function of it.

    Returns
    -------
    ndarray of float64, shape (n_pairs,)
        Off by at most ``Spread.error`` times the largest absolute value of the pair's row. Times ``Φ_u(x)`` it is F12's
        R, which *rises* with trust: give ``f(T)`` (:mod:`~privrisk_spark.kernels.sharing.trust`) for a risk that falls.
    """
    raise NotImplementedError
