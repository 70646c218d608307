"""Modified-Aggregate, Algorithm 8 of F12, as it was published: layer by layer of Φ. For comparison only.

Step 5 maximizes over ``Φ(x) = τ_i``. This is no constraint of a lattice, and hardly any level vector satisfies it. Two
readings:

* ``equality``: by the letter. A layer without a level vector has no solution; if none has one, nothing is shown.
* ``layer``: over ``τ_i <= Φ(x) < τ_{i+1}``, with τ_i for Φ in the objective. Status: *proved* to have an ``f`` of at
  least ``1/(1 + ε)`` of the greatest.

Neither constraint is one of a lattice, so neither step is the supermodular problem that the proof of Theorem 7.5.1
calls it.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.modified_aggregate import Consistency, Pairs, Shown
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, Lattice

Reading = Literal["equality", "layer"]

MOST_NODES = 2**20


def algorithm8(
    pairs: Pairs,
    *,
    trade_off: float,
    kappa: float,
    epsilon: float,
    consistency: Consistency = "all",
    reading: Reading = "layer",
) -> Shown:
    """Algorithm 8 by enumeration; ``ξ = 0`` is an infinite risk, as published.

    Parameters
    ----------
    pairs : Pairs
        Of at most 2^20 level vectors each.
    trade_off, kappa : float
        As of :func:`~privrisk_spark.extensions.network.kernels.modified_aggregate.modified_aggregate`.
    epsilon : float
        Ratio of the layers less one, positive.
    consistency : {"all", "any"}
    reading : {"equality", "layer"}

    Returns
    -------
    Shown
        ``bound`` is infinite and ``proved`` False; ``visited`` counts the layers with a level vector.
    """
    if not epsilon > 0:
        raise InputError(f"epsilon must be positive. Got {epsilon!r}.")
    n, k = pairs.heights.shape
    levels, figures = np.zeros((n, k), dtype=np.int8), np.zeros((n, 4))
    counts = np.zeros((n, 2), dtype=np.int64)
    for p in range(n):
        lattice = Lattice(tuple(pairs.heights[p].tolist()))
        if lattice.n_nodes > MOST_NODES:
            raise InputError(f"Algorithm 8 enumerates lattices of up to {MOST_NODES} level vectors.")
        nodes = lattice.levels(np.arange(lattice.n_nodes))
        xi = _consistent(pairs, p, nodes, consistency)
        phi, u = (lattice.utility(_chains(values[p], pairs.heights[p])) for values in (pairs.weights, pairs.utilities))
        node, layers = _best(xi, phi, u**kappa, trade_off, epsilon, reading)
        risk = trade_off * xi[node] / phi[node] if phi[node] > 0 else 0.0
        levels[p] = nodes[node]
        figures[p] = risk + u[node] ** kappa, np.inf, phi[node], u[node]
        counts[p] = xi[node], layers
    return Shown(
        levels=levels,
        objective=figures[:, 0].copy(),
        bound=figures[:, 1].copy(),
        proved=np.zeros(n, dtype=np.bool_),
        sensitivity=figures[:, 2].copy(),
        utility=figures[:, 3].copy(),
        consistent=counts[:, 0].copy(),
        visited=counts[:, 1].copy(),
    )


def count_layers(log_ratio: FloatArray, epsilon: float) -> LongArray:
    """Return the number of layers, ``U + 1``; of a whole number of layers, no one more for rounding.

    Parameters
    ----------
    log_ratio : ndarray of float64
        Of the greatest Φ over the least.
    epsilon : float
        Positive.

    Returns
    -------
    ndarray of int64
    """
    found: LongArray = np.ceil(np.round(log_ratio / math.log1p(epsilon), 9)).astype(np.int64) + 1
    return found


def _chains(values: FloatArray, heights: LongArray) -> list[FloatArray]:
    """Values of the levels of each attribute; of one that counts nowhere, nothing."""
    return [of_level[: h + 1] if h else np.zeros(1) for of_level, h in zip(values, heights.tolist(), strict=True)]


def _consistent(pairs: Pairs, p: int, nodes: LongArray, consistency: Consistency) -> LongArray:
    counting = pairs.heights[p] > 0
    found = np.zeros(len(nodes), dtype=np.int64)
    for row in pairs.agreements[pairs.first[p] : pairs.first[p + 1]]:
        agreeing = (row <= nodes)[:, counting]
        found += agreeing.all(axis=1) if consistency == "all" else agreeing.any(axis=1)
    return found


def _best(
    xi: LongArray, phi: FloatArray, worth: FloatArray, trade_off: float, epsilon: float, reading: Reading
) -> tuple[int, int]:
    """Best of the layers' solutions by f, the first of equals; and how many layers have one."""
    last = len(phi) - 1
    positive = phi > 0
    if not positive.any():
        return 0, 0
    least = float(phi[positive].min())
    n_layers = int(count_layers(np.log(phi.max() / least), epsilon))
    best, value, layers = last, -math.inf, 0
    for layer in range(n_layers):
        tau = least * (1.0 + epsilon) ** layer
        above = phi >= tau * (1.0 - TOLERANCE)
        below = phi <= tau * (1.0 + TOLERANCE) if reading == "equality" else phi < tau * (1 + epsilon) * (1 - TOLERANCE)
        inside = np.flatnonzero(above & below)
        if not len(inside):
            continue
        layers += 1
        node = inside[(trade_off * xi[inside] / tau + worth[inside]).argmax()]
        here = trade_off * xi[node] / phi[node] + worth[node]
        if here > value:
            best, value = int(node), float(here)
    return best, layers
