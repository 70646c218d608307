"""Where a value must not be disclosed at all: every number of a decision is one, and what is left open is said."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from naive_decisions import build

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, SortedCounts
from privrisk_spark.kernels.disclosure.objective import (
    AnyObjective,
    GreatestAggregate,
    GreatestUtility,
    LeastPenalized,
    LeastRisk,
)
from privrisk_spark.kernels.search import record_search
from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound
from privrisk_spark.kernels.search.enumeration import enumerate_nodes
from privrisk_spark.kernels.search.genetic import genetic, uniforms_per_individual
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.record import Answer, RecordLattice, answer
from privrisk_spark.kernels.search.table_search import decide

SEARCHES: list[tuple[str, AnyObjective]] = [
    *[(search, LeastRisk(floor)) for floor in (0.0, 1.0, 3.0, 4.0, 9.0) for search in ("exact", "aruba", "exhaustive")],
    *[(search, LeastRisk(floor)) for floor in (0.0, 1.0, 3.0, 4.0, 9.0) for search in ("branch_and_bound", "btda")],
    *[("genetic", LeastRisk(floor)) for floor in (1.0, 3.0, 4.0)],
    *[(search, GreatestUtility(0.5)) for search in ("exhaustive", "branch_and_bound")],
    *[(search, LeastPenalized(trade)) for trade in (0.0, 0.5) for search in ("exhaustive", "branch_and_bound")],
    *[("exhaustive", GreatestAggregate(1.0, 1.0, zero)) for zero in ("exclude", "floor")],  # type: ignore[arg-type]
]


@pytest.mark.parametrize("form", ["linear", "multiplicative", "record"])
@pytest.mark.parametrize("bounded", [False, True])
def test_no_number_of_a_decision_is_undefined(form: str, bounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two attributes of depth 2, weights that are infinite at a leaf, at all of an attribute, or of a record alone."""
    monkeypatch.setattr(record_search, "_ENUMERATED", 0 if bounded else 2**15)
    hierarchies = [Hierarchy.from_paths(name, [("a", "n"), ("b", "n"), ("c", "m")]) for name in "xy"]
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    codes = np.array([[0, 0], [0, 1], [1, 2], [2, 2], [3, 0], [3, 3]], dtype=np.int32)
    counts = SortedCounts.group(axes, codes[:5], np.array([1, 2, 1, 3, 1]))
    finite, _ = build(hierarchies, weights=[1.0, 0.5], form=form, model="I", measure="depth", floor=0.0)
    some = finite.sensitivity.weights[0].copy()
    some[0] = math.inf
    given: list[dict[str, Any]] = [{}]
    if form == "record":
        given.append({"record_weight": np.array([math.inf, 1, 0, 2, math.inf, math.inf])})
    else:
        given.append({"personal": np.where(codes == 0, math.inf, 1.0)})
    infinite = 0
    for method, objective in SEARCHES:
        for weights in (finite.sensitivity.weights, (some, some), (np.where(some > 0, math.inf, 0), some)):
            disclosure = replace(finite, sensitivity=replace(finite.sensitivity, weights=weights))
            search = Search(objective, method)  # type: ignore[arg-type]
            for own in given:
                found = decide(disclosure, search, counts, codes, **own)
                for field in fields(found):
                    column = getattr(found, field.name)
                    assert column is None or not np.isnan(column.astype(float)).any(), (method, field.name)
                infinite += int(np.isinf(found.risk).sum())
                if method in ("branch_and_bound", "btda"):
                    assert found.gap is not None
                    assert not found.gap.any()
                    other = decide(disclosure, replace(search, method="exhaustive"), counts, codes, **own)
                    assert found.levels.tolist() == other.levels.tolist()
    assert infinite


