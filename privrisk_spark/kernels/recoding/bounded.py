"""The best scheme without a look at nodes that cannot win: in the order of what they cost at least.

A suppressed row costs no less than a released one by the metrics ``loss``, ``precision`` and ``ncp``, and nothing by
``height``, so that a node costs at least what it would if nothing were suppressed. That takes the marginals of single
attributes alone, no classes. Nodes are gone through in that order; once the next costs at least more than the best
that keeps the limit, no other can win. Status: *proved*; for other metrics, and without a monotone condition, it is
``flash``.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Problem, Scheme, best_of
from privrisk_spark.kernels.recoding.whole_lattice import Known, Looked, flash

__all__ = ["bounded", "least_costs"]

_SLACK = 1e-9
"""By which a bound may be rounded up."""

_AT_ONCE = 4096


def least_costs(measured: Measured, metric: str) -> FloatArray | None:
    """Return what every node costs at least.

    Parameters
    ----------
    measured : Measured
    metric : str
        Its name.

    Returns
    -------
    ndarray of float64, of the shape of the lattice
        Within 1e-9 of it, relatively; None for a metric of which nothing is known.
    """
    table = measured.table
    n, heights = max(table.rows, 1), table.lattice.heights
    chains = []
    for i, (leaves, domain) in enumerate(zip(measured.leaves, measured.domains, strict=True)):
        below = leaves[table.vectors[:, i]]  # (m, h_i + 1)
        if metric == "loss":
            mean = table.counts @ below / n
            chains.append(1.0 + (mean - 1.0) / (domain - 1.0) if domain > 1 and table.rows else np.ones(len(mean)))
        elif metric == "ncp":
            chains.append(table.counts @ np.where(below == 1, 0, below) / (n * domain * len(heights)))
        elif metric == "precision":
            some = table.rows > 0
            chains.append(some * np.arange(heights[i] + 1) / (max(heights[i], 1) * len(heights)))
        elif metric == "height":
            chains.append(np.arange(heights[i] + 1, dtype=np.float64))
        else:
            return None
    costs = np.ones(()) if metric == "loss" else np.zeros(())
    for chain in chains:
        costs = costs[..., None] * chain if metric == "loss" else costs[..., None] + chain
    return costs ** (1.0 / max(len(chains), 1)) - 1.0 if metric == "loss" else costs


def bounded(problem: Problem) -> Scheme | None:
    """Return the best scheme; None if none keeps the limit.

    Parameters
    ----------
    problem : Problem
        With fewer nodes than memory has room for a number of each.
    """
    costs = least_costs(problem.measured, problem.metric.name) if problem.monotone else None
    if costs is None:
        return flash(problem)
    looked = Looked(problem)
    known = Known(looked)
    lattice, flat = problem.measured.table.lattice, costs.ravel()
    ruled_out = known.ruled_out.reshape(-1)  # a view: it learns what they learn
    cheapest = np.argsort(flat, kind="stable")
    least, at = np.inf, 0
    while at < len(cheapest):
        some = cheapest[at : at + _AT_ONCE]
        at += _AT_ONCE
        for number in some[~ruled_out[some]]:
            if flat[number] > least + _SLACK * (1.0 + abs(least)):
                at = len(cheapest)
                break
            levels = tuple(int(level) for level in lattice.levels(np.array([number]))[0])
            known.settle(levels)
            if not ruled_out[number]:
                least = min(least, problem.metric.value(looked.at(levels)))
    found = list(looked.facts.values())
    return best_of(problem, found, nodes_evaluated=len(found), optimal=True)
