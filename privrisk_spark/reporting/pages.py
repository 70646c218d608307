"""Results as self-contained HTML pages, in the form of :mod:`privrisk_spark.reporting.report`.

Each function returns a page to be written as UTF-8; it loads nothing and runs nothing.
"""

from __future__ import annotations

from privrisk_spark.reporting.curve_plots import bound_plot, dictionary_plot
from privrisk_spark.reporting.page_templates import draw_plot, fill
from privrisk_spark.reporting.report import MEANINGS
from privrisk_spark.results.audit import ALPHA, AuditResult
from privrisk_spark.results.collection import Collection
from privrisk_spark.results.composition import QUANTILES, Composition
from privrisk_spark.results.curves import CurveResult
from privrisk_spark.results.experiment import ExperimentResult
from privrisk_spark.results.plots import Panel, Plot, Series

__all__ = [
    "render_audit",
    "render_collection",
    "render_composition",
    "render_curves",
    "render_experiment",
]

_ROWS = 60
"""Rows of a chart's table, at most; all points are in the CSV file."""


def render_audit(result: AuditResult) -> str:
    """Return an audit as a page.

    Parameters
    ----------
    result : AuditResult
    """
    return fill("audit.html.j2", result=result, chart_svg=draw_plot(cells_plot(result), prefix="cells"), alpha=ALPHA)


def render_collection(result: Collection) -> str:
    """Return all experiments as a page, with links to their own.

    Parameters
    ----------
    result : Collection
    """
    return fill("collection.html.j2", result=result)


def render_composition(result: Composition) -> str:
    """Return what several releases disclose together as a page, for the trusted zone.

    Parameters
    ----------
    result : Composition
    """
    return fill("composition.html.j2", result=result, shares=QUANTILES)


def render_curves(result: CurveResult) -> str:
    """Return risk over what the attacker knows as a page, for the trusted zone.

    Parameters
    ----------
    result : CurveResult
    """
    return fill(
        "curves.html.j2",
        result=result,
        curves=result.curves,
        meaning=MEANINGS[result.status],
        dictionary_svg=draw_plot(dictionary_plot(result.curves), prefix="dictionary"),
        bound_svg=draw_plot(bound_plot(result.curves), prefix="bound"),
    )


def render_experiment(result: ExperimentResult) -> str:
    """Return an experiment as a page: what is claimed beside what is found.

    Parameters
    ----------
    result : ExperimentResult
    """
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
    return fill("experiment.html.j2", result=result, findings=result.findings, sections=sections)


def cells_plot(result: AuditResult) -> Plot:
    """Published rows of an audit's large cells beside their law.

    Parameters
    ----------
    result : AuditResult
    """
    panels = []
    for one in result.findings:
        for cell in one.cells:
            likely = [i for i, share in enumerate(cell.expected) if share > 1e-5 or cell.observed[i] > 0]
            if not likely:
                continue
            x = tuple(float(i) for i in range(likely[0], likely[-1] + 1))
            shares = [tuple(side[likely[0] : likely[-1] + 1]) for side in (cell.observed, cell.expected)]
            series = (Series("published", x, shares[0], points=True), Series("law of the certificate", x, shares[1]))
            panels.append(Panel(one.experiment.title, "published rows of a cell", "share of the releases", series))
    return Plot(
        key="cells",
        title="Published rows of a large cell",
        figure="",
        found=f"Cells of {result.findings[0].cells[0].cell} over all releases, and the law the certificate assumes.",
        panels=tuple(panels),
        data=result.title,
    )


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
