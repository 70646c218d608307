"""A tree of cuts: on its own table it is Mondrian, on others every class it releases has what is asked."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from recodings import Labels, Rows, published_rows, small_tables, table_of, with_roots

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.mondrian import mondrian
from privrisk_spark.kernels.recoding.local.tree import Tree, grown
from privrisk_spark.kernels.recoding.metrics import Measured

Nodes = tuple[tuple[int, int], ...]


def walked(tree: Tree, labels: Labels, row: tuple[int, ...]) -> Nodes | None:
    """Levels and nodes of the class a record comes to, step by step; None if it comes to none."""
    region = 0
    while tree.attribute[region] >= 0:
        i = int(tree.attribute[region])
        node = labels[i][row[i]][int(tree.level[region])]
        (*parts,) = (
            int(part)
            for owner, at, part in zip(tree.owner, tree.node, tree.part, strict=True)
            if owner == region and at == node
        )
        if not parts:
            return None
        (region,) = parts
    found = int(tree.of[region])
    if found < 0:
        return None
    levels, nodes = tree.class_levels[found].tolist(), tree.class_nodes[found].tolist()
    if any(labels[i][code][levels[i]] != nodes[i] for i, code in enumerate(row)):
        return None
    return tuple(zip(levels, nodes, strict=True))


@given(small_tables(most_rows=20), st.integers(1, 4))
def test_its_own_table_is_recoded_as_mondrian_does(given_table: tuple[Labels, Rows], k: int) -> None:
    labels, rows = given_table
    labels = with_roots(labels)
    if not rows:
        return
    table = table_of(labels, rows)
    measured = Measured.of(table)
    found, tree = grown(measured, k)
    expected, again = mondrian(measured, k), tree.applied(measured, k)
    for one in (found, again):
        assert one.of.tolist() == expected.of.tolist()
        assert one.class_levels.tolist() == expected.class_levels.tolist()
        assert one.classes.rows.tolist() == expected.classes.rows.tolist()
    assert ((tree.owner[1:] > tree.owner[:-1]) | (tree.node[1:] > tree.node[:-1])).all(), "each entry once"


@given(small_tables(most_rows=20), st.integers(1, 4), st.data())
def test_another_table_has_classes_of_k_rows_at_the_nodes_of_the_tree(
    given_table: tuple[Labels, Rows], k: int, data: st.DataObject
) -> None:
    labels, rows = given_table
    labels = with_roots(labels)
    if not rows:
        return
    _, tree = grown(Measured.of(table_of(labels, rows)), k)
    another = st.tuples(*(st.integers(0, len(of) - 1) for of in labels))
    others = data.draw(st.lists(another, max_size=25)) + data.draw(st.lists(st.sampled_from(rows), max_size=10))
    table = table_of(labels, others)
    found = tree.applied(Measured.of(table), k)
    seen = published_rows(table, labels, found)
    sizes = Counter(walked(tree, labels, row) for row in others)
    roots = tuple((len(of[0]) - 1, of[0][-1]) for of in labels)
    lost = any(nodes is None or n < k for nodes, n in sizes.items())
    released = {nodes for nodes, n in sizes.items() if nodes is not None and n >= k and not (lost and nodes == roots)}
    expected = Counter(
        (row, nodes if nodes in released else None) for row in others for nodes in [walked(tree, labels, row)]
    )
    assert seen == expected


def test_values_that_were_not_there_go_with_their_node_or_are_suppressed() -> None:
    """Codes 0 and 1 are below node 0, 2 and 3 below 1; the table was cut between the two, and had no 1 and no 3."""
    tree_of_four = np.array([[0, 0, 0], [1, 0, 0], [2, 1, 0], [3, 1, 0]], dtype=np.int32)
    fitted = FullDomain.of([tree_of_four], np.array([[0], [2]], dtype=np.int32), np.array([3, 3]))
    _, tree = grown(Measured.of(fitted), 2)
    assert tree.class_levels.tolist() == [[0], [0]]
    other = FullDomain.of([tree_of_four], np.array([[0], [1], [2], [3]], dtype=np.int32), np.array([2, 9, 2, 1]))
    found = tree.applied(Measured.of(other), 2)
    assert found.of.tolist() == [0, -1, 1, -1], "1 is not below what is published for its part"


def test_what_a_tree_cannot_begin_with_is_refused() -> None:
    none = FullDomain.of([np.zeros((1, 1), dtype=np.int32)], np.zeros((0, 1), dtype=np.int32), np.zeros(0, dtype=int))
    tops = np.array([[0], [1]], dtype=np.int32)
    two = FullDomain.of([tops], np.array([[0], [1]], dtype=np.int32), np.array([1, 1]))
    for table in (none, two):
        with pytest.raises(InputError, match="begins with one region"):
            grown(Measured.of(table), 1)
