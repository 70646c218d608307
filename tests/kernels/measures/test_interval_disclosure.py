from __future__ import annotations

import itertools
import json
import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privrisk_spark.errors import InputError
from privrisk_spark.json_values import as_json, from_json
from privrisk_spark.kernels.measures.interval_disclosure import (
    Deviation,
    IntervalTally,
    RankBlock,
    Ranks,
    both_known,
    rid,
    within,
)
from privrisk_spark.kernels.numeric.exact_sums import (
    ExactMean,
    exact_dot,
    exact_total,
    weighted_square_total,
    weighted_total,
)

NAN = math.nan
numbers = st.sampled_from([-2.5, -1.0, -0.0, 0.0, 0.25, 1.0, 1.25, 2.0, 3.0, 7.5, 1e9, NAN])
pairs_of = st.lists(st.tuples(numbers, numbers), max_size=14)
percentages = st.sampled_from([0.0, 0.1, 0.3, 1.0, 5.0, 10.0, 12.5, 33.3, 50.0, 99.9, 100.0])


def sdid(original: np.ndarray, masked: np.ndarray, p: float) -> np.ndarray:
    """Disclosure by the standard deviation, as a run compares it."""
    return within(original, masked, Deviation.of(original).width(p))


def columns(pairs: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([v for v, _ in pairs], dtype=np.float64), np.array([m for _, m in pairs], dtype=np.float64)


def naive_rid(pairs: list[tuple[float, float]], p: float) -> list[bool]:
    """Record by record, as the algorithm is printed but for the clamps."""
    ranked = sorted(m for _, m in pairs if not math.isnan(m))
    n = len(ranked)
    w = Fraction(str(p)) * n / 2 / 100
    found = []
    for v, m in pairs:
        if math.isnan(v) or math.isnan(m):
            found.append(False)
            continue
        places = [j for j, other in enumerate(ranked) if other == m]
        i = Fraction(places[0] + places[-1], 2)
        within = [j for j in range(n) if abs(j - i) <= w] or [math.floor(i), math.ceil(i)]
        found.append(ranked[min(within)] <= v <= ranked[max(within)])
    return found


def blocks_of(masked: np.ndarray, cuts: list[int]) -> list[RankBlock]:
    values, rows = np.unique(masked[~np.isnan(masked)] + 0.0, return_counts=True)
    bounds = [0, *sorted(min(cut, len(values)) for cut in cuts), len(values)]
    blocks, offset = [], 0
    for low, high in itertools.pairwise(bounds):
        blocks.append(RankBlock.of(values[low:high], rows[low:high], offset))
        offset += int(rows[low:high].sum())
    return blocks


@given(pairs_of, percentages)
def test_rid_is_that_of_a_loop(pairs, p):
    assert rid(*columns(pairs), p).tolist() == naive_rid(pairs, p)


@given(pairs_of, percentages, st.lists(st.integers(0, 12), max_size=5), st.integers(0, 2**32))
def test_no_blocking_and_no_order_changes_rid(pairs, p, cuts, seed):
    original, masked = columns(pairs)
    ranks = Ranks(blocks_of(masked, cuts))
    wanted = rid(original, masked, p)
    assert rid(original, masked, p, ranks=ranks).tolist() == wanted.tolist()
    order = list(range(len(pairs)))
    random.Random(seed).shuffle(order)
    assert rid(original[order], masked[order], p, ranks=ranks).tolist() == wanted[order].tolist()
    everything = sorted(m for _, m in pairs if not math.isnan(m))
    positions = np.arange(ranks.n)
    assert ranks.at(positions).tolist() == everything
    block, index = ranks.locate(positions)
    assert [ranks.blocks[b].values[i] for b, i in zip(block, index, strict=True)] == everything


def test_rid_by_hand():
    """|X| = 10, p = 40: w = 2. The record masked as 30 stands at position 2: ranks 0 to 4, values 10 to 50."""
    masked = np.arange(10, 110, 10).astype(np.float64)
    original = masked.copy()
    original[2] = 50.0
    assert rid(original, masked, 40)[2]
    original[2] = 50.5
    assert not rid(original, masked, 40)[2]
    assert rid(original, masked, 41)[2] == rid(original, masked, 40)[2], "between two ranks: inwards"
    assert rid(original, masked, 60)[2], "w = 3: up to rank 5"
    # The clamps as printed in the source would index R[-2] and R[|X| + 1].
    original[0], original[9] = 30.0, 80.0
    assert rid(original, masked, 40)[[0, 9]].tolist() == [True, True]
    original[0], original[9] = 30.5, 79.5
    assert rid(original, masked, 40)[[0, 9]].tolist() == [False, False]


def test_ties_stand_in_the_middle():
    """5 stands at positions 1 to 4, so at 2.5; 9 at position 5. With |X| = 6 and p = 50, w = 1.5: ranks 1 to 4."""
    masked = np.array([1.0, 5.0, 5.0, 5.0, 5.0, 9.0])
    original = np.array([1.0, 1.0, 4.9, 5.0, 5.1, 9.0])
    assert rid(original, masked, 50).tolist() == [True, False, False, True, False, True]
    # From p = 250/3 on, w >= 2.5 and the ranks are 0 to 5.
    assert rid(original, masked, 84).tolist() == [True] * 6
    assert rid(original, masked, 83).tolist() == rid(original, masked, 50).tolist()


def test_a_percentage_is_the_decimal_it_prints_as():
    """0.6 percent of 1000 is 6, though the float64 0.6 is less: w = 3, and the interval is i - 3 … i + 3."""
    masked = np.arange(1000.0)
    assert rid(masked + 3, masked, 0.6)[:-3].all()
    assert not rid(masked + 4, masked, 0.6).any()
    assert not rid(masked + 3, masked, 0.599).any()


@given(pairs_of, percentages)
def test_an_identical_release_discloses_every_record_that_is_compared(pairs, p):
    masked = columns(pairs)[1]
    known = both_known(masked, masked)
    assert rid(masked, masked, p).tolist() == known.tolist()
    if np.isfinite(masked[known]).all():
        assert sdid(masked, masked, p).tolist() == known.tolist()


@given(pairs_of, percentages, percentages)
def test_a_wider_interval_discloses_more(pairs, p, q):
    original, masked = columns(pairs)
    low, high = min(p, q), max(p, q)
    assert not (rid(original, masked, low) & ~rid(original, masked, high)).any()
    assert not (sdid(original, masked, low) & ~sdid(original, masked, high)).any()


@given(pairs_of, percentages)
def test_rid_sees_only_ranks_and_sdid_only_differences(pairs, p):
    original, masked = columns(pairs)
    assert rid(8 * original + 16, 8 * masked + 16, p).tolist() == rid(original, masked, p).tolist()
    assert rid(-original, -masked, p).tolist() == rid(original, masked, p).tolist()
    assert rid(original**3, masked**3, p).tolist() == rid(original, masked, p).tolist()
    assert sdid(16 - original, 16 - masked, p).tolist() == sdid(original, masked, p).tolist()


@given(st.lists(st.tuples(numbers, numbers), max_size=14), st.sampled_from([0.0, 0.3, 1.0, 50.0, 100.0, 250.0]))
@example([(0.0, 1.0), (2.0, 2.0)], 100.0)  # sd = 1: at the edge
@example([(0.0, 0.5), (2.0, 1.5)], 50.0)
def test_sdid_is_that_of_a_loop(pairs, p):
    original, masked = columns(pairs)
    present = [Fraction(v) for v, _ in pairs if not math.isnan(v)]
    n = len(present)
    mean = sum(present, Fraction()) / n if n else Fraction()
    variance = sum(((v - mean) ** 2 for v in present), Fraction()) / n if n else Fraction()
    assert Deviation.of(original).variance == variance
    wanted = [
        not math.isnan(v)
        and not math.isnan(m)
        and (Fraction(v) - Fraction(m)) ** 2 <= (Fraction(str(p)) / 100) ** 2 * variance
        for v, m in pairs
    ]
    assert sdid(original, masked, p).tolist() == wanted


@given(st.floats(0, 1e12), st.floats(-1e12, 1e12, allow_subnormal=True), st.sampled_from([0.1, 1.0, 77.0, 300.0]))
@example(5e-324, 0.0, 100.0)
@example(1e-310, 3e-310, 1.0)
@example(1.7e308, -1.7e308, 300.0)
def test_the_width_is_the_largest_float_below_the_bound(a, b, p):
    deviation = Deviation.of(np.array([a, b]))
    square = (Fraction(str(p)) / 100) ** 2 * deviation.variance
    width = deviation.width(p)
    assert Fraction(width) ** 2 <= square
    above = math.nextafter(width, math.inf)
    assert math.isinf(above) or Fraction(above) ** 2 > square


@given(pairs_of, st.integers(1, 4), st.integers(0, 2**32))
def test_parts_are_put_together_exactly(pairs, parts, seed):
    pick = random.Random(seed)
    original, masked = columns(pairs)
    times = np.array([pick.choice([0, 1, 3, 10**15]) for _ in pairs], dtype=np.int64)
    disclosed = rid(original, masked, 10)
    owner = np.array([pick.randrange(parts) for _ in pairs], dtype=np.int64)
    tally, deviation = IntervalTally(), Deviation()
    for part in range(parts):
        here = owner == part
        one = IntervalTally.of(original[here], masked[here], disclosed[here], times[here])
        tally = tally.plus(from_json(IntervalTally, json.loads(json.dumps(as_json(one)))))
        other = Deviation.of(original[here], times[here])
        deviation = deviation.plus(from_json(Deviation, json.loads(json.dumps(as_json(other)))))
    assert tally == IntervalTally.of(original, masked, disclosed, times)
    assert deviation == Deviation.of(original, times)
    known = [not (math.isnan(v) or math.isnan(m)) for v, m in pairs]
    assert tally.missing == sum(int(t) for t, there in zip(times, known, strict=True) if not there)
    assert tally.compared + tally.missing == sum(times.tolist())
    counted = IntervalTally.of(original, masked, disclosed)
    assert counted.compared + counted.missing == len(pairs)
    assert counted.share == (sum(disclosed) / sum(known) if any(known) else 0.0)


def test_missing_values_are_counted_apart():
    original = np.array([1.0, NAN, 3.0, NAN, 5.0])
    masked = np.array([1.0, 2.0, NAN, NAN, 5.0])
    disclosed = rid(original, masked, 100)
    assert disclosed.tolist() == [True, False, False, False, True]
    assert IntervalTally.of(original, masked, disclosed) == IntervalTally(2, 2, 3)
    assert sdid(original, masked, 100).tolist() == [True, False, False, False, True]
    # Position 1 is that of the record that lacks V: |X| is 3, w = 0.99 and 1's interval reaches no other rank.
    assert rid(np.array([2.0, NAN, 5.0]), np.array([1.0, 2.0, 5.0]), 66).tolist() == [False, False, True]
    nothing = np.array([])
    assert rid(nothing, nothing, 5).tolist() == sdid(nothing, nothing, 5).tolist() == []
    assert rid(np.array([1.0]), np.array([NAN]), 5).tolist() == [False]


def test_what_does_not_fit_is_refused():
    one, two = np.array([1.0]), np.array([1.0, 2.0])
    with pytest.raises(InputError, match="between 0 and 100"):
        rid(one, one, 100.5)
    with pytest.raises(InputError, match="at least 0"):
        sdid(one, one, -1)
    with pytest.raises(InputError, match="one masked value"):
        rid(one, two, 5)
    with pytest.raises(InputError, match="among the ranked"):
        rid(two, two, 5, ranks=Ranks.plain(one))
    with pytest.raises(InputError, match="among the ranked"):
        rid(one - 5, one - 5, 5, ranks=Ranks.plain(one))
    with pytest.raises(InputError, match="finite"):
        Deviation.of(np.array([math.inf]))
    with pytest.raises(InputError, match="follow each other"):
        Ranks([RankBlock.of(two, np.array([1, 1])), RankBlock.of(two + 1, np.array([1, 1]), 2)])
    with pytest.raises(InputError, match="follow each other"):
        Ranks([RankBlock.of(two, np.array([1, 1])), RankBlock.of(two + 5, np.array([1, 1]), 3)])
    for values, rows in ((two[::-1], [1, 1]), (two, [1, 0]), (np.array([1.0, NAN]), [1, 1])):
        with pytest.raises(InputError):
            RankBlock.of(values, np.array(rows))


# ------------------------------------------------------------------------------------------- exact sums

reals = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True)
weights = st.sampled_from([0, 1, 2, 65535, 65536, 10**15, 2**62, 2**63 - 1])


