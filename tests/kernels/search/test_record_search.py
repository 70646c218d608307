"""Every objective, by enumeration of the table and record by record, against the literal definitions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_decisions import Known, Task, asked, best, build, check, literal, subsuming, to_dictionary
from strategies import several_hierarchies

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.disclosure.objective import (
    GreatestAggregate,
    GreatestUtility,
    LeastRisk,
)
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.search import record_search
from privrisk_spark.kernels.search.dictionary_view import rows_of
from privrisk_spark.kernels.search.record_search import decide_records, record_lattice
from privrisk_spark.kernels.search.table_search import decide

EXACT = [
    ("exhaustive", "utility"),
    ("exhaustive", "penalized"),
    ("branch_and_bound", "risk"),
    ("branch_and_bound", "utility"),
    ("branch_and_bound", "penalized"),
    ("btda", "risk"),
    ("aggregate", "aggregate"),
]


@pytest.fixture(scope="module", params=[0, 2**15], ids=["bounded", "enumerated"], autouse=True)
def small_lattices(request: pytest.FixtureRequest) -> Iterator[None]:
    """Lattices so small are enumerated; with none, branch and bound itself is looked at."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_search, "_ENUMERATED", request.param)
        yield


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, Any]]:
    hierarchies = draw(several_hierarchies())
    codes = np.array(
        [[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(draw(st.integers(1, 4)))],
        dtype=np.int32,
    )
    others = np.array(
        [[draw(st.integers(0, h.n_leaves - 1)) for h in hierarchies] for _ in range(draw(st.integers(1, 8)))],
        dtype=np.int32,
    ).reshape(-1, len(hierarchies))
    settings = {
        "weights": [draw(st.sampled_from([0.0, 0.3, 1.0])) for _ in hierarchies],
        "form": draw(st.sampled_from(["constant", "linear", "record", "multiplicative"])),
        "model": draw(st.sampled_from(["I", "II", "III"])),
        "measure": draw(st.sampled_from(["depth", "leaves", "xiao-tao"])),
    }
    return hierarchies, codes, others, settings


def world(
    case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, Any]],
) -> tuple[Task, SortedCounts, DenseCounts, list[SimpleNamespace]]:
    hierarchies, codes, others, settings = case
    # The first record is left out of the dictionary: it is absent unless another is like it.
    dictionary = to_dictionary(hierarchies, np.concatenate([codes[1:], others]))
    vectors, multiplicity = np.unique(dictionary, axis=0, return_counts=True)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    problem = build(hierarchies, floor=0.0, **settings)
    known = Known([list(map(int, row)) for row in dictionary], subsuming(hierarchies))
    of = [literal(problem.disclosure, hierarchies, record, [known], [1.0] * len(hierarchies)) for record in codes]
    for one in of:
        one.model = settings["model"]
    plans = (kind(axes, vectors.astype(np.int32), multiplicity) for kind in (SortedCounts.group, DenseCounts.roll_up))
    return problem, *plans, of  # type: ignore[return-value]


@pytest.mark.parametrize(("search", "kind"), EXACT)
@given(case=cases(), data=st.data())
def test_every_objective_is_the_literal_one(
    search: str, kind: str, case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, Any]], data: st.DataObject
) -> None:
    hierarchies, codes, _, settings = case
    if kind == "aggregate":
        settings["model"] = "I" if settings["model"] == "III" else settings["model"]
        settings["form"] = "linear" if settings["form"] == "multiplicative" else settings["form"]
    problem, in_order, dense, of = world(case)
    problem = problem.seeking(objective=asked(data.draw, kind, of), method=search)  # type: ignore[arg-type]
    for counts in (in_order, dense) if search == "exhaustive" else (in_order,):
        found = decide(*problem, counts, codes)
        assert found.gap is None if search == "exhaustive" else not found.gap.any()
        for i, record in enumerate(codes):
            levels = best(problem.search.objective, of[i])
            answer = tuple(of[i].depths) if levels is None else levels
            want = (
                levels, of[i].risk(answer), of[i].risk((0,) * len(answer)), of[i].utility(answer),
                of[i].consistent(answer), of[i].consistent((0,) * len(answer)),
            )  # fmt: skip
            check(found, i, want, hierarchies, record)


