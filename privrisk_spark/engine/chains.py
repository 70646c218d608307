"""What stands for a value with its path to the root, in any table and whatever number it has there."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric import fingerprint


def path_fingerprints(hierarchy: Hierarchy) -> LongArray:
    """Fingerprint of the labels from each code to the root.

    Two are equal, but for chance 2^-64, where value and hierarchy above it are: then a level means the same node.

    Returns
    -------
    ndarray of int64, shape (n_leaves + 1,)
    """
    labels = fingerprints(pa.chunked_array([pa.array(list(hierarchy.labels), pa.string())]))
    depth = hierarchy.depth[hierarchy.ancestor[:, 0]]
    found = fingerprint.of_integers(depth.astype(np.int64))
    for level, nodes in enumerate(hierarchy.ancestor.T):
        found = np.where(level <= depth, fingerprint.mixed(found ^ labels[nodes]), found)
    return found.view(np.int64)
