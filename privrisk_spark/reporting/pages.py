"""Results as self-contained HTML pages, in the form of :mod:`privrisk_spark.reporting.report`.

Each function returns a page to be written as UTF-8; it loads nothing and runs nothing.
"""

from __future__ import annotations

from privrisk_spark.reporting.curve_plots import bound_plot, dictionary_plot
from privrisk_spark.reporting.page_templates import draw_plot, fill
from privrisk_spark.reporting.report import MEANINGS
from privrisk_spark.results.audit import ALPHA, AuditResult
from privrisk_spark.results.composition import QUANTILES, Composition
from privrisk_spark.results.curves import CurveResult
from privrisk_spark.results.plots import Panel, Plot, Series

__all__ = [
    "render_audit",
    "render_composition",
    "render_curves",
]


def render_audit(result: AuditResult) -> str:
    """Return an audit as a page."""
    return fill("audit.html.j2", result=result, chart_svg=draw_plot(cells_plot(result), prefix="cells"), alpha=ALPHA)


def render_composition(result: Composition) -> str:
    """Return what several releases disclose together as a page, for the trusted zone."""
    return fill("composition.html.j2", result=result, shares=QUANTILES)


def render_curves(result: CurveResult) -> str:
    """Return risk over what the attacker knows as a page, for the trusted zone."""
    return fill(
        "curves.html.j2",
        result=result,
        curves=result.curves,
        meaning=MEANINGS[result.status],
        dictionary_svg=draw_plot(dictionary_plot(result.curves), prefix="dictionary"),
        bound_svg=draw_plot(bound_plot(result.curves), prefix="bound"),
    )


def cells_plot(result: AuditResult) -> Plot:
    """Published rows of an audit's large cells beside their law."""
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
