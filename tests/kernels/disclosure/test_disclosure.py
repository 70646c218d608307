"""Sensitivity, risk and utility: definitions, worked values of the papers, monotonicity."""

from __future__ import annotations

import math

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import hierarchies, several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import DenseCounts
from privrisk_spark.kernels.disclosure.risk import Attacker, identification_risk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, harmonic_weights, normalized, override_weights
from privrisk_spark.kernels.disclosure.utility import node_utility

weights_of = st.sampled_from([0.0, 0.25, 1.0, 3.0, math.inf])


def node_weights(hierarchy: Hierarchy, leaf_weight: float) -> np.ndarray:
    leaves = np.full(hierarchy.n_leaves, leaf_weight)
    return harmonic_weights(hierarchy.parent, hierarchy.depth, hierarchy.n_leaves, leaves)


def worked_example() -> tuple[dict[str, Hierarchy], list[np.ndarray], list[np.ndarray]]:
    """F12 §3.2: city h = 4, race h = 2, birthdate h = 3 with 31-day months, income h = 4 with 80 in a bracket."""
    made = {
        "city": Hierarchy.from_paths(
            "city", [("c0", "k0", "s0", "r0"), ("c1", "k0", "s0", "r0"), ("c2", "k1", "s0", "r0")]
        ),
        "race": Hierarchy.from_paths("race", [("r0", "g0"), ("r1", "g0"), ("r2", "g1")]),
        "birthdate": Hierarchy.from_paths("birthdate", [(f"1990-01-{d:02d}", "1990-01", "1990") for d in range(1, 32)]),
        "income": Hierarchy.from_paths(
            "income",
            [(f"i{i}", f"b{i // 10}", "[$20k,$99k]", "half") for i in range(80)] + [("i80", "b8", "more", "half")],
        ),
    }
    weights = [node_weights(h, w) for h, w in zip(made.values(), (0.3, 0.4, 0.5, 0.75), strict=True)]
    utilities = [node_utility("depth", h.depth, h.n_under) for h in made.values()]
    return made, weights, utilities


def test_the_worked_example_of_the_thesis() -> None:
    """F12 §3.2: full disclosure has Φ = exp(1.95) = 7.03, loss 1.004 at ρ = 7, utility 13; (city, ⊥, month,
    [$20k,$99k]) has Φ = exp(.3 + 0 + .5/31 + .75/80) = 1.38, loss .007 at ρ = 198, utility 4 + 0 + 2 + 1 = 7."""
    made, weights, utilities = worked_example()
    sensitivity = Sensitivity("multiplicative", tuple(weights))
    full = [h.find(label) for h, label in zip(made.values(), ("c0", "r0", "1990-01-01", "i0"), strict=True)]
    city, race, birth, income = made.values()
    # The bracket lies two levels above the value in this tree: level 2 of 4 leaves utility 2; the thesis has one more
    # level below it, so its utility of 1 is that of a node one step under the root.
    part = [city.find("c0"), race.root, birth.find("1990-01"), income.find("[$20k,$99k]")]
    nodes = [np.array([a, b], dtype=np.int32) for a, b in zip(full, part, strict=True)]
    phi = sensitivity.phi(nodes)
    assert phi[0] == pytest.approx(math.exp(1.95))
    assert round(float(phi[0]), 2) == 7.03
    assert phi[1] == pytest.approx(math.exp(0.3 + 0 + 0.5 / 31 + 0.75 / 80))
    assert round(float(phi[1]), 2) == 1.38
    losses = identification_risk("I", phi, np.array([7, 198]), dictionary_rows=1000)
    assert [round(float(loss), 3) for loss in losses] == [1.004, 0.007]
    assert sum(u[n[0]] for u, n in zip(utilities, nodes, strict=True)) == 4 + 2 + 3 + 4
    by_attribute = [float(u[n[1]]) for u, n in zip(utilities, nodes, strict=True)]
    assert by_attribute[:3] == [4, 0, 2]
    assert float(utilities[3][income.find("half")]) == 1


@given(hierarchies(), st.data())
def test_harmonic_weights_are_the_recursion_and_never_rise(hierarchy: Hierarchy, data: st.DataObject) -> None:
    leaves = [data.draw(weights_of) for _ in range(hierarchy.n_leaves)]
    weights = harmonic_weights(hierarchy.parent, hierarchy.depth, hierarchy.n_leaves, np.array(leaves))
    parent = hierarchy.parent.tolist()
    for node in range(hierarchy.n_nodes):
        assert weights[node] == pytest.approx(naive.harmonic(parent, hierarchy.n_leaves, leaves, node))
    assert (weights[hierarchy.parent] <= weights * (1 + 1e-12)).all()


@given(hierarchies(), st.sampled_from([0.5, 1.0, 4.0]))
def test_equal_leaf_weights_telescope(hierarchy: Hierarchy, weight: float) -> None:
    """With equal leaf weights a node weighs w / n(v)."""
    weights = node_weights(hierarchy, weight)
    inner = np.arange(hierarchy.n_nodes - 1)
    assert weights[inner] == pytest.approx(weight / hierarchy.n_under[inner])