@given(st.lists(st.tuples(reals, weights), max_size=10))
@example([(5e-324, 1), (-5e-324, 1), (1.5e-323, 3), (2.3e-308, 1)])
@example([(1.7976931348623157e308, 2**63 - 1)] * 3)
def test_sums_of_any_weight_are_exact(rows):
    values, times = np.array([v for v, _ in rows]), np.array([t for _, t in rows], dtype=np.int64)
    exact = sum((Fraction(v) * t for v, t in rows), Fraction())
    assert Fraction(weighted_total(values, times), 2**1074) == exact
    squares = sum((Fraction(v) ** 2 * t for v, t in rows), Fraction())
    assert Fraction(weighted_square_total(values, times), 2**2148) == squares
    weight = sum(t for _, t in rows)
    assert ExactMean.of(values, times).exact == (exact / weight if weight else 0)
    assert exact_total(times) == weight


@given(st.sampled_from([2, 2**12, 2**31, 2**40, 2**62]), st.sampled_from([2, 2**12, 2**29, 2**62]), st.data())
def test_products_are_exact(most, times, data):
    """Their sum fits a word, or two, or neither."""
    rows = data.draw(st.lists(st.tuples(st.integers(most - 2, most), st.integers(times - 2, times)), max_size=10))
    a, b = (np.array([row[i] for row in rows], dtype=np.int64) for i in (0, 1))
    assert exact_dot(a, b) == sum(x * y for x, y in rows)


def test_the_largest_chunk_does_not_overflow():
    n = 2**19 + 3
    value, time = 1 - 2**-53, 2**63 - 1
    values, times = np.full(n, value), np.full(n, time)
    assert Fraction(weighted_total(values, times), 2**1074) == Fraction(value) * time * n
    assert Fraction(weighted_square_total(values, times), 2**2148) == Fraction(value) ** 2 * time * n
    assert exact_dot(times, times) == time * time * n
    assert ExactMean.of(-values, times).mean == -value
