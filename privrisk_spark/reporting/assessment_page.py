"""An assessment as one self-contained HTML page, in the form of :mod:`privrisk_spark.reporting.report`."""

from __future__ import annotations

from markupsafe import Markup

from privrisk_spark.kernels.measures.catalogue import CATALOGUE
from privrisk_spark.kernels.measures.measure import FAMILIES
from privrisk_spark.reporting.experiment_charts import draw
from privrisk_spark.reporting.report import _templates
from privrisk_spark.results.assessment import Assessment


def render_assessment(result: Assessment) -> str:
    """Return the page, to be written as UTF-8.

    Parameters
    ----------
    result : Assessment
    """
    charts = [
        [(plot, Markup(draw(plot, prefix=f"{subject.name}-{plot.key}"))) for plot in subject.plots]
        for subject in result.subjects
    ]
    page = (
        _templates()
        .get_template("assessment.html.j2")
        .render(result=result, charts=charts, catalogue=CATALOGUE, families=FAMILIES)
    )
    return page + "\n"
