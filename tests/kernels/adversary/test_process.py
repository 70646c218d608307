"""The planned attack: published figures, a closed form, a literal twin, linear programs, and what must always hold."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from naive_attack import TOLERANCE as TIE
from naive_attack import Twin

from benchmarks.attack_programs import START, Program, State, TwoLevel, binomial_belief, flat
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.adversary.process import TOLERANCE, Attack, solve
from privrisk_spark.kernels.adversary.risk import (
    assess,
    baseline,
    exploitation,
    payoff_of_belief,
    payoff_of_known,
    reidentification_probability,
    risk,
)

# Xia et al. 2015, §7.1
ONE_FINE = Attack(
    prior=0.63, gain=8000, penalty=10000, fines_paid=1, cost_access=100, cost_exploit=10, h0=-4.59, h1=0.0
)
GROWING = replace(ONE_FINE, fines_paid=None, h1=0.18)
CONSTANT = replace(ONE_FINE, fines_paid=None)


def sizes(*group_sizes: int) -> np.ndarray:
    return np.array(group_sizes, dtype=np.int64)


@st.composite
def attacks(draw: st.DrawFn, **fixed) -> Attack:
    money = st.integers(0, 60).map(float)
    chosen = {
        "prior": draw(st.sampled_from([0.05, 0.25, 0.5, 0.63, 0.9, 1.0])),
        "gain": draw(st.integers(0, 300).map(float)),
        "penalty": draw(st.one_of(st.just(0.0), st.integers(1, 400).map(float))),
        "fines_paid": draw(st.sampled_from([None, 0, 1, 1, 2, 3])),
        "cost_access": draw(money),
        "cost_link": draw(st.sampled_from([0.0, 0.0, 1.0, 7.0])),
        "cost_exploit": draw(st.sampled_from([1.0, 2.0, 5.0, 20.0])),
        "h0": draw(st.sampled_from([-4.0, -2.0, -0.7, 0.0, 1.5])),
        "h1": draw(st.sampled_from([0.0, 0.0, 0.3, 1.0, -0.5])),
        "gamma": draw(st.sampled_from([0.5, 0.9, 1.0])),
    }
    return Attack(**(chosen | fixed))


# ---- published figures


def test_one_fine():
    found = solve(ONE_FINE)
    assert (found.known_threshold, found.sunk_threshold, found.cut_off) == (48, 54, 54)
    assert found.values[[1, 10, 48, 53]] == pytest.approx([4435.542675, 2463.842405, 111.235554, 14.957719], abs=1e-6)
    at = reidentification_probability(found, sizes(0, 1, 47, 48, 53, 54, 10**6))
    assert at == pytest.approx([0, 0.63, 0.63, 0, 0, 0, 0], rel=1e-14)
    paid = reidentification_probability(found, sizes(47, 48, 53, 54), np.ones(4, dtype=bool))
    assert paid == pytest.approx([0.63, 0.63, 0.63, 0], rel=1e-14)


def test_detection_that_grows():
    found = solve(GROWING)
    assert (found.known_threshold, found.sunk_threshold) == (29, 46)
    assert found.values[[13, 14]] == pytest.approx([1315.249249, 1088.058832], abs=1e-6)
    at = assess(found, np.arange(1, 60))
    assert at.exploits[:13].tolist() == list(range(1, 14))  # all of them
    assert (at.exploits[13:28] < np.arange(14, 29)).all()
    assert at.exploits[[13, 19]].tolist() == [12, 7]
    assert at.p_reid[[13, 19]] == pytest.approx([0.54, 0.2205])
    assert not at.p_reid[28:].any()
    assert not at.exploits[28:].any()


def test_constant_detection_is_all_or_none():
    found = solve(CONSTANT)
    assert (found.known_threshold, found.sunk_threshold) == (45, 51)
    at = assess(found, np.arange(1, 60))
    assert at.p_reid.tolist() == [0.63] * 44 + [0] * 15
    assert at.exploits.tolist() == [*range(1, 45), *[0] * 15]


@pytest.mark.parametrize("attack", [ONE_FINE, GROWING, CONSTANT])
def test_the_baseline_never_exceeds_on_these_parameters(attack):
    at = assess(solve(attack), np.arange(0, 80))
    assert (at.p_reid_baseline <= at.p_reid).all()
    assert at.p_reid_baseline[1] == 0.63


def test_the_baseline_decides_on_one_exploit():
    # 8000 · 0.63 / g > 10000 · 0.01005… + 110 = 210.5 up to g = 23
    found = baseline(ONE_FINE, sizes(0, 1, 10, 23, 24))
    assert found == pytest.approx([0, 0.63, 0.063, 0.63 / 23, 0])
    # each cost counts: 5040/23 = 219.1 is less than 210.5 + 10
    for cost in ("cost_access", "cost_link", "cost_exploit"):
        dearer = replace(ONE_FINE, **{cost: getattr(ONE_FINE, cost) + 10})
        assert baseline(dearer, sizes(22, 23)) == pytest.approx([0.63 / 22, 0])


@pytest.mark.parametrize("fines", [1, None])
@pytest.mark.parametrize("gamma", [0.9, 1.0])
@pytest.mark.parametrize("prior", [0.63, 1.0])
def test_closed_form_where_everything_is_exploited(fines, gamma, prior):
    attack = replace(ONE_FINE, fines_paid=fines, gamma=gamma, prior=prior)
    d = 1 / (1 + math.exp(4.59))
    found = solve(attack)
    planned = exploitation(found, np.arange(len(found.values))).planned
    whole = [g for g in range(1, len(planned)) if planned[g] > g - 1e-9]
    assert len(whole) >= 40
    for g in whole:
        expected = sum(
            gamma**i
            * (
                gamma * 8000 * prior / g
                - (1 - prior * i / g) * (10 + gamma * d * 10000 * ((1 - d) ** i if fines == 1 else 1))
            )
            for i in range(g)
        )
        assert found.values[g] == pytest.approx(expected, rel=1e-11, abs=1e-8)


# ---- the twin


@settings(max_examples=150, deadline=None)
@given(attacks())
def test_all_is_as_the_twin_says(attack):
    most = 6
    twin = Twin(attack)
    found = solve(attack, most)
    for g in range(most + 1):
        value = found.values[g] if g < len(found.values) else 0.0
        assert value == pytest.approx(float(twin.start(g)), abs=1e-9)
        payoff = payoff_of_known(found, sizes(g))[0]
        assert payoff == pytest.approx(float(twin.known(g)), abs=1e-9)
        if not twin.clear(twin.known(g), twin.linked(g), *twin.decisions(g)):
            continue
        done = exploitation(found, sizes(g))
        probability, planned, made = map(float, twin.exploitation(g))
        assert done.probability[0] == pytest.approx(probability, abs=1e-12)
        assert done.planned[0] == pytest.approx(planned, abs=1e-12)
        assert done.made[0] == pytest.approx(made, abs=1e-12)
        access = g > 0 and twin.known(g) > TIE
        at = assess(found, sizes(g))
        assert at.p_reid[0] == pytest.approx(probability if access else 0, abs=1e-12)
        assert at.exploits[0] == pytest.approx(planned if access else 0, abs=1e-12)
        assert at.expected_payoff[0] == pytest.approx(float(twin.known(g)) if access else 0, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(attacks(), st.integers(0, 7), st.sampled_from([0.0, 0.1, 0.5, 0.99, 1.0]), st.integers(0, 7))
def test_beliefs_are_as_the_twin_says(attack, n, density, actual):
    twin = Twin(attack)
    found = solve(attack, 7)
    expected = twin.unknown(n, Fraction(density))
    payoff = payoff_of_belief(found, sizes(n), np.array([density]))
    assert payoff[0] == pytest.approx(float(expected), abs=1e-9)
    assume(twin.clear(expected, twin.linked(actual), *twin.decisions(actual)))
    at = assess(found, sizes(actual), sizes(n), np.array([density]))
    probability = float(twin.exploitation(actual)[0]) if expected > TIE else 0
    assert at.p_reid[0] == pytest.approx(probability, abs=1e-12)


# ---- linear programs


@settings(max_examples=40, deadline=None)
@given(attacks(), st.integers(1, 7))
def test_programs_agree_where_the_group_is_known(attack, group):
    found = solve(attack, group)
    expected = max(0.0, payoff_of_known(found, sizes(group))[0])
    two_level = TwoLevel(attack)
    near = {"abs": 1e-9 * max(attack.gain, 1)}
    assert two_level.payoff({group: 1.0}) == pytest.approx(expected, **near)
    assert flat(attack, {group: 1.0})[START] == pytest.approx(expected, **near)
    value = found.values[group] if group < len(found.values) else 0.0
    assert two_level.value(group) == pytest.approx(value, **near)


@settings(max_examples=25, deadline=None)
@given(attacks(), st.integers(1, 12), st.sampled_from([0.05, 0.3, 0.8]))
def test_programs_agree_where_the_group_is_not_known(attack, n, density):
    expected = max(0.0, payoff_of_belief(solve(attack), sizes(n), np.array([density]))[0])
    near = {"abs": 1e-9 * max(attack.gain, 1)}
    belief = binomial_belief(n, density)
    assert math.fsum(belief.values()) == pytest.approx(1, abs=1e-14)
    assert TwoLevel(attack).payoff(belief) == pytest.approx(expected, **near)
    assert flat(attack, belief)[START] == pytest.approx(expected, **near)


@pytest.mark.parametrize("attack", [ONE_FINE, GROWING, replace(ONE_FINE, fines_paid=3, h1=-0.2, cost_link=5)])
def test_every_state_of_a_program_is_worth_what_the_recurrence_says(attack):
    twin = Twin(attack)
    group = 8
    found = Program(attack, {}).solve([State(False, 0, False, True, True, group, group)])
    seen = 0
    for state, value in found.items():
        earned = state.succeeded * twin.gain - state.detected * twin.fine(state.fines)
        fines = twin.next(state.fines) if state.detected else state.fines
        after = 0 if state.succeeded else twin.value(group, state.remaining, fines)
        assert value == pytest.approx(float(earned + after), abs=1e-8)
        seen += 1
    assert seen > 30


def test_large_beliefs_agree_with_both_programs():
    found = solve(ONE_FINE)
    for n, density in ((500, 0.02), (5000, 0.005)):
        belief = binomial_belief(n, density)
        expected = payoff_of_belief(found, sizes(n), np.array([density]))[0]
        assert expected > 500
        assert TwoLevel(ONE_FINE).payoff(belief) == pytest.approx(expected, abs=1e-9 * 8000)
        assert flat(ONE_FINE, belief)[START] == pytest.approx(expected, abs=1e-9 * 8000)


# ---- beliefs


@pytest.mark.parametrize("density", [1e-9, 1e-6, 7.7e-6, 2e-5])
def test_six_million_rows_lose_nothing(density):
    rows = 6_018_999
    found = solve(ONE_FINE)
    with localcontext() as context:
        context.prec = 60
        p = Decimal(density)
        probability = (1 - p) ** rows
        total = Decimal(0)
        for k in range(1, len(found.linked)):
            probability *= Decimal(rows - k + 1) / k * p / (1 - p)
            total += probability * Decimal(found.linked[k])
        expected = float(Decimal("0.9") * total)
    payoff = payoff_of_belief(found, sizes(rows), np.array([density]))[0]
    assert payoff + 100 == pytest.approx(expected, rel=2e-13, abs=1e-11)


def test_densities_that_leave_no_doubt():
    found = solve(ONE_FINE)
    payoff = payoff_of_belief(found, sizes(10, 10, 0, 0, 54, 6_000_000), np.array([0.0, 1.0, 0.5, 1.0, 1.0, 1e-300]))
    assert payoff == pytest.approx([-100, payoff_of_known(found, sizes(10))[0], -100, -100, -100, -100])


def test_a_belief_above_all_that_pays_is_worth_nothing():
    payoff = payoff_of_belief(solve(ONE_FINE), sizes(6_018_999, 2000), np.array([0.9, 1 - 1e-16]))
    assert payoff.tolist() == [-100, -100]


def test_who_knows_less_may_succeed_more_or_less():
    """X15 findings 4 and 5: by the actual group size on either side of the thresholds."""
    found = solve(ONE_FINE)
    hopeful, hopeless = 20 / 10**6, 200 / 10**6
    at = assess(found, sizes(50, 20), sizes(10**6, 10**6), np.array([hopeful, hopeless]))
    assert at.p_reid == pytest.approx([0.63, 0], rel=1e-14)
    assert reidentification_probability(found, sizes(50, 20)) == pytest.approx([0, 0.63], rel=1e-14)


# ---- what always holds


@settings(max_examples=80, deadline=None)
@given(attacks())
def test_larger_groups_are_worth_no_more(attack):
    found = solve(attack)
    assert (np.diff(found.values[1:]) <= 1e-9).all()
    assert found.complete
    assert (found.values[1:] > 0).all()
    end = found.cut_off
    assert end <= attack.most_groups
    for g in {end, end + 1, attack.most_groups}:
        if g <= 40:
            assert float(Twin(attack).start(g)) <= 1e-9


@settings(max_examples=80, deadline=None)
@given(attacks())
def test_probabilities_are_at_most_the_prior(attack):
    found = solve(attack)
    g = np.arange(len(found.values) + 3)
    done = exploitation(found, g)
    assert ((done.probability >= 0) & (done.probability <= attack.prior)).all()
    assert (done.planned <= g).all()
    assert (done.made <= done.planned + 1e-12).all()
    whole = done.planned == g
    assert (done.probability[whole & (g > 0)] == attack.prior).all()
    # whoever goes on after the first exploit went on at it
    started = done.planned > 0
    assert (done.planned[started] >= 1 - 1e-12).all()
    assert (started == (found.linked[found.within(g)] > TOLERANCE)).all()


@settings(max_examples=100, deadline=None)
@given(attacks(gamma=1.0))
def test_the_baseline_never_exceeds_without_discount(attack):
    found = solve(attack)
    g = np.arange(len(found.values) + 60)
    assert (baseline(attack, g) <= reidentification_probability(found, g) + 1e-12).all()


def test_with_discount_the_baseline_may_exceed():
    """Access and link take time too: what pays at once may not pay later."""
    attack = Attack(
        prior=1, gain=100, penalty=0, fines_paid=None, cost_access=60, cost_exploit=1, h0=-math.inf, gamma=0.5
    )
    assert baseline(attack, sizes(1)).tolist() == [1]
    assert reidentification_probability(solve(attack), sizes(1)).tolist() == [0]


@settings(max_examples=60, deadline=None)
@given(attacks(fines_paid=None, h1=0.0))
def test_constant_detection_always_fined_is_all_or_none(attack):
    found = solve(attack)
    g = np.arange(1, len(found.values))
    planned = exploitation(found, g).planned
    assert ((planned == 0) | (planned == g)).all()


@settings(max_examples=60, deadline=None)
@given(attacks(), st.sampled_from([0.5, 4.0]))
def test_the_unit_of_money_does_not_matter(attack, factor):
    money = ("gain", "penalty", "cost_access", "cost_link", "cost_exploit")
    other = replace(attack, **{name: getattr(attack, name) * factor for name in money})
    a, b = solve(attack), solve(other)
    assert a.cut_off == b.cut_off
    assert (b.values == factor * a.values).all()  # powers of two: exactly


@settings(max_examples=60, deadline=None)
@given(attacks())
def test_fines_that_cannot_be_reached_are_no_limit(attack):
    most = 9
    free = solve(replace(attack, fines_paid=0), most)
    without = solve(replace(attack, penalty=0.0, fines_paid=None), most)
    assert free.values.tolist() == without.values.tolist()
    always = solve(replace(attack, fines_paid=None), most)
    nearly = solve(replace(attack, fines_paid=most - 1), most)
    many = solve(replace(attack, fines_paid=10**9), most)
    g = np.arange(most)
    assert many.values.tolist() == always.values.tolist()
    for one in (many, nearly):
        assert exploitation(one, g).probability == pytest.approx(exploitation(always, g).probability, abs=1e-12)
    # more fines to pay never help him
    by_fines = [solve(replace(attack, fines_paid=f), most).values for f in (0, 1, 2, 3, None)]
    for fewer, more in pairwise(by_fines):
        padded = np.zeros(most + 1)
        padded[: len(more)] = more
        assert (padded[: len(fewer)] <= fewer + 1e-9).all()
        assert len(more) <= len(fewer)


@settings(max_examples=60, deadline=None)
@given(
    attacks(),
    st.sampled_from(["penalty", "cost_access", "cost_link", "cost_exploit"]),
    st.sampled_from([1.0, 10.0, 100.0]),
)
def test_what_costs_more_is_done_no_more_often(attack, name, more):
    dearer = replace(attack, **{name: getattr(attack, name) + more})
    g = np.arange(60)
    before, after = assess(solve(attack), g), assess(solve(dearer), g)
    assert (after.p_reid <= before.p_reid + 1e-12).all()
    assert (after.expected_payoff <= before.expected_payoff + 1e-9).all()
    assert (after.exploits <= before.exploits + 1e-9).all()


@settings(max_examples=40, deadline=None)
@given(attacks(), st.randoms(use_true_random=False), st.integers(0, 50))
def test_batches_and_order_change_nothing(attack, random, cut):
    found = solve(attack)
    g = np.array([random.randrange(60) for _ in range(50)])
    n = np.array([random.choice([10, 1000, 10**6]) for _ in range(50)])
    p = np.array([random.choice([0.0, 1e-6, 0.01, 0.5, 1.0]) for _ in range(50)])
    whole = assess(found, g, n, p)
    parts = [assess(found, g[part], n[part], p[part]) for part in (slice(cut), slice(cut, None))]
    one = [assess(found, g[i : i + 1], n[i : i + 1], p[i : i + 1]) for i in range(50)]
    for name in ("p_reid", "expected_payoff", "exploits", "p_reid_baseline"):
        expected = getattr(whole, name).tolist()
        assert np.concatenate([getattr(part, name) for part in parts]).tolist() == expected
        assert np.concatenate([getattr(part, name) for part in one]).tolist() == expected


@settings(max_examples=40, deadline=None)
@given(attacks(), st.integers(0, 40))
def test_a_limit_changes_no_value_below_it(attack, most):
    whole, cut = solve(attack), solve(attack, most)
    shared = min(len(whole.values), most + 1)
    assert cut.values.tolist() == whole.values[:shared].tolist()
    assert cut.complete == (whole.cut_off <= most)
    g = np.arange(most + 1)
    # the fines told apart may differ, and with them rounding
    expected = exploitation(whole, g).probability
    assert exploitation(cut, g).probability == pytest.approx(expected, rel=1e-13, abs=1e-15)


# ---- edges


def test_detection_does_not_overflow():
    attack = replace(ONE_FINE, h0=-1e308, h1=1e308)
    assert attack.detection([0, 1, 2, 100]).tolist() == [0, 0.5, 1, 1]
    assert replace(ONE_FINE, h0=1e308, h1=-1e308).detection([0, 1, 2, 100]).tolist() == [1, 0.5, 0, 0]
    assert replace(ONE_FINE, h0=0.0).detection(np.arange(3)).tolist() == [0.5] * 3
    assert solve(attack).complete


@pytest.mark.parametrize("probability", [0.0, 1e-300, 0.014, 0.5, 0.999, 1.0])
def test_one_probability_of_detection(probability):
    assert ONE_FINE.with_detection(probability).detection([0, 7]) == pytest.approx([probability] * 2, rel=1e-12)


def test_never_detected_and_always():
    never = solve(replace(CONSTANT, h0=-math.inf))
    assert never.values == pytest.approx(solve(replace(CONSTANT, penalty=0.0)).values, rel=1e-12)
    assert solve(replace(CONSTANT, h0=math.inf)).values.tolist() == [0.0]


@pytest.mark.parametrize("h1", [-0.3, 0.3])
def test_detection_changes_with_exploits_made(h1):
    """In the state after one exploit of two, the second is detected with the probability of one exploit made."""
    attack = Attack(
        prior=1, gain=100, penalty=20, fines_paid=None, cost_access=0, cost_exploit=1, h0=0.0, h1=h1, gamma=1
    )
    later = 1 / (1 + math.exp(-h1))
    assert solve(attack, 2).values[2] == pytest.approx(0.5 * 100 - 0.5 * 20 - 1 + 0.5 * (100 - later * 20 - 1))


def test_costless_attacks_need_a_limit():
    free = replace(ONE_FINE, cost_exploit=0)
    with pytest.raises(InputError, match="largest group"):
        solve(free)
    found = solve(free, 20)
    assert not found.complete
    assert found.cut_off is None
    assert len(found.values) == 21
    with pytest.raises(InputError, match="at most 20, and a group of 30"):
        assess(found, sizes(3, 30))
    with pytest.raises(InputError, match="raise the largest group"):
        payoff_of_belief(found, sizes(21), np.array([0.1]))
    # fined each time, detection that stays: the fine limits it
    assert solve(replace(CONSTANT, cost_exploit=0)).complete
    with pytest.raises(InputError, match="largest group"):
        solve(replace(CONSTANT, cost_exploit=0, h1=-0.1))


def test_nothing_to_win():
    found = solve(replace(ONE_FINE, gain=0, cost_exploit=0))
    assert (found.cut_off, found.known_threshold, found.sunk_threshold) == (1, 1, 1)
    assert assess(found, sizes(0, 1, 5)).p_reid.tolist() == [0, 0, 0]


def test_a_tie_terminates():
    # γ s G = C_e: worth nothing
    tie = Attack(prior=1, gain=10, penalty=0, fines_paid=0, cost_access=0, cost_exploit=5, h0=0.0, gamma=0.5)
    assert reidentification_probability(solve(tie), sizes(1)).tolist() == [0]
    assert reidentification_probability(solve(replace(tie, gain=10.001)), sizes(1)).tolist() == [1]
    # the second exploit of two, detected half the time: 100 - 180/2 - 10
    second = Attack(
        prior=1, gain=100, penalty=180, fines_paid=None, cost_access=0, cost_exploit=10, h0=-40.0, h1=40.0, gamma=1
    )
    assert exploitation(solve(second), sizes(2)).planned.tolist() == [1]
    assert exploitation(solve(replace(second, penalty=179)), sizes(2)).planned.tolist() == [2]
    # access worth no more than the tolerance
    at_cost = replace(tie, gain=30, cost_access=2.5)
    assert payoff_of_known(solve(at_cost), sizes(1)).tolist() == [0]
    assert reidentification_probability(solve(at_cost), sizes(1)).tolist() == [0]
    assert exploitation(solve(at_cost), sizes(1)).probability.tolist() == [1]
    assert reidentification_probability(solve(replace(at_cost, cost_access=2.49)), sizes(1)).tolist() == [1]


def test_linking_costs_end_an_attack_that_access_began():
    costly = replace(ONE_FINE, cost_link=100.0)
    found = solve(costly)
    # γ v(48) = 100.1, γ v(49) below
    assert found.sunk_threshold == 49
    assert exploitation(found, sizes(48, 49)).planned.tolist() == [48, 0]


def test_too_many_states_are_refused():
    with pytest.raises(InputError, match="states"):
        solve(replace(ONE_FINE, penalty=1, fines_paid=500, cost_exploit=1e-5))


def test_no_records():
    found = solve(ONE_FINE)
    none = np.zeros(0, dtype=np.int64)
    assert len(assess(found, none).p_reid) == 0
    assert len(assess(found, none, none, np.zeros(0)).p_reid) == 0


def test_risk_is_probability_times_loss():
    assert risk(np.array([0.5, 0.0]), 10.0).tolist() == [5, 0]
    assert risk(np.array([0.5, 0.25]), np.array([2.0, 4.0])).tolist() == [1, 1]
    for loss in (-1.0, math.nan, math.inf):
        with pytest.raises(InputError, match="loss"):
            risk(np.array([0.5]), loss)


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "prior": [0, -0.1, 1.1, math.nan],
        "gamma": [0, 1.5, math.nan],
        "gain": [-1, math.inf, math.nan],
        "penalty": [-1, math.inf],
        "cost_access": [-1, math.nan],
        "cost_link": [-1],
        "cost_exploit": [-1],
        "fines_paid": [-1, 1.5, True],
        "h0": [math.nan],
        "h1": [math.inf, math.nan],
    }.items(),
)
def test_parameters_are_refused_by_name(name, values):
    for value in values:
        with pytest.raises(InputError, match=f"attack.{name} must"):
            replace(ONE_FINE, **{name: value})


def test_other_arguments_are_refused():
    found = solve(ONE_FINE)
    with pytest.raises(InputError, match=r"attack\.h1 must be 0"):
        replace(GROWING, h0=math.inf)
    with pytest.raises(InputError, match="from 0 to 1"):
        ONE_FINE.with_detection(1.1)
    with pytest.raises(InputError, match="at least 0"):
        solve(ONE_FINE, -1)
    with pytest.raises(InputError, match="at least 0"):
        assess(found, sizes(-1))
    with pytest.raises(InputError, match="density"):
        assess(found, sizes(1), sizes(1), np.array([1.5]))
    with pytest.raises(InputError, match="density"):
        assess(found, sizes(1), sizes(1), np.array([math.nan]))
    with pytest.raises(InputError, match="rows"):
        assess(found, sizes(1), sizes(-1), np.array([0.5]))
    with pytest.raises(InputError, match="both"):
        assess(found, sizes(1), sizes(1))
