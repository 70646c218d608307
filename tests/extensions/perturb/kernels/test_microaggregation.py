from __future__ import annotations

from fractions import Fraction

import naive_masking
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.microaggregation import (
    block_of_rank,
    blocks_along_first_axis,
    centroids,
    first_axis,
    information_loss,
    mdav,
    univariate_optimal,
    v_mdav,
    within_sum_of_squares,
)

COARSE = st.integers(-3, 3).map(float)
"""Many ties."""

FINE = st.integers(-(2**20), 2**20).map(lambda value: value / 1024)
"""Sums of these are exact, so that a mean is the same however it is added up."""


@st.composite
def points_and_k(draw: st.DrawFn, largest: int = 40):
    p = draw(st.integers(1, 4))
    value = draw(st.sampled_from([COARSE, FINE]))
    rows = draw(st.lists(st.lists(value, min_size=p, max_size=p), min_size=1, max_size=largest))
    k = draw(st.integers(1, min(len(rows), 6)))
    return np.array(rows), k


def as_lists(groups: np.ndarray) -> list[list[int]]:
    return [np.flatnonzero(groups == g).tolist() for g in range(int(groups.max()) + 1)]


def sets(groups: np.ndarray) -> set[frozenset[int]]:
    return {frozenset(group) for group in as_lists(groups)}


@given(points_and_k())
@settings(max_examples=300)
def test_mdav_takes_the_steps_of_the_paper(drawn) -> None:
    points, k = drawn
    groups = mdav(points, k)
    assert as_lists(groups) == [sorted(group) for group in naive_masking.mdav(points.tolist(), k)]
    sizes = np.bincount(groups)
    assert k <= sizes.min() <= sizes.max() < 2 * k or len(points) < 2 * k


def test_mdav_of_many_points_takes_the_steps_of_the_paper() -> None:
    """A tree several boxes deep, with duplicates, an attribute of one value, and far points."""
    generator = np.random.default_rng(3)
    points = np.round(generator.standard_cauchy((400, 4)) * 8) / 8
    points[:, 2] = 1.0
    points[200:] = points[:200]
    for k in (2, 5):
        assert as_lists(mdav(points, k)) == [sorted(group) for group in naive_masking.mdav(points.tolist(), k)]


@pytest.mark.parametrize("spread", ["ball", "skewed", "sphere", "grid"])
def test_mdav_of_thousands_of_points_is_that_of_comparing_with_every_point(spread: str) -> None:
    generator = np.random.default_rng(5)
    points = generator.normal(size=(3_000, 3))
    if spread == "skewed":
        points = np.exp(3 * points)
    if spread == "sphere":
        points /= np.sqrt((points**2).sum(axis=1))[:, None]
    if spread == "grid":
        points = np.rint(2 * points)
    points = np.rint(points * 1024) / 1024
    groups = np.full(len(points), -1)
    formed = 0

    def squares(centre: np.ndarray) -> np.ndarray:
        gaps = points[left] - centre
        return np.asarray((gaps[:, 0] ** 2 + gaps[:, 1] ** 2) + gaps[:, 2] ** 2)

    while len(left := np.flatnonzero(groups < 0)) >= 6:
        outer = points[left[np.argmax(squares(points[left].sum(axis=0) / len(left)))]]
        for turn in range(2 if len(left) >= 9 else 1):
            left = np.flatnonzero(groups < 0)
            centre = outer if turn == 0 else points[left[np.argmax(squares(outer))]]
            groups[left[np.argsort(squares(centre), kind="stable")[:3]]] = formed
            formed += 1
    groups[left] = formed
    assert mdav(points, 3).tolist() == groups.tolist()


def test_mdav_by_hand() -> None:
    """0 1 2 10 11 12 20 21 22, k = 3: the mean is 11, 0 and 22 are 11 away, and 0 comes first; the farthest from 0 is
    22; three are left. With a tenth value 13 the same, and four are left."""
    line = np.array([0.0, 1, 2, 10, 11, 12, 20, 21, 22])[:, None]
    assert mdav(line, 3).tolist() == [0, 0, 0, 2, 2, 2, 1, 1, 1]
    # Mean 112 / 10 = 11.2: 0 is 11.2 away, 22 is 10.8.
    assert mdav(np.append(line, [[13.0]], axis=0), 3).tolist() == [0, 0, 0, 2, 2, 2, 1, 1, 1, 2]
    # 0 1 2 10 10 11 12, from 2 k on: the mean is 46 / 7 = 6.6, the farthest from it 0; the rest is one group.
    assert mdav(line[[0, 1, 2, 3, 3, 4, 5]], 3).tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_the_mean_of_what_is_left_forgets_what_was_far() -> None:
    """Beside 2^40, numbers of some 2^-20 are lost in a sum of float64; when it is gone they have their mean again.

    k = 2: the two far pairs first. Of 1 5 6 6 7 7 the mean is 5.3, and 1 the farthest; of 0 it would be 7.
    """
    far, near = 2.0**40, 2.0**-20
    line = np.array([far, far, near, 5 * near, 6 * near, 6 * near, 7 * near, 7 * near, -far, -far])
    assert mdav(line[:, None], 2).tolist() == [0, 0, 2, 2, 4, 4, 3, 3, 1, 1]


