"""Conditions on sensitive values: by roll-ups, against rows; pruned exactly where they are proved to be monotone."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import naive_recoding
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_recoding import nodes_of, recoded
from recodings import (
    Held,
    Labels,
    Rows,
    conditions,
    persons_of,
    small_tables_of_persons,
    table_with_values,
    tables_with_values,
)
from recodings import table_of as table_of_persons

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.classes.criteria import (
    ALPHA,
    DISTINCT_DIVERSITY,
    ENTROPY_DIVERSITY,
)
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.recoding.bounded import bounded
from privrisk_spark.kernels.recoding.full_domain import FullDomain, NodeClasses
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.problem import Condition, Problem, at_least, held_to
from privrisk_spark.kernels.recoding.whole_lattice import exhaustive, flash, incognito, samarati


def classes_of(labels: Labels, rows: Rows, held: Held, levels: tuple[int, ...]) -> dict[tuple[int, ...], Counter]:
    found: dict[tuple[int, ...], Counter] = {}
    for node, value in zip(recoded(labels, rows, levels), held, strict=True):
        found.setdefault(node, Counter())[value] += 1
    return found


@given(tables_with_values())
def test_the_values_of_every_class_are_those_of_its_rows(given_table: tuple[Labels, Rows, Held]) -> None:
    labels, rows, held = given_table
    table = table_with_values(labels, rows, held)
    for levels, classes in table.every_node():
        (runs,) = classes.held
        expected = classes_of(labels, rows, held, levels)
        members = [tuple(int(code) for code in row) for row in table.vectors[classes.member]]
        for j, node in enumerate(recoded(labels, members, levels)):
            part = slice(runs.class_start[j], runs.class_start[j + 1])
            assert dict(zip(runs.value[part].tolist(), runs.count[part].tolist(), strict=True)) == expected[node]
        assert runs.n_classes == len(expected)


@given(tables_with_values(), st.integers(0, 6), st.integers(1, 3), st.integers(0, 4), st.sampled_from(["loss", "dm"]))
def test_searches_that_prune_find_what_the_exhaustive_one_finds(
    given_table: tuple[Labels, Rows, Held], which: int, k: int, limit: int, name: str
) -> None:
    labels, rows, held = given_table
    possible = conditions(held)
    asked = (at_least(k), possible[which % len(possible)])
    problem = Problem(Measured.of(table_with_values(labels, rows, held)), asked, METRICS[name], limit)
    expected = exhaustive(problem)
    for search in (incognito, flash, bounded):
        found = search(problem)
        assert (found is None) == (expected is None)
        if found is not None:
            assert (found.levels, found.facts) == (expected.levels, expected.facts), search.__name__


@given(tables_with_values(), st.integers(0, 6), st.integers(0, 4))
def test_nodes_that_keep_the_limit_are_an_up_set_where_it_is_said(
    given_table: tuple[Labels, Rows, Held], which: int, limit: int
) -> None:
    labels, rows, held = given_table
    possible = conditions(held)
    problem = Problem(
        Measured.of(table_with_values(labels, rows, held)), (possible[which % len(possible)],), METRICS["loss"], limit
    )
    if not problem.monotone:
        return
    keeps = {
        levels: problem.keeps_limit(problem.facts(levels, classes))
        for levels, classes in problem.measured.table.every_node()
    }
    for levels, kept in keeps.items():
        for i in range(len(levels)):
            above = (*levels[:i], levels[i] + 1, *levels[i + 1 :])
            assert not kept or keeps.get(above, True)


def test_what_is_not_monotone_in_suppression_is_not_pruned_where_rows_may_be_suppressed() -> None:
    """The finer node releases two rows of two values; joined with four of one value, all six fail."""
    ancestor = np.array([[0, 0], [1, 0]], dtype=np.int32)
    runs = SensitiveRuns(np.array([0, 2, 3]), np.array([0, 1, 0], dtype=np.int32), np.array([1, 1, 4]))
    table = FullDomain.of([ancestor], np.array([[0], [1]], dtype=np.int32), np.array([2, 4]), [runs])
    entropy = held_to(ENTROPY_DIVERSITY, 2)
    with_limit = Problem(Measured.of(table), (entropy,), METRICS["height"], limit=4)
    assert not with_limit.monotone
    assert flash(with_limit).levels == (0,)
    assert Problem(Measured.of(table), (entropy,), METRICS["height"], limit=0).monotone
    lost = [with_limit.facts(levels, classes).suppressed for levels, classes in table.every_node()]
    assert lost == [4, 6]
    assert [a < b for a, b in pairwise(lost)] == [True]


def test_an_entropy_of_two_values_alike_is_two() -> None:
    ancestor = np.zeros((1, 1), dtype=np.int32)
    runs = SensitiveRuns(np.array([0, 2]), np.array([0, 1], dtype=np.int32), np.array([3, 3]))
    table = FullDomain.of([ancestor], np.zeros((1, 1), dtype=np.int32), np.array([6]), [runs])
    classes = table.classes([0])
    assert held_to(ENTROPY_DIVERSITY, 2).meets(classes).tolist() == [True]
    assert held_to(ENTROPY_DIVERSITY, math.nextafter(2.1, 3)).meets(classes).tolist() == [False]


def test_values_that_are_not_those_of_the_rows_are_refused() -> None:
    ancestor = np.array([[0], [1]], dtype=np.int32)
    vectors, counts = np.array([[0], [1]], dtype=np.int32), np.array([1, 2])
    for start, value, count in (([0, 1], [0], [1]), ([0, 1, 2], [0, 0], [1, 1])):
        runs = SensitiveRuns(np.array(start), np.array(value, dtype=np.int32), np.array(count))
        with pytest.raises(InputError, match="one value of each sensitive attribute"):
            FullDomain.of([ancestor], vectors, counts, [runs])
    assert list(nodes_of([[[0], [1]]])) == [(0,)]


# -------------------------------------------------------------------------------------------------- persons

OfPersons = tuple[Labels, Rows, list[int]]


@given(small_tables_of_persons(), st.integers(1, 4))
def test_a_class_is_released_by_the_persons_in_it_and_suppressed_by_its_rows(table: OfPersons, k: int) -> None:
    labels, rows, who = table
    problem = Problem(Measured.of(table_of_persons(labels, rows, who)), (at_least(k),), METRICS["loss"])
    for levels, classes in problem.measured.table.every_node():
        shown = recoded(labels, rows, levels)
        there = naive_recoding.persons(shown, who)
        members = [tuple(int(code) for code in row) for row in problem.measured.table.vectors]
        expected = [there[one] < k for one in recoded(labels, members, levels)]
        assert problem.suppressed(levels).tolist() == expected
        assert classes.size.tolist() == problem.measured.table.classes(levels).size.tolist()
        assert sorted(classes.size.tolist()) == sorted(there.values())
        assert problem.facts(levels, classes).suppressed == sum(there[one] < k for one in shown)


@given(tables_with_values(), st.integers(0, 6), st.integers(1, 3))
def test_suppressed_records_are_those_whose_class_fails_by_the_letter(
    given_table: tuple[Labels, Rows, Held], most: int, k: int
) -> None:
    labels, rows, held = given_table
    table = table_with_values(labels, rows, held)
    asked = (at_least(k), held_to(DISTINCT_DIVERSITY, 2), held_to(ALPHA, most / 6))
    problem = Problem(Measured.of(table), asked, METRICS["loss"])
    members = [tuple(int(code) for code in row) for row in table.vectors]
    for levels in nodes_of(labels):
        of = classes_of(labels, rows, held, levels)
        bad = {
            node
            for node, values in of.items()
            if values.total() < k or len(values) < 2 or max(values.values()) * 6 > most * values.total()
        }
        assert problem.suppressed(levels).tolist() == [one in bad for one in recoded(labels, members, levels)]


@given(small_tables_of_persons(), st.integers(1, 4), st.integers(0, 5), st.sampled_from(["loss", "dm", "height"]))
def test_every_search_counts_persons_as_the_letter_does(table: OfPersons, k: int, limit: int, name: str) -> None:
    labels, rows, who = table
    problem = Problem(Measured.of(table_of_persons(labels, rows, who)), (at_least(k),), METRICS[name], limit)
    best = naive_recoding.best(
        labels, rows, k, limit, lambda levels: naive_recoding.metric(name, labels, rows, levels, k, who), 1
    )
    expected = exhaustive(problem)
    assert (expected is None) == (not best)
    assert expected is None or expected.levels in best
    for search in (incognito, flash, bounded, *([samarati] if name == "height" else [])):
        found = search(problem)
        assert (found is None) == (expected is None)
        if found is not None:
            assert (found.levels, found.facts) == (expected.levels, expected.facts), search.__name__


def test_records_without_rows_take_no_persons_with_them_and_none_has_more_than_rows() -> None:
    ancestor = np.array([[0, 0], [1, 0], [2, 0]], dtype=np.int32)
    vectors = np.arange(3, dtype=np.int32)[:, None]
    persons = persons_of([(0, 1), (2, 1), (2, 2)], 3)
    table = FullDomain.of([ancestor], vectors, np.array([1, 0, 2]), persons=persons)
    assert table.classes([0]).size.tolist() == [1, 2]
    assert table.classes([1]).size.tolist() == [2]
    assert table.of_attributes([0]).classes([1]).size.tolist() == [2]
    for counts in ([1, 0, 1], [0, 1, 2]):
        with pytest.raises(InputError, match="more persons than rows"):
            FullDomain.of([ancestor], vectors, np.array(counts), persons=persons)
    with pytest.raises(InputError, match="more persons than rows"):
        FullDomain.of([ancestor], vectors, np.array([1, 1, 2]), persons=persons_of([(0, 1)], 1))


def test_a_dear_condition_is_asked_about_the_classes_that_are_left() -> None:
    """Of classes of 1, 2, 3 and 4 rows the first condition leaves two, and the dear one is asked about these alone."""
    asked: list[list[int]] = []

    def odd(classes: NodeClasses) -> np.ndarray:
        asked.append(classes.size.tolist())
        return classes.size % 2 == 1

    vectors = np.arange(4, dtype=np.int32)[:, None]
    table = FullDomain.of([vectors], vectors, np.array([1, 2, 3, 4]))
    measured = Measured.of(table, [np.ones((4, 1), dtype=np.int64)])
    problem = Problem(measured, (at_least(3), Condition("odd", odd, False, False, dear=True)), METRICS["loss"])
    released = problem.released(table.classes([0]))
    assert released.tolist() == [False, False, True, False]
    assert asked == [[3, 4]]