def test_the_gap_of_equal_values_is_none_be_they_infinite() -> None:
    lattice = RecordLattice.of_rows(np.zeros((1, 1), dtype=np.int64), [np.array([math.inf])], [np.array([1.0])])

    def left(objective: float, bound: float, *, proved: bool = False) -> float:
        levels = np.zeros(1, dtype=np.int64)
        return answer(lattice, levels, objective=objective, bound=bound, visited=1, proved=proved).gap

    assert (left(math.inf, math.inf), left(2.0, 2.0), left(2.0, 0.5)) == (0, 0, 1.5)
    assert (left(math.inf, 1.0), left(math.inf, 1.0, proved=True)) == (math.inf, 0)
    # All there is to release is infinitely sensitive, and the genetic search says that nothing is better.
    found = genetic(lattice, LeastRisk(1.0), np.full((2, 4, uniforms_per_individual(lattice)), 0.5))
    assert found is not None
    assert (found.objective, found.bound, found.gap) == (math.inf, math.inf, 0)


def test_an_infinite_risk_where_a_finite_one_may_be_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heuristic that finds but an infinite risk, beside a finite bound: the gap is infinite, and not rounding."""
    tree = Hierarchy.from_paths("x", [("a", "n"), ("b", "n")])
    disclosure, how = build(
        [tree], weights=[math.inf], form="linear", model="I", measure="depth", floor=0.0, search="genetic"
    )
    rows = np.array([[0], [1]], dtype=np.int32)
    counts = SortedCounts.group([Axis(tree.at_depth, tree.ancestor)], rows, np.ones(2, dtype=np.int64))

    def missing(lattice: RecordLattice, *_: Any) -> Answer:
        at = np.zeros(1, dtype=np.int64)
        return answer(lattice, at, objective=math.inf, bound=0.0, visited=1, proved=False)

    monkeypatch.setattr(record_search, "genetic", missing)
    found = decide(disclosure, how, counts, rows)
    assert found.gap is not None
    assert found.gap.tolist() == [math.inf] * 2


def test_infinite_weights_beside_a_sensitivity_too_large_for_a_float() -> None:
    """Level 0 of the first attribute must not be disclosed; of the others Φ = exp(1000) each. Without the first, every
    level vector of utility 2 or more has a Φ too large for a float: its risk is infinite as that of the record itself,
    which is the most useful. Where the last attribute alone is enough, its risk is finite."""
    weights = [np.array([math.inf, 0]), np.array([1000.0, 0]), np.array([1.0, 0])]
    rows = np.zeros((3, 3), dtype=np.int64)
    lattice = RecordLattice.of_rows(rows, weights, [np.array([1.0, 0])] * 3, exponential=True)
    for floor, levels in ((3, [0, 0, 0]), (2, [0, 0, 0]), (1, [1, 1, 0]), (0, [1, 1, 1])):
        for found in (branch_and_bound(lattice, LeastRisk(floor)), enumerate_nodes(lattice, LeastRisk(floor))):
            assert found is not None
            assert (found.levels.tolist(), found.status, found.gap) == (levels, "proved", 0)
    cut = branch_and_bound(lattice, LeastRisk(2), most_boxes=1)
    assert cut is not None
    assert cut.levels.tolist() == [0, 0, 0]
    assert branch_and_bound(lattice, LeastRisk(4)) is None


def test_a_penalized_risk_that_is_infinite_everywhere() -> None:
    """Then the record itself is the answer, as of all it is the most useful."""
    weights = [np.full(2, math.inf), np.array([1.0, 0])]
    lattice = RecordLattice.of_rows(np.zeros((1, 2), dtype=np.int64), weights, [np.array([1.0, 0])] * 2)
    for found in (branch_and_bound(lattice, LeastPenalized(0.5)), enumerate_nodes(lattice, LeastPenalized(0.5))):
        assert found is not None
        assert (found.levels.tolist(), found.risk, found.status, found.gap) == ([0, 0], math.inf, "proved", 0)
    assert branch_and_bound(lattice, GreatestUtility(1e9)) is None
    assert enumerate_nodes(lattice, GreatestUtility(1e9)) is None
