"""Averages over friends against the dense exponential, whatever is walked by lists, in 16 bits or in float64."""

from __future__ import annotations

import math

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import NETWORKS, graph_of

from privrisk_spark.extensions.network.kernels import averages as module
from privrisk_spark.extensions.network.kernels import columns, walking
from privrisk_spark.extensions.network.kernels.averages import Functions, averages
from privrisk_spark.extensions.network.kernels.diffusion import Series, rate
from privrisk_spark.extensions.network.kernels.graph import Graph

LEAKS = st.sampled_from(["laplacian", "stochastic"])
TIMES = st.sampled_from([0.0, 0.01, 0.3, 1.0, 4.0, 30.0])
VALUES = st.sampled_from([-2.0, -0.5, 0.25, 1.0, 3.0])


def everywhere(given: list[dict[int, float]], n: int) -> Functions:
    """Functions that are wanted at all users."""
    sizes = [0, *(len(one) for one in given)]
    return Functions(
        np.cumsum(sizes),
        np.array([user for one in given for user in one], dtype=np.int64),
        np.array([value for one in given for value in one.values()], dtype=np.float64),
        np.arange(len(given) + 1) * n,
        np.tile(np.arange(n), len(given)),
    )


@given(NETWORKS, LEAKS, TIMES, st.sampled_from([0.3, 1e-2, 1e-4, 1e-9]), st.sampled_from([2, 10**9]), st.booleans(),
       st.booleans(), st.sampled_from([0, 2, 64]), st.data())  # fmt: skip
