"""Diffusion against the dense exponential: on the whole graph, on ego networks, and in integers step by step."""

from __future__ import annotations

import math

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import NETWORKS, graph_of
from scipy import sparse
from scipy.sparse.linalg import expm_multiply
from scipy.stats import poisson

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.network.kernels import diffusion
from privrisk_spark.extensions.network.kernels.diffusion import (
    UNIT_BITS,
    Series,
    diffused,
    ego_average,
    ego_radius,
    ego_spread,
    ego_tail,
    expected,
    flow,
    missing_units,
    of_units,
    rate,
    settled,
    spread,
    squared,
    unit_starts,
    unit_weights,
    weighted,
)
from privrisk_spark.extensions.network.kernels.graph import Graph

LEAKS = st.sampled_from(["laplacian", "stochastic"])
TIMES = st.sampled_from([0.0, 0.01, 0.3, 1.0, 4.0, 30.0])
TRIANGLE = [(0, 1), (0, 2), (1, 2)]


def users_of(n: int) -> np.ndarray:
    return np.arange(n, dtype=np.int32)


def test_the_laplacian_of_three_nodes() -> None:
    """F12 §7.3. Eigenvalues 0, -3, -3: K = 1/3 + e^-3t (I - 1/3)."""
    graph = graph_of(3, TRIANGLE)
    assert naive_sharing.generator(3, TRIANGLE, "laplacian").tolist() == [[-2, 1, 1], [1, -2, 1], [1, 1, -2]]
    found = diffused(graph, "laplacian", 0.7, users_of(3), 1e-10)
    np.testing.assert_allclose(found.values, 1 / 3 + math.exp(-2.1) * (np.eye(3) - 1 / 3), atol=1e-10)


def test_information_flows_along_directed_edges_alone() -> None:
    """0 tells 1, who tells nobody. L has the rows (-1, 1) and (0, 0): K_00 = e^-t, K_01 = 1 - e^-t, K_11 = 1."""
    graph = graph_of(2, [(0, 1)], directed=True)
    for leak in ("laplacian", "stochastic"):
        found = diffused(graph, leak, 0.7, users_of(2), 1e-10)
        np.testing.assert_allclose(found.values.T, [[math.exp(-0.7), 1 - math.exp(-0.7)], [0, 1]], atol=1e-10)
    with pytest.raises(InternalError, match="directed"):
        settled(graph, "stochastic", users_of(2))


@given(NETWORKS, LEAKS, TIMES, st.sampled_from([1e-2, 1e-6, 1e-11]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_columns_are_rows_of_the_exponential_within_the_bound(drawn, leak, time, error, directed) -> None:
    n, edges = drawn
    graph = graph_of(n, edges, directed=directed)
    k = naive_sharing.kernel(n, edges, leak, time, directed=directed)
    found = diffused(graph, leak, time, users_of(n), error)
    assert found.error <= error + 1e-12
    missing = k.T - found.values
    assert (np.abs(missing).sum(axis=0) <= found.error + 1e-12).all()
    assert (missing >= -1e-12).all()
    # Rows of K sum to one, under both.
    assert (np.abs(found.values.sum(axis=0) - 1) <= found.error + 1e-12).all()
    if time == 0:
        assert (found.values == np.eye(n)).all()


@given(NETWORKS, LEAKS)
@settings(max_examples=60, deadline=None)
def test_after_a_long_time_it_is_settled(drawn, leak: str) -> None:
    n, edges = drawn
    graph = graph_of(n, edges)
    limit = diffused(graph, leak, np.inf, users_of(n), 1e-6)
    assert (limit.values == settled(graph, leak, users_of(n))).all()
    np.testing.assert_allclose(limit.values, naive_sharing.kernel(n, edges, leak, 1e4).T, atol=1e-9)


@given(NETWORKS, LEAKS, TIMES, st.integers(0, 4), st.booleans(), st.data())
@settings(max_examples=200, deadline=None)
def test_ego_networks_agree_with_the_whole_graph_within_their_bounds(drawn, leak, time, radius, directed, data) -> None:
    n, edges = drawn
    graph, user = graph_of(n, edges, directed=directed), data.draw(st.integers(0, n - 1))
    function = np.array(data.draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5]), min_size=n, max_size=n)))
    ball = graph.ball(user, radius)
    degree, places = graph.degree[ball], np.arange(len(ball))
    mean = time * (int(degree.max()) if leak == "laplacian" else 1)
    q, series = float(degree.max()) if leak == "laplacian" else 1.0, Series.poisson(mean, 1e-9)
    values, bound = ego_average(graph.within(ball), degree, leak, q, series, function[ball], places, largest=1.0)
    exact = naive_sharing.kernel(n, edges, leak, time, directed=directed)[ball] @ function
    assert (np.abs(exact - values) <= bound + 1e-12).all()
    # Who is d steps away is left by the law of Poisson, from the largest rate in the ball on.
    away = np.array([next(d for d in range(n) if j in graph.ball(user, d)) for j in ball])
    tails = np.array([ego_tail(mean, radius - int(d)) for d in away])
    assert (bound <= np.maximum(tails, 2e-9) + 1e-9).all()
    np.testing.assert_allclose(tails, poisson.sf(radius - away, mean), rtol=1e-6, atol=1.1e-11)
    assert ego_tail(mean, -1) == 1


