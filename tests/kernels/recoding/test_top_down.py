from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recodings import Labels, Rows, small_tables, table_of

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.k_optimize import k_optimize
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured, order
from privrisk_spark.kernels.recoding.problem import Condition, Problem, at_least
from privrisk_spark.kernels.recoding.top_down import Shortcuts, top_down
from privrisk_spark.kernels.recoding.whole_lattice import exhaustive

on_or_off = st.builds(Shortcuts, **{field.name: st.booleans() for field in fields(Shortcuts)})
metrics = st.sampled_from(sorted(METRICS))


@given(small_tables(), st.integers(1, 4), st.integers(0, 5), metrics, on_or_off)
def test_no_shortcut_changes_the_optimum(
    given_table: tuple[Labels, Rows], k: int, limit: int, name: str, shortcuts: Shortcuts
) -> None:
    problem = Problem(Measured.of(table_of(*given_table)), (at_least(k),), METRICS[name], limit)
    expected = exhaustive(problem)
    by_sets = k_optimize(problem, by_cost=shortcuts.by_cost, by_limit=shortcuts.by_limit)
    for found in (top_down(problem, shortcuts=shortcuts), by_sets):
        assert (found is None) == (expected is None)
        if found is not None:
            assert (found.levels, found.facts, found.optimal, found.gap) == (
                expected.levels, expected.facts, True, 0.0
            )  # fmt: skip


@given(small_tables(), st.integers(1, 4), st.integers(0, 5), metrics, st.integers(1, 12), on_or_off)
def test_the_gap_is_true_whenever_looks_run_out(
    given_table: tuple[Labels, Rows], k: int, limit: int, name: str, looks: int, shortcuts: Shortcuts
) -> None:
    problem = Problem(Measured.of(table_of(*given_table)), (at_least(k),), METRICS[name], limit)
    shortcuts = replace(shortcuts, by_limit=True)  # or one look would not tell that there is no scheme
    looks += shortcuts.greedy and not shortcuts.remembered  # a greedy one at the top, which is looked at again
    optimum, found = exhaustive(problem), top_down(problem, nodes_at_most=looks, shortcuts=shortcuts)
    assert (found is None) == (optimum is None)
    if found is None:
        return
    assert found.nodes_evaluated <= looks
    assert problem.keeps_limit(found.facts)
    assert order(problem.metric, optimum.facts) <= order(problem.metric, found.facts)
    assert abs(found.value - optimum.value) <= found.gap + 1e-9 * (1 + abs(found.value))
    assert not found.optimal or found.levels == optimum.levels


def random_table(attributes: int, rows: int) -> FullDomain:
    """Eight codes each, in halves, quarters and all: four levels."""
    code = np.arange(8)
    ancestor = np.column_stack([code, code // 2, code // 4, code * 0]).astype(np.int32)
    generator = np.random.default_rng(5)
    vectors = np.unique(np.minimum(generator.geometric(0.5, (rows, attributes)) - 1, 7).astype(np.int32), axis=0)
    return FullDomain.of([ancestor] * attributes, vectors, np.ones(len(vectors), dtype=np.int64))


def test_a_lattice_of_two_to_the_thirty_two_nodes_is_searched() -> None:
    table = random_table(attributes=16, rows=60)
    assert table.lattice.n_nodes == 2**32
    problem = Problem(Measured.of(table), (at_least(5),), METRICS["loss"], limit=3)
    few, more = (top_down(problem, nodes_at_most=looks) for looks in (100, 2000))
    assert (few.nodes_evaluated, few.optimal) == (100, False)
    assert (more.optimal, more.gap) == (True, 0.0)
    assert 0 < few.value - few.gap <= more.value <= few.value
    assert top_down(problem, nodes_at_most=100) == few


def test_fewer_nodes_are_looked_at_by_each_shortcut() -> None:
    table = random_table(attributes=5, rows=200)
    problem = Problem(Measured.of(table), (at_least(5),), METRICS["loss"], limit=5)
    alone = top_down(problem, shortcuts=Shortcuts(False, False, False, False, False, False)).nodes_evaluated
    assert alone >= table.lattice.n_nodes
    assert top_down(problem, shortcuts=Shortcuts(True, False, False, False, False, False)).nodes_evaluated < alone
    assert top_down(problem, shortcuts=Shortcuts(False, True, False, False, False, False)).nodes_evaluated < alone
    assert top_down(problem).nodes_evaluated < table.lattice.n_nodes // 3
    assert k_optimize(problem).nodes_evaluated < table.lattice.n_nodes // 2


def test_what_was_not_found_is_not_said_not_to_be() -> None:
    """Pairs alone may be released: the top, of four rows, says nothing of what lies below it."""
    pairs = Condition("pairs", lambda classes: classes.rows == 2, False, False)
    table = table_of([[[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]]], [(0,), (1,), (2,), (3,)])
    problem = Problem(Measured.of(table), (pairs,), METRICS["loss"])
    assert top_down(problem).levels == (1,)
    with pytest.raises(InputError, match=r"among 1 nodes, and others may be\. Use hierarchies"):
        top_down(problem, nodes_at_most=1)
    with pytest.raises(InputError, match="At least one node"):
        top_down(problem, nodes_at_most=0)
