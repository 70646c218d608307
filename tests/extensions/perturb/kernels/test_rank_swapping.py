from __future__ import annotations

import itertools

import naive_masking
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.rank_swapping import (
    partners_within,
    swap_partners,
    swap_segments,
    swap_width,
    swapped,
)

WORD = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**64 - 1, 2**63, 2**32, 2**32 - 1]))


def words(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.uint64)


@given(st.lists(WORD, max_size=40), st.integers(0, 45))
@settings(max_examples=300)
def test_partners_are_drawn_as_the_paper_says(drawn: list[int], width: int) -> None:
    partner = partners_within(width, words(drawn))
    assert partner.tolist() == naive_masking.swap_partners(width, drawn)
    assert partner[partner].tolist() == list(range(len(drawn)))
    assert (np.abs(partner - np.arange(len(drawn))) <= width).all()


def test_partners_of_many_ranks() -> None:
    drawn = np.random.default_rng(2).integers(0, 2**64, 3_000, dtype=np.uint64)
    for width in (1, 7, 64, 900):
        assert partners_within(width, drawn).tolist() == naive_masking.swap_partners(width, drawn.tolist())


def law_is(law, n: int, width: int) -> bool:
    """Whether many files of n ranks are swapped by this law: one long file's segments are drawn apart."""
    generator = np.random.default_rng(7)
    seen = dict.fromkeys(law, 0)
    for _ in range(6_000):
        partner = tuple(partners_within(width, generator.integers(0, 2**64, n, dtype=np.uint64)).tolist())
        if partner not in seen:
            return False
        seen[partner] += 1
    expected = np.array([float(chance) for chance in law.values()])
    return bool(stats.chisquare(list(seen.values()), expected * 6_000).pvalue > 1e-4)


def test_the_law_is_that_of_the_paper_and_no_other() -> None:
    """Five ranks, two apart at most. All ways to swap alike is another law."""
    law = naive_masking.swap_law(5, 2)
    assert sum(law.values()) == 1
    assert law_is(law, 5, 2)
    assert not law_is(dict.fromkeys(law, 1 / len(law)), 5, 2)
    assert not law_is(naive_masking.swap_law(5, 3), 5, 2)


def test_by_hand() -> None:
    """Six ranks, two apart at most, and words that draw the first free rank: neighbours. The last: 0-2, 1-3, 4-5."""
    assert partners_within(2, words([0] * 6)).tolist() == [1, 0, 3, 2, 5, 4]
    assert partners_within(2, words([2**64 - 1] * 6)).tolist() == [2, 3, 0, 1, 5, 4]
    assert partners_within(1, words([5] * 3)).tolist() == [1, 0, 2]
    assert partners_within(0, words([5] * 3)).tolist() == [0, 1, 2]
    values = np.array([1.0, 2.0, 2.0, 5.0, 7.0, 9.0])
    assert swapped(values, 34, words([2**64 - 1] * 6)).tolist() == [2, 5, 1, 2, 9, 7]


def test_all_64_bits_of_a_word_count() -> None:
    """Of three free ranks the second is drawn from the word ⌈2^64 / 3⌉ on."""
    third = 2**64 // 3
    assert partners_within(3, words([third, 0, 0, 0]))[0] == 1
    assert partners_within(3, words([third + 1, 0, 0, 0]))[0] == 2


def test_widths_are_exact_percentages() -> None:
    """0.6 percent of 1000 is 6, though 0.006 · 1000 rounds to 6 and 0.29 · 100 to 28.999999999999996."""
    assert swap_width(1000, 0.6) == 6
    assert swap_width(10_000, 0.29) == 29
    assert swap_width(7, 50) == 3
    assert swap_width(0, 5) == 0
    assert swap_width(10, 100) == 10


@given(st.lists(st.floats(-1e9, 1e9), max_size=40), st.floats(0, 100), st.integers(0, 2**32))
@settings(max_examples=100)
def test_an_attribute_keeps_its_values_and_moves_with_its_scale(values: list[float], p: float, seed: int) -> None:
    ordered = np.sort(np.array(values, dtype=np.float64))
    drawn = np.random.default_rng(seed).integers(0, 2**64, len(values), dtype=np.uint64)
    masked = swapped(ordered, p, drawn)
    assert np.sort(masked).tolist() == ordered.tolist()
    assert swapped(ordered * 4, p, drawn).tolist() == (masked * 4).tolist()
    assert swap_partners(len(values), p, drawn).tolist() == partners_within(swap_width(len(values), p), drawn).tolist()


@given(st.integers(0, 5_000), st.integers(0, 60), st.integers(1, 40))
@settings(max_examples=200)
def test_segments_are_long_enough(n: int, width: int, wanted: int) -> None:
    starts = swap_segments(n, width, wanted)
    assert starts[0] == 0
    assert starts[-1] == n
    assert len(starts) - 1 <= wanted
    assert len(starts) == 2 or np.diff(starts).min() >= 4 * (width + 1)


def test_segments_swapped_apart_are_swapped_within_the_width() -> None:
    drawn = np.random.default_rng(3).integers(0, 2**64, 1_000, dtype=np.uint64)
    starts = swap_segments(1_000, 20, 5)
    assert starts.tolist() == [0, 200, 400, 600, 800, 1000]
    parts = [start + partners_within(20, drawn[start:end]) for start, end in itertools.pairwise(starts)]
    partner = np.concatenate(parts)
    assert partner[partner].tolist() == list(range(1_000))
    assert np.abs(partner - np.arange(1_000)).max() <= 20


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: swap_width(5, -1), "percentage"),
        (lambda: swap_width(5, 101), "percentage"),
        (lambda: swap_width(5, float("nan")), "percentage"),
        (lambda: swap_partners(3, 5, words([1, 2])), "one word per rank"),
        (lambda: partners_within(-1, words([1])), "width"),
        (lambda: swap_segments(5, 1, 0), "segment"),
        (lambda: swapped(np.array([2.0, 1.0]), 5, words([1, 2])), "sorted"),
        (lambda: swapped(np.array([2.0, np.nan]), 5, words([1, 2])), "sorted"),
    ],
)
def test_what_cannot_be_swapped_is_refused(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call()
