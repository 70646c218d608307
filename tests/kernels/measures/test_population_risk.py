from __future__ import annotations

import json
import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import minimize

from privrisk_spark.errors import InputError
from privrisk_spark.json_values import as_json, from_json
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.population_risk import (
    IndividualRiskTally,
    negative_binomial_risk,
    poisson_of_fraction,
    poisson_risk,
    risks_at_fraction,
    scaled_sizes,
)
from privrisk_spark.kernels.measures.population_uniques import (
    SEEN_SHARE,
    decided,
    modified_shlosser,
    one_drawn,
    pitman,
    slide_negative_binomial,
    zayatz,
)


def longs(values):
    return np.array(values, dtype=np.int64)


def drawn(population, fraction, rng):
    """Histogram of a Bernoulli sample of classes of these sizes."""
    sizes = rng.binomial(population, fraction)
    return SizeHistogram.of(sizes[sizes > 0])


# --- negative binomial

FRACTIONS = [1e-12, 1e-6, 1e-3, 0.01, 0.1, 0.3, 0.49999, 0.5, 0.6, 0.9, 0.999, 1 - 1e-12]


def test_negative_binomial_to_the_last_digits():
    """The recurrence from r_1 = c ln(1/p), with digits enough for what it loses: c^f where c > 1."""
    sizes = [1, 2, 3, 4, 5, 10, 20, 38, 39, 40, 41, 60, 150]
    for p in FRACTIONS:
        exact = Decimal(p)
        c = exact / (1 - exact)
        with localcontext() as context:
            context.prec = 60 + int(max(0.0, math.log10(c)) * max(sizes))
            c = exact / (1 - exact)
            risk = [c * -exact.ln()]
            for f in range(2, max(sizes) + 1):
                risk.append(c * (Decimal(1) / (f - 1) - risk[-1]))
            found = negative_binomial_risk(longs(sizes), np.full(len(sizes), p))
            for f, value in zip(sizes, found.tolist(), strict=True):
                assert abs(Decimal(value) / risk[f - 1] - 1) < Decimal("1e-14"), (f, p)


def test_negative_binomial_of_a_large_class():
    """E[1/F] of F of mean m = f/p and variance v = fq/p² is 1/m (1 + v/m² + …)."""
    for p in (0.01, 0.4, 0.7):
        found = negative_binomial_risk(longs([10**10]), np.array([p]))[0]
        assert found == pytest.approx(p / 10**10 * (1 + (1 - p) / 10**10), rel=1e-15)


def test_negative_binomial_is_the_mean_of_the_inverse():
    """Σ_h P(F = h | f) / h, term by term."""
    for f, p in [(1, 0.3), (2, 0.2), (3, 0.5), (7, 0.15), (50, 0.8)]:
        h = np.arange(f, 3000)
        assert negative_binomial_risk(longs([f]), np.array([p]))[0] == pytest.approx(
            math.fsum(stats.nbinom.pmf(h - f, f, p) / h), rel=1e-10
        )


def test_negative_binomial_closed_forms():
    for p in (0.05, 0.3, 0.7, 0.95):
        c, log = p / (1 - p), math.log(1 / p)
        expected = [c * log, c * (1 - c * log), c * (1 / 2 - c + c * c * log)]
        assert negative_binomial_risk(longs([1, 2, 3]), np.full(3, p)) == pytest.approx(expected, rel=1e-9)


def test_practice_guide():
    """Benschop, Machingauta and Welch, "Statistical Disclosure Control: A Practice Guide", table 4.1: ten records."""
    sizes = longs([2, 1, 2, 1, 1, 1, 2])
    weights = np.array([360, 215, 152, 186, 180, 215, 262], dtype=float)
    printed = [0.0054, 0.0251, 0.0126, 0.0282, 0.0290, 0.0251, 0.0074]
    assert negative_binomial_risk(sizes, sizes / weights).round(4).tolist() == printed
    tally = IndividualRiskTally.of(sizes, weights, [0.026])
    assert round(tally.mean, 5) == 0.01582
    assert tally.hits == pytest.approx(10 * tally.mean)
    assert tally.above == (2,)


