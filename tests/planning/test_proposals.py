from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policies import DP, DROP, changed

from privrisk_spark.errors import ConfigError, InputError
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.dp.proposals import agreement, diverse, expected_rows, minimal_schemes
from privrisk_spark.ledger.calibrated import Calibrated, Choosing
from privrisk_spark.planning.calibration import mechanism
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse
from privrisk_spark.reporting.explanation import explanation
from privrisk_spark.reporting.models.private import dp_guarantee

PLACE = Hierarchy.from_paths("place", [("z",), ("a", "north"), ("b", "north"), ("c", "far", "north"), ("d", "south")])

# --- kernel


def literal_agreement(shares: list[float], level: int) -> float:
    """Sum over pairs of leaves that have one node at the level."""
    node = PLACE.ancestor[:, level]
    pairs = itertools.product(range(len(shares)), repeat=2)
    return sum(shares[i] * shares[j] for i, j in pairs if node[i] == node[j])


def test_agreement_is_the_probability_of_a_common_node():
    shares = [0.1, 0.2, 0.3, 0.25, 0.15]
    found = agreement(PLACE.ancestor[:5], np.array(shares))
    assert found == pytest.approx([literal_agreement(shares, level) for level in range(4)])
    assert (np.diff(found) >= 0).all()
    assert found[-1] == pytest.approx(1)


agreements = st.lists(
    st.lists(st.sampled_from([0.05, 0.1, 0.25, 0.5, 0.7]), min_size=1, max_size=3).map(
        lambda inner: np.array([*sorted(inner), 1.0])
    ),
    min_size=1,
    max_size=4,
)


@given(agreements, st.sampled_from([1, 3, 10, 26, 50, 100, 101]))
def test_minimal_schemes_are_the_finest_that_suffice(of, need):
    """Planted: maximal in place of minimal, one axis left out, a scheme whose cells are too small."""
    lattice = list(itertools.product(*[range(len(a)) for a in of]))

    def expected(x):
        return 100 * float(np.prod([a[level] for a, level in zip(of, x, strict=True)]))

    enough = {x for x in lattice if expected(x) >= need * (1 - 1e-12)}
    wanted = [
        x
        for x in sorted(enough)
        if not any(tuple(level - (i == j) for j, level in enumerate(x)) in enough for i in range(len(x)))
    ]
    found = minimal_schemes(100, of, need)
    assert [tuple(x) for x in found.tolist()] == wanted
    assert bool(wanted) == (need <= 100)
    if wanted:
        assert expected_rows(100, of, found) == pytest.approx([expected(x) for x in wanted])
    for x, y in itertools.combinations(wanted, 2):
        assert any(a < b for a, b in zip(x, y, strict=True))
        assert any(a > b for a, b in zip(x, y, strict=True))


@given(agreements, st.integers(1, 6), st.data())
def test_diverse_schemes_are_taken_greedily(of, most, data):
    schemes = minimal_schemes(100, of, 10)
    heights = [len(a) - 1 for a in of]
    weights = [data.draw(st.sampled_from([0.0, 1.0, 2.0])) for _ in of]

    def kept(x):
        return [w * (1 - level / h) for level, h, w in zip(x, heights, weights, strict=True)]

    left, finest, wanted = [tuple(x) for x in schemes.tolist()], [0.0] * len(of), []
    while left and len(wanted) < most:
        best = min(
            left,
            key=lambda x: (
                -round(sum(max(k - f, 0) for k, f in zip(kept(x), finest, strict=True)), 9),
                -round(sum(kept(x)), 9),
                x,
            ),
        )
        wanted.append(best)
        left.remove(best)
        finest = [max(k, f) for k, f in zip(kept(best), finest, strict=True)]
    assert [tuple(x) for x in diverse(schemes, heights, weights, most).tolist()] == wanted


def test_a_lattice_that_is_too_large_is_refused():
    with pytest.raises(InputError, match="has 2,097,152 nodes"):
        minimal_schemes(100, [np.array([0.5, 1.0])] * 21, 10)


# --- policy


LEAVES = {"tree": {"*": {"low": ["1", "2", "3"], "high": [{"top": ["4", "5"]}, "6"]}}}
FREE = [
    ("guarantee.crowd", None),
    ("guarantee.frequent", None),
    ("guarantee.schemes", DROP),
    ("columns.zip.hierarchy", LEAVES),
]


def planned(*changes: tuple[str, Any]) -> tuple[Calibrated, Policy, dict[str, Hierarchy]]:
    policy = parse(changed(DP, *FREE, *changes))
    hierarchies = {
        name: build(spec.hierarchy, name, values=None, null_leaf=spec.nulls == "own-value")
        for name, spec in policy.quasi_identifiers.items()
    }
    return mechanism(policy, hierarchies), policy, hierarchies


