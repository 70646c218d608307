"""The greatest aggregate of whole tables: against minimum cuts, the definitions, and the worked example."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_decisions import Known, Task, build, check, greatest_aggregate, literal, subsuming, to_dictionary
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.counting.similarity import node_similarity
from privrisk_spark.kernels.disclosure.objective import (
    GreatestAggregate,
    GreatestUtility,
    least_positive_risk,
)
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.search.aggregate import aggregate, crossing
from privrisk_spark.kernels.search.crossing import crossings
from privrisk_spark.kernels.search.dictionary_view import rows_of
from privrisk_spark.kernels.search.enumeration import enumerate_nodes
from privrisk_spark.kernels.search.incumbents import AggregateIncumbents
from privrisk_spark.kernels.search.record import RecordLattice
from privrisk_spark.kernels.search.record_search import record_lattice
from privrisk_spark.kernels.search.table_search import decide


def tree(random: np.random.Generator, height: int) -> Hierarchy:
    """A tree of one height, of one to three children a node, at least two leaves."""

    def below(path: tuple[str, ...]) -> list[tuple[str, ...]]:
        if len(path) == height:
            return [path]
        label = path[0] if path else ""
        return [leaf for c in range(random.integers(1, 4)) for leaf in below((label + "abc"[c], *path))]

    leaves: list[tuple[str, ...]] = []
    while len(leaves) < 2:
        leaves = below(())
    return Hierarchy.from_paths("x", leaves)


def table(random: np.random.Generator) -> tuple[list[Hierarchy], np.ndarray, SortedCounts, DenseCounts]:
    """Distinct records, some with suppressed values and most of them in the dictionary, and its counts."""
    trees = [tree(random, int(random.integers(1, 4))) for _ in range(random.integers(2, 5))]
    codes = np.column_stack([random.integers(0, t.n_leaves + 1, 150) for t in trees]).astype(np.int32)
    rows = np.column_stack([random.integers(0, t.n_leaves, 200) for t in trees]).astype(np.int32)
    vectors, counts = np.unique(rows, axis=0, return_counts=True)
    axes = [Axis(t.at_depth, t.ancestor) for t in trees]
    return (
        trees,
        np.unique(codes, axis=0),
        SortedCounts.group(axes, vectors, counts),
        DenseCounts.roll_up(axes, vectors, counts),
    )


def problem_of(random: np.random.Generator, trees: list[Hierarchy]) -> Task:
    return build(
        trees,
        weights=[float(random.choice([0, 0.3, 1])) for _ in trees],
        form=str(random.choice(["linear", "record", "constant"])),
        model=str(random.choice(["I", "II"])),
        measure=str(random.choice(["depth", "leaves", "lm"])),
        floor=0.0,
    )


@pytest.mark.parametrize("seed", range(10))
def test_enumeration_is_the_minimum_cut(seed: int) -> None:
    """Thousands of records: every trade-off lies at the crossing of one of them, or near it; personal weights too."""
    random = np.random.default_rng(seed)
    trees, codes, in_order, dense = table(random)
    problem = problem_of(random, trees)
    given_weights = (
        random.choice([0.0, 0.5, 1.0], codes.shape) if problem.disclosure.sensitivity.form == "linear" else None
    )
    seen = set()
    for kappa in (0, 1, 2):
        found = crossings(
            problem.disclosure, GreatestAggregate(1.0, kappa), Attacker.knowing(dense), codes, personal=given_weights
        )
        finite = found[np.isfinite(found) & (found > 0)]
        at = float(random.choice(finite)) if len(finite) else 1.0
        for zero_phi, factor in (("exclude", 1.0), ("exclude", 0.8), ("floor", 0.6)):
            objective = GreatestAggregate(at * factor, kappa, zero_phi)  # type: ignore[arg-type]
            cut = decide(
                *problem.seeking(objective=objective, method="aggregate"), in_order, codes, personal=given_weights
            )
            for counts in (in_order, dense):
                enumerated = decide(
                    *problem.seeking(objective=objective, method="exhaustive"), counts, codes, personal=given_weights
                )
                for field in ("levels", "nodes", "consistent", "feasible"):
                    assert (getattr(enumerated, field) == getattr(cut, field)).all(), (kappa, zero_phi, factor)
                np.testing.assert_allclose(enumerated.risk, cut.risk, rtol=1e-12)
                np.testing.assert_allclose(enumerated.risk_before, cut.risk_before, rtol=1e-12)
            seen |= set(map(tuple, enumerated.levels.tolist()))
    assert len(seen) > 2, "nothing but trivial optima"


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
        "weights": [draw(st.sampled_from([0.0, 0.3, 1.0, math.inf])) for _ in hierarchies],
        "form": draw(st.sampled_from(["constant", "linear", "record", "multiplicative"])),
        "model": draw(st.sampled_from(["I", "II", "III", "III"])),
        "measure": draw(st.sampled_from(["depth", "leaves", "xiao-tao"])),
    }
    return hierarchies, codes, others, settings


@given(case=cases(), rule=st.sampled_from(["bayes", "minimax"]), personal=st.booleans(), data=st.data())
def test_any_exponent_model_form_and_dictionaries_are_decided_by_the_definition(
    case: tuple[list[Hierarchy], np.ndarray, np.ndarray, dict[str, Any]], rule: str, personal: bool, data: st.DataObject
) -> None:
    hierarchies, codes, others, settings = case
    known, counts = [], []
    similar = data.draw(st.booleans())
    for _ in range(data.draw(st.integers(1, 3))):
        # Some are the same row over and over: ρ = N everywhere.
        rows = to_dictionary(hierarchies, np.concatenate([codes[data.draw(st.integers(0, len(codes))) :], others]))
        rows = rows[: data.draw(st.integers(1, len(rows)))]
        vectors, times = np.unique(rows, axis=0, return_counts=True)
        axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
        relations = subsuming(hierarchies)
        if similar:
            h = hierarchies[0]
            axes[0] = Axis(h.at_depth, h.ancestor, "similar", similarity=node_similarity(h.labels, 0.85))
            relations[0] = lambda x, t, h=h: naive.resembles(h.labels, x, t, 0.85)
        known.append(Known([list(map(int, row)) for row in rows], relations))
        counts.append(DenseCounts.roll_up(axes, vectors.astype(np.int32), times))
    prior = (1.0, *[0.0] * (len(counts) - 1)) if data.draw(st.booleans()) else (1 / len(counts),) * len(counts)
    scale = np.ones(codes.shape)
    if personal:
        scale = np.array([[data.draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in hierarchies] for _ in codes])
    objective = GreatestAggregate(
        data.draw(st.sampled_from([0.01, 0.2, 1.0, 5.0])),
        data.draw(st.sampled_from([0, 0.5, 1, 1.5, 2, 3])),
        data.draw(st.sampled_from(["exclude", "floor"])),
    )
    problem = build(hierarchies, floor=0.0, **settings).seeking(objective=objective, method="exhaustive")
    attacker = Attacker(tuple(counts), rule, prior)  # type: ignore[arg-type]
    found = decide(*problem, attacker, codes, personal=scale if personal else None)
    for i, record in enumerate(codes):
        of = literal(problem.disclosure, hierarchies, record, known, scale[i].tolist(), rule, prior)
        levels = greatest_aggregate(of, objective.trade_off, objective.kappa, objective.zero_phi)
        as_it_is = (0,) * len(levels)
        rho = of.consistent(levels), of.consistent(as_it_is)
        want = (levels, of.risk(levels), of.risk(as_it_is), of.utility(levels), *rho)
        check(found, i, want, hierarchies, record)
        alone = decide(*problem, attacker, codes[i : i + 1], personal=scale[i : i + 1] if personal else None)
        assert alone.levels.tolist() == [list(levels)]


# Heights (2, 2, 1), N = 34; see test_aggregate.
ROWS = {"000": 1, "010": 2, "100": 1, "110": 3, "121": 4, "201": 2, "210": 5, "220": 6, "221": 10}
EXAMPLE = RecordLattice.of_rows(
    np.array([[int(level) for level in row] for row in ROWS]),
    [np.array(w, dtype=float) for w in ([6, 2, 0], [4, 2, 0], [3, 0])],
    [np.array(d, dtype=float) for d in ([2, 1, 0], [2, 1, 0], [1, 0])],
    counts=np.array(list(ROWS.values())),
)
EXPECTED = [
    ("I", 0, 1, "exclude", (2, 1, 1), 8),  # 14/2 + 1
    ("I", 1, 0.5, "exclude", (0, 0, 0), 0.5 / 13 + 5),
    ("I", 1, 1, "exclude", (2, 1, 1), 8),
    ("I", 2, 2, "exclude", (0, 0, 0), 2 / 13 + 25),
    ("I", 2, 5, "exclude", (2, 1, 1), 36),
    ("I", 1, 1, "floor", (2, 2, 1), 17),  # 34/2, as the smallest positive Φ is 2
    ("I", 1, 0.2, "floor", (0, 0, 0), 0.2 / 13 + 5),
    ("I", 0.5, 0.1, "exclude", (0, 0, 0), 0.1 / 13 + math.sqrt(5)),
    ("I", 0.5, 0.5, "exclude", (2, 1, 1), 3.5 + 1),
    ("I", 3, 20, "exclude", (2, 1, 1), 141),  # against 125 + 20/13
    ("II", 1, 0.1, "exclude", (0, 0, 0), 5.1),
    ("II", 1, 1, "exclude", (2, 2, 1), 34),
    # Φ ln(N/ρ): 2 ln(34/14) at (2, 1, 1), 3 ln(34/18) at (2, 2, 0); at the top Φ counts as 2 and ρ as 33.
    ("III", 1, 1, "exclude", (0, 0, 0), 1 / (13 * math.log(34)) + 5),
    ("III", 1, 9, "exclude", (2, 1, 1), 9 / (2 * math.log(34 / 14)) + 1),
    ("III", 1, 9, "floor", (2, 2, 1), 9 / (2 * math.log(34 / 33))),
]


@pytest.mark.parametrize(("model", "kappa", "trade_off", "zero_phi", "levels", "value"), EXPECTED)
def test_worked_example(
    model: str, kappa: float, trade_off: float, zero_phi: str, levels: tuple[int, ...], value: float
) -> None:
    """One record's lattice, and the same record in a table."""
    lattice = replace(EXAMPLE, model=model)
    objective = GreatestAggregate(trade_off, kappa, zero_phi)  # type: ignore[arg-type]
    found = enumerate_nodes(lattice, objective)
    assert found is not None
    assert tuple(found.levels) == levels
    assert found.objective == pytest.approx(value, rel=1e-12)
    assert found.risk == lattice.risk(found.levels)
    problem, counts, record = as_table(model)
    of_table = decide(*problem.seeking(objective=objective, method="exhaustive"), counts, record)
    assert tuple(of_table.levels[0]) == levels
    assert of_table.risk[0] == pytest.approx(found.risk, rel=1e-12)
    assert of_table.consistent[0] == found.consistent


