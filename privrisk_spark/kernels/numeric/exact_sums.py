"""Exact weighted sums and means of float64 values of either sign, for weights up to 2^63, in any order and any parts.

:mod:`privrisk_spark.kernels.numeric.moments` adds non-negative values that stand for at most 2^36 rows in all. Sampling
weights in millionths are larger: here a weight is cut into digits of 16 bits, each digit is added exactly, and the
digits' sums are put together as Python integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.numeric.moments import Moments

UNIT_BITS = 1074
"""Sums are integers in units of 2^-1074, the smallest positive float64; sums of squares in units of 2^-2148."""

_DIGIT = 16
_CHUNK = 2**19
_HALF = 27


@dataclass(frozen=True)
class ExactMean:
    """Weighted mean as two integers, a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    weight : int
        Sum of the weights, such as rows or millionths of a sampling weight. The mean does not depend on their unit.
    total : int
        Exact sum of value times weight, in units of 2^-1074.
    """

    weight: int = 0
    total: int = 0

    @classmethod
    def of(cls, values: FloatArray, times: LongArray) -> ExactMean:
        """Mean of values of which value i has the weight ``times[i]``.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)
            Finite.
        times : ndarray of int64, shape (n,)
            At least 0.

        Raises
        ------
        InputError
            If the shapes differ, a value is not finite or a weight is negative.
        """
        return cls(exact_total(times), weighted_total(values, times))

    @classmethod
    def empty(cls) -> ExactMean:
        """Mean of nothing."""
        return cls()

    def plus(self, other: ExactMean) -> ExactMean:
        """Mean of both together."""
        return ExactMean(self.weight + other.weight, self.total + other.total)

    @property
    def exact(self) -> Fraction:
        """The mean; 0 of nothing."""
        return Fraction(self.total, self.weight << UNIT_BITS) if self.weight else Fraction()

    @property
    def mean(self) -> float:
        """Correctly rounded mean; 0 of nothing."""
        return float(self.exact)


def exact_total(values: LongArray) -> int:
    """Sum of non-negative int64 values, which may pass 2^63.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
        At least 0; n below 2^31.

    Raises
    ------
    InputError
        If a value is negative.
    """
    _refuse_negative(values)
    return (int((values >> 32).sum()) << 32) + int((values & (2**32 - 1)).sum())


def exact_dot(values: LongArray, times: LongArray) -> int:
    """Sum of products of non-negative int64 values.

    Parameters
    ----------
    values, times : ndarrays of int64, shape (n,)
        At least 0.

    Raises
    ------
    InputError
        If the shapes differ or a value is negative.
    """
    if values.ndim != 1 or values.shape != times.shape:
        raise InputError(f"There must be one weight per value. Got shapes {values.shape} and {times.shape}.")
    if not len(values):
        return 0
    values, times = values.astype(np.int64, copy=False), times.astype(np.int64, copy=False)
    greatest, most = _greatest(values), _greatest(times) * len(times)
    # Most sums fit a word, or two words by halves of the values; those that may not go digit by digit.
    if greatest * most < _WORD:
        return int(values @ times)
    if most << _LOW < _WORD and (greatest >> _LOW) * most < _WORD:
        return (int((values >> _LOW) @ times) << _LOW) + int((values & (2**_LOW - 1)) @ times)
    total = 0
    for part in _chunks(len(values)):
        for place, digit in _digits(times[part]):
            for shift in range(0, 63, _HALF):
                total += int((((values[part] >> shift) & (2**_HALF - 1)) * digit).sum()) << (place + shift)
    return total


_WORD, _LOW = 2**63, 31


def _greatest(values: LongArray) -> int:
    """Greatest of some non-negative numbers."""
    greatest = int(values.view(np.uint64).max())
    if greatest >= _WORD:
        raise InputError(_NEGATIVE)
    return greatest


_NEGATIVE = "Rows and weights must be at least 0, and some are negative."


def weighted_total(values: FloatArray, times: LongArray) -> int:
    """Sum of value times weight in units of 2^-1074; parameters and errors as for :meth:`ExactMean.of`."""
    _refuse_shapes(values, times)
    if not np.isfinite(values).all():
        raise InputError("Values to add up must be finite, and some are NaN or infinite.")
    total = 0
    for part in _chunks(len(values)):
        value = values[part]
        for place, digit in _digits(times[part]):
            for sign in (1, -1):
                here = value * sign > 0
                if here.any():
                    total += sign * Moments.of(np.abs(value[here]), digit[here]).total << place
    return total


def weighted_square_total(values: FloatArray, times: LongArray) -> int:
    """Sum of squared value times weight in units of 2^-2148; parameters and errors as for :meth:`ExactMean.of`.

    Notes
    -----
    A value is ``s 2^(e-53)`` with an integer ``s < 2^53``. With ``s = 2^26 a + b`` its square is
    ``2^52 a² + 2^27 a b + b²``, three integers below 2^54, each added in two halves by exponent: no sum of a chunk
    passes ``2^27 · 2^16 · 2^19``.
    """
    _refuse_shapes(values, times)
    if not np.isfinite(values).all():
        raise InputError("Values to add up must be finite, and some are NaN or infinite.")
    total = 0
    for part in _chunks(len(values)):
        significand, exponent = np.frexp(np.abs(values[part]))
        whole = np.ldexp(significand, 53).astype(np.int64)
        high, low = whole >> 26, whole & (2**26 - 1)
        least = int(exponent.min())
        slot = exponent - least
        for place, digit in _digits(times[part]):
            for term, shift in ((high * high, 52), (high * low, 27), (low * low, 0)):
                for half, more in ((term >> _HALF, _HALF), (term & (2**_HALF - 1), 0)):
                    sums = np.zeros(int(slot.max()) + 1, dtype=np.int64)
                    np.add.at(sums, slot, half * digit)
                    for at in np.flatnonzero(sums).tolist():
                        power = 2 * (at + least - 53 + UNIT_BITS) + shift + more + place
                        # Subnormal values have trailing zeros enough, but only in the sum of all terms.
                        total += int(sums[at]) << (power + _SPARE)
    return total >> _SPARE


_SPARE = 2 * 53
"""Bits below the unit that terms of subnormal values may have."""


def _chunks(n: int) -> Iterator[slice]:
    for start in range(0, n, _CHUNK):
        yield slice(start, start + _CHUNK)


def _digits(times: LongArray) -> Iterator[tuple[int, LongArray]]:
    """Digits of non-negative integers, each with the power of two it stands at."""
    bits = int(times.max()).bit_length()
    for place in range(0, bits, _DIGIT):
        yield place, (times >> place) & (2**_DIGIT - 1)


def _refuse_shapes(values: npt.NDArray[Any], times: LongArray) -> None:
    if values.ndim != 1 or values.shape != times.shape:
        raise InputError(f"There must be one weight per value. Got shapes {values.shape} and {times.shape}.")
    _refuse_negative(times)


def _refuse_negative(values: LongArray) -> None:
    if len(values) and int(values.min()) < 0:
        raise InputError(_NEGATIVE)
