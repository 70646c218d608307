"""Charts of what a release gives up for what it takes off the risk: the risk-utility map, and the effect of the floor.

Every point tells its numbers when it is pointed at: titles inside the drawing, no script.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from privrisk_spark.reporting.charts import WIDTH, as_svg, chart_settings
from privrisk_spark.reporting.headline import anonymity_name, recoding_name
from privrisk_spark.reporting.numbers import short_number
from privrisk_spark.results.release import AttributeLevels
from privrisk_spark.results.trade_off import TradeOffFacts

_CLOUD, _CLOUD_EDGE = "#b8b8b8", "#8a8a8a"
_FRONTIER = "#0072b2"
_FLOORS = "#009e73"
_CHOSEN = "#d55e00"
_ANONYMOUS = "#cc79a7"


def map_chart(
    facts: TradeOffFacts, attributes: Sequence[AttributeLevels], *, name: str = "weighted risk", prefix: str = "map"
) -> str:
    """Draw the risk-utility confidentiality map.

    Parameters
    ----------
    attributes : sequence of k AttributeLevels
        Whose levels have the names.
    name : str, default 'weighted risk'
        What the risk is called.
    prefix : str, default 'map'
        Prefix of the identifiers.

    Returns
    -------
    str
        An ``<svg>`` element. The risk axis is logarithmic if all risks but zeros span more than a factor of 30; points
        of risk 0 are drawn at its left end then.
    """
    recodings = [one for one in facts.recodings if math.isfinite(one.risk)]
    best = [facts.recodings[i] for i in facts.frontier]
    floors = [one for one in facts.floors if math.isfinite(one.risk)]
    anonymous = [one for one in facts.anonymous if math.isfinite(one.risk)]
    chosen = [(facts.risk, facts.utility)] if math.isfinite(facts.risk) else []
    risks = [one.risk for one in recodings] + [one.risk for one in floors]
    risks += [one.risk for one in anonymous] + [risk for risk, _ in chosen]
    least = _log_floor(risks)

    def at(risk: float) -> float:
        return risk if least is None else max(risk, least)

    def told(what: str, risk: float, utility: float) -> str:
        return f"{what}: mean {name} {short_number(risk)}, mean utility {short_number(utility)}"

    titles: dict[str, Sequence[str]] = {}
    with chart_settings():
        figure = Figure(figsize=(WIDTH, 4.6), layout="constrained")
        axes = figure.subplots()
        axes.scatter(
            [at(one.risk) for one in recodings],
            [one.utility for one in recodings],
            s=16,
            color=_CLOUD,
            edgecolor=_CLOUD_EDGE,
            linewidth=0.4,
            label="one recoding for all records",
            gid="recodings",
        )
        titles["recodings"] = [told(recoding_name(one.levels, attributes), one.risk, one.utility) for one in recodings]
        axes.plot(
            [at(one.risk) for one in best],
            [one.utility for one in best],
            drawstyle="steps-post",
            color=_FRONTIER,
            linewidth=1.4,
            label="their frontier",
        )
        axes.plot(
            [at(one.risk) for one in floors],
            [one.utility for one in floors],
            color=_FLOORS,
            marker="s",
            markersize=4,
            linewidth=1.4,
            label="each record by itself, by floor",
            gid="floors",
        )
        titles["floors"] = [told(f"floor {short_number(one.floor)}", one.risk, one.utility) for one in floors]
        if anonymous:
            axes.plot(
                [at(one.risk) for one in anonymous],
                [one.utility for one in anonymous],
                color=_ANONYMOUS,
                linestyle="none",
                marker="D",
                markersize=7,
                markeredgecolor="black",
                markeredgewidth=0.6,
                label=f"{anonymity_name(facts)}, k = {', '.join(str(one.k) for one in anonymous)}",
                gid="anonymous",
            )
            titles["anonymous"] = [
                told(f"k = {one.k}, {recoding_name(one.levels, attributes)}", one.risk, one.utility)
                for one in anonymous
            ]
        if chosen:
            axes.plot(
                [at(facts.risk)],
                [facts.utility],
                linestyle="none",
                marker="*",
                markersize=15,
                color=_CHOSEN,
                markeredgecolor="black",
                markeredgewidth=0.7,
                zorder=5,
                label="this release",
                gid="chosen",
            )
            titles["chosen"] = [told("this release", facts.risk, facts.utility)]
        _scales(axes, log=least is not None)
        axes.set_xlabel(f"mean {name} (less is better)")
        axes.set_ylabel("mean utility (more is better)")
        figure.legend(loc="outside upper left", ncols=3, fontsize=8.5, columnspacing=1.4)
        return as_svg(
            figure,
            prefix,
            title="Risk-utility confidentiality map",
            description=(
                f"{facts.nodes:,} recodings of {facts.records:,} sampled records, {len(best)} of them on the frontier. "
                f"This release: mean {name} {short_number(facts.risk)}, mean utility {short_number(facts.utility)}."
            ),
            titles=titles,
        )


def floor_chart(
    facts: TradeOffFacts, *, asked: float | None, name: str = "weighted risk", prefix: str = "floor"
) -> str:
    """Draw the mean risk over the utility floor (F12 Fig. 3.6).

    Parameters
    ----------
    asked : float or None
        The floor of this release, if it has one.
    name : str, default 'weighted risk'
        What the risk is called.
    prefix : str, default 'floor'
        Prefix of the identifiers.

    Returns
    -------
    str
        An ``<svg>`` element. Risks of 0 are not drawn on a logarithmic axis.
    """
    floors = [one for one in facts.floors if math.isfinite(one.risk)]
    log = _log_floor([one.risk for one in floors]) is not None
    drawn = [one for one in floors if one.risk > 0 or not log]
    with chart_settings():
        figure = Figure(figsize=(WIDTH, 2.8), layout="constrained")
        axes = figure.subplots()
        axes.plot(
            [one.floor for one in drawn],
            [one.risk for one in drawn],
            color=_FLOORS,
            marker="s",
            markersize=4.5,
            linewidth=1.4,
            gid="points",
        )
        if asked is not None:
            axes.axvline(asked, color=_CHOSEN, linewidth=1.2, linestyle="--")
            axes.annotate(
                f"floor of this release: {short_number(asked)}",
                (asked, 1),
                (4, -4),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                va="top",
                fontsize=8.5,
            )
        _scales(axes, log=False)
        if log:
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
        axes.set_xlabel("least utility of a record")
        axes.set_ylabel(f"mean {name}")
        return as_svg(
            figure,
            prefix,
            title="Effect of the utility floor",
            description=" ".join(
                f"Floor {short_number(one.floor)}: mean {name} {short_number(one.risk)}." for one in facts.floors
            ),
            titles={
                "points": [f"floor {short_number(one.floor)}: mean {name} {short_number(one.risk)}" for one in drawn]
            },
        )


def _log_floor(risks: Sequence[float]) -> float | None:
    """Where risks of 0 stand on a logarithmic axis; None where the axis is linear."""
    positive = [risk for risk in risks if risk > 0]
    if not positive or max(positive) <= 30 * min(positive):
        return None
    return min(positive) / 2


def _scales(axes: Axes, *, log: bool) -> None:
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