def as_table(model: str) -> tuple[Task, SortedCounts, np.ndarray]:
    """The example as hierarchies a⊂n⊂*, of which the record holds a; weights and utilities per node."""
    tall = Hierarchy.from_paths("x", [("a", "n"), ("b", "n"), ("c", "m")])
    flat = Hierarchy.from_paths("x", [("a",), ("b",)])
    trees = [tall, tall, flat]
    at = [["a", "b", "c"], ["a", "b", "c"], ["a", "b"]]
    rows = np.array(
        [[t.code_of[labels[int(x)]] for t, labels, x in zip(trees, at, row, strict=True)] for row in ROWS], np.int32
    )
    axes = [Axis(t.at_depth, t.ancestor) for t in trees]
    counts = SortedCounts.group(axes, rows, np.array(list(ROWS.values())))
    problem = build(trees, weights=[1.0] * 3, form="linear", model=model, measure="depth", floor=0.0)
    weights = []
    for t, of_level in zip(trees, ([6, 2, 0], [4, 2, 0], [3, 0]), strict=True):
        of_node = np.zeros(t.n_nodes)
        # From the top down: what the record's nodes do not overwrite does not matter.
        of_node[: t.n_leaves] = of_level[0]
        of_node[t.n_leaves : t.root] = of_level[-2]
        weights.append(of_node)
    record = np.array([[t.code_of["a"] for t in trees]], dtype=np.int32)
    return (
        problem.disclosing(sensitivity=replace(problem.disclosure.sensitivity, weights=tuple(weights))),
        counts,
        record,
    )


