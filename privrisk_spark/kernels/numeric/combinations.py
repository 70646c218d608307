"""How far sets of columns tell rows apart: the different combinations of their values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privrisk_spark.kernels.arrays import LongArray


def combinations_of(codes: LongArray, sets: Sequence[tuple[int, ...]]) -> LongArray:
    """Count the different combinations of each set of columns.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, k)
        Equal numbers are equal values of a column; each in ``0 … n``.
    sets : sequence of m tuples of int
        Columns of each; of at most three, so that a combination is one number while n is below 2^21.

    Returns
    -------
    ndarray of int64, shape (m,)
    """
    base = np.int64(codes.max(initial=0) + 1)
    found = np.zeros(len(sets), dtype=np.int64)
    for place, columns in enumerate(sets):
        packed = np.zeros(len(codes), dtype=np.int64)
        for column in columns:
            packed = packed * base + codes[:, column]
        found[place] = len(np.unique(packed))
    return found
