"""Every algorithm of k-anonymization on one table: what it finds, how many nodes it looks at, and how long it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from time import process_time

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, LongArray
from privrisk_spark.kernels.lattice.levels import counted_from_root, steps_up
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.algorithms import PARTITIONS
from privrisk_spark.kernels.recoding.metrics import METRICS, Facts, Measured
from privrisk_spark.kernels.recoding.problem import Problem, at_least
from privrisk_spark.kernels.recoding.searches import SEARCHES
from reproduce.deciding.subject import Subject

COSTS = ("loss", "aecs", "dm", "ncp")
"""Metrics that are minimised and compared: all that classes with levels of their own have, too."""

OPTIMAL = ("exhaustive", "incognito", "flash", "k_optimize", "top_down", "best")
"""Searches that return the optimum by every metric; ``top_down`` if its looks suffice."""


@dataclass(frozen=True, eq=False)
class Recoded:
    """A table as it would be released, in pieces: a distinct record, or part of its rows.

    Attributes
    ----------
    record : ndarray of int64, shape (p,)
        Row of ``subject.vectors`` of each piece, ascending.
    rows : ndarray of int64, shape (p,)
    levels : ndarray of int64, shape (p, k)
        Steps up from each value; the height in a suppressed piece.
    suppressed : ndarray of bool, shape (p,)
    """

    record: LongArray
    rows: LongArray
    levels: LongArray
    suppressed: BoolArray

    def classes(self, subject: Subject) -> tuple[LongArray, LongArray, BoolArray]:
        """Class of each piece as a reader sees it, the rows of the classes, and whether a class is the suppressed one.

        Suppressed rows are one class: all of them show roots alone.
        """
        codes = subject.vectors[self.record]
        nodes = [axis.ancestor[codes[:, i], self.levels[:, i]] for i, axis in enumerate(subject.axes)]
        first, of = distinct_rows(nodes)
        rows = np.bincount(of, weights=self.rows, minlength=len(first)).astype(np.int64)  # exact, below 2^53
        return of, rows, self.suppressed[first]


@dataclass(frozen=True)
class Outcome:
    """What one algorithm found for one problem.

    Attributes
    ----------
    metric : str
        That was minimised; empty for local recoding, which minimises none.
    found : bool
        Whether anything keeps the limit. If not, all that follows is 0 or empty.
    levels : tuple of int
        Empty for local recoding.
    suppressed, classes : int
        Rows and released classes.
    costs : tuple of float
        By :data:`COSTS`.
    optimal : bool
        Whether it is proved.
    gap : float
        By how much the metric could be less, as far as it is proved; infinite where nothing is known.
    nodes : int
        Evaluated to find it; 0 for local recoding, which has none.
    seconds : float
        CPU time, from distinct records.
    """

    method: str
    metric: str
    k: int
    found: bool
    levels: tuple[int, ...]
    suppressed: int
    classes: int
    costs: tuple[float, ...]
    optimal: bool
    gap: float
    nodes: int
    seconds: float

    def cost(self, metric: str) -> float:
        """Return one of the costs."""
        return self.costs[COSTS.index(metric)] if self.found else math.nan


def measured_of(subject: Subject) -> Measured:
    """Return a table as searches take it, with what is computed of it still to be computed."""
    table = FullDomain.of([axis.ancestor for axis in subject.axes], subject.vectors, subject.counts)
    leaves = [under[axis.ancestor] for axis, under in zip(subject.axes, leaves_under(subject), strict=True)]
    return Measured.of(table, leaves)


def leaves_under(subject: Subject) -> list[LongArray]:
    """Leaves of every node of each attribute; a missing value, which is the root from the start, is none."""
    found = []
    for axis in subject.axes:
        depth, height = axis.code_depth, axis.ancestor.shape[1] - 1
        there = (np.arange(height + 1)[None, :] <= depth[:, None]) & ((depth > 0) | (height == 0))[:, None]
        under = np.bincount(axis.ancestor[there], minlength=len(axis.at_depth))
        found.append(np.maximum(under, 1).astype(np.int64))
    return found


def searched(subject: Subject, method: str, metric: str, k: int, limit: int) -> tuple[Outcome, Recoded | None]:
    """Give the whole table one scheme.

    Parameters
    ----------
    method : str
        Of :data:`~privrisk_spark.kernels.recoding.searches.SEARCHES`.
    limit : int
        Rows that may be suppressed.
    """
    started = process_time()
    problem = Problem(measured_of(subject), (at_least(k),), METRICS[metric], limit)
    found = SEARCHES[method](problem)
    seconds = process_time() - started
    if found is None:
        return _nothing(method, metric, k, seconds), None
    outcome = _outcome(method, metric, k, found.facts, seconds)
    outcome = replace(outcome, levels=found.levels, optimal=found.optimal, gap=found.gap, nodes=found.nodes_evaluated)
    suppressed = problem.suppressed(found.levels)
    heights = np.array(subject.heights, dtype=np.int64)
    levels = np.where(suppressed[:, None], heights, np.array(found.levels, dtype=np.int64))
    # One scheme gives the rows of a distinct record the same levels: each is a piece of its own.
    return outcome, Recoded(np.arange(len(subject.counts)), subject.counts, levels, suppressed)


def partitioned(subject: Subject, method: str, k: int, limit: int) -> tuple[Outcome, Recoded | None]:
    """Give each class levels of its own.

    Parameters
    ----------
    method : str
        Of :data:`~privrisk_spark.kernels.recoding.local.algorithms.PARTITIONS`.
    limit : int
        Rows that may be suppressed.
    """
    started = process_time()
    # As in a release: with levels counted from the root, a level is one node for all records of a class.
    counted = [counted_from_root(axis.ancestor) for axis in subject.axes]
    table = FullDomain.of([of for of, _ in counted], subject.vectors, subject.counts)
    under = leaves_under(subject)
    measured = Measured.of(table, [leaves[of] for leaves, (of, _) in zip(under, counted, strict=True)])
    found = PARTITIONS[method](measured, k)
    seconds = process_time() - started
    facts = found.facts(measured, one_numbering=True)
    if facts.suppressed > limit:
        return _nothing(method, "", k, seconds), None
    lost = found.of < 0
    missing = [lacked[subject.vectors[found.record, i]] for i, (_, lacked) in enumerate(counted)]
    steps = np.column_stack([steps_up(of, lacked) for of, lacked in zip(found.levels.T, missing, strict=True)])
    levels = np.where(lost[:, None], np.array(subject.heights, dtype=np.int64), steps.astype(np.int64))
    return _outcome(method, "", k, facts, seconds), Recoded(found.record, found.rows, levels, lost)


def run_all(subject: Subject, ks: Sequence[int], limit: int) -> Iterator[tuple[Outcome, Recoded | None]]:
    """Run every algorithm for every metric and k."""
    for k in ks:
        for metric in COSTS:
            for method in SEARCHES:
                yield searched(subject, method, metric, k, limit)
        for method in PARTITIONS:
            yield partitioned(subject, method, k, limit)


def _outcome(method: str, metric: str, k: int, facts: Facts, seconds: float) -> Outcome:
    costs = tuple(METRICS[name].value(facts) for name in COSTS)
    return Outcome(method, metric, k, True, (), facts.suppressed, facts.classes, costs, False, math.inf, 0, seconds)


def _nothing(method: str, metric: str, k: int, seconds: float) -> Outcome:
    return Outcome(method, metric, k, False, (), 0, 0, (), False, math.inf, 0, seconds)
