from __future__ import annotations

import itertools

import naive_probabilistic
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.fellegi_sunter import LinkageModel
from privrisk_spark.extensions.attack.kernels.optimal_rule import OptimalRule, optimal_rule
from privrisk_spark.extensions.attack.kernels.patterns import PatternCounts

# Dyadic probabilities, so that weights and sums are exact: 4 patterns, ratios 8, 2, 1/2, 1/4.
M = np.array([0.5, 0.25, 0.125, 0.125])
U = np.array([0.0625, 0.125, 0.25, 0.5625])
W = np.log2(M / U)


def rule(false_links: float, false_non_links: float, *, coins: bool = True) -> OptimalRule:
    return optimal_rule(W, M, U, false_links=false_links, false_non_links=false_non_links, coins=coins)


def test_a_boundary_between_patterns_needs_no_coin() -> None:
    """A false link rate of 1/16 takes the first pattern wholly, a false non-link rate of 1/8 the last one."""
    for coins in (True, False):
        found = rule(0.0625, 0.125, coins=coins)
        assert found.shares(W).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
        assert (found.false_links, found.false_non_links) == (0.0625, 0.125)
        assert (found.clerical_others, found.clerical_links) == (0.375, 0.375)


def test_a_boundary_within_a_pattern_is_decided_by_a_coin_or_a_clerk() -> None:
    """1/16 + 1/32 is the first pattern and a quarter of the second; 1/8 + 1/16 the last and half of the third."""
    found = rule(0.09375, 0.1875)
    assert found.shares(W).tolist() == [[1, 0, 0], [0.25, 0.75, 0], [0, 0.5, 0.5], [0, 0, 1]]
    assert (found.false_links, found.false_non_links) == (0.09375, 0.1875)
    assert (found.upper, found.lower) == (W[1], W[2])
    careful = rule(0.09375, 0.1875, coins=False)
    assert careful.shares(W).tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert (careful.false_links, careful.false_non_links) == (0.0625, 0.125)


def test_no_error_allowed_and_all_allowed() -> None:
    assert rule(0, 0).shares(W).tolist() == [[0, 1, 0]] * 4
    assert rule(1, 0).shares(W).tolist() == [[1, 0, 0]] * 4
    assert rule(0, 1).shares(W).tolist() == [[0, 0, 1]] * 4
    assert rule(1, 1).shares(W).tolist() == [[1, 0, 0]] * 4


def test_where_both_rates_can_be_kept_no_clerk_is_needed() -> None:
    """Links as far as 3/16 allows: two patterns; the rest makes a false non-link rate of 1/4, of the 1/2 allowed."""
    found = rule(0.1875, 0.5)
    assert found.shares(W).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert (found.false_links, found.false_non_links, found.clerical_links) == (0.1875, 0.25, 0)
    # Within one pattern: three quarters of it may be linked, half of it not linked; a quarter is left for that.
    one = rule(0.0625 + 0.75 * 0.125, 0.25 + 0.5 * 0.25)
    assert one.shares(W)[1].tolist() == [0.75, 0, 0.25]


def test_patterns_of_one_weight_are_decided_alike() -> None:
    """0.1 + 0.2 and 0.3 are one weight, whatever order their patterns come in."""
    weights = np.array([-1.0, 0.1 + 0.2, 0.3])
    links, others = np.array([0.2, 0.4, 0.4]), np.array([0.5, 0.25, 0.25])
    for order in itertools.permutations(range(3)):
        at = np.array(order)
        found = optimal_rule(weights[at], links[at], others[at], false_links=0.25, false_non_links=0)
        assert found.shares(weights)[1:, 0].tolist() == [0.5, 0.5]
        assert found.false_links == pytest.approx(0.25, abs=1e-15)