def test_the_radius_is_the_least_that_keeps_the_error_of_friends() -> None:
    for mean, error in ((0.001, 1e-4), (0.1, 1e-3), (1.0, 1e-6)):
        radius = ego_radius(mean, error, 20)
        assert radius is not None
        assert poisson.sf(radius - 1, mean) <= error
        assert radius == 1 or poisson.sf(radius - 2, mean) > error
        assert ego_radius(mean, error, radius - 1) is None


def integers(graph, leak: str, series: Series, user: int) -> list[int]:
    """Step by step, as tasks would: every user sends to his friends, and what arrives is added up."""
    amount = np.zeros(graph.n, dtype=np.int64)
    amount[user] = 1 << UNIT_BITS
    weights = unit_weights(series).tolist()
    total = weighted(amount, weights[0])
    for weight in weights[1:]:
        kept, to_each = flow(leak, int(rate(graph, leak)), amount, graph.degree)
        back = graph.transposed
        arrived = [int(to_each[back.indices[a:b]].sum()) for a, b in zip(back.indptr, back.indptr[1:], strict=False)]
        amount = kept + np.array(arrived, dtype=np.int64)
        assert amount.sum() <= 1 << UNIT_BITS
        total += weighted(amount, weight)
    return total.tolist()


@given(NETWORKS, LEAKS, TIMES, st.booleans(), st.data())
@settings(max_examples=100, deadline=None)
def test_steps_in_integers_agree_and_say_what_they_miss(drawn, leak: str, time: float, directed, data) -> None:
    n, edges = drawn
    graph, user = graph_of(n, edges, directed=directed), data.draw(st.integers(0, n - 1))
    series = Series.poisson(rate(graph, leak) * time, 1e-9)
    total = integers(graph, leak, series, user)
    missing = float(missing_units(np.array([sum(total)]))[0])
    row = naive_sharing.kernel(n, edges, leak, time, directed=directed)[user]
    values = of_units(np.array(total))
    assert 0 <= missing <= series.missing + 1e-12
    assert (values <= row + 1e-12).all()
    assert np.abs(row - values).sum() <= missing + 1e-12


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_products_of_units_are_rounded_down_by_less_than_three(amount: int, weight: int) -> None:
    found = int(weighted(np.array([amount]), weight)[0])
    assert found <= amount * weight >> 62 < found + 3


@given(st.integers(0, 2**62), st.integers(1, 2**31 - 1), st.data())
def test_nothing_comes_into_being_in_a_step(amount: int, q: int, data) -> None:
    degree = data.draw(st.integers(0, q))
    for leak, speed in (("laplacian", q), ("stochastic", 1)):
        kept, to_each = (int(one[0]) for one in flow(leak, speed, np.array([amount]), np.array([degree])))
        assert kept >= 0
        assert 0 <= amount - kept - degree * to_each <= degree + 1


@given(NETWORKS, st.integers(0, 6), st.booleans())
@settings(max_examples=60, deadline=None)
def test_walks_are_powers_of_the_leak_matrix(drawn, steps: int, directed: bool) -> None:
    n, edges = drawn
    found = spread(graph_of(n, edges, directed=directed), "stochastic", Series.walk(steps), np.eye(n))
    power = np.linalg.matrix_power(naive_sharing.walk(n, edges, directed=directed), steps)
    np.testing.assert_allclose(found.values, power.T, atol=1e-12)


