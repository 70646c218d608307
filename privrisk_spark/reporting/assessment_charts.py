"""Charts of an assessment: records by the size of their class, of the table and of a release side by side."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from privrisk_spark.reporting.charts import WIDTH, as_svg, chart_settings
from privrisk_spark.reporting.numbers import short_number

__all__ = ["size_chart"]

_STYLES = (("#dedede", "#8a8a8a", "////"), ("#0072b2", "white", ""))
"""Fill, edge and hatch of what is first and second, told apart without colour."""


def size_chart(bins: Sequence[str], subjects: Sequence[tuple[str, Sequence[int]]], *, prefix: str = "sizes") -> str:
    """Draw how many records are in classes of each size, a bar for each subject.

    Parameters
    ----------
    bins : sequence of m str
        Names of the bins, by size.
    subjects : sequence of (str, sequence of m int)
        One or two: name, and records in each bin. They are drawn as shares of the subject's records in classes.
    prefix : str, default 'sizes'
        Prefix of the identifiers.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    width = 0.8 / len(subjects)
    with chart_settings():
        figure = Figure(figsize=(WIDTH, 2.9), layout="constrained")
        axes = figure.subplots()
        for number, (name, records) in enumerate(subjects):
            total = max(sum(records), 1)
            shares = [100 * count / total for count in records]
            fill, edge, hatch = _STYLES[number if len(subjects) > 1 else 1]
            places = [i - 0.4 + width * (number + 0.5) for i in range(len(bins))]
            axes.bar(places, shares, width=width, color=fill, edgecolor=edge, hatch=hatch, linewidth=0.6, label=name)
            for place, share in zip(places, shares, strict=True):
                if share:
                    text = f"{share:.0f}" if share >= 1 else "<1"
                    axes.text(place, share, text, ha="center", va="bottom", fontsize=7.5)
        axes.xaxis.set_major_locator(FixedLocator(list(range(len(bins)))))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: bins[round(value)]))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
        axes.grid(axis="y", color="#e8e8e8", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.set_xlabel("records in the class")
        axes.set_ylabel("% of the records in classes")
        if len(subjects) > 1:
            figure.legend(loc="outside upper left", ncols=2, fontsize=8.5)
        return as_svg(
            figure,
            prefix,
            title="Records by the size of their class",
            description=" ".join(_told(name, bins, records) for name, records in subjects),
        )


def _told(name: str, bins: Sequence[str], records: Sequence[int]) -> str:
    inside = ", ".join(f"{bin_}: {count:,}" for bin_, count in zip(bins, records, strict=True) if count)
    return f"{name}, records by size of class: {inside or 'none'}."
