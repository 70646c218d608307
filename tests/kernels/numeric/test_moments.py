from __future__ import annotations

import itertools
import json
import math
import random
from bisect import bisect_right
from collections import Counter
from dataclasses import astuple
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privrisk_spark.kernels.numeric.fold import folded
from privrisk_spark.kernels.numeric.moments import Moments, risk_bins, risk_histogram, rows_by_level

UNIT = Fraction(1, 2**1074)
SMALLEST, LARGEST = 5e-324, np.finfo(np.float64).max
EXTREMES = [0.0, SMALLEST, 2.2250738585072014e-308, 2.225073858507201e-308, LARGEST, math.inf, 1.0, 0.1, 1 - 2**-53]

values_of = st.one_of(
    st.sampled_from(EXTREMES), st.floats(min_value=0, allow_nan=False, allow_infinity=True, allow_subnormal=True)
)
weighted = st.lists(st.tuples(values_of, st.integers(0, 2**31)), max_size=20)


def of(rows: list[tuple[float, int]]) -> Moments:
    values = np.array([value for value, _ in rows], dtype=np.float64)
    return Moments.of(values, np.array([n for _, n in rows], dtype=np.int64))


def mean_of(rows: list[tuple[float, int]]) -> float:
    n = sum(times for _, times in rows)
    if not n:
        return 0.0
    if any(math.isinf(value) for value, times in rows if times):
        return math.inf
    return float(sum((Fraction(value) * times for value, times in rows), Fraction()) / n)


@given(weighted)
def test_sums_are_exact(rows):
    found = of(rows)
    present = [(value, times) for value, times in rows if times]
    finite = [(value, times) for value, times in present if math.isfinite(value)]
    assert found.total * UNIT == sum((Fraction(value) * times for value, times in finite), Fraction())
    assert found.n == sum(times for _, times in present)
    assert found.infinite == sum(times for value, times in present if math.isinf(value))
    assert found.least == min((value for value, _ in present), default=math.inf)
    assert found.most == max((value for value, _ in present), default=-math.inf)
    # Correctly rounded: the float nearest to the true mean, so also between the extremes.
    assert found.mean == mean_of(rows)
    if present:
        assert found.least <= found.mean <= found.most


@given(weighted, st.integers(0, 2**32), st.integers(1, 6))
def test_no_split_changes_them(rows, seed, parts):
    pick = random.Random(seed)
    order = list(rows)
    pick.shuffle(order)
    split: list[list[tuple[float, int]]] = [[] for _ in range(parts)]
    for value, times in order:
        # A value's times may be split, too.
        here = pick.randint(0, times)
        split[pick.randrange(parts)].append((value, here))
        split[pick.randrange(parts)].append((value, times - here))
    assert folded(Moments.empty(), [of(part) for part in split]) == of(rows)
    assert folded(Moments.empty(), []) == of([]) == Moments.empty()
    assert folded(Moments.empty(), [Moments(), of(rows), Moments()]) == of(rows)


@pytest.mark.parametrize("value", [LARGEST, 1 - 2**-53, 2.0**53 - 1, SMALLEST, 2.225073858507201e-308, 1 / 3])
def test_the_greatest_number_of_rows_does_not_overflow(value):
    """2^36 rows of a value with 53 ones in its significand, in one run and in several."""
    for times in ([2**36], [2**35, 2**35], [2**36 - 3, 1, 2]):
        found = of([(value, n) for n in times])
        assert found.total * UNIT == Fraction(value) * 2**36
        assert found.mean == value


def test_facts_survive_json():
    for rows in ([(LARGEST, 2**36)], [(math.inf, 1), (SMALLEST, 3)], []):
        assert Moments(*json.loads(json.dumps(astuple(of(rows))))) == of(rows)


# ------------------------------------------------------------------------------------------ histogram and levels


def literal(values: list[float], times: list[int]) -> list[int]:
    edges = risk_bins()
    found: Counter[int] = Counter()
    for value, n in zip(values, times, strict=True):
        found[min(bisect_right(edges, value), len(edges) - 1) - 1] += n
    return [found[i] for i in range(len(edges) - 1)]


def counted(values: list[float], times: list[int] | None = None) -> Any:
    of_value = times if times is not None else [1] * len(values)
    counts = risk_histogram(np.array(values), np.array(of_value, dtype=np.int64))
    assert counts.dtype == np.int64
    return counts.tolist()


def test_edges_are_half_decades_and_round_numbers_are_among_them():
    edges = risk_bins()
    assert (edges[0], edges[1], edges[-2], edges[-1]) == (0.0, 1e-9, 1e3, math.inf)
    assert list(edges) == sorted(set(edges))
    assert len(edges) == 2 * 12 + 1 + 2
    # 1/10, 1/100, … as risks are computed, and as they are written.
    assert {1 / 10**e for e in range(10)} | {float(f"1e{e}") for e in range(-9, 4)} <= set(edges)
    for below, above in itertools.pairwise(edges[1:-1]):
        assert above / below == pytest.approx(math.sqrt(10), rel=1e-14)


def test_an_edge_belongs_to_the_bin_above_it():
    edges = risk_bins()
    inner = list(edges[1:-1])
    for i, edge in enumerate(inner, 1):
        wanted = [0] * (len(edges) - 1)
        wanted[i] = 2
        wanted[i - 1] = 1
        assert counted([edge, math.nextafter(edge, math.inf), math.nextafter(edge, 0)]) == wanted
    ends = counted([0.0, SMALLEST, LARGEST, math.inf])
    assert (ends[0], ends[-1], sum(ends)) == (2, 2, 4)


@given(st.lists(st.tuples(st.floats(min_value=0, allow_nan=False), st.integers(0, 2**40)), max_size=30))
def test_bins_are_those_of_a_loop(rows):
    values, times = [value for value, _ in rows], [n for _, n in rows]
    assert counted(values, times) == literal(values, times)
    assert sum(counted(values, times)) == sum(times)


@given(
    st.integers(0, 4).flatmap(
        lambda height: st.tuples(
            st.just(height),
            st.lists(st.tuples(st.integers(0, height), st.booleans(), st.integers(0, 2**40)), max_size=20),
        )
    )
)
def test_suppressed_rows_count_at_the_height(case):
    height, rows = case
    levels = np.array([level for level, _, _ in rows], dtype=np.int8)
    suppressed = np.array([hidden for _, hidden, _ in rows], dtype=np.bool_)
    counts = rows_by_level(levels, suppressed, np.array([n for _, _, n in rows], dtype=np.int64), height)
    wanted: Counter[int] = Counter()
    for level, hidden, n in rows:
        wanted[height if hidden else level] += n
    assert counts.tolist() == [wanted[level] for level in range(height + 1)]
