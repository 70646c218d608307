"""Charts of the risk against dictionaries of growing size, as SVG text (F12 Figs 3.1 and 3.3).

Drawn like :mod:`privrisk_spark.reporting.charts`: text stays text, identifiers are prefixed, the same numbers give the
same bytes, and what colour says, a marker says too.
"""

from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.dictionary_curves import DictionaryCurves
from privrisk_spark.reporting.charts import _settings, _svg, short_number

__all__ = ["bound_chart", "dictionary_chart"]

_WIDTH = 7.2
_MARKERS = "osD^vP*X"
# Okabe and Ito, without the yellow, which is too light on paper; markers go round with another period.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")


def dictionary_chart(curves: DictionaryCurves, *, prefix: str = "dictionary") -> str:
    """Draw the mean minimal risk over the size of the dictionary, one line per utility floor (F12 Fig 3.1).

    Parameters
    ----------
    curves : DictionaryCurves
        At least one dictionary and one floor.
    prefix : str, default 'dictionary'
        Prefix of the identifiers.

    Returns
    -------
    str
        An ``<svg>`` element. The risk axis is logarithmic if all finite risks are positive and span more than a factor
        of 30. Infinite risks are not drawn, and counted in the description.
    """
    drawn = np.where(np.isfinite(curves.minimal), curves.minimal, np.nan)
    hidden = int(np.isnan(drawn).sum())
    rows = curves.dictionary_rows
    with _settings():
        figure = Figure(figsize=(_WIDTH, 3.9), layout="constrained")
        axes = figure.subplots()
        for f, floor in enumerate(curves.floors.tolist()):
            axes.plot(
                rows,
                drawn[:, f],
                color=_COLOURS[f % len(_COLOURS)],
                marker=_MARKERS[f % len(_MARKERS)],
                markersize=4,
                linewidth=1.3,
                label=short_number(floor),
            )
        _number_axes(axes, drawn[np.isfinite(drawn)].tolist(), which="y")
        axes.set_xlabel("rows of the attacker's dictionary")
        axes.set_ylabel("mean risk of the best decisions (less is better)")
        figure.legend(title="utility at least", loc="outside right upper", fontsize=8.5, title_fontsize=8.5)
        plural = "values are" if hidden > 1 else "value is"
        return _svg(
            figure,
            prefix,
            title="Risk over the size of the attacker's dictionary",
            description=" ".join(_curve_text(curves, f) for f in range(len(curves.floors)))
            + (f" {hidden} infinite {plural} not drawn." if hidden else ""),
        )


def bound_chart(curves: DictionaryCurves, *, prefix: str = "bound") -> str:
    """Draw the estimated over the true risk of the same decisions, one point per dictionary and floor (F12 Fig 3.3).

    Parameters
    ----------
    curves : DictionaryCurves
        At least one dictionary and one floor.
    prefix : str, default 'bound'
        Prefix of the identifiers.

    Returns
    -------
    str
        An ``<svg>`` element with the line on which both are equal: where the bound holds, no point lies below it.
        Points of one dictionary share a marker and a colour. Both axes are logarithmic or neither is, as in
        :func:`dictionary_chart`. Points with an infinite risk are not drawn, and counted in the description.
    """
    true = curves.true
    estimated = np.broadcast_to(curves.estimated, true.shape)
    finite = np.isfinite(true) & np.isfinite(estimated)
    values = [*true[finite].tolist(), *estimated[finite].tolist()]
    with _settings():
        figure = Figure(figsize=(_WIDTH, 4.6), layout="constrained")
        axes = figure.subplots()
        for s, rows in enumerate(curves.dictionary_rows.tolist()):
            axes.scatter(
                true[s][finite[s]],
                estimated[s][finite[s]],
                s=26,
                color=_COLOURS[s % len(_COLOURS)],
                marker=_MARKERS[s % len(_MARKERS)],
                edgecolor="white",
                linewidth=0.4,
                label=short_number(rows),
                zorder=3,
            )
        _number_axes(axes, values, which="both")
        if values and max(values) > 0:
            low = min(value for value in values if value > 0) / 1.3 if axes.get_xscale() == "log" else 0.0
            high = max(values) * (1.3 if low else 1.05)
            axes.plot([low, high], [low, high], color="#8a8a8a", linewidth=1.0, linestyle="--", label="equal")
            axes.set_xlim(low, high)
            axes.set_ylim(low, high)
        axes.set_xlabel("risk against the true dictionary")
        axes.set_ylabel("risk against the estimate")
        figure.legend(title="dictionary rows", loc="outside right upper", fontsize=8.5, title_fontsize=8.5)
        return _svg(
            figure,
            prefix,
            title="Estimated risk over true risk",
            description=_bound_text(true[finite], estimated[finite], hidden=int((~finite).sum())),
        )


def _number_axes(axes: Axes, values: list[float], *, which: str) -> None:
    """Scale and label the axes that hold risks; the others hold counts."""
    logarithmic = bool(values) and min(values) > 0 and max(values) > 30 * min(values)
    number = FuncFormatter(lambda value, _: short_number(value))
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if logarithmic and which in (name, "both"):
            set_scale = axes.set_xscale if name == "x" else axes.set_yscale
            set_scale("log")
            axis.set_minor_formatter(NullFormatter())
        elif not values and which in (name, "both"):
            axis.set_major_locator(FixedLocator([]))
            axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(number)
    axes.grid(color="#e8e8e8", linewidth=0.6)
    axes.set_axisbelow(True)


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


def _bound_text(true: np.ndarray, estimated: np.ndarray, *, hidden: int) -> str:
    below = int((true > estimated * (1 + TOLERANCE)).sum())
    ratios = [math.inf if t == 0 else e / t for t, e in zip(true.tolist(), estimated.tolist(), strict=True) if e > t]
    loosest = f" The estimate exceeds the true risk up to {short_number(max(ratios))} times." if ratios else ""
    return (
        f"{len(true)} points, {below or 'none'} below the line on which the estimated equals the true risk.{loosest}"
        + (f" {hidden} with an infinite risk are not drawn." if hidden else "")
    )
