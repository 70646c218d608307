"""The exponential draw of a generalization: objective, probabilities, draw per record.

F12 chapter 6 draws a record's generalization x with probability proportional to ``exp(eps' f(x))``, ``f``
the objective of eq 5.4, in the manner of McSherry and Talwar's exponential mechanism. Here the draw is over
the *admitted* cells (released before with differential privacy, or public) above the record, and the score
uses their released noisy counts in place of exact counts:

    f(x) = lambda min(z_x, cap) / max(Phi(x), phi_min) + u(x)^kappa,      Pr[x] ~ exp(tau f(x)).

or, as the threshold model has it, minus the risk ``Phi(x) / min(z_x, cap)`` among those of utility at least
c, and suppression where there are none.

Status: *tested*, and no guarantee rests on it. The privacy of a release comes from the noise of the
admission, from sampling and from the crowd threshold, which allow any random map that depends on the row
and on released data only (``crowd``, Theorem A). tau is a free choice between a uniform draw (0) and the
best generalization (infinity), not an epsilon: the bound of McSherry and Talwar is neither used nor
claimed, as one row's own sensitivity may change its scores without limit. For the same reason float64 is
enough here. What matters is that the functions are *total*: whatever a record's weights are, they yield a
column, never NaN and never an error, since a failure that depends on a record would be an output.

Sums run over columns in order (cumulative sums), so a record's result does not depend on the batch or its
layout.

References
----------
F12 (Fouad's thesis, 2012), eq 5.4 and section 6.3. F. McSherry, K. Talwar, "Mechanism Design via
Differential Privacy", FOCS 2007.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.lattice.lattice import reaches

SCORE_MAX = float(np.finfo(np.float64).max) / 4.0
"""Scores are clipped to plus or minus this, so that differences of scores stay finite."""


def objective(
    counts: LongArray,
    sensitivity: FloatArray,
    utility: FloatArray,
    *,
    lam: float,
    kappa: float,
    phi_min: float,
    count_cap: int,
) -> FloatArray:
    """Score generalizations: few risk and much utility are high (F12 eq 5.4 with risk ``Phi / |rho|``).

    Total in the arrays: sensitivity below ``phi_min`` counts as ``phi_min``; infinite or NaN sensitivity
    makes the first term 0; utility below 0 or NaN counts as 0; scores are clipped to ``+-SCORE_MAX``.

    Parameters
    ----------
    counts : ndarray of int64, shape (n, c)
        Released (noisy) count of each admitted cell above each record; for the root, ``count_cap``. In
        records.
    sensitivity : ndarray of float64, shape (n, c)
        Phi of each generalization under the record's own weights, in [0, inf].
    utility : ndarray of float64, shape (n, c)
        u of each generalization, at least 0.
    lam : float
        Weight of the risk term, at least 0, finite.
    kappa : float
        Exponent of the utility, at least 0, finite. ``0^0 = 1``.
    phi_min : float
        Public floor of the sensitivity, positive and finite. The root discloses nothing, so its Phi is 0.
    count_cap : int
        Largest count that still lowers the risk, at least 1, in records.

    Returns
    -------
    ndarray of float64, shape (n, c)
        Finite.

    Raises
    ------
    InputError
        If a parameter is out of range or the shapes differ; never because of a value in the arrays.
    """
    for name, value in (("lambda", lam), ("kappa", kappa)):
        if not (value >= 0.0 and math.isfinite(value)):
            raise InputError(f"The objective's {name} must be a finite number of at least 0. Got {value!r}.")
    if not (phi_min > 0.0 and math.isfinite(phi_min)):
        raise InputError(f"The objective's phi_min must be a positive finite number. Got {phi_min!r}.")
    if count_cap < 1:
        raise InputError(f"The objective's count_cap must be at least 1 record. Got {count_cap}.")
    if not counts.shape == sensitivity.shape == utility.shape or counts.ndim != 2:
        raise InputError(
            "Counts, sensitivity and utility must have one shape (n, c)."
            f" Got {counts.shape}, {sensitivity.shape} and {utility.shape}."
        )
    # One memory layout, so that vectorised exp and power take the same path for every batch.
    phi = np.array(sensitivity, dtype=np.float64, order="C")
    phi[np.isnan(phi)] = np.inf
    useful = np.fmax(np.ascontiguousarray(utility, dtype=np.float64), 0.0)
    with np.errstate(over="ignore", under="ignore"):
        capped = np.minimum(counts, min(count_cap, np.iinfo(np.int64).max)).astype(np.float64)
        # Clipped one by one: a tiny floor may make an infinity, and 0 * inf and inf - inf would be NaN.
        safety = _clipped(lam * _clipped(capped / np.maximum(phi, phi_min)))
        return _clipped(safety + _clipped(useful**kappa))


def negative_risk(counts: LongArray, sensitivity: FloatArray, *, count_cap: int) -> FloatArray:
    """Score generalizations by minus their risk, ``-Phi(x) / min(z_x, cap)`` (F12 eq 4.2 on released counts).

    Total in the arrays: a count below 1 counts as 1, NaN sensitivity as infinite; scores are clipped to
    ``-SCORE_MAX``.

    Parameters
    ----------
    counts : ndarray of int64, shape (n, c)
        As of :func:`objective`.
    sensitivity : ndarray of float64, shape (n, c)
    count_cap : int
        At least 1, in records.

    Returns
    -------
    ndarray of float64, shape (n, c)
        Finite, at most 0.

    Raises
    ------
    InputError
        If a parameter is out of range or the shapes differ.
    """
    if count_cap < 1:
        raise InputError(f"The objective's count_cap must be at least 1 record. Got {count_cap}.")
    if not counts.shape == sensitivity.shape or counts.ndim != 2:
        raise InputError(
            f"Counts and sensitivity must have one shape (n, c). Got {counts.shape} and {sensitivity.shape}."
        )
    phi = np.array(sensitivity, dtype=np.float64, order="C")
    phi[np.isnan(phi)] = np.inf
    return _clipped(-phi / np.clip(counts, 1, min(count_cap, np.iinfo(np.int64).max)))


def reaching(utility: FloatArray, admitted: BoolArray, floor: float) -> BoolArray:
    """Admitted generalizations whose utility reaches a floor; where none does, the root alone.

    Parameters
    ----------
    utility : ndarray of float64, shape (n, c)
        NaN reaches no floor.
    admitted : ndarray of bool, shape (n, c)
        The last column is the root.
    floor : float
        Within :data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE`.

    Returns
    -------
    ndarray of bool, shape (n, c)
        At least one per row.
    """
    reached: BoolArray = admitted & reaches(utility, floor)
    reached[:, -1] |= ~reached.any(axis=1)
    return reached


def probabilities(scores: FloatArray, admitted: BoolArray, tau: float) -> FloatArray:
    """Return the probability of each column: proportional to ``exp(tau score)`` over the admitted ones.

    Parameters
    ----------
    scores : ndarray of float64, shape (n, c)
        Finite where admitted; elsewhere never read.
    admitted : ndarray of bool, shape (n, c)
        At least one per row (the root always is).
    tau : float
        In [0, inf]. 0 draws uniformly; inf takes the highest score, ties to the lowest column.

    Returns
    -------
    ndarray of float64, shape (n, c)
        Rows sum to 1 but for rounding; exactly 0 where not admitted.

    Raises
    ------
    InputError
        If tau is out of range, the shapes differ, a row has no admitted column, or an admitted score is not
        finite.
    """
    if not tau >= 0.0:
        raise InputError(f"tau must be at least 0, or infinite. Got {tau!r}.")
    if scores.ndim != 2 or scores.shape != admitted.shape:
        raise InputError(f"Scores and admitted must have one shape (n, c). Got {scores.shape} and {admitted.shape}.")
    if not admitted.any(axis=1).all():
        raise InputError("Some row has no admitted generalization; the root must be admitted for every record.")
    shown = np.where(admitted, np.ascontiguousarray(scores, dtype=np.float64), -np.inf)
    if not np.isfinite(shown[admitted]).all():
        raise InputError("A score of an admitted generalization is not finite.")
    if math.isinf(tau):
        weights = np.zeros(shown.shape, dtype=np.float64)
        weights[np.arange(len(shown)), shown.argmax(axis=1)] = 1.0
        return weights
    with np.errstate(over="ignore", under="ignore"):
        gap = np.maximum(shown - shown.max(axis=1, keepdims=True), -np.finfo(np.float64).max)
        weights = np.where(admitted, np.exp(tau * gap), 0.0)
        result: FloatArray = weights / np.cumsum(weights, axis=1)[:, -1:]
    return result


def draw(
    probabilities: FloatArray,
    uniforms: FloatArray,
    rows: NDArray[np.integer] | None = None,
) -> IntArray:
    """Draw one column per record by inverting the cumulative distribution.

    The column is the first whose cumulative sum exceeds ``u`` times the row's total. It has positive
    probability always: where rounding lets no sum exceed it (u next to 1), the first column that reaches
    the total is taken.

    Parameters
    ----------
    probabilities : ndarray of float64, shape (m, c)
        Not negative, a positive sum per row; need not be normalised.
    uniforms : ndarray of float64, shape (n,)
        In [0, 1].
    rows : ndarray of int, shape (n,), optional
        Row of ``probabilities`` for each record, so that equal records share one row. By default record i
        has row i.

    Returns
    -------
    ndarray of int32, shape (n,)
        Column drawn for each record; never one of probability 0.

    Raises
    ------
    InputError
        If the shapes do not fit, a uniform is outside [0, 1], a row is negative, not finite or sums to 0.
    """
    if probabilities.ndim != 2 or uniforms.ndim != 1:
        raise InputError(
            f"Probabilities must be (m, c) and uniforms (n,). Got {probabilities.shape} and {uniforms.shape}."
        )
    if rows is None:
        rows = np.arange(len(probabilities), dtype=np.intp)
    if rows.shape != uniforms.shape:
        raise InputError(f"There must be one row of probabilities per uniform. Got {rows.shape} and {uniforms.shape}.")
    if not uniforms.size:
        return np.zeros(0, dtype=np.int32)
    if rows.min() < 0 or rows.max() >= len(probabilities):
        raise InputError(f"Rows must be in [0, {len(probabilities)}).")
    if not ((uniforms >= 0.0) & (uniforms <= 1.0)).all():
        raise InputError("Uniforms must be in [0, 1].")
    if not ((probabilities >= 0.0) & np.isfinite(probabilities)).all():
        raise InputError("Probabilities must be finite and not negative.")
    sums = np.cumsum(probabilities, axis=1, dtype=np.float64)
    if not (sums[:, -1] > 0.0).all():
        raise InputError("Some row of probabilities sums to 0.")
    last = (sums < sums[:, -1:]).sum(axis=1)
    target = uniforms * sums[rows, -1]
    # Bisection over columns for all records at once: no (n, c) copy when many records share a row.
    low = np.zeros(uniforms.size, dtype=np.intp)
    high = last[rows].astype(np.intp)
    while (low < high).any():
        middle = (low + high) // 2
        beyond = sums[rows, middle] > target
        high = np.where(beyond, middle, high)
        low = np.where(beyond, low, np.minimum(middle + 1, high))
    return low.astype(np.int32)


def _clipped(values: FloatArray) -> FloatArray:
    return np.clip(values, -SCORE_MAX, SCORE_MAX)
