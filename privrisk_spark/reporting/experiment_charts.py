"""Charts of the experiments as SVG text, drawn like :mod:`privrisk_spark.reporting.charts`."""

from __future__ import annotations

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from privrisk_spark.reporting.charts import _settings, _svg, short_number
from privrisk_spark.results.plots import Panel, Plot

_WIDTH = 7.2
_MARKERS = "osD^vP*X"
# Okabe and Ito, without the yellow, which is too light on paper; markers go round with another period.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")


def draw(plot: Plot, *, prefix: str) -> str:
    """Draw a plot, its panels side by side with one legend.

    Parameters
    ----------
    plot : Plot
        Series of the same name look the same in every panel.
    prefix : str
        Prefix of the identifiers.

    Returns
    -------
    str
        An ``<svg>`` element with the plot's title and what was found as its description.
    """
    names = list(dict.fromkeys(series.name for panel in plot.panels for series in panel.series))
    style = {name: (_COLOURS[i % len(_COLOURS)], _MARKERS[i % len(_MARKERS)]) for i, name in enumerate(names)}
    columns = 3 if max(map(len, names), default=0) < 34 else 2
    legend_rows = -(-len(names) // columns) if len(names) > 1 else 0
    with _settings():
        figure = Figure(figsize=(_WIDTH, 3.0 + 0.22 * legend_rows), layout="constrained")
        all_axes = figure.subplots(1, len(plot.panels), squeeze=False)[0]
        handles = {}
        for axes, panel in zip(all_axes, plot.panels, strict=True):
            many = max((len(series.x) for series in panel.series), default=0) > 30
            for series in panel.series:
                colour, marker = style[series.name]
                points = [
                    (x, y)
                    for x, y in zip(series.x, series.y, strict=True)
                    if _drawn(x, logarithmic=panel.log_x) and _drawn(y, logarithmic=panel.log_y)
                ]
                (handles[series.name],) = axes.plot(
                    [x for x, _ in points],
                    [y for _, y in points],
                    color=colour,
                    marker="" if many and not series.points else marker,
                    markersize=5 if series.points else 3.8,
                    markerfacecolor="none" if series.points else colour,
                    linestyle="none" if series.points else "-",
                    linewidth=1.3,
                )
                for x, y, label in zip(series.x, series.y, series.labels or ("",) * len(series.x), strict=True):
                    if label and (x, y) in points:
                        # Away from the other points, which lie between the first and the last.
                        above = y >= max(series.y)
                        place = (-6, 6) if above else (5, -9)
                        axes.annotate(label, (x, y), place, textcoords="offset points", fontsize=8, color=colour)
            _scale(axes, panel, ticks={1: 6, 2: 5}.get(len(plot.panels), 4))
        if len(names) > 1:
            figure.legend(
                [handles[name] for name in names],
                names,
                loc="outside upper left",
                ncols=columns,
                fontsize=8.5,
                columnspacing=1.4,
            )
        return _svg(figure, prefix, title=f"{plot.title}: {plot.data}", description=plot.found)


def _drawn(value: float, *, logarithmic: bool) -> bool:
    return math.isfinite(value) and (value > 0 or not logarithmic)


def _scale(axes: Axes, panel: Panel, *, ticks: int) -> None:
    number = FuncFormatter(lambda value, _: short_number(value))
    for name, axis, logarithmic in (("x", axes.xaxis, panel.log_x), ("y", axes.yaxis, panel.log_y)):
        values = [
            value
            for series in panel.series
            for value, other in (
                zip(series.x, series.y, strict=True) if name == "x" else zip(series.y, series.x, strict=True)
            )
            if _drawn(value, logarithmic=logarithmic)
            and _drawn(other, logarithmic=panel.log_y if name == "x" else panel.log_x)
        ]
        if not values:
            axis.set_major_locator(FixedLocator([]))
            axis.set_minor_locator(NullLocator())
            continue
        if logarithmic:
            (axes.set_xscale if name == "x" else axes.set_yscale)("log")
            low, high = min(values), max(values)
            # A whole decade at least, or there would be no labelled tick.
            if high < 10 * low:
                middle = math.sqrt(low * high)
                (axes.set_xlim if name == "x" else axes.set_ylim)(middle / 4, middle * 4)
            axis.set_major_locator(LogLocator(base=10, numticks=ticks))
            axis.set_minor_formatter(NullFormatter())
        elif name == "y" and min(values) >= 0:
            axes.set_ylim(bottom=0, top=max(values) * 1.06 or 1.0)
        axis.set_major_formatter(number)
    axes.grid(color="#e8e8e8", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(panel.title, loc="left", fontsize=9.5, fontweight="bold")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
