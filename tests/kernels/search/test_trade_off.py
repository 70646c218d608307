"""Whole recodings evaluated at once, against evaluation node by node and the literal search."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_decisions import build, to_dictionary
from strategies import several_hierarchies

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, DenseCounts, SortedCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import risk_of
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide
from privrisk_spark.kernels.search.trade_off import TradeOff, floors_between

Case = tuple[list[Hierarchy], Disclosure, Search, list[DenseCounts | SortedCounts], np.ndarray]


@st.composite
def cases(draw: st.DrawFn, *, least_records: int = 1) -> Case:
    hierarchies = draw(several_hierarchies())
    codes = np.array(
        [[draw(st.integers(0, h.n_leaves)) for h in hierarchies] for _ in range(draw(st.integers(least_records, 6)))],
        dtype=np.int32,
    )
    disclosure, search = build(
        hierarchies,
        floor=draw(st.floats(0, 4)),
        search="exhaustive",
        neighbourhood="swap",
        weights=[draw(st.sampled_from([0.0, 0.3, 1.0, math.inf])) for _ in hierarchies],
        form=draw(st.sampled_from(["constant", "linear", "record", "multiplicative"])),
        model=draw(st.sampled_from(["I", "II", "III"])),
        measure=draw(st.sampled_from(["depth", "leaves", "lm"])),
    )
    # The first record is in no dictionary, unless another is like it.
    dictionary = to_dictionary(hierarchies, np.concatenate([codes[1:], codes[-1:]]))
    vectors, times = np.unique(dictionary, axis=0, return_counts=True)
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    counts = [plan(axes, vectors.astype(np.int32), times) for plan in (DenseCounts.roll_up, SortedCounts.group)]
    return hierarchies, disclosure, search, counts, codes


@given(case=cases(), data=st.data())
def test_every_node_is_evaluated_as_it_is_alone(case: Case, data: st.DataObject) -> None:
    hierarchies, disclosure, _, plans, codes = case
    personal = None
    if data.draw(st.booleans()):
        personal = np.array([[data.draw(st.sampled_from([0.0, 0.5, 2.0])) for _ in hierarchies] for _ in codes])
    for counts in plans:
        found = TradeOff.of(disclosure, Attacker.knowing(counts), codes, personal=personal)
        for node, levels in enumerate(itertools.product(*(range(h.height + 1) for h in hierarchies))):
            everywhere = np.tile(np.array(levels), (len(codes), 1))
            alone = risk_of(disclosure, counts, codes, everywhere, personal=personal)
            assert found.risk[:, node].tolist() == alone.risk.tolist()
            assert found.consistent[:, node].tolist() == alone.consistent.tolist()
            worth = [
                sum(
                    float(u[h.ancestor[c, x]])
                    for u, h, c, x in zip(disclosure.utility, hierarchies, r, levels, strict=True)
                )
                for r in codes.tolist()
            ]
            assert found.utility[:, node] == pytest.approx(worth)


@given(case=cases(), data=st.data())
def test_some_levels_are_part_of_all(case: Case, data: st.DataObject) -> None:
    hierarchies, disclosure, _, plans, codes = case
    kept = [sorted({0, h.height} | {x for x in range(1, h.height) if data.draw(st.booleans())}) for h in hierarchies]
    for counts in plans:
        whole = TradeOff.of(disclosure, Attacker.knowing(counts), codes)
        found = TradeOff.of(disclosure, Attacker.knowing(counts), codes, kept=kept)
        every = [tuple(levels) for levels in whole.levels(np.arange(whole.n_nodes)).tolist()]
        some = [every.index(tuple(levels)) for levels in found.levels(np.arange(found.n_nodes)).tolist()]
        assert [every[node] for node in some] == list(itertools.product(*kept))
        assert found.risk.tolist() == whole.risk[:, some].tolist()
        assert found.utility.tolist() == whole.utility[:, some].tolist()
        assert found.consistent.tolist() == whole.consistent[:, some].tolist()
        # What is decided is told by levels of the hierarchies, not by places among those that are kept.
        best = found.anonymous(1, suppressed=1)
        assert best is not None
        assert every[some[best.node]] == tuple(found.levels(np.array([best.node]))[0].tolist())
        # As little is asked, the least risk is taken: of some nodes, never less than of all.
        assert found.at_floor(-math.inf).risk >= whole.at_floor(-math.inf).risk


@given(case=cases())
def test_a_floor_is_decided_as_by_the_search_of_tables(case: Case) -> None:
    _, disclosure, search, (counts, _), codes = case
    assert search.floor is not None
    found = TradeOff.of(disclosure, Attacker.knowing(counts), codes).at_floor(search.floor)
    wanted = decide(disclosure, search, counts, codes)
    assert found.risk == pytest.approx(wanted.risk.mean())
    assert found.utility == pytest.approx(wanted.utility.mean())
    assert found.infeasible == int((~wanted.feasible).sum())


@given(case=cases(), k=st.integers(1, 5), share=st.sampled_from([0.0, 0.3, 1.0]))
def test_the_anonymous_recoding_is_the_best_of_all(case: Case, k: int, share: float) -> None:
    _, disclosure, _, (counts, _), codes = case
    whole = TradeOff.of(disclosure, Attacker.knowing(counts), codes)
    found = whole.anonymous(k, suppressed=share)
    best = None
    for node in range(whole.n_nodes):
        few = [c < k for c in whole.consistent[:, node].tolist()]
        if sum(few) > share * len(codes):
            continue
        at = [-1 if lonely else node for lonely in few]
        utility = float(np.mean([whole.utility[r, x] for r, x in enumerate(at)]))
        risk = float(np.mean([whole.risk[r, x] for r, x in enumerate(at)]))
        if best is None or (-utility, risk) < best[:2]:
            best = (-utility, risk, sum(few))
    if best is None:
        assert found is None
    else:
        assert found is not None
        assert (-found.utility, found.risk, found.suppressed) == best


@given(case=cases(), columns=st.integers(1, 6), rows=st.integers(1, 6))
def test_what_is_drawn_holds_the_frontier_and_little_else(case: Case, columns: int, rows: int) -> None:
    _, disclosure, _, (counts, _), codes = case
    whole = TradeOff.of(disclosure, Attacker.knowing(counts), codes)
    risk, utility = whole.mean_risk, whole.mean_utility
    frontier = whole.frontier().tolist()
    finite = [node for node in range(len(risk)) if math.isfinite(risk[node])]
    for node in finite:
        beaten = [
            other
            for other in finite
            if risk[other] <= risk[node] and utility[other] >= utility[node]
            and (risk[other], utility[other]) != (risk[node], utility[node])
        ]  # fmt: skip
        assert not (node in frontier and beaten)
        assert beaten or any((risk[f], utility[f]) == (risk[node], utility[node]) for f in frontier)
    drawn = whole.spread(columns=columns, rows=rows).tolist()
    assert set(frontier) <= set(drawn) <= set(finite)
    assert len(drawn) <= columns * rows + len(frontier)


def test_floors_run_from_nothing_told_to_everything_told():
    tree = Hierarchy.from_paths("x", [(f"{i}{j}", f"{i}") for i in "ab" for j in "12"])
    disclosure, _ = build(
        [tree],
        floor=0,
        search="exhaustive",
        neighbourhood="swap",
        weights=[1.0],
        form="linear",
        model="I",
        measure="depth",
    )
    counts = DenseCounts.roll_up([Axis(tree.at_depth, tree.ancestor)], np.array([[0], [1]], np.int32), np.array([1, 3]))
    whole = TradeOff.of(disclosure, Attacker.knowing(counts), np.array([[0], [1], [4]], dtype=np.int32))
    assert list(floors_between(whole, 3)) == [0.0, 1.0, 2.0]
    # Of the first, its own 1 row; of the second 3; the third is suppressed from the start. All 4 share the node above,
    # which weighs half as much.
    # The mean level of 4/3 is that of two records at level 2 and one, whose only level is 0.
    every = [whole.at_floor(floor) for floor in (0.0, 1.0, 2.0)]
    assert [one.risk for one in every] == pytest.approx([0, (1 / 8 + 1 / 8) / 3, (1 + 1 / 3) / 3])
    assert [one.infeasible for one in every] == [0, 1, 1]
    assert [one.levels for one in every] == [pytest.approx((4 / 3,)), pytest.approx((2 / 3,)), (0.0,)]
