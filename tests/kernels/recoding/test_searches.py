"""One contract for all searches: held against formulas over rows, and against each other."""

from __future__ import annotations

import math
from dataclasses import replace

import naive_recoding
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recodings import Labels, Rows, small_tables, table_of

from privrisk_spark.kernels.recoding import searches
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured, order
from privrisk_spark.kernels.recoding.problem import Condition, Problem, Scheme, at_least
from privrisk_spark.kernels.recoding.searches import SEARCHES, best
from privrisk_spark.kernels.recoding.whole_lattice import exhaustive

HEURISTIC = {"datafly", "samarati"}
names = st.sampled_from(sorted(SEARCHES))
metrics = st.sampled_from(sorted(METRICS))


def test_all_are_there() -> None:
    assert set(SEARCHES) == {
        "exhaustive", "samarati", "incognito", "flash", "k_optimize", "datafly", "top_down", "best"
    }  # fmt: skip


@given(small_tables(), st.integers(1, 4), st.integers(0, 5), metrics)
def test_optimal_ones_find_the_best_node_by_the_letter(
    given_table: tuple[Labels, Rows], k: int, limit: int, name: str
) -> None:
    labels, rows = given_table
    metric = METRICS[name]
    problem = Problem(Measured.of(table_of(labels, rows)), (at_least(k),), metric, limit)
    sign = -1 if metric.greater_is_better else 1
    expected = naive_recoding.best(
        labels, rows, k, limit, lambda levels: naive_recoding.metric(name, labels, rows, levels, k), sign
    )
    found = {of: SEARCHES[of](problem) for of in sorted(set(SEARCHES) - HEURISTIC)}
    for scheme in found.values():
        assert (scheme is None) == (not expected)
        if scheme is not None:
            assert scheme.levels in expected
            assert (scheme.optimal, scheme.gap) == (True, 0.0)
    assert (
        len({None if scheme is None else (scheme.levels, scheme.facts, scheme.value) for scheme in found.values()}) == 1
    )


@given(small_tables(), st.integers(1, 4), st.integers(0, 5), metrics, st.sampled_from(sorted(HEURISTIC)))
def test_heuristics_keep_the_limit_and_the_gap_is_true(
    given_table: tuple[Labels, Rows], k: int, limit: int, name: str, search: str
) -> None:
    problem = Problem(Measured.of(table_of(*given_table)), (at_least(k),), METRICS[name], limit)
    optimum, found = exhaustive(problem), SEARCHES[search](problem)
    assert (found is None) == (optimum is None)
    if found is None:
        return
    classes = problem.measured.table.classes(found.levels)
    assert found.facts == problem.facts(found.levels, classes)
    assert problem.keeps_limit(found.facts)
    assert order(problem.metric, optimum.facts) <= order(problem.metric, found.facts)
    assert abs(found.value - optimum.value) <= found.gap + 1e-9 * (1 + abs(found.value))
    assert math.isfinite(found.gap)
    assert not found.optimal or found.levels == optimum.levels


@given(small_tables(), st.integers(1, 3), st.integers(0, 3), metrics, names)
def test_no_optimum_is_missed_where_nothing_is_monotone(
    given_table: tuple[Labels, Rows], k: int, limit: int, name: str, search: str
) -> None:
    """Classes of an odd number of rows: what a coarser node does says nothing of a finer one."""
    odd = Condition("odd", lambda classes: classes.rows % 2 == 1, False, False)
    problem = Problem(Measured.of(table_of(*given_table)), (at_least(k), odd), METRICS[name], limit)
    optimum, found = exhaustive(problem), SEARCHES[search](problem)
    if search == "datafly":
        assert found is None or abs(found.value - optimum.value) <= found.gap + 1e-9 * (1 + abs(found.value))
        return
    assert (found is None) == (optimum is None)
    if found is not None and (search != "samarati" or name == "height"):
        assert (found.levels, found.facts, found.optimal) == (optimum.levels, optimum.facts, True)


