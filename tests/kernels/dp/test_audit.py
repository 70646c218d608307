from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.dp import audit
from privrisk_spark.kernels.dp.audit import Event


def test_the_bound_of_no_hits_on_the_other_side():
    """Every trial against none, alpha halved: p_low = (a/2)^(1/n), q_up = 1 - (a/2)^(1/n)."""
    limit = (0.01 / 2) ** (1 / 500)
    (found,) = audit.epsilon_bounds(np.array([500]), np.array([0]), 500, delta=0.02, alpha=0.01)
    assert found == pytest.approx(math.log((limit - 0.02) / (1 - limit)), rel=1e-9)
    assert audit.epsilon_bounds(np.array([5]), np.array([0]), 500, delta=0.02, alpha=0.01).tolist() == [0]
    assert audit.epsilon_bounds(np.array([0]), np.array([9]), 500, delta=0.0, alpha=0.01).tolist() == [0]


@given(hits=st.integers(0, 40), other=st.integers(0, 40))
def test_the_bound_falls_with_delta_and_with_certainty(hits, other):
    counts = np.array([hits]), np.array([other])
    at = [
        audit.epsilon_bounds(*counts, 40, delta=delta, alpha=alpha)[0]
        for delta, alpha in [(0, 0.1), (0.05, 0.1), (0.05, 1e-3)]
    ]
    assert at[0] >= at[1] >= at[2] >= 0


def test_a_bound_is_rarely_above_the_truth():
    """One-sided coverage for events of known probabilities: at most alpha of 4,000 bounds exceed epsilon."""
    generator = np.random.default_rng(3)
    trials, alpha = 400, 0.05
    for p, q, delta in ((0.3, 0.1, 0.0), (0.5, 0.45, 0.02), (0.02, 0.001, 0.01)):
        hits, other = generator.binomial(trials, p, 4000), generator.binomial(trials, q, 4000)
        bounds = audit.epsilon_bounds(hits, other, trials, delta=delta, alpha=alpha)
        assert (bounds > math.log((p - delta) / q)).mean() <= alpha


def literal_choice(one, other, delta, alpha):
    """Every event of every feature, one after the other."""
    for allowed in (delta, 0.0):
        best, chosen = 0.0, Event(0, ">=", 0)
        for feature in range(one.shape[1]):
            for relation in (">=", "<=", "=="):
                for value in sorted({*one[:, feature].tolist(), *other[:, feature].tolist()}):
                    event = Event(feature, relation, value)
                    hits = [np.array([event.occurs(side)]) for side in (one, other)]
                    (bound,) = audit.epsilon_bounds(*hits, len(one), delta=allowed, alpha=alpha)
                    if bound > best:
                        best, chosen = bound, event
        if best > 0:
            return chosen
    return chosen


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.3]))
def test_the_event_is_the_best_of_all(seed, delta):
    generator = np.random.default_rng(seed)
    one, other = (generator.poisson(generator.uniform(0, 3, 3), (30, 3)) - 1 for _ in range(2))
    assert audit.choose_event(one, other, delta=delta, alpha=0.2) == literal_choice(one, other, delta, 0.2)


def test_the_trials_that_choose_do_not_certify():
    """Noise alone: with 300 features some event looks good on the first half, and nothing comes of it."""
    generator = np.random.default_rng(8)
    one, other = generator.integers(0, 5, (200, 300)), generator.integers(0, 5, (200, 300))
    chosen = audit.choose_event(one[:100], other[:100], delta=0.0, alpha=0.05)
    found = audit.certify(one, other, delta=0.0, alpha=0.05)
    assert found.event == chosen
    assert found.trials == 100
    on_chosen = audit.epsilon_bounds(
        np.array([chosen.occurs(one[:100])]), np.array([chosen.occurs(other[:100])]), 100, delta=0.0, alpha=0.05
    )[0]
    assert found.epsilon < on_chosen
    assert found.hits == chosen.occurs(one[100:])


def test_sides_of_an_audit_have_one_shape():
    with pytest.raises(InputError, match="one shape"):
        audit.certify(np.zeros((4, 2), dtype=np.int64), np.zeros((4, 1), dtype=np.int64), delta=0, alpha=0.1)
    with pytest.raises(InputError, match="two trials"):
        audit.certify(np.zeros((1, 1), dtype=np.int64), np.zeros((1, 1), dtype=np.int64), delta=0, alpha=0.1)


