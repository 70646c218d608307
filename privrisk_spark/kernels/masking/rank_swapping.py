"""Rank swapping: values change places with values of near ranks (Moore 1996).

Ranks are gone through in ascending order. One that has not changed places yet draws its partner among those that have
not either and lie at most ``w = ⌊p n / 100⌋`` ranks above.
"""

from __future__ import annotations

from privrisk_spark.kernels.arrays import FloatArray, LongArray, WordArray


def swap_width(n: int, p: float) -> int:
    """Ranks a value may move, ``⌊p n / 100⌋``; ``p`` is the decimal number it prints as, in [0, 100]."""
    raise NotImplementedError


def swap_order(values: FloatArray, words: WordArray) -> LongArray:
    """Order of records by value, equal values by their words; missing values (NaN) are left out.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    words : ndarray of uint64, shape (n,)
        Drawn by key, one a record.

    Returns
    -------
    ndarray of int64, shape (number of values,)
        Record of each rank.
    """
    raise NotImplementedError


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
    raise NotImplementedError


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
    raise NotImplementedError


def swap_segments(n: int, width: int, segments: int) -> LongArray:
    """Cut n ranks into segments that are swapped apart, so that each is the work of one task.

    Parameters
    ----------
    n, width : int
    segments : int
        As many are wanted; there are fewer if one would be shorter than ``4 (width + 1)``.

    Returns
    -------
    ndarray of int64, shape (number + 1,)
        Where segments start, and n.
    """
    raise NotImplementedError


def swapped(values: FloatArray, p: float, words: WordArray) -> FloatArray:
    """Swap sorted values.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        In ascending order, as :func:`swap_order` puts them.
    p : float
        Percent of n, in [0, 100].
    words : ndarray of uint64, shape (n,)
        One a rank.

    Returns
    -------
    ndarray of float64, shape (n,)
        The same values in another order: value that the record of each rank is published with.
    """
    raise NotImplementedError
