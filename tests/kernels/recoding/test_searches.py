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


MEDICAL = [
    ("black", 1965, "male", "02141"), ("black", 1965, "male", "02141"), ("black", 1965, "female", "02138"),
    ("black", 1965, "female", "02138"), ("black", 1964, "female", "02138"), ("black", 1964, "female", "02138"),
    ("white", 1964, "male", "02138"), ("white", 1965, "female", "02139"), ("white", 1964, "male", "02139"),
    ("white", 1964, "male", "02139"), ("white", 1967, "male", "02138"), ("white", 1967, "male", "02138"),
]  # fmt: skip
"""Sweeney (2002), Figures 9 and 10, as Raschia (2023) has them: race, year of a birthday of one person, sex, ZIP."""


def test_datafly_on_the_table_of_its_paper() -> None:
    """BirthDate has 12 distinct values, more than any other, and is generalized to the year; then t7 and t8 alone
    occur fewer than k = 2 times, and as they are no more than k rows, they are suppressed: ten rows in five pairs."""
    race = np.array([[0, 0], [1, 0]], dtype=np.int32)
    years = np.array([year for _, year, _, _ in MEDICAL])
    days = np.column_stack([np.arange(12), np.unique(years, return_inverse=True)[1], np.zeros(12)]).astype(np.int32)
    codes = {"02138": 0, "02139": 1, "02141": 2}
    zip_code = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]], dtype=np.int32)
    vectors = np.array(
        [[a == "white", day, s == "male", codes[z]] for day, (a, _, s, z) in enumerate(MEDICAL)], dtype=np.int32
    )
    distinct = [len(np.unique(column)) for column in vectors.T]
    assert distinct == [2, 12, 2, 3], "as the figure counts them"
    table = FullDomain.of([race, days, race, zip_code], vectors, np.ones(12, dtype=np.int64))
    problem = Problem(Measured.of(table), (at_least(2),), METRICS["loss"], limit=2)
    found = SEARCHES["datafly"](problem)
    assert found is not None
    assert (found.levels, found.nodes_evaluated) == ((0, 1, 0, 0), 2)
    assert np.flatnonzero(problem.suppressed(found.levels)).tolist() == [6, 7]
    assert (found.facts.suppressed, found.facts.classes, found.facts.squares) == (2, 5, 5 * 2**2)
    # It happens to be the optimum here, of which Datafly knows nothing.
    best_one = SEARCHES["best"](problem)
    assert best_one is not None
    assert (best_one.levels, best_one.optimal, found.optimal) == ((0, 1, 0, 0), True, False)


PATIENTS = [
    ("1/21/76", "Male", "53715"), ("4/13/86", "Female", "53715"), ("2/28/76", "Male", "53703"),
    ("1/21/76", "Male", "53703"), ("4/13/86", "Female", "53706"), ("2/28/76", "Female", "53706"),
]  # fmt: skip
"""LeFevre, DeWitt and Ramakrishnan (2005), Figure 1: birthdate and sex of two levels, ZIP of three (5370*, 5371*)."""


def test_incognito_on_the_patients_of_its_paper() -> None:
    """By one attribute every value occurs twice. (S1, Z0) is 2-anonymous, (S0, Z1) is not, as 5371* has one man and one
    woman, and (S0, Z2) is; of birthdate and sex (B1, S0) and (B0, S1) are, of birthdate and ZIP (B1, Z0) and (B0, Z2).
    What no pair rules out of all three: above (B1, S1, Z0), (B1, S0, Z2) and (B0, S1, Z2)."""
    days, zips = ["1/21/76", "2/28/76", "4/13/86"], ["53703", "53706", "53715"]
    flat = [np.column_stack([np.arange(n), np.zeros(n, dtype=np.int64)]).astype(np.int32) for n in (3, 2)]
    zip_code = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0]], dtype=np.int32)
    vectors = np.array([[days.index(b), s == "Male", zips.index(z)] for b, s, z in PATIENTS], dtype=np.int32)
    table = FullDomain.of([*flat, zip_code], vectors, np.ones(6, dtype=np.int64))
    kept = {levels for levels, classes in table.every_node() if classes.rows.min() >= 2}
    minimal = {x for x in kept if not any(y != x and all(np.array(y) <= x) for y in kept)}
    assert minimal == {(1, 1, 0), (1, 0, 2), (0, 1, 2)}
    assert {levels for levels in kept if levels[0] == 1 and levels[1] == 0} == {(1, 0, 2)}, "(S0, Z1) is not"
    for name in sorted(SEARCHES):
        found = SEARCHES[name](Problem(Measured.of(table), (at_least(2),), METRICS["height"]))
        assert found is not None
        if name != "datafly":
            assert (found.levels, found.facts.classes) == ((1, 1, 0), 3), name
