"""A small network as a picture: who shows whom all, some or none of what he has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from privrisk_spark.reporting.charts import WIDTH, as_svg, chart_settings

__all__ = ["network_drawing"]

_STYLES: dict[str, tuple[str, Literal["-", "--", ":"], float]] = {
    "everything": ("#009e73", "-", 2.0),
    "a part": ("#0072b2", "--", 1.4),
    "nothing": ("#999999", ":", 1.0),
}
"""Colour, line and width: each says it alone."""


def network_drawing(
    people: Sequence[str], shown: Mapping[tuple[str, str], float], *, prefix: str, title: str, description: str
) -> str:
    """Draw people on a circle, and an arrow from everybody to each who sees something of him, or nothing.

    Parameters
    ----------
    people : sequence of str
        In order around the circle, from the top.
    shown : mapping of (str, str) to float
        Share of what the first one has that the second one sees, in [0, 1].
    prefix : str
        Prefix of the identifiers.
    title, description : str
        For who does not see the picture.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    turn = 2 * math.pi / max(len(people), 1)
    place = {name: (math.sin(i * turn), math.cos(i * turn)) for i, name in enumerate(people)}
    with chart_settings():
        figure = Figure(figsize=(WIDTH, 3.6))
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set(xlim=(-2.2, 2.2), ylim=(-1.25, 1.25), aspect="equal")
        axes.set_axis_off()
        for (one, other), share in sorted(shown.items()):
            colour, line, width = _STYLES["everything" if share >= 1 else "a part" if share > 0 else "nothing"]
            axes.add_patch(
                FancyArrowPatch(
                    place[one],
                    place[other],
                    connectionstyle="arc3,rad=0.12",
                    arrowstyle="-|>",
                    mutation_scale=10,
                    shrinkA=17,
                    shrinkB=17,
                    color=colour,
                    linestyle=line,
                    linewidth=width,
                )
            )
        for name, (x, y) in place.items():
            axes.text(x, y, name, ha="center", va="center", bbox={"boxstyle": "circle", "fc": "white", "ec": "#777777"})
        handles = [Line2D([], [], color=c, linestyle=s, linewidth=w) for c, s, w in _STYLES.values()]
        axes.legend(handles, [f"shows {what}" for what in _STYLES], loc="center left", fontsize=8.5)
        return as_svg(figure, prefix, title=title, description=description)