def test_fewer_than_2k_points_are_one_group() -> None:
    points = np.arange(10.0).reshape(5, 2)
    assert mdav(points, 3).tolist() == [0] * 5
    assert v_mdav(points, 5, 1.0).tolist() == [0] * 5


@given(points_and_k(), st.sampled_from([0.0, 0.2, 1.0, 1.1, 5.0]))
@settings(max_examples=300)
def test_v_mdav_takes_the_steps_of_the_paper(drawn, gamma: float) -> None:
    points, k = drawn
    groups = v_mdav(points, k, gamma)
    assert as_lists(groups) == [sorted(group) for group in naive_masking.v_mdav(points.tolist(), k, gamma)]
    assert np.bincount(groups).min() >= k


def test_v_mdav_grows_groups_that_mdav_cuts() -> None:
    """Four points, then three, far apart: k = 3 and gamma = 1 give both whole."""
    line = np.array([0.0, 1, 2, 3, 50, 51, 52])[:, None]
    assert sets(v_mdav(line, 3, 1.0)) == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6})}
    assert sets(v_mdav(line, 3, 0.0)) == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6})}  # 3 is left, and joins
    longer = np.append(line, [[4.0]], axis=0)
    assert sorted(np.bincount(v_mdav(longer, 3, 1.1)).tolist()) == [3, 5]


@given(st.lists(st.one_of(COARSE, FINE), min_size=1, max_size=11), st.integers(1, 4))
@settings(max_examples=200)
def test_no_way_to_group_one_attribute_loses_less(values: list[float], k: int) -> None:
    k = min(k, len(values))
    groups = univariate_optimal(np.array(values), k)
    loss = sum((naive_masking.sum_of_squares([values[i] for i in group]) for group in as_lists(groups)), Fraction())
    least, _ = naive_masking.least_loss(values, k)
    assert loss <= least * (1 + Fraction(1, 10**12))
    sizes = np.bincount(groups)
    assert k <= sizes.min() <= sizes.max() < 2 * k
    order = np.argsort(values, kind="stable")
    assert (np.diff(groups[order]) >= 0).all()


def test_of_equally_good_ways_the_last_group_is_the_smaller() -> None:
    """0 1 2 3 4, k = 2: sizes 2, 3 and 3, 2 both lose 1/2 + 2. Equal values are grouped as they come."""
    least, ways = naive_masking.least_loss([0, 1, 2, 3, 4], 2)
    assert least == Fraction(5, 2)
    assert set(ways) == {(2, 3), (3, 2)}
    assert univariate_optimal(np.arange(5.0), 2).tolist() == [0, 0, 0, 1, 1]
    assert univariate_optimal(np.array([7.0, 5, 7, 7, 7]), 2).tolist() == [0, 0, 1, 1, 1]


def test_univariate_optimal_by_hand() -> None:
    """1 2 3 11 12 13 14, k = 3: 2 within the first three, and 5 within the last four."""
    values = np.array([12.0, 1, 13, 2, 14, 3, 11])
    groups = univariate_optimal(values, 3)
    assert groups.tolist() == [1, 0, 1, 0, 1, 0, 1]
    assert within_sum_of_squares(values, groups) == 7.0
    # About the mean 8: 49 + 36 + 25 + 9 + 16 + 25 + 36.
    assert information_loss(values, groups) == 7 / 196


@given(points_and_k())
@settings(max_examples=100)
def test_means_are_kept_and_losses_are_shares(drawn) -> None:
    points, k = drawn
    groups = mdav(points, k)
    means = centroids(points, groups)
    for g, group in enumerate(as_lists(groups)):
        np.testing.assert_allclose(means[g], naive_masking.average(points[group].tolist()), atol=1e-12, rtol=1e-12)
    np.testing.assert_allclose(means[groups].mean(axis=0), points.mean(axis=0), atol=1e-9)
    assert 0 <= information_loss(points, groups) <= 1 + 1e-12
    assert information_loss(points, np.arange(len(points))) == 0


def test_the_mean_of_equal_values_is_that_value() -> None:
    """0.1 + 0.1 + 0.1 is 0.30000000000000004."""
    groups = np.zeros(3, dtype=np.int64)
    assert centroids(np.full((3, 1), 0.1), groups).tolist() == [[0.1]]
    assert centroids(np.full(3, 0.1), groups).tolist() == [0.1]
    assert within_sum_of_squares(np.full(3, 0.1), groups) == 0
    assert information_loss(np.full(3, 0.1), groups) == 0


