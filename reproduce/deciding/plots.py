"""Plots of the experiments: what Fouad (2012; F12) claims, whether it holds in this run, and the lines that show it.

Verdicts and sentences are made from the figures of the run; nothing in them is fixed but the words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.reporting.numbers import percent, rounded
from privrisk_spark.results.plots import Panel, Plot, Series, lines
from reproduce.deciding.effort import SEARCHES, Effort, Sweep
from reproduce.deciding.heuristics import EXACT, SACRIFICED, Genetic
from reproduce.deciding.model_plots import bang_bang_plot, models_plot, models_time_plot, quotient
from reproduce.deciding.risk_utility import MODELS, RiskUtility
from reproduce.deciding.trade_offs import TradeOff
from reproduce.result import LITTLE, MUCH, held_in_each, judged
from reproduce.texts import all_but_ends_blank, least_to_most, milliseconds


def plots(
    data: str, attributes: Sequence[str], effort: Effort, risk: RiskUtility, genetic: Genetic, trade: TradeOff
) -> tuple[Plot, ...]:
    """All plots of one table's experiments, in the order of the page."""
    found = [
        frontier_plot(effort),
        visited_plot(effort),
        time_plot(effort),
        bounding_plot(effort),
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
        figure="Fouad 2012, Fig. 4.11(a)",
        found=found,
        claims=(
            (
                "The number of frontier nodes is small or zero where c is very small or very large.",
                held_in_each(floor.share[[0, -1]] <= LITTLE * floor.share[top]),
            ),
            ("It does not grow in proportion to c.", judged(top < len(floor.at) - 1)),
        ),
        panels=tuple(
            Panel(title, label, "share of the lattice", (Series.of("frontier", sweep.at, sweep.share),))
            for title, label, sweep in _panels_of(effort)
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
        figure="Fouad 2012, Fig. 4.11(d)",
        found=found,
        claims=(
            (
                "ARUBA visits fewer nodes of the lattice than BTDA where c is half of the greatest utility.",
                held_in_each((k.visited[:, cube] < k.visited[:, btda])[_ran(k)]),
            ),
            (
                "ARUBA tends to perform worst where c is half of the greatest utility.",
                judged(floor.visited[:, cube].argmax() == middle),
            ),
        ),
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
    cube, swap, btda, boxes = (names.index(name) for name in names[1:])
    faster = [(sweep.seconds[:, cube] < sweep.seconds[:, btda])[_ran(sweep)] for sweep in (floor, k)]
    each = ", ".join(f"{name} {milliseconds(t)}" for name, t in zip(names, floor.seconds[middle].tolist(), strict=True))
    found = (
        f"Time per record at c = {rounded(floor.at[middle])}: {each}. The printed ARUBA is faster than BTDA "
        f"{_floors(floor.at[floor.seconds[:, cube] < floor.seconds[:, btda]])}, with swap moves "
        f"{_floors(floor.at[floor.seconds[:, swap] < floor.seconds[:, btda]])}."
    )
    return Plot(
        key="time",
        title="Time of a search",
        figure="Fouad 2012, Fig. 4.11(b), (c)",
        found=found,
        claims=(
            ("ARUBA almost always outperforms BTDA in time as c grows.", held_in_each(faster[0])),
            ("It does where c is half of the greatest utility, as attributes are added.", held_in_each(faster[1])),
            (
                "There its time is comparable with that of branch and bound.",
                held_in_each((k.seconds[:, cube] <= MUCH * k.seconds[:, boxes])[_ran(k)]),
            ),
        ),
        panels=tuple(
            Panel(title, label, "ms per record", lines(names, sweep.at, 1000 * sweep.seconds), log_y=True)
            for title, label, sweep in _panels_of(effort)
        ),
        measured=True,
    )


def bounding_plot(effort: Effort) -> Plot:
    """Risk and time of branch and bound and of brute force (F12 Fig. 3.7)."""
    floor, k = effort.by_floor, effort.by_attributes
    names = list(SEARCHES)
    two = [names.index(name) for name in ("enumeration", "branch and bound")]
    brute, bounded = (np.concatenate([floor.seconds[:, j], k.seconds[:, j]]) for j in two)
    least, found_risk = (np.concatenate([floor.risk[:, j], k.risk[:, j]]) for j in two)
    excess = [quotient(a, b) for a, b in zip(found_risk.tolist(), least.tolist(), strict=True)]
    ratio = [quotient(a, b) for a, b in zip(bounded.tolist(), brute.tolist(), strict=True)]
    found = (
        f"Branch and bound takes {least_to_most(ratio)} times the time of brute force, on lattices of up to "
        f"{rounded(max(floor.lattice.max(), k.lattice.max()))} nodes, and finds {least_to_most(excess)} times the "
        "least risk. Here it is exact, and brute force evaluates all nodes of a lattice at once."
    )
    brought = ["brute force", "branch and bound"]
    panels = [
        Panel(f"{what} {title}", label, unit, lines(brought, sweep.at, scale * values[:, two]), log_y=True)
        for title, label, sweep in _panels_of(effort)
        for what, unit, scale, values in (
            ("risk", "mean risk", 1, sweep.risk),
            ("time", "ms per record", 1000, sweep.seconds),
        )
    ]
    return Plot(
        key="bounding",
        title="Branch and bound against brute force",
        figure="Fouad 2012, Fig. 3.7",
        found=found,
        claims=(
            ("Branch and bound is superior in time compared to brute force.", held_in_each(bounded < brute)),
            (
                "It finds no significantly greater risk.",
                held_in_each(np.array(excess) <= 1 + LITTLE),
            ),
        ),
        panels=tuple(panels),
        measured=True,
    )


def risk_utility_plot(risk: RiskUtility) -> Plot:
    """Optimum and k-anonymity in risk and utility (F12 Figs 3.2, 4.12)."""
    parts, widths = [], []
    for m, model in enumerate(MODELS):
        before, after = risk.anonymous_risk[m], risk.matched_risk[m]
        if not len(before):
            continue
        ratio = [quotient(b, a) for b, a in zip(before.tolist(), after.tolist(), strict=True)]
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
        figure="Fouad 2012, Figs. 3.2 and 4.12",
        found=found,
        claims=(
            (
                "Optimal disclosures consistently outperform k-anonymity, whatever the risk model.",
                held_in_each(np.array([width > 0 for of_model in widths for width in of_model], dtype=np.bool_)),
            ),
            (
                "The difference in risk becomes larger as k increases, from the least k to the greatest.",
                held_in_each([of_model[-1] > of_model[0] for of_model in widths if len(of_model) > 1]),
            ),
        ),
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

    over = int((genetic.greatest_gap > SACRIFICED).sum())
    found = (
        f"{at.capitalize()}, {told(small)}; {told(large)}. A record loses more than 7 % in {over} of "
        f"{genetic.greatest_gap.size} combinations of attributes and budget; the largest loss is "
        f"{percent(genetic.greatest_gap.max())}."
    )
    panels = (("mean over searches", genetic.mean_gap), ("worst search", genetic.greatest_gap))
    return Plot(
        key="genetic-gap",
        title="Accuracy of the genetic search",
        figure="Fouad 2012, Fig. 4.14",
        found=found,
        claims=(
            (
                "The genetic search sacrifices 7 % of risk at worst, in the mean over records.",
                judged((genetic.mean_gap <= SACRIFICED).all()),
            ),
            (
                "The genetic search sacrifices 7 % of risk at worst, of any record.",
                judged((genetic.greatest_gap <= SACRIFICED).all()),
            ),
        ),
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
    budget, cube = genetic.sufficient, genetic.exact_seconds[:, EXACT.index("ARUBA, cube")]
    k = np.flatnonzero((budget >= 0) & ~np.isnan(cube))
    probed, unprobed = genetic.seconds[k, budget[k]], genetic.unprobed_seconds[k, budget[k]]
    found = (
        f"With {rounded(genetic.attributes[-1])} attributes, {names[0]} took {milliseconds(genetic.seconds[-1, 0])} "
        f"per record, {names[-1]} {milliseconds(genetic.seconds[-1, -1])}; {exact}. "
    )
    if len(k):
        found += (
            f"The cheapest budget that is within {percent(SACRIFICED)} of the least risk in the mean takes "
            f"{least_to_most((probed / cube[k]).tolist())} times the time of the printed ARUBA. Without probing, from "
            f"one path only, it takes {least_to_most((unprobed / probed).tolist())} times as long, and is up to "
            f"{percent(genetic.unprobed_gap[k, budget[k]].max())} above the least risk in the mean."
        )
    else:
        found += f"No budget is within {percent(SACRIFICED)} of the least risk in the mean."
    panel = Panel(
        "mean over searches",
        "attributes k",
        "ms per record",
        (
            *lines(names, genetic.attributes, 1000 * genetic.seconds),
            *lines([f"{name}, no probing" for name in names], genetic.attributes, 1000 * genetic.unprobed_seconds),
            *lines(EXACT, genetic.attributes, 1000 * genetic.exact_seconds),
        ),
        log_y=True,
    )
    return Plot(
        key="genetic-time",
        title="Time of the genetic search",
        figure="Fouad 2012, Fig. 4.13",
        found=found,
        claims=(
            (
                "The genetic search is much more efficient than ARUBA in terms of time.",
                held_in_each(MUCH * probed <= cube[k]),
            ),
            ("Probing has a positive impact on the running time.", held_in_each(probed < unprobed)),
            (
                "That impact is not significant compared to the improvement over ARUBA.",
                held_in_each(MUCH * np.abs(unprobed - probed) <= cube[k] - probed),
            ),
        ),
        panels=(panel,),
        measured=True,
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
        figure="Fouad 2012, Fig. 3.8",
        claims=(
            (
                "The tendency to release actual data grows with the least utility.",
                held_in_each(np.diff(share, axis=0) <= 1e-9),
            ),
            (
                "Its pace depends on the attribute.",
                judged(share[middle].max() - share[middle].min() > LITTLE),
            ),
        ),
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


def _panels_of(effort: Effort) -> tuple[tuple[str, str, Sweep], ...]:
    return (
        ("by floor, all attributes", "least utility c, share of the greatest", effort.by_floor),
        ("by attributes, c = 0.5", "attributes k", effort.by_attributes),
    )


def _ran(sweep: Sweep) -> npt.NDArray[np.bool_]:
    """Points at which the printed ARUBA was run."""
    ran: npt.NDArray[np.bool_] = ~np.isnan(sweep.seconds[:, list(SEARCHES).index("ARUBA, cube")])
    return ran


def _budget_names(genetic: Genetic) -> list[str]:
    return [f"{population} paths × {generations} generations" for population, generations in genetic.budgets.tolist()]


def _floors(at: FloatArray) -> str:
    return "at no c" if not len(at) else "at c = " + ", ".join(rounded(value) for value in at.tolist())