def test_schemes_are_proposed_where_the_policy_names_none():
    plan, policy, hierarchies = planned()
    assert plan.proposed is not None
    assert 1 <= len(plan.schemes) <= 4
    for scheme in plan.schemes:  # N prod c, literally
        rows = 30_000.0
        for level, hierarchy in zip(scheme, hierarchies.values(), strict=True):
            node = hierarchy.ancestor[: hierarchy.n_leaves, level]
            rows *= sum((np.count_nonzero(node == v) / hierarchy.n_leaves) ** 2 for v in set(node.tolist()))
        assert rows >= max(plan.frequent, plan.survival[1])
    parameters = dp_guarantee(plan).parameters
    assert parameters["schemes"] == [list(scheme) for scheme in plan.schemes]
    assert "30,000" in str(parameters["proposed_because"])
    assert "uniform values" in str(parameters["proposed_because"])
    # What is proposed is what the same schemes given by hand are: the same mechanism, and the same digest.
    named, by_hand, _ = planned(("guarantee.schemes", [list(scheme) for scheme in plan.schemes]))
    assert named.proposed is None
    assert named.parameters == plan.parameters
    assert named.digest(by_hand, hierarchies) == plan.digest(policy, hierarchies)
    # Before there are hierarchies the rest is checked.
    assert mechanism(policy).schemes == ()


def test_more_rows_propose_finer_schemes_and_more_of_them():
    few, many = planned()[0], planned(("guarantee.public_rows", 9_000_000), ("guarantee.delta", "1e-10"))[0]
    assert len(many.schemes) > len(few.schemes) or sum(map(sum, many.schemes)) < sum(map(sum, few.schemes))
    assert many.proposed is not None
    assert "up to 64 schemes" in many.proposed


def test_stated_shares_take_the_place_of_uniform_values():
    shares = {"zip": {"low": 0.97}}
    even, stated = planned()[0], planned(("guarantee.public_shares", shares))[0]
    assert stated.proposed is not None
    assert "stated shares of zip" in stated.proposed
    # With nearly all rows in one group, the level of groups is nearly free.
    assert min(scheme[0] for scheme in stated.schemes) <= min(scheme[0] for scheme in even.schemes)
    assert stated.schemes != even.schemes
    for wrong, rule in (
        ({"low": 0.9, "1": 0.1}, "leaves in common"),
        ({"low": 0.6, "high": 0.6}, "must sum to 1"),
        ({"low": 0.6, "4": 0.6}, "at most 1"),
    ):
        with pytest.raises(ConfigError, match=rule):
            planned(("guarantee.public_shares", {"zip": wrong}))


GLOBAL = [
    ("guarantee.mode", "global"),
    ("guarantee.epsilon.choose", 0.1),
    ("guarantee.epsilon.admit", 0),
    ("guarantee.objective", DROP),
]


def test_candidates_are_the_whole_lattice_where_it_is_small():
    plan, policy, hierarchies = planned(*GLOBAL)
    lattice = list(itertools.product(*[range(h.height + 1) for h in hierarchies.values()]))
    assert isinstance(plan, Choosing)
    assert list(plan.candidates) == lattice
    assert plan.proposed == f"all {len(lattice)} level vectors there are"
    text = explanation(policy, hierarchies, {}, plan)
    assert "precision  expected rows" in text
    assert f"{plan.survival[0]}/{plan.survival[1]}" in text
    assert text.count("\n[") == min(len(lattice), 40)
    assert "proposed_because: all" in text


def test_candidates_of_a_large_lattice_are_antichains_of_several_sizes():
    more = [(f"columns.c{i}", {"role": "quasi-identifier", "hierarchy": LEAVES}) for i in range(4)]
    plan, _, hierarchies = planned(*GLOBAL, *more)
    assert isinstance(plan, Choosing)
    candidates = plan.candidates
    assert 16 < len(candidates) <= 64
    assert len(set(candidates)) == len(candidates)
    assert list(candidates) == sorted(candidates)
    assert all(len(scheme) == len(hierarchies) for scheme in candidates)
    assert len(plan.precision) == len(candidates)
    peeled, _, _ = planned(("guarantee.peel", 3), ("guarantee.epsilon.choose", 0.1), *more)
    assert isinstance(peeled, Choosing)
    assert peeled.picks == 3
    assert peeled.schemes == ()
    with pytest.raises(ConfigError, match=r"guarantee.peel: must be at most the \d+ candidates"):
        planned(("guarantee.peel", 90), ("guarantee.epsilon.choose", 0.1), *more)


def test_what_cannot_be_proposed_is_refused():
    with pytest.raises(ConfigError, match=r"guarantee.schemes: cannot be proposed: a cell needs \d+ rows, and public"):
        planned(("guarantee.public_rows", 100))
    wide = [
        (f"columns.c{i}", {"role": "quasi-identifier", "hierarchy": {"flat": {"values": ["a", "b"]}}})
        for i in range(18)
    ]
    with pytest.raises(ConfigError, match=r"guarantee.schemes: is required: The lattice has [\d,]+ nodes"):
        planned(*wide)
