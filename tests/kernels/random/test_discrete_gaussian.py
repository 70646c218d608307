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
from privrisk_spark.kernels.random import coins, discrete_gaussian
from privrisk_spark.kernels.random.discrete_gaussian import (
    SIGMA_SQUARED_MAX,
    calibrate_admission,
    delta_of_fold,
    divide_admission,
    sample,
    tail,
)
from privrisk_spark.kernels.random.keyed import Streams, derive_key

KEY = derive_key(bytes(range(32)), "discrete gaussian")


def messages(n: int) -> np.ndarray:
    numbered = np.zeros((n, 4), dtype=np.uint32)
    numbered[:, 0] = np.arange(n)
    return numbered


def drawn(n: int, sigma_squared: int, label: str = "law") -> np.ndarray:
    return sample(Streams(derive_key(KEY, label), messages(n)), n, sigma_squared=sigma_squared)


# --- literal twin: Canonne, Kamath and Steinke 2020, one element at a time


class NaiveSampler:
    def __init__(self, next_word: Callable[[], int]) -> None:
        self.next_word = next_word

    def uniform(self, bound: int) -> int:
        while True:
            word = self.next_word()
            if word >= 2**64 % bound:
                return word % bound

    def bernoulli_exp(self, a: int, b: int) -> bool:
        """Algorithm 1, for exp(-a/b)."""
        for _ in range(a // b):
            if not self.bernoulli_exp_below_one(1, 1):
                return False
        return self.bernoulli_exp_below_one(a % b, b)

    def bernoulli_exp_below_one(self, a: int, b: int) -> bool:
        k = 1
        while self.bernoulli(a, b) and self.bernoulli(1, k):
            k += 1
        return k % 2 == 1

    def bernoulli(self, a: int, b: int) -> bool:
        # No word is spent on a certain outcome.
        return a == 1 if b == 1 else self.uniform(b) < a

    def discrete_laplace(self, t: int) -> int:
        """Algorithm 2 with s = 1."""
        while True:
            u = self.uniform(t)
            if not self.bernoulli_exp_below_one(u, t):
                continue
            v = 0
            while self.bernoulli_exp_below_one(1, 1):
                v += 1
            negative = self.uniform(2) == 1
            x = u + t * v
            if not (negative and x == 0):
                return -x if negative else x

    def discrete_gaussian(self, sigma_squared: int) -> int:
        """Algorithm 3."""
        t = math.isqrt(sigma_squared) + 1
        while True:
            y = self.discrete_laplace(t)
            if self.bernoulli_exp((abs(y) * t - sigma_squared) ** 2, 2 * sigma_squared * t * t):
                return y


@pytest.mark.parametrize("sigma_squared", [1, 2, 3, 4, 9, 333, 5316, 10**6 + 3, SIGMA_SQUARED_MAX])
def test_sample_is_the_literal_algorithm_word_for_word(sigma_squared):
    n = 60
    twin = Streams(KEY, messages(n))
    expected = [
        NaiveSampler(lambda i=i: int(twin.draw(np.array([i]))[0])).discrete_gaussian(sigma_squared) for i in range(n)
    ]
    fast = Streams(KEY, messages(n))
    values = sample(fast, n, sigma_squared=sigma_squared)
    assert values.dtype == np.int64
    assert values.tolist() == expected
    assert fast._drawn.tolist() == twin._drawn.tolist()


# --- law


def p_value(values: np.ndarray, sigma_squared: float, mean: int = 0) -> float:
    """Chi-square of the sample against N_Z(mean, sigma_squared), grouped to about 200 expected each."""
    reach = 40 + 12 * math.isqrt(math.ceil(sigma_squared))
    support = np.arange(-reach, reach + 1)
    law = np.exp(-((support - mean) ** 2) / (2.0 * sigma_squared))
    expected = len(values) * law / law.sum()
    observed = np.bincount(values + reach, minlength=support.size).astype(float)
    # Cells in order, a new group each 200 expected; the last, incomplete group joins the one before.
    group = np.minimum(np.cumsum(expected) // 200, len(values) // 200 - 1)
    _, group = np.unique(group, return_inverse=True)
    fitted = np.bincount(group, weights=expected)
    return float(chisquare(np.bincount(group, weights=observed), fitted * observed.sum() / fitted.sum()).pvalue)


@pytest.mark.parametrize("sigma_squared", [1, 7, 333, 2658])
def test_law_has_power(sigma_squared):
    values = drawn(60_000, sigma_squared)
    assert p_value(values, sigma_squared) > 1e-3
    for wrong in (0.7, 1.3):
        assert p_value(values, wrong * sigma_squared) < 1e-12


@pytest.mark.parametrize("sigma_squared", [1, 7, 333])
def test_law_rejects_a_wrong_mean(sigma_squared):
    values = drawn(60_000, sigma_squared)
    assert p_value(values + 1, sigma_squared) < 1e-12
    assert p_value(values + 1, sigma_squared, mean=1) > 1e-3


def test_law_at_the_largest_sigma():
    values = drawn(40_000, SIGMA_SQUARED_MAX) / math.sqrt(SIGMA_SQUARED_MAX)
    # Standard errors: 0.005 and 0.0071.
    assert abs(values.mean()) < 0.02
    assert abs(values.var() - 1) < 0.03


def test_uniform_integers_have_no_modulo_bias():
    # A quarter of the words must be refused for this bound; taken, they would give the first third a half.
    bound = 3 << 61
    values = coins.below(Streams(KEY, messages(30_000)), np.arange(30_000), bound)
    assert values.max() < bound
    assert chisquare(np.bincount(values >> 61, minlength=3)).pvalue > 1e-3


@given(st.lists(st.integers(0, 199), unique=True, max_size=60), st.sampled_from([1, 5, 2658]))
@settings(max_examples=25)
def test_value_does_not_depend_on_the_batch(picked, sigma_squared):
    whole = drawn(200, sigma_squared, "batch")
    streams = Streams(derive_key(KEY, "batch"), messages(200)[picked])
    assert sample(streams, len(picked), sigma_squared=sigma_squared).tolist() == whole[picked].tolist()


def test_chunks_do_not_show(monkeypatch):
    whole = drawn(100, 50)
    monkeypatch.setattr(discrete_gaussian, "_CHUNK", 7)
    assert drawn(100, 50).tolist() == whole.tolist()


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1), st.integers(2**18, 2**53))
def test_square_over_never_overflows(values, denominator):
    whole, rest = discrete_gaussian._square_over(np.array(values, dtype=np.int64), denominator)
    expected = [divmod(value * value, denominator) for value in values]
    assert list(zip(whole.tolist(), rest.tolist(), strict=True)) == expected