def test_sdcmicro():
    """Values that sdcMicro's test_indivRisk.R states for its method "exact", five classes of eight records."""
    sizes, weights = longs([3, 1, 1, 2, 1]), np.array([108, 45.5, 17, 100, 123.5])
    stated = [0.01355297, 0.08579129, 0.17707583, 0.01877883, 0.03931625]
    assert negative_binomial_risk(sizes, sizes / weights).round(8).tolist() == stated


def test_sample_is_the_population():
    sizes = longs([1, 2, 3, 39, 40, 10**6])
    for risk in (
        negative_binomial_risk(sizes, np.ones(6)),
        poisson_of_fraction(sizes, 1.0),
        1 / scaled_sizes(sizes, 1),
    ):
        assert risk.tolist() == (1 / sizes).tolist()


def test_nothing_drawn():
    assert negative_binomial_risk(longs([1, 2, 50]), np.zeros(3)).tolist() == [0, 0, 0]


@given(st.integers(1, 300), st.floats(0, 1), st.floats(0, 1))
def test_negative_binomial_is_monotone_and_at_most_prosecutor(f, p, other):
    low, high = sorted((p, other))
    first, second, larger = negative_binomial_risk(longs([f, f, f + 1]), np.array([low, high, low]))
    assert 0 <= first <= second * (1 + 1e-13)
    assert second <= 1 / f * (1 + 1e-15)
    assert larger <= first * (1 + 1e-13)
    # Jensen: E[1/F] is at least 1/E[F].
    assert first >= low / f * (1 - 1e-13)


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(0, 1)), min_size=1, max_size=8))
def test_a_risk_does_not_depend_on_its_neighbours(rows):
    sizes, fractions = longs([f for f, _ in rows]), np.array([p for _, p in rows])
    whole = negative_binomial_risk(sizes, fractions)
    rates = fractions * 1000
    poisson = poisson_risk(sizes, rates, 0.3)
    for i in range(len(rows)):
        assert negative_binomial_risk(sizes[i : i + 1], fractions[i : i + 1])[0] == whole[i]
        assert poisson_risk(sizes[i : i + 1], rates[i : i + 1], 0.3)[0] == poisson[i]


def test_negative_binomial_by_simulation():
    """Population classes of which f were drawn: the mean of 1/F is the risk, and that of the scaled size is not."""
    rng = np.random.default_rng(11)
    for f, p in [(1, 0.1), (2, 0.1), (3, 0.3), (10, 0.05)]:
        inverse = 1 / (f + rng.negative_binomial(f, p, 200_000))
        error = 5 * inverse.std() / math.sqrt(len(inverse))
        assert abs(inverse.mean() - negative_binomial_risk(longs([f]), np.array([p]))[0]) < error
        assert abs(inverse.mean() - 1 / scaled_sizes(longs([f]), p)[0]) > error


# --- Poisson


def test_poisson_to_the_last_digits():
    """J_f = ∫_0^1 (1 - v)^(f-1) e^(-μv) dv = (1 - (f-1) J_(f-1)) / μ by parts, with the digits that this loses."""
    sizes = [1, 2, 3, 10, 100, 150, 199, 200, 201, 300]
    for mu in (0.125, 1, 10, 99.5, 163, 199, 200, 1500):
        with localcontext() as context:
            context.prec = 1200
            exact = Decimal(mu)
            risk = [(1 - (-exact).exp()) / exact]
            for f in range(2, max(sizes) + 1):
                risk.append((1 - (f - 1) * risk[-1]) / exact)
            found = poisson_risk(longs(sizes), np.full(len(sizes), 2.0 * mu), 0.5)
            for f, value in zip(sizes, found.tolist(), strict=True):
                assert abs(Decimal(value) / risk[f - 1] - 1) < Decimal("1e-13"), (f, mu)