@pytest.mark.parametrize("monotone", [True, False])
@pytest.mark.parametrize("name", sorted(METRICS))
def test_optimal_ones_agree_on_tables_of_many_levels(name: str, monotone: bool) -> None:
    """Four attributes of eight codes and up to four levels, of which small tables of random levels have few."""
    code = np.arange(8)
    ancestor = np.column_stack([code, code // 2, code // 4, code * 0]).astype(np.int32)
    odd = Condition("odd", lambda classes: classes.rows % 2 == 1, False, False)
    for seed in range(8):
        generator = np.random.default_rng(seed)
        levels = [[0, 1, 3], [0, 2, 3], [0, 1, 2, 3]][seed % 3]
        ancestors = [ancestor[:, levels], ancestor[:, [0, 2, 3]], ancestor[:, [0, 3]], ancestor[:, [0, 1, 3]]]
        vectors = np.minimum(generator.geometric(0.4, (40, 4)) - 1, 7).astype(np.int32)
        counts = generator.integers(1, 4, len(vectors))
        different, of = np.unique(vectors, axis=0, return_inverse=True)
        table = FullDomain.of(ancestors, different, np.bincount(of.reshape(-1), weights=counts).astype(np.int64))
        asked = (at_least(2 + seed % 3),) if monotone else (at_least(2), odd)
        problem = Problem(Measured.of(table), asked, METRICS[name], limit=[0, 6, 20][seed % 3] if monotone else 30)
        optimum = exhaustive(problem)
        for search in sorted(set(SEARCHES) - HEURISTIC):
            found = SEARCHES[search](problem)
            assert (found and (found.levels, found.facts)) == (optimum and (optimum.levels, optimum.facts)), search


def test_the_best_one_depends_on_the_size_of_the_lattice(monkeypatch: pytest.MonkeyPatch) -> None:
    ancestor = np.array([[0, 0], [1, 0]], dtype=np.int32)
    table = FullDomain.of([ancestor, ancestor], np.array([[0, 0], [1, 1]], dtype=np.int32), np.array([1, 1]))
    problem = Problem(Measured.of(table), (at_least(2),), METRICS["loss"])
    asked = []

    def out_of_looks(of: Problem, nodes_at_most: int) -> Scheme:
        asked.append((of, nodes_at_most))
        return Scheme((1, 1), of.facts((1, 1), of.measured.table.classes((1, 1))), 1.0, nodes_at_most, False, 1.0)

    monkeypatch.setattr(searches, "top_down", out_of_looks)
    assert best(problem).optimal, "what is small is searched to the end"
    assert asked == [(problem, 4)]
    assert best(replace(problem, metric=METRICS["dm"])).optimal
    assert len(asked) == 1
    monkeypatch.setattr(searches, "ENUMERATED", 3)
    assert not best(problem, nodes_at_most=7).optimal
    assert asked[1:] == [(problem, 7)]


# ------------------------------------------------------------------------------------------------ worked examples


def race_and_zip() -> FullDomain:
    """Codes asian, black, white; 02138, 02139, 02141, 02142."""
    race = np.array([[0, 0], [1, 0], [2, 0]], dtype=np.int32)
    zip_code = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], dtype=np.int32)
    rows = [(a, z) for a in (0, 1) for z in range(4)] + [(2, z) for z in range(4)]
    return FullDomain.of([race, zip_code], np.array(rows, dtype=np.int32), np.ones(12, dtype=np.int64))


def test_the_two_minimal_tables_of_race_and_zip() -> None:
    """Samarati and Sweeney: Race {asian, black, white} -> person, ZIP 0213*, 0214* -> 021**; k = 2.

    Here one row of each of the twelve pairs. At (0, 0) all pairs are alone. At (1, 0) each of four codes stands with
    three races, at (0, 1) each of three races twice with either half: both are 2-anonymous, neither is above the other,
    and their height is 1, which is the least. By discernibility (1, 0) costs 4 * 9 = 36, (0, 1) 6 * 4 = 24.
    """
    table = race_and_zip()
    for name in sorted(SEARCHES):
        by_height = SEARCHES[name](Problem(Measured.of(table), (at_least(2),), METRICS["height"]))
        assert sum(by_height.levels) == 1, name
        by_dm = SEARCHES[name](Problem(Measured.of(table), (at_least(2),), METRICS["dm"]))
        if name != "datafly":
            assert (by_dm.levels, by_dm.value) == ((0, 1), 24.0), name


def test_datafly_takes_the_attribute_of_most_distinct_values() -> None:
    """Four codes against three races, so ZIP first: (0, 1) is 2-anonymous. For k = 3 then three races against two
    halves, so race: (1, 1) makes two classes of six rows, though (1, 0) with four of three would have done."""
    table = race_and_zip()
    two, three = (SEARCHES["datafly"](Problem(Measured.of(table), (at_least(k),), METRICS["dm"])) for k in (2, 3))
    assert (two.levels, two.nodes_evaluated) == ((0, 1), 2)
    assert (three.levels, three.value) == ((1, 1), 72.0)
    # No class is smaller than three rows: every row costs at least 3, 36 in all, which is what (1, 0) costs.
    assert (three.optimal, three.gap) == (False, 36.0)
    assert SEARCHES["best"](Problem(Measured.of(table), (at_least(3),), METRICS["dm"])).value == 36.0
