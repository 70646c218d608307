"""Trees of cuts as a file holds them: nodes by their labels from the root, which another batch can be read by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.recoding.local.tree import Tree
from privrisk_spark.policy.schemes import FittedPartition

Path = tuple[str | None, ...]


def written_tree(tree: Tree, hierarchies: Sequence[Hierarchy]) -> tuple[list[list[Path]], dict[str, Any]]:
    """Return the nodes of each column, and what refers to them.

    Parameters
    ----------
    tree : Tree
        With levels counted from the root, and the numbers of nodes of the hierarchies.
    hierarchies : sequence of k Hierarchy

    Returns
    -------
    nodes : list of k lists of tuples of str or None
    rest : dict
        ``cuts``, ``groups`` and ``classes`` of :class:`~privrisk_spark.policy.schemes.FittedPartition`.
    """
    of_entry = tree.attribute[tree.owner]
    used = [
        np.unique(np.concatenate([tree.node[of_entry == i], tree.class_nodes[:, i]])) for i in range(len(hierarchies))
    ]
    cuts = []
    for region in np.flatnonzero(tree.attribute >= 0).tolist():
        i = int(tree.attribute[region])
        first, last = np.searchsorted(tree.owner, [region, region + 1])
        nodes = np.searchsorted(used[i], tree.node[first:last])
        parts = list(zip(nodes.tolist(), tree.part[first:last].tolist(), strict=True))
        depth = hierarchies[i].height - int(tree.level[region])
        cuts.append({"region": region, "column": i, "depth": depth, "parts": parts})
    there = np.flatnonzero(tree.of >= 0)
    places = [np.searchsorted(of, nodes) for of, nodes in zip(used, tree.class_nodes.T, strict=True)]
    depths = [one.height - levels.astype(int) for one, levels in zip(hierarchies, tree.class_levels.T, strict=True)]
    classes = [
        [(int(depth[c]), int(place[c])) for depth, place in zip(depths, places, strict=True)]
        for c in range(len(tree.class_nodes))
    ]
    groups = list(zip(there.tolist(), tree.of[there].tolist(), strict=True))
    nodes_of = [[_path(one, node) for node in of.tolist()] for one, of in zip(hierarchies, used, strict=True)]
    return nodes_of, {"cuts": cuts, "groups": groups, "classes": classes}


def read_tree(fitted: FittedPartition, hierarchies: Mapping[str, Hierarchy]) -> Tree:
    """Return the tree of a file for the hierarchies of a table.

    A node the table's hierarchy does not have gets a number that no record comes to.

    Parameters
    ----------
    hierarchies : mapping of quasi-identifier to Hierarchy
        In any order, those of the file; the tree has their order.
    """
    names = list(hierarchies)
    column_of = [[column.name for column in fitted.columns].index(name) for name in names]
    place_of = {column: place for place, column in enumerate(column_of)}
    heights = [hierarchies[name].height for name in names]
    numbers = [
        _numbers(hierarchies[name], fitted.columns[column].nodes) for name, column in zip(names, column_of, strict=True)
    ]
    regions = 1 + max((region for cut in fitted.cuts for _, region in cut.parts), default=0)
    attribute, level = np.full(regions, -1, dtype=np.int64), np.zeros(regions, dtype=np.int8)
    entries = []
    for cut in fitted.cuts:
        i = place_of[cut.column]
        attribute[cut.region], level[cut.region] = i, heights[i] - cut.depth
        entries += [(cut.region, numbers[i][node], part) for node, part in cut.parts]
    owner, node, part = np.array(sorted(entries), dtype=np.int64).reshape(-1, 3).T
    of = np.full(regions, -1, dtype=np.int64)
    for region, number in fitted.groups:
        of[region] = number
    shape = (len(fitted.classes), len(names))
    levels, nodes = np.zeros(shape, dtype=np.int8), np.zeros(shape, dtype=np.int32)
    for c, held in enumerate(fitted.classes):
        for i, column in enumerate(column_of):
            depth, at = held[column]
            levels[c, i], nodes[c, i] = heights[i] - depth, numbers[i][at]
    return Tree(attribute, level, owner, node.astype(np.int32), part, of, levels, nodes)


def _path(hierarchy: Hierarchy, node: int) -> Path:
    """Labels from below the root down to a node."""
    found: list[str | None] = []
    while node != hierarchy.root:
        found.append(hierarchy.labels[node])
        node = int(hierarchy.parent[node])
    return tuple(reversed(found))


def _numbers(hierarchy: Hierarchy, paths: Sequence[Sequence[str | None]]) -> list[int]:
    """Node at the end of each path; beyond all nodes, each its own, where there is none."""
    below: dict[tuple[int, str | None], int] = {}
    for node, (label, parent) in enumerate(zip(hierarchy.labels, hierarchy.parent.tolist(), strict=True)):
        if node != hierarchy.root:
            below[parent, label] = node
    found = []
    for number, path in enumerate(paths):
        at: int | None = hierarchy.root
        for label in path:
            at = None if at is None else below.get((at, label))
        found.append(hierarchy.n_nodes + number if at is None else at)
    return found
