"""Exponential sampling of F12 chapter 6 as it was published: Algorithm 6. For comparison only.

Status: **no guarantee**. Theorem 6.4.1 claims (epsilon, delta + O(h^k / |D|^2))-differential privacy for Algorithm 6;
its true delta is of order h^k / |D| in the worst case, and the proof is wrong at the constants it states
(:mod:`reproduce.privacy.counterexamples` computes both). A release uses
:mod:`privrisk_spark.kernels.dp.crowd` instead. What is here is *tested* to draw from the laws that are printed, with
these readings where the print leaves one:

* beta is the probability that a row is *not* sampled. ``beta = e^-epsilon``, which is allowed, makes epsilon' zero, so
  it must be above; "beta set to 1" (section 6.6) divides by zero and is refused.
* ``eta(k) = 2 (lambda / phi(k) + 1)`` is read with the lower bound phi_l, as in Lemma 6.4.2, which must be positive:
  with suppressed values of sensitivity 0 the theorem has no instance. For the threshold version ``eta(k) = phi_u``, as
  in the algorithm's text; Lemma 6.4.2 derives another one. Both bounds are constants here, not extremes over the data.
* Eq 6.2 normalizes over all of a^+, step 6 draws from a^+ within L_t: either the draw is renormalized over the frequent
  elements (reading ``renormalized``), or the mass of the others is lost (``lost``: such a record has no output).
* The size condition of the proof is ``t >= beta h^k e^(epsilon' t_f) / ((1 - tau_1) (1 - beta))`` (from the printed t'
  and Claim 6.4.2), with ``h^k exp(-tau_1^2 beta t / 2) <= delta / 2`` (Claim 6.4.3); the algorithm itself never
  checks it. ``h^k`` is the number of generalizations of a record.

Algorithm 7, which replaces the draw by a walk, is at :mod:`privrisk_spark.kernels.as_published.algorithm7`.

References
----------
F12 (Fouad's thesis, 2012), sections 6.3 and 6.4. F. McSherry, K. Talwar, FOCS 2007.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.dp.exponential import draw

Reading = Literal["renormalized", "lost"]

NOTHING = -1
"""Stands for a record without an output."""


def eta_of_aggregate(lam: float, phi_l: float) -> float:
    """Return ``eta(k) = 2 (lambda / phi_l + 1)`` of the aggregate objective.

    Raises
    ------
    InputError
        If lambda is negative or phi_l not positive.
    """
    if not (lam >= 0.0 and phi_l > 0.0):
        raise InputError(f"eta needs lambda of at least 0 and a positive phi_l. Got {lam!r} and {phi_l!r}.")
    return 2.0 * (lam / phi_l + 1.0)


def drawing_epsilon(epsilon: float, beta: float, eta: float) -> float:
    """Return epsilon' of Algorithm 6, step 1: ``(epsilon + ln beta) / (3 eta (1 - beta))``.

    Parameters
    ----------
    epsilon : float
        Claimed epsilon, positive.
    beta : float
        Probability that a row is not sampled, in (e^-epsilon, 1).
    eta : float
        eta(k), positive: :func:`eta_of_aggregate`, or phi_u for the threshold version.

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    if not (epsilon > 0.0 and eta > 0.0):
        raise InputError(f"epsilon and eta must be positive. Got {epsilon!r} and {eta!r}.")
    if not math.exp(-epsilon) < beta < 1.0:
        raise InputError(f"beta must be above e^-epsilon = {math.exp(-epsilon):.6g} and below 1. Got {beta!r}.")
    return (epsilon + math.log(beta)) / (3.0 * eta * (1.0 - beta))


