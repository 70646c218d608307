from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.dp.scheme_choice import _Cumulative, peel, precision, scores
from privrisk_spark.kernels.numeric.rational import exp_minus
from privrisk_spark.kernels.random.keyed import Streams, cell_messages

KEY = bytes(range(32))


def draw(of_candidates: list[Fraction], epsilon: Fraction, by: Streams) -> np.ndarray:
    """One candidate per stream, as each step of ``peel`` draws it."""
    law = _Cumulative.of_scores(of_candidates, epsilon)
    return np.array([law.draw(by, element) for element in range(by.size)])


N = 20_000


def streams(n: int, label: int = 0) -> Streams:
    return Streams(KEY, cell_messages(label, np.arange(n, dtype=np.int32)[:, None]))


class Words(Streams):
    """One stream of given words."""

    def __init__(self, *words: int) -> None:
        self.words, self.size = list(words), 1

    def draw(self, index):  # noqa: ARG002 - one stream
        return np.array([self.words.pop(0)], dtype=np.uint64)


def law(of_candidates, epsilon) -> np.ndarray:
    weights = [math.exp(float(epsilon * (score - max(of_candidates)))) for score in of_candidates]
    return np.array(weights) / sum(weights)


def p_value(drawn: np.ndarray, probabilities: np.ndarray) -> float:
    seen = np.bincount(drawn, minlength=len(probabilities))
    return float(stats.chisquare(seen, probabilities * len(drawn)).pvalue)


# ------------------------------------------------------------------------------------------ exponentials


@settings(max_examples=300, deadline=None)
@given(st.fractions(0, 300, max_denominator=10**9), st.integers(1, 300))
def test_exponentials_are_enclosed(x, bits):
    low, high = exp_minus(x, bits)
    with localcontext() as context:
        context.prec = 300
        exact = (-(Decimal(x.numerator) / x.denominator)).exp() * Decimal(2) ** bits
    assert low <= exact <= high
    assert high - low <= 2
    assert (low == high) == (x == 0)


# ------------------------------------------------------------------------------------------------- scores


def test_precision_is_sweeneys():
    heights, equal = (2, 4), (Fraction(1), Fraction(1))
    assert precision((0, 0), heights, equal) == 1
    assert precision((2, 4), heights, equal) == 0
    assert precision((1, 1), heights, equal) == 1 - (Fraction(1, 2) + Fraction(1, 4)) / 2
    assert precision((1, 1), heights, (Fraction(3), Fraction(0))) == Fraction(1, 2)


@given(
    st.lists(st.lists(st.integers(1, 6), max_size=5), min_size=1, max_size=5),
    st.integers(0, 4),
    st.data(),
)
def test_a_row_more_raises_a_score_by_at_most_one(tables, t0, data):
    """The sensitivity the proof takes, on cells of any sizes; planted: a score without its precision below 1."""
    pi = [data.draw(st.fractions(0, 1, max_denominator=7)) for _ in tables]

    def of(cells):
        return np.array([sum(max(0, n - t0) for n in sizes) for sizes in cells], dtype=np.int64)

    before = scores(of(tables), pi)
    more = [list(sizes) for sizes in tables]
    for sizes in more:  # the row falls into one cell of every candidate, maybe a new one
        place = data.draw(st.integers(0, len(sizes)))
        if place == len(sizes):
            sizes.append(0)
        sizes[place] += 1
    after = scores(of(more), pi)
    assert all(0 <= new - old <= 1 for old, new in zip(before, after, strict=True))
    assert before == tuple(p * int(e) for p, e in zip(pi, of(tables), strict=True))


def test_scores_of_another_sensitivity_are_refused():
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        scores(np.array([1]), [Fraction(3, 2)])
    with pytest.raises(InputError, match="negative"):
        scores(np.array([-1]), [Fraction(1)])
    with pytest.raises(InputError, match="one precision per candidate"):
        scores(np.array([1, 2]), [Fraction(1)])


# ------------------------------------------------------------------------------------------------- the law

SCORES = [Fraction(s) for s in ("40", "37.5", "112/3", "30", "39.9", "0")]
EPSILON = Fraction(3, 10)


@pytest.fixture(scope="module")
def drawn() -> np.ndarray:
    return draw(SCORES, EPSILON, streams(N))


def test_the_draw_follows_its_law_and_no_other(drawn):
    """Accepted at e^epsilon; refused at another base, another sensitivity (factor 1/2), and for the best score."""
    probabilities = law(SCORES, EPSILON)
    common = probabilities * N >= 5
    kept = drawn[common[drawn]]

    def merged(of: np.ndarray) -> np.ndarray:
        return np.where(common, of, 0) / of[common].sum()

    def p(of: np.ndarray) -> float:
        return p_value(np.searchsorted(np.flatnonzero(common), kept), merged(of)[common])

    assert p(probabilities) > 1e-4
    assert p(law(SCORES, EPSILON / 2)) < 1e-9
    assert p(law(SCORES, EPSILON * Fraction(math.log(2)))) < 1e-9
    assert p(law(SCORES, 2 * EPSILON)) < 1e-9
    assert p(law([s + Fraction(1, 2) * (i % 2) for i, s in enumerate(SCORES)], EPSILON)) < 1e-9


