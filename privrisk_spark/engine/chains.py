"""What stands for a value with its path to the root, whatever number it has in a table; and for a whole dictionary."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LongArray, WordArray
from privrisk_spark.kernels.counting.consistent import Axis
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


def population_digest(
    vectors: IntArray,
    counts: LongArray,
    hierarchies: Mapping[str, Hierarchy],
    axes: Sequence[Axis],
    similar: Mapping[str, float],
) -> str:
    """Digest of what classes are held against: a dictionary's people, and when a value is consistent with a node.

    It does not depend on the order of the vectors, on the plan they are counted by, or on how values are numbered. Two
    dictionaries have the same but for chance 2^-64, as a person is 64 bits before people are added up; it is no
    protection against somebody who looks for two.

    Parameters
    ----------
    vectors : ndarray of int32, shape (m, k)
        Codes of the dictionary, the same as often as one likes.
    counts : ndarray of int64, shape (m,)
        People of each; below 0 where distinct persons are counted by joins.
    hierarchies : mapping of attribute to Hierarchy
    axes : sequence of k Axis
    similar : mapping of attribute to float
        Thresholds of the consistency ``similar``.

    Returns
    -------
    str
        SHA-256, hex.
    """
    words = [
        _code_words(hierarchy, axis)[vectors[:, i]]
        for i, (hierarchy, axis) in enumerate(zip(hierarchies.values(), axes, strict=True))
        if axis.known
    ]
    rows = fingerprint.of_rows(words, len(vectors))
    with np.errstate(over="ignore"):
        times = counts.astype(np.int64).view(np.uint64)
        # A second sum of other words: where different people have different words, both agree by chance 2^-128.
        sums = [int(np.sum(of * times, dtype=np.uint64)) for of in (rows, fingerprint.mixed(~rows))]
    of_axes = [[axis.known, axis.consistency, axis.wildcard] for axis in axes]
    what = [list(one) for one in zip(hierarchies, of_axes, strict=True)]
    text = json.dumps([int(counts.sum()), sums, what, dict(sorted(similar.items()))], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _code_words(hierarchy: Hierarchy, axis: Axis) -> WordArray:
    """Fingerprint of each code of a dictionary, by the labels from the root down to it."""
    labels = fingerprints(pa.chunked_array([pa.array(list(hierarchy.labels), pa.string())]))
    # Codes beyond the nodes are children of their own, without a label; -1 is below a code.
    words = np.concatenate([labels, [_APART, _BELOW]])
    chain = axis.dictionary_chain()
    places = np.where(chain < 0, len(words) - 1, np.minimum(chain, len(words) - 2))
    return fingerprint.of_rows([words[column] for column in places.T], len(chain))


_APART, _BELOW = np.uint64(2), np.uint64(3)
