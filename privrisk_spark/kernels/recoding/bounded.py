"""The best scheme without a look at nodes that cannot win, as none costs less than its floor.

Floors are those of :mod:`privrisk_spark.kernels.recoding.floors`, where they are proved. By ``loss``, ``precision``,
``ncp``, ``height`` and ``entropy`` a node costs at least what it would if nothing were suppressed, which takes the
marginals of single attributes alone. Nodes are gone through in that order; once the next costs at least more than the
best that keeps the limit, no other can win. By ``dm``, ``aecs`` and ``classes`` a look at a node says what all that are
nowhere below it cost at least: nodes are gone through from the lowest, without those that cost too much.

Where the problem is monotone, looks rule out nodes by the limit, too. Status: *proved*, for any conditions.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.recoding.floors import Floors, exceeds
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.problem import Problem, Scheme, best_of
from privrisk_spark.kernels.recoding.whole_lattice import Known, Looked, by_height

__all__ = ["bounded", "least_costs"]

Levels = tuple[int, ...]

_AT_ONCE = 4096


def least_costs(measured: Measured, metric: str) -> FloatArray | None:
    """Return what every node costs at least.

    Parameters
    ----------
    metric : str
        Its name.

    Returns
    -------
    ndarray of float64, of the shape of the lattice
        Within 1e-9 of it, relatively; None for a metric that is bounded by classes.
    """
    floors = Floors(Problem(measured, (), METRICS[metric]))
    if floors.of_classes:
        return None
    table = measured.table
    chains = floors.chains(table.classes([0] * len(table.ancestors)))
    costs = np.zeros(())
    for chain, height in zip(chains, table.lattice.heights, strict=True):
        costs = costs[..., None] + chain[: height + 1]
    return np.expm1(costs / max(len(chains), 1)) if metric == "loss" else costs


def bounded(problem: Problem) -> Scheme | None:
    """Return the best scheme; None if none keeps the limit.

    Parameters
    ----------
    problem : Problem
        With fewer nodes than memory has room for a number of each.
    """
    costs = least_costs(problem.measured, problem.metric.name)
    return _by_classes(problem) if costs is None else _by_levels(problem, costs)


def _by_levels(problem: Problem, costs: FloatArray) -> Scheme | None:
    """Go through nodes in the order of what they cost at least."""
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
            if exceeds(float(flat[number]), least):
                at = len(cheapest)
                break
            levels = tuple(int(level) for level in lattice.levels(np.array([number]))[0])
            least = min(least, _settled(problem, known, levels))
    found = list(looked.facts.values())
    return best_of(problem, found, nodes_evaluated=len(found), optimal=True)


def _by_classes(problem: Problem) -> Scheme | None:
    """Go through nodes from the lowest, and learn from each what those above it cost at least."""
    floors = Floors(problem)
    least_of = np.full(problem.measured.table.lattice.shape, -np.inf)

    def learns(levels: Levels, classes: NodeClasses) -> None:
        above = least_of[tuple(slice(level, None) for level in levels)]
        np.maximum(above, floors.of_low(classes), out=above)

    looked = Looked(problem, learns)
    known = Known(looked)
    least = np.inf
    for levels in by_height(~known.ruled_out):
        if not known.ruled_out[levels] and not exceeds(float(least_of[levels]), least):
            least = min(least, _settled(problem, known, levels))
    found = list(looked.facts.values())
    return best_of(problem, found, nodes_evaluated=len(found), optimal=True)


def _settled(problem: Problem, known: Known, levels: Levels) -> float:
    """Key of a node that keeps the limit, or infinite; others are ruled out with it where the problem is monotone."""
    if problem.monotone:
        known.settle(levels)
        if known.ruled_out[levels]:
            return np.inf
    facts = known.looked.at(levels)
    return float(problem.metric.key(facts)) if problem.keeps_limit(facts) else np.inf
