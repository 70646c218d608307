"""What is asked of a scheme, and what a search answers.

A condition says which classes of a node may be released; a class that fails one is suppressed whole. Of a condition
that is monotone in suppression (:mod:`privrisk_spark.kernels.classes.criteria`) a coarser node never suppresses a row
that a finer one releases: so the nodes that keep the limit are an up-set of the lattice, and a search may prune by that
and by nothing else. Of one that is monotone in generalization alone this is so where nothing may be suppressed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.kernels.arrays import BoolArray
from privrisk_spark.kernels.classes.criteria import K_ANONYMITY, Criterion
from privrisk_spark.kernels.classes.diversity import distinct_values
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.holders import runs_of
from privrisk_spark.kernels.recoding.metrics import Facts, Measured, Metric, order

__all__ = ["Condition", "Problem", "Scheme", "at_least", "best_of", "held_to"]


@dataclass(frozen=True)
class Condition:
    """What a class must meet to be released.

    Attributes
    ----------
    meets : callable
        Marks the classes of a node that meet it: ndarray of bool, shape (n_classes,).
    monotone_in_generalization, monotone_in_suppression : bool
        As :mod:`privrisk_spark.kernels.classes.criteria` defines and proves them.
    least_rows : int
        Rows that every class which meets it has at least.
    dear : bool
        Whether a class costs so much that only those which meet the conditions before it are to be asked. It may ask
        for the sizes of classes, not for their sensitive values.
    """

    name: str
    meets: Callable[[NodeClasses], BoolArray]
    monotone_in_generalization: bool
    monotone_in_suppression: bool
    least_rows: int = 1
    dear: bool = False


def at_least(k: int) -> Condition:
    """k-anonymity: classes of at least ``k`` persons, or rows where each is one (Samarati and Sweeney 1998).

    Raises
    ------
    InputError
        If k is below 1.
    """
    if k < 1:
        raise InputError(f"k must be at least 1. Got {k}.")
    return Condition(K_ANONYMITY.name, lambda classes: classes.size >= k, True, True, k)


def held_to(
    criterion: Criterion,
    asked: float,
    *given: object,
    attribute: int = 0,
    persons: bool = False,
    missing: int | None = None,
) -> Condition:
    """Hold the values of a sensitive attribute in every class against a bound.

    Parameters
    ----------
    criterion : Criterion
        One whose numbers are computed of :class:`SensitiveRuns`.
    asked : float
        The bound.
    *given : object
        What else its numbers are computed of, such as the table's distribution.
    attribute : int
        Which sensitive attribute.
    persons : bool
        Whether it is known who holds which value of the attribute, so that shares are of persons
        (:mod:`privrisk_spark.kernels.recoding.holders`): they are monotone in nothing. How many values there are is as
        it was.
    missing : int, optional
        Code of the missing value, where it does not count.

    Raises
    ------
    InternalError
        When classes are held against it whose persons are known, and that was not said.
    """
    as_declared = not persons or criterion.number is distinct_values

    def meets(classes: NodeClasses) -> BoolArray:
        runs = runs_of(classes.held[attribute])
        if (runs.persons is not None) != persons:
            raise InternalError(f"{criterion.name}: shares of rows are not shares of persons, and the other way round.")
        met: BoolArray = ~criterion.fails(criterion.numbers_of_known(runs, missing, *given), asked)
        return met

    in_generalization = as_declared and criterion.monotone_in_generalization
    return Condition(criterion.name, meets, in_generalization, as_declared and criterion.monotone_in_suppression)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is asked of a scheme.

    Attributes
    ----------
    limit : int
        Rows that may be suppressed.

    Raises
    ------
    InputError
        If the limit is negative.
    """

    measured: Measured
    conditions: tuple[Condition, ...]
    metric: Metric
    limit: int = 0

    def __post_init__(self) -> None:
        """Refuse a limit that is none."""
        if self.limit < 0:
            raise InputError(f"The rows that may be suppressed must be at least 0. Got {self.limit}.")

    @property
    def monotone(self) -> bool:
        """Whether the nodes that keep the limit are an up-set.

        Where nothing may be suppressed, a node keeps it if all its classes meet every condition, and then so do all of
        every coarser node if the conditions are monotone in generalization.
        """
        return all(
            condition.monotone_in_suppression or (condition.monotone_in_generalization and not self.limit)
            for condition in self.conditions
        )

    @property
    def least_rows(self) -> int:
        """Rows that every released class has at least."""
        return max((condition.least_rows for condition in self.conditions), default=1)

    def released(self, classes: NodeClasses) -> BoolArray:
        """Mark the classes that meet every condition; ndarray of bool, shape (n_classes,)."""
        released = classes.rows > 0
        for condition in self.conditions:
            if condition.dear:
                places = np.flatnonzero(released)
                released[places] = condition.meets(classes.only(places))
            else:
                released &= condition.meets(classes)
        return released

    def suppressed(self, levels: Sequence[int]) -> BoolArray:
        """Mark the distinct records of the table whose class at a level vector is not released.

        Parameters
        ----------
        levels : sequence of k int

        Returns
        -------
        ndarray of bool, shape (m,)
        """
        classes, of = self.measured.table.grouped(levels)
        return ~self.released(classes)[of]

    def facts(self, levels: tuple[int, ...], classes: NodeClasses) -> Facts:
        """Measure a node with the classes that meet every condition."""
        return self.measured.facts(levels, classes, self.released(classes))

    def scheme(self, levels: tuple[int, ...]) -> Scheme:
        """Measure one node alone, which need not keep the limit, and of which no optimum is claimed."""
        facts = self.facts(levels, self.measured.table.classes(levels))
        return Scheme(levels, facts, self.metric.value(facts), 1, False, np.inf)

    def keeps_limit(self, facts: Facts) -> bool:
        """Whether no more rows are suppressed than may be."""
        return facts.suppressed <= self.limit


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
    gap : float
        By how much the metric of another scheme may be better, as far as it is proved; 0 where this one is optimal,
        and infinite where nothing is known.
    """

    levels: tuple[int, ...]
    facts: Facts
    value: float
    nodes_evaluated: int
    optimal: bool
    gap: float = 0.0


def best_of(
    problem: Problem, found: Iterable[Facts], *, nodes_evaluated: int, optimal: bool, least: float = -np.inf
) -> Scheme | None:
    """Return the best of the nodes that keep the limit, or None if none does.

    Parameters
    ----------
    least : float
        What the metric's key of every node that keeps the limit is at least, where it is not known to be optimal.
    """
    kept = (facts for facts in found if problem.keeps_limit(facts))
    best = min(kept, key=lambda facts: order(problem.metric, facts), default=None)
    if best is None:
        return None
    gap = 0.0 if optimal else max(0.0, float(problem.metric.key(best)) - least)
    return Scheme(best.levels, best, problem.metric.value(best), nodes_evaluated, optimal, gap)