def test_poisson_of_very_large_classes():
    """E[1/F] of a count of mean m and variance μ is 1/m (1 + μ/m² + …)."""
    found = poisson_risk(longs([10**8]), np.array([2e12]), 0.5)[0]
    mean = 10**8 + 1e12
    assert found == pytest.approx((1 + 1e12 / mean**2) / mean, rel=1e-15)


def test_poisson_by_simulation():
    """Sample uniques of a Poisson population: how many a link identifies, and how many are population uniques."""
    rng = np.random.default_rng(5)
    fraction = 0.2
    rates = rng.gamma(0.7, 4, 300_000)
    population = rng.poisson(rates)
    sample = rng.binomial(population, fraction)
    single = sample == 1
    risk = poisson_risk(sample[single], rates[single], fraction)
    hits = (1 / population[single]).sum()
    assert risk.sum() == pytest.approx(hits, rel=0.01)
    assert (1 / rates[single]).sum() != pytest.approx(hits, rel=0.2)
    # The wrong rate, of all members and not of those that were not drawn.
    assert poisson_risk(sample[single], rates[single] / (1 - fraction), fraction).sum() != pytest.approx(hits, rel=0.02)
    for f in (2, 5):
        of_size = sample == f
        expected = poisson_risk(sample[of_size], rates[of_size], fraction).mean()
        assert (1 / population[of_size]).mean() == pytest.approx(expected, rel=0.01)


# --- tallies


@given(
    st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1e9)), max_size=40), st.integers(0, 2**32), st.integers(1, 6)
)
def test_partitions_change_no_bit(table, seed, parts):
    def tally(rows):
        return IndividualRiskTally.of(
            longs([f for f, _ in rows]), np.array([w for _, w in rows], dtype=float), [0.01, 0.1, 0.5]
        )

    pick = random.Random(seed)
    rows = list(table)
    pick.shuffle(rows)
    parted = [[] for _ in range(parts)]
    for row in rows:
        parted[pick.randrange(parts)].append(row)
    empty = IndividualRiskTally.empty([0.01, 0.1, 0.5])
    total = empty
    for part in parted:
        total = total.plus(from_json(IndividualRiskTally, json.loads(json.dumps(as_json(tally(part))))))
    whole = tally(table)
    assert total == whole
    assert whole.plus(empty) == empty.plus(whole) == whole
    # Class by class.
    records = [(float(negative_binomial_risk(longs([f]), np.array([f / max(w, f)]))[0]), f) for f, w in table]
    n = sum(f for _, f in records)
    assert whole.mean == (float(sum((Fraction(r) * f for r, f in records), Fraction()) / n) if n else 0.0)
    assert whole.most == max((r for r, _ in records), default=None)
    assert whole.uniques.sum == float(sum((Fraction(r) for r, f in records if f == 1), Fraction()))
    assert whole.above == tuple(sum(f for r, f in records if r > t) for t in (0.01, 0.1, 0.5))
    assert whole.clamped == sum(w < f for f, w in table)


def test_one_fraction_for_all():
    """At equal weights 1/p the tally of classes and that of their histogram agree."""
    sizes = longs([1, 1, 1, 2, 2, 5, 40, 41])
    found = risks_at_fraction(SizeHistogram.of(sizes), 0.25, [0.1])
    assert found["negative-binomial"] == IndividualRiskTally.of(sizes, sizes / 0.25, [0.1])
    assert found["scaling"].mean == 8 * 0.25 / sizes.sum()
    assert found["scaling"].mean < found["negative-binomial"].mean
    assert found["scaling"].mean < found["poisson"].mean
    assert found["scaling"].above == (3 + 4,)
    assert found["poisson"].uniques.sum == pytest.approx(3 * (1 - math.exp(-3)) / 3)


