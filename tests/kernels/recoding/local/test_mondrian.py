from __future__ import annotations

import naive_local
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recodings import Labels, Rows, published_rows, small_tables, table_of, table_with_values, tables_with_values

from privrisk_spark.kernels.classes.criteria import DISTINCT_DIVERSITY
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.mondrian import histogram, mondrian
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition, held_to


@settings(max_examples=300)
@given(small_tables(most_rows=24), st.integers(1, 5), st.data())
def test_cutting_all_regions_of_a_depth_at_once_gives_the_regions_of_recursion(
    given_table: tuple[Labels, Rows], k: int, data: st.DataObject
) -> None:
    labels, rows = given_table
    ordered = [data.draw(st.booleans()) for _ in labels]
    table = table_of(labels, rows)
    found = mondrian(Measured.of(table), k, ordered=ordered)

    def passes(part: naive_local.Rows) -> bool:
        return len(part) >= k

    whole = [(row, 0) for row in rows]
    groups = [
        group
        for region in naive_local.first_regions(labels, whole)
        for group in naive_local.strict_groups(labels, region, passes, ordered)
    ]
    assert published_rows(table, labels, found) == naive_local.shown(labels, groups, passes)


ODD_OR_MANY = Condition("odd, or 6 and more", lambda c: (c.rows % 2 == 1) | (c.rows >= 6), False, False)
"""Closed under no union."""


@settings(max_examples=300)
@given(tables_with_values(), st.integers(1, 3), st.booleans(), st.data())
def test_so_it_is_with_a_condition_on_sensitive_values(
    given_table: tuple[Labels, Rows, list[int]], k: int, diverse: bool, data: st.DataObject
) -> None:
    labels, rows, held = given_table
    ordered = [data.draw(st.booleans()) for _ in labels]
    table = table_with_values(labels, rows, held)
    condition = held_to(DISTINCT_DIVERSITY, 2) if diverse else ODD_OR_MANY
    found = mondrian(Measured.of(table), k, (condition,), ordered=ordered)

    def passes(part: naive_local.Rows) -> bool:
        n = len(part)
        return n >= k and (len({value for _, value in part}) >= 2 if diverse else n % 2 == 1 or n >= 6)

    groups = [
        group
        for region in naive_local.first_regions(labels, list(zip(rows, held, strict=True)))
        for group in naive_local.strict_groups(labels, region, passes, ordered)
    ]
    assert published_rows(table, labels, found) == naive_local.shown(labels, groups, passes)


def test_the_patients_of_the_paper() -> None:
    """LeFevre et al. 2006, figures 2 and 3: age, sex and zip code of six patients, k = 2.

    Sex is the first of attributes that are equally wide. [25-26] male 53711, [25-27] female 53712, [27-28] male
    [53710-53711].
    """
    sexes, ages, zips = "MFMMFM", (25, 25, 26, 27, 27, 28), (53711, 53712, 53711, 53710, 53712, 53711)
    patients = [("FM".index(sex), age - 25, code - 53710) for sex, age, code in zip(sexes, ages, zips, strict=True)]
    vectors = np.array(patients, dtype=np.int32)
    ancestors = [np.array([[code, 0] for code in range(n)], dtype=np.int32) for n in (2, 4, 3)]
    table = FullDomain.of(ancestors, vectors, np.ones(6, dtype=np.int64))
    found = mondrian(Measured.of(table), 2, ordered=[True] * 3)
    groups = {frozenset(np.flatnonzero(found.of == one).tolist()) for one in range(len(found.classes.rows))}
    assert groups == {frozenset({0, 2}), frozenset({1, 4}), frozenset({3, 5})}
    assert found.levels.tolist() == [[0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 1, 1], [0, 1, 0], [0, 1, 1]]


def one_attribute(sizes: list[int], parents: list[int]) -> Measured:
    ancestor = np.array([[code, parent, 0] for code, parent in enumerate(parents)], dtype=np.int32)
    vectors = np.arange(len(sizes), dtype=np.int32)[:, None]
    return Measured.of(FullDomain.of([ancestor], vectors, np.array(sizes)))


@pytest.mark.parametrize(
    ("sizes", "parents", "levels"),
    [
        ([5, 5, 5, 5], [0, 0, 1, 1], [0, 0, 0, 0]),
        # One child is too small: the smallest other joins it, and all others keep theirs.
        ([5, 6, 1, 9], [0, 1, 2, 3], [2, 0, 2, 0]),
        # Two that are too small are enough together.
        ([5, 1, 1, 9], [0, 1, 2, 3], [0, 2, 2, 0]),
        # Of equally small others the first.
        ([5, 5, 1, 5], [0, 1, 2, 3], [2, 0, 2, 0]),
        ([1, 1, 1, 0], [0, 0, 1, 1], [2, 2, 2]),
        ([1, 1, 2, 0], [0, 0, 1, 1], [1, 1, 0]),
    ],
)
def test_rare_children_come_together(sizes: list[int], parents: list[int], levels: list[int]) -> None:
    assert mondrian(one_attribute(sizes, parents), 2).levels[:, 0].tolist() == levels


def test_the_median_is_where_the_smaller_side_is_largest() -> None:
    """Most rows have the greatest value: the cut is before it. Planted: only a cut after the median is tried."""
    assert mondrian(one_attribute([2, 4, 0, 0], [0, 0, 1, 1]), 2, ordered=[True]).levels[:, 0].tolist() == [0, 0]


def test_of_attributes_that_are_equally_wide_the_first_is_cut() -> None:
    """Either could be; after it, neither part has rows enough to cut the other."""
    star = np.array([[0, 0], [1, 0]], dtype=np.int32)
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.int32)
    measured = Measured.of(FullDomain.of([star, star], corners, np.ones(4, dtype=np.int64)))
    for ordered in (True, False):
        assert mondrian(measured, 2, ordered=[ordered] * 2).levels.tolist() == [[0, 1]] * 4


def test_an_ordered_attribute_is_as_wide_as_its_values_reach() -> None:
    """Values 3 and 4 of 8 have the root in common, and reach over a quarter; the other attribute is half as wide."""
    halves = np.array([[code, code // 4, 0] for code in range(8)], dtype=np.int32)
    records = np.array([[3, 0], [3, 1], [4, 0], [4, 1]], dtype=np.int32)
    pairs = np.array([[code, code // 2, 0] for code in range(4)], dtype=np.int32)
    measured = Measured.of(FullDomain.of([halves, pairs], records, np.ones(4, dtype=np.int64)))
    assert mondrian(measured, 2, ordered=[True, False]).levels.tolist() == [[2, 0]] * 4
    assert mondrian(measured, 2, ordered=[False, False]).levels.tolist() == [[0, 1]] * 4


@pytest.mark.parametrize("n_places", [7, 10**6])
def test_rows_are_counted_by_region_and_place_however_many_places_there_are(n_places: int) -> None:
    rng = np.random.default_rng(2)
    region, places = rng.integers(0, 5, 300), rng.integers(0, 7, 300).astype(np.int32) * (n_places // 7)
    rows = rng.integers(1, 9, 300)
    found = histogram(region, places, n_places, rows)
    expected: dict[tuple[int, int], int] = {}
    for one in range(300):
        at = int(region[one]), int(places[one])
        expected[at] = expected.get(at, 0) + int(rows[one])
    counted = zip(found.region.tolist(), found.place.tolist(), found.rows.tolist(), strict=True)
    assert [((r, p), n) for r, p, n in counted] == sorted(expected.items())
    assert (found.region.dtype, found.place.dtype, found.rows.dtype) == (np.int64, np.int32, np.int64)
