"""The page of sharing in a network, and its plots: loss and utility over a trade-off, and what is shown to whom."""

from __future__ import annotations

from collections.abc import Mapping

from privrisk_spark.extensions.network.planning import in_words
from privrisk_spark.extensions.network.policy import sharing_of
from privrisk_spark.extensions.network.results import SharingResult
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.search import lattice_size
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.explanation import leaves_and_levels
from privrisk_spark.reporting.page_templates import draw_plot, fill
from privrisk_spark.reporting.report import MEANINGS
from privrisk_spark.results.plots import Panel, Plot, Series


def render_sharing(result: SharingResult) -> str:
    """Return what members of a network show each other as a page, for the trusted zone."""
    return fill(
        "extensions/network/templates/sharing.html.j2",
        result=result,
        rows=(*result.relations, result.whole),
        reasons=list(result.whole.outcomes),
        names=[one.name for one in result.whole.attributes],
        meaning=MEANINGS[result.status],
        attributes_svg=draw_plot(attribute_plot(result), prefix="attributes") if result.relations else None,
        curve_svg=draw_plot(curve_plot(result), prefix="curve") if result.curve else None,
    )


def curve_plot(result: SharingResult) -> Plot:
    """Mean utility over mean loss of the pairs of a sample, a point for each trade-off.

    Parameters
    ----------
    result : SharingResult
        With a curve.
    """
    points = sorted(result.curve, key=lambda point: (point.loss, point.utility))
    labels = [f"{point.trade_off:g}" for point in points]
    # Points that lie on each other have one label.
    seen = [(point.loss, point.utility) for point in points]
    labels = [label if seen.index(at) == i else "" for i, (label, at) in enumerate(zip(labels, seen, strict=True))]
    series = Series.of(
        f"by {result.axis}", [point.loss for point in points], [point.utility for point in points], labels=labels
    )
    return Plot(
        key="curve",
        title="What showing more costs",
        figure="",
        found=f"{len(set(seen))} different points of {len(points)} trade-offs.",
        panels=(Panel("", "mean loss of a pair", "mean utility of a pair", (series,)),),
    )


def attribute_plot(result: SharingResult) -> Plot:
    """Share of each attribute's levels that is shown, by relation."""
    series = tuple(
        Series.of(
            relation.name,
            list(range(1, len(relation.attributes) + 1)),
            [one.share for one in relation.attributes],
            points=True,
        )
        for relation in result.relations
    )
    return Plot(
        key="attributes",
        title="What is shown of each attribute",
        figure="",
        found="Attributes are numbered in the order of the policy.",
        panels=(Panel("", "number of the attribute", "share of its levels that is shown", series),),
    )


def explain_sharing(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
    """Return what will be decided of the members of a network, as text.

    Parameters
    ----------
    hierarchies : mapping of quasi-identifier to Hierarchy
    """
    asked = sharing_of(policy)
    lines = [leaves_and_levels(name, hierarchy) for name, hierarchy in hierarchies.items()]
    lines.append(f"lattice: up to {lattice_size(hierarchies):,} nodes a pair")
    lines.append(f"pairs: {asked.pairs.kind}")
    lines.append(f"decided: {in_words(asked)}")
    return "\n".join(lines)
