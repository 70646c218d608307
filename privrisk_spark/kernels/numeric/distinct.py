"""Distinct rows of a table given by columns: which they are, and which of them each row is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import LongArray

_KEY_LIMIT = 2**63 - 1

_SPREAD = 32
"""Keys of ``n`` rows are told apart by a table while they are below ``32 n``; above, sorting is faster."""


def distinct_rows(columns: Sequence[npt.NDArray[np.generic]]) -> tuple[LongArray, LongArray]:
    """Distinct rows of a table given by columns.

    Parameters
    ----------
    columns : sequence of ndarrays, shape (n,)
        Integers or floats without NaN; at least one.

    Returns
    -------
    first : ndarray of int64, shape (n_distinct,)
        A row of each distinct one, in lexicographic order.
    member : ndarray of int64, shape (n,)
        Which distinct row each row is.
    """
    key = np.zeros(len(columns[0]), dtype=np.int64)
    bound = 1
    for column in columns:
        rank, radix = _ranked(column)
        if bound > _KEY_LIMIT // radix:
            distinct, key = np.unique(key, return_inverse=True)
            bound = max(len(distinct), 1)
        key = key * radix + rank
        bound *= radix
    return distinct_keys(key, bound)


def _ranked(column: npt.NDArray[np.generic]) -> tuple[LongArray, int]:
    """Numbers below a bound, in the order of the values and equal where they are."""
    if len(column) and column.dtype.kind in "iu" and column.dtype != np.uint64:
        low, high = int(column.min()), int(column.max())
        if high - low < 2**31:
            return column.astype(np.int64) - low, high - low + 1
    values, rank = np.unique(column, return_inverse=True)
    return rank, max(len(values), 1)


def distinct_keys(key: LongArray, bound: int) -> tuple[LongArray, LongArray]:
    """Distinct values of one column.

    Parameters
    ----------
    key : ndarray of int64, shape (n,)
        Non-negative.
    bound : int
        Larger than every key.

    Returns
    -------
    first, member : ndarrays of int64
        As :func:`distinct_rows`; ``first`` is the first row of each key.
    """
    n = len(key)
    if bound <= min(max(_SPREAD * n, 2**16), 2**31):
        there = np.zeros(bound, dtype=np.bool_)
        there[key] = True
        found = np.flatnonzero(there)
        position = np.empty(bound, dtype=np.int32)
        position[found] = np.arange(len(found), dtype=np.int32)
        member = position[key].astype(np.int64)
        first = np.empty(len(found), dtype=np.int64)
        # Backwards: of the rows of one key the first is written last.
        first[member[::-1]] = np.arange(n - 1, -1, -1)
        return first, member
    order = np.argsort(key)
    new = np.append(True, np.diff(key[order]) != 0)[:n]
    member = np.empty(n, dtype=np.int64)
    member[order] = np.cumsum(new) - 1
    return np.minimum.reduceat(order, np.flatnonzero(new)), member
