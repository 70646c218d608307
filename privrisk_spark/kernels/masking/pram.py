"""The post-randomization method: categories are changed by a known transition matrix (Gouweleeuw et al. 1998).

``P[i, j]`` is the probability that category ``i`` is published as ``j``; each record is changed by itself. The expected
published marginal is ``πP``. PRAM is invariant if ``πP = π``: then a table of counts is unbiased as it is. Two-stage
invariant PRAM makes any ``P`` so: ``R = P Q``, ``Q`` the reversed chain by Bayes, ``Q[j, i] = π_i P[i, j] / (πP)_j``.

Status: *proved*: ``(πR)_i = Σ_j (πP)_j Q[j, i] = Σ_j π_i P[i, j] = π_i``.
"""

from __future__ import annotations

import math

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray

_TOLERANCE = 1e-9


def transition_checked(matrix: FloatArray) -> FloatArray:
    """Check a transition matrix and make its rows sum to 1.

    Parameters
    ----------
    matrix : ndarray of float64, shape (c, c)
        Row ``i`` is the law of what category ``i`` is published as.

    Returns
    -------
    ndarray of float64, shape (c, c)
        Every row divided by its sum.

    Raises
    ------
    InputError
        If it is not square, an entry is negative or not finite, or a row does not sum to 1 within 1e-9.
    """
    raise NotImplementedError


def invariant(matrix: FloatArray, marginal: FloatArray) -> FloatArray:
    """Return the matrix of two-stage invariant PRAM (Gouweleeuw et al. 1998).

    Parameters
    ----------
    matrix : ndarray of float64, shape (c, c)
        ``P``, as :func:`transition_checked` takes it.
    marginal : ndarray of float64, shape (c,)
        Counts or shares ``π`` of the categories, at least 0, not all 0.

    Returns
    -------
    ndarray of float64, shape (c, c)
        ``R = P Q`` with ``πR = π`` up to rounding. A category that cannot be published is reversed to itself, which
        no record sees.

    Raises
    ------
    InputError
        As :func:`transition_checked`, and if the marginal does not fit.
    """
    raise NotImplementedError


def perturbed(codes: IntArray, matrix: FloatArray, uniforms: FloatArray) -> IntArray:
    """Draw what each record is published as, by inversion of the cumulative row of its category.

    Parameters
    ----------
    codes : ndarray of int32, shape (n,)
        Categories, in [0, c); -1 where missing, which stays.
    matrix : ndarray of float64, shape (c, c)
    uniforms : ndarray of float64, shape (n,)
        In (0, 1), one a record.

    Returns
    -------
    ndarray of int32, shape (n,)
        ``j`` where ``Σ_{m<j} P[i, m] <= u < Σ_{m<=j} P[i, m]``; never a category of probability 0.

    Raises
    ------
    InputError
        If the shapes do not fit or a code has no row.
    """
    raise NotImplementedError


def unbiased_marginal(observed: FloatArray, matrix: FloatArray) -> FloatArray:
    """Estimate the counts of the categories from published ones, ``t P⁻¹``.

    Parameters
    ----------
    observed : ndarray of float64, shape (c,)
        Published counts or shares.
    matrix : ndarray of float64, shape (c, c)

    Returns
    -------
    ndarray of float64, shape (c,)
        Unbiased, of the same sum; single numbers may be negative.

    Raises
    ------
    InputError
        If the shapes do not fit or the matrix has no inverse.
    """
    raise NotImplementedError


def plausible(matrix: FloatArray, marginal: FloatArray | None = None) -> FloatArray:
    """Posterior odds that a published category is the true one (Gouweleeuw et al. 1998).

    Parameters
    ----------
    matrix : ndarray of float64, shape (c, c)
    marginal : ndarray of float64, shape (c,), optional
        Counts or shares ``π`` of the true categories; all alike if not given.

    Returns
    -------
    ndarray of float64, shape (c,)
        ``π_j P[j, j] / Σ_{i≠j} π_i P[i, j]``: above 1 the intruder does better to believe it. inf where nothing else
        is published so; NaN where nothing is.

    Raises
    ------
    InputError
        As :func:`invariant`.
    """
    raise NotImplementedError
