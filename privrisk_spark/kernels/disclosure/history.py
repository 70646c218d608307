"""What earlier releases have disclosed of records already: the meet of their nodes, value by value.

A release discloses a node of a value's hierarchy. In a tree all nodes of one value lie on its path to the root, so who
holds several releases knows exactly the deepest of the nodes they disclose: their meet. That is so as long as the
value is the same: what was disclosed of another one says nothing of this one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, LevelArray, LongArray


@dataclass(frozen=True, eq=False)
class History:
    """What is out already of each of some records.

    Attributes
    ----------
    levels : ndarray of int8, shape (n, k)
        Level of the meet; the depth of the value where nothing is out of it.
    releases : ndarray of int64, shape (n,)
        Earlier releases that hold the record.
    changed : ndarray of bool, shape (n,)
        Records some value of which is another than in some earlier release.
    """

    levels: LevelArray
    releases: LongArray
    changed: BoolArray


def meet(depths: LevelArray, record: LongArray, levels: LevelArray, paths: LongArray, known: LongArray) -> History:
    """Put together what releases have disclosed of records.

    Parameters
    ----------
    depths : ndarray of int8, shape (n, k)
        Depth of each value now.
    record : ndarray of int64, shape (e,)
        The record of each entry: one record in one release. In any order.
    levels : ndarray of int8, shape (e, k)
        At which each value was disclosed.
    paths : ndarray of int64, shape (e, k)
        What stands for each value with its path to the root, as the release had it.
    known : ndarray of int64, shape (n, k)
        The same of each value now.
    """
    found = depths.copy()
    same = paths == known[record]
    for i in range(depths.shape[1]):
        rows = np.flatnonzero(same[:, i])
        np.minimum.at(found[:, i], record[rows], levels[rows, i])
    changed = np.zeros(len(depths), dtype=np.bool_)
    changed[record[~same.all(axis=1)]] = True
    return History(found, np.bincount(record, minlength=len(depths)), changed)
