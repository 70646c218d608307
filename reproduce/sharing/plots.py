"""Plots of the experiments on sharing: what is claimed, what this run found, and the lines that show it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from privrisk_spark.reporting.numbers import percent, rounded
from privrisk_spark.results.plots import Panel, Plot, Series
from reproduce.sharing.aggregate import (
    CONSISTENCIES,
    ENUMERATED,
    EXACT,
    HARD,
    LAYERS,
    LEFT_OUT,
    LETTER,
    STOPS,
    Run,
    Sizes,
    Stopped,
    TradedOff,
)
from reproduce.sharing.claims import Shared
from reproduce.sharing.diffusing import DENSE, EGO, INTEGERS, LEAKS, WHOLE, Diffusing
from reproduce.sharing.limits import AccessControl
from reproduce.sharing.trusting import BASELINE, Sensitivity
from reproduce.texts import least_to_most

K_LABEL = "most attributes of a profile, k"
METHODS = (EXACT, ENUMERATED, LAYERS, LETTER, LEFT_OUT)
WAYS = (WHOLE, EGO, INTEGERS)


def plots(found: Shared) -> tuple[Plot, ...]:
    """All plots, in the order of the page."""
    return (
        value_plot(found.runs),
        time_plot(found.runs),
        nodes_plot(found.runs, found.sizes),
        gap_plot(found.stopped),
        shown_plot(found.runs, found.traded),
        access_plot(found.access),
        small_plot(found.access),
        linked_plot(found.access),
        trust_plot(found.trust),
        error_plot(found.diffusing),
        limits_plot(found.diffusing),
        diffusion_time_plot(found.diffusing),
    )


def _panels(
    runs: Sequence[Run], methods: Sequence[str], label: str, value: Callable[[Run], float], *, log_y: bool = False
) -> tuple[Panel, ...]:
    """A panel a consistency, a line a method, over k."""
    found = []
    for consistency in CONSISTENCIES:
        of = [(name, [r for r in runs if r.method == name and r.consistency == consistency]) for name in methods]
        lines = tuple(Series.of(name, [r.k for r in some], [value(r) for r in some]) for name, some in of if some)
        found.append(Panel(f"consistent in {consistency}", K_LABEL, label, lines, log_y=log_y))
    return tuple(found)


def _least_to_most(runs: Sequence[Run], method: str, value: Callable[[Run], float]) -> str:
    values = [value(run) for run in runs if run.method == method]
    return least_to_most(values) if values else "nothing"


def value_plot(runs: Sequence[Run]) -> Plot:
    """What the published algorithm finds, of what there is (F12 Fig. 7.3 b)."""
    told = "; ".join(
        f"{name.partition(', ')[2]} {_least_to_most(runs, name, lambda run: 100 * run.value)} %"
        for name in (LAYERS, LETTER, LEFT_OUT)
    )
    return Plot(
        key="sharing-value",
        title="What Algorithm 8 finds",
        figure="Fouad 2012, Fig. 7.3 (b)",
        found=f"Of the greatest f it finds, on average over the pairs of each k: {told}. Layers and letter are of "
        "pairs with few level vectors.",
        panels=_panels(runs, (LAYERS, LETTER, LEFT_OUT), "f over the exact one's", lambda run: run.value),
    )


def time_plot(runs: Sequence[Run]) -> Plot:
    """What a pair takes (F12 Fig. 7.3 a)."""
    slower = [
        run.seconds / exact.seconds
        for run in runs
        for exact in runs
        if run.method == LEFT_OUT and exact.method == EXACT and (run.k, run.consistency) == (exact.k, exact.consistency)
        if exact.seconds > 0
    ]
    return Plot(
        key="sharing-time",
        title="What a decision takes",
        figure="Fouad 2012, Fig. 7.3 (a)",
        found=f"With its constraint left out it takes {least_to_most(slower)} times the CPU time of the exact one: it "
        "solves a problem for every layer. Layers, letter and enumeration are of pairs with few level vectors."
        if slower
        else "No time was long enough to be measured.",
        panels=_panels(runs, METHODS, "CPU time of a pair, ms", lambda run: 1000 * run.seconds, log_y=True),
        measured=True,
    )


def nodes_plot(runs: Sequence[Run], sizes: Sequence[Sizes]) -> Plot:
    """Level vectors there are, and those looked at."""
    looked = [
        Series.of(f"looked at, {consistency}", [r.k for r in some], [r.visited for r in some])
        for consistency in CONSISTENCIES
        for some in [[r for r in runs if r.method == EXACT and r.consistency == consistency]]
    ]
    there = Series.of("of a pair, median", [one.k for one in sizes], [10**one.nodes for one in sizes])
    exact = [run for run in runs if run.method == EXACT]
    proved, pairs = sum(run.proved for run in exact), sum(run.pairs for run in exact)
    gap = max(run.gap for run in exact)
    return Plot(
        key="sharing-nodes",
        title="What the exact algorithm looks at",
        figure="Fouad 2012, §7.1",
        found=f"{proved:,} of {pairs:,} optima are proved, with {least_to_most([run.visited for run in exact])} level "
        "vectors or boxes looked at on average"
        + ("." if proved == pairs else f"; of the others the gap is at most {percent(gap)}."),
        panels=(Panel("", K_LABEL, "level vectors", (there, *looked), log_y=True),),
    )


def gap_plot(stopped: Sequence[Stopped]) -> Plot:
    """What branch and bound proves by the boxes it may look at."""
    of = {name: [one for one in stopped if one.consistency == name] for name in CONSISTENCIES}
    enough = {name: next((one.boxes for one in some if one.proved == one.pairs), None) for name, some in of.items()}
    told = [
        f"{boxes:,} prove all for '{name}'"
        if boxes
        else f"{of[name][-1].boxes:,} leave {of[name][-1].pairs - of[name][-1].proved:,} for '{name}', with gaps of up "
        f"to {percent(of[name][-1].worst)}"
        for name, boxes in enough.items()
    ]
    first = of["any"][0]
    return Plot(
        key="sharing-gap",
        title="What branch and bound proves when it is ended early",
        figure="",
        found=f"One box proves {first.proved:,} of {first.pairs:,} pairs for 'any', and leaves a gap of at most "
        f"{percent(first.worst)}; {', '.join(told)}.",
        panels=(
            Panel(
                f"λ = {HARD:g}", "boxes a pair, at most", "pairs proved",
                tuple(
                    Series.of(f"consistent in {name}", STOPS, [one.proved / one.pairs for one in some])
                    for name, some in of.items()
                ), log_x=True,
            ),
            Panel(
                "means over all pairs", "boxes a pair, at most", "share of the bound",
                tuple(
                    Series.of(f"{what}, {name}", STOPS, [getattr(one, key) for one in some])
                    for name, some in of.items()
                    for what, key in (("gap", "gap"), ("short of the optimum", "short"))
                ), log_x=True,
            ),
        ),
    )  # fmt: skip


def shown_plot(runs: Sequence[Run], traded: Sequence[TradedOff]) -> Plot:
    """How much is shown, over k and over λ."""
    exact = [run for run in runs if run.method == EXACT]
    over_k = tuple(
        Series.of(f"consistent in {of}", [r.k for r in some], [r.whole / r.pairs for r in some])
        for of in CONSISTENCIES
        for some in [[r for r in exact if r.consistency == of]]
    )
    over_trade_off = tuple(
        Series.of(f"consistent in {of}", [one.trade_off for one in some], [one.shown for one in some])
        for of in CONSISTENCIES
        for some in [[one for one in traded if one.consistency == of]]
    )
    return Plot(
        key="sharing-shown",
        title="How much is shown",
        figure="Fouad 2012, §7.1",
        found=f"Everything is shown in {least_to_most([100 * run.whole / run.pairs for run in exact])} % of the pairs "
        f"at λ = 1. From λ = {rounded(min(one.trade_off for one in traded))} to "
        f"{rounded(max(one.trade_off for one in traded))} the share of levels shown falls from "
        f"{percent(max(one.shown for one in traded))} to {percent(min(one.shown for one in traded))}.",
        panels=(
            Panel("λ = 1", K_LABEL, "pairs in which all is shown", over_k),
            Panel("by λ", "λ", "share of levels shown", over_trade_off, log_x=True),
        ),
    )


def access_plot(found: AccessControl) -> Plot:
    """Loss and utility, by λ and by limits; and what rounding costs."""
    problems = ("most-utility", "least-loss")
    names = {"most-utility": "max U s.t. L ≤ c₁", "least-loss": "min L s.t. U ≥ c₂"}
    of = {problem: [one for one in found.limited if one.problem == problem] for problem in problems}
    curve = tuple(Series.of(names[p], [one.loss for one in of[p]], [one.utility for one in of[p]]) for p in problems)
    traded = Series.of(
        "min L - λU", [one.loss for one in found.traded], [one.utility for one in found.traded], points=True
    )
    gaps = tuple(Series.of(names[p], [one.share for one in of[p]], [one.gap for one in of[p]]) for p in problems)
    half = min(of["least-loss"], key=lambda one: abs(one.share - 0.5))
    return Plot(
        key="sharing-access",
        title="Access control: loss against utility",
        figure="Fouad 2012, §7.4",
        found=f"All three lie on one curve: {percent(half.utility)} of the utility costs {percent(half.loss)} of the "
        f"loss. Over {found.entries:,} values a rounded answer is at most "
        f"{percent(max(one.gap for one in found.limited))} from its bound.",
        panels=(
            Panel("", "share of all loss", "share of all utility", (*curve, traded)),
            Panel("gap to the bound", "limit, share of all", "gap, share of the bound", gaps, log_y=True),
        ),
    )


def small_plot(found: AccessControl) -> Plot:
    """What rounding costs in small instances, beside what is promised."""
    series = tuple(
        Series.of(name, [one.gap for one in some], [one.short for one in some], points=True)
        for name, some in (
            (p, [one for one in found.small if one.problem == p]) for p in ("most-utility", "least-loss")
        )
    )
    optimal = sum(one.short <= 1e-9 for one in found.small)
    return Plot(
        key="sharing-small",
        title="Rounded answers of small instances",
        figure="",
        found=f"HiGHS finds nothing better in {optimal} of {len(found.small)} instances; elsewhere the answer is up to "
        f"{percent(max((one.short for one in found.small), default=0.0))} short of the best. A point below the line is "
        "better than its gap promises.",
        panels=(Panel("", "gap to the bound", "short of the best", series, diagonal="as promised"),),
    )


def linked_plot(found: AccessControl) -> Plot:
    """How connected a network is by what is shown."""
    some = [one for one in found.linked if one.links]
    utility = [one.utility for one in some]
    return Plot(
        key="sharing-connected",
        title="How connected the network is by what is shown",
        figure="Fouad 2012, §7.4.2",
        found=f"With {percent(some[0].utility)} of the levels shown {percent(some[0].largest / some[0].users)} of the "
        f"users are in one part, whose diameter is at least {some[0].diameter}; with {percent(some[-1].utility)} it is "
        f"{percent(some[-1].largest / some[-1].users)}, and {some[-1].diameter}."
        if some
        else "No link shows half of the levels.",
        panels=(
            Panel(
                "", "share of all levels shown", "users in the largest part",
                (Series.of("largest part", utility, [one.largest / one.users for one in some]),),
            ),
            Panel(
                "", "share of all levels shown", "diameter, at least",
                (Series.of("diameter", utility, [one.diameter for one in some]),),
            ),
        ),
    )  # fmt: skip


def trust_plot(found: Sensitivity) -> Plot:
    """How other kinds of trust order the same values."""
    kinds = [one.trust for one in found.trusted if one.trust != BASELINE[0]]

    def lines(value: str) -> tuple[Series, ...]:
        return tuple(
            Series.of(kind, [one.share for one in some], [getattr(one, value) for one in some])
            for kind, some in ((kind, [one for one in found.ordered if one.trust == kind]) for kind in kinds)
        )

    others = [one for one in found.decided if (one.trust, one.exposure) != BASELINE]
    return Plot(
        key="sharing-trust",
        title="What decisions owe to the kind of trust",
        figure="Fouad 2012, §7.4.1",
        found=f"Another kind of trust, or another f, changes {least_to_most([100 * one.changed for one in others])} % "
        f"of the values at the same λ, and shows {least_to_most([100 * one.utility for one in others])} % of all there "
        f"is. At half of the utility {least_to_most([100 * one.moved for one in others])} % of the values are shown "
        f"otherwise, which costs {least_to_most([100 * one.excess for one in others])} % more than need be if "
        f"'{BASELINE[0]}' is right.",
        panels=(
            Panel("", "utility, share of all", "values shown otherwise", lines("moved")),
            Panel("", "utility, share of all", "loss in excess", lines("excess")),
        ),
    )


def error_plot(found: Diffusing) -> Plot:
    """How far the three computations are from the dense exponential, beside what they say."""
    largest = [one for one in found.computed if one.users == found.users and one.method != DENSE]
    panels = []
    for leak in LEAKS:
        lines = []
        for way in WAYS:
            some = [one for one in largest if one.leak == leak and one.method == way]
            lines.append(Series.of(way, [one.time for one in some], [one.error for one in some]))
            lines.append(
                Series.of(f"{way}: bound", [one.time for one in some], [one.bound for one in some], points=True)
            )
        panels.append(Panel(leak, "time t", "1-norm of a row's error", tuple(lines), log_x=True, log_y=True))
    worst = max(one.error for one in largest if one.method != EGO)
    local = [one for one in largest if one.method == EGO]
    enough = max((one.time for one in local if one.error <= 0.01 and one.leak == "stochastic"), default=math.nan)
    held = sum(one.held for one in found.computed if one.method != DENSE)
    return Plot(
        key="sharing-diffusion",
        title="Diffusion in three ways against the dense exponential",
        figure="Fouad 2012, §7.3",
        found=f"{held} of {sum(one.method != DENSE for one in found.computed)} are within what they say. On the whole "
        f"graph a series is off by at most {rounded(worst)}. An ego network loses what leaves it: up to t = "
        f"{rounded(enough)} at most 1 % of a row under the stochastic L.",
        panels=tuple(panels),
    )


def limits_plot(found: Diffusing) -> Plot:
    """From the identity to the limit, under both matrices."""
    panels = tuple(
        Panel(
            leak,
            "time t",
            "greatest 1-norm of a row's difference",
            (
                Series.of("from the start", [one.time for one in some], [one.moved for one in some]),
                Series.of("from the limit", [one.time for one in some], [one.left for one in some]),
            ),
            log_x=True,
            log_y=True,
        )
        for leak, some in ((leak, [one for one in found.kernels if one.leak == leak]) for leak in LEAKS)
    )
    ends = {leak: [one for one in found.kernels if one.leak == leak][-1] for leak in LEAKS}
    return Plot(
        key="sharing-limits",
        title="The two matrices that the thesis calls L",
        figure="Fouad 2012, §7.3",
        found=f"A - D and D⁻¹A - I are two matrices, with two kernels. At t = {rounded(ends['laplacian'].time)} the "
        f"first is {rounded(ends['laplacian'].left)} from its limit, all users alike, the second "
        f"{rounded(ends['stochastic'].left)} from its own, in proportion to friends.",
        panels=panels,
    )


def diffusion_time_plot(found: Diffusing) -> Plot:
    """What a row takes by the number of users."""
    panels = tuple(
        Panel(
            leak,
            "users",
            "CPU time of a row, ms",
            tuple(
                Series.of(way, [one.users for one in some], [1000 * one.seconds for one in some])
                for way in (*WAYS, DENSE)
                for some in [[one for one in found.computed if (one.method, one.leak, one.time) == (way, leak, 1.0)]]
            ),
            log_x=True,
            log_y=True,
        )
        for leak in LEAKS
    )
    largest = {
        one.method: one.seconds
        for one in found.computed
        if (one.users, one.leak, one.time) == (found.users, "stochastic", 1.0)
    }
    return Plot(
        key="sharing-diffusion-time",
        title="What a row of the kernel takes",
        figure="",
        found=f"At t = 1 and {found.users} users a row takes {rounded(1000 * largest[WHOLE])} ms on the whole graph "
        f"and {rounded(1000 * largest[DENSE])} ms of a dense exponential, which computes all rows.",
        panels=panels,
        measured=True,
    )