def test_nodes_above_a_given_weight_are_means_of_it() -> None:
    """(a, b → P → G; c, d → Q → G) with P given .1: Q is 1/2, so G is 1/(1/.1 + 1/.5) = 1/12."""
    hierarchy = Hierarchy.from_paths("x", [("a", "P", "G"), ("b", "P", "G"), ("c", "Q", "G"), ("d", "Q", "G"), ("e",)])
    leaves = np.ones(hierarchy.n_leaves)
    found = harmonic_weights(hierarchy.parent, hierarchy.depth, hierarchy.n_leaves, leaves, {hierarchy.find("P"): 0.1})
    assert found[hierarchy.find("Q")] == pytest.approx(0.5)
    assert found[hierarchy.find("G")] == pytest.approx(1 / 12)
    none = harmonic_weights(hierarchy.parent, hierarchy.depth, hierarchy.n_leaves, leaves, {hierarchy.find("P"): 0.0})
    assert none[hierarchy.find("G")] == 0


def test_a_given_weight_may_not_increase_upwards() -> None:
    hierarchy = Hierarchy.from_paths("age", [("1", "young"), ("2", "young"), ("70", "old")])
    weights = node_weights(hierarchy, 1.0)
    given_ = {"parent": hierarchy.parent, "labels": hierarchy.labels}
    changed = override_weights("age", weights, {hierarchy.find("young"): 0.1}, **given_)
    assert changed[hierarchy.find("young")] == 0.1
    with pytest.raises(InputError, match=r"node_weights.age: weights must not increase upwards.*'young' weighs 2"):
        override_weights("age", weights, {hierarchy.find("young"): 2.0}, **given_)
    with pytest.raises(InputError, match=r"the root must weigh 0\. Got 1"):
        override_weights("age", weights, {hierarchy.root: 1.0}, **given_)


@given(several_hierarchies(), st.sampled_from(["constant", "linear", "record", "multiplicative"]), st.data())
def test_phi_is_its_definition(hierarchies: list[Hierarchy], form: str, data: st.DataObject) -> None:
    leaf_weights = [data.draw(weights_of) for _ in hierarchies]
    weights = tuple(node_weights(h, w) for h, w in zip(hierarchies, leaf_weights, strict=True))
    nodes = [data.draw(st.integers(0, h.n_nodes - 1)) for h in hierarchies]
    personal = [data.draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in hierarchies]
    record = data.draw(st.sampled_from([0.0, 1.5, math.inf]))
    found = Sensitivity(form, weights, 2.5).phi(  # type: ignore[arg-type]
        [np.array([n], dtype=np.int32) for n in nodes],
        personal=np.array([personal]),
        record_weight=np.array([record]),
    )
    scaled = [0.0 if w[n] == 0 or p == 0 else float(w[n]) * p for w, n, p in zip(weights, nodes, personal, strict=True)]
    suppressed = [n == h.root for n, h in zip(nodes, hierarchies, strict=True)]
    assert found[0] == pytest.approx(naive.phi(form, scaled, suppressed, constant=2.5, record=record))


@given(
    st.sampled_from(["I", "II", "III"]),
    st.sampled_from([0.0, 0.3, 7.0, math.inf]),
    st.integers(0, 20),
    st.integers(0, 5),
)
def test_risk_is_its_definition_and_falls_with_company(model: str, phi: float, rho: int, more: int) -> None:
    rows = rho + more
    found = identification_risk(model, np.array([phi]), np.array([rho]), dictionary_rows=max(rows, 1))[0]  # type: ignore[arg-type]
    assert found == pytest.approx(naive.risk(model, phi, rho, max(rows, 1)))
    if rho:
        wider = identification_risk(model, np.array([phi]), np.array([rho + 1]), dictionary_rows=rows + 1)[0]  # type: ignore[arg-type]
        narrower = identification_risk(model, np.array([phi]), np.array([rho]), dictionary_rows=rows + 1)[0]  # type: ignore[arg-type]
        assert wider <= narrower
        assert not math.isnan(wider)


@given(st.sampled_from(["I", "II", "III"]), st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), max_size=6))
def test_records_may_have_dictionaries_of_different_sizes(model: str, pairs: list[tuple[int, int]]) -> None:
    """Some absent and added, some not, some with no consistent row: each as if alone."""
    phi = np.array([0.0, 0.3, 7.0, math.inf, 1.0, 2.0])[: len(pairs)]
    rho = np.array([a for a, _ in pairs], dtype=np.int64)
    rows = rho + np.array([max(b, a == 0) for a, b in pairs], dtype=np.int64)
    found = identification_risk(model, phi, rho, dictionary_rows=rows)  # type: ignore[arg-type]
    want = [naive.risk(model, float(f), int(a), int(n)) for f, a, n in zip(phi, rho, rows, strict=True)]
    assert found == pytest.approx(want)


