"""Plots of sharing: loss and utility over a trade-off, and what is shown to whom."""

from __future__ import annotations

from privrisk_spark.results.plots import Panel, Plot, Series
from privrisk_spark.results.sharing import SharingResult

__all__ = ["attribute_plot", "curve_plot"]


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
    """Share of each attribute's levels that is shown, by relation.

    Parameters
    ----------
    result : SharingResult
    """
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