def test_no_records():
    for tally in risks_at_fraction(SizeHistogram(), 0.5, [0.1]).values():
        assert (tally.mean, tally.most, tally.hits, tally.above) == (0.0, None, 0.0, (0,))


# --- population uniques


def chinese_restaurant(n, theta, alpha, seed):
    """Class sizes under Pitman's sampling formula, one record after the other."""
    pick = random.Random(seed)
    sizes: list[int] = []
    member: list[int] = []
    for i in range(n):
        if pick.random() * (theta + i) < theta + alpha * len(sizes):
            member.append(len(sizes))
            sizes.append(1)
            continue
        # A class of size f is joined with weight f - α.
        while True:
            at = member[pick.randrange(i)]
            if pick.random() * sizes[at] < sizes[at] - alpha:
                break
        member.append(at)
        sizes[at] += 1
    return longs(sizes)


@pytest.mark.parametrize(("theta", "alpha"), [(500.0, 0.3), (1000.0, 0.6), (300.0, 0.0)])
def test_pitman_recovers_its_population(theta, alpha):
    n = 60_000
    population = chinese_restaurant(n, theta, alpha, 5)
    uniques = int((population == 1).sum())
    rng = np.random.default_rng(2)
    found = [pitman(drawn(population, 0.1, rng), n) for _ in range(8)]
    assert np.mean([e.uniques for e in found]) == pytest.approx(uniques, rel=0.1)
    assert np.mean([e.parameters["alpha"] for e in found]) == pytest.approx(alpha, abs=0.05)
    assert np.mean([e.parameters["theta"] for e in found]) == pytest.approx(theta, rel=0.15)
    # What scaling up the sample uniques would say, which takes every one for a population unique.
    scaled = drawn(population, 0.1, rng).classes_of(1) / 0.1
    assert scaled > 1.4 * uniques


def test_pitman_share_by_simulation():
    population = chinese_restaurant(60_000, 1000.0, 0.6, 5)
    rng = np.random.default_rng(3)
    shares, estimates = [], []
    for _ in range(10):
        sample = rng.binomial(population, 0.1)
        shares.append(((sample == 1) & (population == 1)).sum() / (sample == 1).sum())
        estimates.append(pitman(SizeHistogram.of(sample[sample > 0]), 60_000).parameters["unique_share"])
    assert np.mean(estimates) == pytest.approx(np.mean(shares), rel=0.05)


def log_likelihood(histogram, theta, alpha):
    """Pitman's sampling formula, factor by factor."""
    u, n = histogram.classes, histogram.records
    value = math.fsum(math.log(theta + i * alpha) for i in range(1, u))
    value -= math.fsum(math.log(theta + i) for i in range(1, n))
    for size, number in zip(histogram.sizes, histogram.numbers, strict=True):
        value += number * math.fsum(math.log(at - alpha) for at in range(1, size))
    return value


@pytest.mark.parametrize("seed", range(6))
def test_pitman_is_the_maximum_likelihood(seed):
    rng = np.random.default_rng(seed)
    histogram = SizeHistogram.of(rng.geometric(rng.uniform(0.2, 0.8), 60))
    found = pitman(histogram, 10_000).parameters
    here = log_likelihood(histogram, found["theta"], found["alpha"])

    def loss(x):
        alpha = 1 / (1 + math.exp(-x[1]))
        return -log_likelihood(histogram, math.exp(x[0]) - alpha, alpha)

    best = -min(minimize(loss, start, method="Nelder-Mead").fun for start in ([3, 0], [5, -4], [1, 2]))
    assert here > best - 1e-6


def test_pitman_expected_uniques_factor_by_factor():
    histogram = SizeHistogram((1, 2, 3, 9), (40, 10, 5, 2))
    found = pitman(histogram, 700)
    theta, alpha = found.parameters["theta"], found.parameters["alpha"]
    factors = [(theta + alpha + i - 1) / (theta + i) for i in range(1, 700)]
    assert found.uniques == pytest.approx(700 * math.prod(factors), rel=1e-12)
    assert found.parameters["unique_share"] == pytest.approx(math.prod(factors[histogram.records - 1 :]), rel=1e-12)
    # The usual form, for a large population.
    large = pitman(histogram, 10**12)
    usual = math.gamma(theta + 1) / math.gamma(theta + alpha) * (10**12) ** alpha
    assert large.uniques == pytest.approx(usual, rel=1e-9)


