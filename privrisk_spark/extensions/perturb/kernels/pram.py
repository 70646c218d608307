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
    c = len(matrix)
    if matrix.shape != (c, c) or not c or not np.isfinite(matrix).all() or (matrix < 0).any():
        raise InputError(
            "PRAM: a transition matrix must be square, of finite numbers of at least 0, with one row per category. "
            f"Got shape {matrix.shape}."
        )
    sums = matrix.sum(axis=1)
    wrong = np.flatnonzero(np.abs(sums - 1) > _TOLERANCE)
    if len(wrong):
        raise InputError(f"PRAM: each row of a transition matrix must sum to 1. Row {int(wrong[0])} does not.")
    result: FloatArray = matrix / sums[:, None]
    return result


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
    p = transition_checked(matrix)
    shares = _shares(marginal, len(p))
    published = shares @ p
    seen = published > 0
    reversed_ = np.eye(len(p))
    reversed_[seen] = (shares[:, None] * p).T[seen] / published[seen, None]
    return transition_checked(p @ reversed_)


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
    p = transition_checked(matrix)
    if codes.ndim != 1 or codes.shape != uniforms.shape:
        raise InputError(f"PRAM: there must be one uniform number per record. Got {codes.shape} and {uniforms.shape}.")
    if len(codes) and not -1 <= int(codes.min()) <= int(codes.max()) < len(p):
        raise InputError(f"PRAM: categories must be in [0, {len(p)}), or -1 where missing, and some are not.")
    bounds = np.cumsum(p, axis=1)
    # Sums round: the last category that can be published takes what is missing to 1.
    last = len(p) - 1 - np.argmax(p[:, ::-1] > 0, axis=1)
    bounds[np.arange(len(p)) >= last[:, None]] = math.inf
    masked = codes.copy()
    for code in range(len(p)):
        of = np.flatnonzero(codes == code)
        masked[of] = np.searchsorted(bounds[code], uniforms[of], side="right")
    return masked


def _shares(marginal: FloatArray, c: int) -> FloatArray:
    if marginal.shape != (c,) or not np.isfinite(marginal).all() or (marginal < 0).any() or not marginal.sum() > 0:
        raise InputError(
            f"PRAM: a marginal must have one count of at least 0 per category, {c}, not all 0. "
            f"Got shape {marginal.shape}."
        )
    result: FloatArray = marginal / marginal.sum()
    return result
