"""Exact sums of float64 values, so that a mean does not depend on partitioning, and histograms on logarithmic bins.

A float64 is an integer times a power of two; sums of such integers are exact in any order. Every partial sum is one
integer in units of 2^-1074, the smallest positive float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LevelArray, LongArray

_UNIT = 1074
_MANTISSA = 53
_BIAS = 1022  # a significand below 1, as whole bits over 2^53
_EXACT_IN_FLOATS = 2**26
LOWEST, HIGHEST, PER_DECADE = -9, 3, 2
"""Decades of the risk histogram and bins in each."""


@dataclass(frozen=True)
class Moments:
    """Sum, extremes and number of values; a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    n : int
        Values.
    total : int
        Exact sum of the finite ones, in units of 2^-1074.
    infinite : int
        Values that are +inf.
    least, most : float
        inf and -inf when there are no values.
    """

    n: int = 0
    total: int = 0
    infinite: int = 0
    least: float = math.inf
    most: float = -math.inf

    @classmethod
    def of(cls, values: FloatArray, times: LongArray) -> Moments:
        """Measure values of which value i stands ``times[i]`` times.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)
            Non-negative, no NaN; +inf allowed.
        times : ndarray of int64, shape (n,)
            At most 2^36 in sum.
        """
        present = times > 0
        if not present.all():
            values, times = values[present], times[present]
        if not len(values):
            return cls()
        finite = np.isfinite(values)
        every = bool(finite.all())
        return cls(
            n=int(times.sum()),
            total=_exact_sum(values, times) if every else _exact_sum(values[finite], times[finite]),
            infinite=0 if every else int(times[~finite].sum()),
            least=float(values.min()) + 0.0,  # 0 for -0, whichever comes first
            most=float(values.max()) + 0.0,
        )

    @classmethod
    def empty(cls) -> Moments:
        """Moments of no value."""
        return cls()

    def plus(self, other: Moments) -> Moments:
        """Moments of both together."""
        return Moments(
            self.n + other.n,
            self.total + other.total,
            self.infinite + other.infinite,
            min(self.least, other.least),
            max(self.most, other.most),
        )

    @property
    def mean(self) -> float:
        """Correctly rounded mean; 0 of nothing, inf if any value is."""
        if self.n == 0:
            return 0.0
        return math.inf if self.infinite else float(Fraction(self.total, self.n << _UNIT))

    @property
    def sum(self) -> float:
        """Correctly rounded sum; inf if any value is, or if it is too large."""
        if self.infinite:
            return math.inf
        try:
            return self.total / (1 << _UNIT)
        except OverflowError:
            return math.inf


def _exact_sum(values: FloatArray, times: LongArray) -> int:
    """Σ values · times in units of 2^-1074."""
    if not len(values):
        return 0
    # Most classes of a table as it is are of one row, and have one number.
    usual = values == values[len(values) // 2]
    often = int(np.count_nonzero(usual))
    if often > 1 and len(values) < 2 * often:
        once = _exact_sum(values[len(values) // 2 :][:1], np.array([int(times[usual].sum())]))
        return once + _exact_sum(values[~usual], times[~usual])
    bits = np.ascontiguousarray(values + 0.0).view(np.int64)
    field = bits >> (_MANTISSA - 1)  # of the exponent; 0 for subnormal values, which have no leading one and those of 1
    whole = (bits & (2 ** (_MANTISSA - 1) - 1)) | ((field > 0).astype(np.int64) << (_MANTISSA - 1))
    exponent = np.maximum(field, 1) - _BIAS
    # Halves of 27 and 26 bits: times up to 2^36 in sum, no product sum overflows.
    high, low = whole >> 26, whole & (2**26 - 1)
    start = int(exponent.min())
    slot = exponent - start
    slots = int(slot.max()) + 1
    if int(times.sum()) <= _EXACT_IN_FLOATS:
        # Whole numbers below 2^53, and so are their sums: doubles add them exactly.
        highs, lows = (np.bincount(slot, part * times, slots).astype(np.int64) for part in (high, low))
    else:
        highs, lows = np.zeros((2, slots), dtype=np.int64)
        np.add.at(highs, slot, high * times)
        np.add.at(lows, slot, low * times)
    total = 0
    for e in range(len(highs)):
        part = (int(highs[e]) << 26) + int(lows[e])
        total += part << (e + start - _MANTISSA + _UNIT)
    return total


def risk_bins() -> tuple[float, ...]:
    """Edges of the risk histogram: 0, half decades from 1e-9 to 1e3, inf."""
    inner = [10.0 ** (b / PER_DECADE) for b in range(LOWEST * PER_DECADE, HIGHEST * PER_DECADE + 1)]
    return (0.0, *inner, math.inf)


def risk_histogram(values: FloatArray, times: LongArray) -> LongArray:
    """Values per bin of :func:`risk_bins`; a bin holds its lower edge.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Non-negative.
    times : ndarray of int64, shape (n,)

    Returns
    -------
    ndarray of int64, shape (number of bins,)
    """
    edges = np.array(risk_bins())
    position = np.searchsorted(edges, values, side="right") - 1
    counts = np.zeros(len(edges) - 1, dtype=np.int64)
    np.add.at(counts, np.clip(position, 0, len(edges) - 2), times)
    return counts


def rows_by_level(levels: LevelArray, suppressed: BoolArray, times: LongArray, height: int) -> LongArray:
    """Rows released at each level of an attribute; suppressed ones count at its height, whatever their level.

    Parameters
    ----------
    levels : ndarray of int8, shape (n,)
    suppressed : ndarray of bool, shape (n,)
    times : ndarray of int64, shape (n,)

    Returns
    -------
    ndarray of int64, shape (height + 1,)
    """
    counts = np.zeros(height + 1, dtype=np.int64)
    np.add.at(counts, np.where(suppressed, height, levels), times)
    return counts
