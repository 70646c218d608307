"""What is claimed of algorithms of k-anonymization, and what one table shows of it.

Sources: Raschia, slides on k-anonymity (2023; R23); LeFevre, DeWitt and Ramakrishnan, SIGMOD 2005 (Incognito) and ICDE
2006 (Mondrian); Bayardo and Agrawal, ICDE 2005 (k-Optimize); Kohlmayer et al., PASSAT 2012 (Flash); Ghinita et al.,
VLDB 2007 (Hilbert); Anjum and Raschia 2017 (BangA); Xia et al., CIKM 2015; Fouad 2012. Sentences are made from the
figures of the run; nothing in them is fixed but the words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from privrisk_spark.reporting.numbers import percent, short_number
from reproduce.recoding.algorithms import COSTS, OPTIMAL, Outcome
from reproduce.recoding.monotone import Monotone
from reproduce.recoding.plots import ratios
from reproduce.recoding.risks import ByClasses, Frontier
from reproduce.result import MUCH, Claim, held
from reproduce.texts import least_to_most

OfClasses = Sequence[tuple[str, int, ByClasses]]


def claims(
    data: str, outcomes: Sequence[Outcome], attacked: OfClasses, monotone: Monotone, frontier: Frontier
) -> tuple[Claim, ...]:
    """Judge every claim on one table."""
    judged = (
        *_of_lattices(monotone),
        *_of_searches(outcomes),
        *_of_local_recoding(outcomes),
        *_of_risk(attacked, frontier),
    )
    return tuple(Claim(source, claim, data, verdict, evidence) for source, claim, verdict, evidence in judged)


_Judged = tuple[str, str, str, str]


def _of_lattices(found: Monotone) -> Iterator[_Judged]:
    limits = [f"{limit:,} rows suppressed" if limit else "nothing suppressed" for limit in found.limits.tolist()]
    safe, unsafe = int(found.steps.sum()), int(found.unsafe.sum())
    kept = least_to_most(found.kept.reshape(-1).tolist())
    yield (
        "Raschia (2023)",
        "If a table is k-anonymous, so is every generalization of it.",
        held(safe, safe + unsafe),
        f"{kept} of {found.nodes:,} nodes keep the limit; {_times(unsafe)} does a step up from one of them lead to one "
        "that does not.",
    )
    for i, limit in enumerate(limits):
        cheaper, compared = int(found.cheaper[i].sum()), int(found.steps[i].sum()) * len(COSTS)
        yield (
            "Raschia (2023)",
            f"A generalization of a table has no more utility, by all metrics discussed, with {limit}.",
            held(compared - cheaper, compared),
            f"Of the steps up between nodes that keep the limit, {_shares(found, i)}.",
        )
    there = found.best_is_minimal >= 0
    minimal = found.best_is_minimal == 1
    parts = [f"{int(minimal[i].sum())} of {int(there[i].sum())} optima with {limit}" for i, limit in enumerate(limits)]
    yield (
        "Raschia (2023)",
        "Only the boundary of minimal generalizations is needed to find the one of highest utility.",
        held(int(minimal.sum()), int(there.sum())),
        f"Minimal are {' and '.join(parts)}; there are {least_to_most(found.minimal.reshape(-1).tolist())} minimal "
        "nodes.",
    )


def _shares(found: Monotone, i: int) -> str:
    """How often a step up costs less, by metric."""
    steps = int(found.steps[i].sum())
    parts = [
        f"{percent(int(found.cheaper[i, :, m].sum()) / steps if steps else 0)} cost less {name}"
        for m, name in enumerate(COSTS)
    ]
    return ", ".join(parts)


def _of_searches(outcomes: Sequence[Outcome]) -> Iterator[_Judged]:
    by = {(one.method, one.metric, one.k): one for one in outcomes if one.found and one.metric}
    problems = [(one.metric, one.k) for one in outcomes if one.method == "exhaustive" and one.found]
    alike = [problem for problem in problems if _one_optimum([by.get((name, *problem)) for name in OPTIMAL])]
    yield (
        "their papers",
        f"{', '.join(OPTIMAL[:-1])} and {OPTIMAL[-1]} find the optimum.",
        held(len(alike), len(problems)),
        f"All {len(OPTIMAL)} proved the same scheme for {len(alike)} of {len(problems)} pairs of metric and k.",
    )
    yield _excess(
        by, problems, "samarati", "Raschia (2023), Samarati (2001)", "allMin is optimal: it finds the least height."
    )
    yield _excess(by, problems, "datafly", "Raschia (2023), Sweeney (2002)", "Datafly is approximate.", exact=False)
    faster = (
        ("incognito", "exhaustive", "LeFevre et al. (2005)", "Incognito is faster than a search of every node."),
        ("flash", "incognito", "Kohlmayer et al. (2012)", "Flash is faster than Incognito."),
        (
            "k_optimize",
            "exhaustive",
            "Bayardo and Agrawal (2005)",
            "Bounds of the cost prune most of the search: it evaluates at most half of the nodes.",
        ),
        ("best", "flash", "this software", "Bounds of the metric need fewer nodes than Flash."),
    )
    for method, other, source, claim in faster:
        pairs = [
            (by[method, *one], by[other, *one]) for one in problems if (method, *one) in by and (other, *one) in by
        ]
        if not pairs:
            continue
        nodes = [a.nodes / b.nodes for a, b in pairs if b.nodes]
        times = [a.seconds / b.seconds for a, b in pairs if b.seconds > 0]
        fewer, quicker = sum(a.nodes < b.nodes for a, b in pairs), sum(a.seconds < b.seconds for a, b in pairs)
        most = sum(MUCH * a.nodes <= b.nodes for a, b in pairs)
        cases = {"k_optimize": most, "best": fewer}.get(method, quicker)
        yield (
            source,
            claim,
            held(cases, len(pairs)),
            f"It evaluates {least_to_most(nodes)} times the nodes of {other}, fewer in {fewer} of {len(pairs)} cases, "
            f"in {least_to_most(times)} times the CPU time, less in {quicker}.",
        )


def _one_optimum(found: Sequence[Outcome | None]) -> bool:
    """Whether all proved an optimum, and the same."""
    schemes = {(one.levels, one.suppressed) for one in found if one is not None and one.optimal}
    return len(schemes) == 1 and all(one is not None and one.optimal for one in found)


def _excess(
    by: dict[tuple[str, str, int], Outcome],
    problems: Sequence[tuple[str, int]],
    method: str,
    source: str,
    claim: str,
    *,
    exact: bool = True,
) -> _Judged:
    """How far above the optimum a search ends; the claim is that it does not, or that it does."""
    pairs = [(by[method, *one], by["exhaustive", *one]) for one in problems if (method, *one) in by]
    above = [a.cost(a.metric) / b.cost(b.metric) - 1 for a, b in pairs if b.cost(b.metric) > 0]
    reached = sum(a.levels == b.levels for a, b in pairs)
    most = f"at most {percent(max(above))} above it" if above else "nothing to compare"
    none = len(problems) - len(pairs)
    return (
        source,
        claim,
        held(reached if exact else len(pairs) - reached, len(pairs)),
        f"It ends at the optimum of the metric in {reached} of {len(pairs)} cases, {most}"
        + (f"; it found nothing in {none}." if none else "."),
    )


def _of_local_recoding(outcomes: Sequence[Outcome]) -> Iterator[_Judged]:
    by = {(one.method, one.metric, one.k): one for one in outcomes if one.found}
    ks = [one.k for one in outcomes if one.method == "mondrian"]
    others = (
        ("mondrian", "best", "LeFevre et al. (2006)", "Mondrian is better than the optimum of the whole table."),
        ("hilbert", "mondrian", "Ghinita et al. (2007)", "Hilbert loses less than Mondrian."),
        ("bang", "mondrian", "Anjum and Raschia (2017)", "BangA loses less than Mondrian."),
    )
    for method, other, source, claim in others:
        better, cases, ratios = 0, 0, dict[str, list[float]]()
        for k in ks:
            for metric in COSTS:
                a, b = by.get((method, "", k)), by.get((other, metric if other == "best" else "", k))
                if a is None or b is None:
                    continue
                cases += 1
                better += a.cost(metric) < b.cost(metric)
                if b.cost(metric) > 0:
                    ratios.setdefault(metric, []).append(a.cost(metric) / b.cost(metric))
        told = ", ".join(f"{metric} {least_to_most(of)}" for metric, of in ratios.items())
        yield (
            source,
            claim,
            held(better, cases),
            f"Its cost over that of {other}: {told}." if told else "There is nothing to compare.",
        )


def _of_risk(attacked: OfClasses, frontier: Frontier) -> Iterator[_Judged]:
    within = sum(risks.prosecutor_max <= 1 / k for _, k, risks in attacked)
    means = [risks.prosecutor_mean * k for _, k, risks in attacked]
    yield (
        "Raschia (2023)",
        "k-anonymity bounds the probability to identify a record by 1/k.",
        held(within, len(attacked)),
        f"The greatest 1/f of released classes is at most 1/k in {within} of {len(attacked)} releases; its mean over "
        f"all rows is {least_to_most(means)} times 1/k."
        if means
        else "Nothing was released.",
    )
    ks = sorted({k for _, k, _ in attacked})
    shares = [
        f"{least_to_most([100 * risks.attacked for _, of, risks in attacked if of == k])} % at k = {k}" for k in ks
    ]
    largest = [risks.attacked for _, k, risks in attacked if k == max(ks)]
    yield (
        "Xia et al. (2015)",
        "An attacker who plans does not start where groups are large: 48 candidates or more, with their parameters.",
        held(sum(not share for share in largest), len(largest)),
        f"Rows released and attacked, over the algorithms: {'; '.join(shares)}.",
    )
    risks, cases = frontier.recoded_risk, len(frontier.method)
    below = [share for share in frontier.matched_below.tolist() if isfinite(share)]
    aside = (
        f" They are no k-anonymous tables: {least_to_most([100 * share for share in below])} % of their rows are in "
        "classes of fewer than k rows."
        if below
        else ""
    )
    yield (
        "Fouad (2012), eq 4.2",
        "Optimal disclosures have less risk than k-anonymous tables of the same utility: every record at least their "
        "mean.",
        held(int((frontier.matched_risk <= risks).sum()), cases),
        f"The recoded tables have {ratios(risks, frontier.matched_risk)} times their mean risk, under model "
        f"{frontier.model}.{aside}",
    )
    yield (
        "Fouad (2012), eq 4.3",
        "The same, with the mean utility of all records equal.",
        held(int((frontier.optimal_risk <= risks * (1 + 1e-9)).sum()), cases),
        f"The recoded tables have {ratios(risks, frontier.optimal_risk)} times the least mean risk there is. This one "
        "is proved: each record's levels are a choice the optimum has, too.",
    )


def _times(count: int) -> str:
    return "never" if not count else "once" if count == 1 else f"{short_number(count)} times"