def test_hypergeometric_probability():
    for n, population in [(1, 1), (1, 50), (7, 50), (49, 50), (50, 50), (300, 4000), (10**5, 10**7)]:
        sizes = np.array([i for i in (1, 2, 3, 10, 44, 50, 3000, 60_000) if i <= population], dtype=float)
        expected = stats.hypergeom.pmf(1, population, sizes, n)
        assert one_drawn(sizes, n, population) == pytest.approx(expected, rel=1e-6, abs=1e-300)


def test_hypergeometric_probability_of_a_large_population():
    """At 10^12 the logarithm of Γ has lost its digits; the product of the definition has not."""
    n, population, size = 10**9, 10**12, 2000
    product = Fraction(n, population) * size
    for t in range(size - 1):
        product *= Fraction(population - n - t, population - 1 - t)
    assert one_drawn(np.array([float(size)]), n, population)[0] == pytest.approx(float(product), rel=1e-12)


def test_zayatz_by_hand():
    """n_1 = 2, n_2 = 1, N = 8, n = 4: H(1) = 1/2, H(2) = 2·C(6,3)/C(8,4) = 4/7."""
    found = zayatz(SizeHistogram((1, 2), (2, 1)), 8)
    share = 2 * Fraction(1, 2) / (2 * Fraction(1, 2) + Fraction(4, 7))
    assert found.parameters["unique_share"] == pytest.approx(float(share))
    assert found.uniques == pytest.approx(float(2 * share * 2))


def test_zayatz_by_simulation():
    """Where half is drawn the sample's sizes are near the population's; a share of 1 for all sample uniques is not."""
    population = chinese_restaurant(60_000, 1000.0, 0.6, 5)
    uniques = int((population == 1).sum())
    rng = np.random.default_rng(4)
    samples = [drawn(population, 0.5, rng) for _ in range(8)]
    assert np.mean([zayatz(h, 60_000).uniques for h in samples]) == pytest.approx(uniques, rel=0.05)
    assert np.mean([h.classes_of(1) / 0.5 for h in samples]) > 1.15 * uniques


@pytest.mark.parametrize(("alpha", "beta"), [(0.8, 0.2), (2.0, 0.6), (0.3, 0.05)])
def test_slide_negative_binomial_recovers_its_population(alpha, beta):
    rng = np.random.default_rng(3)
    population = 1 + rng.negative_binomial(alpha, beta, 40_000)
    uniques, members = int((population == 1).sum()), int(population.sum())
    found = [slide_negative_binomial(drawn(population, 0.6, rng), members) for _ in range(5)]
    assert np.mean([e.uniques for e in found]) == pytest.approx(uniques, rel=0.06)
    assert np.mean([e.parameters["classes"] for e in found]) == pytest.approx(40_000, rel=0.03)
    # All sample uniques taken for population uniques.
    assert drawn(population, 0.6, rng).classes_of(1) / 0.6 > 1.1 * uniques


def test_slide_negative_binomial_solves_its_equations():
    """The expected n_1 and n_2, summed over the sizes of the population, are those of the sample."""
    histogram = SizeHistogram((1, 2, 3, 4, 7), (300, 120, 60, 30, 9))
    members = 1800
    found = slide_negative_binomial(histogram, members)
    p, size = histogram.records / members, np.arange(1, 4000)
    density = stats.nbinom.pmf(size - 1, found.parameters["alpha"], found.parameters["beta"])
    for drawn_size, number in ((1, 300), (2, 120)):
        expected = found.parameters["classes"] * math.fsum(density * stats.binom.pmf(drawn_size, size, p))
        assert expected == pytest.approx(number, rel=1e-6)
    assert found.uniques == pytest.approx(found.parameters["classes"] * density[0])


