from __future__ import annotations

import naive_local
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recodings import Labels, Rows, published_rows, small_tables, table_of, table_with_values, tables_with_values

from privrisk_spark.kernels.classes.criteria import DISTINCT_DIVERSITY, ENTROPY_DIVERSITY
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.bang import bang, grids
from privrisk_spark.kernels.recoding.local.order import leaf_orders
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition, held_to


@settings(max_examples=300)
@given(small_tables(most_rows=24), st.integers(1, 8))
def test_regions_are_the_cells_without_those_nested_in_them(given_table: tuple[Labels, Rows], k: int) -> None:
    labels, rows = given_table
    table = table_of(labels, rows)

    def passes(part: naive_local.Rows) -> bool:
        return len(part) >= k

    groups = naive_local.bang_groups(labels, [(row, 0) for row in rows], passes, each=True)
    assert published_rows(table, labels, bang(Measured.of(table), k)) == naive_local.shown(labels, groups, passes)


@settings(max_examples=300)
@given(tables_with_values(), st.integers(1, 4), st.booleans())
def test_so_they_are_with_a_condition_on_sensitive_values(
    given_table: tuple[Labels, Rows, list[int]], k: int, entropy: bool
) -> None:
    """Entropy may fail where a group that meets it is joined with one that does not."""
    labels, rows, held = given_table
    table = table_with_values(labels, rows, held)
    condition = held_to(ENTROPY_DIVERSITY, 1.9) if entropy else held_to(DISTINCT_DIVERSITY, 2)

    def passes(part: naive_local.Rows) -> bool:
        shares = np.unique([value for _, value in part], return_counts=True)[1] / max(len(part), 1)
        enough = np.exp(-(shares * np.log(shares)).sum()) >= 1.9 if entropy else len(shares) >= 2
        return len(part) >= k and bool(enough)

    groups = naive_local.bang_groups(labels, list(zip(rows, held, strict=True)), passes, each=False)
    found = bang(Measured.of(table), k, (condition,))
    assert published_rows(table, labels, found) == naive_local.shown(labels, groups, passes)


@pytest.mark.parametrize(
    ("sizes", "levels"),
    [
        # A dense value is a region; the rows around it are one without it.
        ([5, 1, 1, 0], [0, 2, 2]),
        # One row is left. It comes to the group that loses the least by it: three rows at a half, not six at the whole.
        ([2, 1, 5, 0], [1, 1, 0]),
        # Two rows from a half to the whole and one more, not six at a half.
        ([5, 1, 1, 1], [0, 2, 2, 2]),
        ([1, 0, 0, 0], [2]),
    ],
)
def test_outliers_do_not_keep_what_is_dense_from_being_a_region(sizes: list[int], levels: list[int]) -> None:
    tree = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], dtype=np.int32)
    there = np.flatnonzero(sizes)
    table = FullDomain.of([tree], there[:, None].astype(np.int32), np.array(sizes)[there])
    found = bang(Measured.of(table), 2)
    assert found.levels[:, 0].tolist() == levels
    assert found.suppressed == (1 if sum(sizes) < 2 else 0)


def test_grids_coarsen_first_what_is_left_finest() -> None:
    fine = np.array([[code, code // 2, 0] for code in range(8)], dtype=np.int32)
    coarse = np.array([[0, 0], [1, 0]], dtype=np.int32)
    table = FullDomain.of([coarse, fine], np.array([[0, 0], [1, 5]], dtype=np.int32), np.array([1, 1]))
    orders = leaf_orders(Measured.of(table))
    places = [order.place[table.vectors[:, i]] for i, order in enumerate(orders)]
    assert list(grids(orders, places, table.counts)) == [(0, 0), (0, 1), (1, 1), (1, 2)]


def test_what_is_left_is_joined_with_as_many_groups_as_it_takes_of_1_2_4() -> None:
    """Of groups of three rows and one row that is left, one is too few, and with two it is enough."""
    star = np.array([[code, 0] for code in range(4)], dtype=np.int32)
    table = FullDomain.of([star], np.arange(4, dtype=np.int32)[:, None], np.array([3, 3, 3, 1]))
    three_or_seven = Condition("three or seven rows", lambda classes: np.isin(classes.rows, (3, 7)), False, False)
    assert bang(Measured.of(table), 1, (three_or_seven,)).levels[:, 0].tolist() == [1, 1, 0, 1]