def test_a_score_moved_by_one_moves_no_probability_beyond_epsilon():
    """Exact enclosures of the law for neighbouring scores: ratios within e^±epsilon, and attained."""
    generator = np.random.default_rng(2)
    worst = 0.0
    for _ in range(200):
        before = [Fraction(int(v), 3) for v in generator.integers(0, 60, 4)]
        after = [v + Fraction(int(d), 3) for v, d in zip(before, generator.integers(0, 4, 4), strict=True)]
        ratio = np.abs(np.log(law(after, EPSILON) / law(before, EPSILON)))
        worst = max(worst, float(ratio.max()))
    assert worst <= float(EPSILON) + 1e-12
    assert worst > 0.9 * float(EPSILON)


def test_candidates_too_far_for_floats_can_be_drawn():
    """Score gap 60 at epsilon 1: probability 2^-86.6, which neither a 53-bit uniform nor float Gumbel can draw."""
    last = (1 << 64) - 1
    far = [Fraction(60), Fraction(0)]
    assert draw(far, Fraction(1), Words(last, last)).tolist() == [1]
    # U = 1 - 2^-86: in the last interval, as e^-60 is 2^-86.56, only if U is above 1 - 2^-86.56.
    assert draw(far, Fraction(1), Words(last, last - (1 << 42) + 1)).tolist() == [0]
    assert draw(far, Fraction(1), Words(last, last - (1 << 41) + 1)).tolist() == [1]
    # A gap of a million rows: possible, though nobody will wait for it.
    assert draw([Fraction(10**3), Fraction(0)], Fraction(1), Words(*[last] * 40)).tolist() == [1]
    assert draw([Fraction(10**6), Fraction(0)], Fraction(1), Words(5)).tolist() == [0]


def test_a_word_on_the_boundary_takes_another():
    """Equal scores split at exactly 2^63; weights 1 and 1/e split inside a word, which the next word decides."""
    even = [Fraction(0), Fraction(0)]
    assert draw(even, Fraction(1), Words((1 << 63) - 1)).tolist() == [0]
    assert draw(even, Fraction(1), Words(1 << 63)).tolist() == [1]
    with localcontext() as context:
        context.prec = 80
        boundary = int(Decimal(2) ** 128 / (1 + (-Decimal(1)).exp()))
    first, second = divmod(boundary, 1 << 64)
    pair = [Fraction(1), Fraction(0)]
    assert draw(pair, Fraction(1), Words(first - 1)).tolist() == [0]
    assert draw(pair, Fraction(1), Words(first + 1)).tolist() == [1]
    assert draw(pair, Fraction(1), Words(first, second - 1)).tolist() == [0]
    assert draw(pair, Fraction(1), Words(first, second + 1)).tolist() == [1]
    # The third word is taken where two still leave it open.
    assert draw(pair, Fraction(1), Words(first, second, 0)).tolist() == [0]
    assert draw(pair, Fraction(1), Words(first, second, (1 << 64) - 1)).tolist() == [1]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.fractions(0, 50, max_denominator=12), min_size=1, max_size=8),
    st.fractions(0, 2, max_denominator=20),
    st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8),
)
def test_the_draw_is_the_inverse_of_the_cumulative_law(of_candidates, epsilon, words):
    """A literal twin at 400 digits of the whole U."""
    with localcontext() as context:
        context.prec = 400
        most = max(of_candidates)
        exponents = [epsilon * (most - score) for score in of_candidates]
        weights = [(-(Decimal(x.numerator) / x.denominator)).exp() for x in exponents]
        uniform = Decimal(int.from_bytes(b"".join(w.to_bytes(8, "big") for w in words))) / Decimal(2) ** 512
        target, total = uniform * sum(weights), Decimal(0)
        ends = [total := total + weight for weight in weights]
        wanted = next(position for position, end in enumerate(ends) if target < end)
    assert draw(of_candidates, epsilon, Words(*words)).tolist() == [wanted]


def test_a_draw_is_a_function_of_its_stream_and_shifts_change_nothing(drawn):
    assert draw(SCORES, EPSILON, streams(50)).tolist() == drawn[:50].tolist()
    shifted = [score + 10**9 for score in SCORES]
    assert draw(shifted, EPSILON, streams(50)).tolist() == drawn[:50].tolist()
    assert draw(SCORES, EPSILON, streams(50, label=1)).tolist() != drawn[:50].tolist()
    assert p_value(draw(SCORES, Fraction(0), streams(3000)), np.full(6, 1 / 6)) > 1e-4


def test_peeling_draws_each_once_from_what_is_left():
    candidates = [Fraction(s) for s in (5, 4, 3, 0)]
    pairs = np.array([peel(candidates, Fraction(1, 2), streams(2, label=i)) for i in range(1, 4001)])
    assert (pairs[:, 0] != pairs[:, 1]).all()
    first = law(candidates, Fraction(1, 2))
    wanted = {(i, j): first[i] * first[j] / (1 - first[i]) for i in range(4) for j in range(4) if i != j}
    number = {pair: n for n, pair in enumerate(wanted)}
    seen = np.array([number[int(i), int(j)] for i, j in pairs])
    assert p_value(seen, np.array(list(wanted.values()))) > 1e-4
    swapped = np.array([wanted[j, i] for i, j in wanted])
    assert p_value(seen, swapped) < 1e-9
    assert sorted(peel(candidates, Fraction(1), streams(4))) == [0, 1, 2, 3]
    assert peel(candidates, Fraction(1), streams(1)).tolist() == draw(candidates, Fraction(1), streams(1)).tolist()


def test_refusals():
    with pytest.raises(InputError, match="at least one candidate"):
        draw([], Fraction(1), streams(1))
    with pytest.raises(InputError, match="negative"):
        draw([Fraction(1)], Fraction(-1), streams(1))
    with pytest.raises(InputError, match="Of 1 candidates 2"):
        peel([Fraction(1)], Fraction(1), streams(2))
