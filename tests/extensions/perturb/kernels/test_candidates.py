from __future__ import annotations

import naive_masking
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.candidates import (
    Bounds,
    Candidates,
    axis_bounds,
    axis_scores,
    candidates,
    comparisons,
    rank_bounds,
    rank_candidates,
    value_bounds,
)
from privrisk_spark.extensions.perturb.kernels.microaggregation import centroids, univariate_optimal
from privrisk_spark.extensions.perturb.kernels.rank_swapping import partners_within


def axis_candidates(known: np.ndarray, masked: np.ndarray, own: np.ndarray | None = None) -> Candidates:
    """Candidates after microaggregation with groups that are consecutive on each axis."""
    return candidates([axis_bounds(known[:, j], masked[:, j]) for j in range(known.shape[1])], masked, own=own)


def ranked(own: np.ndarray) -> Candidates:
    return rank_candidates(np.zeros((2, 1)), np.zeros((2, 1)), np.array([1]), own)


def rank_swapped(column: np.ndarray, width: int, generator: np.random.Generator) -> np.ndarray:
    """As a release does it: equal values ordered by words, NaN left where they are."""
    order = np.lexsort((generator.integers(0, 2**64, len(column), dtype=np.uint64), column))
    order = order[: np.count_nonzero(~np.isnan(column))]
    partner = partners_within(width, generator.integers(0, 2**64, len(order), dtype=np.uint64))
    masked = column.copy()
    masked[order] = column[order][partner]
    return masked


def check(found: Candidates, expected: list[set[int]], own: np.ndarray) -> None:
    assert found.rows.tolist() == [len(one) for one in expected]
    assert found.only.tolist() == [next(iter(one)) if len(one) == 1 else -1 for one in expected]
    assert found.holds.tolist() == [int(i) in one for i, one in zip(own, expected, strict=True)]


@st.composite
def files(draw: st.DrawFn):
    n, a = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = generator.integers(0, draw(st.sampled_from([3, 10, 1000])), (n, a)).astype(np.float64)
    widths = [draw(st.integers(0, n)) for _ in range(a)]
    return values, widths, generator


@given(files())
@settings(max_examples=200)
def test_candidates_after_rank_swapping_are_those_of_the_definition(file) -> None:
    """And the true record is always one of them, whatever the ties."""
    values, widths, generator = file
    n = len(values)
    masked = np.column_stack([rank_swapped(values[:, j], w, generator) for j, w in enumerate(widths)])
    own = np.arange(n)
    found = rank_candidates(values, masked, np.array(widths), own)
    check(found, naive_masking.rank_candidates(values.tolist(), masked.tolist(), widths), own)
    assert found.holds.all()
    narrow = rank_candidates(values, masked, np.array([max(0, w - 1) for w in widths]), own)
    assert (narrow.rows <= found.rows).all()


def test_rank_candidates_by_hand() -> None:
    """One rank apart at most. 20 has the neighbours 10, 20, 30; with 2 known beside it, those among 1, 2, 3."""
    masked = np.array([[20.0, 1], [10, 3], [40, 2], [30, 4]])
    known = np.array([[20.0, np.nan], [20.0, 2.0], [20.0, 1.0], [25.0, np.nan], [99.0, np.nan], [np.nan, np.nan]])
    found = rank_candidates(known, masked, np.array([1, 1]), np.array([1, 1, 1, 2, 2, -1]))
    # 25 would stand between 20 and 30, and 99 above all: its neighbour below is 40.
    assert found.rows.tolist() == [3, 2, 1, 2, 1, 4]
    assert found.only.tolist() == [-1, -1, 0, -1, 2, -1]
    assert found.holds.tolist() == [True, True, False, False, True, False]
    assert rank_candidates(known[3:5], masked, np.array([0, 0])).rows.tolist() == [0, 0]


