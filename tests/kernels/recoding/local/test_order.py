from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from naive_local import ancestor, leaf_order
from recodings import nested_levels

from privrisk_spark.kernels.lattice.levels import counted_from_root
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.order import LeafOrder, leaf_orders
from privrisk_spark.kernels.recoding.metrics import Measured


def order_of(ancestors: np.ndarray) -> LeafOrder:
    none = np.zeros((0, 1), dtype=np.int32)
    (order,) = leaf_orders(Measured.of(FullDomain.of([ancestors], none, np.zeros(0, dtype=np.int64))))
    return order


@given(nested_levels(), st.data())
def test_common_ancestors_are_those_of_the_least_and_the_greatest_place(
    of: list[list[int]], data: st.DataObject
) -> None:
    order = order_of(np.array(of, dtype=np.int32))
    assert np.argsort(order.place).tolist() == leaf_order(of)
    codes = data.draw(st.lists(st.integers(0, len(of) - 1), min_size=1, max_size=4))
    places = order.place[codes]
    level = int(order.common(places.min()[None], places.max()[None])[0])
    expected = ancestor(of, codes)
    if expected is None:
        assert level == order.height + 1
    else:
        assert level == expected[0]
        below = [code for code in range(len(of)) if of[code][level] == expected[1]]
        assert order.leaves[places[0], level] == len(below)
        assert order.nodes[places[0], level] == order.place[below].min(), "a node is the first place in it"


def test_codes_in_leaf_order_keep_theirs_whatever_the_numbers_of_nodes() -> None:
    """As ages do. Planted: siblings by the number of the node."""
    ages = np.array([[0, 7, 1], [1, 7, 1], [2, 3, 1], [3, 3, 1]], dtype=np.int32)
    assert order_of(ages).place.tolist() == [0, 1, 2, 3]
    apart = np.array([[0, 7, 1], [1, 3, 1], [2, 7, 1], [3, 3, 1]], dtype=np.int32)
    assert order_of(apart).place.tolist() == [0, 2, 1, 3]


def test_a_node_is_all_of_a_cell_of_a_grid() -> None:
    """Six leaves below three nodes: two bits for the node, one for the leaf. Deep trees have their places."""
    tree = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 2, 0], [4, 2, 0]], dtype=np.int32)
    coordinate, bits = order_of(tree).side
    assert (coordinate.tolist(), bits) == ([0, 1, 2, 4, 5], 3)
    stairs = np.array([[max(code, level) for level in range(40)] for code in range(40)], dtype=np.int32)
    coordinate, bits = order_of(stairs).side
    assert (np.sort(coordinate).tolist(), bits) == (list(range(40)), 6)


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[int], int]:
    """Parent of each node, the root first, and how many nodes."""
    n = draw(st.integers(2, 9))
    return [0, *(draw(st.integers(0, node - 1)) for node in range(1, n))], n


@given(trees(), st.data())
def test_levels_counted_from_the_root_find_the_ancestor_that_steps_miss(
    tree: tuple[list[int], int], data: st.DataObject
) -> None:
    parent, n = tree

    def path(node: int) -> list[int]:
        return [node] if node == 0 else [node, *path(parent[node])]

    leaves = [node for node in range(n) if node not in parent[1:]]
    height = max(len(path(leaf)) for leaf in leaves) - 1
    steps = np.array([(path(leaf) + [0] * height)[: height + 1] for leaf in leaves], dtype=np.int32)
    ancestors, missing = counted_from_root(steps)
    some = data.draw(st.lists(st.integers(0, len(leaves) - 1), min_size=1, max_size=4))
    common = set.intersection(*(set(path(leaves[code])) for code in some))
    lowest = max(common, key=lambda node: len(path(node)))
    order = order_of(ancestors)
    places = order.place[some]
    level = int(order.common(places.min()[None], places.max()[None])[0])
    for code in some:
        assert ancestors[code, level] == lowest
        assert steps[code, max(level - missing[code], 0)] == lowest


def test_a_leaf_and_its_uncle_have_their_parent_in_common() -> None:
    """By steps they meet at the root only: the leaf's parent is a step further up for the one below it."""
    steps = np.array([[0, 4, 5, 6], [1, 5, 6, 6], [2, 6, 6, 6]], dtype=np.int32)
    assert order_of(steps).common(np.array([0]), np.array([1])).tolist() == [3]
    ancestors, _ = counted_from_root(steps)
    assert order_of(ancestors).common(np.array([0]), np.array([1])).tolist() == [2]
