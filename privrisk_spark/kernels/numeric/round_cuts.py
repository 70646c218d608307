"""Cuts between numbers that a person would write down: the roundest number near each quantile.

A cut at a quantile splits a column evenly, and shows a record's value; a round number beside it does neither exactly.
"""

from __future__ import annotations

import math

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray

STEPS = (5, 2, 1)
"""First digits of the steps a cut may be a multiple of, the roundest first; each times a power of ten."""

_FINEST = 12
"""Powers of ten below the size of the numbers at which the search for a round number ends."""


def round_cuts(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the roundest number of each of some ranges.

    The roundest number of a range is a multiple of the greatest step 1, 2 or 5 times a power of ten that has a multiple
    in it; of several, the one nearest to the middle, then the smaller one.

    Parameters
    ----------
    low, high : ndarray of float64, shape (n,)
        Ends of the ranges, both included, finite, ``low <= high``.

    Returns
    -------
    ndarray of float64, shape (m,), m <= n
        Ascending, each once.
    """
    found = {_roundest(float(a), float(b)) for a, b in zip(low, high, strict=True)}
    return np.array(sorted(found), dtype=np.float64)


def _roundest(low: float, high: float) -> float:
    if low <= 0.0 <= high:
        return 0.0
    largest = math.floor(math.log10(max(abs(low), abs(high)))) + 1
    middle = (low + high) / 2
    for exponent in range(largest, largest - _FINEST, -1):
        for first in STEPS:
            step = first * 10.0**exponent
            begin, end = math.ceil(low / step), math.floor(high / step)
            if begin <= end:
                # Rounded to the decimals it has, so that a multiple of 0.1 is written with one digit.
                nearest = min(
                    (begin, end, *_inside(middle / step, begin, end)), key=lambda m: (abs(m * step - middle), m)
                )
                return float(round(nearest * step, max(0, -exponent)))
    return middle


def _inside(place: float, begin: int, end: int) -> tuple[int, ...]:
    return tuple(m for m in (math.floor(place), math.ceil(place)) if begin <= m <= end)
