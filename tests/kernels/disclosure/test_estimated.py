"""The bounding theorem as a property, each of its conditions as a counterexample, and risk at given levels."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import naive
import numpy as np
import pytest
from disclosures import Rows, counts_of, disclosure_of, disclosures, leaf_rows
from hypothesis import given
from hypothesis import strategies as st
from strategies import hierarchies as trees

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import looseness, more_general, order_facts, risk_of
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide


def all_levels(disclosure: Disclosure, record: Rows) -> list[tuple[int, ...]]:
    return list(naive.lattice([int(d[c]) for d, c in zip(disclosure.code_depth, record, strict=True)]))


# -------------------------------------------------------------------------------------------- the order


@given(trees(), st.data())
def test_more_general_is_the_path_to_the_root(hierarchy: Hierarchy, data: st.DataObject) -> None:
    outside = hierarchy.n_nodes
    pairs = list(itertools.product(range(outside + 1), repeat=2))
    got = more_general(hierarchy.at_depth, *np.array(pairs, dtype=np.int32).T)
    parents = hierarchy.parent.tolist()
    for (low, high), general in zip(pairs, got, strict=True):
        if outside in (low, high):
            assert general == (high == hierarchy.root)
        else:
            assert general == (high in naive.path_to_root(parents, low))
    unresolved = np.array([-1, -2, 0, -1], dtype=np.int32), np.array([0, hierarchy.root, -1, -1], dtype=np.int32)
    assert more_general(hierarchy.at_depth, *unresolved).tolist() == [hierarchy.root == 0, True, False, False]


def test_facts_of_the_order_by_hand() -> None:
    tree = Hierarchy.from_paths("x", [("a", "g"), ("b", "g"), ("c",)])
    a, b, c, g, root, outside = 0, 1, 2, 3, 4, 5
    rows = [  # rows in the estimate, in the true dictionary, id missing, values
        (1, 1, False, a, g),  # coarser
        (1, 1, False, b, b),  # equal
        (1, 1, False, g, a),  # finer: not more general
        (1, 1, False, outside, outside),  # two unknown texts
        (1, 1, False, outside, root),
        (1, 0, False, a, 0),  # unmatched
        (0, 1, False, 0, c),
        (2, 1, False, a, a),  # ambiguous, one duplicate in the estimate
        (1, 3, False, a, a),  # ambiguous, two duplicates in the true dictionary
        (2, 0, False, a, 0),  # unmatched twice, one duplicate
        (4, 5, True, a, a),  # missing ids match nothing
    ]
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    facts = order_facts([tree.at_depth], columns[0], columns[1], columns[2], columns[3][:, None], columns[4][:, None])
    assert facts == {
        "estimate_rows": 15,
        "true_rows": 15,
        "estimate_null_ids": 4,
        "true_null_ids": 5,
        "estimate_duplicate_ids": 2,
        "true_duplicate_ids": 2,
        "unmatched": 3,
        "ambiguous": 3,
        "not_more_general": 2,
        "coarser": 2,
        "a0": 2,
    }


# -------------------------------------------------------------------------------------------- risk at given levels


@given(disclosures(("I", "II", "III")), st.data())
def test_risk_at_given_levels_is_the_literal_one(case: tuple[list[Hierarchy], Disclosure], data: st.DataObject) -> None:
    hierarchies, disclosure = case
    meaning = data.draw(st.sampled_from(["subsumes", "compatible"]))
    axes = [Axis(h.at_depth, h.ancestor, meaning) for h in hierarchies]
    n = data.draw(st.integers(0, 6))
    rows = [[data.draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(n)]
    plan = data.draw(st.sampled_from(["dense", "sorted"]))
    counts = counts_of(axes, np.array(rows, dtype=np.int32), plan)
    m = data.draw(st.integers(1, 5))
    codes = np.array([[data.draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(m)], dtype=np.int32)
    # Beyond a value's depth a level stays at the root.
    levels = np.array([[data.draw(st.integers(0, h.height)) for h in hierarchies] for _ in range(m)], dtype=np.int8)
    personal = np.array([[data.draw(st.sampled_from([0.0, 0.5, 3.0])) for _ in hierarchies] for _ in range(m)])
    scale = data.draw(st.sampled_from([0.0, 1.5]))
    got = risk_of(disclosure, counts, codes, levels, personal=personal, record_weight=np.full(m, scale))
    parents = [h.parent.tolist() for h in hierarchies]
    known = [[None if v == h.n_nodes else v for v, h in zip(row, hierarchies, strict=True)] for row in rows]
    for r in range(m):
        bottom = [int(h.ancestor[c, 0]) for h, c in zip(hierarchies, codes[r], strict=True)]
        here = [int(h.ancestor[c, x]) for h, c, x in zip(hierarchies, codes[r], levels[r], strict=True)]
        absent = naive.count(parents, bottom, known, meaning) == 0
        rho = naive.count(parents, here, known, meaning) + absent
        weights = [
            0.0 if p == 0 or w[v] == 0 else float(w[v]) * p
            for w, v, p in zip(disclosure.sensitivity.weights, here, personal[r], strict=True)
        ]
        suppressed = [v == h.root for v, h in zip(here, hierarchies, strict=True)]
        phi = naive.phi(disclosure.sensitivity.form, weights, suppressed, record=scale)
        assert (got.consistent[r], got.absent[r]) == (rho, absent)
        assert got.risk[r] == pytest.approx(naive.risk(disclosure.model, phi, rho, n + absent), rel=1e-12)
        alone = risk_of(
            disclosure,
            counts,
            codes[[r]],
            levels[[r]],
            personal=personal[[r]],
            record_weight=np.array([scale]),
        )
        assert alone.risk[0] == got.risk[r], "the risk of a record does not depend on the others"


@given(disclosures(("I", "II", "III")), st.data())
def test_the_risk_of_a_decision_is_the_one_decided_on(
    case: tuple[list[Hierarchy], Disclosure], data: st.DataObject
) -> None:
    hierarchies, disclosure = case
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    codes = leaf_rows(data.draw, hierarchies, 1, 5)
    counts = counts_of(axes, leaf_rows(data.draw, hierarchies, 0, 8))
    decided = decide(disclosure, Search(LeastRisk(data.draw(st.floats(0, 4)))), counts, codes)
    evaluated = risk_of(disclosure, counts, codes, decided.levels)
    assert evaluated.risk.tolist() == decided.risk.tolist()
    assert evaluated.consistent.tolist() == decided.consistent.tolist()


def test_a_count_is_never_asked_above_the_root() -> None:
    tree = Hierarchy.from_paths("x", [("a", "g"), ("b",)])

    class Strict:
        dictionary_rows = 1

        def consistent(self, codes: Any, levels: Any, depths: Any) -> np.ndarray:
            assert all(level <= depth for level, depth in zip(levels, depths, strict=True))
            return np.ones(len(codes[0]), dtype=np.int64)

    codes = np.array([[0], [1], [2]], dtype=np.int32)
    found = risk_of(disclosure_of([tree]), Strict(), codes, np.array([[1], [2], [2]]))
    assert found.risk.tolist() == [1, 0, 0], "the only leaf under g weighs 1, and so does g"


def test_no_records_have_no_risk() -> None:
    tree = Hierarchy.from_paths("x", [("a",), ("b",)])
    counts = counts_of([Axis(tree.at_depth, tree.ancestor)], np.array([[0]]))
    nothing = np.empty((0, 1), dtype=np.int32)
    assert len(risk_of(disclosure_of([tree], model="III"), counts, nothing, nothing).risk) == 0


# -------------------------------------------------------------------------------------------- the theorem


@st.composite
def dictionaries(draw: st.DrawFn) -> tuple[list[Hierarchy], Disclosure, Rows, Rows, Rows]:
    """Records, an estimate that holds them, and a true dictionary with θ̂ ≪ θ: coarser values and further rows."""
    hierarchies, disclosure = draw(disclosures())
    records = leaf_rows(draw, hierarchies, 1, 4)
    others = np.array(
        [[draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(draw(st.integers(0, 5)))], dtype=np.int32
    ).reshape(-1, len(hierarchies))
    estimate = np.concatenate([records, others])
    true = estimate.copy()
    for row, (i, h) in itertools.product(range(len(true)), enumerate(hierarchies)):
        path = naive.path_to_root(h.parent.tolist(), int(true[row, i])) if true[row, i] < h.n_nodes else [h.root]
        true[row, i] = draw(st.sampled_from(path))
    further = np.array(
        [[draw(st.integers(0, h.n_nodes)) for h in hierarchies] for _ in range(draw(st.integers(0, 5)))], dtype=np.int32
    ).reshape(-1, len(hierarchies))
    return hierarchies, disclosure, records, estimate, np.concatenate([true, further])


@given(dictionaries(), st.data())
def test_the_bounding_theorem(case: tuple[list[Hierarchy], Disclosure, Rows, Rows, Rows], data: st.DataObject) -> None:
    """R(δ, θ) <= R(δ, θ̂) record by record, for every level vector; an attribute θ lacks is no exception."""
    hierarchies, disclosure, records, estimate, true = case
    axes = [Axis(h.at_depth, h.ancestor, "compatible") for h in hierarchies]
    lacking = [replace(axis, known=data.draw(st.booleans())) for axis in axes]
    for row in range(len(estimate)):
        for axis, low, high in zip(axes, estimate[row], true[row], strict=True):
            if low < len(axis.at_depth):
                assert more_general(axis.at_depth, np.array([low]), np.array([high]))[0]
    against = counts_of(axes, estimate)
    for theta in (counts_of(axes, true), counts_of(lacking, true, "sorted")):
        for record in records:
            every = np.array(all_levels(disclosure, record), dtype=np.int32)
            codes = np.tile(record, (len(every), 1))
            estimated = risk_of(disclosure, against, codes, every)
            assert not estimated.absent.any()
            real = risk_of(disclosure, theta, codes, every)
            assert (real.risk <= estimated.risk).all()
            assert (real.consistent >= estimated.consistent).all()
            assert (looseness(estimated.risk, real.risk) >= 1).all()


GROUPED = Hierarchy.from_paths("x", [("a", "g"), ("b", "g"), ("c", "h")])
A, B, C, G, H, ROOT = 0, 1, 2, GROUPED.find("g"), GROUPED.find("h"), GROUPED.root
ONE, NONE = np.array([[A]], dtype=np.int32), np.zeros((1, 1), dtype=np.int32)


def single(estimate: list[int], true: list[int], consistency: str, model: str = "II") -> tuple[float, float]:
    axes = [Axis(GROUPED.at_depth, GROUPED.ancestor, consistency)]  # type: ignore[arg-type]
    disclosure = disclosure_of([GROUPED], model=model)
    found = [risk_of(disclosure, counts_of(axes, np.array(d)), ONE, NONE).risk[0] for d in (estimate, true)]
    return float(found[0]), float(found[1])


def test_under_subsumes_a_coarser_counterpart_breaks_the_bound() -> None:
    """θ̂ = {a, a}, θ = {a, g}: the row moved up to g is no longer consistent with the disclosed a."""
    assert single([A, A], [A, G], "subsumes") == (1 / 2, 1)
    assert single([A, A], [A, G], "compatible") == (1 / 2, 1 / 2)


def test_a_record_the_estimate_lacks_breaks_the_bound() -> None:
    """θ̂ = {b}, θ = {⊥}, both known to hold nobody else: at g the estimate sees b and the record itself, θ one row."""
    axes = [Axis(GROUPED.at_depth, GROUPED.ancestor, "compatible")]
    at_g = np.array([[1]])
    found = [
        risk_of(disclosure_of([GROUPED], model="II"), counts_of(axes, np.array([d])), ONE, at_g) for d in (B, ROOT)
    ]
    assert [float(e.risk[0]) for e in found] == [1 / 2, 1]
    assert [bool(e.absent[0]) for e in found] == [True, False]


def test_model_iii_is_not_bounded() -> None:
    """θ̂ = {a, a}, θ = {a, a, c, c}: ρ stays 2 but ln(N/ρ) grows from 0 to ln 2."""
    estimated, true = single([A, A], [A, A, C, C], "compatible", model="III")
    assert (estimated, true) == (0, pytest.approx(math.log(2)))


def test_two_rows_need_two_counterparts() -> None:
    """θ̂ = {a, a} under one id and θ = {a} under that id: each row has a counterpart, but it is the same one."""
    assert single([A, A], [A], "compatible") == (1 / 2, 1)


def test_looseness() -> None:
    inf = math.inf
    cases = [(1.0, 0.5, 2.0), (0.0, 0.0, 1.0), (inf, inf, 1.0), (1.0, 0.0, inf), (inf, 2.0, inf), (0.5, 1.0, 0.5)]
    cases += [(2.0, inf, 0.0), (0.0, 1.0, 0.0), (1e300, 1e-300, inf)]
    estimated, true, want = (np.array(column) for column in zip(*cases, strict=True))
    assert looseness(estimated, true).tolist() == want.tolist()
