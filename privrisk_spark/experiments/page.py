"""The experiments as one self-contained HTML page, in the form of :mod:`privrisk_spark.reporting.report`."""

from __future__ import annotations

from markupsafe import Markup

from privrisk_spark.experiments.adversary.results import AdversaryResult
from privrisk_spark.experiments.deciding.results import DecidingResult
from privrisk_spark.experiments.privacy.results import PrivacyResult
from privrisk_spark.reporting.charts import draw
from privrisk_spark.reporting.report import _templates
from privrisk_spark.results.plots import Panel

_ROWS = 60
"""Rows of a chart's table, at most; all points are in the CSV file."""


def render_deciding(result: DecidingResult) -> str:
    """Return the page, to be written as UTF-8.

    Parameters
    ----------
    result : DecidingResult
    """
    return _render("deciding.html.j2", result)


def render_privacy(result: PrivacyResult) -> str:
    """Return the page, to be written as UTF-8.

    Parameters
    ----------
    result : PrivacyResult
    """
    return _render("privacy.html.j2", result)


def render_adversary(result: AdversaryResult) -> str:
    """Return the page, to be written as UTF-8.

    Parameters
    ----------
    result : AdversaryResult
    """
    return _render("adversary.html.j2", result)


def _render(template: str, result: DecidingResult | PrivacyResult | AdversaryResult) -> str:
    sections = [
        (
            same[0],
            [
                (plot, Markup(draw(plot, prefix=f"{plot.key}-{i}")), [(panel, *table(panel)) for panel in plot.panels])
                for i, plot in enumerate(same)
            ],
        )
        for same in result.plots
    ]
    return _templates().get_template(template).render(result=result, sections=sections) + "\n"


def table(panel: Panel) -> tuple[list[str], list[list[float | None]]]:
    """Return a panel as a table: names of the series, and a row for every x.

    Parameters
    ----------
    panel : Panel
        Series with different x get rows of their own.

    Returns
    -------
    list of str
    list of list
        x, then y of each series or None; evenly thinned out beyond 60 rows, the first and the last kept.
    """
    rows: dict[tuple[float, int], list[float | None]] = {}
    shared = len({series.x for series in panel.series}) == 1
    for j, series in enumerate(panel.series):
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            row = rows.setdefault((i, 0) if shared else (i, j), [x, *[None] * len(panel.series)])
            row[1 + j] = y if y == y else None
    found = list(rows.values()) if shared else sorted(rows.values(), key=lambda row: row[0] or 0.0)
    every = -(-len(found) // _ROWS)
    kept = found[::every]
    return [series.name for series in panel.series], kept if kept[-1:] == found[-1:] else [*kept, found[-1]]
