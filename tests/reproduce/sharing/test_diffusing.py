"""Three ways to compute what leaks, each within what it says; and the matrices the thesis calls L."""

from __future__ import annotations

import math

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import NETWORKS, graph_of

from privrisk_spark.extensions.network.kernels.diffusion import Leak
from privrisk_spark.extensions.network.kernels.graph import Graph
from reproduce.sharing import diffusing
from reproduce.sharing.diffusing import EGO, INTEGERS, WHOLE, generator, in_integers, leak_matrix, small_network


@pytest.mark.parametrize("leak", ["laplacian", "stochastic"])
@given(network=NETWORKS, time=st.sampled_from([0.0, 0.2, 1.0, 5.0]))
@settings(max_examples=60, deadline=None)
def test_integers_are_below_the_kernel_by_what_they_say(network, leak: Leak, time: float) -> None:
    n, edges = network
    values, bounds = in_integers(graph_of(n, edges), leak, time, np.arange(n, dtype=np.int32), 1e-9)
    dense = naive_sharing.kernel(n, edges, leak, time)
    errors = (dense - values.T).sum(axis=1)
    np.testing.assert_allclose(errors, bounds, atol=1e-12)
    assert (dense + 1e-12 >= values.T).all()
    assert (bounds <= 1e-9 + 1e-12).all()


@given(network=NETWORKS)
def test_the_two_matrices_are_those_of_the_definition(network) -> None:
    n, edges = network
    for leak in ("laplacian", "stochastic"):
        np.testing.assert_array_equal(generator(graph_of(n, edges), leak), naive_sharing.generator(n, edges, leak))
    np.testing.assert_array_equal(leak_matrix(graph_of(n, edges)), naive_sharing.walk(n, edges))


def test_the_example_of_the_thesis() -> None:
    """§7.3: the Laplacian of a complete graph of three."""
    triangle = Graph.of_edges(3, np.array([0, 1, 2], np.int32), np.array([1, 2, 0], np.int32))
    assert generator(triangle, "laplacian").tolist() == [[-2, 1, 1], [1, -2, 1], [1, 1, -2]]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> diffusing.Diffusing:
    monkeypatch.setattr(diffusing, "NETWORKS", (12, 24))
    return diffusing.diffusing(3)


def test_every_way_keeps_its_bound(found: diffusing.Diffusing) -> None:
    ways = [one for one in found.computed if one.method in (WHOLE, EGO, INTEGERS)]
    assert all(one.held for one in ways)
    assert {one.users for one in ways} == {12, 24}
    assert all(one.error <= 1e-6 for one in ways if one.method != EGO)
    # What leaves the ball is missing, and said to be.
    assert max(one.error for one in ways if one.method == EGO) > 0.01
    assert found.users == 24
    assert found.edges == len(small_network(24, 3).indices) // 2


def test_a_bound_that_is_passed_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: bounds a thousandth of what they are."""
    whole = diffusing.diffused

    def boasting(*arguments):
        spread = whole(*arguments)
        return type(spread)(spread.values, spread.error / 1000)

    monkeypatch.setattr(diffusing, "NETWORKS", (12, 24))
    monkeypatch.setattr(diffusing, "diffused", boasting)
    found = diffusing.diffusing(3)
    assert not all(one.held for one in found.computed if one.method == WHOLE)
    assert all(one.held for one in found.computed if one.method != WHOLE)


def test_kernels_go_from_the_identity_to_their_limit(found: diffusing.Diffusing) -> None:
    for leak in diffusing.LEAKS:
        some = [one for one in found.kernels if one.leak == leak]
        assert [one.time for one in some] == list(diffusing.TIMES)
        assert [one.moved for one in some] == sorted(one.moved for one in some)
        assert some[-1].left < 1e-6
        assert all(one.rows < 1e-12 for one in some)
    symmetric = [one for one in found.kernels if one.leak == "laplacian"]
    assert all(one.asymmetry < 1e-12 and one.columns < 1e-12 for one in symmetric)
    assert max(one.columns for one in found.kernels if one.leak == "stochastic") > 0.1


def test_matrices_reach_and_risk(found: diffusing.Diffusing) -> None:
    laplacian, walk, leak = found.matrices
    assert (laplacian.rows, walk.rows, leak.rows) == pytest.approx((0, 0, 1), abs=1e-12)
    assert laplacian.largest == pytest.approx(0, abs=1e-9)
    assert laplacian.smallest < -1
    assert laplacian.eigen < 1e-9 < walk.eigen
    one, two, four, whole = found.reached
    assert 0 < one < whole == 1
    assert two < 1
    assert four <= 1
    # The same rise of trust everywhere adds the sum of a row, which is 1.
    assert found.rises == (0, 24 * 24, 24 * 24)
    assert not math.isnan(laplacian.rows)
