from __future__ import annotations

from pathlib import Path

import naive_recoding
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recodings import EIGHT, Labels, Rows, adult_table, small_tables, table_of

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.problem import Condition, Problem, at_least
from privrisk_spark.kernels.recoding.searches import SEARCHES
from privrisk_spark.kernels.recoding.whole_lattice import exhaustive, flash, incognito, samarati


@given(small_tables(), st.integers(1, 4), st.integers(0, 5), st.sampled_from(sorted(METRICS)))
def test_it_is_the_best_node_by_the_letter(given_table: tuple[Labels, Rows], k: int, limit: int, name: str) -> None:
    labels, rows = given_table
    metric = METRICS[name]
    sign = -1 if metric.greater_is_better else 1
    found = exhaustive(Problem(Measured.of(table_of(labels, rows)), (at_least(k),), metric, limit))
    best = naive_recoding.best(
        labels, rows, k, limit, lambda levels: naive_recoding.metric(name, labels, rows, levels, k), sign
    )
    if found is None:
        assert not best
        return
    assert found.levels in best
    assert found.optimal
    assert found.nodes_evaluated == len(list(naive_recoding.nodes_of(labels)))


def test_of_equal_nodes_the_lexicographically_smallest_is_taken() -> None:
    """Two attributes, each of which alone makes one class of two different values."""
    ancestor = np.array([[0, 0], [1, 0]], dtype=np.int32)
    table = FullDomain.of([ancestor, ancestor], np.array([[0, 0], [1, 1]], dtype=np.int32), np.array([1, 1]))
    of_height = Problem(Measured.of(table), (at_least(2),), METRICS["height"])
    assert exhaustive(of_height).levels == (1, 1)
    apart = FullDomain.of([ancestor, ancestor], np.array([[0, 0], [0, 1], [1, 0]], dtype=np.int32), np.array([1, 1, 1]))
    one_lost = Problem(Measured.of(apart), (at_least(2),), METRICS["height"], limit=1)
    assert exhaustive(one_lost).levels == (0, 1)


def test_of_nodes_of_one_cost_the_one_that_suppresses_least_is_taken() -> None:
    ancestor = np.array([[0, 0], [1, 0]], dtype=np.int32)
    rows = np.array([[0, 0], [0, 1], [1, 0]], dtype=np.int32)
    table = FullDomain.of([ancestor, ancestor], rows, np.array([3, 1, 2]))
    problem = Problem(Measured.of(table), (at_least(3),), METRICS["height"], limit=2)
    # (0, 1) makes classes of 4 and 2 rows, (1, 0) of 5 and 1: the same height, fewer rows lost.
    found = exhaustive(problem)
    assert (found.levels, found.facts.suppressed) == ((1, 0), 1)


def test_a_condition_suppresses_a_class_whole() -> None:
    """One that is not monotone: classes of exactly two rows."""

    pairs = Condition("pairs", lambda classes: classes.rows == 2, False, False)
    ancestor = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], dtype=np.int32)
    table = FullDomain.of([ancestor], np.arange(4, dtype=np.int32)[:, None], np.array([1, 1, 1, 1]))
    problem = Problem(Measured.of(table), (at_least(1), pairs), METRICS["loss"], limit=0)
    assert exhaustive(problem).levels == (1,)


def test_where_no_scheme_keeps_the_limit_there_is_none() -> None:
    ancestor = np.array([[0, 0], [1, 0]], dtype=np.int32)
    table = FullDomain.of([ancestor], np.array([[0], [1]], dtype=np.int32), np.array([1, 1]))
    measured = Measured.of(table)
    assert exhaustive(Problem(measured, (at_least(3),), METRICS["loss"], limit=1)) is None
    assert exhaustive(Problem(measured, (at_least(3),), METRICS["loss"], limit=2)).facts.suppressed == 2
    with pytest.raises(InputError, match="at least 0"):
        exhaustive(Problem(measured, (at_least(2),), METRICS["loss"], limit=-1))
    with pytest.raises(InputError, match="k must be at least 1"):
        at_least(0)


