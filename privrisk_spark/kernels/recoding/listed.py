"""Vectors of codes in a list, found again: how tasks know of a record which class of a scheme it is in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import IntArray, LongArray

__all__ = ["Keys", "keys_of", "places_of"]

Keys = npt.NDArray[np.bytes_]
"""Texts of 4 k bytes, one for each vector, that are ordered as the vectors are."""


def keys_of(codes: npt.NDArray[np.integer[Any]]) -> Keys:
    """Return what stands for each vector: equal keys for equal vectors, in lexicographic order.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
        At least 0; ``k`` at least 1.
    """
    # The highest byte first. Texts of one length that differ in closing zeros alone do not exist: they are equal.
    whole = np.ascontiguousarray(codes.astype(">i4"))
    return whole.view(f"S{4 * codes.shape[1]}").reshape(-1)


def places_of(keys: Keys, codes: IntArray) -> LongArray:
    """Return where each vector stands in a list.

    Parameters
    ----------
    keys : ndarray of texts, shape (m,)
        Of the list, ascending, each once.
    codes : ndarray of int32, shape (n, k)

    Returns
    -------
    ndarray of int64, shape (n,)
        -1 for one that is not in it.
    """
    if not len(keys):
        return np.full(len(codes), -1, dtype=np.int64)
    wanted = keys_of(codes)
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, place, -1).astype(np.int64)
