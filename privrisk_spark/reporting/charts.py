"""What all charts share, and the drawing of a plot: panels of series become SVG text to be put into an HTML page.

Text stays text (it is selectable, and takes the reader's fonts), identifiers are prefixed so that several charts fit in
one page, and nothing depends on the clock, the environment or the user's matplotlib settings: the same numbers give the
same bytes. Colours are from Okabe and Ito (*Color Universal Design*, 2008); what colour says, a marker says too.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.plots import Panel, Plot

__all__ = ["WIDTH", "as_svg", "chart_settings", "draw"]

WIDTH = 7.2
"""Of every chart, in inches of 72 points; a page scales it."""

_MARKERS = "osD^vP*X"
# Okabe and Ito, without the yellow, which is too light on paper; markers go round with another period.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_INK = "#222222"
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "privrisk_spark",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.edgecolor": "#777777",
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "text.color": _INK,
    "text.parse_math": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
}


@contextmanager
def chart_settings() -> Iterator[None]:
    """Draw inside of it: matplotlib's own defaults and the charts' settings, whatever the user's are."""
    with mpl.rc_context(), warnings.catch_warnings():
        # Only text metrics are taken from the font; a character it lacks is still text in the page.
        warnings.filterwarnings("ignore", message="Glyph")
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def _prefixed(tag: str, prefix: str) -> str:
    tag = re.sub(r'\bid="', f'id="{prefix}-', tag)
    return re.sub(r'(?:xlink:)?(href="|url\()#', rf"\g<1>#{prefix}-", tag)


# Colours of ink and lines follow the page, which may be dark; what stands alone has those of paper.
_OF_PAGE = {"#222222": "--chart-ink", "#777777": "--chart-axis", "#e4e4e4": "--chart-grid", "#2b2b2b": "--chart-dark"}


def _told(group: str, texts: Sequence[str]) -> str:
    """Give every mark of a group of a drawing a title."""
    left = iter(texts)
    return re.sub(r"<use [^>]*/>", lambda mark: f"<g>{mark.group()}<title>{escape(next(left))}</title></g>", group)


def as_svg(
    figure: Figure, prefix: str, *, title: str, description: str, titles: Mapping[str, Sequence[str]] | None = None
) -> str:
    """Return a figure as an ``<svg>`` element with its text alternatives.

    Parameters
    ----------
    prefix : str
        Of the identifiers.
    titles : mapping of gid to sequence of str, optional
        What each mark of a group says when it is pointed at, in the order they were drawn.
    """
    file = io.StringIO()
    # Laid out once and drawn once; Figure.savefig draws twice.
    canvas, layout = FigureCanvasSVG(figure), figure.get_layout_engine()
    figure.dpi = 72
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine("none")
    canvas.print_svg(file, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})  # type: ignore[no-untyped-call]
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :]
    # In an HTML page a style element reaches the whole page, and the namespaces are known.
    svg = re.sub(r"<style\b.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<metadata\b.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    for group, texts in (titles or {}).items():
        # Marks of one group follow each other; a group ends before the next one that has an identifier.
        found = re.search(rf'<g id="{group}">.*?(?=<g id="|$)', svg, flags=re.DOTALL)
        if found:
            svg = svg[: found.start()] + _told(found.group(), texts) + svg[found.end() :]
    for colour, variable in _OF_PAGE.items():
        svg = re.sub(rf"(fill|stroke): {colour}", rf"\1: var({variable}, {colour})", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: _prefixed(tag.group(), prefix), svg)
    box = re.search(r'viewBox="([^"]*)"', svg)
    inside = svg[svg.index(">") + 1 :]
    view = box.group(1) if box else ""
    return (
        f'<svg viewBox="{view}" xmlns="http://www.w3.org/2000/svg" role="img" '
        f'aria-labelledby="{prefix}-title {prefix}-description">'
        f'<title id="{prefix}-title">{escape(title)}</title>'
        f'<desc id="{prefix}-description">{escape(description)}</desc>{inside}'
    ).strip()


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
    entries = len({*names, *(panel.diagonal for panel in plot.panels if panel.diagonal)})
    columns = 3 if max(map(len, names), default=0) < 34 else 2
    legend_rows = -(-entries // columns) if entries > 1 else 0
    with chart_settings():
        height = 4.2 if any(panel.diagonal for panel in plot.panels) else 3.0
        figure = Figure(figsize=(WIDTH, height + 0.22 * legend_rows), layout="constrained")
        all_axes = figure.subplots(1, len(plot.panels), squeeze=False)[0]
        handles: dict[str, Line2D] = {}
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
            if panel.diagonal:
                handles[panel.diagonal] = _diagonal(axes)
        if entries > 1:
            figure.legend(
                list(handles.values()),
                list(handles),
                loc="outside upper left",
                ncols=columns,
                fontsize=8.5,
                columnspacing=1.4,
            )
        return as_svg(figure, prefix, title=": ".join(filter(None, (plot.title, plot.data))), description=plot.found)


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
            # Within two decades powers of ten alone would say little of what lies between them.
            subs = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
            axis.set_major_locator(LogLocator(base=10, subs=subs, numticks=ticks))
            axis.set_minor_locator(NullLocator())
        elif name == "y" and min(values) >= 0:
            axes.set_ylim(bottom=0, top=max(values) * 1.06 or 1.0)
        elif name == "x" and all(value.is_integer() for value in values):
            # Numbers of things: there is nothing between them.
            axis.set_major_locator(MaxNLocator("auto", integer=True, min_n_ticks=1))
        axis.set_major_formatter(number)
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(panel.title, loc="left", fontsize=9.5, fontweight="bold")
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)


def _diagonal(axes: Axes) -> Line2D:
    """Give both axes the same limits, and draw the line on which y equals x."""
    limits = [*axes.get_xlim(), *axes.get_ylim()]
    ends = (min(limits), max(limits))
    axes.set_xlim(ends)
    axes.set_ylim(ends)
    (line,) = axes.plot(ends, ends, color="#8a8a8a", linewidth=1.0, linestyle="--", zorder=1)
    return line
