"""Charts of a release's report: risk before and after, and generalization levels.

No chart needs its colours to be told apart, because order, outline or position says the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import matplotlib as mpl
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from privrisk_spark.reporting.charts import WIDTH, as_svg, chart_settings
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.release import AttributeLevels, Histogram

__all__ = ["levels_chart", "risk_chart"]

_BEFORE = "#8a8a8a"
_AFTER = "#0072b2"
_SUPPRESSED = "#2b2b2b"
_NAMED_FROM = 1.25
"""Percent of the width of a bar that a character of a level's name needs."""


def risk_chart(
    before: Histogram | None, after: Histogram | None, *, name: str = "weighted risk", prefix: str = "risk"
) -> str:
    """Draw the distribution of risk before and after, one panel each on the same bins and the same scales.

    Parameters
    ----------
    before, after : Histogram or None
        At least one; if both, on the same edges. Bins lie on a logarithmic axis if all finite edges but a
        leading 0 are positive, on a linear one otherwise; bins that begin at 0 or -Infinity or end at
        Infinity are drawn as one more bin beside it, and labelled so. Counts are on a logarithmic axis,
        because a handful of records at high risk matters as much as the crowd at low risk.
    name : str
        What the risk is, for the axis.
    prefix : str, default 'risk'
        Prefix of the identifiers.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    panels = [
        (side, histogram, colour, hatch)
        for side, histogram, colour, hatch in (
            ("before", before, _BEFORE, "////"),
            ("after", after, _AFTER, ""),
        )
        if histogram is not None
    ]
    edges = panels[0][1].edges
    positions, ticks = _bin_positions(edges)
    most = max(max(histogram.counts) for _, histogram, _, _ in panels)
    with chart_settings():
        figure = Figure(figsize=(WIDTH, 0.9 + 1.55 * len(panels)), layout="constrained")
        all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, (side, histogram, colour, hatch) in zip(all_axes, panels, strict=True):
            axes.bar(
                positions[:-1],
                histogram.counts,
                width=[high - low for low, high in pairwise(positions)],
                align="edge",
                color=colour if not hatch else "#dedede",
                edgecolor="white" if not hatch else colour,
                hatch=hatch,
                linewidth=0.6,
            )
            axes.set_yscale("log")
            # A bin of one record must be seen, and an empty one must not.
            axes.set_ylim(0.6, max(most, 1) * 2.5)
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
            axes.yaxis.set_minor_locator(NullLocator())
            axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.set_title(f"{side} (records, log scale)", loc="left", fontsize=9.5, fontweight="bold")
        bottom = all_axes[-1]
        bottom.xaxis.set_major_locator(FixedLocator([place for place, _ in ticks]))
        bottom.xaxis.set_minor_locator(NullLocator())
        labels = dict(ticks)
        bottom.xaxis.set_major_formatter(FuncFormatter(lambda value, _: labels.get(value, "")))
        bottom.set_xlim(positions[0], positions[-1])
        bottom.set_xlabel(f"{name} of a record" if "record" not in name else name)
        return as_svg(
            figure,
            prefix,
            title="Distribution of risk over the records",
            description=" ".join(_risk_text(side, histogram) for side, histogram, _, _ in panels),
        )


def levels_chart(levels: Sequence[AttributeLevels], *, prefix: str = "levels") -> str:
    """Draw the share of rows at each generalization level, one stacked bar per attribute.

    Parameters
    ----------
    levels : sequence of AttributeLevels
        At least one.
    prefix : str, default 'levels'
        Prefix of the identifiers.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    tallest = max(attribute.height for attribute in levels)
    colours = _level_colours(tallest)
    with chart_settings():
        figure = Figure(figsize=(WIDTH, 1.05 + 0.36 * len(levels)), layout="constrained")
        axes = figure.subplots()
        for row, attribute in enumerate(levels):
            total = sum(attribute.rows)
            left = 0.0
            for level, count in enumerate(attribute.rows):
                share = 100.0 * count / total if total else 0.0
                if not share:
                    continue
                suppressed = level == attribute.height
                colour = _SUPPRESSED if suppressed else colours[level]
                axes.barh(row, share, left=left, height=0.68, color=colour, edgecolor="white", linewidth=0.8)
                name = f"{attribute.level_names[level]}, {share:.0f} %"
                if share >= 7:
                    axes.text(
                        left + share / 2,
                        row,
                        name if share >= _NAMED_FROM * len(name) else f"{share:.0f} %",
                        ha="center",
                        va="center",
                        fontsize=8.5,
                        color=_ink_on(colour),
                    )
                left += share
        axes.set_yticks(
            range(len(levels)),
            [_shortened(attribute.attribute, 26) for attribute in levels],
            parse_math=False,
        )
        axes.set_ylim(len(levels) - 0.5, -0.5)
        axes.set_xlim(0, 100)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f} %"))
        axes.set_xlabel("share of rows")
        axes.tick_params(axis="y", length=0)
        figure.legend(
            handles=[*_level_patches(tallest, colours), Patch(color=_SUPPRESSED, label="suppressed")],
            loc="outside upper left",
            ncols=7,
            fontsize=8.5,
            handlelength=1.2,
            columnspacing=1.2,
        )
        return as_svg(
            figure,
            prefix,
            title="Generalization level per attribute",
            description=" ".join(_level_text(attribute) for attribute in levels),
        )


