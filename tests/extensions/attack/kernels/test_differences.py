from __future__ import annotations

import math
from dataclasses import replace

import naive_linkage
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.differences import LevelDifference, NumberDifference, standard_units
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.hierarchies.hierarchy import Hierarchy


@given(hierarchies(max_leaves=7, max_depth=4))
def test_levels_are_those_of_paths(tree: Hierarchy) -> None:
    nodes = np.arange(tree.n_nodes, dtype=np.int32)
    found = LevelDifference(tree.at_depth, tree.n_under, nodes).of(nodes)
    expected = [[naive_linkage.level_difference(tree, a, b) for b in nodes] for a in nodes]
    np.testing.assert_allclose(found, expected, atol=1e-15)
    assert (found == found.T).all()
    assert (found <= 1).all()


@given(hierarchies(max_leaves=7, max_depth=4))
def test_drawn_levels_are_means_over_all_leaves(tree: Hierarchy) -> None:
    nodes = np.arange(tree.n_nodes, dtype=np.int32)
    found = LevelDifference(tree.at_depth, tree.n_under, nodes, "uniform").of(nodes)
    expected = [[naive_linkage.drawn_difference(tree, a, b) for b in nodes] for a in nodes]
    np.testing.assert_allclose(found, expected, atol=1e-14)
    nearest = LevelDifference(tree.at_depth, tree.n_under, nodes).of(nodes)
    assert (nearest <= found + 1e-15).all()


def test_levels_have_no_middle() -> None:
    tree = Hierarchy.from_paths("a", [("x",), ("y",)])
    with pytest.raises(InputError, match="have no middle"):
        LevelDifference(tree.at_depth, tree.n_under, np.array([0], dtype=np.int32), "midpoint")


def test_levels_by_hand() -> None:
    """Months below years: two days of a month are 1/3 apart, of a year 2/3, else 1; a year covers its days."""
    tree = Hierarchy.from_paths(
        "day",
        [("1 May 06", "May 06", "06"), ("2 May 06", "May 06", "06"), ("1 June 06", "June 06", "06"), ("7", "8", "9")],
    )
    of = {label: node for node, label in enumerate(tree.labels)}
    cells = [of[label] for label in ("1 May 06", "2 May 06", "1 June 06", "7", "May 06", "June 06", "06", "*")]
    found = LevelDifference(tree.at_depth, tree.n_under, np.array(cells, dtype=np.int32)).of(
        np.array([of["1 May 06"]], dtype=np.int32)
    )
    np.testing.assert_allclose(found[0], [0, 1 / 3, 2 / 3, 1, 0, 2 / 3, 0, 0], atol=1e-15)


def test_one_level_is_the_same_or_not() -> None:
    tree = Hierarchy.from_paths("a", [("x",), ("y",)])
    both = np.array([0, 1], dtype=np.int32)
    assert LevelDifference(tree.at_depth, tree.n_under, both).of(both).tolist() == [[0, 1], [1, 0]]


def test_cells_that_are_no_nodes_are_refused() -> None:
    tree = Hierarchy.from_paths("a", [("x",), ("y",)])
    for nodes in ([3], [-1]):
        with pytest.raises(InputError, match="a node of its hierarchy"):
            LevelDifference(tree.at_depth, tree.n_under, np.array(nodes, dtype=np.int32))


ENDS = np.array([[3, 3], [2, 4], [5, 9], [-math.inf, 1], [math.nan, math.nan], [-math.inf, math.inf]], dtype=np.float64)
"""Nodes that stand for 3, [2, 4], [5, 9], at most 1, a missing value and any number."""


@pytest.mark.parametrize(
    ("reading", "of_number", "of_interval"),
    [
        ("nearest", [0, 0, 4, 4, 0, 0], [4, 1, 0, 16, 0, 0]),
        ("midpoint", [0, 0, 16, 4, 0, 0], [16, 16, 0, 16, 0, 0]),
        ("uniform", [0, 4 / 12, 16 + 16 / 12, 4, 0, 0], [16 + 16 / 12, 16 + 20 / 12, 32 / 12, 16, 0, 0]),
    ],
)
def test_numbers_by_hand(reading: str, of_number: list[float], of_interval: list[float]) -> None:
    """Of 3, and of [5, 9], against every node; a node without two ends is read by its nearest point."""
    nodes = np.arange(6, dtype=np.int32)
    difference = NumberDifference(ENDS[:, 0], ENDS[:, 1], nodes, reading)  # type: ignore[arg-type]
    found = difference.of(nodes)
    np.testing.assert_allclose(found[0], of_number, atol=1e-14)
    np.testing.assert_allclose(found[2], of_interval, atol=1e-14)
    assert found[4].tolist() == found[5].tolist() == [0] * 6
    assert (found == found.T).all()


