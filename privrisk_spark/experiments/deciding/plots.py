"""Plots of the experiments: what Fouad (2012; F12) claims, what this run found, and the lines that show it.

Sentences are made from the figures of the run; nothing in them is fixed but the words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from privrisk_spark.experiments.deciding.effort import SEARCHES, Effort
from privrisk_spark.experiments.deciding.heuristics import EXACT, Genetic
from privrisk_spark.experiments.deciding.risk_utility import MODELS, RiskUtility
from privrisk_spark.experiments.deciding.trade_offs import METHODS, TradeOff
from privrisk_spark.reporting.numbers import least_to_most, milliseconds, percent, rounded
from privrisk_spark.results.plots import Panel, Plot, Series, all_but_ends_blank, lines

FloatArray = npt.NDArray[np.float64]


def plots(
    data: str, attributes: Sequence[str], effort: Effort, risk: RiskUtility, genetic: Genetic, trade: TradeOff
) -> tuple[Plot, ...]:
    """All plots of one table's experiments, in the order of the page."""
    found = [
        frontier_plot(effort),
        visited_plot(effort),
        time_plot(effort),
        risk_utility_plot(risk),
        gap_plot(genetic),
        genetic_time_plot(genetic),
        models_plot(trade),
        models_time_plot(trade),
        bang_bang_plot(trade),
        levels_plot(risk, attributes),
    ]
    return tuple(replace(plot, data=data) for plot in found)


def frontier_plot(effort: Effort) -> Plot:
    """Share of the lattice on the frontier (F12 Fig. 4.11(a))."""
    floor, k = effort.by_floor, effort.by_attributes
    top = int(floor.share.argmax())
    found = (
        f"The frontier is largest at c = {rounded(floor.at[top])}, {percent(floor.share[top])} of the lattice; it is "
        f"{percent(floor.share[0])} at c = {rounded(floor.at[0])} and {percent(floor.share[-1])} at "
        f"c = {rounded(floor.at[-1])}. At c = 0.5 its share goes from {percent(k.share[0])} with {rounded(k.at[0])} "
        f"attributes to {percent(k.share[-1])} with {rounded(k.at[-1])}."
    )
    return Plot(
        key="frontier",
        title="Frontier nodes",
        figure="Fig. 4.11(a)",
        claim="The number of frontier nodes is small or zero where c is very small or very large, and not "
        "proportional to c.",
        found=found,
        panels=tuple(
            Panel(title, label, "share of the lattice", (Series.of("frontier", sweep.at, sweep.share),))
            for title, label, sweep in (
                ("by floor, all attributes", "least utility c, share of the greatest", floor),
                ("by attributes, c = 0.5", "attributes k", k),
            )
        ),
    )


def visited_plot(effort: Effort) -> Plot:
    """Share of the lattice each search evaluates (F12 Fig. 4.11(d))."""
    floor, k = effort.by_floor, effort.by_attributes
    names = list(SEARCHES)
    middle = int(np.abs(floor.at - 0.5).argmin())
    cube, swap, btda, boxes = (names.index(name) for name in names[1:])
    searches = int(floor.records.sum() + k.records.sum())
    missed = int(floor.worse.sum() + k.worse.sum())
    at = floor.part[middle]
    found = (
        f"ARUBA with the printed neighbourhood visits {percent(at[cube])} of the lattice at "
        f"c = {rounded(floor.at[middle])}, with swap moves {percent(at[swap])}, BTDA {percent(at[btda])}; branch and "
        f"bound evaluates {rounded(floor.visited[middle, boxes])} boxes for {rounded(floor.lattice[middle])} nodes. "
        f"The printed ARUBA visits fewer nodes than BTDA {_floors(floor.at[floor.part[:, cube] < floor.part[:, btda]])}"
        f", with swap moves {_floors(floor.at[floor.part[:, swap] < floor.part[:, btda]])}. "
        + (
            f"All of them found the least risk in each of {searches} searches."
            if not missed
            else f"The least risk was missed {missed} times in {searches} searches."
        )
    )
    return Plot(
        key="visited",
        title="Nodes visited",
        figure="Fig. 4.11(d)",
        claim="ARUBA visits fewer nodes of the lattice than BTDA, also at c half of the greatest utility, where it "
        "tends to perform worst.",
        found=found,
        panels=(
            Panel(
                "by floor, all attributes",
                "least utility c, share of the greatest",
                "nodes or boxes over lattice nodes",
                lines(names, floor.at, floor.part),
            ),
            Panel(
                "by attributes, c = 0.5", "attributes k", "nodes or boxes", lines(names, k.at, k.visited), log_y=True
            ),
        ),
    )


