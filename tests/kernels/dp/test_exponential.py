from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import chisquare

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.dp.exponential import SCORE_MAX, draw, negative_risk, objective, probabilities, reaching
from privrisk_spark.kernels.random.keyed import derive_key, prf, uniforms

SHAPE = (4, 5)
ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True, width=64)
PLAIN = {"lam": 1.0, "kappa": 1.0, "phi_min": 0.1, "count_cap": 1000}


def keyed_uniforms(n: int, label: str) -> np.ndarray:
    messages = np.zeros((n, 4), dtype=np.uint32)
    messages[:, 0] = np.arange(n)
    return uniforms(prf(derive_key(bytes(range(32)), label), messages)[:, 0])


# --- literal twins


def naive_objective(z, phi, u, lam, kappa, phi_min, cap):
    return lam * min(z, cap) / max(phi, phi_min) + u**kappa


def naive_probabilities(scores, admitted, tau):
    best = max(s for s, a in zip(scores, admitted, strict=True) if a)
    if math.isinf(tau):
        winner = next(j for j, (s, a) in enumerate(zip(scores, admitted, strict=True)) if a and s == best)
        return [float(j == winner) for j in range(len(scores))]
    weights = [math.exp(tau * (s - best)) if a else 0.0 for s, a in zip(scores, admitted, strict=True)]
    return [weight / sum(weights) for weight in weights]


# --- the threshold model


def test_negative_risk_is_total_and_literal():
    counts = np.array([[10, 500, 0, -3, 7]])
    phi = np.array([[2.0, 3.0, 1.5, np.inf, np.nan]])
    assert negative_risk(counts, phi, count_cap=100).tolist() == [[-0.2, -0.03, -1.5, -SCORE_MAX, -SCORE_MAX]]
    with pytest.raises(InputError, match="count_cap must be at least 1"):
        negative_risk(counts, phi, count_cap=0)
    with pytest.raises(InputError, match="one shape"):
        negative_risk(counts, phi[:, :2], count_cap=1)


def test_where_nothing_reaches_the_floor_the_root_is_left():
    utility = np.array([[3.0, 2.0, 0.0], [1.0, np.nan, 0.0], [3.0, 3.0, 0.0], [2.0, 1.0, 5.0]])
    admitted = np.array([[True, True, True], [True, True, True], [False, True, True], [False, False, True]])
    assert reaching(utility, admitted, 2.0).tolist() == [
        [True, True, False], [False, False, True], [False, True, False], [False, False, True]
    ]  # fmt: skip
    assert reaching(utility, admitted, 9.0).tolist() == [[False, False, True]] * 4
    assert reaching(utility, admitted, 0.0).tolist() == (admitted & ~np.isnan(utility)).tolist()
    assert admitted[0].all(), "what was given is left as it was"


# --- objective


@given(
    arrays(np.int64, SHAPE, elements=st.integers(-50, 5000)),
    arrays(float, SHAPE, elements=st.sampled_from([0.0, 0.05, 0.1, 1.0, 7.0])),
    arrays(float, SHAPE, elements=st.floats(0.0, 20.0)),
    st.sampled_from([0.0, 0.5, 3.0]),
    st.sampled_from([0.0, 0.5, 1.0, 2.0]),
)
def test_objective_is_the_literal_formula(counts, phi, utility, lam, kappa):
    scores = objective(counts, phi, utility, lam=lam, kappa=kappa, phi_min=0.1, count_cap=1000)
    for index in np.ndindex(SHAPE):
        expected = naive_objective(int(counts[index]), phi[index], utility[index], lam, kappa, 0.1, 1000)
        assert scores[index] == pytest.approx(expected, rel=1e-14)


def test_objective_golden():
    # lambda 2, count 300 capped at 200, Phi 4: 2 * 200 / 4 = 100; u = 9, kappa 1/2: 3.
    one = objective(
        np.array([[300]]), np.array([[4.0]]), np.array([[9.0]]), lam=2, kappa=0.5, phi_min=0.5, count_cap=200
    )
    assert one.tolist() == [[103.0]]


def test_infinite_sensitivity_leaves_only_utility():
    phi = np.array([[np.inf, np.nan, 0.0]])
    scores = objective(np.full((1, 3), 10), phi, np.full((1, 3), 2.0), **PLAIN)
    assert scores.tolist() == [[2.0, 2.0, 102.0]]