@pytest.mark.parametrize("search", ["genetic", "approximate", "branch_and_bound", "btda"])
@given(case=cases(), data=st.data())
def test_what_is_left_open_is_stated(
    search: str, case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, Any]], data: st.DataObject
) -> None:
    """A heuristic, or a search cut short, keeps the floor, and its gap reaches the least risk."""
    _, codes, _, settings = case
    if search == "approximate":
        settings["model"] = "II" if settings["model"] == "III" else settings["model"]
        settings["form"] = "linear" if settings["form"] == "multiplicative" else settings["form"]
    problem, counts, _, of = world(case)
    objective = asked(data.draw, "risk", of)
    assert isinstance(objective, LeastRisk)
    problem = problem.seeking(objective=objective, method=search, most_steps=1)  # type: ignore[arg-type]
    found = decide(*problem, counts, codes)
    assert found.gap is not None
    for i in range(len(codes)):
        levels = best(objective, of[i])
        assert found.feasible[i] == (levels is not None)
        if levels is not None:
            assert found.utility[i] >= objective.floor - 1e-9
            least = of[i].risk(levels)
            assert found.risk[i] >= least * (1 - 1e-9)
            assert found.risk[i] - found.gap[i] <= least * (1 + 1e-9)


@pytest.mark.parametrize("search", ["genetic", "branch_and_bound", "btda"])
@given(case=cases(), data=st.data())
def test_what_is_proved_does_not_depend_on_the_unit_of_risk(
    search: str, case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, Any]], data: st.DataObject
) -> None:
    """Weights in trillionths: a gap is small or not relative to the risk alone."""
    _, codes, _, settings = case
    settings["form"], settings["model"] = "linear", "I"
    problem, counts, _, of = world(case)
    problem = problem.seeking(objective=asked(data.draw, "risk", of), method=search, most_steps=1)  # type: ignore[arg-type]
    tiny = tuple(weights * 2.0**-40 for weights in problem.disclosure.sensitivity.weights)
    usual = decide(*problem, counts, codes)
    scaled = decide(
        *problem.disclosing(sensitivity=replace(problem.disclosure.sensitivity, weights=tiny)), counts, codes
    )
    assert usual.gap is not None
    assert scaled.gap is not None
    assert scaled.levels.tolist() == usual.levels.tolist()
    assert scaled.gap.tolist() == (usual.gap * 2.0**-40).tolist()


def test_identification_probability_asks_no_sensitivity() -> None:
    """Risk model II under a multiplicative form and infinite weights, as enumeration decides it."""
    tree = Hierarchy.from_paths("x", [("a", "n"), ("b", "n"), ("c",)])
    problem = build([tree], weights=[1.0], form="multiplicative", model="II", measure="depth", floor=1.0)
    sensitivity = replace(problem.disclosure.sensitivity, weights=(np.array([math.inf, 1.0, 1.0, 0.0, 0.0]),))
    rows = np.array([[0], [1], [2]], dtype=np.int32)
    counts = SortedCounts.group([Axis(tree.at_depth, tree.ancestor)], rows, np.ones(3, dtype=np.int64))
    one, other = (
        decide(*problem.disclosing(sensitivity=sensitivity).seeking(method=search), counts, rows)  # type: ignore[arg-type]
        for search in ("exact", "branch_and_bound")
    )
    assert other.levels.tolist() == one.levels.tolist() == [[1], [1], [0]]
    assert other.risk.tolist() == one.risk.tolist() == [0.5, 0.5, 1.0]


@pytest.mark.parametrize("kind", ["risk", "utility", "penalized"])
@given(case=cases(), data=st.data())
def test_several_dictionaries_as_enumeration_decides_them(
    kind: str, case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, Any]], data: st.DataObject
) -> None:
    """One of prior 0 does not count; a record may be absent from any."""
    hierarchies, codes, others, _ = case
    problem, counts, _, of = world(case)
    dictionary = to_dictionary(hierarchies, others)
    vectors, multiplicity = np.unique(dictionary, axis=0, return_counts=True)
    second = SortedCounts.group(counts.axes, vectors.astype(np.int32), multiplicity * 3)
    rule = data.draw(st.sampled_from(["bayes", "minimax"]))
    attacker = Attacker((counts, second, second), rule, (0.25, 0.75, 0.0))  # type: ignore[arg-type]
    problem = problem.seeking(objective=asked(data.draw, kind, of))
    one, other = (
        decide(*problem.seeking(method=search), attacker, codes)  # type: ignore[arg-type]
        for search in ("exhaustive", "branch_and_bound")
    )
    for field in ("levels", "nodes", "feasible", "consistent"):
        assert getattr(one, field).tolist() == getattr(other, field).tolist(), field
    assert one.risk == pytest.approx(other.risk)
    assert one.risk_before == pytest.approx(other.risk_before)


