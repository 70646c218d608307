from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import several_hierarchies

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.classes import consistency
from privrisk_spark.kernels.classes.concealment import confusion, matches, matching_edges, released_as
from privrisk_spark.kernels.classes.consistency import (
    ConsistencyGraph,
    consistency_graph,
    rows_per_original,
    rows_per_released,
)
from privrisk_spark.kernels.classes.criteria import K_CONCEALMENT, ONE_K
from privrisk_spark.kernels.classes.tally import ClassTally

Row = tuple[int, ...]


def distinct(rows: list[Row], k: int) -> tuple[np.ndarray, np.ndarray]:
    if not rows:
        return np.zeros((0, k), dtype=np.int32), np.zeros(0, dtype=np.int64)
    table, times = np.unique(np.array(rows, dtype=np.int32).reshape(-1, k), axis=0, return_counts=True)
    return table, times.astype(np.int64)


def graph_of(trees: list[Hierarchy], original: list[Row], released: list[Row]) -> ConsistencyGraph:
    ancestors = [tree.ancestor for tree in trees]
    return consistency_graph(ancestors, *distinct(original, len(trees)), *distinct(released, len(trees)))


def consistent(trees: list[Hierarchy], original: Row, released: Row) -> bool:
    return all(node in tree.ancestor[leaf] for tree, leaf, node in zip(trees, original, released, strict=True))


@st.composite
def tables(draw: st.DrawFn, most: int = 6) -> tuple[list[Hierarchy], list[Row], list[Row]]:
    """Rows, each generalized by itself."""
    trees = draw(several_hierarchies(2))
    n = draw(st.integers(1, most))
    original = [tuple(draw(st.integers(0, tree.n_leaves)) for tree in trees) for _ in range(n)]
    released = [
        tuple(
            int(tree.ancestor[leaf, draw(st.integers(0, tree.height))]) for tree, leaf in zip(trees, row, strict=True)
        )
        for row in original
    ]
    return trees, original, released


def adjacency(graph: ConsistencyGraph) -> list[list[int]]:
    return [graph.released[a:b].tolist() for a, b in zip(graph.start[:-1], graph.start[1:], strict=True)]


def flow_of(graph: ConsistencyGraph, original: list[Row], released: list[Row]) -> np.ndarray:
    k = len(original[0])
    u = np.unique(np.array(original).reshape(-1, k), axis=0, return_inverse=True)[1].ravel()
    v = np.unique(np.array(released).reshape(-1, k), axis=0, return_inverse=True)[1].ravel()
    return released_as(graph, u.astype(np.int32), v.astype(np.int32), np.ones(len(u), dtype=np.int64))


@given(tables())
@settings(max_examples=150, deadline=None)
def test_counts_of_consistent_rows(table: tuple[list[Hierarchy], list[Row], list[Row]]) -> None:
    trees, original, released = table
    graph = graph_of(trees, original, released)
    k = len(trees)
    (left, times), (right, _) = distinct(original, k), distinct(released, k)
    assert graph.original_rows.tolist() == times.tolist()
    assert adjacency(graph) == [
        [j for j, r in enumerate(right.tolist()) if consistent(trees, o, r)] for o in left.tolist()
    ]
    assert rows_per_original(graph).tolist() == [
        sum(consistent(trees, tuple(o), r) for r in released) for o in left.tolist()
    ]
    assert rows_per_released(graph).tolist() == [
        sum(consistent(trees, o, tuple(r)) for o in original) for r in right.tolist()
    ]


@given(tables(most=6))
@settings(max_examples=150, deadline=None)
def test_matches_are_those_of_all_perfect_matchings(table: tuple[list[Hierarchy], list[Row], list[Row]]) -> None:
    trees, original, released = table
    n = len(original)
    fits = [[consistent(trees, o, r) for r in released] for o in original]
    matched = [set() for _ in range(n)]
    for order in permutations(range(n)):
        if all(fits[i][j] for i, j in enumerate(order)):
            for i, j in enumerate(order):
                matched[i].add(j)
    graph = graph_of(trees, original, released)
    left = [tuple(o) for o in distinct(original, len(trees))[0].tolist()]
    expected = [len(matched[original.index(o)]) for o in left]
    assert matches(graph).tolist() == expected
    assert matches(graph, flow_of(graph, original, released)).tolist() == expected
    # every row of a record has the same number
    assert [len(m) for m in matched] == [expected[left.index(o)] for o in original]


@given(tables(most=6))
@settings(max_examples=60, deadline=None)
def test_models_imply_each_other(table: tuple[list[Hierarchy], list[Row], list[Row]]) -> None:
    """k-anonymity => k-concealment => (1,k)-anonymity, and k-anonymity => (k,1)-anonymity."""
    trees, original, released = table
    graph = graph_of(trees, original, released)
    least = int(matches(graph).min())
    assert int(graph.released_rows.min()) <= least <= int(rows_per_original(graph).min())
    assert int(graph.released_rows.min()) <= int(rows_per_released(graph).min())


