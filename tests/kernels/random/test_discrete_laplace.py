from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.numeric.rational import any_of, exp_bounds, round_down, round_up
from privrisk_spark.kernels.random import discrete_laplace
from privrisk_spark.kernels.random.discrete_laplace import (
    DENOMINATOR_MAX,
    SCALE_MAX,
    calibrate_laplace,
    delta_of_selection,
    sample,
    tail,
)
from privrisk_spark.kernels.random.keyed import Streams, derive_key

KEY = derive_key(bytes(range(32)), "discrete laplace")


def messages(n: int) -> np.ndarray:
    numbered = np.zeros((n, 4), dtype=np.uint32)
    numbered[:, 0] = np.arange(n)
    return numbered


def drawn(n: int, scale: Fraction, label: str = "law") -> np.ndarray:
    return sample(Streams(derive_key(KEY, label), messages(n)), n, scale=scale)


# --- literal twin: Canonne, Kamath and Steinke 2020, Algorithm 2, one element at a time


class NaiveSampler:
    def __init__(self, next_word: Callable[[], int]) -> None:
        self.next_word = next_word

    def uniform(self, bound: int) -> int:
        while True:
            word = self.next_word()
            if word >= 2**64 % bound:
                return word % bound

    def bernoulli(self, a: int, b: int) -> bool:
        return a == 1 if b == 1 else self.uniform(b) < a

    def bernoulli_exp(self, a: int, b: int) -> bool:
        k = 1
        while self.bernoulli(a, b) and self.bernoulli(1, k):
            k += 1
        return k % 2 == 1

    def discrete_laplace(self, t: int, s: int) -> int:
        while True:
            u = self.uniform(t)
            if not self.bernoulli_exp(u, t):
                continue
            v = 0
            while self.bernoulli_exp(1, 1):
                v += 1
            y = (u + t * v) // s
            negative = self.uniform(2) == 1
            if not (negative and y == 0):
                return -y if negative else y


SCALES = [
    Fraction(1),
    Fraction(10, 3),
    Fraction(20, 3),
    Fraction(1, 7),
    Fraction(2**20 + 1, 2**20),
    Fraction(SCALE_MAX),
]


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_sample_is_the_literal_algorithm_word_for_word(scale):
    n = 60
    twin = Streams(KEY, messages(n))
    expected = [
        NaiveSampler(lambda i=i: int(twin.draw(np.array([i]))[0])).discrete_laplace(scale.numerator, scale.denominator)
        for i in range(n)
    ]
    fast = Streams(KEY, messages(n))
    values = sample(fast, n, scale=scale)
    assert values.dtype == np.int64
    assert values.tolist() == expected
    assert fast._drawn.tolist() == twin._drawn.tolist()


# --- law: the right one is accepted, a wrong one is not

N = 400_000
"""Enough for a scale 2 % off: the mean of |y| / b has a standard error of about 1 / sqrt(N) = 0.16 %."""


@pytest.fixture(scope="module", params=[Fraction(10, 3), Fraction(20, 3), Fraction(26)], ids=str)
def many(request):
    return request.param, drawn(N, request.param)


def law_of(scale: float, reach: int, *, mean: int = 0) -> np.ndarray:
    r = math.exp(-1 / scale)
    return (1 - r) / (1 + r) * r ** np.abs(np.arange(-reach, reach + 1) - mean)


def rounded_law(scale: float, reach: int) -> np.ndarray:
    """The continuous Laplace law, rounded to integers."""
    edges = np.arange(-reach, reach + 2) - 0.5
    cdf = np.where(edges < 0, np.exp(np.minimum(edges, 0) / scale) / 2, 1 - np.exp(-np.maximum(edges, 0) / scale) / 2)
    return np.diff(cdf)