# --- tails


def exact_tail(sigma_squared: int, at_least: int) -> Decimal:
    with localcontext() as context:
        context.prec = 60
        reach = 20 * (math.isqrt(sigma_squared) + 1) + 40
        weights = {y: (Decimal(-y * y) / (2 * sigma_squared)).exp() for y in range(-reach, reach + 1)}
        return sum(w for y, w in weights.items() if y >= at_least) / sum(weights.values())


@pytest.mark.parametrize("sigma_squared", [1, 2, 9, 333])
def test_tail_is_a_tight_upper_bound(sigma_squared):
    sigma = math.isqrt(sigma_squared)
    for at_least in {-9 * sigma, -2, -1, 0, 1, 2, 3 * sigma, 7 * sigma + 1, 12 * sigma}:
        exact = exact_tail(sigma_squared, at_least)
        bound = Decimal(tail(sigma_squared, at_least))
        assert exact <= bound <= exact * (1 + Decimal("3e-6")), at_least


def test_tail_never_underflows_to_zero():
    assert 0 < tail(1, 200) < 1e-300
    assert tail(1, -200) == 1.0


# --- privacy of w counts


def naive_delta(sigma_squared: int, w: int, epsilon: float, shift: int) -> float:
    """Hockey-stick of the w-dimensional output laws, by enumeration."""
    reach = 12 * (math.isqrt(sigma_squared) + 1)
    law = {y: math.exp(-y * y / (2 * sigma_squared)) for y in range(-reach, reach + 1)}
    total = math.fsum(law.values())
    terms = []
    for point in itertools.product(law, repeat=w):
        with_row = math.prod(math.exp(-((y - shift) ** 2) / (2 * sigma_squared)) / total for y in point)
        without = math.prod(law[y] / total for y in point)
        terms.append(max(0.0, with_row - math.exp(epsilon) * without))
    return math.fsum(terms)


