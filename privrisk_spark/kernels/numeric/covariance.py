"""Exact means and covariances of numeric attributes, in any order of the records and in any parts."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.numeric.exact_sums import UNIT_BITS, weighted_total

_CHUNK = 2**19
_HALF = 27
_SPARE = 2 * 53
"""Bits below the unit that terms of subnormal values may have."""


@dataclass(frozen=True)
class CrossMoments:
    """Sums and sums of products of k attributes, a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    n : int
        Records with a value of every attribute; others are left out.
    totals : tuple of k int
        Exact sums, in units of 2^-1074.
    products : tuple of k (k + 1) / 2 int
        Exact sums of products of attributes ``i <= j``, row by row, in units of 2^-2148.
    """

    n: int
    totals: tuple[int, ...]
    products: tuple[int, ...]

    @classmethod
    def of(cls, values: FloatArray) -> CrossMoments:
        """Add up records.

        Parameters
        ----------
        values : ndarray of float64, shape (n, k)
            NaN where missing; no infinite ones.

        Raises
        ------
        InputError
            If the shape differs or a value is infinite.
        """
        if values.ndim != 2:
            raise InputError(f"Covariances: there must be one column per attribute. Got shape {values.shape}.")
        known = values[~np.isnan(values).any(axis=1)]
        if not np.isfinite(known).all():
            raise InputError("Covariances: values must be finite, or NaN where missing, and some are infinite.")
        n, k = known.shape
        ones = np.ones(n, dtype=np.int64)
        return cls(
            n,
            tuple(weighted_total(known[:, i], ones) for i in range(k)),
            tuple(product_total(known[:, i], known[:, j]) for i in range(k) for j in range(i, k)),
        )

    @classmethod
    def empty(cls, attributes: int) -> CrossMoments:
        """Moments of no record of so many attributes."""
        return cls(0, (0,) * attributes, (0,) * (attributes * (attributes + 1) // 2))

    def plus(self, other: CrossMoments) -> CrossMoments:
        """Moments of both together."""
        if len(self.totals) != len(other.totals):
            raise InternalError("moments of different numbers of attributes")
        return CrossMoments(
            self.n + other.n,
            tuple(a + b for a, b in zip(self.totals, other.totals, strict=True)),
            tuple(a + b for a, b in zip(self.products, other.products, strict=True)),
        )

    @property
    def means(self) -> FloatArray:
        """Correctly rounded means, shape (k,); 0 of nothing."""
        return np.array([float(Fraction(total, max(1, self.n) << UNIT_BITS)) for total in self.totals])

    @property
    def covariance(self) -> FloatArray:
        """Correctly rounded covariances, shape (k, k), divided by ``n - 1``; 0 of fewer than two records.

        Raises
        ------
        InputError
            If one is too large for float64.
        """
        k = len(self.totals)
        matrix = np.zeros((k, k))
        if self.n > 1:
            of_products = iter(self.products)
            for i in range(k):
                for j in range(i, k):
                    about = self.n * next(of_products) - self.totals[i] * self.totals[j]
                    matrix[i, j] = _rounded(Fraction(about, self.n * (self.n - 1) << 2 * UNIT_BITS))
        return np.triu(matrix) + np.triu(matrix, 1).T

    @property
    def correlation(self) -> FloatArray:
        """Correlations, shape (k, k); 0 of an attribute of one value with any other, 1 of each with itself."""
        covariance = self.covariance
        deviations = np.sqrt(np.diag(covariance))
        spread = deviations > 0
        correlation = np.eye(len(deviations))
        both = np.ix_(spread, spread)
        correlation[both] = np.clip(covariance[both] / np.outer(deviations[spread], deviations[spread]), -1.0, 1.0)
        np.fill_diagonal(correlation, 1.0)
        return correlation


def product_total(one: FloatArray, other: FloatArray) -> int:
    """Exact sum of products of finite values, in units of 2^-2148.

    Parameters
    ----------
    one, other : ndarrays of float64, shape (n,)

    Notes
    -----
    A value is ``s 2^(e-53)`` with a whole ``|s| <= 2^53``. With ``s = 2^27 a + b``, ``0 <= b < 2^27``, a product has
    three whole parts below 2^55, each of which is added in two halves below 2^28 by exponent: floats add them exactly.
    """
    total = 0
    for start in range(0, len(one), _CHUNK):
        part = slice(start, start + _CHUNK)
        (s, e), (t, f) = np.frexp(one[part]), np.frexp(other[part])
        left, right = np.ldexp(s, 53).astype(np.int64), np.ldexp(t, 53).astype(np.int64)
        exponent = e.astype(np.int64) + f
        least = int(exponent.min())
        slot = exponent - least
        mask = 2**_HALF - 1
        a, b, c, d = left >> _HALF, left & mask, right >> _HALF, right & mask
        for term, shift in ((a * c, 2 * _HALF), (a * d + b * c, _HALF), (b * d, 0)):
            for half, more in ((term >> _HALF, _HALF), (term & mask, 0)):
                sums = np.bincount(slot, half.astype(np.float64))
                for at in np.flatnonzero(sums).tolist():
                    power = at + least - 2 * 53 + 2 * UNIT_BITS + shift + more
                    total += int(sums[at]) << (power + _SPARE)
    return total >> _SPARE


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        raise InputError("Covariances: values are too large, some covariance is above 1.8e308.") from None
