"""Linkage: the worked example, the literal expectation, and that a link never lowers the risk."""

from __future__ import annotations

import math
from dataclasses import replace

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import hierarchies as trees
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, Counts, DenseCounts, SortedCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.linked import UnawareCounts, enlarged, expected_risk, linked_risk, unlinked_risk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, harmonic_weights
from privrisk_spark.kernels.disclosure.utility import node_utility


def node_weights(hierarchies: list[Hierarchy], weights: list[float]) -> tuple[np.ndarray, ...]:
    return tuple(
        harmonic_weights(h.parent, h.depth, h.n_leaves, np.full(h.n_leaves, w))
        for h, w in zip(hierarchies, weights, strict=True)
    )


def released(hierarchies: list[Hierarchy], form: str, model: str, weights: list[float]) -> Disclosure:
    return Disclosure(
        ancestor=tuple(h.ancestor for h in hierarchies),
        code_depth=tuple(Axis(h.at_depth, h.ancestor).code_depth for h in hierarchies),
        utility=tuple(node_utility("depth", h.depth, h.n_under) for h in hierarchies),
        sensitivity=Sensitivity(form, node_weights(hierarchies, weights)),  # type: ignore[arg-type]
        model=model,  # type: ignore[arg-type]
    )


def counts_of(axes: list[Axis], rows: np.ndarray, plan: str = "dense") -> Counts:
    vectors, n = np.unique(rows.reshape(-1, len(axes)), axis=0, return_counts=True)
    make = DenseCounts.roll_up if plan == "dense" else SortedCounts.group
    return make(axes, vectors.astype(np.int32), n.astype(np.int64))


# -------------------------------------------------------------------------------------------- by hand

CITY = Hierarchy.from_paths("city", [("lafayette", "indiana"), ("gary", "indiana"), ("chicago", "illinois")])
ILLNESS = Hierarchy.from_paths("illness", [("flu",), ("hiv",)])
AXES = [Axis(h.at_depth, h.ancestor) for h in (CITY, ILLNESS)]
THETA = [("lafayette", "flu")] * 3 + [("gary", "flu")] * 2 + [("gary", "hiv")] + [("chicago", "hiv")] * 4


def worked() -> tuple[Disclosure, Counts]:
    """Φ linear with weights city 1 (Indiana, two leaves: 1/2) and illness 3; θ as above."""
    disclosure = enlarged(released([CITY], "linear", "I", [1.0]), AXES[1:], [*node_weights([ILLNESS], [3.0])])
    rows = np.array([[CITY.find(city), ILLNESS.find(illness)] for city, illness in THETA], dtype=np.int32)
    return disclosure, counts_of(AXES, rows)


def test_the_worked_example() -> None:
    """A record of Gary released as Indiana, linked to HIV with chance 1/4 and to flu with chance 1/2.

    Alone: Φ = 1/2 and 6 rows lie in Indiana, so ℓ = 1/12. With HIV: Φ = 1/2 + 3 and 1 row, ℓ = 7/2. With flu: Φ = 7/2
    and 5 rows, ℓ = 7/10. R_link = 1/4 · 7/2 + 1/2 · 7/10 + 1/4 · 1/12 = 7/8 + 7/20 + 1/48 = 299/240.
    """
    disclosure, counts = worked()
    gary = np.array([[CITY.find("gary")]], dtype=np.int32)
    at_state = np.array([[1]], dtype=np.int8)
    alone = unlinked_risk(disclosure, counts, gary, at_state)
    assert alone.risk[0] == pytest.approx(1 / 12)
    z = np.array([[ILLNESS.find("hiv")], [ILLNESS.find("flu")]], dtype=np.int32)
    linked = linked_risk(disclosure, counts, np.tile(gary, (2, 1)), np.tile(at_state, (2, 1)), z)
    assert linked.risk.tolist() == pytest.approx([7 / 2, 7 / 10])
    assert linked.consistent.tolist() == [1, 5]
    risk = expected_risk(alone.risk, linked.risk, np.array([0.25, 0.5]), np.array([0, 0]))
    assert risk[0] == pytest.approx(299 / 240)


def test_a_link_the_dictionary_contradicts_is_an_upper_bound() -> None:
    """Chicago with flu is no row of θ: the record is counted as that row, so ρ(Illinois, flu) = 1 and ℓ = (1 + 3)/1."""
    disclosure, counts = worked()
    chicago, flu = np.array([[CITY.find("chicago")]], dtype=np.int32), np.array([[ILLNESS.find("flu")]], dtype=np.int32)
    level = np.array([[1]], dtype=np.int8)
    linked = linked_risk(disclosure, counts, chicago, level, flu)
    assert (linked.absent.tolist(), linked.consistent.tolist(), linked.risk.tolist()) == ([True], [1], [4.0])
    assert unlinked_risk(disclosure, counts, chicago, level).risk[0] == 1 / 4