@given(NETWORKS, st.sampled_from([1.0, 0.5, 0.15]), st.data())
@settings(max_examples=60, deadline=None)
def test_pagerank_solves_its_equation(drawn, restart: float, data) -> None:
    n, edges = drawn
    stated = np.array(data.draw(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0]), min_size=n, max_size=n)))
    found = spread(graph_of(n, edges), "stochastic", Series.geometric(restart, 1e-8), stated[:, None])
    walk = naive_sharing.walk(n, edges)
    exact = restart * np.linalg.solve(np.eye(n) - (1 - restart) * walk.T, stated)
    assert np.abs(exact - found.values[:, 0]).sum() <= (found.error + 1e-12) * np.abs(stated).sum()


@pytest.mark.parametrize("mean", [1e-9, 0.3, 1.0, 37.5, 2000.0, 1e6])
@pytest.mark.parametrize("error", [0.3, 1e-6, 1e-11])
def test_weights_are_those_of_poisson_rounded_down(mean: float, error: float) -> None:
    series = Series.poisson(mean, error)
    exact = poisson.pmf(np.arange(len(series.weights)), mean)
    np.testing.assert_allclose(series.weights, exact, rtol=1e-7, atol=1e-40)
    assert 1 - math.fsum(series.weights) <= series.missing <= error
    # No term too many.
    assert 1 - math.fsum(series.weights[:-1]) > error * (1 - 1e-6)


def test_the_weights_of_small_means_are_below_the_exact_ones() -> None:
    """Against rational bounds, to the last bit."""
    from fractions import Fraction

    from privrisk_spark.kernels.numeric.rational import exp_bounds

    for mean in (0.25, 1.0, 3.5):
        low = 1 / exp_bounds(Fraction(mean))[1]
        exact = Fraction(1)
        for k, weight in enumerate(Series.poisson(mean, 1e-9).weights.tolist()):
            exact = exact * Fraction(mean) / k if k else exact
            assert 0 <= 1 - Fraction(weight) / (low * exact) < Fraction(1, 10**13)


def test_scipy_agrees_on_a_larger_graph() -> None:
    rng = np.random.default_rng(4)
    u, v = rng.integers(0, 400, (2, 2000)).astype(np.int32)
    graph = diffusion.Graph.of_edges(400, u, v)
    a = sparse.csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), shape=(400, 400))
    users = np.array([0, 7, 399], dtype=np.int32)
    starts = unit_starts(400, users)
    for leak, generator in (
        ("laplacian", a - sparse.diags_array(graph.degree.astype(float))),
        ("stochastic", a @ sparse.diags_array(1 / np.maximum(graph.degree, 1.0)) - sparse.eye_array(400)),
    ):
        assert (graph.degree > 0).all()
        other = expm_multiply(1.3 * sparse.csc_array(generator), starts, traceA=1.3 * generator.diagonal().sum())
        np.testing.assert_allclose(diffused(graph, leak, 1.3, users, 1e-9).values, other, atol=2e-9)


@given(NETWORKS, LEAKS, st.booleans(), st.data())
@settings(max_examples=80, deadline=None)
def test_expected_trust_is_the_sum_of_the_thesis_from_both_ends(drawn, leak: str, directed, data) -> None:
    n, edges = drawn
    trust = np.array(data.draw(st.lists(st.sampled_from([-2.0, 0.0, 1.0]), min_size=n * n, max_size=n * n)))
    trust = trust.reshape(n, n)
    k = naive_sharing.kernel(n, edges, leak, 1.0, directed=directed)
    graph = graph_of(n, edges, directed=directed)
    found = diffused(graph, leak, 1.0, users_of(n), 1e-9)
    pairs = [(u, v) for u in range(n) for v in range(n)]
    exact = [naive_sharing.risk(3.0, k, trust, u, v) for u, v in pairs]
    got = [3.0 * float(found.values[:, v] @ trust[u]) for u, v in pairs]
    np.testing.assert_allclose(got, exact, atol=3 * 2 * (found.error + 1e-12))
    back = expected(graph, leak, Series.poisson(rate(graph, leak), 1e-9), trust.T)
    got = [3.0 * back.values[v, u] for u, v in pairs]
    np.testing.assert_allclose(got, exact, atol=3 * 2 * (back.error + 1e-12))