@given(tables(most=8), st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_order_of_records_does_not_matter(table, random) -> None:
    trees, original, released = table
    (left, a), (right, b) = distinct(original, len(trees)), distinct(released, len(trees))
    ancestors = [tree.ancestor for tree in trees]
    p, q = (np.array(random.sample(range(n), n)) for n in (len(left), len(right)))
    one = consistency_graph(ancestors, left, a, right, b)
    two = consistency_graph(ancestors, left[p], a[p], right[q], b[q])
    assert matches(one)[p].tolist() == matches(two).tolist()
    assert rows_per_released(one)[q].tolist() == rows_per_released(two).tolist()


@given(tables(most=5), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_every_row_several_times(table, times: int) -> None:
    trees, original, released = table
    once, more = graph_of(trees, original, released), graph_of(trees, original * times, released * times)
    assert (matches(more) >= times * matches(once)).all()
    assert rows_per_original(more).tolist() == (times * rows_per_original(once)).tolist()


def test_cities_and_ages() -> None:
    """Torra 2020: six people, of whom the release tells the city and the decade of the age."""
    cities = Hierarchy.from_paths("city", [("Barcelona",), ("Tarragona",)])
    ages = Hierarchy.from_paths("age", [(a, a[0] + "*") for a in ("30", "32", "38", "62", "65", "60")])
    code = {age: ages.labels.index(age) for age in ("30", "32", "38", "62", "65", "60")}
    city = {name: cities.labels.index(name) for name in ("Barcelona", "Tarragona")}
    original = [(city["Barcelona"], code[a]) for a in ("30", "32", "38")]
    original += [(city["Tarragona"], code[a]) for a in ("62", "65", "60")]
    released = [(c, int(ages.ancestor[a, 1])) for c, a in original]
    graph = graph_of([cities, ages], original, released)
    keys = distinct(original, 2)[0]
    for criterion, values in ((ONE_K, rows_per_original(graph)), (K_CONCEALMENT, matches(graph))):
        found = ClassTally.of(criterion, values, graph.original_rows, keys, asked=3)
        assert (found.achieved, found.passed, found.rows) == (3, True, 6)
    assert rows_per_released(graph).tolist() == [3, 3]


def bipartite(neighbours: list[list[int]], m: int) -> ConsistencyGraph:
    start = np.cumsum([0, *[len(v) for v in neighbours]]).astype(np.int64)
    released = np.array([v for one in neighbours for v in one], dtype=np.int32)
    return ConsistencyGraph(start, released, np.ones(len(neighbours), np.int64), np.ones(m, np.int64))


def test_two_two_anonymity_is_less_than_2_concealment() -> None:
    """Rows 0 and 1 fill released rows 0 and 1 between them, so row 2 cannot be released row 1 although it fits."""
    graph = bipartite([[0, 1], [0, 1], [1, 2, 3], [2, 3]], 4)
    assert rows_per_original(graph).tolist() == [2, 2, 3, 2]
    assert rows_per_released(graph).tolist() == [2, 3, 2, 2]
    assert matches(graph).tolist() == [2, 2, 2, 2]
    # 0 and 1 are tied to each other; 2 fits released row 1 as well, and is then known by what is left
    tied = bipartite([[0, 1], [0, 1], [1, 2], [2, 3, 4], [3, 4]], 5)
    assert int(rows_per_original(tied).min()) == 2
    assert int(rows_per_released(tied).min()) == 2
    assert matches(tied).tolist() == [2, 2, 1, 2, 2]


def test_confusion_by_one_method() -> None:
    """An attacker who links uniformly to consistent rows, one who links to the nearest, and the definition's t."""
    graph = ConsistencyGraph(
        np.array([0, 2, 3]), np.array([0, 1, 1], dtype=np.int32), np.array([1, 2]), np.array([1, 2])
    )
    uniform = 1 / rows_per_original(graph)[graph.original]
    assert confusion(graph, uniform).tolist() == rows_per_original(graph).tolist() == [3, 2]
    nearest = np.array([1.0, 0.0, 0.5])
    assert confusion(graph, nearest).tolist() == [1, 2]
    assert confusion(graph, uniform, 1 / 3).tolist() == [3, 2]
    assert confusion(graph, uniform, 0.4).tolist() == [0, 2]
    for wrong in (np.array([0.5, 0.5, 0.5]), np.array([2.0, 0, 0]), np.array([-0.1, 0, 0]), np.array([1.0])):
        with pytest.raises(InputError, match="probabilit"):
            confusion(graph, wrong)
    with pytest.raises(InputError, match="threshold"):
        confusion(graph, uniform, 1.0)


@given(st.integers(1, 3), st.data())
@settings(max_examples=100, deadline=None)
def test_wide_attributes_are_looked_up(k: int, data: st.DataObject) -> None:
    """More nodes than levels, so that nodes above a value are looked up among those released."""
    trees = [Hierarchy.from_paths("a", [(str(i), f"{i // 4}*") for i in range(16)])] * k
    row = st.tuples(*[st.integers(0, 16)] * k)
    nodes = sorted({int(n) for n in trees[0].ancestor.ravel()})
    node = st.tuples(*[st.sampled_from(nodes[: data.draw(st.integers(4, len(nodes)))])] * k)
    original = data.draw(st.lists(row, min_size=8, max_size=40))
    released = data.draw(st.lists(node, min_size=8, max_size=40))
    graph = graph_of(trees, original, released)
    left, right = distinct(original, k)[0].tolist(), distinct(released, k)[0].tolist()
    assert adjacency(graph) == [[j for j, r in enumerate(right) if consistent(trees, o, r)] for o in left]


@given(tables(most=12))
@settings(max_examples=40, deadline=None)
def test_pairs_do_not_depend_on_the_chunk(table) -> None:
    trees, original, released = table
    whole = graph_of(trees, original, released)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(consistency, "_CHUNK", 3)
        small = graph_of(trees, original, released)
    assert whole.pair.tolist() == small.pair.tolist()


def test_too_large_graphs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Hierarchy.from_paths("a", [(str(i), "all") for i in range(4)])
    rows = [(i,) for i in range(4)]
    all_of = [(int(tree.ancestor[0, 1]),)] * 2 + [(0,), (1,)]
    assert len(graph_of([tree], rows, all_of).released) == 6
    monkeypatch.setattr(consistency, "MOST_EDGES", 5)
    with pytest.raises(InputError, match="more than 5 pairs"):
        graph_of([tree], rows, all_of)
    monkeypatch.setattr(consistency, "MOST_EDGES", 6)
    # four values with two levels each are looked up, not held against three nodes each
    monkeypatch.setattr(consistency, "MOST_CANDIDATES", 7)
    with pytest.raises(InputError, match="more than 7 pairs of records"):
        graph_of([tree], rows, all_of)


def test_what_is_no_matching_is_refused() -> None:
    graph = bipartite([[0, 1], [1]], 2)
    assert matching_edges(graph).tolist() == [True, False, True]
    for flow in ([1, 0, 0], [0, 1, 1], [2, -1, 1], [1, 1]):
        with pytest.raises(InputError, match="matching"):
            matching_edges(graph, np.array(flow))
    with pytest.raises(InputError, match="no perfect matching"):
        matches(bipartite([[0], [0]], 2))
    with pytest.raises(InputError, match="2 original and 3 released"):
        matches(bipartite([[0], [1]], 3))
    one = np.ones(1, dtype=np.int64)
    for pair in ((1, 0), (5, 5)):
        with pytest.raises(InputError, match="does not generalize"):
            released_as(graph, *(np.array([p], dtype=np.int32) for p in pair), one)


def test_wrong_records_are_refused() -> None:
    tree = Hierarchy.from_paths("a", [("x",), ("y",)])
    good, once = np.array([[0]], dtype=np.int32), np.ones(1, dtype=np.int64)
    twice = np.array([[0], [0]], dtype=np.int32)
    with pytest.raises(InputError, match="distinct"):
        consistency_graph([tree.ancestor], twice, np.ones(2, np.int64), good, once)
    with pytest.raises(InputError, match="attribute 1 holds"):
        consistency_graph([tree.ancestor], good + 9, once, good, once)
    with pytest.raises(InputError, match="below 0"):
        consistency_graph([tree.ancestor], good, once, good - 1, once)
    with pytest.raises(InputError, match="shapes"):
        consistency_graph([tree.ancestor], good, np.ones(2, np.int64), good, once)
    with pytest.raises(InputError, match="at least 1 row"):
        consistency_graph([tree.ancestor], good, once, good, 0 * once)
    empty = consistency_graph([tree.ancestor], good[:0], once[:0], good[:0], once[:0])
    assert matches(empty).tolist() == rows_per_released(empty).tolist() == []


@given(st.integers(1, 4), st.data())
@settings(max_examples=30, deadline=None)
def test_a_matching_is_found_where_counts_are_large(k: int, data: st.DataObject) -> None:
    """Rows by the thousand: as many as in the blown-up graph, whose records are single rows."""
    trees, original, released = data.draw(tables(most=4))
    assume(len(original) > 1)
    graph = graph_of(trees, original * 1000 * k, released * 1000 * k)
    flow = flow_of(graph, original * 1000 * k, released * 1000 * k)
    assert matching_edges(graph).tolist() == matching_edges(graph, flow).tolist()
