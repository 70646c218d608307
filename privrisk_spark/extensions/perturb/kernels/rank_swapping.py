"""Rank swapping: values change places with values of near ranks (Moore 1996).

Ranks are gone through in ascending order. One that has not changed places yet draws its partner among those that have
not either and lie at most ``w = ⌊p n / 100⌋`` ranks above, each with the same probability. Where none is left, the
value stays.

Who swaps with whom depends on the words of the ranks alone, so the words may be drawn by the key and the number of the
rank, and a file be swapped in one pass over its ranks, at 25 bytes each. Longer files are cut into segments of at least
``4 (w + 1)`` ranks, which are swapped apart: no rank finds a partner beyond the end of its segment, as none does beyond
that of the file.

Status: that each attribute keeps its values, and that none moves by more than ``w`` ranks, is *proved*: swaps are made
once for each rank. The law of the partners is *tested* against a literal twin.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray, WordArray

_MOST_RANKS = 2**32
_SHORTEST = 4
"""Segments have at least so many times the ranks that a value and its partners span."""


def swap_width(n: int, p: float) -> int:
    """Ranks a value may move, ``⌊p n / 100⌋``; ``p`` is the decimal number it prints as, in [0, 100]."""
    if n < 0 or not 0 <= p <= 100:
        raise InputError(f"Rank swapping: p must be a percentage in [0, 100]. Got {p}.")
    return int(Fraction(str(p)) * n / 100)


def swap_partners(n: int, p: float, words: WordArray) -> LongArray:
    """Draw who swaps with whom.

    Parameters
    ----------
    n : int
        Ranks of the attribute in the whole file.
    p : float
        Percent of n, in [0, 100].
    words : ndarray of uint64, shape (n,)
        Drawn by key, one a rank.

    Returns
    -------
    ndarray of int64, shape (n,)
        Partner of each rank, itself if it has none: an involution that moves no rank by more than :func:`swap_width`.
    """
    if words.shape != (n,):
        raise InputError(f"Rank swapping: there must be one word per rank, {n}. Got shape {words.shape}.")
    return partners_within(swap_width(n, p), words)


def partners_within(width: int, words: WordArray) -> LongArray:
    """Draw partners among consecutive ranks, without those outside.

    Parameters
    ----------
    width : int
        Most ranks a value may move, at least 0.
    words : ndarray of uint64, shape (m,)
        One a rank.

    Returns
    -------
    ndarray of int64, shape (m,)
        Position of each one's partner.
    """
    if width < 0 or words.ndim != 1 or len(words) >= _MOST_RANKS:
        raise InputError(f"Rank swapping: the width must be at least 0, and ranks fewer than 2^32. Got {width}.")
    # Imported here, as it takes Numba a second, which plans of swaps do without.
    from privrisk_spark.extensions.perturb.kernels.partners import drawn_partners

    return drawn_partners(width, np.ascontiguousarray(words, dtype=np.uint64))


def swap_segments(n: int, width: int, segments: int) -> LongArray:
    """Cut n ranks into segments that are swapped apart, so that each is the work of one task.

    Parameters
    ----------
    segments : int
        As many are wanted; there are fewer if one would be shorter than ``4 (width + 1)``.

    Returns
    -------
    ndarray of int64, shape (number + 1,)
        Where segments start, and n.
    """
    if n < 0 or width < 0 or segments < 1:
        raise InputError(f"Rank swapping: there must be at least 1 segment. Got {segments}.")
    number = max(1, min(segments, n // (_SHORTEST * (width + 1))))
    return np.arange(number + 1, dtype=np.int64) * n // number


def swapped(values: FloatArray, p: float, words: WordArray) -> FloatArray:
    """Swap sorted values.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        In ascending order, equal values by their words.
    p : float
        Percent of n, in [0, 100].
    words : ndarray of uint64, shape (n,)
        One a rank.

    Returns
    -------
    ndarray of float64, shape (n,)
        The same values in another order: value that the record of each rank is published with.
    """
    if values.ndim != 1 or not (values[1:] >= values[:-1]).all() or np.isnan(values).any():
        raise InputError("Rank swapping: values must be sorted, with none missing.")
    result: FloatArray = values[swap_partners(len(values), p, words)]
    return result
