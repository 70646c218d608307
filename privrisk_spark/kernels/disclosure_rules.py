"""Rules that disclose a fixed number of cells, by suppression alone, and the choice among listed rules.

LSFB06 §3 considers rules that disclose k cells in all (Δ1), k of every record (Δ2) or k of every attribute (Δ3). Under
a dictionary of product form, ``ρ(y) = N Π_j ρ_j(y_j) / N``, and the multiplicative sensitivity ``Φ = exp Σ w``, the
loss of a record is a constant times the product over its disclosed cells of the *exposure*

``γ_ij = exp(w_ij) · N / ρ_j(x_ij)  >= 1``  (LSFB06 Algorithm 1, step 3, with α_j(⊥)/α_j(x) = N/ρ_j).

So disclosing the cells of least exposure is optimal for Δ2, record by record (LSFB06 Theorem 2). The same order over
the whole table, or within each attribute, minimizes the *product* of the records' losses, that is their mean logarithm,
over Δ1 and Δ3. For the mean of the losses it is a heuristic there.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.lattice import TOLERANCE, reaches

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Scope = Literal["table", "record", "attribute"]
"""Δ1, Δ2, Δ3 of LSFB06."""


def log_exposure(weights: FloatArray, consistent: LongArray, dictionary_rows: int) -> FloatArray:
    """``ln γ`` of every cell.

    Parameters
    ----------
    weights : ndarray of float64, shape (n, k)
        ``w_ij``, non-negative.
    consistent : ndarray of int64, shape (n, k)
        ``ρ_j(x_ij)``, dictionary rows consistent with the cell alone. A cell with none counts as one row: the record's.
    dictionary_rows : int
        ``N``, positive.

    Returns
    -------
    ndarray of float64, shape (n, k)
    """
    rarity: FloatArray = np.log(max(dictionary_rows, 1)) - np.log(np.maximum(consistent, 1))
    return weights + rarity


def least_exposed(exposure: FloatArray, disclosed: int, scope: Scope = "record") -> BoolArray:
    """Cells to disclose: those of least exposure (LSFB06 ``MinRisk`` for ``record``).

    Parameters
    ----------
    exposure : ndarray of float64, shape (n, k)
        γ or any increasing function of it.
    disclosed : int
        Cells to disclose in the table, per record, or per attribute; at least 0, and no more than there are.
    scope : {"table", "record", "attribute"}

    Returns
    -------
    ndarray of bool, shape (n, k)
        Equal exposures: the first attribute, then the first record, goes first.

    Raises
    ------
    InputError
        If more cells are asked for than there are.
    """
    n, k = exposure.shape
    cells = {"table": n * k, "record": k, "attribute": n}[scope]
    if not 0 <= disclosed <= cells:
        raise InputError(f"disclosed: a {scope} has {cells} cells to disclose. Got {disclosed}.")
    result = np.zeros((n, k), dtype=np.bool_)
    match scope:
        case "record":
            chosen = np.argsort(exposure, axis=1, kind="stable")[:, :disclosed]
            np.put_along_axis(result, chosen, True, axis=1)
        case "attribute":
            chosen = np.argsort(exposure, axis=0, kind="stable")[:disclosed]
            np.put_along_axis(result, chosen, True, axis=0)
        case "table":
            by_attribute = np.argsort(exposure.T.ravel(), kind="stable")[:disclosed]
            result.T.flat[by_attribute] = True
    return result


def choose_rule(risks: FloatArray, utilities: FloatArray, floor: float) -> int | None:
    """Listed rule of least risk among those of utility at least ``floor`` (F12 Algorithm 1).

    Parameters
    ----------
    risks, utilities : ndarray of float64, shape (n,)
        ``R(δ_j, θ)`` and ``U(δ_j)`` of each rule.
    floor : float

    Returns
    -------
    int or None
        Ties within :data:`privrisk_spark.kernels.lattice.TOLERANCE`: higher utility, then the first of the list (F12
        prints ``<=``, which takes the last). None if no rule reaches the floor.
    """
    feasible = np.flatnonzero(reaches(utilities, floor))
    if not len(feasible):
        return None
    tied = feasible[risks[feasible] <= risks[feasible].min() * (1 + TOLERANCE)]
    most = float(utilities[tied].max())
    return int(tied[utilities[tied] >= most - TOLERANCE * max(1.0, abs(most))][0])