def time_plot(effort: Effort) -> Plot:
    """Time of each search (F12 Fig. 4.11(b), (c))."""
    floor, k = effort.by_floor, effort.by_attributes
    names = list(SEARCHES)
    middle = int(np.abs(floor.at - 0.5).argmin())
    cube, swap, btda = (names.index(name) for name in names[1:4])
    each = ", ".join(f"{name} {milliseconds(t)}" for name, t in zip(names, floor.seconds[middle].tolist(), strict=True))
    found = (
        f"Time per record at c = {rounded(floor.at[middle])}: {each}. The printed ARUBA is faster than BTDA "
        f"{_floors(floor.at[floor.seconds[:, cube] < floor.seconds[:, btda]])}, with swap moves "
        f"{_floors(floor.at[floor.seconds[:, swap] < floor.seconds[:, btda]])}."
    )
    panels = (
        ("by floor, all attributes", "least utility c, share of the greatest", floor),
        ("by attributes, c = 0.5", "attributes k", k),
    )
    return Plot(
        key="time",
        title="Time of a search",
        figure="Fig. 4.11(b), (c)",
        claim="ARUBA almost always outperforms BTDA in time, especially for large c, and is comparable with branch and "
        "bound.",
        found=found,
        panels=tuple(
            Panel(title, label, "ms per record", lines(names, sweep.at, 1000 * sweep.seconds), log_y=True)
            for title, label, sweep in panels
        ),
        measured=True,
    )


def risk_utility_plot(risk: RiskUtility) -> Plot:
    """Optimum and k-anonymity in risk and utility (F12 Figs 3.2, 4.12)."""
    parts, widths = [], []
    for m, model in enumerate(MODELS):
        before, after = risk.anonymous_risk[m], risk.matched_risk[m]
        if not len(before):
            continue
        ratio = [_ratio(b, a) for b, a in zip(before.tolist(), after.tolist(), strict=True)]
        parts.append(f"model {model}: {least_to_most(ratio)} times")
        widths.append(before - after)
    if parts:
        worse = sum(int((width < 0).sum()) for width in widths)
        always = "never has more risk" if not worse else f"has more risk in {worse} of {sum(map(len, widths))} cases"
        first, last = widths[0][0], widths[0][-1]
        way = "falls" if last < first else "rises"
        found = (
            f"At no less utility the optimum {always}. The k-anonymous table has more mean risk by "
            f"{'; '.join(parts)}. The difference in model {MODELS[0]} {way} from {rounded(first)} at "
            f"k = {risk.anonymity[0]} to {rounded(last)} at k = {risk.anonymity[-1]}."
        )
    else:
        found = "No level vector makes the table k-anonymous for the k asked for, or there are too many to try."
    if risk.infeasible.any():
        least = int(risk.infeasible.argmax())
        found += (
            f" At c = {rounded(risk.floors[least])} {rounded(risk.infeasible[least])} of {rounded(risk.rows)} rows are "
            "out of reach and suppressed."
        )
    return Plot(
        key="risk-utility",
        title="Risk and utility against k-anonymity",
        figure="Figs. 3.2 and 4.12",
        claim="Optimal disclosures consistently outperform k-anonymity (ten arbitrary k-anonymous tables for each k; "
        "here the most useful one) whatever the risk model, and the difference in risk becomes larger as k increases.",
        found=found,
        panels=tuple(
            Panel(
                f"model {model}",
                "mean risk",
                "mean utility",
                (
                    Series.of("optimum, c varies", risk.risk[m], risk.utility[m]),
                    Series.of(
                        "k-anonymity, one level vector for all",
                        risk.anonymous_risk[m],
                        risk.anonymous_utility,
                        points=True,
                        labels=all_but_ends_blank([f"k = {k}" for k in risk.anonymity.tolist()]),
                    ),
                ),
                log_x=True,
            )
            for m, model in enumerate(MODELS)
        ),
    )


def gap_plot(genetic: Genetic) -> Plot:
    """Risk of the genetic search above the least (F12 Fig. 4.14)."""
    small, large = 0, len(genetic.budgets) - 1
    names = _budget_names(genetic)
    at = f"with {rounded(genetic.attributes[-1])} attributes"

    def told(b: int) -> str:
        return (
            f"{names[b]} are {percent(genetic.mean_gap[-1, b])} above the least risk in the mean and "
            f"{percent(genetic.greatest_gap[-1, b])} at worst, optimal for {percent(genetic.optimal[-1, b])} of the "
            "searches"
        )

    over = int((genetic.greatest_gap > 0.07).sum())
    found = (
        f"{at.capitalize()}, {told(small)}; {told(large)}. A record loses more than 7 % in {over} of "
        f"{genetic.greatest_gap.size} combinations of attributes and budget; the largest loss is "
        f"{percent(genetic.greatest_gap.max())}."
    )
    panels = (("mean over searches", genetic.mean_gap), ("worst search", genetic.greatest_gap))
    return Plot(
        key="genetic-gap",
        title="Accuracy of the genetic search",
        figure="Fig. 4.14",
        claim="The genetic search sacrifices 7 % of risk at worst.",
        found=found,
        panels=tuple(
            Panel(title, "attributes k", "risk above the least, %", lines(names, genetic.attributes, 100 * gap))
            for title, gap in panels
        ),
    )