@settings(max_examples=400, deadline=None)
def test_averages_are_those_of_the_exponential_within_the_bound(
    drawn, leak, time, within, sparse, met, directed, few, data
) -> None:
    """``few``: columns are stepped in blocks, one by one, or in both ways."""
    n, edges = drawn
    given = data.draw(st.lists(st.dictionaries(st.integers(0, n - 1), VALUES, max_size=n), max_size=4))
    graph = graph_of(n, edges, directed=directed)
    k = naive_sharing.kernel(n, edges, leak, time, directed=directed)
    functions = everywhere(given, n)
    series = Series.poisson(rate(graph, leak) * time, 1e-12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_SPARSE", sparse)
        patch.setattr(columns, "FEW", few)
        if met:
            patch.setattr(module, "_MET", 0.01)
            patch.setattr(module, "_MET_TOGETHER", 0.01)
        found = averages(graph, leak, series, functions, np.full(len(given), within))
    assert (found.error <= within).all()
    exact = (k @ functions.whole(n)).T.ravel()
    error = np.repeat(found.error, n)
    assert (np.abs(exact - found.values) <= error + 1e-12).all()


@given(NETWORKS, st.integers(1, 5), st.booleans(), st.data())
@settings(max_examples=60, deadline=None)
def test_walks_of_some_steps_are_averages_too(drawn, steps: int, directed: bool, data) -> None:
    """L^p of the row-stochastic leak matrix, whose weights are 0 but for the last."""
    n, edges = drawn
    given = [data.draw(st.dictionaries(st.integers(0, n - 1), VALUES, max_size=n))]
    functions, graph = everywhere(given, n), graph_of(n, edges, directed=directed)
    found = averages(graph, "stochastic", Series.walk(steps), functions, np.full(1, 1e-6))
    power = np.linalg.matrix_power(naive_sharing.walk(n, edges, directed=directed), steps)
    assert (np.abs((power @ functions.whole(n))[:, 0] - found.values) <= found.error[0] + 1e-12).all()
    assert found.error[0] <= 1e-6


def ring(n: int, chords: int) -> Graph:
    """A circle with chords from a keyed draw, and a user whom a third of all know."""
    rng = np.random.default_rng(8)
    u = np.concatenate([np.arange(n), rng.integers(0, n, chords), np.arange(0, n, 3)])
    v = np.concatenate([(np.arange(n) + 1) % n, rng.integers(0, n, chords), np.zeros(len(range(0, n, 3)), np.int64)])
    return Graph.of_edges(n, u.astype(np.int32), v.astype(np.int32))


@pytest.mark.parametrize("time", [0.2, 1.0, 3.0])
def test_sixteen_bits_keep_their_bound_on_a_larger_graph(time: float) -> None:
    """Of 3,000 users, one with 1,000 friends; values of both signs; blocks that are not full."""
    graph = ring(3000, 9000)
    rng = np.random.default_rng(1)
    given = [
        {int(user): float(rng.choice([-0.9, -0.5, 1.0])) for user in rng.choice(3000, 1 + i % 30, replace=False)}
        for i in range(70)
    ]
    functions = everywhere(given, 3000)
    series = Series.poisson(time, 1e-12)
    found = averages(graph, "stochastic", series, functions, np.full(70, 2e-6))
    exact = module.expected(graph, "stochastic", series, functions.whole(3000)).values.T.ravel()
    off = np.abs(found.values - exact).reshape(70, 3000).max(axis=1)
    assert (off <= found.error + 1e-11).all()
    assert (found.error <= 2e-6).all()
    assert (found.steps >= 0).sum() > 30, "not all in float64"
    assert found.steps.max() < len(series.weights) - 1, "ends before the series"
    assert (off[found.steps >= 0] > 1e-12).any(), "16 bits were used"


@pytest.mark.parametrize("few", [0, 2, 64])
def test_a_function_is_found_by_itself(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the last bit, whichever others are in its block, and whether it is stepped with them."""
    monkeypatch.setattr(columns, "FEW", few)
    graph = ring(2000, 6000)
    rng = np.random.default_rng(2)
    given = [{int(user): 1.0 for user in rng.choice(2000, 1 + i, replace=False)} for i in range(66)]
    functions, within = everywhere(given, 2000), np.full(66, 1e-5)
    series = Series.poisson(1.0, 1e-12)
    whole = averages(graph, "stochastic", series, functions, within)
    monkeypatch.undo()
    for c in (0, 40, 65):
        alone = averages(graph, "stochastic", series, functions.part(np.array([c])), within[:1])
        assert (alone.values == whole.values[c * 2000 : (c + 1) * 2000]).all()
        assert alone.error[0] == whole.error[c]


def test_sums_of_more_codes_than_32_bits_hold() -> None:
    """A star of 200,000, all named: (K g)(0) = g over the friends, half the odd walks; every code is the largest."""
    n = 200_001
    graph = Graph.of_edges(n, np.zeros(n - 1, dtype=np.int32), np.arange(1, n, dtype=np.int32))
    old, new, own = walking.wide_codes(n), walking.wide_codes(n), np.zeros((n, 4))
    old[1:] = 65535
    old[0] = 7
    own[:, walking.DIVISOR], own[:, walking.MEASURE] = graph.degree, graph.degree
    graphs, scales, seen = (graph.indptr, graph.indices, own), (np.zeros(64), np.ones(64)), walking.nothing_seen()
    walking.step(*graphs, old, new, np.zeros(0, np.uint32), *scales, seen)
    assert (new[0] == 65535).all()
    assert (new[1:] == 7).all()
    assert set(seen.least) == {7}
    assert set(seen.most) == {65535}
    assert set(seen.first) == {(n - 1) * (65535 + 7)}
    assert set(seen.second) == {(n - 1) * (65535**2 + 7**2)}
    narrow = walking.narrow_codes(n)
    walking.narrow(old, np.full(64, 7.0), np.full(64, 255 / (65535 - 7)), narrow)
    assert (narrow[1:] == 255).all()
    assert (narrow[0] == 0).all()
    walking.step(*graphs, narrow, new, np.zeros(0, np.uint16), np.zeros(64), np.full(64, 257.0), seen)
    assert (new[0] == 65535).all()
    assert (new[1:] == 0).all()
    found = averages(
        graph,
        "stochastic",
        Series.poisson(1.0, 1e-12),
        Functions(np.array([0, 1]), np.array([0]), np.ones(1), np.array([0, 1]), np.array([0])),
        np.array([1e-6]),
    )
    assert found.values[0] == pytest.approx((1 + math.exp(-2)) / 2, abs=1e-6)
