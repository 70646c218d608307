"""Plots of the experiments on recoding: what is claimed, what this run found, and the lines that show it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.kernels.recoding.local.algorithms import PARTITIONS
from privrisk_spark.kernels.recoding.searches import SEARCHES
from privrisk_spark.reporting.numbers import percent, rounded
from privrisk_spark.results.plots import Panel, Plot, Series
from reproduce.recoding.algorithms import COSTS, Outcome
from reproduce.recoding.monotone import Monotone
from reproduce.recoding.risks import ByClasses, Frontier
from reproduce.result import MUCH, held_in_each
from reproduce.texts import all_but_ends_blank, least_to_most

OfClasses = Sequence[tuple[str, int, ByClasses]]

K_LABEL = "k, rows of a class"

PRUNING = ("incognito", "flash")
"""Searches that prune the lattice by monotonicity alone."""


def plots(
    data: str, outcomes: Sequence[Outcome], attacked: OfClasses, monotone: Monotone, frontier: Frontier
) -> tuple[Plot, ...]:
    """All plots of one table's experiments, in the order of the page."""
    found = (
        frontier_plot(frontier),
        loss_plot(outcomes),
        nodes_plot(outcomes, monotone.nodes),
        time_plot(outcomes),
        risk_plot(attacked),
    )
    return tuple(replace(plot, data=data) for plot in found)


def frontier_plot(found: Frontier) -> Plot:
    """k-anonymity against optimal disclosures at equal utility, under the officer's risk (F12 Fig. 4.12)."""
    below = [share for share in found.matched_below.tolist() if math.isfinite(share)]
    sentence = (
        f"At the same mean utility the recoded tables have {ratios(found.recoded_risk, found.optimal_risk)} times the "
        "least mean risk there is; with their mean utility as the least of every record, optimal disclosures have less "
        f"risk than {int((found.matched_risk <= found.recoded_risk).sum())} of {len(found.method)} of them."
        if found.method
        else "No table was recoded."
    )
    if below:
        sentence += (
            f" These are no k-anonymous tables: {least_to_most([100 * share for share in below])} % of their rows are "
            "in classes of fewer than k rows. The officer's risk weighs what is disclosed, and k does not."
        )
    points = [
        Series.of(
            name,
            [risk for risk, of in zip(found.recoded_risk.tolist(), found.method, strict=True) if of == name],
            [utility for utility, of in zip(found.recoded_utility.tolist(), found.method, strict=True) if of == name],
            points=True,
            labels=all_but_ends_blank(
                [f"k = {k}" for k, of in zip(found.anonymity.tolist(), found.method, strict=True) if of == name]
            )
            if name == "best"
            else (),
        )
        for name in dict.fromkeys(found.method)
    ]
    return Plot(
        key="recoding-frontier",
        title="k-anonymity against optimal disclosures",
        figure="Fouad 2012, Fig. 4.12",
        found=sentence,
        panels=(
            Panel(
                f"model {found.model}",
                "mean risk",
                "mean utility",
                (
                    Series.of("least mean risk", found.mean_risk, found.mean_utility),
                    Series.of("optimum, every record at least", found.risk, found.utility),
                    *points,
                ),
                log_x=True,
            ),
        ),
    )


def ratios(risks: FloatArray, others: FloatArray) -> str:
    """The least and the greatest ratio of two risks, where the second is one."""
    there = others > 0
    return least_to_most((risks[there] / others[there]).tolist()) if there.any() else "any number of"


def loss_plot(outcomes: Sequence[Outcome]) -> Plot:
    """What every algorithm costs, by k, over all metrics."""
    mondrian, best = (
        [one.cost("loss") for one in outcomes if one.method == name and one.metric in ("loss", "")]
        for name in ("mondrian", "best")
    )
    sentence = (
        f"The optimal scheme loses {least_to_most([of for of in best if not math.isnan(of)])}, Mondrian "
        f"{least_to_most([of for of in mondrian if not math.isnan(of)])}."
        if any(not math.isnan(of) for of in best) and any(not math.isnan(of) for of in mondrian)
        else "There is a k for which nothing keeps the limit."
    )
    shown = ("best", "samarati", "datafly", *PARTITIONS)
    return Plot(
        key="recoding-loss",
        title="What algorithms cost",
        figure="LeFevre et al. 2006",
        found=sentence,
        panels=tuple(
            Panel(
                metric,
                K_LABEL,
                metric,
                _lines(outcomes, shown, metric, partial(Outcome.cost, metric=metric)),
                log_x=True,
                log_y=metric in ("aecs", "dm"),
            )
            for metric in COSTS
        ),
    )