@given(case=cases(), data=st.data())
def test_personal_weights_are_the_records_own(
    case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, Any]], data: st.DataObject
) -> None:
    _, codes, _, settings = case
    if settings["form"] == "constant":
        settings["form"] = "linear"
    problem, counts, _, of = world(case)
    objective = asked(data.draw, "risk", of)
    weights = st.sampled_from([0.0, 0.5, 2.0])
    given_weights: dict[str, Any] = (
        {"personal": np.array([[data.draw(weights) for _ in record] for record in codes])}
        if settings["form"] == "linear"
        else {"record_weight": np.array([data.draw(weights) for _ in codes])}
    )
    one, other = (
        decide(*problem.seeking(objective=objective, method=search), counts, codes, **given_weights)  # type: ignore[arg-type]
        for search in ("exact", "branch_and_bound")
    )
    for field in ("levels", "nodes", "feasible", "consistent"):
        assert getattr(one, field).tolist() == getattr(other, field).tolist(), field
    assert one.risk == pytest.approx(other.risk)
    assert one.risk_before == pytest.approx(other.risk_before)


def test_what_record_searches_cannot_take_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_search, "_ENUMERATED", 0)
    tree = Hierarchy.from_paths("x", [("a", "n"), ("b", "n"), ("c",)])
    problem = build([tree], weights=[1.0], form="linear", model="I", measure="depth", floor=1.0, search="genetic")
    axes = [Axis(tree.at_depth, tree.ancestor)]
    rows = np.array([[0], [1], [2]], dtype=np.int32)
    counts = SortedCounts.group(axes, rows, np.ones(3, dtype=np.int64))
    with pytest.raises(InputError, match="needs 'sorted'"):
        decide(*problem, DenseCounts.roll_up(axes, rows, np.ones(3, dtype=np.int64)), rows)
    for search, objective in (("approximate", LeastRisk(1.0)), ("aggregate", GreatestAggregate(1.0))):
        with pytest.raises(InputError, match=r"takes one dictionary\. Got 2"):
            decide(*problem.seeking(method=search, objective=objective), Attacker((counts, counts), "minimax"), rows)
    with pytest.raises(InputError, match="'genetic' does not solve this problem"):
        decide(*problem.seeking(objective=GreatestUtility(0.5)), counts, rows)
    with pytest.raises(InputError, match="'aggregate' does not solve this problem"):
        decide(*problem.seeking(method="aggregate"), counts, rows)
    with pytest.raises(InputError, match="'branch_and_bound' does not solve this problem"):
        decide(*problem.seeking(method="branch_and_bound", objective=GreatestAggregate(1.0)), counts, rows)
    with pytest.raises(InternalError, match="'exact' is no search"):
        decide_records(*problem.seeking(method="exact"), Attacker.knowing(counts), rows)
    multiplicative = problem.disclosing(sensitivity=replace(problem.disclosure.sensitivity, form="multiplicative"))
    with pytest.raises(InputError, match="sum over attributes"):
        decide(*multiplicative.seeking(method="approximate"), counts, rows)
    weights = (np.array([math.inf] * 3 + [0, 0]),)
    infinite = problem.disclosing(sensitivity=replace(problem.disclosure.sensitivity, weights=weights), model="III")
    with pytest.raises(InputError, match="no infinite weights"):
        decide(*infinite.seeking(method="branch_and_bound"), counts, rows)


def test_a_record_is_put_against_the_dictionary() -> None:
    """Levels by hand: the record a of the tree (a b)n c; rows a, b twice, c, a suppressed one and one outside."""
    tree = Hierarchy.from_paths("x", [("a", "n"), ("b", "n"), ("c",)])
    axes = [Axis(tree.at_depth, tree.ancestor)]
    nodes = {label: tree.find(label) for label in ("a", "b", "c", "n")}
    rows = np.array([[nodes["a"]], [nodes["b"]], [nodes["c"]], [tree.root], [tree.n_nodes], [nodes["n"]]], np.int32)
    counts = SortedCounts.group(axes, rows, np.array([1, 2, 1, 1, 1, 4]))
    problem = build([tree], weights=[1.0], form="linear", model="I", measure="depth", floor=1.0)
    found = record_lattice(problem.disclosure, Attacker.knowing(counts), [rows_of(counts)], [tree.code_of["a"]])
    assert found.vectors.tolist() == [[0], [1], [2]]
    # A suppressed row is consistent with ⊥ alone, as one outside; the inner node n with n, not with a.
    assert found.counts.tolist() == [1, 6, 3]
    assert [w.tolist() for w in found.utilities] == [[2, 1, 0]]
    assert [w.tolist() for w in found.weights] == [[1, 0.5, 0]]
