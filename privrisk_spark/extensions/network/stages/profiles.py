"""What the profiles of two users have in common, by hierarchies that tasks map."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import uuid4

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.batches import read_ipc, write_ipc
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LevelArray
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory


@dataclass(frozen=True)
class StoredTrees:
    """Hierarchies of the attributes, in the scratch directory.

    Attributes
    ----------
    token : str
        Identity: later ones may lie in the same directory, and workers live on.
    heights : tuple of k int
    labels : tuple of k str
        Parts with the labels of the nodes.
    """

    directory: PartDirectory
    token: str
    heights: tuple[int, ...]
    labels: tuple[str, ...]

    def load(self) -> Trees:
        """Map the arrays, once per process."""
        return _loaded_trees(self)


@dataclass(frozen=True, eq=False)
class Trees:
    """Hierarchies of the attributes, in a task.

    Attributes
    ----------
    heights : tuple of k int
    paths : tuple of k ndarrays of int32, shape (n_leaves + 1, height + 1)
        Node above each leaf code at each depth from the root, -1 below the leaf; a missing value has the root alone.
    depths : tuple of k ndarrays of int8, shape (n_leaves + 1,)
        Of each leaf code; 0 of a missing value.
    labels : tuple of k pa.Array of string
        Of each node.
    """

    heights: tuple[int, ...]
    paths: tuple[IntArray, ...]
    depths: tuple[LevelArray, ...]
    labels: tuple[pa.Array, ...]

    def levels(self, codes: IntArray) -> LevelArray:
        """Return how many levels each value has: its depth; int8 of the shape of the codes, (n, k)."""
        return np.stack([depth[codes[:, j]] for j, depth in enumerate(self.depths)], axis=1)

    def values(self, codes: IntArray, shown: LevelArray, j: int) -> pa.Array:
        """Return what codes and levels, (n, k), show of attribute j: the root's label if nothing, null if missing."""
        node = self.paths[j][codes[:, j], shown[:, j]]
        return self.labels[j].take(pa.array(node, mask=self.depths[j][codes[:, j]] == 0))

    def agreements(self, left: IntArray, right: IntArray) -> LevelArray:
        """Return the least level at which each value of one user covers that of another.

        Parameters
        ----------
        left, right : ndarray of int32, shape (n, k)
            Leaf codes.

        Returns
        -------
        ndarray of int8, shape (n, k)
            The depth of the left value where the right one is missing.
        """
        found = np.empty(left.shape, dtype=np.int8)
        for j, (paths, depth) in enumerate(zip(self.paths, self.depths, strict=True)):
            mine, theirs = paths[left[:, j]], paths[right[:, j]]
            shared = np.count_nonzero((mine == theirs) & (mine >= 0), axis=1) - 1
            found[:, j] = depth[left[:, j]] - shared
        return found


@functools.lru_cache(maxsize=2)
def _loaded_trees(stored: StoredTrees) -> Trees:
    def arrays(kind: str) -> tuple[np.ndarray, ...]:
        return tuple(
            np.ascontiguousarray(map_array(stored.directory, f"{kind}{j}.npy")) for j in range(len(stored.heights))
        )

    labels = (read_ipc(stored.directory, name).column(0).combine_chunks() for name in stored.labels)
    return Trees(stored.heights, arrays("paths"), arrays("depths"), tuple(labels))


def store_trees(directory: PartDirectory, hierarchies: Mapping[str, Hierarchy]) -> StoredTrees:
    """Write hierarchies where tasks map them."""
    for j, tree in enumerate(hierarchies.values()):
        missing = np.full((1, tree.height + 1), -1, dtype=np.int32)
        missing[0, 0] = tree.root
        paths = np.concatenate([tree.at_depth[: tree.n_leaves], missing])
        write_array(paths, directory, f"paths{j}.npy")
        depths = np.append(tree.depth[: tree.n_leaves], 0).astype(np.int8)
        write_array(depths, directory, f"depths{j}.npy")
    trees = list(hierarchies.values())
    labels = (write_ipc(pa.table({"label": pa.array(tree.labels, pa.string())}), directory) for tree in trees)
    return StoredTrees(directory, uuid4().hex, tuple(tree.height for tree in trees), tuple(labels))
