"""A strict Mondrian recoding as a tree of cuts, which recodes other tables by the same classes.

What Mondrian finds for one table is a tree: a region is cut in one attribute, and a part is where some children of a
node go. A record of another table goes down the tree by its own nodes and comes to a group, which has the nodes that
were published for it. It is suppressed where it cannot be: where a cut knows no part for its node, where the nodes of
its group are not above its values, or where the group was suppressed when the tree was made.

*Guarantee.* That of every local recoding (:mod:`privrisk_spark.kernels.recoding.local.partition`), of the classes that
the other table has: those that fail are suppressed. On the table it was made of a tree gives back the recoding it was
made with: every record goes to the part it went to.

Only cuts by children are kept; the median of one table is nothing to another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import IntArray, LevelArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.recoding.local.mondrian import Depth, depths
from privrisk_spark.kernels.recoding.local.order import LeafOrder, first_regions, leaf_orders
from privrisk_spark.kernels.recoding.local.partition import Asked, Partition, labelled, published
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition

__all__ = ["Tree", "grown"]


@dataclass(frozen=True, eq=False)
class Tree:
    """Regions, of which number 0 is the whole table, and the classes they come to.

    Nodes are as the table numbers them whose tree it is. An entry says to which part the records below a node go.

    Attributes
    ----------
    attribute : ndarray of int64, shape (n_regions,)
        In which each is cut; -1 if it is not.
    level : ndarray of int8, shape (n_regions,)
        Of the nodes its entries have; 0 if it is not cut.
    owner, part : ndarrays of int64, shape (n_entries,)
        Region that is cut, and the region of its part; the former ascending.
    node : ndarray of int32, shape (n_entries,)
        Ascending for each owner, each once.
    of : ndarray of int64, shape (n_regions,)
        Class of a region that is not cut; -1 if it is suppressed, or cut.
    class_levels : ndarray of int8, shape (n_classes, k)
        Level of each attribute in each class.
    class_nodes : ndarray of int32, shape (n_classes, k)
        What is published for it.
    """

    attribute: LongArray
    level: LevelArray
    owner: LongArray
    node: IntArray
    part: LongArray
    of: LongArray
    class_levels: LevelArray
    class_nodes: IntArray

    def groups(self, measured: Measured) -> LongArray:
        """Return the class of every distinct record of a table; -1 where it has none.

        Parameters
        ----------
        measured : Measured
            With the hierarchies, and the numbers of nodes, of the tree.

        Returns
        -------
        ndarray of int64, shape (m,)
        """
        table = measured.table
        vectors, ancestors = table.vectors, table.ancestors
        region = np.zeros(len(vectors), dtype=np.int64)
        base = int(self.node.max(initial=0)) + 1
        key = self.owner * base + self.node
        going = np.flatnonzero(self.attribute[region] >= 0)
        while len(going):
            here = region[going]
            for i, ancestor in enumerate(ancestors):
                those = self.attribute[here] == i
                if not those.any():
                    continue
                records, owner = going[those], here[those]
                node = ancestor[vectors[records, i], self.level[owner]]
                wanted = owner * base + np.minimum(node, base)
                place = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
                region[records] = np.where((key[place] == wanted) & (node < base), self.part[place], -1)
            going = going[(region[going] >= 0) & (self.attribute[region[going]] >= 0)]
        group = np.where(region >= 0, self.of[region], -1)
        there = np.flatnonzero(group >= 0)
        covered = np.ones(len(there), dtype=np.bool_)
        for i, ancestor in enumerate(ancestors):
            levels, nodes = self.class_levels[group[there], i], self.class_nodes[group[there], i]
            covered &= ancestor[vectors[there, i], levels] == nodes
        group[there[~covered]] = -1
        return group

    def applied(self, measured: Measured, k: int, also: Sequence[Condition] = ()) -> Partition:
        """Recode a table by it; parameters as of :func:`grown`."""
        return labelled(measured, Asked(k, tuple(also)), self.groups(measured), self.class_levels)


def grown(measured: Measured, k: int, also: Sequence[Condition] = ()) -> tuple[Partition, Tree]:
    """Recode a table by strict Mondrian, and keep how.

    Parameters
    ----------
    k : int
        Rows of every class, at least 1.
    also : sequence of Condition
        What every class must meet besides.

    Returns
    -------
    found : Partition
        As of :func:`~privrisk_spark.kernels.recoding.local.mondrian.mondrian`.
    tree : Tree

    Raises
    ------
    InputError
        If k is below 1, the table has no rows, or an attribute has no root.
    """
    asked, table, orders = Asked(k, tuple(also)), measured.table, leaf_orders(measured)
    places = [order.place[table.vectors[:, i]] for i, order in enumerate(orders)]
    region, n_first = first_regions(orders, places)
    if n_first != 1:
        raise InputError("A tree of cuts begins with one region: the table needs rows, and every attribute a root.")
    held = table.held if asked.also else ()
    group, found = region.copy(), []
    for depth in depths(orders, places, table.counts, held, region, asked, (False,) * len(orders)):
        group[depth.at] = depth.part[depth.to]
        found.append(depth)
    partition = published(measured, asked, group, orders=orders)
    n_regions = 1 + sum(len(depth.part) for depth in found)
    attribute, level = np.full(n_regions, -1, dtype=np.int64), np.zeros(n_regions, dtype=np.int8)
    entries = [_entries(depth, orders, table.ancestors, attribute, level) for depth in found]
    owner, node, part = (np.concatenate(columns) for columns in zip(*entries, strict=True))
    order = np.lexsort((node, owner))
    of = np.full(n_regions, -1, dtype=np.int64)
    of[group] = partition.of  # a region's records are all of one class
    member = partition.classes.member
    nodes = np.zeros(partition.class_levels.shape, dtype=np.int32)
    for i, ancestor in enumerate(table.ancestors):
        nodes[:, i] = ancestor[table.vectors[member, i], partition.class_levels[:, i]]
    tree = Tree(attribute, level, owner[order], node[order], part[order], of, partition.class_levels, nodes)
    return partition, tree


def _entries(
    depth: Depth, orders: Sequence[LeafOrder], ancestors: Sequence[IntArray], attribute: LongArray, level: LevelArray
) -> tuple[LongArray, IntArray, LongArray]:
    """Owner, node and part of the entries of a depth's regions; what each is cut in is set."""
    attribute[depth.region] = depth.cuts.attribute
    owners, nodes, parts = [], [], []
    for order, ancestor, key, part in zip(orders, ancestors, depth.cuts.key, depth.cuts.part, strict=True):
        region, place = np.divmod(key, len(order.place))
        starts = np.flatnonzero(np.diff(region, prepend=-1))
        if not len(starts):
            continue
        low, high = place[starts], place[np.append(starts[1:], len(place)) - 1]
        below = order.common(low, high) - 1  # of what is cut, the lowest common ancestor is no leaf
        level[depth.region[region[starts]]] = below
        of_entry = np.repeat(below, np.diff(np.append(starts, len(place))))
        code = np.empty(len(order.place), dtype=np.int64)
        code[order.place] = np.arange(len(code))
        node = ancestor[code[place], of_entry]
        first, _ = distinct_rows([region, node])
        owners.append(depth.region[region[first]])
        nodes.append(node[first].astype(np.int32))
        parts.append(depth.part[part[first]])
    none = np.zeros(0, dtype=np.int64)
    return (
        np.concatenate([none, *owners]),
        np.concatenate([none.astype(np.int32), *nodes]),
        np.concatenate([none, *parts]),
    )