def test_modified_shlosser_by_hand():
    """n_1 = 3, n_2 = 1, p = 1/2; the sums are 9/8, 3·1/4 + 5/16, 3/2 + 1/4 and 3/2 + 1/2."""
    over = Fraction(3, 4) + 2 * Fraction(1, 4) * Fraction(3, 4)
    under = 3 * Fraction(1, 2) * Fraction(1, 2) + Fraction(1, 4) * (Fraction(9, 4) - 1)
    expected = 4 + 3 * over / under * (Fraction(7, 4) / 2) ** 2
    assert modified_shlosser(SizeHistogram((1, 2), (3, 1)), 0.5) == pytest.approx(float(expected), rel=1e-14)
    assert modified_shlosser(SizeHistogram((1, 2), (3, 1)), 1.0) == 4
    assert modified_shlosser(SizeHistogram((2,), (3,)), 0.1) == 3
    # All alone: the sample says no more than that there are as many classes as people.
    assert modified_shlosser(SizeHistogram((1,), (50,)), 0.1) == pytest.approx(500)
    # Sizes whose powers have no place in a float.
    assert 11 < modified_shlosser(SizeHistogram((1, 10**9), (10, 1)), 0.3) < math.inf


def known_populations():
    rng, classes = np.random.default_rng(1), 8000
    yield 1 + rng.geometric(0.3, classes) - 1
    for shape, rate in ((0.05, 0.01), (0.2, 0.05), (1.0, 0.2)):
        yield 1 + rng.negative_binomial(shape, rate, classes)
    yield np.minimum(rng.zipf(1.8, classes), 5000)
    yield np.minimum(rng.zipf(1.3, classes), 5000)
    yield np.ceil(rng.lognormal(1, 1.5, classes)).astype(np.int64)
    yield np.ceil(rng.lognormal(0, 2, classes)).astype(np.int64)
    yield np.full(classes, 10)
    yield 1 + rng.poisson(3, classes)
    keys = np.zeros(80_000, dtype=np.int64)
    for values, evenness in ((90, 5), (2, 5), (60, 0.5), (12, 0.5)):
        shares = rng.dirichlet(np.full(values, evenness, dtype=float))
        keys = keys * values + rng.choice(values, len(keys), p=shares)
    yield np.unique(keys, return_counts=True)[1]


def test_error_of_the_slide_negative_binomial_estimate_on_known_populations():
    """Where it is given at all it is never far off: a believer in it must not be told nine times the truth."""
    rng, given, left_out = np.random.default_rng(2), 0, 0
    for population in known_populations():
        people, uniques = int(population.sum()), int((population == 1).sum())
        for fraction in (0.05, 0.12, 0.15, 0.2, 0.3, 0.4, 0.5, 0.65, 0.8):
            histogram = drawn(population, fraction, rng)
            found = slide_negative_binomial(histogram, people)
            if found.uniques is None:
                left_out += 1
                continue
            given += 1
            classes = found.parameters.get("classes", histogram.classes)
            assert histogram.classes >= SEEN_SHARE * classes
            assert classes == pytest.approx(len(population), rel=0.25)
            near = 0.8 * uniques < found.uniques < 1.7 * uniques
            assert near or abs(found.uniques - uniques) < 0.01 * people
    assert given > 30
    assert left_out > 20


def test_without_sample_uniques_no_population_unique_was_drawn():
    for histogram in (SizeHistogram((2, 3), (40, 10)), SizeHistogram((9,), (1,))):
        for population in (10 * histogram.records, 3 * histogram.records):
            for model in MODELS:
                assert model(histogram, population).uniques == 0


