"""What an intruder knows of a record: values that he lacks, has wrong, or knows only coarsely.

The flexible scenario of record linkage (T20): the intruder's file is not the original table. Each value is lost or
mistaken by itself, by random words keyed to the record and the column, so that the same record is known in the same way
however the table is partitioned.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import IntArray, WordArray

__all__ = ["coarser", "mistaken"]


def mistaken(
    nodes: IntArray,
    words: WordArray,
    *,
    values: int,
    root: int,
    missing: float,
    wrong: float,
) -> IntArray:
    """Lose some values and replace others.

    Parameters
    ----------
    nodes : ndarray of int32, shape (n,)
        Leaves, or other nodes, which stay as they are.
    words : ndarray of uint64, shape (n,)
        Uniform; the upper half decides what happens to a value, the lower half which one takes its place.
    values : int
        Leaves that are values: the first ones. With fewer than two there is no wrong one.
    root : int
        What stands for a value that is not known.
    missing, wrong : float
        Probabilities that a value is lost, and that it is another one, each as likely. Their sum is at most 1.

    Returns
    -------
    ndarray of int32, shape (n,)

    Raises
    ------
    InputError
        If the probabilities are none.
    """
    if not (missing >= 0 and wrong >= 0 and missing + wrong <= 1):
        raise InputError("Record linkage: the shares of missing and of wrong values must add up to 1 at most.")
    found = nodes.copy()
    u = (words >> np.uint64(32)).astype(np.float64) * 2.0**-32
    is_value = nodes < values
    found[is_value & (u < missing)] = root
    if values > 1:
        other = is_value & (u >= missing) & (u < missing + wrong)
        step = (words[other] & np.uint64(0xFFFFFFFF)) % np.uint64(values - 1)
        found[other] = (nodes[other] + 1 + step.astype(np.int64)) % values
    return found


def coarser(nodes: IntArray, ancestor: IntArray, *, root: int, level: int) -> IntArray:
    """Generalize leaves to a level, as somebody knows them who knows no more.

    Parameters
    ----------
    nodes : ndarray of int32, shape (n,)
        Leaves, or the root of a value that is not known.
    ancestor : ndarray of int32, shape (n_leaves + 1, H + 1)
        Node of each leaf at each level.
    level : int
        At least 0; above the height of the hierarchy nothing is known.
    """
    at = min(level, ancestor.shape[1] - 1)
    return np.where(nodes == root, np.int32(root), ancestor[np.minimum(nodes, len(ancestor) - 1), at]).astype(np.int32)
