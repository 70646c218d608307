"""Experiments as self-contained HTML pages, in the form of :mod:`privrisk_spark.reporting.pages`."""

from __future__ import annotations

from importlib.resources import files

from privrisk_spark.reporting.page_templates import draw_plot, fill_text
from privrisk_spark.results.plots import Panel
from reproduce.result import ExperimentResult
from reproduce.summary import Collection

_ROWS = 60
"""Rows of a chart's table, at most; all points are in the CSV file."""


def render_collection(result: Collection) -> str:
    """Return all experiments as a page, with links to their own."""
    return fill_text(_template("collection.html.j2"), result=result)


def render_experiment(result: ExperimentResult) -> str:
    """Return an experiment as a page: what is claimed beside what is found."""
    sections = [
        (
            same[0],
            [
                (plot, draw_plot(plot, prefix=f"{plot.key}-{i}"), [(panel, *table(panel)) for panel in plot.panels])
                for i, plot in enumerate(same)
            ],
        )
        for same in result.findings.plots
    ]
    return fill_text(_template("experiment.html.j2"), result=result, findings=result.findings, sections=sections)


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


def _template(name: str) -> str:
    return files("reproduce").joinpath("templates", name).read_text(encoding="utf-8")