def test_decision_rule():
    histogram = SizeHistogram((1, 2, 3, 4, 7), (300, 120, 60, 30, 9))
    n = histogram.records
    assert decided(histogram, 10 * n) == pitman(histogram, 10 * n)
    both = zayatz(histogram, 1800), slide_negative_binomial(histogram, 1800)
    assert decided(histogram, 1800) == min(both, key=lambda e: e.uniques)
    assert slide_negative_binomial(histogram, 3 * n).uniques is None
    assert decided(histogram, 3 * n) == zayatz(histogram, 3 * n)
    unique = SizeHistogram((1,), (50,))
    assert decided(unique, 5000) == zayatz(unique, 5000)
    assert decided(unique, 60) == zayatz(unique, 60)


MODELS = [zayatz, pitman, slide_negative_binomial, decided]


@pytest.mark.parametrize("model", MODELS)
def test_sample_is_the_whole_population(model):
    for histogram in (SizeHistogram((1, 2), (3, 4)), SizeHistogram((1,), (5,)), SizeHistogram((3,), (2,))):
        assert model(histogram, histogram.records).uniques == pytest.approx(histogram.classes_of(1))


@pytest.mark.parametrize("model", MODELS)
def test_no_records_no_estimate(model):
    found = model(SizeHistogram(), 100)
    assert found.uniques is None
    assert found.reason == "the sample has no records"


def test_reasons():
    all_unique = SizeHistogram((1,), (50,))
    assert "every record of the sample is unique" in pitman(all_unique, 1000).reason
    assert "no class of two records" in slide_negative_binomial(all_unique, 1000).reason
    assert zayatz(all_unique, 1000).uniques == pytest.approx(1000)
    few_seen = slide_negative_binomial(SizeHistogram((1, 2), (80, 10)), 400)
    assert "too few of the population's classes are in the sample" in few_seen.reason


histograms = st.dictionaries(
    st.one_of(st.integers(1, 6), st.integers(1, 10**6)), st.integers(1, 10**6), min_size=1, max_size=6
)


@given(histograms, st.one_of(st.integers(0, 100), st.integers(0, 10**12)))
def test_an_estimate_is_possible_or_has_a_reason(histogram, more):
    table = SizeHistogram(tuple(sorted(histogram)), tuple(histogram[f] for f in sorted(histogram)))
    population = table.records + more
    for model in MODELS:
        found = model(table, population)
        json.dumps(as_json(found), allow_nan=False)
        if found.uniques is None:
            assert found.reason
            continue
        assert found.reason is None
        assert 0 <= found.uniques <= population * (1 + 1e-9)
        assert all(math.isfinite(value) for value in found.parameters.values())
        share = found.parameters.get("unique_share", 0.5)
        assert 0 <= share <= 1 + 1e-12


# --- errors


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: scaled_sizes(longs([1]), 0.0), "above 0 and at most 1. Got 0.0"),
        (lambda: poisson_of_fraction(longs([1]), 1.5), "above 0 and at most 1. Got 1.5"),
        (lambda: poisson_risk(longs([1]), np.array([math.nan]), 0.5), "finite and not negative"),
        (lambda: negative_binomial_risk(longs([0]), np.array([0.5])), "at least 1. Got 0"),
        (lambda: negative_binomial_risk(longs([1]), np.array([1.5])), "between 0 and 1"),
        (lambda: IndividualRiskTally.of(longs([1]), np.array([-1.0])), "negative or NaN"),
        (lambda: risks_at_fraction(SizeHistogram(), math.nan), "Got nan"),
        (lambda: zayatz(SizeHistogram((5,), (2,)), 9), "Got 9 members, 10 records"),
        (lambda: pitman(SizeHistogram((5,), (2,)), 9), "Got 9 members, 10 records"),
        (lambda: slide_negative_binomial(SizeHistogram((5,), (2,)), 9), "Got 9 members, 10 records"),
        (lambda: modified_shlosser(SizeHistogram(), 0.0), "Got 0.0"),
    ],
)
def test_errors(call, said):
    with pytest.raises(InputError, match=said):
        call()
