"""Exact means and covariances of numeric attributes, in any order of the records and in any parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privrisk_spark.kernels.arrays import FloatArray


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
        raise NotImplementedError

    @classmethod
    def empty(cls, attributes: int) -> CrossMoments:
        """Moments of no record of so many attributes."""
        raise NotImplementedError

    def plus(self, other: CrossMoments) -> CrossMoments:
        """Moments of both together."""
        raise NotImplementedError

    @property
    def means(self) -> FloatArray:
        """Correctly rounded means, shape (k,); 0 of nothing."""
        raise NotImplementedError

    @property
    def covariance(self) -> FloatArray:
        """Correctly rounded covariances, shape (k, k), divided by ``n - 1``; 0 of fewer than two records."""
        raise NotImplementedError

    @property
    def correlation(self) -> FloatArray:
        """Correlations, shape (k, k); 0 of an attribute of one value with any other, 1 of each with itself."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; integers of any size."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> CrossMoments:
        """Inverse of :meth:`to_dict`."""
        raise NotImplementedError
