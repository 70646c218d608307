"""Bounds of single boxes against all their level vectors, and against the linear program they stand for."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

from privrisk_spark.kernels.disclosure.objective import GreatestUtility, LeastPenalized, LeastRisk, Objective
from privrisk_spark.kernels.search import row_sets
from privrisk_spark.kernels.search.boxes import arrays, bounds
from privrisk_spark.kernels.search.boxes.arrays import Record, record_of
from privrisk_spark.kernels.search.record import RecordLattice

Levels = tuple[int, ...]


class Box:
    """A random box of a random record, and its level vectors."""

    def __init__(
        self, rng: np.random.Generator, objective: Objective, *, whole: bool = False, exponential: bool = False
    ) -> None:
        k = int(rng.integers(2, 5))
        heights = rng.integers(1, 5, k)

        def chains() -> list[np.ndarray]:
            falls = [rng.choice([0, 1, 1, 2], h + 1) if whole else rng.uniform(size=h + 1) for h in heights]
            return [np.cumsum(fall[::-1])[::-1].astype(np.float64) for fall in falls]

        rows = np.stack([rng.integers(0, h + 1, 40) for h in heights], axis=1)
        weights = [w / 4 for w in chains()]
        self.lattice = RecordLattice.of_rows(rows, weights, chains(), exponential=exponential)
        record = record_of(self.lattice, objective)
        assert record is not None
        self.record: Record = record
        corners = np.sort(np.stack([rng.integers(0, h + 1, 2) for h in heights], axis=1), axis=0)
        self.lo, self.hi = corners[0].astype(np.int64), corners[1].astype(np.int64)
        self.inside: list[Levels] = list(
            itertools.product(*[range(a, b + 1) for a, b in zip(self.lo, self.hi, strict=True)])
        )

    def weight(self, x: Levels) -> float:
        return sum(float(w[level]) for w, level in zip(self.lattice.weights, x, strict=True))

    def utility(self, x: Levels) -> float:
        return self.lattice.utility(np.array(x))

    def relaxed(self, of: list[np.ndarray], gained: list[np.ndarray], *, at_least: float) -> float:
        """Least Σ of, over convex combinations of the levels of each attribute with Σ gained at least a number."""
        spans = [range(a, b + 1) for a, b in zip(self.lo, self.hi, strict=True)]
        values = np.concatenate([o[list(span)] for o, span in zip(of, spans, strict=True)])
        gains = np.concatenate([g[list(span)] for g, span in zip(gained, spans, strict=True)])
        one = np.zeros((len(spans), len(values)))
        at = np.cumsum([0, *map(len, spans)])
        for i, (a, b) in enumerate(itertools.pairwise(at)):
            one[i, a:b] = 1
        found = linprog(values, A_ub=-gains[None], b_ub=[-at_least], A_eq=one, b_eq=np.ones(len(spans)))
        return float(found.fun) if found.status == 0 else math.inf


def test_least_sum_is_the_relaxed_knapsack() -> None:
    rng = np.random.default_rng(1)
    for _ in range(150):
        box = Box(rng, LeastRisk(-1.0))
        chosen = box.lo.copy()
        most, least = box.utility(tuple(box.lo)), box.utility(tuple(box.hi))
        floor = least + (most - least) * float(rng.uniform())
        found = bounds.least_sum(box.record, box.lo, box.hi, floor, chosen)
        want = box.relaxed(list(box.lattice.weights), list(box.lattice.utilities), at_least=floor)
        assert found == pytest.approx(want, abs=1e-9)
        feasible = [x for x in box.inside if box.utility(x) >= floor]
        assert found <= min(map(box.weight, feasible)) + 1e-12
        assert box.utility(tuple(chosen)) >= floor - 1e-9


def test_most_utility_is_the_relaxed_knapsack() -> None:
    rng = np.random.default_rng(2)
    for _ in range(150):
        box = Box(rng, GreatestUtility(1.0))
        chosen = box.lo.copy()
        most, least = box.weight(tuple(box.lo)), box.weight(tuple(box.hi))
        affordable = least + (most - least) * float(rng.uniform())
        found = bounds.most_utility(box.record, box.lo, box.hi, affordable, chosen)
        want = -box.relaxed(
            [-d for d in box.lattice.utilities], [-w for w in box.lattice.weights], at_least=-affordable
        )
        assert found == pytest.approx(want, abs=1e-9)
        within = [x for x in box.inside if box.weight(x) <= affordable]
        assert found >= max(map(box.utility, within)) - 1e-12
        assert box.weight(tuple(chosen)) <= affordable + 1e-9


@pytest.mark.parametrize("exponential", [False, True])
def test_least_penalized_bounds_every_level_vector(exponential: bool) -> None:
    """Exactly so for a sum of weights; for its exponential by tangents, and exactly where the box is a point."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        box = Box(rng, LeastPenalized(0.5), exponential=exponential)
        chosen = box.lo.copy()
        for factor, trade in ((0.2, 0.5), (1.0, 0.1), (0.0, 1.0)):
            found = bounds.least_penalized(box.record, box.lo, box.hi, factor, trade, chosen)
            values = {x: factor * box.lattice.sensitivity(np.array(x)) - trade * box.utility(x) for x in box.inside}
            assert found <= min(values.values()) + 1e-11
            if not exponential or len(values) == 1:
                assert found == pytest.approx(min(values.values()), abs=1e-11)
            # The tangent at the sum of the minimizers touches there, so the bound is not far below.
            assert found >= factor - trade * box.utility(tuple(box.lo)) - 1e-9 or not exponential


