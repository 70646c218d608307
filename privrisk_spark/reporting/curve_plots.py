"""Plots of the risk against dictionaries of growing size (Fouad 2012, Figs 3.1 and 3.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.dictionary_curves import DictionaryCurves
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.plots import Panel, Plot, Series

__all__ = ["bound_plot", "dictionary_plot"]


def dictionary_plot(curves: DictionaryCurves) -> Plot:
    """Mean least risk over the size of the dictionary, one line per least utility (Fig. 3.1).

    Parameters
    ----------
    curves : DictionaryCurves
        At least one dictionary and one floor.

    Returns
    -------
    Plot
        The risk axis is logarithmic if all finite risks are positive and span more than a factor of 30. Infinite risks
        are not drawn, and counted in the sentence.
    """
    hidden = int((~np.isfinite(curves.minimal)).sum())
    plural = "values are" if hidden > 1 else "value is"
    return Plot(
        key="dictionary",
        title="Risk over the size of the attacker's dictionary",
        figure="Fig. 3.1",
        found=" ".join(_curve_text(curves, f) for f in range(len(curves.floors)))
        + (f" {hidden} infinite {plural} not drawn." if hidden else ""),
        panels=(
            Panel(
                "",
                "rows of the attacker's dictionary",
                "mean risk of the best decisions (less is better)",
                tuple(
                    Series.of(f"utility at least {short_number(floor)}", curves.dictionary_rows, curves.minimal[:, f])
                    for f, floor in enumerate(curves.floors.tolist())
                ),
                log_y=_wide(curves.minimal[np.isfinite(curves.minimal)].tolist()),
            ),
        ),
    )


def bound_plot(curves: DictionaryCurves) -> Plot:
    """Estimated over true risk of the same decisions, one point per dictionary and floor (Fig. 3.3).

    Parameters
    ----------
    curves : DictionaryCurves
        At least one dictionary and one floor.

    Returns
    -------
    Plot
        With the line on which both are equal: where the bound holds, no point lies below it. Points of one dictionary
        look alike. Both axes are logarithmic or neither is, as in :func:`dictionary_plot`. Points with an infinite risk
        are not drawn, and counted in the sentence.
    """
    true = curves.true
    estimated = np.broadcast_to(curves.estimated, true.shape)
    finite = np.isfinite(true) & np.isfinite(estimated)
    wide = _wide([*true[finite].tolist(), *estimated[finite].tolist()])
    return Plot(
        key="bound",
        title="Estimated risk over true risk",
        figure="Fig. 3.3",
        found=_bound_text(true[finite], estimated[finite], hidden=int((~finite).sum())),
        panels=(
            Panel(
                "",
                "risk against the true dictionary",
                "risk against the estimate",
                tuple(
                    Series.of(f"dictionary of {short_number(rows)} rows", true[s], estimated[s], points=True)
                    for s, rows in enumerate(curves.dictionary_rows.tolist())
                ),
                log_x=wide,
                log_y=wide,
                diagonal="equal",
            ),
        ),
    )


def _wide(values: Sequence[float]) -> bool:
    """Whether a logarithmic axis suits risks."""
    return bool(values) and min(values) > 0 and max(values) > 30 * min(values)


def _curve_text(curves: DictionaryCurves, f: int) -> str:
    first, last = curves.minimal[0, f], curves.minimal[-1, f]
    low, high = curves.dictionary_rows[0], curves.dictionary_rows[-1]
    infeasible = int(curves.infeasible[f])
    out_of_reach = f"; out of reach of {short_number(infeasible)} records, which are suppressed" if infeasible else ""
    return (
        f"With utility at least {short_number(float(curves.floors[f]))}: mean risk {short_number(float(first))} with "
        f"{short_number(int(low))} dictionary rows, {short_number(float(last))} with {short_number(int(high))}"
        f"{out_of_reach}."
    )


def _bound_text(true: npt.NDArray[np.float64], estimated: npt.NDArray[np.float64], *, hidden: int) -> str:
    below = int((true > estimated * (1 + TOLERANCE)).sum())
    ratios = [math.inf if t == 0 else e / t for t, e in zip(true.tolist(), estimated.tolist(), strict=True) if e > t]
    loosest = f" The estimate exceeds the true risk up to {short_number(max(ratios))} times." if ratios else ""
    return (
        f"{len(true)} points, {below or 'none'} below the line on which the estimated equals the true risk.{loosest}"
        + (f" {hidden} with an infinite risk are not drawn." if hidden else "")
    )