def p_value(values: np.ndarray, law: np.ndarray) -> float:
    """Chi-square of the sample against a law on -reach, …, reach, grouped to at least 200 expected each."""
    reach = len(law) // 2
    expected = len(values) * law / law.sum()
    observed = np.bincount(values + reach, minlength=law.size).astype(float)
    group = np.minimum(np.cumsum(expected) // 200, len(values) // 200 - 1)
    _, group = np.unique(group, return_inverse=True)
    fitted = np.bincount(group, weights=expected)
    return float(chisquare(np.bincount(group, weights=observed), fitted * observed.sum() / fitted.sum()).pvalue)


def p_of_spread(values: np.ndarray, scale: float) -> float:
    """Two-sided p of the mean of |y|, which is sufficient for the scale, under that scale."""
    r = math.exp(-1 / scale)
    mean, square = 2 * r / (1 - r * r), 2 * r / (1 - r) ** 2
    z = (np.abs(values).mean() - mean) / math.sqrt((square - mean * mean) / len(values))
    return math.erfc(abs(z) / math.sqrt(2))


def test_the_law_and_no_other(many):
    scale, values = many
    reach = math.ceil(40 * scale)
    assert p_value(values, law_of(scale, reach)) > 1e-3
    assert p_of_spread(values, scale) > 1e-3
    for wrong in (0.98, 1.02):
        assert p_of_spread(values, wrong * float(scale)) < 1e-9
    for mean in (-1, 1):
        assert p_value(values, law_of(scale, reach, mean=mean)) < 1e-12
    assert p_value(values + 1, law_of(scale, reach, mean=1)) > 1e-3


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10, 3)], ids=str)
def test_the_law_is_not_the_continuous_one_rounded(scale):
    """They differ at zero: (1-r)/(1+r) against 1 - exp(-1/2b); by 0.6 % of that at b = 10/3."""
    values = drawn(1_500_000, scale, "rounded")
    reach = math.ceil(40 * scale)
    assert p_value(values, law_of(scale, reach)) > 1e-3
    assert p_value(values, rounded_law(float(scale), reach)) < 1e-6


@given(st.lists(st.integers(0, 199), unique=True, max_size=60), st.sampled_from(SCALES))
@settings(max_examples=25)
def test_value_does_not_depend_on_the_batch(picked, scale):
    whole = drawn(200, scale, "batch")
    streams = Streams(derive_key(KEY, "batch"), messages(200)[picked])
    assert sample(streams, len(picked), scale=scale).tolist() == whole[picked].tolist()


def test_chunks_do_not_show(monkeypatch):
    whole = drawn(100, Fraction(20, 3))
    monkeypatch.setattr(discrete_laplace, "_CHUNK", 7)
    assert drawn(100, Fraction(20, 3)).tolist() == whole.tolist()


def exact_probability(numerator: int, denominator: int, y: int) -> Decimal:
    """Pr[Y = y] by Algorithm 2 itself: geometric blocks of `denominator`, signed, without the second zero."""
    with localcontext() as context:
        context.prec = 60
        q = (Decimal(-1) / numerator).exp()

        def block(m: int) -> Decimal:  # Pr[U + tV in [m s, (m + 1) s)], U + tV geometric with ratio q
            return q ** (m * denominator) - q ** ((m + 1) * denominator)

        accepted = 1 - block(0) / 2
        return (block(0) / 2 if y == 0 else block(abs(y)) / 2) / accepted


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10, 3), Fraction(20, 3), Fraction(1, 7)], ids=str)
def test_the_algorithm_has_the_stated_pmf(scale):
    with localcontext() as context:
        context.prec = 60
        r = (Decimal(-scale.denominator) / scale.numerator).exp()
        for y in range(-30, 31):
            stated = (1 - r) / (1 + r) * r ** abs(y)
            found = exact_probability(scale.numerator, scale.denominator, y)
            assert abs(found - stated) <= stated * Decimal("1e-50")


# --- tails and thresholds


def exact_tail(scale: Fraction, at_least: int) -> Decimal:
    r = (Decimal(-scale.denominator) / scale.numerator).exp()
    near = (1 - r) / (1 + r)
    if at_least >= 0:
        return r**at_least / (1 + r)
    return 1 - r ** (1 - at_least) / (1 + r) if near else Decimal(1)


