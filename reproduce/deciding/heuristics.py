"""The genetic search against the exact ones (Fouad 2012, Figs 4.13, 4.14): how far off, and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.enumeration import enumerate_nodes
from privrisk_spark.kernels.search.genetic import genetic, uniforms_per_individual
from privrisk_spark.kernels.search.record import Answer, RecordLattice
from reproduce.deciding.effort import MOST_CUBE, SEARCHES, compile_searches
from reproduce.deciding.subject import Subject
from reproduce.generated.clustered import keyed_uniforms

SACRIFICED = 0.07
"""Risk above the least that the genetic search is said to sacrifice at worst (F12 §4.6)."""

EXACT = ("ARUBA, cube", "ARUBA, swap", "branch and bound")
"""Exact searches whose time is measured beside."""


@dataclass(frozen=True, eq=False)
class Genetic:
    """Over the records searched, by number of attributes (K) and budget (B).

    Attributes
    ----------
    attributes : ndarray of int64, shape (K,)
    budgets : ndarray of int64, shape (B, 2)
        Population and generations.
    records : ndarray of int64, shape (K,)
        Records of positive least risk that reach the floor.
    mean_gap, greatest_gap : ndarray of float64, shape (K, B)
        ``risk / least risk - 1``.
    optimal : ndarray of float64, shape (K, B)
        Share of records with no gap.
    visited : ndarray of float64, shape (K, B)
        Distinct nodes evaluated.
    seconds : ndarray of float64, shape (K, B)
        CPU time measured, per record.
    exact_seconds : ndarray of float64, shape (K, 3)
        Measured, of :data:`EXACT`; NaN where not run.
    unprobed_gap, unprobed_seconds : ndarray of float64, shape (K, B)
        Mean gap and CPU time without probing: the first generation is one random path, as often as it has paths.
    """

    attributes: LongArray
    budgets: LongArray
    records: LongArray
    mean_gap: FloatArray
    greatest_gap: FloatArray
    optimal: FloatArray
    visited: FloatArray
    seconds: FloatArray
    exact_seconds: FloatArray
    unprobed_gap: FloatArray
    unprobed_seconds: FloatArray

    @property
    def sufficient(self) -> LongArray:
        """int64 (K,): the cheapest budget whose mean gap is at most :data:`SACRIFICED`; -1 where there is none."""
        enough = self.mean_gap <= SACRIFICED
        return np.where(enough.any(axis=1), enough.argmax(axis=1), -1)


def genetic_search(
    subject: Subject,
    *,
    seed: int,
    records: int,
    floors: Sequence[float],
    attributes: Sequence[int],
    budgets: Sequence[tuple[int, int]],
) -> Genetic:
    """Search some records' lattices with several budgets.

    Parameters
    ----------
    seed : int
        Draws the records, and is all the randomness of the search.
    records : int
        How many, for each number of attributes and each floor.
    floors : sequence of float
        Shares of the greatest utility.
    attributes : sequence of int
        Numbers of first attributes.
    budgets : sequence of (int, int)
        Population and generations.
    """
    compile_searches()
    n, b = len(attributes), len(budgets)
    gaps: list[list[list[float]]] = [[[] for _ in budgets] for _ in attributes]
    visited, seconds, exact = np.zeros((n, b)), np.zeros((n, b)), np.zeros((n, len(EXACT)))
    unprobed_gap, unprobed_seconds = np.zeros((n, b)), np.zeros((n, b))
    for p, k in enumerate(attributes):
        part = subject.first(k)
        for turn, row in enumerate(part.drawn(seed, records).tolist()):
            record = part.record(row, turn=turn)
            for f, floor in enumerate(floors):
                objective = LeastRisk(floor * part.greatest_utility)
                least = enumerate_nodes(record, objective)
                if least is None or least.risk == 0:
                    continue
                for j, name in enumerate(EXACT):
                    if name == "ARUBA, cube" and k > MOST_CUBE:
                        exact[p, j] = np.nan
                        continue
                    started = process_time()
                    SEARCHES[name](record, objective)
                    exact[p, j] += process_time() - started
                for j, (population, generations) in enumerate(budgets):
                    shape = (1 + generations, population, uniforms_per_individual(record))
                    uniforms = keyed_uniforms(seed, f"genetic {k} {row} {f} {population} {generations}", shape)
                    found, took = _timed(record, objective, uniforms)
                    seconds[p, j] += took
                    gaps[p][j].append(max(0.0, found.risk / least.risk - 1))
                    visited[p, j] += found.visited
                    uniforms[0] = uniforms[0, :1]
                    found, took = _timed(record, objective, uniforms)
                    unprobed_seconds[p, j] += took
                    unprobed_gap[p, j] += max(0.0, found.risk / least.risk - 1)
    searched = np.array([len(of_budget[0]) for of_budget in gaps], dtype=np.int64)
    over = np.maximum(searched, 1)[:, None]
    return Genetic(
        attributes=np.array(attributes, dtype=np.int64),
        budgets=np.array(budgets, dtype=np.int64).reshape(-1, 2),
        records=searched,
        mean_gap=np.array([[np.mean(gap) if gap else 0.0 for gap in row] for row in gaps]),
        greatest_gap=np.array([[max(gap, default=0.0) for gap in row] for row in gaps]),
        optimal=np.array([[np.mean(np.array(gap) <= 10 * TOLERANCE) if gap else 1.0 for gap in row] for row in gaps]),
        visited=visited / over,
        seconds=seconds / over,
        exact_seconds=exact / over,
        unprobed_gap=unprobed_gap / over,
        unprobed_seconds=unprobed_seconds / over,
    )


def _timed(record: RecordLattice, objective: LeastRisk, uniforms: FloatArray) -> tuple[Answer, float]:
    """The answer of one genetic search, and its CPU time."""
    started = process_time()
    found = genetic(record, objective, uniforms)
    seconds = process_time() - started
    assert found is not None
    return found, seconds
