"""Data shuffling (Muralidhar and Sarathy 2006): confidential values are dealt anew by what known attributes tell.

Attributes are turned into normal scores by their ranks. Given the scores ``s`` of the known attributes of a record, new
scores of the confidential ones are drawn from the conditional normal law, ``y = B s + L z`` with ``B = R_xs R_ss⁻¹``
and ``L Lᵀ = R_xx - B R_sx``. Then the i-th smallest value of each confidential attribute goes to the record whose new
score is the i-th smallest. ``R`` are product-moment correlations of normal attributes that have the rank correlations
of the file, ``2 sin(π r / 6)``.

Each confidential attribute keeps its values exactly (*proved*). The rank correlations are those of the file as far as
its attributes are joint functions of normal ones (a Gaussian copula), up to sampling error (*tested*). Given the known
attributes, the new scores do not depend on the confidential values of the record: what is published tells no more of
these than the known attributes do, but for the values the file holds at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.perturb.kernels.noise import covariance_factor
from privrisk_spark.kernels.arrays import FloatArray

_NONE = 1e-10


@dataclass(frozen=True, eq=False)
class Dealing:
    """How new scores are drawn.

    Attributes
    ----------
    slopes : ndarray of float64, shape (k, q)
        ``B``.
    factor : ndarray of float64, shape (k, k)
        ``L``, lower triangular.
    """

    slopes: FloatArray
    factor: FloatArray

    @classmethod
    def of(cls, rank_correlation: FloatArray, k: int) -> Dealing:
        """Find it from rank correlations.

        Parameters
        ----------
        rank_correlation : ndarray of float64, shape (k + q, k + q)
            Spearman's, the k confidential attributes first.

        Notes
        -----
        Where ``2 sin(π r / 6)`` is no correlation matrix, negative eigenvalues are set to 0 and the diagonal to 1.
        Known attributes that are functions of others count once (Moore-Penrose).

        Raises
        ------
        InputError
            If the matrix is not square, or has an entry that is no correlation.
        """
        size = len(rank_correlation)
        if rank_correlation.shape != (size, size) or not 1 <= k <= size:
            raise InputError(f"Shuffling: there must be one rank correlation per pair. Got {rank_correlation.shape}.")
        if not (np.abs(rank_correlation) <= 1 + _NONE).all() or not np.allclose(rank_correlation, rank_correlation.T):
            raise InputError("Shuffling: rank correlations must be symmetric and between -1 and 1.")
        normal = _semidefinite(2 * np.sin(math.pi / 6 * rank_correlation))
        deviations = np.sqrt(np.diag(normal))
        normal = normal / np.outer(deviations, deviations)
        slopes = normal[:k, k:] @ np.linalg.pinv(normal[k:, k:], rcond=_NONE, hermitian=True)
        rest = _semidefinite(normal[:k, :k] - slopes @ normal[k:, :k])
        settled = np.diag(rest) < _NONE  # by the known attributes, but for rounding
        rest[settled], rest[:, settled] = 0.0, 0.0
        return cls(slopes, covariance_factor(rest))

    def scores(self, known: FloatArray, normals: FloatArray) -> FloatArray:
        """Draw new scores, each record by itself.

        Parameters
        ----------
        known : ndarray of float64, shape (n, q)
            Normal scores of the known attributes.
        normals : ndarray of float64, shape (n, k)
            Independent standard normal numbers.

        Returns
        -------
        ndarray of float64, shape (n, k)
        """
        drawn = np.zeros(normals.shape)
        for i in range(normals.shape[1]):  # term by term: a matrix product rounds by the number of records
            for j in range(known.shape[1]):
                drawn[:, i] += self.slopes[i, j] * known[:, j]
            for j in range(i + 1):
                drawn[:, i] += self.factor[i, j] * normals[:, j]
        return drawn


def normal_scores(middle_ranks: FloatArray, n: int) -> FloatArray:
    """Normal quantiles of ranks, ``Φ⁻¹((r - 1/2) / n)``.

    Parameters
    ----------
    middle_ranks : ndarray of float64, any shape
        In [1, n]; equal values share the middle of their ranks.

    Returns
    -------
    ndarray of float64
        Of the same shape.
    """
    return np.asarray(scipy.special.ndtri((middle_ranks - 0.5) / n), dtype=np.float64)


def dealt(values: FloatArray, scores: FloatArray) -> FloatArray:
    """Give the i-th smallest value to the i-th smallest score.

    Parameters
    ----------
    values, scores : ndarrays of float64, shape (n,)
        Records with equal scores are ordered as they come.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    result = np.empty_like(values)
    result[np.argsort(scores, kind="stable")] = np.sort(values)
    return result


def shuffled(confidential: FloatArray, known: FloatArray, normals: FloatArray) -> FloatArray:
    """Shuffle confidential attributes.

    Parameters
    ----------
    confidential : ndarray of float64, shape (n, k)
        Finite.
    known : ndarray of float64, shape (n, q)
        Finite; published as they are. q may be 0: then only the rank correlations of the confidential ones are kept.
    normals : ndarray of float64, shape (n, k)
        Independent standard normal numbers.

    Returns
    -------
    ndarray of float64, shape (n, k)
        Column by column the same values in another order.

    Raises
    ------
    InputError
        If the shapes do not fit or a value is not finite.
    """
    if confidential.ndim != 2 or known.ndim != 2 or len(known) != len(confidential) or not confidential.shape[1]:
        raise InputError(
            "Shuffling: there must be a confidential attribute, and as many records of the known ones. "
            f"Got shapes {confidential.shape} and {known.shape}."
        )
    if normals.shape != confidential.shape:
        raise InputError(f"Shuffling: there must be one normal number per confidential value. Got {normals.shape}.")
    both = np.hstack([confidential, known])
    if not np.isfinite(both).all():
        raise InputError("Shuffling: values must be finite, and some are missing or infinite.")
    n, k = confidential.shape
    if n < 2:
        return confidential.copy()
    ranks = scipy.stats.rankdata(both, axis=0)
    dealing = Dealing.of(spearman(ranks), k)
    scores = dealing.scores(normal_scores(ranks[:, k:], n), normals)
    return np.column_stack([dealt(confidential[:, i], scores[:, i]) for i in range(k)])


def spearman(middle_ranks: FloatArray) -> FloatArray:
    """Rank correlations from middle ranks.

    Parameters
    ----------
    middle_ranks : ndarray of float64, shape (n, p)
        Equal values share the middle of their ranks.

    Returns
    -------
    ndarray of float64, shape (p, p)
        0 of an attribute of one value with any other, 1 of each with itself.
    """
    about = middle_ranks - (len(middle_ranks) + 1) / 2
    products = about.T @ about
    deviations = np.sqrt(np.diag(products))
    deviations[deviations == 0] = 1.0
    result: FloatArray = np.clip(products / np.outer(deviations, deviations), -1.0, 1.0)
    np.fill_diagonal(result, 1.0)
    return result


def _semidefinite(matrix: FloatArray) -> FloatArray:
    """Symmetric matrix without its negative eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if not len(values) or values[0] >= 0:
        return (matrix + matrix.T) / 2
    result: FloatArray = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return (result + result.T) / 2