@given(st.fractions("1/20", 300, max_denominator=1000), st.integers(-300, 3000))
@settings(max_examples=60, deadline=None)
def test_tail_is_a_tight_upper_bound(scale, at_least):
    with localcontext() as context:
        context.prec = 400
        context.Emin = -(10**6)
        exact = exact_tail(scale, at_least)
        bound = tail(scale, at_least)
        bound_decimal = Decimal(bound.numerator) / bound.denominator
        assert exact <= bound_decimal * (1 + Decimal("1e-390"))
        assert bound_decimal <= exact * (1 + Decimal("1e-60"))
        assert bound <= 1


@pytest.mark.parametrize(
    ("w", "delta", "threshold"),
    # By hand: T - 1 = b (ln(w / delta) - ln(1 + exp(-1/b))), rounded up; b = w / 0.3, delta_select alone.
    [(1, "5e-10", 71), (2, "5e-10", 145), (3, "5e-10", 220), (8, "5e-10", 610), (1, "5e-8", 56), (2, "5e-8", 114)],
)
def test_calibration_golden(w, delta, threshold):
    found = calibrate_laplace(Fraction(3, 10), w, Fraction(delta))
    assert found.scale == Fraction(10 * w, 3)
    b = 10 * w / 3
    assert math.ceil(1 + b * (math.log(w / float(delta)) - math.log1p(math.exp(-1 / b)))) == threshold
    assert found.threshold == threshold
    assert found.delta_select <= float(delta)


@given(
    st.fractions("1/100", 20, max_denominator=10**9),
    st.integers(1, 60),
    st.sampled_from(["1e-3", "1e-6", "3e-10", "1e-30"]),
)
@settings(max_examples=40, deadline=None)
def test_calibration_is_least_and_meets_what_was_asked(epsilon, w, delta):
    found = calibrate_laplace(epsilon, w, Fraction(delta))
    assert w / found.scale <= epsilon
    assert found.scale - w / epsilon < Fraction(1, DENOMINATOR_MAX)
    assert delta_of_selection(found.scale, w, found.threshold) <= Fraction(delta)
    assert found.threshold == 2 or delta_of_selection(found.scale, w, found.threshold - 1) > Fraction(delta)
    assert Fraction(found.delta_select) >= delta_of_selection(found.scale, w, found.threshold)


# --- privacy of the whole admission: output laws of small tables, summed


def pmf(scale: Fraction, y: int) -> Fraction:
    """Lower bounds of the law, so near that the sum misses 1 by less than 1e-60."""
    r = 1 / exp_bounds(1 / scale)[1]
    return (1 - r) / (1 + r) * r ** abs(y)


def cell_law(scale: Fraction, count: int, threshold: int, reach: int) -> dict[int | None, Fraction]:
    """Law of what is seen of one cell: None if it is not admitted (or empty), else its noisy count."""
    if not count:
        return {None: Fraction(1)}
    law = {z: pmf(scale, z - count) for z in range(threshold, count + reach + 1)}
    return law | {None: 1 - sum(law.values())}


def hockey_stick(p: dict, q: dict, a: Fraction) -> Fraction:
    return sum((max(p.get(o, Fraction(0)) - a * q.get(o, Fraction(0)), Fraction(0)) for o in {*p, *q}), Fraction(0))


def product(laws: list[dict[int | None, Fraction]]) -> dict[tuple, Fraction]:
    return {
        tuple(key for key, _ in combined): math.prod((p for _, p in combined), start=Fraction(1))
        for combined in itertools.product(*(law.items() for law in laws))
    }


@pytest.mark.parametrize("w", [1, 2])
@pytest.mark.parametrize("others", [(0, 0), (1, 0), (2, 3)])
def test_the_admission_is_private_exactly(w, others):
    """One row more in w cells that hold `others`: both hockey-sticks, all outputs enumerated, against the claim."""
    epsilon, delta = Fraction(2), Fraction(1, 50)
    found = calibrate_laplace(epsilon, w, delta)
    reach = 20 if w == 1 else 25
    with_row, without = (
        product([cell_law(found.scale, n + more, found.threshold, reach) for n in others[:w]]) for more in (1, 0)
    )
    a = exp_bounds(epsilon)[0]
    beyond = w * exp_bounds((reach - 2) / found.scale)[0] ** -1
    forth, back = hockey_stick(with_row, without, a), hockey_stick(without, with_row, a)
    assert max(forth, back) <= Fraction(found.delta_select) + beyond
    if others[:w] == (0,) * w:
        # Attained, so the calibration gives nothing away.
        assert forth >= Fraction(found.delta_select) * Fraction(99, 100) - beyond
    # A claim of 1 % less epsilon fails where no cell is the row's own.
    if min(others[:w]) > 0:
        low = exp_bounds(epsilon * Fraction(99, 100))[1]
        assert max(hockey_stick(with_row, without, low), hockey_stick(without, with_row, low)) > beyond


