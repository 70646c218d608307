"""The roundest number of a range, against a literal search; parts of the joint entropy, against their definition."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.kernels.numeric.combinations import combinations_of
from privrisk_spark.kernels.numeric.information import entropy_bits, joint_information
from privrisk_spark.kernels.numeric.round_cuts import round_cuts


def literal(low: int, high: int) -> Fraction:
    """The roundest number between two integers, step by step from the greatest."""
    if low <= 0 <= high:
        return Fraction(0)
    for exponent in range(8, -1, -1):
        for first in (5, 2, 1):
            step = first * 10**exponent
            multiples = [m * step for m in range(low // step, high // step + 2) if low <= m * step <= high]
            if multiples:
                middle = Fraction(low + high, 2)
                return Fraction(min(multiples, key=lambda m: (abs(m - middle), m)))
    raise AssertionError


@given(st.lists(st.tuples(st.integers(-5000, 5000), st.integers(0, 900)), min_size=1, max_size=8))
def test_cuts_are_the_roundest_of_their_ranges(ranges: list[tuple[int, int]]) -> None:
    low = np.array([a for a, _ in ranges], dtype=float)
    high = np.array([a + size for a, size in ranges], dtype=float)
    expected = sorted({float(literal(a, a + size)) for a, size in ranges})
    assert round_cuts(low, high).tolist() == expected


@pytest.mark.parametrize(("low", "high", "cut"), [(0.28, 0.33, 0.3), (1890.0, 2110.0, 2000.0), (37.4, 37.6, 37.5)])
def test_cuts_are_written_with_few_digits(low: float, high: float, cut: float) -> None:
    """2000 and not 1900; 37.5 as it is, and not 37.50000000000001."""
    assert round_cuts(np.array([low]), np.array([high])).tolist() == [cut]


def test_entropy_of_a_constant_is_nothing_and_of_a_fair_coin_one_bit() -> None:
    assert entropy_bits(np.array([7, 0])) == 0.0
    assert entropy_bits(np.array([3, 3])) == pytest.approx(1.0)


def test_what_two_columns_both_tell_is_divided_and_a_constant_gets_nothing() -> None:
    """Two fair bits, the first one twice, and a constant: 1/2 + 1/2 + 1 + 0 of two bits."""
    rows = np.array([(a, a, b, 0) for a, b in product((0, 1), repeat=2)] * 5)
    assert joint_information(rows).tolist() == pytest.approx([0.5, 0.5, 1.0, 0.0])


def test_three_that_tell_the_same_share_it() -> None:
    """In the order of the columns and backwards alone, the one in the middle would get nothing.

    Of the eight rotations, forwards and backwards, it comes first of the three in two, each of the others in three.
    """
    rows = np.array([(a, a, a, b) for a, b in product((0, 1), repeat=2)])
    assert joint_information(rows).tolist() == pytest.approx([3 / 8, 2 / 8, 3 / 8, 1.0])


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=40))
def test_parts_add_up_to_the_joint_entropy(rows: list[tuple[int, int, int]]) -> None:
    codes = np.array(rows, dtype=np.int64)
    joint = entropy_bits(np.array([rows.count(row) for row in set(rows)]))
    assert joint_information(codes).sum() == pytest.approx(joint)
    assert (joint_information(codes) >= 0).all()


@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3), min_size=1, max_size=40))
def test_combinations_are_those_of_a_set(rows: list[tuple[int, int, int]]) -> None:
    sets = [(0,), (0, 1), (1, 2), (0, 1, 2)]
    expected = [len({tuple(row[i] for i in one) for row in rows}) for one in sets]
    assert combinations_of(np.array(rows, dtype=np.int64), sets).tolist() == expected