@given(rows=st.integers(0, 12), crowd=st.integers(1, 14))
def test_the_published_law_is_binomial_with_the_small_ones_at_zero(rows, crowd):
    keep = Fraction(3, 8)
    wanted = [Fraction(0)] * (rows + 1)
    for j in range(rows + 1):
        mass = math.comb(rows, j) * keep**j * (1 - keep) ** (rows - j)
        wanted[j if j >= crowd else 0] += mass
    assert audit.published_law(rows, 0.375, crowd) == pytest.approx([float(x) for x in wanted], rel=1e-10)


def cells(generator, n, rows, keep, crowd):
    counts = generator.binomial(rows, keep, n).astype(np.int64)
    return np.where(counts >= crowd, counts, 0)


def test_conformance_accepts_the_law_and_refuses_what_is_near():
    """Power at 2,000 cells of 300 rows: a keep probability 3 % off, a variance 20 % off, a threshold one off."""
    generator = np.random.default_rng(4)
    asked = {"rows": 300, "keep": 0.6, "crowd": 10, "moments": True}
    good = audit.conformance(cells(generator, 2000, 300, 0.6, 10), **asked)
    assert good.conforms
    assert good.expected_mean == pytest.approx(180)
    assert not audit.conformance(cells(generator, 2000, 300, 0.618, 10), **asked).conforms
    wide = np.rint(180 + (generator.normal(0, math.sqrt(72 * 1.2), 2000))).astype(np.int64)
    spread = audit.conformance(wide, **asked)
    assert abs(spread.mean_z) < 4
    assert spread.variance_p < audit.FIT_P
    assert not spread.conforms
    small = {"rows": 12, "keep": 0.6, "crowd": 10, "moments": False}
    assert audit.conformance(cells(generator, 2000, 12, 0.6, 10), **small).conforms
    # A threshold of 9 publishes what cannot be; one of 11 leaves out what must be.
    assert audit.conformance(cells(generator, 2000, 12, 0.6, 9), **small).fit_p == 0
    assert not audit.conformance(cells(generator, 2000, 12, 0.6, 11), **small).conforms
    none = {"rows": 9, "keep": 0.6, "crowd": 10, "moments": False}
    assert audit.conformance(np.zeros(50, dtype=np.int64), **none).conforms
    assert not audit.conformance(np.array([0] * 50 + [9]), **none).conforms
    assert not audit.conformance(np.array([0] * 50 + [10]), **none).conforms


def test_false_alarms_are_as_rare_as_stated():
    """At thresholds one can see: the share of conforming samples beyond each, within 4 standard errors and 20 %."""
    generator = np.random.default_rng(6)
    found = [
        audit.conformance(cells(generator, 400, 300, 0.6, 10), rows=300, keep=0.6, crowd=10, moments=True)
        for _ in range(2000)
    ]
    assert all(one.conforms for one in found)
    for numbers, level in (
        (np.array([one.fit_p for one in found]), 0.05),
        (np.array([one.variance_p for one in found]), 0.05),
        (np.array([math.erfc(abs(one.mean_z) / math.sqrt(2)) for one in found]), 0.05),
    ):
        assert abs((numbers < level).mean() - level) < 4 * math.sqrt(level / 2000) + 0.2 * level
    assert audit.false_alarm(moments=False) == 1e-5
    assert audit.false_alarm(moments=True) == pytest.approx(2e-5 + 2 * stats.norm.sf(4))


@pytest.mark.parametrize("sigma_squared", [1, 7, 400])
def test_the_law_of_gaussian_noise_is_that_of_its_definition(sigma_squared: int):
    law = audit.gaussian_noise(sigma_squared)
    reach = len(law) // 2
    values = np.arange(-reach, reach + 1)
    weights = np.exp(-(values**2) / (2 * sigma_squared))
    assert law == pytest.approx(weights / math.fsum(weights), rel=1e-9, abs=1e-300)
    assert law[-1] < 1e-30


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(40)])
def test_the_law_of_laplace_noise_is_that_of_its_definition(scale: Fraction):
    """(1 - q) / (1 + q) q^|x| with q = exp(-1 / b)."""
    law, q = audit.laplace_noise(float(scale)), math.exp(-1 / scale)
    reach = len(law) // 2
    naive = [(1 - q) / (1 + q) * q ** abs(x) for x in range(-reach, reach + 1)]
    assert law == pytest.approx(naive, rel=1e-9, abs=1e-300)
    assert law[-1] < 1e-29