def test_a_million_friends_and_none() -> None:
    """A star: what comes back to the centre in two steps, and one who has no friends."""
    n = 1_000_002
    graph = graph_of_star(n)
    found = diffused(graph, "stochastic", 1.0, np.array([0, n - 1], dtype=np.int32), 1e-6)
    # At the centre after an even number of steps: (1 + e^-2)/2.
    assert found.values[0, 0] == pytest.approx((1 + math.exp(-2)) / 2, abs=1e-6)
    assert found.values[n - 1, 1] == pytest.approx(1, abs=1e-6)
    assert found.error < 2e-6


def graph_of_star(n: int) -> diffusion.Graph:
    friends = np.arange(1, n - 1, dtype=np.int32)
    return diffusion.Graph.of_edges(n, np.zeros(n - 2, dtype=np.int32), friends)


def test_parameters_out_of_range_are_refused() -> None:
    refused = [
        lambda: Series.poisson(-1.0, 1e-6),
        lambda: Series.poisson(2e6, 1e-6),
        lambda: Series.poisson(1.0, 0.0),
        lambda: Series.poisson(1.0, 1e-14),
        lambda: Series.geometric(0.0, 1e-6),
        lambda: Series.geometric(1e-9, 1e-6),
        lambda: Series.walk(-1),
    ]
    for call in refused:
        with pytest.raises(InputError, match="sharing"):
            call()


@given(st.integers(1, 8), st.data(), LEAKS, st.booleans())
@settings(max_examples=80, deadline=None)
def test_squared_is_the_matrix_exponential_within_its_error(n: int, data, leak: str, directed: bool) -> None:
    edges = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=14))
    graph = Graph.of_edges(
        n, np.array([u for u, _ in edges], np.int32), np.array([v for _, v in edges], np.int32), directed=directed
    )
    time = data.draw(st.sampled_from([0.0, 0.3, 1.0, 17.5, 400.0]))
    found = squared(graph, leak, time)
    exact = naive_sharing.kernel(n, edges, leak, time, directed=directed)
    assert np.abs(found.values - exact).sum(axis=1).max() <= found.error + 1e-9
    assert found.error < 1e-8
    steps = data.draw(st.integers(1, 60))
    power = np.linalg.matrix_power(naive_sharing.walk(n, edges, directed=directed), steps)
    assert np.abs(squared(graph, "stochastic", 1.0, steps).values - power).sum(axis=1).max() <= 1e-9


@pytest.mark.parametrize("leak", ["laplacian", "stochastic"])
def test_squared_after_a_very_long_time_is_where_information_settles(leak: str) -> None:
    """Three parts of a network, one with an odd cycle, one without, and a single user."""
    graph = Graph.of_edges(7, np.array([0, 1, 2, 3, 4], np.int32), np.array([1, 2, 0, 4, 5], np.int32))
    found = squared(graph, leak, 1e5)
    assert found.error < 1e-6
    limit = settled(graph, leak, np.arange(7, dtype=np.int32)).T
    assert np.abs(found.values - limit).sum(axis=1).max() <= found.error


def test_what_leaves_the_ball_around_the_start_is_at_most_the_tail() -> None:
    """A path of 21 users: from its middle, what takes more than r steps is all that may leave a ball of radius r."""
    path = np.arange(20, dtype=np.int32)
    graph = Graph.of_edges(21, path, path + 1)
    exact = naive_sharing.kernel(21, list(zip(path.tolist(), (path + 1).tolist(), strict=True)), "stochastic", 1.0)[10]
    for radius in (1, 3, 6):
        ball = np.arange(10 - radius, 11 + radius)
        series = Series.poisson(1.0, 1e-12)
        found = ego_spread(graph.within(ball), graph.degree[ball], "stochastic", 1.0, series, radius)
        assert found.error <= ego_tail(1.0, radius) + 1e-11
        assert np.abs(found.values[:, 0] - exact[ball]).sum() <= found.error
