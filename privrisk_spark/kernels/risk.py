"""Identification risk of a disclosed record (F12 §4.4.2).

With ``ρ`` the number of dictionary rows consistent with the disclosed record, ``Φ`` its sensitivity and ``N`` the
number of dictionary rows:

=======  ===============  ==========================================================================
model    risk             meaning
=======  ===============  ==========================================================================
``I``    Φ / ρ            expected loss against a uniform attacker (LSFB06 eq 1, with Ψ = 0)
``II``   1 / ρ            identification probability alone
``III``  Φ · ln(N / ρ)    sensitivity times the surprisal (nats) of "a random row is consistent"
=======  ===============  ==========================================================================

F12 prints model III as ``Φ log(1/ρ)``, which is zero both for a unique original record and for a fully suppressed one
and negative in between; adding ``Φ log N`` makes it monotone. All three are non-increasing in every level.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

RiskModel = Literal["I", "II", "III"]


def identification_risk(
    model: RiskModel, sensitivity: FloatArray, consistent: npt.NDArray[np.int64], *, dictionary_rows: int
) -> FloatArray:
    """Risk of disclosed records.

    Parameters
    ----------
    model : {"I", "II", "III"}
    sensitivity : ndarray of float64, shape (n,)
        ``Φ >= 0``; infinity means "only if identification is impossible".
    consistent : ndarray of int64, shape (n,)
        ``ρ``, dictionary rows consistent with each record. Where it is 0 the identification probability is 0.
    dictionary_rows : int
        ``N >= max(ρ)``.

    Returns
    -------
    ndarray of float64, shape (n,)
        Non-negative. ``0 · inf`` is 0: nothing to identify costs nothing, however sensitive.
    """
    rho = consistent.astype(np.float64)
    known = rho > 0
    divisor = np.where(known, rho, 1.0)
    if model == "II":
        return np.where(known, 1.0 / divisor, 0.0)
    if model == "I":
        return np.where(known, sensitivity / divisor, 0.0)
    surprisal = np.where(known, np.log(dictionary_rows / divisor), 0.0)
    finite = np.where(np.isfinite(sensitivity), sensitivity, 0.0) * surprisal
    return np.where(np.isposinf(sensitivity) & (surprisal > 0), np.inf, finite)
