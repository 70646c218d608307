"""Lists of friends in buckets, against the graph of the kernels that is held in one place."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pytest

from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.extensions.network.stages.network import Network, spans
from privrisk_spark.extensions.network.stages.pairs import split
from privrisk_spark.extensions.network.stages.user_pairs import cuts_of, once, packed, unpacked

N = 37


def graph(*, directed: bool = False) -> Graph:
    draw = np.random.default_rng(3)
    u, v = draw.integers(0, N - 1, (2, 150)).astype(np.int32)
    return Graph.of_edges(N, u, v, directed=directed)


def network(graph: Graph, offsets: list[int]) -> Network:
    """The same graph in buckets of users; some may be empty."""
    owner = np.repeat(np.arange(N), np.diff(graph.indptr))
    words = packed(owner, graph.indices.astype(np.int64))
    pieces, first = [], []
    for low, high in pairwise(offsets):
        here = words[(owner >= low) & (owner < high)]
        pieces.append(here)
        first.append(np.searchsorted(here, np.arange(low, high + 1, dtype=np.uint64) << np.uint64(32)))
    values = tuple((piece % np.uint64(7)).astype(np.float64) for piece in pieces)
    return Network(np.array(offsets), tuple(pieces), tuple(first), values, graph.directed)


@pytest.mark.parametrize("directed", [False, True], ids=["both-ways", "directed"])
@pytest.mark.parametrize("offsets", [[0, N], [0, 10, 11, N], [0, 0, 20, 20, N]], ids=str)
def test_friends_are_those_of_the_graph(offsets: list[int], directed: bool) -> None:
    whole = graph(directed=directed)
    held = network(whole, offsets)
    u, v = np.divmod(np.random.default_rng(1).permutation(N * N), N)
    assert held.degrees(u).tolist() == np.diff(whole.indptr)[u].tolist()
    first, friends = held.friends(u)
    assert all(
        friends[a:b].tolist() == whole.indices[whole.indptr[i] : whole.indptr[i + 1]].tolist()
        for a, b, i in zip(first[:-1], first[1:], u, strict=True)
    )
    pairs = {(int(i), int(j)) for i in range(N) for j in whole.indices[whole.indptr[i] : whole.indptr[i + 1]]}
    assert held.are_friends(u, v).tolist() == [(i, j) in pairs for i, j in zip(u.tolist(), v.tolist(), strict=True)]
    wanted = whole.common_friend_lists(u.astype(np.int32), v.astype(np.int32))
    found = held.common_friends(u, v)
    assert found[0].tolist() == wanted[0].tolist()
    assert found[1].tolist() == wanted[1].tolist()
    ball = whole.ball(3, 2)
    for sorted_below in (0, 2):  # all are marked, and all are sorted
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("privrisk_spark.extensions.network.stages.network.SORTED_BELOW", sorted_below)
            for user, radius in itertools.product(range(N), range(4)):
                assert held.ball(user, radius).tolist() == whole.ball(user, radius).tolist()
    assert held.within(ball.astype(np.int64)).indices.tolist() == whole.within(ball).indices.tolist()
    again = held.whole()
    assert (again.indptr.tolist(), again.indices.tolist()) == (whole.indptr.tolist(), whole.indices.tolist())
    assert (again.indptr.dtype, again.indices.dtype, again.directed) == (np.int64, np.int32, directed)
    values = held.value(u, v, otherwise=-5.0)
    assert values.tolist() == [
        float(((i << 32) | j) % 7) if (i, j) in pairs else -5.0 for i, j in zip(u.tolist(), v.tolist(), strict=True)
    ]


def test_nobody_has_no_friends() -> None:
    held = network(graph(), [0, 5, N])
    none = np.zeros(0, dtype=np.int64)
    assert held.friends(none)[0].tolist() == [0]
    assert held.common_friends(none, none)[0].tolist() == [0]
    assert spans(none, none).tolist() == []


def test_pairs_are_words_and_back() -> None:
    u, v = np.array([0, 5, 2**31 - 2]), np.array([2**31 - 2, 0, 7])
    assert [side.tolist() for side in unpacked(packed(u, v))] == [u.tolist(), v.tolist()]
    assert once(np.array([3, 1, 3, 2], dtype=np.uint64)).tolist() == [1, 2, 3]
    assert once(np.zeros(0, dtype=np.uint64)).tolist() == []


def test_runs_hold_at_most_so_much_or_one_member() -> None:
    sizes = np.array([3, 9, 1, 1, 1, 0, 20, 2])
    assert [(run.start, run.stop) for run in split(sizes, 4)] == [(0, 1), (1, 2), (2, 6), (6, 7), (7, 8)]
    assert [run.stop - run.start for run in split(sizes, 100, rows=3)] == [3, 3, 2]
    assert not list(split(np.zeros(0, dtype=np.int64), 4))


def test_slices_are_all_pairs_of_some_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("privrisk_spark.extensions.network.stages.user_pairs.SLICE", 5)
    first = np.array([0, 2, 2, 4, 15, 16, 18])
    assert cuts_of(first) == [0, 15, 18]
    assert cuts_of(np.array([0, 0])) == [0]
