"""Supermodularity by unit squares against its definition, and the smallest counterexample."""

from __future__ import annotations

import itertools

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reproduce.sharing.proposition import (
    Counterexample,
    counts_over,
    second_differences,
    smallest_counterexample,
    squares_of,
)
from reproduce.sharing.sample import samples

LATTICES = st.lists(st.integers(1, 3), min_size=1, max_size=3).flatmap(
    lambda heights: st.tuples(st.just(heights), st.lists(st.tuples(*(st.integers(0, h) for h in heights)), max_size=5))
)


@pytest.mark.parametrize("consistency", ["all", "any"])
@given(LATTICES)
@settings(deadline=None)
def test_counts_are_those_of_the_definition(consistency, lattice) -> None:
    heights, friends = lattice
    rows = np.array(friends, dtype=np.int8).reshape(-1, len(heights))
    found = counts_over(heights, rows, consistency)
    for x in itertools.product(*(range(h + 1) for h in heights)):
        assert found[x] == naive_sharing.consistent(friends, heights, x, consistency)


@pytest.mark.parametrize("consistency", ["all", "any"])
@given(LATTICES)
@settings(deadline=None)
def test_unit_squares_decide_supermodularity(consistency, lattice) -> None:
    """``g(x ∨ y) + g(x ∧ y) >= g(x) + g(y)`` for all x and y; under 'any' just if no friend differs in everything."""
    heights, friends = lattice
    rows = np.array(friends, dtype=np.int8).reshape(-1, len(heights))
    g = counts_over(heights, rows, consistency)
    nodes = list(itertools.product(*(range(h + 1) for h in heights)))
    by_definition = all(
        g[tuple(map(max, x, y))] + g[tuple(map(min, x, y))] >= g[x] + g[y] for x, y in itertools.product(nodes, nodes)
    )
    assert all((square >= 0).all() for square in second_differences(g)) == by_definition
    if consistency == "all":
        assert by_definition
    else:
        exposed = bool((rows > 0).all(axis=1).any()) and len(heights) >= 2
        assert by_definition == (not exposed)


def test_the_smallest_counterexample_is_one_friend_who_differs_in_two_attributes() -> None:
    assert smallest_counterexample("any") == Counterexample((1, 1), ((1, 1),), (0, 1, 1, 1))
    assert smallest_counterexample("all") is None


def test_squares_of_pairs_are_counted_one_by_one() -> None:
    """Every lattice of a sample by loops, with what the theorem maximizes."""
    ((_, sample),) = samples(300, (4,), 25, 5)
    pairs = sample.pairs
    for found in squares_of(4, sample):
        below = above = total = violated = numerator = 0
        several = exposed = 0
        for p in range(pairs.n):
            has = np.flatnonzero(pairs.heights[p])
            heights = pairs.heights[p][has].tolist()
            friends = pairs.agreements[pairs.first[p] : pairs.first[p + 1]][:, has].tolist()
            if len(has) < 2:
                continue
            several += 1
            exposed += any(all(g > 0 for g in friend) for friend in friends)
            if np.prod([h + 1 for h in heights]) > 4096:
                continue

            def xi(x, heights=heights, friends=friends, of=found.consistency):
                return naive_sharing.consistent(friends, heights, x, of)

            def f(x, p=p, has=has, heights=heights, friends=friends, of=found.consistency):
                of_level = (pairs.weights, pairs.utilities)
                phi, u = (sum(v[p, i, s] for i, s in zip(has, x, strict=True)) for v in of_level)
                return naive_sharing.consistent(friends, heights, x, of) + phi * u

            bad = 0
            for x in itertools.product(*(range(h + 1) for h in heights)):
                for i, j in itertools.combinations(range(len(heights)), 2):
                    if x[i] == heights[i] or x[j] == heights[j]:
                        continue
                    a, b, ab = (tuple(s + (axis in of) for axis, s in enumerate(x)) for of in ((i,), (j,), (i, j)))
                    total += 1
                    bad += xi(x) + xi(ab) < xi(a) + xi(b)
                    above += xi(x) + xi(ab) > xi(a) + xi(b)
                    numerator += f(x) + f(ab) < f(a) + f(b) - 1e-7
            below += bad
            violated += bad > 0
        assert (found.squares, found.below, found.above, found.violated) == (total, below, above, violated)
        assert (found.numerator, found.falls) == (numerator, 0)
        assert (found.exposed, found.all_pairs) == (exposed, several)
        assert 0 < found.pairs <= several
        assert (found.below > 0) == (found.consistency == "any")
