from __future__ import annotations

from collections import Counter

import naive_local
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from recodings import Labels, Rows, published_rows, small_tables, table_of

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.relaxed import mondrian_relaxed
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import at_least


@example(([[[0, 0], [1, 0]], [[0, 0], [1, 1]]], [(0, 0), (0, 1), (1, 0)]), 2)  # regions that do not lie in order
@settings(max_examples=300)
@given(small_tables(most_rows=24), st.integers(1, 5))
def test_halving_all_regions_of_a_depth_at_once_gives_the_regions_of_recursion(
    given_table: tuple[Labels, Rows], k: int
) -> None:
    labels, rows = given_table
    table = table_of(labels, rows)
    found = mondrian_relaxed(Measured.of(table), k)
    groups = [
        group
        for region in naive_local.first_regions(labels, [(row, 0) for row in rows])
        for group in naive_local.relaxed_groups(labels, region, k)
    ]
    expected = naive_local.shown(labels, groups, lambda part: len(part) >= k)
    assert published_rows(table, labels, found) == expected
    pieces = list(zip(found.record.tolist(), found.of.tolist(), strict=True))
    assert pieces == sorted(set(pieces)), "each record once in a class"


def test_rows_of_one_record_come_to_both_sides_and_classes_that_look_alike_are_one() -> None:
    """Six rows of values 0, 1 and 2, four of them 1: halves are {0, 1, 1} and {1, 1, 2}, both published as the root."""
    tree = np.array([[0, 0], [1, 0], [2, 0]], dtype=np.int32)
    vectors = np.arange(3, dtype=np.int32)[:, None]
    found = mondrian_relaxed(Measured.of(FullDomain.of([tree], vectors, np.array([1, 4, 1]))), 3)
    assert found.classes.rows.tolist() == [6]
    assert found.rows.tolist() == [1, 4, 1]
    deep = np.array([[0, 0, 0], [1, 0, 0], [2, 2, 0]], dtype=np.int32)
    found = mondrian_relaxed(Measured.of(FullDomain.of([deep], vectors, np.array([1, 4, 1]))), 3)
    assert Counter(
        zip(found.record.tolist(), found.rows.tolist(), found.levels[:, 0].tolist(), strict=True)
    ) == Counter([(0, 1, 1), (1, 2, 1), (1, 2, 2), (2, 1, 2)])


def test_what_cannot_be_promised_of_divided_records_is_refused() -> None:
    table = FullDomain.of([np.zeros((1, 1), dtype=np.int32)], np.zeros((1, 1), dtype=np.int32), np.array([3]))
    with pytest.raises(InputError, match=r"cannot promise 'k-anonymity'.*Strict Mondrian can"):
        mondrian_relaxed(Measured.of(table), 2, (at_least(2),))


def test_rows_of_the_value_in_the_middle_are_dealt_in_lexicographic_order() -> None:
    """Of (1, 0) and (1, 1) the former comes to the left, to (0, 0)."""
    three = np.array([[code, 0] for code in range(3)], dtype=np.int32)
    vectors = np.array([[0, 0], [1, 0], [1, 1], [2, 0]], dtype=np.int32)
    table = FullDomain.of([three, three[:2]], vectors, np.ones(4, dtype=np.int64))
    assert mondrian_relaxed(Measured.of(table), 2).levels.tolist() == [[1, 0], [1, 0], [1, 1], [1, 1]]