@pytest.mark.parametrize("seed", range(6))
def test_crossings_are_those_of_single_records(seed: int) -> None:
    random = np.random.default_rng(100 + seed)
    trees, codes, counts, dense = table(random)
    codes = codes[:40]
    problem = problem_of(random, trees)
    for kappa in (0, 1, 1.5, 2):
        objective = GreatestAggregate(3.0, kappa)
        held = Attacker.knowing(counts), [rows_of(counts)]
        want = [crossing(record_lattice(problem.disclosure, *held, record), kappa=kappa) for record in codes]
        of_table: Counts
        for of_table in (counts, dense):
            np.testing.assert_allclose(
                crossings(problem.disclosure, objective, Attacker.knowing(of_table), codes), want, rtol=1e-9
            )


@pytest.mark.parametrize("model", ["I", "III"])
def test_a_crossing_does_not_depend_on_the_other_records(model: str) -> None:
    """With weights of their own, and with level vectors of no risk counted as of the least."""
    random = np.random.default_rng(5)
    trees, codes, _, counts = table(random)
    problem = build(trees, weights=[1.0] * len(trees), form="linear", model=model, measure="depth", floor=0.0)
    asked = problem.disclosure, GreatestAggregate(1.0, 1.0, "floor"), Attacker.knowing(counts)
    weights = random.choice([0.0, 0.5, 1.0, 4.0], codes.shape)
    together = crossings(*asked, codes, personal=weights)
    for i in range(len(codes)):
        (alone,) = crossings(*asked, codes[i : i + 1], personal=weights[i : i + 1])
        assert alone == together[i]
    assert len(np.unique(together)) > 10


