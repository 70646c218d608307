"""Noise added to numeric attributes (Kim 1986, Tendick and Matloff 1994).

With ``Σ`` the covariance of the attributes and ``c`` a share, correlated noise has mean 0 and covariance ``cΣ``: the
masked attributes have the same means and correlations as the original ones, and covariance ``(1 + c) Σ``. Kim's linear
transformation takes the factor back: ``z = μ + (x + e - μ) / √(1 + c)`` has mean ``μ`` and covariance ``Σ``.

Status: *proved*. What is said of means and covariances holds of the expectation over the noise, given the records: the
moments of one masked file differ from it by sampling error, of order ``1/√n``.
"""

from __future__ import annotations

import math

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray

_TOLERANCE = 1e-9


def additive(values: FloatArray, normals: FloatArray, deviation: float) -> FloatArray:
    """Add independent noise of one standard deviation, ``x + d z``.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        NaN where missing; these stay.
    normals : ndarray of float64, shape (n,)
        Standard normal numbers, one a record.
    deviation : float
        Of the noise, in units of the values; at least 0.

    Returns
    -------
    ndarray of float64, shape (n,)
        Of the same expected mean, and of variance larger by the square of the deviation.

    Raises
    ------
    InputError
        If the shapes differ, or the deviation is negative or not finite.
    """
    if values.ndim != 1 or values.shape != normals.shape:
        raise InputError(f"Noise: there must be one normal number per value. Got {values.shape} and {normals.shape}.")
    if not 0 <= deviation < math.inf:
        raise InputError(f"Noise: the deviation must be finite and at least 0. Got {deviation}.")
    result: FloatArray = values + deviation * normals
    return result


def correlated(
    values: FloatArray,
    normals: FloatArray,
    covariance: FloatArray,
    share: float,
    *,
    keep_moments: bool = False,
    means: FloatArray | None = None,
) -> FloatArray:
    """Add noise that has the correlations of the attributes.

    Parameters
    ----------
    values : ndarray of float64, shape (n, k)
        NaN where missing; these stay, and the other values of the record are masked all the same.
    normals : ndarray of float64, shape (n, k)
        Independent standard normal numbers.
    covariance : ndarray of float64, shape (k, k)
        ``Σ`` of the attributes, as :class:`~privrisk_spark.kernels.numeric.covariance.CrossMoments` gives it: symmetric
        and positive semidefinite up to rounding.
    share : float
        ``c``, at least 0: covariance of the noise by that of the attributes.
    keep_moments : bool
        Whether to rescale about the means (Kim 1986), so that the expected covariance is ``Σ`` and not ``(1 + c) Σ``.
    means : ndarray of float64, shape (k,), optional
        ``μ``, needed to keep the moments.

    Returns
    -------
    ndarray of float64, shape (n, k)
        Kept in expectation: the means and all correlations; with ``keep_moments`` the variances and covariances too.
        Not kept: quantiles, extremes, and what holds between attributes exactly (sums, order, whole numbers).

    Raises
    ------
    InputError
        If the shapes do not fit, the share is negative, the covariance is none, or means are missing.
    """
    if values.ndim != 2 or values.shape != normals.shape or covariance.shape != (values.shape[1],) * 2:
        raise InputError(
            "Correlated noise: there must be one normal number per value and one row of covariances per attribute. "
            f"Got values of shape {values.shape}, normals of {normals.shape}, covariances of {covariance.shape}."
        )
    if not 0 <= share < math.inf:
        raise InputError(f"Correlated noise: the share must be finite and at least 0. Got {share}.")
    k = values.shape[1]
    factor = covariance_factor(covariance) * math.sqrt(share)
    masked = np.empty_like(values, dtype=np.float64)
    for i in range(k):
        noise = np.zeros(len(values))
        for j in range(i + 1):  # term by term: a matrix product rounds by the number of records
            noise += factor[i, j] * normals[:, j]
        masked[:, i] = values[:, i] + noise
    if keep_moments:
        if means is None or means.shape != (k,):
            raise InputError("Correlated noise: to keep the moments, there must be one mean per attribute.")
        masked = means + (masked - means) / math.sqrt(1 + share)
    return masked


def covariance_factor(covariance: FloatArray) -> FloatArray:
    """Lower triangular ``L`` with ``L Lᵀ = Σ`` (Cholesky), for semidefinite ``Σ`` too.

    Parameters
    ----------
    covariance : ndarray of float64, shape (k, k)

    Returns
    -------
    ndarray of float64, shape (k, k)
        Column j is 0 where attribute j is a linear function of those before it.

    Raises
    ------
    InputError
        If the matrix is not finite, not symmetric or not positive semidefinite, by more than rounding.
    """
    k = len(covariance)
    if covariance.shape != (k, k) or not np.isfinite(covariance).all():
        raise InputError("A covariance must be a square matrix of finite numbers.")
    scale = np.sqrt(np.abs(np.diag(covariance)))
    slack = _TOLERANCE * np.outer(scale, scale)
    if (np.abs(covariance - covariance.T) > slack).any() or (np.diag(covariance) < 0).any():
        raise InputError("A covariance must be symmetric, with variances of at least 0.")
    factor = np.zeros((k, k))
    for j in range(k):
        pivot = covariance[j, j] - sum(factor[j, m] ** 2 for m in range(j))
        rest = [covariance[i, j] - sum(factor[i, m] * factor[j, m] for m in range(j)) for i in range(j + 1, k)]
        if pivot > slack[j, j]:
            factor[j, j] = math.sqrt(pivot)
            factor[j + 1 :, j] = np.array(rest) / factor[j, j]
        elif pivot < -slack[j, j] or (np.abs(rest) > np.sqrt(_TOLERANCE) * scale[j] * scale[j + 1 :]).any():
            raise InputError("A covariance must be positive semidefinite.")
    return factor
