"""Optima of access control (F12 §7.4) by HiGHS, to compare the relaxations with."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import scipy

from privrisk_spark.errors import InternalError
from privrisk_spark.extensions.network.kernels.access import Access, Entries, sum_of, unreachable
from privrisk_spark.kernels.arrays import FloatArray, LevelArray


def exact_most_utility(entries: Entries, most_loss: float) -> Access:
    """Maximize U subject to ``L <= c`` by branch and cut (HiGHS); for small instances.

    HiGHS allows a relative 1e-6 by which the limit may be passed; an exact sum refuses a solution that passes it.

    Parameters
    ----------
    most_loss : float
        ``c``.

    Raises
    ------
    InternalError
        If HiGHS finds nothing that keeps the limit.
    """
    levels = _integers(-entries.utility, entries, entries.loss, (-np.inf, most_loss))
    return _exact(entries, levels, sum_of(entries.loss, levels) <= Fraction(most_loss), utility=True)


def exact_least_loss(entries: Entries, least_utility: float) -> Access:
    """Minimize L subject to ``U >= c`` by branch and cut (HiGHS); for small instances, as the one above.

    Parameters
    ----------
    least_utility : float
        ``c``.

    Raises
    ------
    InputError
        If showing everything has less utility.
    InternalError
        If HiGHS finds nothing that keeps the limit.
    """
    if sum_of(entries.utility, entries.tops) < Fraction(least_utility):
        raise unreachable(least_utility)
    levels = _integers(entries.loss, entries, entries.utility, (least_utility, np.inf))
    return _exact(entries, levels, sum_of(entries.utility, levels) >= Fraction(least_utility), utility=False)


def _integers(cost: FloatArray, entries: Entries, row: FloatArray, limits: tuple[float, float]) -> LevelArray:
    if not len(cost):
        return np.zeros(0, dtype=np.int8)
    found = scipy.optimize.milp(
        cost,
        integrality=np.ones(len(cost), dtype=np.int64),
        bounds=scipy.optimize.Bounds(0, entries.tops),
        constraints=scipy.optimize.LinearConstraint(row[None, :], *limits),
        options={"mip_rel_gap": 0.0},
    )
    if found.x is None:
        raise InternalError(f"HiGHS found nothing: {found.message}")
    return np.rint(found.x).astype(np.int8)


def _exact(entries: Entries, levels: LevelArray, admissible: bool, *, utility: bool) -> Access:
    if not admissible:
        raise InternalError("HiGHS passed the limit")
    loss, worth = float(sum_of(entries.loss, levels)), float(sum_of(entries.utility, levels))
    return Access(levels, loss, worth, worth if utility else loss, 0.0)