def _bin_positions(edges: Sequence[float]) -> tuple[list[float], list[tuple[float, str]]]:
    """Return where each edge is drawn, and ticks with their labels."""
    inner = [edge for edge in edges if math.isfinite(edge)]
    # A leading 0 has no place on a logarithmic axis: its bin becomes one more bin on the left.
    positive = [edge for edge in inner if edge > 0]
    zeros = len(inner) - len(positive)
    logarithmic = len(positive) > 1 and (zeros == 0 or (zeros == 1 and edges[0] == 0))
    inner = positive if logarithmic else inner
    if len(inner) < 2:
        places = [float(i) for i in range(len(edges))]
        return places, [(place, short_number(edge)) for place, edge in zip(places, edges, strict=True)]
    drawn = [math.log10(edge) if logarithmic else edge for edge in inner]
    step = (drawn[-1] - drawn[0]) / (len(drawn) - 1)
    places = list(drawn)
    below, above = edges[0] != inner[0], edges[-1] != inner[-1]
    if below:
        places.insert(0, drawn[0] - step)
    if above:
        places.append(drawn[-1] + step)
    if logarithmic:
        powers = range(math.ceil(drawn[0] - 1e-9), math.floor(drawn[-1] + 1e-9) + 1)
        every = max(1, math.ceil(len(powers) / 8))
        ticks = [(float(power), short_number(10.0**power)) for power in powers[::every]]
    else:
        every = max(1, math.ceil(len(inner) / 8))
        ticks = [(place, short_number(edge)) for place, edge in zip(drawn[::every], inner[::every], strict=True)]
    if len(ticks) < 2:
        ticks = [(drawn[0], short_number(inner[0])), (drawn[-1], short_number(inner[-1]))]
    ends = ([(places[0], short_number(edges[0]))] if below else []) + (
        [(places[-1], short_number(edges[-1]))] if above else []
    )
    # A label needs a twelfth of the axis or so; those of the open bins come first.
    room = (places[-1] - places[0]) / 12
    kept = [tick for tick in ticks if all(abs(tick[0] - end) >= room for end, _ in ends)]
    return places, sorted(kept + ends)


def _risk_text(name: str, histogram: Histogram) -> str:
    counts, edges = histogram.counts, histogram.edges
    fullest = counts.index(max(counts))
    riskiest = max((i for i, count in enumerate(counts) if count), default=0)
    return (
        f"{name.capitalize()}: {short_number(sum(counts))} records, most of them at a risk of "
        f"{short_number(edges[fullest])} to {short_number(edges[fullest + 1])}, the riskiest at "
        f"{short_number(edges[riskiest])} to {short_number(edges[riskiest + 1])}."
    )


def _level_colours(tallest: int) -> list[tuple[float, float, float]]:
    blues = mpl.colormaps["Blues"]
    # Lighter is closer to the original; the ends are left out, to stay apart from paper and from
    # "suppressed".
    places = [0.25 + 0.6 * level / max(tallest - 1, 1) for level in range(tallest)]
    return [to_rgb(blues(place)) for place in places]


def _level_patches(tallest: int, colours: Sequence[tuple[float, float, float]]) -> list[Patch]:
    shown = range(tallest) if tallest <= 6 else sorted({round(i * (tallest - 1) / 5) for i in range(6)})
    return [Patch(color=colours[level], label="as is" if level == 0 else f"level {level}") for level in shown]


def _level_text(attribute: AttributeLevels) -> str:
    total = sum(attribute.rows)
    if not total:
        return f"{attribute.attribute}: no rows."
    as_is, suppressed = (100 * attribute.rows[level] / total for level in (0, attribute.height))
    return (
        f"{attribute.attribute}: {as_is:.0f} % released as is, {max(100 - as_is - suppressed, 0.0):.0f} % generalized, "
        f"{suppressed:.0f} % suppressed."
    )


def _ink_on(colour: str | tuple[float, float, float]) -> str:
    """Return black or white, whichever has the higher contrast (WCAG 2 relative luminance)."""
    red, green, blue = ((c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for c in to_rgb(colour))
    return "black" if 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 else "white"


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
