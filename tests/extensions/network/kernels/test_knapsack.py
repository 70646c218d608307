"""Knapsacks against all level vectors, with and without enough combinations to prove the answer."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privrisk_spark.extensions.network.kernels.knapsack import knapsack

AMOUNT = st.one_of(st.sampled_from([0.0, 0.1, 0.2, 0.3, 1.0, 1.5, 2.0, 7.0, 1e-300, 1e300]), st.floats(0, 10))
ROWS = st.lists(st.tuples(AMOUNT, AMOUNT, st.integers(0, 3)), max_size=6)
LIMIT = st.one_of(st.sampled_from([0.0, 0.3, 0.6, 1.0, 2.5]), st.floats(0, 60))


def total(values: list[float], levels: tuple[int, ...]) -> Fraction:
    return sum((Fraction(v) * x for v, x in zip(values, levels, strict=True)), Fraction())


def best_of_all(costs: list[float], worths: list[float], tops: list[int], limit: Fraction) -> Fraction:
    """The greatest worth of all levels that keep the limit."""
    every = itertools.product(*(range(top + 1) for top in tops))
    return max(total(worths, levels) for levels in every if total(costs, levels) <= limit)


def columns(rows: list[tuple[float, float, int]]) -> tuple[list[float], list[float], list[int]]:
    return [a for a, _, _ in rows], [b for _, b, _ in rows], [g for _, _, g in rows]


@given(ROWS, LIMIT, st.sampled_from([0, 3, 10_000]))
@settings(max_examples=500, deadline=None)
def test_knapsack_is_the_best_of_all_levels_or_its_bound_holds(
    rows: list[tuple[float, float, int]], limit: float, most_states: int
) -> None:
    costs, worths, tops = columns(rows)
    found = knapsack(
        np.array(costs), np.array(worths), np.array(tops, dtype=np.int8), Fraction(limit), most_states=most_states
    )
    levels = tuple(found.levels.tolist())
    assert all(0 <= x <= top for x, top in zip(levels, tops, strict=True))
    assert total(costs, levels) <= Fraction(limit)
    assert found.worth == total(worths, levels)
    best = best_of_all(costs, worths, tops, Fraction(limit))
    assert found.worth <= best <= found.bound
    if most_states == 10_000:
        assert found.worth == found.bound


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 3)), min_size=4, max_size=7), st.data())
@settings(max_examples=200, deadline=None)
def test_knapsack_of_whole_numbers_is_the_best_of_all_levels(rows: list[tuple[int, int, int]], data) -> None:
    """Small numbers, of which many combinations cost the same."""
    costs, worths, tops = columns([(float(a), float(b), g) for a, b, g in rows])
    limit = Fraction(data.draw(st.integers(0, 60)))
    found = knapsack(np.array(costs), np.array(worths), np.array(tops, dtype=np.int8), limit)
    assert found.worth == found.bound == best_of_all(costs, worths, tops, limit)


def test_knapsack_with_too_few_combinations_leaves_a_gap_and_with_enough_none() -> None:
    rng = np.random.default_rng(3)
    costs = rng.random(12)
    given_ = costs, costs, np.full(12, 3, dtype=np.int8), Fraction(7.3)
    few, many = knapsack(*given_, most_states=50), knapsack(*given_, most_states=500)
    assert few.worth <= many.worth <= many.bound <= few.bound == Fraction(7.3)
    assert few.worth < few.bound


def test_knapsack_fills_equal_entries_from_the_first_one() -> None:
    ones = np.ones(3)
    assert knapsack(ones, ones, np.full(3, 2, dtype=np.int8), Fraction(3)).levels.tolist() == [2, 1, 0]
    assert knapsack(np.zeros(2), np.array([0.0, 1.0]), np.full(2, 2, dtype=np.int8), Fraction(0)).levels.tolist() == [
        0,
        2,
    ]


@pytest.mark.parametrize("seed", range(3))
def test_knapsack_of_seventy_entries_is_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    costs, worths, tops = rng.random(70), rng.integers(1, 6, 70) / 2, rng.integers(1, 11, 70).astype(np.int8)
    found = knapsack(costs, worths, tops, Fraction(0.4 * float((costs * tops).sum())))
    assert found.worth == found.bound