@given(
    arrays(np.int64, SHAPE, elements=st.integers(-(2**63), 2**63 - 1)),
    arrays(float, SHAPE, elements=ANY_FLOAT),
    arrays(float, SHAPE, elements=ANY_FLOAT),
    st.sampled_from([0.0, 1.0, 1e308]),
    st.sampled_from([0.0, 0.5, 1.0, 1e3]),
    st.sampled_from([5e-324, 0.1, 1e308]),
    st.sampled_from([1, 2**63 - 1, 2**80]),
    st.sampled_from([0.0, 1.0, 1e308, math.inf]),
)
@settings(max_examples=200)
def test_the_draw_is_total(counts, phi, utility, lam, kappa, phi_min, cap, tau):
    given_arrays = [array.copy() for array in (counts, phi, utility)]
    scores = objective(counts, phi, utility, lam=lam, kappa=kappa, phi_min=phi_min, count_cap=cap)
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() <= SCORE_MAX
    admitted = np.ones(SHAPE, dtype=bool)
    admitted[:, 1:3] = False
    law = probabilities(scores, admitted, tau)
    columns = draw(law, np.array([0.0, 0.3, 1 - 2**-53, 1.0]))
    assert admitted[np.arange(4), columns].all()
    for before, after in zip(given_arrays, (counts, phi, utility), strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize(
    "wrong",
    [
        {"lam": -1.0},
        {"lam": math.inf},
        {"kappa": -0.1},
        {"kappa": math.nan},
        {"phi_min": 0.0},
        {"phi_min": -1.0},
        {"phi_min": math.nan},
        {"count_cap": 0},
    ],
)
def test_other_parameters_are_refused(wrong):
    with pytest.raises(InputError, match="objective's"):
        objective(np.ones((1, 1), int), np.ones((1, 1)), np.ones((1, 1)), **{**PLAIN, **wrong})


def test_other_shapes_are_refused():
    with pytest.raises(InputError, match="one shape"):
        objective(np.ones((1, 2), int), np.ones((1, 1)), np.ones((1, 2)), **PLAIN)


# --- probabilities


SCORES = arrays(float, SHAPE, elements=st.sampled_from([-3.0, 0.0, 0.5, 2.0, 2.0, 40.0]))
ADMITTED = arrays(bool, SHAPE).map(lambda mask: mask | (np.arange(SHAPE[1]) == SHAPE[1] - 1))


@given(SCORES, ADMITTED, st.sampled_from([0.0, 0.3, 1.0, 25.0, math.inf]))
def test_probabilities_are_the_literal_softmax(scores, admitted, tau):
    law = probabilities(scores, admitted, tau)
    for row, s, a in zip(law, scores, admitted, strict=True):
        np.testing.assert_allclose(row, naive_probabilities(s.tolist(), a.tolist(), tau), rtol=1e-12, atol=1e-300)
    assert (law[~admitted] == 0).all()


def test_tau_zero_is_uniform_and_infinity_the_first_best():
    scores = np.array([[1.0, 5.0, 9.0, 5.0, 5.0]])
    admitted = np.array([[True, True, False, True, True]])
    assert probabilities(scores, admitted, 0.0).tolist() == [[0.25, 0.25, 0.0, 0.25, 0.25]]
    assert probabilities(scores, admitted, math.inf).tolist() == [[0.0, 1.0, 0.0, 0.0, 0.0]]
    np.testing.assert_allclose(probabilities(scores, admitted, 1e-9), [[0.25, 0.25, 0, 0.25, 0.25]], atol=1e-8)
    np.testing.assert_allclose(
        probabilities(scores, admitted, 1e9), [[0, 1 / 3, 0, 1 / 3, 1 / 3]], rtol=1e-15, atol=1e-300
    )


def test_scores_that_are_not_admitted_are_not_read():
    admitted = np.array([[False, True, True]])
    expected = probabilities(np.array([[0.0, 1.0, 2.0]]), admitted, 1.0)
    for other in (np.nan, np.inf, 1e300):
        assert np.array_equal(probabilities(np.array([[other, 1.0, 2.0]]), admitted, 1.0), expected)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.booleans())
def test_rows_do_not_depend_on_the_batch_or_its_layout(picked, fortran):
    rng = np.random.default_rng(3)
    counts, phi, utility = rng.integers(1, 900, (31, 37)), rng.random((31, 37)), rng.random((31, 37)) * 30
    admitted, u = rng.random((31, 37)) < 0.6, rng.random(31)
    admitted[:, -1] = True

    def run(rows, order):
        def arrange(array):
            return np.asarray(array[rows], order=order)

        scores = objective(arrange(counts), arrange(phi), arrange(utility), **{**PLAIN, "kappa": 0.7})
        law = probabilities(np.asarray(scores, order=order), arrange(admitted), 0.01)
        return scores, law, draw(np.asarray(law, order=order), u[rows])

    whole = run(np.arange(31), "C")
    for full, part in zip(whole, run(np.array(picked), "F" if fortran else "C"), strict=True):
        assert np.array_equal(full[picked], part)


