"""Modified-Aggregate, Algorithm 8 of F12, with the constraint of step 5 left out.

The published step 5 maximizes over ``Φ(x) = τ_i``, which is no constraint of a lattice. What remains without it is the
supermodular problem of Theorem 7.5.1, which is solved for large lattices too.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.algorithm8 import count_layers
from privrisk_spark.extensions.network.kernels.modified_aggregate import Consistency, Pairs, Shown, modified_aggregate
from privrisk_spark.kernels.arrays import FloatArray, LongArray


def without_constraint(
    pairs: Pairs, *, trade_off: float, kappa: float, epsilon: float, consistency: Consistency = "all"
) -> Shown:
    """Algorithm 8 with each layer's τ_i for Φ in the objective, over all level vectors. Status: *heuristic*.

    Parameters
    ----------
    trade_off, kappa : float
        As of :func:`~privrisk_spark.extensions.network.kernels.modified_aggregate.modified_aggregate`.
    epsilon : float
        Ratio of the layers less one, positive.
    consistency : {"all", "any"}

    Returns
    -------
    Shown
        The layers' solution of the greatest ``f``, the first of equals; one of ``Φ = 0`` is none, and if all are,
        nothing is shown. ``bound`` is infinite and ``proved`` False; ``visited`` counts the layers.
    """
    if not epsilon > 0:
        raise InputError(f"epsilon must be positive. Got {epsilon!r}.")
    n, _, width = pairs.weights.shape
    counting = pairs.heights > 0
    layers, least = layers_of(pairs, epsilon), _least(pairs)
    levels = pairs.heights.copy()
    figures, consistent = np.zeros((n, 3)), np.zeros(n, dtype=np.int64)
    figures[:, 0] = -np.inf
    for layer in range(int(layers.max(initial=0))):
        here = np.flatnonzero(layer < layers)
        # With the same weight at every level, Φ is τ_i whatever is shown.
        each = least[here] * (1.0 + epsilon) ** layer / np.maximum(counting[here].sum(axis=1), 1)
        even = np.where(counting[here], each[:, None], 0.0)[:, :, None] * np.ones(width)
        owner = np.repeat(np.arange(n), np.diff(pairs.first))
        first = np.concatenate([[0], np.cumsum(np.diff(pairs.first)[here])]).astype(np.int64)
        part = Pairs(pairs.heights[here], even, pairs.utilities[here], first, pairs.agreements[np.isin(owner, here)])
        found = modified_aggregate(part, trade_off=trade_off, kappa=kappa, consistency=consistency)
        phi = np.take_along_axis(pairs.weights[here], found.levels[:, :, None].astype(np.int64), axis=2)[:, :, 0]
        phi = np.where(counting[here], phi, 0.0).sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            f = np.where(phi > 0, trade_off * found.consistent / phi + found.utility**kappa, -np.inf)
        better = f > figures[here, 0]
        rows = here[better]
        levels[rows] = found.levels[better]
        figures[rows] = np.stack([f, phi, found.utility], axis=1)[better]
        consistent[rows] = found.consistent[better]
    none = np.isinf(figures[:, 0])
    at_root = np.take_along_axis(pairs.utilities, pairs.heights[:, :, None].astype(np.int64), axis=2)[:, :, 0]
    figures[none, 2] = np.where(counting, at_root, 0.0).sum(axis=1)[none]
    figures[none, 0] = figures[none, 2] ** kappa
    consistent[none] = np.diff(pairs.first)[none]
    return Shown(
        levels=levels,
        objective=figures[:, 0].copy(),
        bound=np.full(n, np.inf),
        proved=np.zeros(n, dtype=np.bool_),
        sensitivity=figures[:, 1].copy(),
        utility=figures[:, 2].copy(),
        consistent=consistent,
        visited=layers,
    )


def layers_of(pairs: Pairs, epsilon: float) -> LongArray:
    """How many layers each pair has, ``U + 1``; none where nothing costs anything.

    Parameters
    ----------
    epsilon : float
        Positive.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    least, most = _least(pairs), np.where(pairs.heights > 0, pairs.weights[:, :, 0], 0.0).sum(axis=1)
    there = most > 0
    ratio = np.where(there, most, 1.0) / np.where(there, least, 1.0)
    return np.where(there, count_layers(np.log(ratio), epsilon), 0)


def _least(pairs: Pairs) -> FloatArray:
    """φ_l, the least positive Φ of each pair; infinite if there is none."""
    inside = (np.arange(pairs.weights.shape[2]) <= pairs.heights[:, :, None]) & (pairs.heights > 0)[:, :, None]
    weights = np.where(inside, pairs.weights, 0.0)
    last = np.take_along_axis(weights, pairs.heights[:, :, None].astype(np.int64), axis=2)[:, :, 0].sum(axis=1)
    # If some attribute costs something however little is shown, the least is that of showing nothing.
    positive = np.where(weights > 0, weights, np.inf).min(axis=(1, 2), initial=np.inf)
    found: FloatArray = np.where(last > 0, last, positive)
    return found
