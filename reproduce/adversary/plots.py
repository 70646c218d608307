"""Plots of the case study: what Xia et al. (2015; X15) claim, what this run found, and the lines that show it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray
from privrisk_spark.reporting.numbers import percent, rounded
from privrisk_spark.results.plots import Panel, Plot, Series, lines
from reproduce.adversary.case_study import (
    BASELINE,
    CONSTANT,
    DETERRED,
    GROWING,
    LARGE,
    ONCE,
    PUBLISHED_SECONDS,
    SETTINGS,
    STUDY,
    TOLD,
    ByGroup,
    Changed,
    Deterred,
    OfTable,
    Runtime,
)
from reproduce.result import held_in_each
from reproduce.texts import milliseconds

_NAMES = tuple(SETTINGS)
_BY_SIZE = "candidates in the registry"


def plots(data: str, table: OfTable, change: Changed, time: Runtime, groups: ByGroup) -> tuple[Plot, ...]:
    """Plots of one table, in the order of the page."""
    found = [groups_plot(table, change), runtime_plot(time), risk_plot(groups, table), unknown_plot(table, change)]
    return tuple(replace(plot, data=data) for plot in found)


def plots_of_none(groups: ByGroup, deterrents: Deterred) -> tuple[Plot, ...]:
    """Plots that need no table."""
    return payoff_plot(groups), exploits_plot(groups), costs_plot(deterrents), deterrence_plot(deterrents)


def groups_plot(table: OfTable, change: Changed) -> Plot:
    """Distribution of group sizes (X15 §7.2.2)."""
    few, many = change.codes[0], change.codes[-1]
    found = (
        f"{percent(table.large)} of {table.records:,} records have more than {LARGE} candidates, "
        f"{percent(table.with_size[0] / table.records)} none. With {rounded(few)} postal codes for as many people as "
        f"have 808, {percent(change.large[0])} would be expected to have more, and {percent(change.attacked[0])} to "
        f"be attacked; with {rounded(many)}, {percent(change.large[-1])} and {percent(change.attacked[-1])}."
    )
    shown = np.cumsum(table.with_size) / table.records
    return Plot(
        key="groups",
        title="Group sizes",
        figure="Xia et al. 2015, §7.2.2",
        found=found,
        panels=(
            Panel(
                "this registry",
                _BY_SIZE,
                "records with so many or fewer, %",
                (Series.of("records", table.sizes, 100 * shown),),
            ),
            Panel(
                "other numbers of postal codes",
                "codes for as many people as have 808",
                "expected share of the records, %",
                (
                    Series.of(f"more than {LARGE} candidates", change.codes, 100 * change.large),
                    Series.of(f"attacked, {ONCE}", change.codes, 100 * change.attacked),
                ),
                log_x=True,
            ),
        ),
    )


def runtime_plot(time: Runtime) -> Plot:
    """Time to assess records (X15 Figure 5)."""
    at = int(np.flatnonzero(time.rows == 500_000)[0])
    seconds = float(time.seconds[at])
    told = " and ".join(f"{rounded(value)} s ({name})" for name, value in PUBLISHED_SECONDS.items())
    found = (
        f"Solving the process by its recurrence and assessing {time.records:,} records took {milliseconds(seconds)} at "
        f"500,000 rows and {milliseconds(time.seconds[-1])} at {time.rows[-1]:,}, with {time.distinct:,} different "
        f"beliefs. The paper's times are {told}, of other machines; the project's benchmark runs linear programs "
        "beside the recurrence."
    )
    return Plot(
        key="runtime",
        title="Time of the solution",
        figure="Xia et al. 2015, Fig. 5",
        found=found,
        panels=(
            Panel(
                "group size not known",
                "rows of the registry",
                "seconds",
                (
                    Series.of("recurrence, this run", time.rows, time.seconds),
                    *(
                        Series.of(name, (500_000.0,), (value,), points=True)
                        for name, value in PUBLISHED_SECONDS.items()
                    ),
                ),
                log_x=True,
                log_y=True,
            ),
        ),
        measured=True,
    )


def risk_plot(groups: ByGroup, table: OfTable) -> Plot:
    """Risk by group size, known (X15 Figure 6)."""
    baseline, planned = groups.risk[-1] > 0, groups.risk[[_NAMES.index(CONSTANT), _NAMES.index(ONCE)]]
    exceeds = int((groups.risk[-1] > groups.risk[:-1] + 1e-12).any(axis=0).sum())
    told = "; ".join(
        f"{name}: {percent(share)}, {rounded(mean)}"
        for name, share, mean in zip(
            (*_NAMES, BASELINE), table.attacked.tolist(), table.mean_risk.tolist(), strict=True
        )
    )
    found = (
        f"The baseline's risk exceeds a planned attack's at {exceeds} of {len(groups.sizes)} group sizes and for "
        f"{rounded(table.exceeding)} of the records. Share of the records attacked, and mean risk, are {told}."
    )
    return Plot(
        key="risk",
        title="Risk by group size",
        figure="Xia et al. 2015, Fig. 6, findings 1 to 3",
        found=found,
        claims=(
            ("The baseline's risk falls with the group size.", held_in_each(np.diff(groups.risk[-1][baseline]) < 0)),
            (
                f"With constant detection the risk of a planned attack is the prior, {STUDY.prior:.2f}, or 0.",
                held_in_each(np.abs(planned[planned > 0] - STUDY.prior) < 0.005),
            ),
        ),
        panels=(
            Panel("known group size", _BY_SIZE, "risk", lines((*_NAMES, BASELINE), groups.sizes, groups.risk.T)),
            Panel(
                "records",
                _BY_SIZE,
                "records with so many",
                (Series.of("records", table.sizes, table.with_size),),
            ),
        ),
    )


def payoff_plot(groups: ByGroup) -> Plot:
    """Expected payoff by group size (X15 Figure 7)."""
    at = min(9, len(groups.sizes) - 1)
    kept = groups.payoff[:, at] / groups.payoff[:, 0]
    paying = [int((row > 0).sum()) for row in groups.payoff]
    told = ", ".join(f"{percent(share)} with {name}" for name, share in zip(_NAMES, kept.tolist(), strict=False))
    above = int(((groups.payoff[-1] > groups.payoff[:-1]) & (groups.payoff[-1] > 0)).any(axis=0).sum())
    found = (
        f"With {groups.sizes[at]} candidates the baseline keeps {percent(kept[-1])} of what one candidate pays, a "
        f"planned attack {told}. An attack pays up to {paying[-1]} candidates for the baseline, and up to "
        f"{', '.join(map(str, paying[:-1]))}. The baseline, which is not discounted (eq. 7), "
        f"expects more than a planned attack at {above} of its group sizes."
    )
    shown = np.where(groups.payoff > -STUDY.cost_access, groups.payoff, np.nan)
    return Plot(
        key="payoff",
        title="Expected payoff by group size",
        figure="Xia et al. 2015, Fig. 7",
        found=found,
        claims=(
            (
                "The baseline adversary's expected payoff drops faster with the group size than that of one who plans.",
                held_in_each(kept[-1] < kept[:-1]),
            ),
        ),
        panels=(
            Panel(
                "known group size", _BY_SIZE, "expected payoff, $", lines((*_NAMES, BASELINE), groups.sizes, shown.T)
            ),
        ),
    )


def exploits_plot(groups: ByGroup) -> Plot:
    """Candidates exploited by group size, and the plan where detection grows (X15 Figure 8)."""
    first, last = partial(groups)
    told = "; ".join(
        f"{name}: none from {known} on, and from {sunk} on once access is paid"
        for name, known, sunk in zip(_NAMES, groups.known.tolist(), groups.sunk.tolist(), strict=True)
    )
    found = (
        f"{told}. With {GROWING} all are exploited below {first} candidates, some from {first} to {last - 1}, and none "
        f"from {last} on: k = {first}, k' = {last}."
        if first
        else f"{told}. With {GROWING} no group is exploited in part."
    )
    inside = groups.least_left > 0
    return Plot(
        key="exploits",
        title="Candidates exploited",
        figure="Xia et al. 2015, Fig. 8, findings 2 and 3",
        found=found,
        panels=(
            Panel("if none is the right one", _BY_SIZE, "exploited", lines(_NAMES, groups.sizes, groups.exploited.T)),
            Panel(
                f"plan once inside, {GROWING}",
                _BY_SIZE,
                "candidates left",
                (
                    Series.of("all, before the first exploit", groups.sizes[inside], groups.sizes[inside]),
                    Series.of(
                        "fewest at which he still exploits",
                        groups.sizes[inside],
                        groups.least_left[inside],
                    ),
                ),
            ),
        ),
    )


def partial(groups: ByGroup) -> tuple[int, int]:
    """First group size exploited in part where detection grows, and the first after it not attacked; 0 if none."""
    growing = groups.exploited[_NAMES.index(GROWING)]
    some = np.flatnonzero((growing > 0) & (growing < groups.sizes - 1e-9))
    return (int(groups.sizes[some[0]]) if len(some) else 0), int(groups.known[_NAMES.index(GROWING)])


def unknown_plot(table: OfTable, change: Changed) -> Plot:
    """Records at another risk where group sizes are not known (X15 Figure 9)."""
    other = table.lower + table.higher
    split = table.lower / other if other else 0.0
    both = change.lower + change.higher
    meets = _at_spread(crossing(change.spreads, change.lower / np.maximum(both, 1e-300), 1118 / 1920))
    differs = _at_spread(crossing(change.spreads, both, 1920 / 32_561))
    found = (
        f"{other:,} records ({percent(other / table.records)}) have another risk, {table.lower:,} ({percent(split)}) "
        f"less and {table.higher:,} more; the others, {percent(1 - other / table.records)}, the same. Who does not "
        f"know the group size pays for access up to {rounded(table.believed)} expected candidates. The registry here "
        "is the uniform sample that he believes in. Where rates of registration are uneven, 58 % of those that differ "
        f"are at less risk if the logarithms of the rates deviate by {meets}, and 5.9 % of the records differ if by "
        f"{differs}."
    )

    def points(name: str, at: FloatArray) -> Series:
        return Series.of(name, at[0], at[1], points=True)

    return Plot(
        key="unknown",
        title="Group size not known",
        figure="Xia et al. 2015, Fig. 9, findings 4 and 5",
        found=found,
        panels=(
            Panel(
                "records with another risk",
                _BY_SIZE,
                "expected candidates",
                (points("less risk", table.lower_at), points("more risk", table.higher_at)),
            ),
            Panel(
                "uneven registration",
                "deviation of log rates",
                "expected share of the records, %",
                (
                    Series.of("less risk", change.spreads, 100 * change.lower),
                    Series.of("more risk", change.spreads, 100 * change.higher),
                ),
            ),
        ),
    )


def crossing(x: FloatArray, y: FloatArray, target: float) -> float:
    """Least x at which the line through points meets a target; NaN if it does nowhere."""
    for i in range(len(y) - 1):
        low, high = sorted((y[i], y[i + 1]))
        if low <= target <= high and high > low:
            return float(x[i] + (target - y[i]) / (y[i + 1] - y[i]) * (x[i + 1] - x[i]))
    return float("nan")


def _at_spread(spread: float) -> str:
    return "nothing drawn" if spread != spread else rounded(spread)


def costs_plot(deterrents: Deterred) -> Plot:
    """Thresholds over costs (X15 Figure 10 a, b)."""
    found = " ".join(
        f"From {rounded(deterrents.values[name][0])} to {rounded(deterrents.values[name][-1])} $ for {what} the "
        f"thresholds fall {_fall(deterrents, name)}."
        for name, what in (("cost_access", "access"), ("cost_exploit", "an exploit"))
    )
    return Plot(
        key="costs",
        title="Thresholds under other costs",
        figure="Xia et al. 2015, Fig. 10(a) and (b)",
        found=found,
        claims=(_less_tolerated(deterrents, "cost_access", "cost_exploit"),),
        panels=(
            _deterrent(deterrents, "cost_access", "access", "cost of access, $"),
            _deterrent(deterrents, "cost_exploit", "exploit", "cost of an exploit, $", log=True),
        ),
    )


def deterrence_plot(deterrents: Deterred) -> Plot:
    """Thresholds over the penalty and the probability of detection (X15 Figure 10 c, d)."""
    told = " and ".join(
        f"{', '.join(map(str, at.tolist()))} at ${rounded(penalty)}"
        for penalty, at in zip(TOLD, deterrents.told.T, strict=True)
    )
    found = (
        f"The least group sizes not attacked are {told} ({'; '.join(_NAMES)}), with a probability of detection of "
        f"{rounded(float(DETERRED.detection(0)))} at the first exploit, which the paper does not state. Over the "
        f"penalty the thresholds fall {_fall(deterrents, 'penalty')}, over the probability "
        f"{_fall(deterrents, 'detection')}."
    )
    return Plot(
        key="deterrence",
        title="Thresholds under other penalties and detection",
        figure="Xia et al. 2015, Fig. 10(c) and (d)",
        found=found,
        claims=(_less_tolerated(deterrents, "penalty", "detection"),),
        panels=(
            _deterrent(deterrents, "penalty", "penalty", "penalty, thousands of $", scale=1_000),
            _deterrent(deterrents, "detection", "detection", "probability of detection", log=True),
        ),
    )


def _less_tolerated(deterrents: Deterred, *names: str) -> tuple[str, str]:
    steps = np.concatenate([np.diff(deterrents.thresholds[name], axis=1).ravel() for name in names])
    return "As what deters is ramped up, the adversary tolerates less risk.", held_in_each(steps <= 0)


def _deterrent(
    deterrents: Deterred, name: str, title: str, label: str, *, log: bool = False, scale: float = 1
) -> Panel:
    thresholds = lines(_NAMES, deterrents.values[name] / scale, deterrents.thresholds[name].T)
    return Panel(title, label, "least size not attacked", thresholds, log_x=log)


def _fall(deterrents: Deterred, name: str) -> str:
    thresholds = deterrents.thresholds[name]
    first, last = (", ".join(map(str, thresholds[:, i].tolist())) for i in (0, -1))
    rising = int((np.diff(thresholds, axis=1) > 0).sum())
    return f"from {first} to {last}" + (f", rising {rising} times" if rising else ", never rising")