@pytest.mark.parametrize(("sigma_squared", "w"), [(1, 1), (2, 1), (30, 1), (1, 2), (5, 2), (20, 2), (2, 3)])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
def test_delta_is_the_literal_hockey_stick_in_both_directions(sigma_squared, w, epsilon):
    bound = delta_of_fold(sigma_squared, w, epsilon)
    collapse = math.exp(2 * discrete_gaussian._collapse_error(sigma_squared, w))
    for shift in (1, -1):
        exact = naive_delta(sigma_squared, w, epsilon, shift)
        assert exact <= bound <= exact * collapse * (1 + 3e-6)


def convolved_delta(sigma_squared: int, w: int, epsilon: float) -> float:
    """Delta by convolving the noise w times instead of collapsing the sum."""
    reach = 10 * math.isqrt(sigma_squared) + 10
    y = np.arange(-reach, reach + 1)
    single = np.exp(-(y**2) / (2 * sigma_squared))
    single /= math.fsum(single)
    law = np.ones(1)
    for _ in range(w):
        law = np.convolve(law, single)
    s = np.arange(-w * reach, w * reach + 1)
    loss = (w - 2 * s) / (2 * sigma_squared)
    return math.fsum(law * -np.expm1(np.minimum(epsilon - loss, 0.0)))


@pytest.mark.parametrize(("sigma_squared", "w"), [(1, 2), (1, 6), (2, 4), (333, 1), (665, 2), (2658, 8)])
def test_delta_of_the_collapsed_sum_is_that_of_the_convolution(sigma_squared, w):
    for epsilon in (0.1, 0.3, 2.0):
        exact = convolved_delta(sigma_squared, w, epsilon)
        bound = delta_of_fold(sigma_squared, w, epsilon)
        # The twin cuts each noise at 10 sigma.
        assert exact <= bound + 1e-18
        collapse = math.exp(2 * discrete_gaussian._collapse_error(sigma_squared, w))
        assert bound <= exact * collapse * (1 + 3e-6) + 1e-18


def test_delta_falls_with_sigma_and_epsilon_and_rises_with_w():
    # Calibration by bisection rests on the first.
    for w, epsilon in ((1, 0.3), (8, 0.3), (3, 2.0)):
        deltas = [delta_of_fold(sigma_squared, w, epsilon) for sigma_squared in range(1, 400)]
        assert all(after < before for before, after in itertools.pairwise(deltas))
    for smaller, larger in itertools.pairwise([delta_of_fold(100, 8, eps) for eps in (2.0, 1.0, 0.3, 0.0)]):
        assert smaller < larger
    for smaller, larger in itertools.pairwise([delta_of_fold(100, w, 0.3) for w in (1, 2, 8, 64, 1000)]):
        assert smaller < larger


def test_delta_cross_checked_by_dp_accounting():
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution

    for w in (1, 4, 8):
        found = calibrate_admission(0.3, w, 2.5e-10, 2.5e-10)
        deltas = [
            privacy_loss_distribution.from_discrete_gaussian_mechanism(
                math.sqrt(found.sigma_squared),
                value_discretization_interval=1e-5,
                pessimistic_estimate=pessimistic,
            )
            .self_compose(w)
            .get_delta_for_epsilon(0.3)
            for pessimistic in (False, True)
        ]
        assert deltas[0] * (1 - 1e-9) <= found.delta_gauss <= deltas[1] * (1 + 2e-6)


# --- calibration


@pytest.mark.parametrize(
    ("w", "delta", "sigma", "threshold", "continuous"),
    # At epsilon 0.3. sigma is that of the continuous Gaussian, sqrt(w) sigma_1, to one digit. `continuous` is
    # the threshold by the tail of the continuous law, 1 + sigma z; the integer law has half a record more
    # (Pr[Y >= m] is about the tail from m - 1/2), which matters for w = 4, w = 64 and the last line.
    [
        (1, 2.5e-10, 18.2, 115, 115),
        (4, 2.5e-10, 36.5, 237, 236),
        (8, 2.5e-10, 51.6, 339, 339),
        (16, 2.5e-10, 72.9, 486, 486),
        (64, 2.5e-10, 145.8, 1000, 999),
        (8, 2.5e-8, 43.8, 257, 256),
    ],
)
def test_calibration_golden(w, delta, sigma, threshold, continuous):
    found = calibrate_admission(0.3, w, delta, delta)
    assert round(math.sqrt(found.sigma_squared), 1) == sigma
    assert found.threshold == threshold
    # Independent of `tail`: the sum over the integers.
    y = np.arange(-20 * math.ceil(sigma), 20 * math.ceil(sigma))
    law = np.exp(-(y**2) / (2 * found.sigma_squared))
    law /= math.fsum(law)
    selected = {
        t: -math.expm1(w * math.log1p(-math.fsum(law[y >= t - 1]))) for t in {threshold, threshold - 1, continuous}
    }
    assert selected[threshold] <= delta < selected[threshold - 1]
    assert (selected[continuous] <= delta) == (continuous == threshold)