def test_the_law_of_a_difference_is_the_sum_over_all_pairs():
    law = np.array([0.25, 0.5, 0.25])
    naive = np.zeros(5)
    for i, p in enumerate(law):
        for j, q in enumerate(law):
            naive[i - j + 2] += p * q
    assert audit.difference(law) == pytest.approx(naive)


def sampled(n: int, sigma_squared: int) -> np.ndarray:
    law = audit.gaussian_noise(sigma_squared)
    values = np.arange(len(law)) - len(law) // 2
    return np.random.default_rng(1).choice(values, n, p=law)


def test_noise_conforms_to_its_law_alone():
    law = audit.gaussian_noise(100)
    found = audit.noise_conformance(sampled(4000, 100), law)
    assert found.conforms
    assert (found.cells, found.expected_mean) == (4000, 0)
    for other in (25, 80, 125, 400):
        assert not audit.noise_conformance(sampled(4000, other), law).conforms, other
    usual = sampled(4000, 100)
    assert not audit.noise_conformance(usual + 1, law).conforms, "a bias of a tenth of sigma"
    assert not audit.noise_conformance(np.abs(usual), law).conforms
    assert not audit.noise_conformance(np.append(usual, 301 - 1000), law).conforms, "beyond all that is possible"
    both = audit.difference(law)
    assert audit.noise_conformance(usual[:2000] - usual[2000:], both).conforms
    assert not audit.noise_conformance(usual - usual, both).conforms, "one noise, used twice"


@given(st.lists(st.floats(0, 6), min_size=2, max_size=4), st.integers(1, 2), st.sampled_from([0.0, 0.5, 1.0]))
def test_the_law_of_picks_is_one_exponential_draw_after_the_other(scores, picks, epsilon):
    law = audit.law_of_picks(np.array(scores), epsilon, picks)

    def naive(sequence):
        probability, left = 1.0, set(range(len(scores)))
        for candidate in sequence:
            probability *= math.exp(epsilon * scores[candidate]) / sum(math.exp(epsilon * scores[i]) for i in left)
            left.remove(candidate)
        return probability

    assert len(law) == math.perm(len(scores), picks)
    assert law == pytest.approx({sequence: naive(sequence) for sequence in law})
    assert math.fsum(law.values()) == pytest.approx(1)


def test_a_choice_conforms_to_its_law_alone():
    generator = np.random.default_rng(2)
    law = [0.05, 0.6, 0.3, 0.05, 0.0]
    found = audit.choice_conformance(generator.choice(5, 4000, p=law), law)
    assert found.conforms
    assert found.expected_mean == 0.6
    assert abs(found.mean - 0.6) < 0.04
    assert not audit.choice_conformance(np.full(4000, 1), law).conforms, "the likeliest always"
    for wrong in ([0.1, 0.5, 0.3, 0.1, 0.0], [0.05, 0.3, 0.6, 0.05, 0.0]):
        assert not audit.choice_conformance(generator.choice(5, 4000, p=wrong), law).conforms
    assert not audit.choice_conformance(np.append(generator.choice(5, 3999, p=law), 4), law).conforms, "impossible"


def test_a_choice_by_its_law_is_rarely_flagged():
    """The chi-square probability is uniform enough at a level one can see, rare outcomes among them."""
    generator = np.random.default_rng(9)
    law = [0.5, 0.3, 0.15, 0.04, 0.0095, 0.0005]
    found = [audit.choice_conformance(generator.choice(6, 1000, p=law), law) for _ in range(2000)]
    assert all(one.conforms for one in found)
    assert abs(np.mean([one.fit_p < 0.05 for one in found]) - 0.05) < 4 * math.sqrt(0.05 / 2000) + 0.01
