"""A record's decision from the definitions: literal risk, utility and counts of every level vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, NamedTuple

import naive
import numpy as np
import pytest
from hypothesis import strategies as st

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import (
    AnyObjective,
    GreatestAggregate,
    GreatestUtility,
    LeastPenalized,
    LeastRisk,
)
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity, harmonic_weights
from privrisk_spark.kernels.disclosure.utility import node_utility
from privrisk_spark.kernels.search.method import Search

Relation = Callable[[int, int | None], bool]
TOLERANCE = 1e-12


class Task(NamedTuple):
    """What is disclosed, and what is sought."""

    disclosure: Disclosure
    search: Search

    @classmethod
    def of(cls, objective: AnyObjective, *, method: str = "exact", neighbourhood: str = "swap", **fields: Any) -> Task:
        return cls(Disclosure(**fields), Search(objective, method, neighbourhood))  # type: ignore[arg-type]

    def seeking(self, **changes: Any) -> Task:
        return Task(self.disclosure, replace(self.search, **changes))

    def disclosing(self, **changes: Any) -> Task:
        return Task(replace(self.disclosure, **changes), self.search)


def disclose(hierarchies: list[Hierarchy], *, weights: list[float], form: str, model: str, measure: str) -> Disclosure:
    axes = [Axis(h.at_depth, h.ancestor) for h in hierarchies]
    return Disclosure(
        ancestor=tuple(h.ancestor for h in hierarchies),
        code_depth=tuple(axis.code_depth for axis in axes),
        utility=tuple(node_utility(measure, h.depth, h.n_under) for h in hierarchies),  # type: ignore[arg-type]
        sensitivity=Sensitivity(
            form,  # type: ignore[arg-type]
            tuple(
                harmonic_weights(h.parent, h.depth, h.n_leaves, np.full(h.n_leaves, w))
                for h, w in zip(hierarchies, weights, strict=True)
            ),
        ),
        model=model,  # type: ignore[arg-type]
    )


def build(
    hierarchies: list[Hierarchy],
    *,
    floor: float,
    search: str = "exact",
    neighbourhood: str = "swap",
    **settings: Any,
) -> Task:
    of_search = Search(LeastRisk(floor), search, neighbourhood)  # type: ignore[arg-type]
    return Task(disclose(hierarchies, **settings), of_search)


@dataclass(frozen=True)
class Known:
    """A dictionary as literal rows, and what consistent means on each attribute."""

    rows: list[list[int | None]]
    relations: Sequence[Relation]


def literal(
    disclosure: Disclosure,
    hierarchies: list[Hierarchy],
    record: np.ndarray,
    dictionaries: Sequence[Known],
    scale: list[float],
    rule: str = "bayes",
    prior: Sequence[float] = (1.0,),
) -> SimpleNamespace:
    """Depths of a record, and risk, utility and ρ of its level vectors, from the definitions."""
    depths = [int(disclosure.code_depth[i][c]) for i, c in enumerate(record)]
    likely = [d for d in range(len(dictionaries)) if rule == "minimax" or prior[d] > 0]

    def nodes(levels: tuple[int, ...]) -> list[int]:
        return [int(h.ancestor[c, x]) for h, c, x in zip(hierarchies, record, levels, strict=True)]

    original = nodes((0,) * len(depths))
    absent = [int(naive.count_any(known.relations, original, known.rows) == 0) for known in dictionaries]

    def rho(levels: tuple[int, ...], d: int) -> int:
        found = naive.count_any(dictionaries[d].relations, nodes(levels), dictionaries[d].rows) + absent[d]
        return max(found, 1)

    def sensitivity(levels: tuple[int, ...]) -> float:
        here = nodes(levels)
        weights = [
            0.0 if w[n] == 0 or s == 0 else float(w[n]) * s
            for w, n, s in zip(disclosure.sensitivity.weights, here, scale, strict=True)
        ]
        suppressed = [n == h.root for n, h in zip(here, hierarchies, strict=True)]
        together = list(zip(disclosure.sensitivity.sets, disclosure.sensitivity.set_weights, strict=True))
        return naive.phi(disclosure.sensitivity.form, weights, suppressed, interactions=together)

    def risk(levels: tuple[int, ...]) -> float:
        phi = sensitivity(levels)
        risks = [
            naive.risk(disclosure.model, phi, rho(levels, d), len(known.rows) + absent[d])
            for d, known in enumerate(dictionaries)
        ]
        return naive.risk_of_attacker(rule, prior, risks)

    def weighed_risk(levels: tuple[int, ...], zero_phi: str) -> float:
        """The risk whose inverse an aggregate weighs: where it is 0, by the least positive of what makes it so."""
        if risk(levels) > 0 or zero_phi == "exclude":
            return risk(levels)
        positive = [phi for phi in map(sensitivity, naive.lattice(depths)) if phi > 0]
        phi = sensitivity(levels) or min(positive)
        rows = [len(known.rows) + lacking for known, lacking in zip(dictionaries, absent, strict=True)]
        counted = [rho(levels, d) for d in range(len(dictionaries))]
        if disclosure.model == "III":
            counted = [n - 1 if found == n else found for found, n in zip(counted, rows, strict=True)]
        risks = [naive.risk(disclosure.model, phi, found, n) for found, n in zip(counted, rows, strict=True)]
        return naive.risk_of_attacker(rule, prior, risks)

    def utility(levels: tuple[int, ...]) -> float:
        return sum(float(u[n]) for u, n in zip(disclosure.utility, nodes(levels), strict=True))

    def smallest(levels: tuple[int, ...]) -> int:
        return min(rho(levels, d) for d in likely)

    return SimpleNamespace(
        depths=depths, risk=risk, utility=utility, consistent=smallest, sensitivity=sensitivity,
        weighed_risk=weighed_risk,
    )  # fmt: skip


def greatest_aggregate(of: SimpleNamespace, trade_off: float, kappa: float, zero_phi: str) -> tuple[int, ...]:
    """Greatest λ/r + u^κ, then greatest utility, then smallest levels; as it is where that has no risk."""
    bottom = (0,) * len(of.depths)
    if of.risk(bottom) == 0:
        return bottom
    risks = {x: of.weighed_risk(x, zero_phi) for x in naive.lattice(of.depths)}
    values = {x: trade_off / r + of.utility(x) ** kappa for x, r in risks.items() if r > 0}
    highest = max(values.values())
    tied = [x for x, value in values.items() if value >= highest * (1 - 1e-12)]
    most = max(map(of.utility, tied))
    return min(x for x in tied if of.utility(x) >= most - 1e-12 * max(1.0, most))


def naive_decision(
    task: Task,
    hierarchies: list[Hierarchy],
    record: np.ndarray,
    dictionaries: Sequence[Known],
    scale: list[float],
    rule: str = "bayes",
    prior: Sequence[float] = (1.0,),
) -> tuple[tuple[int, ...] | None, float, float, float, int, int]:
    """Levels or None, risk, risk before, utility, and the smallest ρ, after and before, from the definitions."""
    of = literal(task.disclosure, hierarchies, record, dictionaries, scale, rule, prior)
    assert task.search.floor is not None
    best = naive.least_risky(of.depths, of.risk, of.utility, task.search.floor)
    answer = best if best is not None else tuple(of.depths)
    as_it_is = (0,) * len(of.depths)
    rho = of.consistent(answer), of.consistent(as_it_is)
    return best, of.risk(answer), of.risk(as_it_is), of.utility(answer), *rho


def check(
    found: Decisions,
    i: int,
    want: tuple[tuple[int, ...] | None, float, float, float, int, int],
    hierarchies: list[Hierarchy],
    record: np.ndarray,
) -> None:
    levels, risk, before, utility, consistent, consistent_before = want
    assert found.feasible[i] == (levels is not None)
    if levels is not None:
        assert tuple(found.levels[i]) == levels
    assert found.nodes[i].tolist() == [
        h.ancestor[c, x] for h, c, x in zip(hierarchies, record, found.levels[i], strict=True)
    ]
    assert found.risk[i] == pytest.approx(risk, rel=1e-9)
    assert found.risk_before[i] == pytest.approx(before, rel=1e-9)
    assert found.utility[i] == pytest.approx(utility)
    assert found.consistent[i] == consistent
    assert found.consistent_before[i] == consistent_before


def subsuming(hierarchies: list[Hierarchy]) -> list[Relation]:
    return [lambda x, t, h=h: naive.consistent(h.parent.tolist(), x, t, "subsumes") for h in hierarchies]


def to_dictionary(hierarchies: list[Hierarchy], codes: np.ndarray) -> np.ndarray:
    roots = np.array([h.root for h in hierarchies])
    leaves = np.array([h.n_leaves for h in hierarchies])
    return np.where(codes == leaves, roots, codes).astype(np.int32)


def value(objective: AnyObjective, of: SimpleNamespace, levels: tuple[int, ...]) -> tuple[float, ...] | None:
    """What an objective compares, least first; None if the constraint fails or the level vector is no candidate."""
    risk, utility = of.risk(levels), of.utility(levels)
    if isinstance(objective, LeastRisk):
        slack = TOLERANCE * max(1.0, abs(objective.floor))
        return (risk, -utility) if utility >= objective.floor - slack else None
    if isinstance(objective, GreatestUtility):
        return (-utility, risk) if risk <= objective.ceiling * (1 + TOLERANCE) else None
    if isinstance(objective, LeastPenalized):
        return risk - objective.trade * utility, risk, -utility
    every = list(naive.lattice(of.depths))
    if of.model == "I":
        positive = [phi for phi in map(of.sensitivity, every) if phi > 0]
        if not positive:
            return (0.0,) if not any(levels) else None
        phi = of.sensitivity(levels)
        if phi == 0 and objective.zero_phi == "exclude":
            return None
        of_phi = of.consistent(levels) / (phi or min(positive))
    else:
        of_phi = of.consistent(levels)
    return -(objective.trade_off * of_phi + utility**objective.kappa), -utility


def before(one: tuple[float, ...], than: tuple[float, ...]) -> bool:
    for a, b in zip(one, than, strict=True):
        if abs(a - b) > 1e-11 * max(1.0, abs(a), abs(b)):
            return a < b
    return False


def best(objective: AnyObjective, of: SimpleNamespace) -> tuple[int, ...] | None:
    """The first, in lexicographic order, of the best level vectors."""
    found, least = None, None
    for levels in naive.lattice(of.depths):
        here = value(objective, of, levels)
        if here is not None and (least is None or before(here, least)):
            found, least = levels, here
    return found


def asked(draw: Any, kind: str, of: Sequence[SimpleNamespace]) -> AnyObjective:
    """An objective of a kind, at a value that some level vector of some record has, or between."""
    one = of[draw(st.integers(0, len(of) - 1))]
    levels = tuple(draw(st.integers(0, depth)) for depth in one.depths)
    factor = draw(st.sampled_from([1.0, 0.7, 1.3]))
    if kind == "risk":
        return LeastRisk(one.utility(levels) * factor)
    if kind == "utility":
        return GreatestUtility(one.risk(levels) * factor)
    if kind == "penalized":
        return LeastPenalized(draw(st.sampled_from([0.0, 0.01, 0.2, 1.0])))
    return GreatestAggregate(
        draw(st.sampled_from([0.01, 0.2, 1.0, 5.0])),
        float(draw(st.sampled_from([0, 1, 2]))),
        draw(st.sampled_from(["exclude", "floor"])),
    )
