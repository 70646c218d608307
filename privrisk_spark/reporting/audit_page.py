"""The audit as one self-contained HTML page, in the form of :mod:`privrisk_spark.reporting.report`."""

from __future__ import annotations

from markupsafe import Markup

from privrisk_spark.reporting.charts import draw
from privrisk_spark.reporting.report import _templates
from privrisk_spark.results.audit import ALPHA, AuditResult
from privrisk_spark.results.plots import Panel, Plot, Series


def render_audit(result: AuditResult) -> str:
    """Return the page, to be written as UTF-8.

    Parameters
    ----------
    result : AuditResult
    """
    chart = Markup(draw(plot(result), prefix="cells"))
    page = _templates().get_template("audit.html.j2").render(result=result, chart_svg=chart, alpha=ALPHA)
    return page + "\n"


def plot(result: AuditResult) -> Plot:
    """Published rows of the large cells beside their law."""
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
        claim="",
        found=f"Cells of {result.findings[0].cells[0].cell} over all releases, and the law the certificate assumes.",
        panels=tuple(panels),
        data=result.title,
    )
