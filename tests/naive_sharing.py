"""Sharing in a network by the letter of Fouad's chapter 7: dense exponentials, and all level vectors and matrices A."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from scipy import linalg

Edges = Sequence[tuple[int, int]]


def adjacency(n: int, edges: Edges, *, directed: bool = False) -> np.ndarray:
    """1 where the first tells the second."""
    a = np.zeros((n, n))
    for u, v in edges:
        if u != v:
            a[u, v] = 1.0
            if not directed:
                a[v, u] = 1.0
    return a


def generator(n: int, edges: Edges, leak: str, *, directed: bool = False) -> np.ndarray:
    """``A - D``, or ``D^-1 A - I`` with ones for those without friends."""
    a = adjacency(n, edges, directed=directed)
    if leak == "laplacian":
        return a - np.diag(a.sum(axis=1))
    return walk(n, edges, directed=directed) - np.eye(n)


def walk(n: int, edges: Edges, *, directed: bool = False) -> np.ndarray:
    """The row-stochastic leak matrix."""
    a = adjacency(n, edges, directed=directed)
    return np.array([row / row.sum() if row.any() else np.eye(n)[i] for i, row in enumerate(a)]).reshape(n, n)


def kernel(n: int, edges: Edges, leak: str, time: float, *, directed: bool = False) -> np.ndarray:
    return linalg.expm(time * generator(n, edges, leak, directed=directed))


def risk(phi: float, k: np.ndarray, trust: np.ndarray, u: int, v: int) -> float:
    """``R(u, x, v)``."""
    return phi * sum(k[v, j] * trust[u, j] for j in range(len(k)))


def common_friends(n: int, edges: Edges, i: int, j: int, *, directed: bool = False) -> list[int]:
    """Who is told by i and tells j."""
    a = adjacency(n, edges, directed=directed)
    return [f for f in range(n) if a[i, f] and a[f, j]]


def consistent(friends: Sequence[Sequence[int]], heights: Sequence[int], x: Sequence[int], consistency: str) -> int:
    """ξ; attributes of height 0 count nowhere."""
    counting = [i for i, h in enumerate(heights) if h]
    agreeing = all if consistency == "all" else any
    return sum(agreeing(g[i] <= x[i] for i in counting) for g in friends)


def modified_aggregate(
    heights: Sequence[int],
    weights: Sequence[Sequence[float]],
    utilities: Sequence[Sequence[float]],
    friends: Sequence[Sequence[int]],
    *,
    trade_off: float,
    kappa: float,
    consistency: str,
    zero_phi: str,
) -> tuple[tuple[int, ...], float]:
    """Best level vector and its f: of equals the one of the highest utility, then the first in lexicographic order."""
    counting = [i for i, h in enumerate(heights) if h]
    nothing_hidden = tuple(0 for _ in heights)
    positive = [weights[i][s] for i in counting for s in range(heights[i] + 1) if weights[i][s] > 0]
    if trade_off == 0 or not positive:
        return nothing_hidden, sum(utilities[i][0] for i in counting) ** kappa
    best: tuple[float, float, tuple[int, ...]] | None = None
    for x in itertools.product(*(range(h + 1) for h in heights)):
        phi = sum(weights[i][x[i]] for i in counting)
        u = sum(utilities[i][x[i]] for i in counting)
        if phi == 0 and zero_phi == "exclude":
            continue
        xi = consistent(friends, heights, x, consistency)
        f = trade_off * xi / (phi or min(positive)) + u**kappa
        if best is None or f > best[0] * (1 + 1e-12) or (f >= best[0] * (1 - 1e-12) and u > best[1] * (1 + 1e-12)):
            best = f, u, x
    assert best is not None
    return best[2], best[0]


def loss(f: np.ndarray, phi: np.ndarray, a: np.ndarray) -> float:
    """``L(A)`` with f (n, n), Φ (n, k), A (n, n, k)."""
    n, _, k = a.shape
    return sum(f[i, j] * sum(phi[i, m] * a[i, j, m] for m in range(k)) for i in range(n) for j in range(n))


def all_levels(tops: Sequence[int]) -> list[tuple[int, ...]]:
    return list(itertools.product(*(range(top + 1) for top in tops)))
