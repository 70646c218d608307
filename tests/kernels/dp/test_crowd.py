from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive_crowd import binomial, exp_lower_bound, hockey_stick, random_kernel, release_law, thresholded

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.dp.crowd import (
    KEEP_UNIT,
    certificate,
    greatest_keep,
    keep_numerator,
    least_crowd,
    survival_rows,
)

EPSILONS = st.sampled_from(["1/20", "0.1", "0.3", "0.7", "1", "2.5"])
SHARES = st.sampled_from(["1", "9/10", "1/2", "1/5", "1/100"])


# --- literal twins


def naive_certificate(k: int, numerator: int, epsilon: str, up_to: int) -> tuple[Fraction, int]:
    beta, a = Fraction(numerator, KEEP_UNIT), exp_lower_bound(epsilon)
    values = []
    for n in range(1, up_to + 1):
        with_row, without = thresholded(n, k, beta), thresholded(n - 1, k, beta)
        assert hockey_stick(without, with_row, a) == 0
        values.append((hockey_stick(with_row, without, a), n))
    best = max(value for value, _ in values)
    return best, min(n for value, n in values if value == best)


# --- certificate


@pytest.mark.parametrize(
    ("epsilon", "numerator", "k", "delta", "worst"),
    [
        ("1", 2714937127, 5, "1.0092519022e-01", 5),
        ("1", 2714937127, 10, "1.9969573407e-02", 11),
        ("1", 2714937127, 30, "2.0749630791e-04", 34),
        ("1", 2714937127, 58, "9.3843040472e-07", 66),
        ("1", 2714937127, 97, "9.9596873485e-10", 112),
        ("1", 1357468563, 10, "1.2639752161e-04", 13),
        ("1", 1357468563, 30, "7.6975964293e-10", 39),
        (0.7, 1081074828, 10, "1.1144820834e-04", 15),
        (Fraction(7, 10), 1081074828, 30, "1.0037942623e-09", 47),
        ("0.5", 1689937948, 30, "2.7929553525e-05", 46),
        (0.5, 1689937948, 97, "2.5408254325e-11", 152),
    ],
)
def test_certificate_golden(epsilon, numerator, k, delta, worst):
    found = certificate(k, numerator, epsilon)
    assert f"{found.delta_float:.10e}" == delta
    assert found.worst_n == worst


@given(st.integers(1, 6), EPSILONS, SHARES)
@settings(max_examples=60, deadline=None)
def test_certificate_is_the_literal_maximum_over_all_n(k, epsilon, share):
    numerator = keep_numerator(epsilon, share)
    gamma = 1 - (1 - Fraction(numerator, KEEP_UNIT)) / exp_lower_bound(epsilon)
    up_to = math.ceil(k / gamma) + 12
    assume(up_to <= 60)
    found = certificate(k, numerator, epsilon)
    assert (found.delta, found.worst_n) == naive_certificate(k, numerator, epsilon, up_to)


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 4), EPSILONS, SHARES)
@settings(max_examples=60, deadline=None)
def test_no_small_table_with_random_kernels_exceeds_the_certificate(seed, k, rows, epsilon, share):
    rng = random.Random(seed)
    numerator = keep_numerator(epsilon, share)
    beta, a = Fraction(numerator, KEEP_UNIT), exp_lower_bound(epsilon)
    kernels = [random_kernel(rng, rng.choice((1, 2))) for _ in range(rows)]
    with_row, without = release_law(kernels, k, beta), release_law(kernels[:-1], k, beta)
    assert sum(with_row.values()) == 1
    delta = certificate(k, numerator, epsilon).delta
    assert hockey_stick(with_row, without, a) <= delta
    assert hockey_stick(without, with_row, a) <= delta


def test_one_crowded_cell_attains_the_certificate():
    k, epsilon = 3, "0.7"
    numerator = keep_numerator(epsilon)
    found = certificate(k, numerator, epsilon)
    laws = [
        release_law([{0: Fraction(1)}] * n, k, Fraction(numerator, KEEP_UNIT))
        for n in (found.worst_n, found.worst_n - 1)
    ]
    assert hockey_stick(*laws, exp_lower_bound(epsilon)) == found.delta


@given(EPSILONS, SHARES)
def test_without_a_crowd_delta_is_the_keep_probability(epsilon, share):
    numerator = keep_numerator(epsilon, share)
    found = certificate(1, numerator, epsilon)
    assert (found.delta, found.worst_n) == (Fraction(numerator, KEEP_UNIT), 1)


@given(st.integers(1, 40), EPSILONS, SHARES, SHARES)
@settings(deadline=None)
def test_certificate_falls_with_k_and_epsilon_and_rises_with_beta(k, epsilon, share, other):
    lower, higher = sorted((keep_numerator(epsilon, share), keep_numerator(epsilon, other)))
    assert certificate(k, lower, epsilon).delta <= certificate(k, higher, epsilon).delta
    assert certificate(k + 1, lower, epsilon).delta <= certificate(k, lower, epsilon).delta
    assert certificate(k, lower, Fraction(epsilon) + 1).delta <= certificate(k, lower, epsilon).delta