def test_added_attributes_have_no_utility_and_leave_the_disclosure_as_it_is() -> None:
    before = released([CITY], "linear", "I", [1.0])
    disclosure = enlarged(before, AXES[1:], [*node_weights([ILLNESS], [3.0])])
    assert len(before.ancestor) == len(before.sensitivity.weights) == 1
    assert disclosure.utility[1].tolist() == [0, 0, 0]
    assert (disclosure.model, disclosure.sensitivity.form) == ("I", "linear")


# -------------------------------------------------------------------------------------------- properties


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[Hierarchy], list[Hierarchy], Disclosure, list[float]]:
    own, added = draw(several_hierarchies(2)), draw(st.lists(trees(), min_size=1, max_size=2))
    weights = [draw(st.sampled_from([0.0, 0.4, 2.0, math.inf])) for _ in [*own, *added]]
    form = draw(st.sampled_from(["constant", "linear", "record", "multiplicative"]))
    model = draw(st.sampled_from(["I", "II", "III"]))
    return own, added, released(own, form, model, weights[: len(own)]), weights


@given(cases(), st.data())
def test_linked_risk_is_the_literal_one_and_never_below_the_risk_alone(
    case: tuple[list[Hierarchy], list[Hierarchy], Disclosure, list[float]], data: st.DataObject
) -> None:
    own, added, before, weights = case
    every, k = [*own, *added], len(own)
    meaning = data.draw(st.sampled_from(["subsumes", "compatible"]))
    lacking = [i for i in range(len(every)) if data.draw(st.integers(0, 4)) == 0]
    axes = [Axis(h.at_depth, h.ancestor, meaning, known=i not in lacking) for i, h in enumerate(every)]
    disclosure = enlarged(before, axes[k:], [*node_weights(added, weights[k:])])
    size = data.draw(st.integers(0, 7))
    theta = np.array(
        [[data.draw(st.integers(0, h.n_nodes)) for h in every] for _ in range(size)], dtype=np.int32
    ).reshape(-1, len(every))
    counts = counts_of(axes, theta, data.draw(st.sampled_from(["dense", "sorted"])))
    n = data.draw(st.integers(1, 3))
    codes = np.array([[data.draw(st.integers(0, h.n_leaves)) for h in own] for _ in range(n)], dtype=np.int32)
    levels = np.array([[data.draw(st.integers(0, h.height)) for h in own] for _ in range(n)], dtype=np.int8)
    scale = np.array([[data.draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in every] for _ in range(n)])
    record = np.array(sorted(data.draw(st.lists(st.integers(0, n - 1), max_size=6))), dtype=np.int64)
    z = np.array([[data.draw(st.integers(0, h.n_leaves)) for h in added] for _ in record], dtype=np.int32).reshape(
        -1, len(added)
    )
    share = [data.draw(st.sampled_from([0.0, 0.25, 1.0])) for _ in record]
    most = [max(1.0, sum(p for p, r in zip(share, record, strict=True) if r == i)) for i in range(n)]
    probability = np.array([p / most[r] for p, r in zip(share, record, strict=True)])

    alone = unlinked_risk(disclosure, counts, codes, levels, personal=scale)
    linked = linked_risk(disclosure, counts, codes[record], levels[record], z, personal=scale[record])
    risk = expected_risk(alone.risk, linked.risk, probability, record)

    parents = [h.parent.tolist() for h in every]
    known = [[None if v == h.n_nodes else v for v, h in zip(row, every, strict=True)] for row in theta.tolist()]

    def loss(r: int, extra: list[int]) -> float:
        leaves = [int(h.ancestor[c, 0]) for h, c in zip(every, [*codes[r], *extra], strict=True)]
        here = [int(h.ancestor[c, x]) for h, c, x in zip(own, codes[r], levels[r], strict=True)] + leaves[k:]
        absent = naive.count(parents, leaves, known, meaning, lacking=lacking) == 0
        rho = naive.count(parents, here, known, meaning, lacking=lacking) + absent
        of_node = [
            0.0 if w[v] == 0 or s == 0 else float(w[v]) * s
            for w, v, s in zip(disclosure.sensitivity.weights, here, scale[r], strict=True)
        ]
        suppressed = [v == h.root for v, h in zip(here, every, strict=True)]
        return naive.risk(
            disclosure.model, naive.phi(disclosure.sensitivity.form, of_node, suppressed), rho, size + absent
        )

    for i in range(n):
        nothing = loss(i, [h.n_leaves for h in added])
        assert alone.risk[i] == pytest.approx(nothing, rel=1e-12)
        left, total = 1.0, 0.0
        for p, r, row in zip(probability, record, z, strict=True):
            if r == i and p > 0:
                total += p * loss(i, row.tolist())
                left -= p
        # A chance of no link of 1e-17 is rounding, and an infinite loss must not come of it.
        total += left * nothing if left > 1e-12 and nothing else 0.0
        assert risk[i] == pytest.approx(total, rel=1e-9)
        assert risk[i] >= alone.risk[i] * (1 - 1e-12)
    assert (linked.risk >= alone.risk[record]).all()


