"""Modified-Aggregate as published beside the exact one: figures of pairs against all level vectors."""

from __future__ import annotations

from dataclasses import replace

import naive_sharing
import numpy as np
import pytest

from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.extensions.network.kernels.modified_aggregate import Shown, modified_aggregate
from reproduce.sharing.aggregate import (
    ENUMERATED,
    EXACT,
    LAYERS,
    LEFT_OUT,
    LETTER,
    STOPS,
    Evenly,
    comparable,
    drawn_evenly,
    part_of,
    risks,
    runs,
    shares_shown,
    single,
    sizes_of,
    stopped,
    traded_off,
)
from reproduce.sharing.sample import Sample, samples

((_, SAMPLE),) = samples(300, (4,), 25, 5)
RUNS = {(one.method, one.consistency): one for one in runs(4, SAMPLE)}
PAIRS = SAMPLE.pairs


def best(p: int, consistency: str) -> tuple[tuple[int, ...], float]:
    """Level vector and f of a pair, by looking at all of them."""
    one = single(PAIRS, p)
    return naive_sharing.modified_aggregate(
        one.heights[0].tolist(), one.weights[0].tolist(), one.utilities[0].tolist(), one.agreements.tolist(),
        trade_off=1.0, kappa=1.0, consistency=consistency, zero_phi="exclude",
    )  # fmt: skip


def test_every_method_is_run_on_both_consistencies() -> None:
    methods = (EXACT, LEFT_OUT, ENUMERATED, LAYERS, LETTER)
    assert set(RUNS) == {(method, of) for method in methods for of in ("all", "any")}


@pytest.mark.parametrize("consistency", ["all", "any"])
def test_the_exact_one_is_the_best_of_all_level_vectors(consistency: str) -> None:
    small = np.flatnonzero(np.log10(PAIRS.heights + 1.0).sum(axis=1) < 3)
    expected = [best(p, consistency) for p in small.tolist()]
    found = modified_aggregate(PAIRS, trade_off=1, consistency=consistency)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.objective[small], [f for _, f in expected])
    run = RUNS[EXACT, consistency]  # type: ignore[index]
    assert {run.pairs, run.proved, run.optimal, run.near} == {PAIRS.n}
    assert (run.value, run.gap) == (1, 0)
    assert run.whole == int((found.levels == 0).all(axis=1).sum())
    enumerated = RUNS[ENUMERATED, consistency]  # type: ignore[index]
    assert enumerated.optimal == enumerated.pairs == enumerated.proved


@pytest.mark.parametrize("consistency", ["all", "any"])
def test_readings_of_the_published_one_are_no_better_and_layers_are_within_their_ratio(consistency: str) -> None:
    for method in (LEFT_OUT, LAYERS, LETTER):
        run = RUNS[method, consistency]  # type: ignore[index]
        assert 0 <= run.least <= run.value <= 1 + 1e-12
        assert run.optimal <= run.near <= run.pairs
        assert (run.proved, run.gap) == (0, np.inf)
    layers = RUNS[LAYERS, consistency]  # type: ignore[index]
    assert layers.near == layers.pairs
    letter = RUNS[LETTER, consistency]  # type: ignore[index]
    # By the letter hardly a layer has a solution; within a layer more have.
    assert 0 < letter.visited < layers.visited <= layers.layers == letter.layers


def test_risks_are_compared_where_they_are_finite_and_where_not() -> None:
    shown = modified_aggregate(part_of(PAIRS, np.arange(5)), trade_off=1)
    one = replace(shown, sensitivity=np.array([2.0, 2.0, 0.0, 1.0, 1.0]), consistent=np.array([1, 1, 3, 0, 0]))
    assert risks(one).tolist() == [2.0, 2.0, 0.0, np.inf, np.inf]
    other: Shown = replace(one, sensitivity=np.array([2.1, 2.5, 0.0, 5.0, 1.0]), consistent=np.array([1, 1, 0, 0, 1]))
    assert comparable(one, other).tolist() == [True, False, True, True, False]


def test_parts_and_single_pairs_keep_what_is_decided() -> None:
    rows = np.array([1, 4, 7])
    whole, some = (modified_aggregate(pairs, trade_off=3.0) for pairs in (PAIRS, part_of(PAIRS, rows)))
    np.testing.assert_array_equal(whole.levels[rows], some.levels)
    for p in rows.tolist():
        alone = modified_aggregate(single(PAIRS, p), trade_off=3.0)
        assert alone.levels[0].tolist() == whole.levels[p][PAIRS.heights[p] > 0].tolist()


def test_less_is_shown_as_risk_counts_more() -> None:
    found = list(traded_off(SAMPLE, (0.01, 1.0, 100.0)))
    for consistency in ("all", "any"):
        some = [one for one in found if one.consistency == consistency]
        assert [one.trade_off for one in some] == [0.01, 1.0, 100.0]
        assert some[0].shown == 1
        assert some[0].whole == some[0].pairs == PAIRS.n
        assert some[0].shown >= some[1].shown >= some[2].shown > 0


def test_shares_are_of_levels_and_split_at_the_median_of_common_friends() -> None:
    shown = np.where(SAMPLE.common[:, None] > np.median(SAMPLE.common), SAMPLE.levels, 0)
    every, few, many = shares_shown(SAMPLE, shown)
    assert (few, many) == (0, 1)
    assert every == shown.sum() / SAMPLE.levels.sum(dtype=int)


def test_a_search_that_may_go_on_proves_more() -> None:
    for consistency in ("all", "any"):
        some = [one for one in stopped(SAMPLE) if one.consistency == consistency]
        assert [one.boxes for one in some] == list(STOPS)
        assert [one.proved for one in some] == sorted(one.proved for one in some)
        for one in some:
            assert -1e-12 <= one.short <= one.gap + 1e-12 <= one.worst + 2e-12
            assert (one.worst == 0) == (one.proved == one.pairs)


def test_pairs_without_common_friends_show_everything() -> None:
    graph = Graph.of_edges(300, np.array([0, 10], np.int32), np.array([10, 5], np.int32))
    u, v = np.array([0, 1, 2, 3, 4]), np.array([5, 6, 7, 8, 9])
    assert drawn_evenly(Sample(graph, SAMPLE.profiles, 1, u, v)) == Evenly(5, 4, 4)
    one = sizes_of(4, SAMPLE)
    assert one.nodes == pytest.approx(np.median([np.log10(h + 1.0).sum() for h in PAIRS.heights]))
    assert one.common == SAMPLE.common.mean()