def test_missing_values_are_near_no_known_one() -> None:
    masked = np.array([[np.nan, 1.0], [5.0, 2.0], [np.nan, 3.0]])
    found = rank_candidates(np.array([[5.0, np.nan], [np.nan, 1.0]]), masked, np.array([3, 0]), np.array([1, 0]))
    assert found.rows.tolist() == [1, 1]
    assert found.only.tolist() == [1, 0]
    assert found.holds.all()
    nothing = np.full((2, 1), np.nan)
    assert rank_candidates(np.array([[1.0]]), nothing, np.array([1])).rows.tolist() == [0]
    assert axis_candidates(np.array([[1.0]]), nothing).rows.tolist() == [0]
    assert axis_candidates(np.array([[np.nan]]), nothing).rows.tolist() == [2]
    assert axis_candidates(np.array([[1.0], [np.nan]]), nothing[:0]).rows.tolist() == [0, 0]


@given(files(), st.integers(1, 5))
@settings(max_examples=200)
def test_the_true_record_is_a_candidate_after_microaggregation_of_each_attribute(file, k: int) -> None:
    values, _, generator = file
    values = values / 7  # centroids round
    n = len(values)
    k = min(k, n)
    masked = np.empty_like(values)
    for j in range(values.shape[1]):
        groups = univariate_optimal(values[:, j], k)
        masked[:, j] = centroids(values[:, j], groups)[groups]
    found = axis_candidates(values, masked, np.arange(n))
    assert found.holds.all()
    order = generator.permutation(n)
    again = axis_candidates(values[order], masked, order)
    assert again.rows.tolist() == found.rows[order].tolist()


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(-1, 7), st.integers(-1, 7)), min_size=1, max_size=6),
    st.data(),
)
def test_axis_candidates_are_those_of_the_definition(masked, known, data: st.DataObject) -> None:
    """Records that are alike count as often as they are there, written out or by their number."""
    expected = naive_masking.axis_candidates(known, masked)
    own = np.array(data.draw(st.lists(st.integers(0, len(masked) - 1), min_size=len(known), max_size=len(known))))
    file, mine = np.array(masked, dtype=np.float64), np.array(known, dtype=np.float64)
    check(axis_candidates(mine, file, own), expected, own)
    distinct, place, rows = np.unique(file, axis=0, return_inverse=True, return_counts=True)
    bounds = [axis_bounds(mine[:, j], file[:, j]) for j in range(2)]
    found = candidates(bounds, distinct, rows=rows, own=place.reshape(-1)[own])
    assert found.rows.tolist() == [len(one) for one in expected]
    assert found.holds.tolist() == [int(i) in one for i, one in zip(own, expected, strict=True)]


@given(st.integers(0, 2**32), st.integers(1, 4))
@settings(max_examples=150)
def test_windows_find_what_all_pairs_would(seed: int, a: int) -> None:
    """Missing values, values nobody has, empty bounds, cells and ranges, in any mixture."""
    pick = np.random.default_rng(seed)
    n, m = int(pick.integers(1, 30)), int(pick.integers(1, 12))
    masked = pick.integers(0, int(pick.integers(1, 6)) + 1, (n, a)).astype(np.float64)
    masked[pick.random((n, a)) < 0.15] = np.nan
    low = pick.integers(-1, 6, (m, a)).astype(np.float64)
    high = low + np.where(pick.random(a) < 0.5, 0, pick.integers(-1, 4, (m, a)))
    told = pick.random((m, a)) < 0.8
    own, rows = pick.integers(-1, n, m), pick.integers(1, 4, n)
    bounds = [Bounds(low[:, j], high[:, j], told[:, j]) for j in range(a)]
    found = candidates(bounds, masked, rows=rows, own=own)
    fits = (~told[:, None] | ((masked >= low[:, None]) & (masked <= high[:, None]))).all(axis=2)
    assert found.rows.tolist() == [int(rows[one].sum()) for one in fits]
    single = [int(np.flatnonzero(one)[0]) if rows[one].sum() == 1 else -1 for one in fits]
    assert found.only.tolist() == single
    assert found.holds.tolist() == [bool(i >= 0 and one[i]) for i, one in zip(own, fits, strict=True)]
    assert comparisons(bounds, masked) <= m * n * max(0, a - 1)


