from __future__ import annotations

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive_crowd import exp_lower_bound, hockey_stick, random_kernel, release_law, thresholded

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.dp.crowd import KEEP_UNIT, certificate, keep_numerator
from privrisk_spark.kernels.dp.crowd_profile import profile, waiting_time
from privrisk_spark.kernels.numeric.rational import exp_bounds

BETAS = st.sampled_from([0.07, 0.25, 0.5, 0.75, 0.93])
EPSILONS = np.round(np.arange(-1.5, 3.01, 0.125), 3)


def below_exp(epsilon: float) -> Fraction:
    """e^epsilon but for 2^-250, from below."""
    x = Fraction(epsilon)
    return exp_bounds(x)[0] if x >= 0 else 1 / exp_bounds(-x)[1]


def suprema(k: int, numerator: int, a: Fraction, up_to: int) -> tuple[Fraction, Fraction]:
    """Both suprema over n <= up_to by enumeration of what is published of one tuple."""
    beta = Fraction(numerator, KEEP_UNIT)
    laws = [thresholded(n, k, beta) for n in range(up_to + 1)]
    pairs = list(zip(laws[1:], laws, strict=False))
    return max(hockey_stick(p, q, a) for p, q in pairs), max(hockey_stick(q, p, a) for p, q in pairs)


@given(st.integers(1, 5), BETAS, st.sampled_from(EPSILONS.tolist()))
@settings(max_examples=150, deadline=None)
def test_profile_is_the_literal_supremum_over_all_n(k, beta, epsilon):
    numerator = round(beta * KEEP_UNIT)
    a = below_exp(epsilon)
    exact_beta = Fraction(numerator, KEEP_UNIT)
    up_to = k + 3
    for ratio in (a, 1 / a):
        gamma = 1 - (1 - exact_beta) / ratio
        if gamma > 0:
            up_to = max(up_to, math.ceil((k - 1) / gamma) + 3)
    assume(up_to <= 60)
    found = profile(k, numerator, np.array([epsilon]))
    for exact, bound in zip(suprema(k, numerator, a, up_to), (found.with_row[0], found.without_row[0]), strict=True):
        # Above it by rounding of the terms it is a difference of, the greater of which is at most a.
        rounding = Fraction(16 * len(waiting_time(k, numerator)), 2**53) * max(1, a)
        assert exact <= Fraction(bound) <= exact + rounding


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 4), BETAS, st.sampled_from(EPSILONS.tolist()))
@settings(max_examples=60, deadline=None)
def test_no_small_table_with_random_kernels_exceeds_the_profile(seed, k, rows, beta, epsilon):
    rng = random.Random(seed)
    numerator = round(beta * KEEP_UNIT)
    kernels = [random_kernel(rng, rng.choice((1, 2))) for _ in range(rows)]
    laws = [release_law(some, k, Fraction(numerator, KEEP_UNIT)) for some in (kernels, kernels[:-1])]
    found, a = profile(k, numerator, np.array([epsilon])), below_exp(epsilon)
    # Both are exact where one cell holds everybody, so the comparison needs the room of one rounding.
    assert hockey_stick(laws[0], laws[1], a) <= Fraction(found.with_row[0])
    assert hockey_stick(laws[1], laws[0], a) <= Fraction(found.without_row[0])


@pytest.mark.parametrize(
    ("epsilon", "numerator", "k"),
    [
        ("1", 2714937127, 5),
        ("1", 2714937127, 97),
        ("1", 1357468563, 30),
        ("7/10", 1081074828, 31),
        ("1/2", 1689937948, 97),
        ("1", keep_numerator("1", "1/100"), 10),
        ("1/10", keep_numerator("1/10", "1/1000"), 12),
    ],
)
def test_profile_is_the_certificate_at_its_epsilon(epsilon, numerator, k):
    exact = certificate(k, numerator, epsilon).delta
    found = profile(k, numerator, np.array([float(Fraction(epsilon))]))
    # A float epsilon may lie 1e-17 beside the rational one.
    assert exact * (1 - Fraction(1, 10**12)) <= Fraction(found.with_row[0]) <= exact * (1 + Fraction(1, 10**7))
    if Fraction(KEEP_UNIT, KEEP_UNIT - numerator) < exp_lower_bound(epsilon) * Fraction(999, 1000):
        assert found.without_row[0] == 0.0


@pytest.mark.parametrize(("k", "beta"), [(1, 0.5), (3, 0.9), (31, 0.2516), (97, 0.6321), (12, 0.001)])
def test_waiting_time_is_the_negative_binomial_and_dominates_by_a_shift(k, beta):
    numerator = round(beta * KEEP_UNIT)
    exact_beta = Fraction(numerator, KEEP_UNIT)
    law = waiting_time(k, numerator)
    assert abs(math.fsum(law) - 1) < 1e-12
    for n in {k, k + 1, k + 7, math.ceil(k / beta), min(2 * math.ceil(k / beta), k + len(law) - 1)}:
        exact = math.comb(n - 1, k - 1) * exact_beta**k * (1 - exact_beta) ** (n - k)
        if exact > 1e-290:
            assert abs(Fraction(law[n - k]) / exact - 1) < Fraction(1, 10**11)
    # The theorem: hockey-sticks of tau - 1 against tau, summed literally.
    found = profile(k, numerator, EPSILONS)
    one_less = np.append(law, 0.0)  # Pr[tau - 1 = n], n = k - 1, k, ...
    same = np.insert(law, 0, 0.0)
    for i, a in enumerate(np.exp(EPSILONS)):
        for p, q, bound in ((one_less, same, found.with_row[i]), (same, one_less, found.without_row[i])):
            literal = math.fsum(np.maximum(p - a * q, 0.0))
            assert literal * (1 - 1e-9) - 1e-15 <= bound <= literal * (1 + 1e-9) + 1e-14


@given(st.integers(1, 60), BETAS)
@settings(deadline=None, max_examples=40)
def test_profile_falls_and_is_convex_in_a(k, beta):
    grid = np.arange(-3000, 4000) * 1e-3
    found = profile(k, round(beta * KEEP_UNIT), grid)
    a = np.exp(grid)
    for values in (found.with_row, found.without_row):
        assert (values >= np.maximum(1 - a, 0) - 1e-15).all()
        assert (np.diff(values) <= 1e-13).all()
        slopes = np.diff(values) / np.diff(a)
        assert (np.diff(slopes) >= -1e-7).all()


def test_points_do_not_depend_on_each_other():
    whole = profile(31, 1080640000, EPSILONS)
    for i in (0, 7, 20, len(EPSILONS) - 1):
        alone = profile(31, 1080640000, EPSILONS[i : i + 1])
        assert (alone.with_row[0], alone.without_row[0]) == (whole.with_row[i], whole.without_row[i])


def test_other_arguments_are_refused():
    for arguments in ((0, 2**31), (10, 0), (10, 2**32)):
        with pytest.raises(InputError):
            profile(*arguments, np.zeros(1))
    for epsilon in (math.nan, math.inf, 701.0):
        with pytest.raises(InputError, match="700"):
            profile(10, 2**31, np.array([epsilon]))
    with pytest.raises(InputError, match="too many rows"):
        profile(10, 1, np.zeros(1))