def test_what_cannot_be_false_is_linked() -> None:
    found = optimal_rule(
        np.array([40.0, 0.0]), np.array([0.5, 0.5]), np.array([0.0, 1.0]), false_links=0, false_non_links=0
    )
    assert found.shares(np.array([40.0, 0.0])).tolist() == [[1, 0, 0], [0, 1, 0]]


SHARES = st.lists(st.integers(1, 9), min_size=5, max_size=5).map(lambda given: np.array(given) / sum(given))


@given(SHARES, SHARES, st.floats(0, 0.6), st.floats(0, 0.6))
@settings(max_examples=80)
def test_no_rule_leaves_less_to_the_clerk(m: np.ndarray, u: np.ndarray, mu: float, lam: float) -> None:
    """Against the linear program over all rules by coins, for the clerical share of either class."""
    weights = np.log2(m / u)
    found = optimal_rule(weights, m, u, false_links=mu, false_non_links=lam)
    assert found.false_links <= mu + 1e-9
    assert found.false_non_links <= lam + 1e-9
    shares = found.shares(weights)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares.min() >= 0
    assert found.lower <= found.upper
    n, zero = len(m), np.zeros(len(m))
    kept = np.vstack([np.r_[u, zero], np.r_[zero, m], np.hstack([np.eye(n), np.eye(n)])])
    for of, clerical in ((u, found.clerical_others), (m, found.clerical_links)):
        best = linprog(np.r_[-of, -of], kept, [mu, lam, *np.ones(n)], bounds=(0, 1))
        assert clerical == pytest.approx(1 + best.fun, abs=1e-7)


def test_rates_are_met_on_generated_pairs_and_others_are_not() -> None:
    model = LinkageModel(((0.9, 0.1), (0.8, 0.2), (0.95, 0.05)), ((0.1, 0.9), (0.2, 0.8), (0.3, 0.7)), 0.3)
    generator = np.random.default_rng(2)
    n = 200_000
    linked = generator.random(n) < model.prior
    columns = [
        np.where(linked, generator.random(n) >= m[0], generator.random(n) >= u[0])
        for m, u in zip(model.m, model.u, strict=True)
    ]
    digits = np.column_stack(columns).astype(np.uint8)
    code, m, u = naive_probabilistic.every_pattern(model)
    every = PatternCounts(model.levels, tuple(code.tolist()), (1,) * len(code))
    found = optimal_rule(model.weights_of(every.digits), m, u, false_links=0.02, false_non_links=0.05)
    assert (found.false_links, found.false_non_links) == (pytest.approx(0.02), pytest.approx(0.05))
    shares, coin = found.shares(model.weights_of(digits)), generator.random(n)
    said_linked, said_apart = coin < shares[:, 0], coin >= shares[:, 0] + shares[:, 1]
    for errors, pairs, rate in (
        ((said_linked & ~linked).sum(), (~linked).sum(), 0.02),
        ((said_apart & linked).sum(), linked.sum(), 0.05),
    ):
        deviation = np.sqrt(rate * (1 - rate) / pairs)
        assert abs(errors / pairs - rate) < 4 * deviation
        assert abs(errors / pairs - 1.2 * rate) > 4 * deviation


def test_what_is_no_rule_is_refused() -> None:
    assert rule(0.1, 0.1).upper == W[1]
    for changes, message in (
        ({"false_links": -0.1}, r"in \[0, 1\]"),
        ({"false_non_links": 1.1}, r"in \[0, 1\]"),
        ({"weights": np.array([1.0, 2.0, np.inf, 0.0])}, "finite weight"),
        ({"weights": np.zeros(0)}, "finite weight"),
        ({"of_links": M / 2}, "of sum 1"),
        ({"of_others": M[:2]}, "of sum 1"),
    ):
        given_ = {"weights": W, "of_links": M, "of_others": U, "false_links": 0.1, "false_non_links": 0.1} | changes
        with pytest.raises(InputError, match=message):
            optimal_rule(**given_)  # type: ignore[arg-type]