@given(st.integers(1, 60), EPSILONS, SHARES)
@settings(deadline=None)
def test_the_float_is_the_least_one_not_below(k, epsilon, share):
    found = certificate(k, keep_numerator(epsilon, share), epsilon)
    assert Fraction(math.nextafter(found.delta_float, 0)) < found.delta <= Fraction(found.delta_float)


def test_tiny_deltas_do_not_round_to_zero():
    found = certificate(400, keep_numerator("0.1", "1/1000"), "0.1")
    assert 0 < found.delta <= Fraction(found.delta_float) < Fraction(1, 10**300)


def test_a_float_is_its_shortest_decimal():
    assert certificate(10, 1081074828, 0.7) == certificate(10, 1081074828, "7/10")
    assert Fraction(0.7) < Fraction(7, 10)


# --- keep probability


@pytest.mark.parametrize(
    ("epsilon", "fraction", "numerator"),
    [
        ("1", 1, 2714937127),
        (1.0, "1/2", 1357468563),
        (0.7, 0.5, 1081074828),
        ("0.5", Fraction(1), 1689937948),
    ],
)
def test_keep_numerator_golden(epsilon, fraction, numerator):
    assert keep_numerator(epsilon, fraction) == numerator


@given(st.fractions("1/1000", 64, max_denominator=10**6), st.fractions("1/1000", 1, max_denominator=1000))
def test_keep_numerator_is_the_floor(epsilon, fraction):
    with localcontext() as context:
        context.prec = 120
        exact = 1 - (-Decimal(epsilon.numerator) / epsilon.denominator).exp()
        scaled = exact * KEEP_UNIT * fraction.numerator / fraction.denominator
        expected = math.floor(scaled)
    assume(expected >= 1)
    numerator = keep_numerator(epsilon, fraction)
    assert numerator == expected
    assert certificate(1, numerator, epsilon).delta == Fraction(numerator, KEEP_UNIT)


@given(st.fractions("1/1000", 64, max_denominator=10**6))
def test_exp_lower_bound_is_below_and_close(epsilon):
    bound = exp_lower_bound(epsilon)
    with localcontext() as context:
        context.prec = 160
        exact = (Decimal(epsilon.numerator) / epsilon.denominator).exp()
        shortfall = exact - Decimal(bound.numerator) / bound.denominator
    assert 0 <= shortfall < Decimal(2) ** -254


@pytest.mark.parametrize("epsilon", ["6", "12", "40"])
def test_a_threshold_that_nobody_could_use_is_refused_at_once(epsilon):
    """It grows as e^epsilon: at 12 the search would take days."""
    numerator = keep_numerator(epsilon)
    with pytest.raises(InputError, match=r"above 5,000 rows: lower epsilon or the keep fraction, or raise delta"):
        least_crowd("1e-9", numerator, epsilon)
    assert least_crowd("1e-9", keep_numerator("5"), "5") == 3066


@pytest.mark.parametrize("epsilon", ["0.1", "0.7", "1", "3"])
def test_one_more_than_the_largest_numerator_is_refused(epsilon):
    most = keep_numerator(epsilon)
    certificate(10, most, epsilon)
    with pytest.raises(InputError, match=f"exceeds 1 - e.*at most {most}. Got {most + 1}"):
        certificate(10, most + 1, epsilon)


# --- choosing k


@pytest.mark.parametrize(
    ("epsilon", "fraction", "delta", "k", "n50", "n99"),
    # k, N50 and N99 of the design; the beta at which it prints 101 for N50 has 99 by the exact median
    # (test_survival_rows_are_exact), 101 being k / beta.
    [
        ("1", 1, "1e-6", 58, 91, 110),
        ("1", "1/2", "1e-6", 18, 56, 87),
        ("1", 1, "1e-7", 71, 112, 133),
        ("1", "1/2", "1e-7", 22, 69, 102),
        ("1", 1, "1e-9", 97, 153, 177),
        ("1", "3/4", "1e-9", 53, 111, 140),
        ("1", "1/2", "1e-9", 30, 94, 132),
        ("1", "1/4", "1e-9", 16, 99, 164),
        ("1", 1, "1e-12", 139, 220, 248),
        ("1", "1/2", "1e-12", 42, 132, 176),
        ("0.7", 1, 5e-10, 89, 176, 210),
        ("0.7", "1/2", 5e-10, 32, 126, 177),
        ("0.7", "1/4", 5e-10, 17, 133, 217),
        ("0.7", "1/2", 5e-8, 23, 90, 135),
        ("0.9", 1, 1e-5, 44, None, None),
        ("0.9", 1, 1e-6, 56, None, None),
        ("0.9", 1, 1e-9, 93, None, None),
    ],
)
def test_least_crowd_golden(epsilon, fraction, delta, k, n50, n99):
    numerator = keep_numerator(epsilon, fraction)
    assert least_crowd(delta, numerator, epsilon) == k
    assert (
        certificate(k, numerator, epsilon).delta <= Fraction(str(delta)) < certificate(k - 1, numerator, epsilon).delta
    )
    if n50 is not None:
        assert (survival_rows(k, numerator, 0.5), survival_rows(k, numerator, 0.99)) == (n50, n99)