@pytest.mark.parametrize(
    ("reading", "of_number", "of_unknown"), [("nearest", 0, 0), ("midpoint", 9, 0), ("uniform", 9 + 1, 1 + 1)]
)
def test_what_is_not_known_is_no_better_than_what_is(reading: str, of_number: float, of_unknown: float) -> None:
    """With the mean 6 and the deviation 1 a missing value is 9 + 1 from the number 3, if it is not the nearest."""
    nodes = np.arange(6, dtype=np.int32)
    difference = NumberDifference(ENDS[:, 0], ENDS[:, 1], nodes, reading, 6.0)  # type: ignore[arg-type]
    found = difference.of(nodes)
    np.testing.assert_allclose(found[0, 4:], of_number, atol=1e-14)
    np.testing.assert_allclose(found[4:, 4:], of_unknown, atol=1e-14)
    assert (found == found.T).all()


@given(st.floats(-50, 50), st.floats(0, 20), st.floats(-50, 50), st.floats(0, 30))
def test_uniform_draws_are_their_mean_square(low: float, width: float, other: float, other_width: float) -> None:
    """Against the middles of a hundred slices of each, whose error is a slice's width squared."""
    ends = np.array([[low, low + width], [other, other + other_width]])
    difference = NumberDifference(ends[:, 0], ends[:, 1], np.array([1], dtype=np.int32), "uniform")
    slices = (np.arange(100) + 0.5) / 100
    mine, theirs = low + width * slices, other + other_width * slices
    found = float(difference.of(np.array([0], dtype=np.int32))[0, 0])
    assert found == pytest.approx(float(np.mean((mine[:, None] - theirs[None, :]) ** 2)), abs=0.02)


def test_intervals_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="must not end before"):
        NumberDifference(np.array([2.0]), np.array([1.0]), np.array([0], dtype=np.int32))
    with pytest.raises(InputError, match="a node of its hierarchy"):
        NumberDifference(np.array([2.0]), np.array([2.0]), np.array([1], dtype=np.int32))


def test_standard_units() -> None:
    """0 once and 3 twice have the mean 2 and the deviation sqrt(2)."""
    mean, deviation = standard_units(np.array([0.0, 3.0, math.nan, math.inf, 7.0]), np.array([1, 2, 5, 5, 0]))
    assert (mean, deviation) == (2.0, pytest.approx(math.sqrt(2), abs=1e-15))
    assert standard_units(np.array([4.0]), np.array([9])) == (4.0, 1.0)
    assert standard_units(np.array([math.nan]), np.array([1])) == (0.0, 1.0)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=12), st.data())
def test_each_file_is_standardized_by_its_own(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    """By the letter of T20: ((a - mean a) / deviation a - (b - mean b) / deviation b)²."""
    mine, theirs = (np.array(of, dtype=float) for of in zip(*pairs, strict=True))
    values = np.arange(-9.0, 10)
    files = [(values - of.mean()) / (of.std() or 1.0) for of in (mine, theirs)]
    reading = data.draw(st.sampled_from(["nearest", "uniform", "midpoint"]))
    codes, known = (np.array([int(v) + 9 for v in of], dtype=np.int32) for of in (theirs, mine))
    difference = NumberDifference(files[1], files[1], codes, reading, 0.0, (files[0], files[0]))
    found = difference.of(known)
    for i, a in enumerate(mine):
        for j, b in enumerate(theirs):
            apart = (a - mine.mean()) / (mine.std() or 1) - (b - theirs.mean()) / (theirs.std() or 1)
            assert found[i, j] == pytest.approx(apart**2, abs=1e-9)
    # As points, with the other column the same: what a product of matrices finds is what the table finds.
    cells = np.unique(codes, return_inverse=True)
    searched = SearchedFile(
        (replace(difference, nodes=cells[0].astype(np.int32)),),
        np.ones(1),
        np.unique(cells[1])[:, None].astype(np.int32),
        np.bincount(cells[1]),
    )
    quick, slow = (replace(searched, as_points=way).linked(known[:, None]) for way in (True, False))
    assert quick.rows.tolist() == slow.rows.tolist()
    np.testing.assert_allclose(quick.distance, slow.distance, atol=1e-9)