def test_a_record_jumps_at_its_crossing() -> None:
    """λ* = 4 / (7 - 1/13) of the example; with the top as a candidate of 17 λ, 5 / (17 - 1/13)."""
    problem, counts, record = as_table("I")
    attacker = Attacker.knowing(counts)
    for zero_phi, expected in (("exclude", 4 / (7 - 1 / 13)), ("floor", 5 / (17 - 1 / 13))):
        objective = GreatestAggregate(1.0, 1.0, zero_phi)  # type: ignore[arg-type]
        (found,) = crossings(problem.disclosure, objective, attacker, record)
        assert found == pytest.approx(expected)
        for factor, stays in ((1 - 1e-9, True), (1 + 1e-9, False)):
            at = problem.seeking(objective=replace(objective, trade_off=found * factor), method="exhaustive")
            assert (decide(*at, counts, record).levels == 0).all() == stays


def test_ties_are_against_the_highest_value_seen() -> None:
    """Each node loses 0.7e-12 to the one before and is more useful: the second is still a tie, the third is not."""
    best = AggregateIncumbents.none(1)
    objective = GreatestAggregate(1.0)
    for node, utility in enumerate((1.0, 2.0, 3.0)):
        value = np.array([1 - node * 0.7e-12])
        best.offer_value(
            objective, slice(None), node, value, np.ones(1), np.array([utility]), np.ones(1, dtype=np.int64)
        )
    assert (best.node[0], best.highest[0]) == (1, 1.0)
    lower, higher = np.array([1.0]), np.array([1 + 0.5e-12])
    for order in ((lower, higher), (higher, lower)):
        best = AggregateIncumbents.none(1)
        for node, value in enumerate(order):
            best.offer_value(objective, slice(None), node, value, np.ones(1), np.ones(1), np.ones(1, dtype=np.int64))
        assert best.node[0] == 0, "equal in both: the first"


def test_the_least_positive_risk_replaces_what_is_zero_alone() -> None:
    phi, least = np.array([0.0, 2.0, 0.0, 0.0]), np.array([0.5, 0.5, 0.5, math.inf])
    rho = np.array([3, 10, 10, 10])
    found = least_positive_risk("III", phi, rho, dictionary_rows=10, least_sensitivity=least)
    assert found.tolist() == pytest.approx(
        [0.5 * math.log(10 / 3), 2 * math.log(10 / 9), 0.5 * math.log(10 / 9), math.inf]
    )
    found = least_positive_risk("I", phi, rho, dictionary_rows=10, least_sensitivity=least)
    assert found.tolist() == [0.5 / 3, 0.2, 0.05, math.inf]


def test_what_an_objective_or_search_cannot_be_is_refused() -> None:
    for trade_off, kappa in ((-1.0, 1.0), (math.inf, 1.0), (1.0, -0.5), (1.0, math.nan)):
        with pytest.raises(InputError, match="must be finite and not negative"):
            GreatestAggregate(trade_off, kappa)
    problem, counts, record = as_table("I")
    for objective in (GreatestAggregate(1.0), GreatestUtility(1.0)):
        for search in ("exact", "aruba"):
            with pytest.raises(InputError, match=f"'{search}' does not solve this problem"):
                decide(*problem.seeking(objective=objective, method=search), counts, record)  # type: ignore[arg-type]
    assert aggregate(EXAMPLE, trade_off=0.0).levels.tolist() == [0, 0, 0]
    none = problem.seeking(objective=GreatestAggregate(0.0), method="exhaustive")
    assert decide(*none, counts, record).levels.tolist() == [[0, 0, 0]], "a λ of 0 asks for utility alone"
