from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recodings import EIGHT, Labels, Rows, adult_table, small_tables, table_of

from privrisk_spark.kernels.recoding import bounded as bounds
from privrisk_spark.kernels.recoding.bounded import bounded, least_costs
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.problem import Condition, Problem, at_least
from privrisk_spark.kernels.recoding.whole_lattice import exhaustive

KNOWN = ("loss", "ncp", "precision", "height", "entropy")


@given(small_tables(), st.integers(1, 4), st.sampled_from(KNOWN))
def test_no_node_costs_less(given_table: tuple[Labels, Rows], k: int, name: str) -> None:
    labels, rows = given_table
    measured = Measured.of(table_of(labels, rows))
    costs = least_costs(measured, name)
    assert costs is not None
    assert costs.shape == measured.table.lattice.shape
    problem, plain = (Problem(measured, (at_least(least),), METRICS[name]) for least in (k, 1))
    for levels, classes in measured.table.every_node():
        assert costs[levels] <= METRICS[name].value(problem.facts(levels, classes)) + 1e-12
        assert costs[levels] == pytest.approx(METRICS[name].value(plain.facts(levels, classes)), abs=1e-12)


@given(small_tables(), st.integers(1, 4), st.integers(0, 5), st.sampled_from(sorted(METRICS)), st.integers(1, 5))
def test_it_is_what_a_look_at_every_node_finds(
    given_table: tuple[Labels, Rows], k: int, limit: int, name: str, at_once: int
) -> None:
    labels, rows = given_table
    problem = Problem(Measured.of(table_of(labels, rows)), (at_least(k),), METRICS[name], limit)
    expected = exhaustive(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "_AT_ONCE", at_once)
        found = bounded(problem)
    assert (found is None) == (expected is None)
    if found is not None:
        assert (found.levels, found.facts, found.value) == (expected.levels, expected.facts, expected.value)
        assert found.optimal


def test_nothing_is_ruled_out_by_a_condition_that_is_not_monotone() -> None:
    ancestor = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], dtype=np.int32)
    pairs = Condition("pairs", lambda classes: classes.rows == 2, False, False)
    rows = [(0,), (1,), (2,), (3,)]
    labels = [[[int(node) for node in path] for path in ancestor]]
    problem = Problem(Measured.of(table_of(labels, rows)), (pairs,), METRICS["loss"], limit=0)
    assert bounded(problem).levels == (1,)


@pytest.mark.adult
@pytest.mark.parametrize(
    ("k", "limit", "levels", "value"),
    [(5, 1508, (0, 3, 0, 0, 1, 1, 1, 2), 0.25185172), (2, 0, (0, 4, 0, 1, 3, 2, 2, 1), 0.52664462)],
)
def test_the_optimum_of_adult_by_few_of_its_nodes(
    adult: Path, k: int, limit: int, levels: tuple[int, ...], value: float
) -> None:
    """Eight attributes, 6,480 nodes; independent software finds the same schemes."""
    found = bounded(Problem(adult_table(adult, EIGHT), (at_least(k),), METRICS["loss"], limit))
    assert found.levels == levels
    assert found.value == pytest.approx(value, abs=5e-9)
    assert found.nodes_evaluated < 2000


@given(small_tables(), st.integers(0, 3), st.sampled_from(sorted(METRICS)))
def test_cost_rules_out_where_the_limit_cannot(given_table: tuple[Labels, Rows], limit: int, name: str) -> None:
    odd = Condition("odd", lambda classes: classes.rows % 2 == 1, False, False)
    problem = Problem(Measured.of(table_of(*given_table)), (at_least(2), odd), METRICS[name], limit)
    expected, found = exhaustive(problem), bounded(problem)
    assert (found is None) == (expected is None)
    if found is not None:
        assert (found.levels, found.facts) == (expected.levels, expected.facts)
        assert found.nodes_evaluated <= expected.nodes_evaluated


@pytest.mark.adult
@pytest.mark.parametrize("name", ["aecs", "dm", "classes", "entropy"])
def test_few_nodes_of_adult_by_the_other_metrics(adult: Path, name: str) -> None:
    """Five attributes, 240 nodes."""
    measured = adult_table(adult, EIGHT[:5])
    problem = Problem(measured, (at_least(5),), METRICS[name], measured.table.rows // 20)
    expected, found = exhaustive(problem), bounded(problem)
    assert (found.levels, found.facts) == (expected.levels, expected.facts)
    assert found.nodes_evaluated < 120
