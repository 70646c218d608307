"""Plots of the aggregate and the threshold model: what Fouad (2012; F12, chapter 5) claims, and whether it holds."""

from __future__ import annotations

import math

import numpy as np

from privrisk_spark.reporting.numbers import percent, rounded
from privrisk_spark.results.plots import Panel, Plot, Series, lines
from reproduce.deciding.trade_offs import METHODS, TradeOff
from reproduce.result import MUCH, held_in_each
from reproduce.texts import least_to_most, milliseconds


def models_plot(trade: TradeOff) -> Plot:
    """Risks of the aggregate and the threshold model at equal mean utility (F12 Fig. 5.1(b)-(d))."""
    titles = ("mean risk", "greatest risk", "least risk")
    below = trade.utility < trade.utility.max(initial=0.0)
    between = below & (trade.utility > trade.utility.min(initial=math.inf))
    aggregate, threshold = trade.aggregate_risk[between], trade.threshold_risk[between]
    ratios = [quotient(a, t) for a, t in zip(aggregate[:, 0].tolist(), threshold[:, 0].tolist(), strict=True)]
    found = (
        f"Between its extremes the aggregate model has {least_to_most(ratios)} times the mean "
        f"risk of the threshold model at no more mean utility ({len(ratios)} values of λ). There it releases "
        f"{percent(trade.as_it_is[between].mean())} of the records as they are, and of "
        f"{percent(trade.one_left[between].mean())} one attribute or none."
        if ratios
        else "No λ of the sweep lies between release as is and suppression of nearly everything."
    )
    return Plot(
        key="models",
        title="Aggregate against threshold model",
        figure="Fouad 2012, Fig. 5.1(b) to (d)",
        found=found,
        claims=(
            (
                "The aggregate model and the threshold model have comparable risks, be it the mean, the highest or the "
                "lowest of the records.",
                held_in_each((aggregate <= MUCH * threshold) & (threshold <= MUCH * aggregate)),
            ),
        ),
        panels=tuple(
            Panel(
                title,
                "mean utility",
                "risk",
                (
                    Series.of("aggregate", trade.utility, trade.aggregate_risk[:, j], points=True),
                    Series.of("threshold", trade.utility, trade.threshold_risk[:, j], points=True),
                ),
                log_y=True,
            )
            for j, title in enumerate(titles)
        ),
    )


def models_time_plot(trade: TradeOff) -> Plot:
    """Times of the aggregate and the threshold model (F12 Fig. 5.1(a))."""
    each = ", ".join(f"{name} {milliseconds(t)}" for name, t in zip(METHODS, trade.seconds[-1].tolist(), strict=True))
    exact = (
        "Cuts never missed the best value." if not trade.worse else f"Cuts missed the best value {trade.worse} times."
    )
    times = lines(METHODS, trade.attributes, 1000 * trade.seconds)
    cuts, cube = (trade.seconds[:, METHODS.index(name)] for name in ("aggregate, cuts", "ARUBA, cube"))
    return Plot(
        key="models-time",
        title="Time of the aggregate model",
        figure="Fouad 2012, Fig. 5.1(a)",
        claims=(
            (
                "The aggregate model, with a supermodular objective, significantly outperforms the threshold model in "
                "running time.",
                held_in_each((MUCH * cuts <= cube)[~np.isnan(cube)]),
            ),
        ),
        found=f"Time per record with {rounded(trade.attributes[-1])} attributes: {each}. {exact}",
        panels=(Panel("λ at the median crossing", "attributes k", "ms per record", times, log_y=True),),
        measured=True,
    )


def bang_bang_plot(trade: TradeOff) -> Plot:
    """Utility of the aggregate optimum over λ."""
    if trade.records:
        decades = rounded(trade.sweep[-1] - trade.sweep[0])
        most = int(trade.distinct.max())
        found = (
            f"Over {decades} decades of λ a record has {rounded(float(trade.distinct.mean()))} different optima in the "
            f"mean and {most} at most, of {rounded(float(trade.undominated.mean()))} disclosures that no other beats "
            "in risk and utility; one jump loses "
            f"{percent(float(trade.jump.mean()))} of the utility that is lost in all."
        )
    else:
        found = "No record has a λ at which the release as it is stops being the best."
    return Plot(
        key="bang-bang",
        title="The aggregate optimum over λ",
        figure="Fouad 2012, eq. 5.4",
        claims=(
            (
                "λ sets the exchange rate between low risk and utility: no step of it costs half of the utility.",
                held_in_each(trade.jump < 0.5),
            ),
        ),
        found=found,
        panels=(
            Panel(
                "mean over records",
                "log10 of λ over the record's crossing λ*",
                "utility retained, %",
                (Series.of("aggregate optimum", trade.sweep, 100 * trade.retained),),
            ),
        ),
    )


def quotient(above: float, below: float) -> float:
    """Return how many times one risk is another; 1 where both are 0."""
    if below > 0:
        return above / below
    return 1.0 if above == 0 else math.inf
