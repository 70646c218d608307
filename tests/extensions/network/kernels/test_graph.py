from __future__ import annotations

import itertools

import naive_sharing
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import NETWORKS, graph_of

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.graph import Graph, _common


def dense(graph: Graph) -> np.ndarray:
    found = np.zeros((graph.n, graph.n))
    for i in range(graph.n):
        friends = graph.indices[graph.indptr[i] : graph.indptr[i + 1]]
        assert (np.diff(friends) > 0).all()
        found[i, friends] = 1
    return found


@given(NETWORKS)
@settings(deadline=None)
def test_edges_of_any_order_direction_and_number_make_one_graph(drawn) -> None:
    n, edges = drawn
    graph = graph_of(n, edges)
    assert (dense(graph) == naive_sharing.adjacency(n, edges)).all()
    assert graph.indptr.dtype == np.int64
    assert graph.indices.dtype == np.int32
    turned = graph_of(n, [(v, u) for u, v in edges[::-1]])
    assert (dense(turned) == dense(graph)).all()
    assert graph.degree.tolist() == dense(graph).sum(axis=1).tolist()


@given(NETWORKS)
@settings(deadline=None)
def test_a_directed_edge_goes_one_way(drawn) -> None:
    n, edges = drawn
    graph = graph_of(n, edges, directed=True)
    a = naive_sharing.adjacency(n, edges, directed=True)
    assert (dense(graph) == a).all()
    assert (dense(graph.transposed) == a.T).all()
    both = graph_of(n, edges)
    assert both.transposed is both


@given(NETWORKS, st.integers(0, 4), st.booleans(), st.data())
@settings(deadline=None)
def test_balls_their_friendships_and_sums(drawn, radius: int, directed: bool, data) -> None:
    n, edges = drawn
    graph, user = graph_of(n, edges, directed=directed), data.draw(st.integers(0, n - 1))
    a = naive_sharing.adjacency(n, edges, directed=directed)
    near = np.linalg.matrix_power(a + np.eye(n), radius)[user] > 0
    users = graph.ball(user, radius)
    assert users.tolist() == np.flatnonzero(near).tolist()
    assert (dense(graph.within(users)) == a[np.ix_(users, users)]).all()
    values = np.arange(2.0 * n).reshape(n, 2)
    np.testing.assert_allclose(graph.summed(values), a @ values)


@given(NETWORKS, st.booleans(), st.data())
@settings(deadline=None)
def test_common_friends(drawn, directed: bool, data) -> None:
    n, edges = drawn
    pairs = data.draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=6))
    left, right = (np.array([pair[end] for pair in pairs], dtype=np.int32) for end in (0, 1))
    graph = graph_of(n, edges, directed=directed)
    expected = [naive_sharing.common_friends(n, edges, i, j, directed=directed) for i, j in pairs]
    assert graph.common_friends(left, right).tolist() == [len(common) for common in expected]
    first, friends = graph.common_friend_lists(left, right)
    assert [friends[a:b].tolist() for a, b in itertools.pairwise(first)] == expected


@given(st.lists(st.tuples(st.sets(st.integers(0, 300), max_size=12), st.sets(st.integers(0, 300))), max_size=4))
@settings(deadline=None)
def test_lists_of_very_different_lengths(pairs) -> None:
    """The longer one is searched, in steps that double, and may be either."""
    wide = [(short, long | set(range(0, 300, 2))) for short, long in pairs]
    for turned in (False, True):
        sides = [(b, a) if turned else (a, b) for a, b in wide]
        lists = []
        for end in (0, 1):
            first = np.cumsum([0, *(len(side[end]) for side in sides)])
            lists += [first, np.array([x for side in sides for x in sorted(side[end])], dtype=np.int32)]
        (left, of_left, right, of_right) = lists
        first, common = _common(left[:-1], left[1:], of_left, right[:-1], right[1:], of_right)
        found = [common[a:b].tolist() for a, b in itertools.pairwise(first)]
        assert found == [sorted(a & b) for a, b in wide]


def test_a_user_with_very_many_friends() -> None:
    n = 200_001
    graph = graph_of(n, [(0, i) for i in range(1, n)] + [(1, 200_000), (1, 7)])
    assert graph.degree[0] == n - 1
    assert graph.common_friends(np.array([0, 1]), np.array([1, 2])).tolist() == [2, 1]
    assert len(graph.ball(5, 2)) == n


def test_edges_of_no_user_are_refused() -> None:
    for wrong in (3, -1):
        with pytest.raises(InputError, match="no user"):
            graph_of(3, [(0, wrong)])