@pytest.mark.adult
def test_optima_of_adult(adult: Path) -> None:
    """The first four attributes; 60 nodes."""
    measured = adult_table(adult, EIGHT[:4])
    found = {}
    for k in (2, 5, 10, 50):
        for limit in (0, measured.table.rows // 20):
            found[k, limit] = exhaustive(Problem(measured, (at_least(k),), METRICS["loss"], limit))
    assert all(one.nodes_evaluated == 60 for one in found.values())
    # What is asked more of, or may lose less, costs no less.
    for k, more in ((2, 5), (5, 10), (10, 50)):
        for limit in (0, measured.table.rows // 20):
            assert found[k, limit].value <= found[more, limit].value
    assert all(found[k, 0].value >= found[k, measured.table.rows // 20].value for k in (2, 5, 10, 50))


# ------------------------------------------------------------------------------------- all that are optimal, alike


@given(small_tables(), st.integers(1, 4), st.integers(0, 5), st.sampled_from(sorted(METRICS)))
def test_every_optimal_search_returns_the_same(given_table: tuple[Labels, Rows], k: int, limit: int, name: str) -> None:
    labels, rows = given_table
    problem = Problem(Measured.of(table_of(labels, rows)), (at_least(k),), METRICS[name], limit)
    expected = exhaustive(problem)
    for search in (incognito, flash):
        found = search(problem)
        assert (found is None) == (expected is None)
        if found is not None:
            assert (found.levels, found.facts, found.value, found.optimal) == (
                expected.levels, expected.facts, expected.value, True
            )  # fmt: skip


@given(small_tables(), st.integers(1, 4), st.integers(0, 5))
def test_the_least_height_is_found_by_halving(given_table: tuple[Labels, Rows], k: int, limit: int) -> None:
    labels, rows = given_table
    measured = Measured.of(table_of(labels, rows))
    by_height = exhaustive(Problem(measured, (at_least(k),), METRICS["height"], limit))
    found = samarati(Problem(measured, (at_least(k),), METRICS["height"], limit))
    assert (found is None) == (by_height is None)
    if found is None:
        return
    assert (found.levels, found.facts, found.optimal) == (by_height.levels, by_height.facts, True)
    other = samarati(Problem(measured, (at_least(k),), METRICS["loss"], limit))
    assert sum(other.levels) == sum(found.levels)
    assert not other.optimal


@given(small_tables(), st.sampled_from(sorted(METRICS)), st.sampled_from(sorted(SEARCHES)))
def test_a_condition_that_is_not_monotone_is_searched_without_pruning(
    given_table: tuple[Labels, Rows], name: str, search: str
) -> None:
    """Classes of an odd number of rows: what a coarser node does says nothing of a finer one."""
    labels, rows = given_table
    odd = Condition("odd", lambda classes: classes.rows % 2 == 1, False, False)
    problem = Problem(Measured.of(table_of(labels, rows)), (odd,), METRICS[name], limit=1)
    expected, found = exhaustive(problem), SEARCHES[search](problem)
    assert (found is None) == (expected is None)
    if found is not None and (search != "samarati" or name == "height"):
        assert found.levels == expected.levels


@pytest.mark.adult
def test_they_look_at_fewer_nodes_of_adult(adult: Path) -> None:
    measured = adult_table(adult, EIGHT[:5])
    problem = Problem(measured, (at_least(5),), METRICS["loss"], measured.table.rows // 20)
    found = {name: search(problem) for name, search in SEARCHES.items()}
    assert found["exhaustive"].nodes_evaluated == 240
    assert {one.levels for name, one in found.items() if name not in ("samarati", "datafly")} == {
        found["exhaustive"].levels
    }
    assert found["samarati"].nodes_evaluated < 120