@pytest.mark.parametrize("tau", [-1.0, math.nan])
def test_other_taus_are_refused(tau):
    with pytest.raises(InputError, match="tau"):
        probabilities(np.zeros((1, 1)), np.ones((1, 1), bool), tau)


def test_rows_without_a_choice_are_refused():
    with pytest.raises(InputError, match="root"):
        probabilities(np.zeros((2, 2)), np.array([[True, False], [False, False]]), 1.0)
    with pytest.raises(InputError, match="not finite"):
        probabilities(np.array([[0.0, np.nan]]), np.ones((1, 2), bool), 1.0)
    with pytest.raises(InputError, match="one shape"):
        probabilities(np.zeros((1, 2)), np.ones((1, 1), bool), 1.0)


# --- draw


LAWS = arrays(float, (3, 6), elements=st.sampled_from([0.0, 0.0, 0.1, 0.3, 1.0, 1e-20])).filter(
    lambda law: (law.sum(axis=1) > 0).all()
)
U = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 2**-53, 1 - 2**-53, 1.0]))


@given(LAWS, st.lists(st.tuples(st.integers(0, 2), U), max_size=20))
def test_draw_never_takes_a_column_of_probability_zero(law, asked):
    rows = np.array([row for row, _ in asked], dtype=np.int64)
    u = np.array([u for _, u in asked], dtype=float)
    columns = draw(law, u, rows)
    assert columns.dtype == np.int32
    assert (law[rows, columns] > 0).all()
    # Inverse of the cumulative distribution, by its definition.
    sums = np.cumsum(law, axis=1)
    for row, x, column in zip(rows, u, columns, strict=True):
        target = x * sums[row, -1]
        reached = [j for j in range(6) if sums[row, j] > target]
        assert column == (reached[0] if reached else next(j for j in range(6) if sums[row, j] == sums[row, -1]))
    # Sharing rows is the same as copying them.
    assert np.array_equal(columns, draw(law[rows], u))


def test_draw_golden():
    law = np.array([[0.0, 0.25, 0.0, 0.75, 0.0]])
    u = np.array([0.0, 0.2499, 0.25, 0.9, 1 - 2**-53, 1.0])
    assert draw(law, u, np.zeros(6, dtype=int)).tolist() == [1, 1, 3, 3, 3, 3]


def test_draw_stays_inside_where_sums_round():
    # Ten times 0.1 sums to less than 1, and a column of 1e-18 never moves that sum.
    law = np.array([[0.1] * 10 + [1e-18, 0.0]])
    assert draw(law, np.array([1 - 2**-53, 1.0]), np.zeros(2, dtype=int)).tolist() == [9, 9]


SCORED = np.array([[0.0, 1.0, 1.5, 3.0, 2.0, 0.5]])
OPEN = np.array([[True, True, False, True, True, True]])


@pytest.mark.parametrize("tau", [0.4, 1.0, 2.5])
def test_law_of_the_draw_has_power(tau):
    n = 100_000
    columns = draw(probabilities(SCORED, OPEN, tau), keyed_uniforms(n, f"law {tau}"), np.zeros(n, dtype=int))
    observed = np.bincount(columns, minlength=6)[OPEN[0]]

    def p_value(other):
        return chisquare(observed, n * np.array(naive_probabilities(SCORED[0], OPEN[0], other))[OPEN[0]]).pvalue

    assert p_value(tau) > 1e-3
    assert p_value(0.7 * tau) < 1e-12
    assert p_value(1.3 * tau) < 1e-12


def test_one_draw_for_all_is_caught_by_the_spread():
    # Records with one law and different uniforms do not move together.
    n = 10_000
    columns = draw(probabilities(SCORED, OPEN, 0.0), keyed_uniforms(n, "spread"), np.zeros(n, dtype=int))
    assert np.unique(columns).tolist() == [0, 1, 3, 4, 5]


def test_draw_refuses_what_has_no_law():
    law, u = np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([0.1, 0.2])
    for wrong in (
        (law[0], u),
        (law, u[:1]),
        (law, u, np.array([0])),
        (law, u, np.array([0, 2])),
        (law, u, np.array([0, -1])),
        (law, np.array([0.1, 1.1])),
        (law, np.array([0.1, np.nan])),
        (law * [[1], [0]], u),
        (law - 0.1, u),
        (np.where(law == 0, np.nan, law), u),
        (np.where(law == 0, np.inf, law), u),
    ):
        with pytest.raises(InputError):
            draw(*wrong)
    assert draw(law, u[:0], np.zeros(0, dtype=int)).shape == (0,)