@given(st.floats(0.05, 5.0), st.integers(1, 40), st.floats(1e-12, 1e-3), st.floats(1e-12, 1e-3))
@settings(max_examples=30)
def test_calibration_is_least_and_meets_what_was_asked(epsilon, w, delta_gauss, delta_select):
    found = calibrate_admission(epsilon, w, delta_gauss, delta_select)
    assert found.delta_gauss == delta_of_fold(found.sigma_squared, w, epsilon) <= delta_gauss
    assert found.delta_select <= delta_select
    if found.sigma_squared > 1:
        assert delta_of_fold(found.sigma_squared - 1, w, epsilon) > delta_gauss
    single = tail(found.sigma_squared, found.threshold - 2)
    assert single >= 1 or -math.expm1(w * math.log1p(-single)) > delta_select * (1 - 1e-9)


@given(st.floats(0.05, 5.0), st.integers(1, 40), st.fractions("1/1000000000000", "1/1000"))
@settings(max_examples=30, deadline=None)
def test_noise_and_threshold_share_a_delta_to_its_end(epsilon, w, delta):
    found = divide_admission(epsilon, w, delta)
    halves = calibrate_admission(epsilon, w, float(delta / 2) * (1 - 1e-15), float(delta / 2) * (1 - 1e-15))
    assert found.delta_gauss == delta_of_fold(found.sigma_squared, w, epsilon)
    # Independent of how the threshold was found.
    single = tail(found.sigma_squared, found.threshold - 1)
    assert single < 1
    assert found.delta_select >= -math.expm1(w * math.log1p(-single))
    assert found.delta <= delta
    assert found.threshold <= halves.threshold
    assert found.sigma_squared <= halves.sigma_squared
    if found.sigma_squared > 1:
        less = found.sigma_squared - 1
        single = tail(less, found.threshold - 1)
        assert delta_of_fold(less, w, epsilon) - math.expm1(w * math.log1p(-single)) > float(delta) * (1 - 1e-9)


def test_what_halves_leave_is_used():
    halves, found = calibrate_admission(0.3, 8, 2.5e-10, 2.5e-10), divide_admission(0.3, 8, Fraction("5e-10"))
    assert (halves.sigma_squared, halves.threshold) == (2658, 339)
    assert (found.sigma_squared, found.threshold) == (2602, 339)
    assert float(found.delta) == pytest.approx(5e-10, rel=1e-2)


# --- refusals


@pytest.mark.parametrize("sigma_squared", [0, -1, SIGMA_SQUARED_MAX + 1, 2.0, True])
def test_other_sigmas_are_refused(sigma_squared):
    for use in (
        lambda: sample(Streams(KEY, messages(1)), 1, sigma_squared=sigma_squared),
        lambda: tail(sigma_squared, 1),
        lambda: delta_of_fold(sigma_squared, 1, 1.0),
    ):
        with pytest.raises(InputError, match="sigma_squared"):
            use()


def test_numpy_integers_are_taken():
    streams = Streams(derive_key(KEY, "law"), messages(5))
    assert sample(streams, 5, sigma_squared=np.int64(333)).tolist() == drawn(5, 333).tolist()


def test_other_arguments_are_refused():
    with pytest.raises(InputError, match="one stream per element"):
        sample(Streams(KEY, messages(2)), 3, sigma_squared=1)
    for arguments in (
        (0.0, 1, 1e-9, 1e-9),
        (-1.0, 1, 1e-9, 1e-9),
        (math.inf, 1, 1e-9, 1e-9),
        (math.nan, 1, 1e-9, 1e-9),
        (1.0, 0, 1e-9, 1e-9),
        (1.0, 1, 0.0, 1e-9),
        (1.0, 1, 1e-9, 1.0),
    ):
        with pytest.raises(InputError):
            calibrate_admission(*arguments)
    with pytest.raises(InputError, match="Raise epsilon"):
        calibrate_admission(1e-4, 64, 1e-9, 1e-9)