def test_the_remainder_is_no_link() -> None:
    alone, linked = np.array([1.0, 2.0, 3.0, math.inf]), np.array([10.0, 20.0, math.inf, math.inf])
    risk = expected_risk(alone, linked, np.array([0.5, 0.5, 0.0, 1.0]), np.array([0, 0, 1, 3]))
    assert risk.tolist() == [15.0, 2.0, 3.0, math.inf], "0 · inf is 0"
    assert expected_risk(alone[:2], np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("probability", [[-0.1], [math.nan], [0.6, 0.6], [1 + 2e-9], [math.inf]])
def test_probabilities_that_are_none_are_refused(probability: list[float]) -> None:
    n = len(probability)
    with pytest.raises(InputError, match=r"^linkage: .*probabilit"):
        expected_risk(np.ones(1), np.ones(n), np.array(probability), np.zeros(n, dtype=np.int64))
    almost = np.array([1 / 3, 1 / 3, 1 / 3 + 5e-10])
    assert expected_risk(np.ones(1), np.ones(3), almost, np.zeros(3, dtype=np.int64))[0] == pytest.approx(1)


@pytest.mark.parametrize("code", [-2, -1, 3])
def test_unresolved_codes_are_refused(code: int) -> None:
    disclosure, counts = worked()
    zero = np.zeros((1, 1), dtype=np.int32)
    with pytest.raises(InputError, match="added attribute 1 holds a code outside 0 to 2"):
        linked_risk(disclosure, counts, zero, zero, np.array([[code]], dtype=np.int32))


def test_a_record_weight_applies_to_the_added_attributes_too() -> None:
    disclosure, counts = worked()
    disclosure = replace(disclosure, sensitivity=replace(disclosure.sensitivity, form="record"))
    gary, hiv = np.array([[CITY.find("gary")]], dtype=np.int32), np.array([[ILLNESS.find("hiv")]], dtype=np.int32)
    level, weight = np.zeros((1, 1), dtype=np.int8), np.array([5.0])
    assert unlinked_risk(disclosure, counts, gary, level, record_weight=weight).risk[0] == pytest.approx(5 / 3)
    assert linked_risk(disclosure, counts, gary, level, hiv, record_weight=weight).risk[0] == 10


@pytest.mark.parametrize("plan", ["dense", "sorted"])
def test_a_dictionary_that_knows_no_added_attribute_need_not_be_counted_again(plan: str) -> None:
    """Counts on the released attributes say what counts with an unknown added axis say."""
    disclosure, _ = worked()
    rows = np.array([[CITY.find(city), 0] for city, _ in THETA], dtype=np.int32)
    whole = counts_of([AXES[0], replace(AXES[1], known=False)], rows, plan)
    unaware = UnawareCounts(counts_of(AXES[:1], rows[:, :1], plan), (ILLNESS.n_leaves + 1,))
    assert (unaware.dictionary_rows, unaware.monotone) == (whole.dictionary_rows, whole.monotone) == (10, True)
    assert [alike.tolist() for alike in unaware.alike][1] == [0] * 3
    codes = np.repeat(np.arange(CITY.n_leaves + 1, dtype=np.int32), 3)[:, None]
    z = np.tile(np.arange(3, dtype=np.int32), CITY.n_leaves + 1)[:, None]
    for level in range(3):
        levels = np.full((len(codes), 1), level, dtype=np.int8)
        expected = linked_risk(disclosure, whole, codes, levels, z)
        found = linked_risk(disclosure, unaware, codes, levels, z)
        for name in ("risk", "consistent", "absent"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()