def genetic_time_plot(genetic: Genetic) -> Plot:
    """Time of the genetic and the exact searches (F12 Fig. 4.13)."""
    names = _budget_names(genetic)
    exact = ", ".join(
        f"{name} {milliseconds(t)}" for name, t in zip(EXACT, genetic.exact_seconds[-1].tolist(), strict=True)
    )
    found = (
        f"With {rounded(genetic.attributes[-1])} attributes, {names[0]} took {milliseconds(genetic.seconds[-1, 0])} "
        f"per record, {names[-1]} {milliseconds(genetic.seconds[-1, -1])}; {exact}."
    )
    panel = Panel(
        "mean over searches",
        "attributes k",
        "ms per record",
        (
            *lines(names, genetic.attributes, 1000 * genetic.seconds),
            *lines(EXACT, genetic.attributes, 1000 * genetic.exact_seconds),
        ),
        log_y=True,
    )
    return Plot(
        key="genetic-time",
        title="Time of the genetic search",
        figure="Fig. 4.13",
        claim="The genetic search is much more efficient than ARUBA in terms of time.",
        found=found,
        panels=(panel,),
        measured=True,
    )


def models_plot(trade: TradeOff) -> Plot:
    """Risks of the aggregate and the threshold model at equal mean utility (F12 Fig. 5.1(b)-(d))."""
    titles = ("mean risk", "greatest risk", "least risk")
    below = trade.utility < trade.utility.max(initial=0.0)
    between = below & (trade.utility > trade.utility.min(initial=math.inf))
    ratios = [
        _ratio(a, t)
        for a, t in zip(
            trade.aggregate_risk[between, 0].tolist(), trade.threshold_risk[between, 0].tolist(), strict=True
        )
    ]
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
        figure="Fig. 5.1(b) to (d)",
        claim="The aggregate model and the threshold model have comparable risks, be it the mean, the highest or the "
        "lowest of the records.",
        found=found,
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
    return Plot(
        key="models-time",
        title="Time of the aggregate model",
        figure="Fig. 5.1(a)",
        claim="The aggregate model, with a supermodular objective, significantly outperforms the threshold model in "
        "running time.",
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
        figure="eq. 5.4",
        claim="λ sets the exchange rate between low risk and utility; no sweep of it is reported.",
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


def levels_plot(risk: RiskUtility, attributes: Sequence[str]) -> Plot:
    """Levels chosen by attribute (F12 Fig. 3.8)."""
    share = risk.chosen / np.maximum(risk.heights, 1)
    middle = int(np.abs(risk.floors - risk.heights.sum() / 2).argmin())
    order = np.argsort(share[middle], kind="stable")
    way = "falls" if share[-1].mean() < share[0].mean() else "goes"
    falling = int((np.diff(share, axis=0) <= 1e-9).all(axis=0).sum())
    found = (
        f"The mean level {way} from {percent(float(share[0].mean()))} of the height at c = {rounded(risk.floors[0])} "
        f"to {percent(float(share[-1].mean()))} at c = {rounded(risk.floors[-1])}, never rising for {falling} of "
        f"{len(attributes)} attributes. At c = {rounded(risk.floors[middle])} {attributes[order[-1]]} is generalized "
        f"most ({percent(share[middle, order[-1]])} of its height) and {attributes[order[0]]} least "
        f"({percent(share[middle, order[0]])})."
    )
    return Plot(
        key="levels",
        title="Levels chosen",
        figure="Fig. 3.8",
        claim="The tendency to release actual data grows with the least utility, at a pace that depends on the "
        "attribute.",
        found=found,
        panels=(
            Panel(
                "risk model I",
                "least utility c, generalization steps",
                "mean level over height, %",
                lines(attributes, risk.floors, 100 * share),
            ),
        ),
    )


def _budget_names(genetic: Genetic) -> list[str]:
    return [f"{population} paths × {generations} generations" for population, generations in genetic.budgets.tolist()]


def _ratio(above: float, below: float) -> float:
    if below > 0:
        return above / below
    return 1.0 if above == 0 else math.inf


def _floors(at: FloatArray) -> str:
    return "at no c" if not len(at) else "at c = " + ", ".join(rounded(value) for value in at.tolist())