def least_size(beta: float, epsilon_drawing: float, *, generalizations: int, t_f: float, delta: float = 1.0) -> int:
    """Return the smallest t that the proof of Theorem 6.4.1 admits.

    Parameters
    ----------
    beta : float
        In (0, 1).
    epsilon_drawing : float
        epsilon' of :func:`drawing_epsilon`.
    generalizations : int
        ``h^k``, generalizations of a record.
    t_f : float
        Bound of ``f_max / |D|``: ``lambda / phi_l + 1``.
    delta : float
        Of the theorem; 1 leaves the condition on the expectation alone (tau_1 = 0).

    Returns
    -------
    int
        The least t for which some tau_1 in [0, 1) satisfies both conditions of the module docstring.
    """
    size = beta * generalizations * math.exp(epsilon_drawing * t_f) / (1.0 - beta)
    if delta >= 1.0:
        return math.ceil(size)

    def enough(t: int) -> bool:
        slack = 1.0 - size / t
        return slack > 0.0 and generalizations * math.exp(-(slack**2) * beta * t / 2.0) <= delta / 2.0

    low, high = 0, max(1, math.ceil(size))
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def random_threshold(uniforms: FloatArray, *, theta0: float, rows: int) -> FloatArray:
    """Return ``t = theta |D|`` with theta uniform in (theta0, 1) (step 2), one for each uniform number.

    Raises
    ------
    InputError
        If theta0 is not in (0, 1).
    """
    if not 0.0 < theta0 < 1.0:
        raise InputError(f"theta0 must be between 0 and 1, both excluded. Got {theta0!r}.")
    result: FloatArray = (theta0 + (1.0 - theta0) * uniforms) * rows
    return result


def element_law(
    scores: FloatArray,
    above: BoolArray,
    frequent: BoolArray,
    *,
    epsilon_drawing: float,
    rows: int,
    reading: Reading = "renormalized",
) -> FloatArray:
    """Return the law of step 6: ``q(x)`` proportional to ``exp(epsilon' score(x) / |D|)`` (eq 6.2).

    Parameters
    ----------
    scores : ndarray of float64, shape (n, c)
        ``f^a`` of each element for each record; ``-r^a`` in the threshold version.
    above : ndarray of bool, shape (n, c)
        Elements of a^+.
    frequent : ndarray of bool, shape (n, c)
        Elements of L_t, in the threshold version those of utility at least c; read within ``above`` only.
    epsilon_drawing : float
        epsilon'.
    rows : int
        ``|D|``.
    reading : {"renormalized", "lost"}
        What becomes of the mass of elements that are not frequent.

    Returns
    -------
    ndarray of float64, shape (n, c)
        Rows sum to 1, or to less under ``lost``; to 0 where no element may be drawn.
    """
    with np.errstate(invalid="ignore"):
        exponent = np.where(above, epsilon_drawing * scores / rows, -np.inf)
    drawn = above & frequent
    shown = exponent if reading == "lost" else np.where(drawn, exponent, -np.inf)
    highest = np.max(shown, axis=1, keepdims=True, initial=-np.inf)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    weights = np.exp(shown - highest)
    total = np.cumsum(weights, axis=1)[:, -1:] if weights.shape[1] else np.zeros((len(weights), 1))
    result: FloatArray = np.where(drawn, weights, 0.0) / np.where(total > 0.0, total, 1.0)
    return result


def algorithm_6(
    law: FloatArray, sampled: FloatArray, drawn: FloatArray, *, beta: float, members: LongArray | None = None
) -> IntArray:
    """Sample the rows and draw an element for each (steps 4 to 8).

    Parameters
    ----------
    law : ndarray of float64, shape (m, c)
        As :func:`element_law` returns it.
    sampled, drawn : ndarrays of float64, shape (n,)
        Uniform numbers in (0, 1), independent: a row is sampled where the first is below ``1 - beta``; the second
        inverts the law's cumulative distribution.
    members : ndarray of int64, shape (n,), optional
        Row of ``law`` of each row of the table, so that equal records share one.

    Returns
    -------
    ndarray of int32, shape (n,)
        Column of each row's output, :data:`NOTHING` where it has none. The copy of the root that is always in the
        output is not counted.
    """
    n, c = law.shape
    of_row = np.arange(n, dtype=np.int64) if members is None else members
    # What is missing of the mass is an element of its own, which stands for no output.
    missing = np.maximum(1.0 - law.sum(axis=1), 0.0)
    missing[missing < 1e-12] = 0.0
    chosen = draw(np.column_stack([law, missing]), drawn, of_row)
    result: IntArray = np.where((sampled < 1.0 - beta) & (chosen < c), chosen, NOTHING).astype(np.int32)
    return result