def test_least_crowd_has_a_floor():
    numerator = keep_numerator("1", "1/100")
    assert certificate(3, numerator, "1").delta < Fraction("1e-3")
    assert least_crowd("1e-3", numerator, "1") == 10
    assert least_crowd("1e-3", numerator, "1", floor=1) < 10
    assert least_crowd("1e-3", numerator, "1", floor=25) == 25


@given(st.integers(10, 60), EPSILONS, st.sampled_from(["1e-3", "5e-10", "1e-12"]))
@settings(deadline=None, max_examples=40)
def test_the_greatest_keep_is_one_below_what_breaks_delta(k, epsilon, delta):
    most = keep_numerator(epsilon)
    assume(certificate(k, most // 1000 + 1, epsilon).delta <= Fraction(delta))
    found = greatest_keep(delta, k, epsilon, most // 1000 + 1)
    assert certificate(k, found, epsilon).delta <= Fraction(delta)
    assert found == most or Fraction(delta) < certificate(k, found + 1, epsilon).delta


def test_a_keep_is_never_above_what_epsilon_allows():
    assert greatest_keep("1e-2", 40, "0.7", 2**20) == keep_numerator("0.7")


def test_no_keep_is_found_where_the_first_one_breaks_delta():
    numerator = keep_numerator("0.7", "1/2")
    assert least_crowd("5e-10", numerator, "0.7") == 32
    with pytest.raises(InputError, match="A crowd threshold of 31 does not meet delta 5e-10"):
        greatest_keep("5e-10", 31, "0.7", numerator)


@given(st.integers(1, 30), EPSILONS, SHARES)
@settings(deadline=None, max_examples=40)
def test_each_sum_rises_with_beta_up_to_k_over_gamma(k, epsilon, share):
    """The step by which the certificate rises with beta: the derivative of one n's sum, by exact differences."""
    a, numerator = exp_lower_bound(epsilon), keep_numerator(epsilon, share)
    beta = Fraction(numerator, KEEP_UNIT)
    gamma = 1 - (1 - beta) / a

    def summed(n: int, b: Fraction) -> Fraction:
        law = [[math.comb(m, j) * b**j * (1 - b) ** (m - j) for j in range(k, m + 1)] for m in (n, n - 1)]
        return sum(law[0], Fraction(0)) - a * sum(law[1], Fraction(0))

    for n in {k, min(math.floor(k / gamma), k + 40)}:
        assert summed(n, beta) >= summed(n, beta - beta / 10**9)


@given(st.integers(1, 20), st.sampled_from([2**32, 2714937127, 2**30, 2**28]), st.sampled_from([0.01, 0.5, 0.99]))
@settings(deadline=None)
def test_survival_rows_are_exact(k, numerator, probability):
    beta = Fraction(numerator, KEEP_UNIT)
    n = survival_rows(k, numerator, probability)
    for rows, enough in ((n, True), (n - 1, False)):
        assert (sum(binomial(rows, beta)[k:], Fraction(0)) >= Fraction(probability)) == enough


def test_median_of_the_golden_line_that_differs():
    beta = Fraction(keep_numerator("1", "1/4"), KEEP_UNIT)
    assert sum(binomial(99, beta)[16:]) >= Fraction(1, 2) > sum(binomial(98, beta)[16:])


# --- refusals


@pytest.mark.parametrize("epsilon", [0, -1, "0", 65, math.inf, math.nan, "x", "1/0"])
def test_other_epsilons_are_refused(epsilon):
    for use in (
        lambda: certificate(10, 2**20, epsilon),
        lambda: keep_numerator(epsilon),
    ):
        with pytest.raises(InputError, match="epsilon must be"):
            use()


def test_other_arguments_are_refused():
    with pytest.raises(InputError, match="threshold k"):
        certificate(0, 2**20, 1)
    for numerator in (0, 2**32):
        with pytest.raises(InputError, match="numerator"):
            certificate(10, numerator, 1)
    for fraction in (0, "1.01", -1):
        with pytest.raises(InputError, match="fraction"):
            keep_numerator(1, fraction)
    with pytest.raises(InputError, match="fewer than one row"):
        keep_numerator("1e-9", "1e-9")
    for delta in (0, 1, "2"):
        with pytest.raises(InputError, match="delta"):
            least_crowd(delta, 2**20, 1)
    with pytest.raises(InputError, match="least crowd"):
        least_crowd("1e-9", 2**20, 1, floor=0)
    for arguments in (
        (0, 2**20, 0.5),
        (10, 0, 0.5),
        (10, 2**32 + 1, 0.5),
        (10, 2**20, 0.0),
        (10, 2**20, 1.0),
    ):
        with pytest.raises(InputError):
            survival_rows(*arguments)
    with pytest.raises(InputError, match=r"2\^40"):
        survival_rows(10**4, 1, 0.5)
