"""A generated network in memory is the one that its own files and hierarchies describe."""

from __future__ import annotations

import naive_sharing
import numpy as np
import pyarrow as pa
import pytest

from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.reading import parse
from reproduce.generated.network import SocialNetwork
from reproduce.sharing.sample import Profiles, Sample, befriended, evenly, graph_of, mixed, walked

NET = SocialNetwork(120, 5, seed=3, heights=(1, 4))
GRAPH, PROFILES = graph_of(NET), Profiles.of(NET)


def hierarchies() -> dict[str, Hierarchy]:
    document = {
        "version": 1, "run": {"name": "net"}, "table": {"path": "x", "record_id": "user"}, "columns": NET.columns(),
        "sharing": {"edges": {"path": "y"}},
    }  # fmt: skip
    columns = parse(document, releasing=False).quasi_identifiers
    table = pa.concat_tables(list(NET.profiles()))
    found = {}
    for name, column in columns.items():
        values = table.column(name).cast(pa.string()).to_pylist()
        found[name] = build(column.hierarchy, name, values=sorted({value for value in values if value is not None}))
    return found


def test_agreements_are_those_of_the_hierarchies_of_the_written_network() -> None:
    """For every two users the least level at which the one's path covers the other's value."""
    trees = hierarchies()
    rows = pa.concat_tables(list(NET.profiles())).to_pylist()
    u, v = (side.ravel() for side in np.meshgrid(np.arange(40), np.arange(40), indexing="ij"))
    heights, agreements = PROFILES.heights(u), PROFILES.agreements(u, v)
    for p, (mine, theirs) in enumerate(zip(u.tolist(), v.tolist(), strict=True)):
        for j, (name, tree) in enumerate(trees.items()):
            one, other = rows[mine][name], rows[theirs][name]
            if one is None:
                expected = (0, 0)
            else:
                path = [tree.ancestor[tree.code_of[str(one)], level] for level in range(tree.height + 1)]
                there = [] if other is None else list(tree.ancestor[tree.code_of[str(other)]])
                meets = [level for level, node in enumerate(path) if there and there[level] == node]
                expected = (tree.height, meets[0] if meets else tree.height)
            assert (heights[p, j], agreements[p, j]) == expected


def test_the_graph_has_the_friendships_of_the_written_edges() -> None:
    ids = pa.concat_tables(list(NET.profiles())).column("user").to_pylist()
    place = {one: i for i, one in enumerate(ids)}
    edges = pa.concat_tables(list(NET.edges())).to_pylist()
    expected = naive_sharing.adjacency(120, [(place[edge["u"]], place[edge["v"]]) for edge in edges])
    found = np.zeros((120, 120))
    found[np.repeat(np.arange(120), GRAPH.degree), GRAPH.indices] = 1
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("steps", [1, 2])
def test_walks_end_where_friendships_lead(steps: int) -> None:
    # A part that is far from the rest, and somebody without friends.
    chain = Graph.of_edges(7, np.array([0, 1, 2, 4], np.int32), np.array([1, 2, 3, 5], np.int32))
    u, v = walked(chain, 400, 1, steps)
    reach = np.linalg.matrix_power(naive_sharing.walk(7, [(0, 1), (1, 2), (2, 3), (4, 5)]), steps)
    expected = {(a, b) for a, b in zip(*np.nonzero(reach), strict=True) if a != b}
    assert set(zip(u.tolist(), v.tolist(), strict=True)) == {(int(a), int(b)) for a, b in expected}


def test_pairs_drawn_evenly_are_all_pairs_of_two() -> None:
    u, v = evenly(GRAPH.within(np.arange(4, dtype=np.int32)), 300, 2)
    assert set(zip(u.tolist(), v.tolist(), strict=True)) == {(a, b) for a in range(4) for b in range(4) if a != b}


def test_a_user_costs_the_same_in_every_pair_and_seeds_differ() -> None:
    u = np.array([7, 3, 7])
    one, other = (Sample(GRAPH, PROFILES, seed, u, np.array([1, 1, 2])).sensitivity for seed in (1, 2))
    assert (one[0] == one[2]).all()
    assert (one[0] != one[1]).any()
    assert (one != other).any()
    assert set(np.round(10 * one).ravel().tolist()) <= set(range(1, 11))


def test_pairs_are_what_modified_aggregate_takes() -> None:
    """Common friends, what they agree in, and levels from the root, by a loop."""
    sample = Sample(GRAPH, PROFILES, 1, *walked(GRAPH, 30, 4))
    pairs = sample.pairs
    edges = list(zip(np.repeat(np.arange(120), GRAPH.degree).tolist(), GRAPH.indices.tolist(), strict=True))
    for p, (u, v) in enumerate(zip(sample.u.tolist(), sample.v.tolist(), strict=True)):
        friends = naive_sharing.common_friends(120, edges, u, v)
        rows = pairs.agreements[pairs.first[p] : pairs.first[p + 1]]
        assert sample.common[p] == len(friends) == len(rows)
        assert sample.acquainted[p] == ((u, v) in edges)
        for friend, row in zip(friends, rows, strict=True):
            assert row.tolist() == PROFILES.agreements(np.array([u]), np.array([friend]))[0].tolist()
        for j, height in enumerate(pairs.heights[p].tolist()):
            levels = [height - s for s in range(height + 1)]
            assert pairs.utilities[p, j, : height + 1].tolist() == levels
            np.testing.assert_allclose(pairs.weights[p, j, : height + 1], sample.sensitivity[p, j] * np.array(levels))


def test_likeness_is_the_share_of_levels_in_common() -> None:
    users, others = np.arange(10), np.arange(10, 30)
    found = PROFILES.likeness(users, others)
    for i, u in enumerate(users.tolist()):
        for j, v in enumerate(others.tolist()):
            mine, theirs = PROFILES.heights(np.array([u, v])).sum(axis=1, dtype=int)
            shared = mine - PROFILES.agreements(np.array([u]), np.array([v])).sum()
            assert found[i, j] == pytest.approx(shared / np.sqrt(mine * theirs))
    np.testing.assert_allclose(PROFILES.likeness(users, users), PROFILES.likeness(users, users).T)


def test_mixed_pairs_and_all_friends() -> None:
    sample = mixed(120, 5, 60, 1)
    assert sample.acquainted[:10].all()
    assert 0 < sample.acquainted.mean() < 1
    friends = befriended(120, 5, 1)
    assert friends.acquainted.all()
    assert len(friends.u) == len(friends.graph.indices)