def test_k_anonymity_is_a_special_case() -> None:
    """F12 Theorem 2.6.1: with Φ = c and the table as dictionary, loss <= c/k iff at least k records are consistent."""
    rho = np.arange(1, 30)
    loss = identification_risk("I", np.full(29, 3.0), rho, dictionary_rows=100)
    for k in range(1, 30):
        assert ((loss <= 3.0 / k) == (rho >= k)).all()


NOTHING = DenseCounts(np.zeros(1, dtype=np.int64), (), 0)
LABELS = DenseCounts(np.zeros(1, dtype=np.int64), (), 0, monotone=False)


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from([0.0, 0.25, 3.0, math.inf])), min_size=1, max_size=4),
    st.sampled_from(["bayes", "minimax"]),
)
def test_risk_over_dictionaries_is_its_definition(pairs: list[tuple[int, float]], rule: str) -> None:
    total = sum(q for q, _ in pairs)
    prior = [q / total for q, _ in pairs] if total else [1.0, *[0.0] * (len(pairs) - 1)]
    attacker = Attacker((NOTHING,) * len(pairs), rule, tuple(prior))  # type: ignore[arg-type]
    given_ = [r for q, (_, r) in zip(prior, pairs, strict=True) if rule == "minimax" or q > 0]
    found = attacker.risk([np.array([r, 1.0]) for r in given_])
    assert found[0] == pytest.approx(naive.risk_of_attacker(rule, prior, [r for _, r in pairs]))
    assert found[1] == pytest.approx(1.0), "a prior sums to 1"


@pytest.mark.parametrize(
    ("counts", "rule", "prior", "message"),
    [
        ((), "bayes", (), "at least one dictionary"),
        ((NOTHING,), "bayes", (), "one probability per dictionary, 1 in all. Got 0"),
        ((NOTHING,) * 2, "minimax", (1.0,), "one probability per dictionary, 2 in all. Got 1"),
        ((NOTHING,) * 2, "bayes", (0.5, 0.5 + 2e-9), "sum to 1"),
        ((NOTHING,) * 2, "bayes", (1.5, -0.5), "must not be negative"),
        ((NOTHING,) * 2, "bayes", (math.nan, 1.0), "sum to 1"),
    ],
)
def test_priors_that_do_not_fit_are_refused(
    counts: tuple[DenseCounts, ...], rule: str, prior: tuple[float, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Attacker(counts, rule, prior)  # type: ignore[arg-type]


def test_a_dictionary_of_probability_0_does_not_matter() -> None:
    """Unless there is no prior."""
    assert Attacker.knowing(NOTHING).possible == (NOTHING,)
    assert Attacker((NOTHING, LABELS), "bayes", (1.0, 0.0)).monotone
    assert not Attacker((NOTHING, LABELS), "bayes", (0.5, 0.5 + 9e-10)).monotone
    assert not Attacker((NOTHING, LABELS), "minimax", (1.0, 0.0)).monotone
    assert not Attacker((LABELS, NOTHING), "minimax").monotone


@given(hierarchies())
def test_utilities_are_their_definitions(hierarchy: Hierarchy) -> None:
    parent = hierarchy.parent.tolist()
    m = hierarchy.n_leaves
    for node in range(hierarchy.n_nodes):
        n = len(naive.leaves_under(parent, m, node))
        want = {
            "depth": len(naive.path_to_root(parent, node)) - 1,
            "leaves": 1 / n,
            "log-leaves": math.log(m / n),
            "xiao-tao": 1 - (n - 1) / m,
            "lm": 1.0 if m == 1 else 1 - (n - 1) / (m - 1),
        }
        for measure, value in want.items():
            found = node_utility(measure, hierarchy.depth, hierarchy.n_under, weight=2.0)  # type: ignore[arg-type]
            assert found[node] == pytest.approx(2 * value)
            assert (found[hierarchy.parent] <= found + 1e-12).all()
            assert (found >= 0).all()


def test_personal_weights_are_normalized_per_record() -> None:
    weights = np.array([[1.0, 3.0], [0.1, 0.1], [0.0, 0.0]])
    assert normalized(weights, total=2.0, at_most=False).tolist() == [[0.5, 1.5], [1.0, 1.0], [0.0, 0.0]]
    scaled = normalized(weights, total=2.0, at_most=False, attribute=[2.0, 0.5])
    assert (scaled * [2.0, 0.5]).sum(axis=1) == pytest.approx([2, 2, 0])
    unused = normalized(np.array([[np.inf, 4.0]]), total=2.0, at_most=False, attribute=[0.0, 1.0])
    assert unused.tolist() == [[np.inf, 2.0]], "0 · inf is 0: an attribute of weight 0 adds nothing"
    infinite = np.array([[np.inf, 1.0]])
    assert normalized(infinite, total=2.0, at_most=False).tolist() == [[np.inf, 1.0]]
    assert normalized(weights, total=2.0, at_most=True).tolist() == [[0.5, 1.5], [0.1, 0.1], [0.0, 0.0]]
