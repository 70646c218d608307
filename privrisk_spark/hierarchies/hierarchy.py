"""The value generalization hierarchy (VGH) of one attribute, as integers.

A hierarchy is a rooted tree. Its leaves are original values, its root ``⊥`` is the fully suppressed value. Text is read
once, by `hierarchy_files` and the builders; everything after works on node numbers. A node is known by its path from
the root, not by its label: two nodes with one label on two branches are two nodes, and a chain of only children is a
chain of different nodes.

Nodes are numbered so that common questions are array look-ups:

* leaves come first, in depth-first order, so the leaves under any node are one interval ``[first, last)``;
* inner nodes follow, deepest first, the root last, so ``parent[v] > v`` for every node but the root: going
  through the nodes in order meets children before their parents.

Sources: Lebanon, Scannapieco, Fouad and Bertino, PSD 2006 (LSFB06), section 2.1; Fouad, PhD thesis, Purdue
2012 (F12), section 3.2 and lemma 4.3.2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from privrisk_spark.errors import HierarchyError, listing, nearest
from privrisk_spark.hierarchies.numbers import equal_text
from privrisk_spark.hierarchies.paths import MAX_HEIGHT, LeafPath, message_head, refuse_clashes
from privrisk_spark.kernels.arrays import IntArray, LongArray

_Number = TypeVar("_Number", bound=np.generic)

ROOT = "*"
"""Label of the root, in files and in releases."""

MAX_LEAVES = 2_000_000
"""Most leaves of one hierarchy."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """Value generalization hierarchy of one attribute.

    Make one with :meth:`from_paths`; the constructor takes arrays that are numbered already, and checks them.

    Parameters
    ----------
    attribute : str
        Name of the attribute, for messages.
    labels : tuple of (str or None), length n_nodes
        Label of each node. None is the label of the null leaf only.
    parent : ndarray of int32, shape (n_nodes,)
        Parent of each node; the root is its own parent. Kept as a read-only copy.
    n_leaves : int
        Leaves are the nodes ``0 … n_leaves - 1``.
    public : bool
        True if the labels come from the policy, so that a message may name them; False if from records.
    steps : tuple of str
        Names of the levels from 0 up, where who made it knows any; see :attr:`level_names`. No number depends on them.
    numbers : bool
        Whether leaves are numbers, or true and false, which are looked up as such; see
        :func:`privrisk_spark.hierarchies.numbers.equal_text`.

    Raises
    ------
    HierarchyError
        If the arrays are not a tree numbered as above: gap, cycle, root not last, leaves not depth-first.
    """

    attribute: str
    labels: tuple[str | None, ...]
    parent: IntArray
    n_leaves: int
    public: bool = True
    steps: tuple[str, ...] = ()
    numbers: bool = False

    def __post_init__(self) -> None:
        parent = _frozen(np.array(self.parent, dtype=np.int32))
        object.__setattr__(self, "parent", parent)
        where = message_head(self.attribute)
        n_nodes = len(self.labels)
        if parent.shape != (n_nodes,) or not 1 <= self.n_leaves < n_nodes:
            raise HierarchyError(
                f"{where}: there must be one label and one parent per node, at least one leaf, and the root "
                f"apart. Got {n_nodes} labels, {self.n_leaves} leaves, parents of shape {parent.shape}."
            )
        below = parent[:-1]
        if parent[-1] != n_nodes - 1 or np.any(below <= np.arange(n_nodes - 1)) or np.any(below >= n_nodes):
            raise HierarchyError(f"{where}: every parent must come after its child, and the root last.")
        if not np.array_equal(np.unique(below), np.arange(self.n_leaves, n_nodes)):
            raise HierarchyError(f"{where}: the nodes with children must be exactly those after the leaves.")
        if not np.array_equal(self.last_leaf - self.first_leaf, self.n_under):
            raise HierarchyError(f"{where}: leaves must be numbered depth-first.")
        nulls = [node for node, label in enumerate(self.labels) if label is None]
        if nulls and (len(nulls) > 1 or nulls[0] >= self.n_leaves or parent[nulls[0]] != self.root):
            raise HierarchyError(f"{where}: only one leaf, directly under the root, may stand for null.")
        if len(self.code_of) + len(nulls) != self.n_leaves:
            raise HierarchyError(f"{where}: every leaf must have a label of its own.")
        if self.height > MAX_HEIGHT:
            raise HierarchyError(f"{where}: at most {MAX_HEIGHT} levels are possible. Got {self.height}.")

    @classmethod
    def from_paths(
        cls,
        attribute: str,
        paths: Sequence[LeafPath],
        *,
        root: str = ROOT,
        null_leaf: bool = False,
        public: bool = True,
        steps: tuple[str, ...] = (),
        numbers: bool = False,
    ) -> Hierarchy:
        """Return the hierarchy given by one path per leaf.

        Siblings keep the order of their first appearance, so equal sequences of paths give equal numbers.

        Parameters
        ----------
        attribute : str
            Name of the attribute, for messages.
        paths : sequence of tuple of str
            ``(leaf, parent, grandparent, …)`` without the root, of any length from 1 up.
        root : str
            Label of the root.
        null_leaf : bool
            Append a leaf with label None directly under the root: null as a value of its own. It is a leaf
            like any other and counts in ``n(⊥)``.
        public : bool
            Whether messages may name labels.
        steps : tuple of str
            Names of the levels from 0 up, where there are any.
        numbers : bool
            Whether leaves are numbers.

        Raises
        ------
        HierarchyError
            No path or an empty one; a leaf given twice, or with two parents; a leaf that is also above
            another; the root's label below the root; more than `MAX_LEAVES` leaves or `MAX_HEIGHT` levels.
        """
        where = message_head(attribute)
        if not paths:
            raise HierarchyError(f"{where}: it has no leaf; give at least one value.")
        if len(paths) + null_leaf > MAX_LEAVES:
            raise HierarchyError(
                f"{where}: it must have at most {MAX_LEAVES:,} leaves. Got {len(paths) + null_leaf:,}."
            )
        refuse_clashes(paths, root=root, where=lambda _: where, public=public)

        # Provisional numbers: inner nodes count up from 0 (the root); a child c < 0 is the leaf of path ~c.
        number: dict[LeafPath, int] = {(): 0}
        inner_label: list[str] = [root]
        inner_parent: list[int] = [0]
        inner_depth: list[int] = [0]
        children: list[list[int]] = [[]]
        for index, path in enumerate(paths):
            above = path[1:]
            node = number.get(above)
            if node is None:
                node = 0
                for start in range(len(above) - 1, -1, -1):
                    key = above[start:]
                    child = number.get(key)
                    if child is None:
                        child = number[key] = len(inner_label)
                        inner_label.append(key[0])
                        inner_parent.append(node)
                        inner_depth.append(inner_depth[node] + 1)
                        children[node].append(child)
                        children.append([])
                    node = child
            children[node].append(~index)

        leaf_label: list[str | None] = []
        leaf_parent: list[int] = []
        preorder: list[int] = []
        stack: list[tuple[int, int]] = [(0, 0)]
        while stack:
            node, above_node = stack.pop()
            if node < 0:
                leaf_label.append(paths[~node][0])
                leaf_parent.append(above_node)
            else:
                preorder.append(node)
                stack.extend((child, node) for child in reversed(children[node]))
        if null_leaf:
            leaf_label.append(None)
            leaf_parent.append(0)

        n_leaves = len(leaf_label)
        order = np.array(preorder, dtype=np.int64)
        order = order[np.argsort(-np.array(inner_depth)[order], kind="stable")]
        final = np.empty(order.size, dtype=np.int64)
        final[order] = np.arange(n_leaves, n_leaves + order.size)
        parent = final[np.concatenate([np.array(leaf_parent), np.array(inner_parent)[order]])]
        labels = (*leaf_label, *(inner_label[node] for node in order.tolist()))
        return cls(attribute, labels, parent.astype(np.int32), n_leaves, public, steps, numbers)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of labels and parents, hex: equal exactly for equal nodes with equal numbers."""
        return hashlib.sha256(json.dumps([self.labels, self.parent.tolist()]).encode()).hexdigest()

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.labels)

    @property
    def root(self) -> int:
        """Number of the root ``⊥``, the last node."""
        return len(self.labels) - 1

    @cached_property
    def depth(self) -> IntArray:
        """Edges from each node to the root, shape (n_nodes,): the generalization steps it can still take."""
        depth = np.zeros(self.n_nodes, dtype=np.int32)
        node = self.parent
        moving = np.arange(self.n_nodes) != self.root
        while moving.any():
            depth += moving
            moving = node != self.root
            node = self.parent[node]
        return _frozen(depth)

    @cached_property
    def height(self) -> int:
        """Greatest depth of a leaf, h; levels run from 0 to h."""
        return int(self.depth.max())

    @cached_property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels 0 … height, such as ``("day", "month", "year", "suppressed")``.

        Those of :attr:`steps`, and else what :func:`numbered_levels` calls them.
        """
        return (*self.steps[: self.height], *numbered_levels(self.height)[min(len(self.steps), self.height) :])

    @cached_property
    def even(self) -> bool:
        """Whether every value but null takes as many steps to the root."""
        leaves = self.n_leaves - (self.labels[self.n_leaves - 1] is None)
        return bool((self.depth[:leaves] == self.height).all())

    @cached_property
    def layers(self) -> tuple[IntArray, ...]:
        """Nodes at each depth from the root, ascending; ``layers[0]`` is the root alone."""
        return tuple(_frozen(np.flatnonzero(self.depth == depth).astype(np.int32)) for depth in range(self.height + 1))

    def bottom_up(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield ``(nodes, parents)`` per depth, deepest first, down to depth 1.

        Both are int32 arrays of one length; when a depth is met, everything below its nodes has been met.
        A fold over children is ``np.add.at(total, parents, total[nodes])``.
        """
        for nodes in reversed(self.layers[1:]):
            yield nodes, self.parent[nodes]

    @cached_property
    def n_under(self) -> LongArray:
        """Leaves under each node, n(v), shape (n_nodes,); 1 for a leaf, m for the root."""
        count = np.zeros(self.n_nodes, dtype=np.int64)
        count[: self.n_leaves] = 1
        for nodes, parents in self.bottom_up():
            np.add.at(count, parents, count[nodes])
        return _frozen(count)

    @cached_property
    def first_leaf(self) -> IntArray:
        """First leaf under each node, shape (n_nodes,)."""
        first = np.full(self.n_nodes, self.n_leaves, dtype=np.int32)
        first[: self.n_leaves] = np.arange(self.n_leaves)
        for nodes, parents in self.bottom_up():
            np.minimum.at(first, parents, first[nodes])
        return _frozen(first)

    @cached_property
    def last_leaf(self) -> IntArray:
        """One past the last leaf under each node, shape (n_nodes,)."""
        last = np.zeros(self.n_nodes, dtype=np.int32)
        last[: self.n_leaves] = np.arange(1, self.n_leaves + 1)
        for nodes, parents in self.bottom_up():
            np.maximum.at(last, parents, last[nodes])
        return _frozen(last)

    @cached_property
    def named(self) -> IntArray:
        """First node with the label of each node, shape (n_nodes,): what a release can tell apart."""
        first: dict[str | None, int] = {}
        return _frozen(
            np.array([first.setdefault(label, node) for node, label in enumerate(self.labels)], dtype=np.int32)
        )

    @cached_property
    def meant(self) -> IntArray:
        """First node with the label and the leaves of each node, shape (n_nodes,): what a label should say.

        It is :attr:`named` unless one label stands for different values.
        """
        same = (self.first_leaf[self.named] == self.first_leaf) & (self.n_under[self.named] == self.n_under)
        return _frozen(np.where(same, self.named, np.arange(self.n_nodes, dtype=np.int32)).astype(np.int32))

    @cached_property
    def ancestor(self) -> IntArray:
        """Node reached from each leaf code by each number of steps, shape (n_leaves + 1, height + 1).

        Column `level` is `level` steps up; a leaf of depth d stays at the root for levels d … height. The
        extra last row, code `n_leaves`, is the root everywhere: a value that is suppressed from the start.
        """
        ancestor = np.empty((self.n_leaves + 1, self.height + 1), dtype=np.int32)
        ancestor[:, 0] = np.arange(self.n_leaves + 1)
        ancestor[self.n_leaves, 0] = self.root
        for level in range(1, self.height + 1):
            ancestor[:, level] = self.parent[ancestor[:, level - 1]]
        return _frozen(ancestor)

    @cached_property
    def at_depth(self) -> IntArray:
        """Ancestor-or-self of each node at each depth, shape (n_nodes, height + 1); -1 below the node."""
        at_depth = np.full((self.n_nodes, self.height + 1), -1, dtype=np.int32)
        for depth, nodes in enumerate(self.layers):
            at_depth[nodes, :depth] = at_depth[self.parent[nodes], :depth]
            at_depth[nodes, depth] = nodes
        return _frozen(at_depth)

    @cached_property
    def code_of(self) -> dict[str, int]:
        """Code of each leaf label; the null leaf is not in it."""
        return {label: code for code, label in enumerate(self.labels[: self.n_leaves]) if label is not None}

    @property
    def code_of_null(self) -> int:
        """Code of a null: its own leaf if there is one, else `n_leaves` (suppressed from the start)."""
        return self.n_leaves - 1 if self.labels[self.n_leaves - 1] is None else self.n_leaves

    def encode(self, values: Sequence[str | None]) -> IntArray:
        """Return the leaf code of each value.

        Parameters
        ----------
        values : sequence of (str or None)
            Values as text.

        Returns
        -------
        ndarray of int32, shape (len(values),)
            Leaf code; `code_of_null` for None; -1 for a value that is not a leaf.
        """
        code = self.code_of
        by_number = {equal_text(label): code for label, code in code.items()} if self.numbers else {}

        def find(value: str | None) -> int:
            if value is None:
                return self.code_of_null
            return code[value] if value in code else by_number.get(equal_text(value), -1)

        return np.fromiter(map(find, values), dtype=np.int32, count=len(values))

    def nodes_at_level(self, level: int) -> IntArray:
        """Return the different nodes reached from the leaves at a level, ascending.

        Raises
        ------
        HierarchyError
            If the level is not in ``0 … height``.
        """
        if not 0 <= level <= self.height:
            raise HierarchyError(
                f"{message_head(self.attribute)}: level must be between 0 and {self.height}. Got {level}."
            )
        return np.unique(self.ancestor[: self.n_leaves, level])

    def find(self, label: str, *, level: int | None = None) -> int:
        """Return the node with a label.

        Parameters
        ----------
        label : str
            Label as written in the policy.
        level : int, optional
            Only look at nodes reached at this level; needed where several nodes have the label.

        Raises
        ------
        HierarchyError
            If no node, or more than one, has the label; the message names a near label if labels are public.
        """
        nodes = range(self.n_nodes) if level is None else self.nodes_at_level(level).tolist()
        found = [node for node in nodes if self.labels[node] == label]
        if len(found) == 1:
            return found[0]
        where = message_head(self.attribute)
        at = "" if level is None else f" at level {level}"
        if not found:
            known = dict.fromkeys(name for node in nodes if (name := self.labels[node]) is not None)
            hint = nearest(label, list(known)) if self.public else ""
            raise HierarchyError(f"{where}: no node{at} is labelled '{label}'{hint}.")
        if level is not None:
            raise HierarchyError(f"{where}: {len(found)} nodes at level {level} are labelled '{label}'.")
        levels = np.flatnonzero(np.isin(self.ancestor[: self.n_leaves], found).any(axis=0))
        raise HierarchyError(
            f"{where}: {len(found)} nodes are labelled '{label}'; name one of the levels "
            f"{listing([str(number) for number in levels])} as well."
        )


def numbered_levels(height: int) -> tuple[str, ...]:
    """Return names of the levels 0 … height where nobody has given them any; the last holds the root alone."""
    return (*("as it is", *(f"level {level}" for level in range(1, height)))[:height], "suppressed")


def _frozen(array: NDArray[_Number]) -> NDArray[_Number]:
    """Mark an array read-only."""
    array.setflags(write=False)
    return array