@pytest.mark.parametrize("method", [mdav, lambda points, k: v_mdav(points, k, 1.1)], ids=["mdav", "v_mdav"])
def test_groups_do_not_depend_on_place_scale_or_order(method) -> None:
    """Shifts and scales by powers of two are exact; without ties the order of the records does not matter."""
    generator = np.random.default_rng(11)
    points = np.round(generator.normal(size=(120, 3)) * 2**20) / 2**20
    groups = method(points, 4)
    assert method(points * 8, 4).tolist() == groups.tolist()
    assert sets(method(points + 16, 4)) == sets(groups)
    order = generator.permutation(len(points))
    assert {frozenset(order[list(group)].tolist()) for group in sets(method(points[order], 4))} == sets(groups)


def test_groups_of_one_attribute_do_not_depend_on_place_scale_or_order() -> None:
    generator = np.random.default_rng(12)
    values = generator.permutation(np.round(generator.normal(size=200) * 2**20) / 2**20)
    groups = univariate_optimal(values, 5)
    assert univariate_optimal(values * 8 + 16, 5).tolist() == groups.tolist()
    order = generator.permutation(200)
    assert univariate_optimal(values[order], 5).tolist() == groups[order].tolist()
    assert within_sum_of_squares(values, groups) <= within_sum_of_squares(values, mdav(values[:, None], 5))


@given(st.integers(0, 500), st.integers(1, 40))
@settings(max_examples=100)
def test_blocks_are_consecutive_and_alike(n: int, size: int) -> None:
    blocks = block_of_rank(np.arange(n, dtype=np.int64), n, size)
    assert (np.diff(blocks) >= 0).all()
    sizes = np.bincount(blocks)
    if n >= size:
        assert size <= sizes.min() <= sizes.max() < 2 * size
        assert sizes.max() - sizes.min() <= 1
    else:
        assert len(sizes) <= 1


def test_blocks_along_an_axis_are_those_of_the_ranks() -> None:
    scores = np.array([3.0, 1.0, 2.0, 1.0, 0.0, 5.0])
    assert blocks_along_first_axis(scores, 2).tolist() == [2, 0, 1, 1, 0, 2]
    assert blocks_along_first_axis(scores, 9).tolist() == [0] * 6


def test_mdav_in_blocks_loses_more_but_keeps_sizes() -> None:
    generator = np.random.default_rng(4)
    points = generator.normal(size=(600, 3)) @ np.array([[2.0, 1, 0], [0, 1, 0], [0, 0, 0.5]])
    axis = first_axis(np.corrcoef(points.T))
    blocks = blocks_along_first_axis(points @ axis, 60)
    groups = np.empty(600, dtype=np.int64)
    before = 0
    for block in range(10):
        inside = np.flatnonzero(blocks == block)
        found = mdav(points[inside], 3)
        groups[inside] = found + before
        before += int(found.max()) + 1
    sizes = np.bincount(groups)
    assert 3 <= sizes.min() <= sizes.max() < 6
    exact = information_loss(points, mdav(points, 3))
    assert exact < information_loss(points, groups) < 4 * exact


def test_the_first_axis_is_that_of_greatest_spread_and_has_one_sign() -> None:
    """Correlations 1, r: the axis is the diagonal, or the other one for r < 0."""
    np.testing.assert_allclose(first_axis(np.array([[1, 0.5], [0.5, 1]])), [0.5**0.5, 0.5**0.5])
    axis = first_axis(np.array([[1, -0.5], [-0.5, 1]]))
    np.testing.assert_allclose(np.abs(axis), [0.5**0.5, 0.5**0.5])
    assert axis[np.argmax(np.abs(axis))] > 0
    assert axis[0] * axis[1] < 0


NAN = np.array([[0.0], [np.nan]])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: mdav(np.zeros((3, 2)), 4), "at most the number of records"),
        (lambda: mdav(np.zeros((3, 2)), 0), "at least 1"),
        (lambda: mdav(np.zeros((0, 2)), 1), "number of records"),
        (lambda: mdav(np.zeros((3, 0)), 1), "at least one attribute"),
        (lambda: mdav(NAN, 1), "must be finite"),
        (lambda: mdav(np.array([[1e151], [0.0]]), 1), "in amount"),
        (lambda: v_mdav(NAN, 1, 0.5), "must be finite"),
        (lambda: v_mdav(np.zeros((3, 2)), 2, -1.0), "gamma"),
        (lambda: v_mdav(np.zeros((3, 2)), 2, np.inf), "gamma"),
        (lambda: univariate_optimal(NAN[:, 0], 1), "must be finite"),
        (lambda: univariate_optimal(np.zeros(3), 4), "k must"),
        (lambda: centroids(np.zeros((3, 1)), np.array([0, 0])), "one group"),
        (lambda: centroids(np.zeros((2, 1)), np.array([0, 2])), "no member"),
        (lambda: centroids(np.zeros((2, 1)), np.array([0, -1])), "one group"),
        (lambda: first_axis(np.zeros((2, 3))), "square"),
        (lambda: block_of_rank(np.array([5]), 5, 2), "ranks must be"),
        (lambda: block_of_rank(np.array([0]), 5, 0), "at least 1"),
        (lambda: blocks_along_first_axis(np.array([np.nan]), 2), "must be finite"),
    ],
)
def test_what_cannot_be_grouped_is_refused(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