@pytest.mark.parametrize("w", [1, 2])
def test_the_noise_pair_is_private_at_epsilon_and_no_less(w):
    """Noisy counts alone: delta 0 at epsilon, by the pmf ratio at every point, and more than 0 just below."""
    epsilon = Fraction(3, 10)
    scale = calibrate_laplace(epsilon, w, Fraction("1e-9")).scale
    law = {y: pmf(scale, y) for y in range(-60, 61)}
    high, low = exp_bounds(epsilon)[1], exp_bounds(epsilon * Fraction(999, 1000))[1]
    points = list(itertools.product(range(-25, 26), repeat=w))
    gap = {a: Fraction(0) for a in (high, low)}
    for point in points:
        p = math.prod((law[y - 1] for y in point), start=Fraction(1))
        q = math.prod((law[y] for y in point), start=Fraction(1))
        for a in gap:
            gap[a] += max(p - a * q, Fraction(0))
    # exp(w/b) against its rational bound: equal but for 2^-250.
    assert gap[high] < Fraction(1, 2**240)
    assert gap[low] > Fraction(1, 10**5)


# --- rational bounds


@given(st.fractions(0, 2000, max_denominator=1000))
@settings(max_examples=60, deadline=None)
def test_exp_bounds_enclose(x):
    low, high = exp_bounds(x)
    with localcontext() as context:
        context.prec = 1200
        exact = (Decimal(x.numerator) / x.denominator).exp()
        assert Decimal(low.numerator) / low.denominator <= exact <= Decimal(high.numerator) / high.denominator
    assert high - low <= low * (1 + x) / 2**254


@given(st.fractions(0, 1, max_denominator=10**12), st.integers(0, 5000))
@settings(max_examples=60, deadline=None)
def test_any_of_is_above_and_close(p, n):
    bound = any_of(p, n)
    # Bonferroni from both sides where the powers would be long.
    exact = 1 - (1 - p) ** n if n < 40 else None
    if exact is not None:
        assert 0 <= bound - exact <= Fraction(4 * n + 4, 2**1200)
    else:
        assert n * p - p * p * math.comb(n, 2) <= bound <= min(1, n * p) + Fraction(4 * n, 2**1200)


@given(st.fractions(-5, 5))
def test_rounding_goes_outward(x):
    assert Fraction(round_down(x)) <= x <= Fraction(round_up(x))
    assert math.nextafter(round_up(x), -math.inf) < x < math.nextafter(round_down(x), math.inf)


# --- refusals


@pytest.mark.parametrize("scale", [0, -1, SCALE_MAX + 1, 2.0, True, Fraction(1, DENOMINATOR_MAX + 1)])
def test_other_scales_are_refused(scale):
    for use in (lambda: sample(Streams(KEY, messages(1)), 1, scale=scale), lambda: tail(scale, 1)):
        with pytest.raises(InputError, match="scale must be"):
            use()


def test_other_arguments_are_refused():
    with pytest.raises(InputError, match="one stream per element"):
        sample(Streams(KEY, messages(2)), 3, scale=Fraction(1))
    for arguments in (
        (Fraction(0), 1, Fraction(1, 2)),
        (Fraction(1), 0, Fraction(1, 2)),
        (Fraction(1), 1, Fraction(0)),
        (Fraction(1), 1, Fraction(1)),
    ):
        with pytest.raises(InputError):
            calibrate_laplace(*arguments)
    with pytest.raises(InputError, match="Raise epsilon"):
        calibrate_laplace(Fraction(1, 10**6), 100, Fraction(1, 10**9))
