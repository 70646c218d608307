"""The best scheme by looking at every node of the lattice (minGen, Samarati 2001, with any metric and any condition).

Status: *proved*, for every metric and whatever the conditions, as nothing is left out. Every other optimal search has
to return the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.metrics import Facts, Measured, Metric, order

__all__ = ["Problem", "Scheme", "at_least", "exhaustive"]

Condition = Callable[[NodeClasses], BoolArray]
"""Marks the classes of a node that may be released."""


def at_least(k: int) -> Condition:
    """k-anonymity: classes of at least ``k`` rows.

    Raises
    ------
    InputError
        If k is below 1.
    """
    if k < 1:
        raise InputError(f"k must be at least 1. Got {k}.")
    return lambda classes: classes.rows >= k


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked of a scheme.

    Attributes
    ----------
    measured : Measured
    conditions : tuple of Condition
        A class that fails one is suppressed whole.
    metric : Metric
    limit : int
        Rows that may be suppressed, at least 0.
    """

    measured: Measured
    conditions: tuple[Condition, ...]
    metric: Metric
    limit: int = 0

    def facts(self, levels: tuple[int, ...], classes: NodeClasses) -> Facts:
        """Measure a node with the classes that meet every condition."""
        released = classes.rows > 0
        for condition in self.conditions:
            released &= condition(classes)
        return self.measured.facts(levels, classes, released)


@dataclass(frozen=True)
class Scheme:
    """One level vector for a table.

    Attributes
    ----------
    levels : tuple of k int
    facts : Facts
        Of its node.
    value : float
        Of the metric.
    nodes_evaluated : int
        Nodes whose classes were counted to find it.
    optimal : bool
        Whether it is proved that no scheme is better, by the rule of ties too.
    """

    levels: tuple[int, ...]
    facts: Facts
    value: float
    nodes_evaluated: int
    optimal: bool


def exhaustive(problem: Problem) -> Scheme | None:
    """Return the best scheme, or None if none suppresses as few rows as the limit allows.

    Parameters
    ----------
    problem : Problem

    Raises
    ------
    InputError
        If the limit is negative.
    """
    if problem.limit < 0:
        raise InputError(f"The rows that may be suppressed must be at least 0. Got {problem.limit}.")
    best: Facts | None = None
    seen = 0
    for levels, classes in problem.measured.table.every_node():
        seen += 1
        facts = problem.facts(levels, classes)
        if facts.suppressed > problem.limit:
            continue
        if best is None or order(problem.metric, facts) < order(problem.metric, best):
            best = facts
    if best is None:
        return None
    return Scheme(best.levels, best, problem.metric.value(best), seen, optimal=True)