def test_what_is_compared_is_the_shortest_window() -> None:
    """A thousand ages, ranks and sexes: all pairs are 3 million comparisons; ranks of one sex are counted by none."""
    n = 1_000
    ages, sexes = np.arange(n, dtype=np.float64), np.arange(n) % 2.0
    masked = np.column_stack([ages, ages[::-1], sexes])
    near = rank_bounds(ages, masked[:, 0], 10)
    cells = value_bounds(sexes)
    assert comparisons([near, cells], masked[:, [0, 2]]) == 0
    assert candidates([near, cells], masked[:, [0, 2]]).rows[500] == 11
    # Of 21 ranks 10 or 11 are of one sex: only these are held against the other column.
    pairs = comparisons([near, rank_bounds(ages, masked[:, 1], 10), cells], masked)
    assert 9.5 * n <= pairs <= 11 * n


def test_what_is_masked_without_chance_leaves_its_very_value() -> None:
    masked = np.array([[10.0], [20.0], [0.1 + 0.2], [np.nan]])
    found = candidates([value_bounds(np.array([10.0, 0.3, 11.0, np.nan]))], masked, own=np.array([0, 2, 0, 3]))
    assert found.rows.tolist() == [1, 1, 0, 4]
    assert found.holds.tolist() == [True, True, False, True]


def test_an_axis_is_that_of_the_standardized_values() -> None:
    """Two attributes of correlation 1 in units a thousand times apart: the axis weighs both alike."""
    values = np.array([[0.0, 0], [1, 1000], [2, 2000], [np.nan, 5]])
    scores, of_masked = axis_scores(values, values[:2], np.array([1, 1, 1, 9]))
    deviation = np.sqrt(2 / 3)
    np.testing.assert_allclose(scores[:3], np.sqrt(2) * np.array([0, 1, 2]) / deviation)
    assert np.isnan(scores[3])
    assert of_masked.tolist() == scores[:2].tolist()
    weighed = axis_scores(values, values, np.array([2, 1, 1, 9]))[0]
    again = axis_scores(np.vstack([values, values[:1]]), values, np.ones(5, dtype=np.int64))[0]
    np.testing.assert_allclose(weighed, again[:4])
    assert np.isnan(axis_scores(values[3:], values, np.array([1]))[0]).all()


def test_axis_candidates_by_hand() -> None:
    """Centroids 2, 10, 20: a value of 4 is of 2 or 10, one of 10 of any, one of 1 of 2 alone, one of 25 of 20."""
    masked = np.array([2.0, 2, 10, 10, 10, 20, 20])[:, None]
    found = axis_candidates(np.array([[4.0], [10.0], [1.0], [25.0]]), masked, np.array([0, 5, 0, 2]))
    assert found.rows.tolist() == [5, 7, 2, 2]
    assert found.holds.tolist() == [True, True, True, False]


def test_centroids_equal_but_for_rounding_have_neighbours_on_both_sides() -> None:
    masked = np.array([[0.1], [0.1 + 0.2], [0.5]])
    assert axis_candidates(np.array([[0.3]]), masked, np.array([2])).rows.tolist() == [3]


def test_axis_candidates_after_projection() -> None:
    """Groups along an axis: scores of centroids are the means of scores."""
    generator = np.random.default_rng(6)
    points = generator.normal(size=(300, 3))
    axis = np.array([0.6, 0.0, 0.8])
    groups = univariate_optimal(points @ axis, 3)
    masked = centroids(points, groups)[groups]
    found = axis_candidates((points @ axis)[:, None], (masked @ axis)[:, None], np.arange(300))
    assert found.holds.all()
    assert found.rows.max() <= 3 * 5


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: rank_candidates(np.zeros((2, 1)), np.zeros((2, 2)), np.array([1])), "same attributes"),
        (lambda: rank_candidates(np.zeros((2, 1)), np.zeros((2, 1)), np.array([1, 2])), "one width"),
        (lambda: rank_candidates(np.zeros((2, 1)), np.zeros((2, 1)), np.array([-1])), "one width"),
        (lambda: rank_candidates(np.zeros((2, 0)), np.zeros((2, 0)), np.array([], dtype=int)), "same attributes"),
        (lambda: ranked(np.array([0, 2])), "one masked record"),
        (lambda: ranked(np.array([0])), "one masked record"),
    ],
)
def test_files_that_do_not_fit_are_refused(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