def nodes_plot(outcomes: Sequence[Outcome], nodes: int) -> Plot:
    """Share of the lattice each search evaluates, by k."""
    names = [name for name in SEARCHES if name != "exhaustive"]
    each = []
    for name in names:
        shares = [one.nodes / nodes for one in outcomes if one.method == name and one.metric and one.found]
        if shares:
            each.append(f"{name} {percent(min(shares))} to {percent(max(shares))}")
    return Plot(
        key="recoding-nodes",
        title="Nodes evaluated",
        figure="Raschia 2023",
        claims=(
            (
                "The lattice can be pruned by monotonicity: Incognito and Flash look at half of it at most.",
                held_in_each([MUCH * one.nodes <= nodes for one in outcomes if one.found and one.method in PRUNING]),
            ),
        ),
        found=f"Of {nodes:,} nodes, over metrics and k: {', '.join(each)}." if each else "Nothing keeps the limit.",
        panels=tuple(
            Panel(
                metric,
                K_LABEL,
                "nodes evaluated",
                _lines(outcomes, names, metric, lambda one: one.nodes),
                log_x=True,
                log_y=True,
            )
            for metric in COSTS
        ),
    )


def time_plot(outcomes: Sequence[Outcome]) -> Plot:
    """CPU time of each algorithm, by k."""
    names = [*SEARCHES, *PARTITIONS]
    each = []
    for name in names:
        times = [one.seconds for one in outcomes if one.method == name]
        each.append(f"{name} {rounded(sum(times) / len(times))} s" if times else "")
    return Plot(
        key="recoding-time",
        title="Time",
        figure="Kohlmayer et al. 2012",
        found=f"Mean over metrics and k: {', '.join(filter(None, each))}.",
        panels=(
            Panel(
                "searches by loss",
                K_LABEL,
                "s",
                _lines(outcomes, list(SEARCHES), "loss", lambda one: one.seconds),
                log_x=True,
                log_y=True,
            ),
            Panel(
                "local recoding",
                K_LABEL,
                "s",
                _lines(outcomes, list(PARTITIONS), "", lambda one: one.seconds),
                log_x=True,
                log_y=True,
            ),
        ),
        measured=True,
    )


def risk_plot(attacked: OfClasses) -> Plot:
    """What two attackers make of the releases, by k."""
    names = list(dict.fromkeys(method for method, _, _ in attacked))
    means = [risks.prosecutor_mean * k for _, k, risks in attacked]
    sentence = (
        f"The mean prosecutor risk is {least_to_most(means)} times 1/k. The planning attacker succeeds with "
        f"{least_to_most([100 * risks.reidentified for _, _, risks in attacked])} % of the rows."
        if means
        else "Nothing was released."
    )

    def series(value: Callable[[ByClasses], float]) -> tuple[Series, ...]:
        return tuple(
            Series.of(
                name,
                [k for method, k, _ in attacked if method == name],
                [value(risks) for method, _, risks in attacked if method == name],
            )
            for name in names
        )

    return Plot(
        key="recoding-risk",
        title="What attackers make of it",
        figure="Raschia 2023; Xia et al. 2015",
        found=sentence,
        panels=(
            Panel(
                "prosecutor",
                K_LABEL,
                "mean of 1/f",
                series(lambda risks: risks.prosecutor_mean),
                log_x=True,
                log_y=True,
            ),
            Panel(
                "planning attacker", K_LABEL, "mean probability", series(lambda risks: risks.reidentified), log_x=True
            ),
        ),
    )


def _lines(
    outcomes: Sequence[Outcome], names: Sequence[str], metric: str, value: Callable[[Outcome], float]
) -> tuple[Series, ...]:
    """A line an algorithm, by k: of searches those by a metric, of local recoding all."""
    found = []
    for name in names:
        of = [one for one in outcomes if one.method == name and one.metric in (metric, "")]
        values = [value(one) if one.found else math.nan for one in of]
        found.append(Series.of(name, [one.k for one in of], values))
    return tuple(found)
