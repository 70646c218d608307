"""Literal readings of the searches of one record's lattice: every level vector, in plain Python."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

TOLERANCE = 1e-12
Levels = tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """Generalization vectors with repetitions, the record's own among them."""

    rows: list[Levels]
    weights: list[list[float]]
    utilities: list[list[float]]
    model: str
    exponential: bool = False
    further: list[list[Levels]] = field(default_factory=list)
    rule: str = "bayes"
    prior: tuple[float, ...] = (1.0,)

    @property
    def nodes(self) -> list[Levels]:
        return list(itertools.product(*[range(len(w)) for w in self.weights]))

    def rhos(self, x: Levels) -> list[int]:
        return [
            sum(all(a <= b for a, b in zip(g, x, strict=True)) for g in rows) for rows in (self.rows, *self.further)
        ]

    def rho(self, x: Levels) -> int:
        return min(self.rhos(x))

    def phi(self, x: Levels) -> float:
        total = sum(w[level] for w, level in zip(self.weights, x, strict=True))
        if not self.exponential:
            return total
        return math.exp(total) if total < 709 else math.inf

    def utility(self, x: Levels) -> float:
        return sum(d[level] for d, level in zip(self.utilities, x, strict=True))

    def risk(self, x: Levels) -> float:
        risks = [
            self.risk_against(x, rho, len(rows))
            for rho, rows in zip(self.rhos(x), (self.rows, *self.further), strict=True)
        ]
        if self.rule == "minimax":
            return max(risks)
        return sum(q * risk for q, risk in zip(self.prior, risks, strict=True))

    def risk_against(self, x: Levels, rho: int, n: int) -> float:
        if self.model == "II":
            return 1 / rho
        if self.model == "I":
            return self.phi(x) / rho
        # Nothing to identify costs nothing, however sensitive.
        return 0.0 if rho == n else self.phi(x) * math.log(n / rho)

    def printed_model_three(self, x: Levels) -> float:
        """F12's Φ log(1/ρ), which is not monotone."""
        return self.phi(x) * math.log(1 / self.rho(x))


def reaches(utility: float, floor: float) -> bool:
    return utility >= floor - TOLERANCE * max(1, abs(floor))


def _least(values: dict[Levels, float], slack: float) -> dict[Levels, float]:
    least = min(values.values())
    return {x: v for x, v in values.items() if v <= least + slack * max(1.0, abs(least))}


def _least_relative(values: dict[Levels, float]) -> dict[Levels, float]:
    least = min(values.values())
    return {x: v for x, v in values.items() if v <= least * (1 + TOLERANCE)}


def _greatest_utility(record: Record, among: Sequence[Levels]) -> Levels:
    tied = _least({x: -record.utility(x) for x in among}, TOLERANCE)
    return min(tied)


def least_risk(record: Record, floor: float) -> Levels | None:
    """Least risk, then greatest utility, then smallest levels; None where nothing reaches the floor."""
    among = {x: record.risk(x) for x in record.nodes if reaches(record.utility(x), floor)}
    return _greatest_utility(record, list(_least_relative(among))) if among else None


def greatest_utility(record: Record, ceiling: float) -> Levels | None:
    """Greatest utility, then least risk, then smallest levels; None where every risk exceeds the ceiling."""
    among = {x: -record.utility(x) for x in record.nodes if record.risk(x) <= ceiling * (1 + TOLERANCE)}
    if not among:
        return None
    return min(_least_relative({x: record.risk(x) for x in _least(among, TOLERANCE)}))


def least_penalized(record: Record, trade: float) -> Levels:
    """Least r - λ u, then least risk, then greatest utility, then smallest levels."""
    among = _least({x: record.risk(x) - trade * record.utility(x) for x in record.nodes}, TOLERANCE)
    return _greatest_utility(record, list(_least_relative({x: record.risk(x) for x in among})))


def frontier(record: Record, floor: float) -> set[Levels]:
    """Feasible nodes with an infeasible immediate generalization."""

    def feasible(x: Levels) -> bool:
        return reaches(record.utility(x), floor)

    def above(x: Levels) -> list[Levels]:
        return [(*x[:i], x[i] + 1, *x[i + 1 :]) for i in range(len(x)) if x[i] + 1 < len(record.weights[i])]

    return {x for x in record.nodes if feasible(x) and any(not feasible(y) for y in above(x))}
