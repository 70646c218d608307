"""Generated tables over balanced hierarchies, and the keyed uniform numbers experiments draw from.

Fouad (2012; F12) measures, in section 4.6, on a table nobody else has, with random weights and hierarchies of heights 1
to 5. What stands in for it here is a table of clusters: every row belongs to a cluster and shares with its prototype,
in each attribute, the ancestor of some level, the higher the rarer. So rows resemble each other to every degree, as in
tables of goods or of people, which rows of independent uniform values do not.

Everything is a function of the seed and of a label, never of the order in which it is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.random.keyed import derive_key, prf, uniforms

_ROWS_PER_CLUSTER = 100


def simulation_key(seed: int, label: str) -> bytes:
    """Key of one use in an experiment: a function of a public seed, so it protects nothing."""
    return derive_key(hashlib.sha256(f"privrisk experiments {seed}".encode()).digest(), label)


def keyed_uniforms(seed: int, label: str, shape: Sequence[int]) -> FloatArray:
    """Uniform numbers that depend on seed, label and place alone.

    Parameters
    ----------
    label : str
        What they are for; different labels give independent numbers.
    shape : sequence of int
        A larger array of the same label begins, in C order, with the same numbers.

    Returns
    -------
    ndarray of float64
        In (0, 1).
    """
    n = int(np.prod(np.array(shape, dtype=np.int64)))
    key = simulation_key(seed, label)
    messages = np.zeros((-(-n // 2), 4), dtype=np.uint32)
    messages[:, 0] = np.arange(len(messages), dtype=np.uint32)
    if not n:
        return np.zeros(tuple(shape))
    return uniforms(prf(key, messages).ravel()[:n]).reshape(tuple(shape))


@dataclass(frozen=True, eq=False)
class BalancedTree:
    """Hierarchy in which every inner node has the same number of children; leaves first, the root last.

    Attributes
    ----------
    height : int
        At least 1.
    branching : int
        At least 2.
    """

    height: int
    branching: int

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int(self.branching**self.height)

    @property
    def starts(self) -> LongArray:
        """int64 (height + 2,): first node of each level, and the number of nodes."""
        sizes = [self.branching ** (self.height - level) for level in range(self.height + 1)]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def depth(self) -> IntArray:
        """int32 (n_nodes,)."""
        return (self.height - np.repeat(np.arange(self.height + 1), np.diff(self.starts))).astype(np.int32)

    @property
    def n_under(self) -> LongArray:
        """int64 (n_nodes,): leaves under each node."""
        under: LongArray = np.int64(self.branching) ** (self.height - self.depth).astype(np.int64)
        return under

    @property
    def parent(self) -> IntArray:
        """int32 (n_nodes,); the root is its own."""
        starts = self.starts
        found = np.arange(starts[-1])
        for level in range(self.height):
            nodes = np.arange(starts[level], starts[level + 1])
            found[nodes] = starts[level + 1] + (nodes - starts[level]) // self.branching
        return found.astype(np.int32)

    @property
    def ancestor(self) -> IntArray:
        """int32 (leaves + 1, height + 1): node of each leaf code at each level; the last code is ⊥."""
        found = np.full((self.leaves + 1, self.height + 1), self.starts[-1] - 1, dtype=np.int32)
        codes = np.arange(self.leaves)
        for level, start in enumerate(self.starts[:-1].tolist()):
            found[:-1, level] = start + codes // self.branching**level
        return found

    @property
    def at_depth(self) -> IntArray:
        """int32 (n_nodes, height + 1): ancestor-or-self of each node at each depth, -1 below it."""
        depth, parent = self.depth, self.parent
        found = np.full((len(depth), self.height + 1), -1, dtype=np.int32)
        node = np.arange(len(depth))
        for d in range(self.height, -1, -1):
            there = depth >= d
            found[there, d] = node[there]
            node = np.where(depth[node] == d, parent[node], node)
        return found


def clustered_table(seed: int, rows: int, trees: Sequence[BalancedTree]) -> IntArray:
    """Leaf codes of a generated table.

    Parameters
    ----------
    rows : int
        At least 1.
    trees : sequence of k BalancedTree

    Returns
    -------
    ndarray of int32, shape (rows, k)
        There is a cluster for every 100 rows. A row shares with its cluster's prototype the ancestor of level l or
        lower with probability ``1 - 2**-(l+1)``, attribute by attribute, and is a random leaf under it.

    Raises
    ------
    InputError
        If there are no rows or no attributes.
    """
    if rows < 1 or not trees:
        raise InputError(f"A generated table needs rows and attributes. Got {rows} rows, {len(trees)} attributes.")
    k = len(trees)
    clusters = max(1, rows // _ROWS_PER_CLUSTER)
    # Squares, so that some clusters and some values are common and most are rare.
    cluster = (clusters * keyed_uniforms(seed, "cluster", (rows,)) ** 2).astype(np.int64)
    codes = np.zeros((rows, k), dtype=np.int32)
    for i, tree in enumerate(trees):
        leaf = (tree.leaves * keyed_uniforms(seed, f"prototype {i}", (clusters,)) ** 2).astype(np.int64)[cluster]
        draws = keyed_uniforms(seed, f"value {i}", (rows, 2))
        level = np.minimum(np.floor(-np.log2(draws[:, 0])).astype(np.int64), tree.height)
        under = np.int64(tree.branching) ** level
        codes[:, i] = leaf - leaf % under + (under * draws[:, 1]).astype(np.int64)
    return codes
