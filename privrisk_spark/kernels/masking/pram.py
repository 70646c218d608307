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
    p = transition_checked(matrix)
    if observed.shape != (len(p),):
        raise InputError(f"PRAM: there must be one count per category, {len(p)}. Got shape {observed.shape}.")
    if np.linalg.matrix_rank(p) < len(p):
        raise InputError("PRAM: the transition matrix has no inverse, so counts cannot be estimated back.")
    return np.asarray(np.linalg.solve(p.T, observed), dtype=np.float64)


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
    p = transition_checked(matrix)
    shares = _shares(np.ones(len(p)) if marginal is None else marginal, len(p))
    joint = shares[:, None] * p
    own = np.diag(joint).copy()
    np.fill_diagonal(joint, 0.0)
    others = joint.sum(axis=0)  # not the sum of all less the own, which would round to more than 0
    odds = np.full(len(p), math.nan)
    odds[own > 0] = math.inf
    odds[others > 0] = own[others > 0] / others[others > 0]
    return odds


def _shares(marginal: FloatArray, c: int) -> FloatArray:
    if marginal.shape != (c,) or not np.isfinite(marginal).all() or (marginal < 0).any() or not marginal.sum() > 0:
        raise InputError(
            f"PRAM: a marginal must have one count of at least 0 per category, {c}, not all 0. "
            f"Got shape {marginal.shape}."
        )
    result: FloatArray = marginal / marginal.sum()
    return result
