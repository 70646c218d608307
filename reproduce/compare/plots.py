"""Plots of the comparison: the risk-utility map, and the attacks beside each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from privrisk_spark.results.plots import Panel, Plot, Series

Point = tuple[str, str, float, float]
"""Family, name, loss and share found by the strongest attack."""


def risk_utility_map(data: str, measure: str, points: Sequence[Point], front: set[str]) -> Plot:
    """Share of the people found over what is lost, by how the table was protected.

    Parameters
    ----------
    front : set of str
        Names of those that nothing beats.
    """
    best = sorted((lost, share) for _, name, lost, share in points if name in front)
    there = sorted({family for family, name, _, _ in points if name in front})
    return Plot(
        key="compare-map",
        title="Re-identification over loss of information",
        figure="",
        found=f"Nothing beats {len(front)} of {len(points)} tables; they are {', '.join(there)}.",
        panels=(
            Panel(
                "",
                measure,
                "share of the people found",
                (Series.of("beaten by none", [x for x, _ in best], [y for _, y in best]), *_by_family(points)),
            ),
        ),
        data=data,
    )


def map_of_rows(data: str, measure: str, points: Sequence[Point]) -> Plot:
    """Share of the rows whose person is found over what is lost, by how the table was protected."""
    least = min(points, key=lambda one: (one[3], one[2]))
    return Plot(
        key="compare-map-rows",
        title="Persons found of a row, over loss of information",
        figure="",
        found=f"Fewest are found of '{least[0]}', {least[1]}: {100 * least[3]:.3g} % of the rows.",
        panels=(Panel("", measure, "share of the rows whose person is found", _by_family(points)),),
        data=data,
    )


def _by_family(points: Sequence[Point]) -> tuple[Series, ...]:
    """A series for each way of protecting, in the order they come."""
    return tuple(
        Series.of(
            family,
            [lost for of, _, lost, _ in points if of == family],
            [share for of, _, _, share in points if of == family],
            points=True,
        )
        for family in dict.fromkeys(family for family, *_ in points)
    )


def of_attacks(data: str, tables: Sequence[tuple[str, float, Mapping[str, float]]]) -> Plot:
    """What each attack finds, table after table, in the order of what they lose.

    Parameters
    ----------
    tables : sequence of (str, float, mapping of method to float)
        Name, loss, and shares found.
    """
    ordered = sorted(tables, key=lambda one: one[1])
    methods = list(dict.fromkeys(method for _, _, of in ordered for method in of))
    series = tuple(
        Series.of(
            method,
            [lost for _, lost, of in ordered if method in of],
            [of[method] for _, _, of in ordered if method in of],
            points=True,
        )
        for method in methods
    )
    strongest = [max(of, key=lambda method, of=of: of[method]) for _, _, of in ordered]  # type: ignore[misc]
    most = max(methods, key=strongest.count)
    return Plot(
        key="compare-attacks",
        title="What each attack finds",
        figure="",
        found=f"'{most}' finds the most of {strongest.count(most)} of {len(ordered)} tables.",
        panels=(Panel("", "loss of information", "share of the people found", series),),
        data=data,
    )