@pytest.mark.parametrize("objective", [LeastRisk(0.0), GreatestUtility(1.0)])
def test_a_flat_box_is_solved_with_its_ties(objective: Objective) -> None:
    rng = np.random.default_rng(4)
    solved = 0
    for _ in range(200):
        exponential = bool(rng.integers(2))
        box = Box(rng, objective, whole=True, exponential=exponential)
        record = box.record
        assert record.steps.shape[1]
        table = np.zeros((box.lattice.k + 1, 60))
        chosen = box.lo.copy()
        most, least = box.utility(tuple(box.lo)), box.utility(tuple(box.hi))
        floor = math.ceil(least + (most - least) * float(rng.uniform(-0.2, 1.1))) - 1e-12
        heaviest, lightest = box.weight(tuple(box.lo)), box.weight(tuple(box.hi))
        affordable = lightest + (heaviest - lightest) * float(rng.uniform(-0.2, 1))
        among = [x for x in box.inside if box.utility(x) >= floor]
        if isinstance(objective, LeastRisk):
            keys = {x: (round(box.weight(x), 9), -round(box.utility(x)), x) for x in among}
        else:
            keys = {
                x: (-round(box.utility(x)), round(box.weight(x), 9), x)
                for x in among
                if box.weight(x) <= affordable + 1e-12
            }
        any_ = bounds.flat_optimum(record, box.lo, box.hi, floor, affordable, table, chosen)
        assert any_ == bool(keys)
        if any_:
            assert tuple(chosen.tolist()) == min(keys, key=keys.__getitem__)
            solved += 1
    assert solved > 60


def test_rows_whose_join_with_the_bottom_is_within_reach() -> None:
    rng = np.random.default_rng(5)
    for _ in range(100):
        box = Box(rng, LeastRisk(-1.0))
        record = box.record
        words = np.zeros(record.rows.tables.shape[1], dtype=np.uint64)
        rho = np.zeros(1, dtype=np.int64)
        row_sets.rows_within(record.rows, box.hi, words)
        floor = box.utility(tuple(box.hi)) * float(rng.uniform(0.8, 1.5))
        bounds.reached(record, box.lo, words, floor, rho)
        want = sum(
            int(count)
            for g, count in zip(box.lattice.vectors, box.lattice.counts, strict=True)
            if (g <= box.hi).all() and box.utility(tuple(np.maximum(g, box.lo))) >= floor
        )
        assert rho.tolist() == [want]
        best = max((box.lattice.consistent(np.array(x)) for x in box.inside if box.utility(x) >= floor), default=0)
        assert best <= want


def test_bits_are_counted() -> None:
    for word in (0, 1, 2**63, 2**64 - 1, 0x0123456789ABCDEF, 0xF0F0):
        assert row_sets.bits_in(np.uint64(word)) == word.bit_count()  # type: ignore[arg-type]


def test_utilities_are_taken_in_whole_units_where_they_have_one() -> None:
    def steps(*chains: list[float]) -> tuple[list[list[int]], float]:
        width = max(map(len, chains))
        padded = np.array([[*chain, *[0.0] * (width - len(chain))] for chain in chains])
        heights = np.array([len(chain) - 1 for chain in chains])
        found, unit = arrays._steps(padded, heights)
        return found.tolist(), unit

    assert steps([3, 2, 0], [1, 0]) == ([[0, 1, 3], [0, 1, 0]], 1.0)
    assert steps([0.6, 0.3, 0], [1, 0]) == ([[0, 3, 6], [0, 10, 0]], 0.1)
    assert steps([1.25, 0], [1, 0]) == ([[0, 5], [0, 4]], 0.25)
    assert steps([math.log(3), 0], [1, 0])[0] == [[], []]
    assert steps([5000, 0], [1, 0])[0] == [[], []], "too many units"
