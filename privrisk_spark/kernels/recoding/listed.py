"""Vectors of codes in a list, found again: how tasks know of a record which class of a scheme it is in."""

from __future__ import annotations

from math import prod
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
    if not len(keys) or not len(codes):
        return np.full(len(codes), -1, dtype=np.int64)
    # Words are found several times faster than texts; to make them of a long list for few vectors takes longer.
    packed = _packed(keys, codes) if _WORTH * len(codes) >= len(keys) else None
    listed, wanted = (keys, keys_of(codes)) if packed is None else packed
    place = np.minimum(np.searchsorted(listed, wanted), len(listed) - 1)
    return np.where(listed[place] == wanted, place, -1).astype(np.int64)


_WORTH = 8
"""Of a list of up to so many vectors for each that is looked up, words are made."""

_WORD = 2**63


def _packed(keys: Keys, codes: IntArray) -> tuple[LongArray, LongArray] | None:
    """Vectors of a list, and others, as words in the order of the vectors; -1 for one that is beyond all of the list.

    None where a word does not hold them.
    """
    listed = np.ascontiguousarray(keys).view(">i4").reshape(len(keys), codes.shape[1])
    columns = [column.astype(np.int64) for column in listed.T]
    most = [int(column.max()) for column in columns]
    if prod(greatest + 1 for greatest in most) >= _WORD:
        return None
    words, wanted = np.zeros(len(keys), dtype=np.int64), np.zeros(len(codes), dtype=np.int64)
    inside = np.ones(len(codes), dtype=np.bool_)
    for i, (column, greatest) in enumerate(zip(columns, most, strict=True)):
        inside &= (codes[:, i] >= 0) & (codes[:, i] <= greatest)
        words = words * (greatest + 1) + column
        wanted = wanted * (greatest + 1) + np.where(inside, codes[:, i], 0)
    return words, np.where(inside, wanted, -1)
