"""Access control in tasks (F12 §7.4): loss ``f(T) Σ Φ A`` and utility ``Σ Ψ A``, and the three problems of both.

The trade-off separates by entries. A limit of each user is kept by looking at all his pairs at once. A limit of the
whole network is kept by one multiplier, which is found by sums over the tasks: no pair is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, report
from privrisk_spark.errors import InfeasibleError, InputError
from privrisk_spark.extensions.network.kernels.access import Entries, Problem, lagrangian, solve
from privrisk_spark.extensions.network.kernels.access_tasks import Amounts, Search
from privrisk_spark.extensions.network.kernels.trust import Exposure
from privrisk_spark.extensions.network.stages.deciding import Acquainted, Decider, Ground, Showing
from privrisk_spark.extensions.network.stages.trusting import Trust
from privrisk_spark.extensions.network.stages.worth import Sensitivity, Utility
from privrisk_spark.json_values import from_json
from privrisk_spark.kernels.arrays import FloatArray, WordArray
from privrisk_spark.kernels.numeric.fingerprint import mixed

TASKS = 32
"""Tasks that add up amounts, at most: each hands over a few numbers."""

OPTIMIZED: dict[Problem, tuple[float, float]] = {"most-utility": (0.0, 1.0), "least-loss": (1.0, 0.0)}
"""Factors of the loss and the utility of a pair in the objective of each problem."""


@dataclass(frozen=True)
class Costs:
    """What a shown level costs and is worth in a pair."""

    sensitivity: Sensitivity
    utility: Utility
    trust: Trust
    exposure: Exposure

    def of(self, pairs: Acquainted) -> tuple[Entries, FloatArray]:
        """Return the entries of pairs, attribute after attribute of each pair, and the trust of each pair."""
        trust = self.trust.of(pairs)
        loss = self.exposure.of(trust)[:, None] * self.sensitivity.of(pairs)
        worth = self.utility.of(pairs)
        return Entries(loss.ravel(), worth.ravel(), pairs.levels.ravel()), trust


def keys_of(pairs: Acquainted) -> WordArray:
    """Return a word for each entry, which no other has: entries of equal ratio are taken in its order."""
    k = pairs.levels.shape[1]
    return mixed((pairs.numbers[:, None] * k + np.arange(k)).astype(np.uint64).ravel())


def showing(
    pairs: Acquainted,
    entries: Entries,
    trust: FloatArray,
    levels: np.ndarray,
    gap: FloatArray,
    factors: tuple[float, float],
) -> Showing:
    """Return what is shown in pairs, by the levels of their entries; factors are those of the objective."""
    shape = pairs.levels.shape
    loss = (entries.loss * levels).reshape(shape).sum(axis=1)
    utility = (entries.utility * levels).reshape(shape).sum(axis=1)
    shown = levels.astype(np.int8).reshape(shape)
    objective = factors[0] * loss + factors[1] * utility
    return Showing(shown, loss, utility, trust, objective, gap, np.zeros(len(pairs.u), dtype=np.bool_))


@dataclass(frozen=True)
class ByTradeOff:
    """Decides by the least ``L - λU``, which separates."""

    costs: Costs
    trade_off: float
    whole_users = False

    def at(self, trade_off: float) -> ByTradeOff:
        """Return the same with another λ."""
        return replace(self, trade_off=trade_off)

    def decide(self, pairs: Acquainted) -> Showing:
        """Decide some pairs."""
        entries, trust = self.costs.of(pairs)
        levels = lagrangian(entries, self.trade_off)
        return showing(pairs, entries, trust, levels, np.zeros(len(pairs.u)), (1.0, -self.trade_off))


@dataclass(frozen=True)
class ByUser:
    """Decides within a limit of each user.

    Attributes
    ----------
    problem : {"most-utility", "least-loss"}
    """

    costs: Costs
    problem: Problem
    limit: float
    whole_users = True

    def at(self, trade_off: float) -> Decider:
        """Return the trade-off that has no limit."""
        return ByTradeOff(self.costs, trade_off)

    def decide(self, pairs: Acquainted) -> Showing:
        """Decide all pairs of some users; of a user who cannot reach the utility everything is shown."""
        entries, trust = self.costs.of(pairs)
        k = pairs.levels.shape[1]
        levels, gap = np.zeros(len(entries.tops), dtype=np.int8), np.zeros(len(pairs.u))
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(pairs.u)) + 1, [len(pairs.u)]])
        for begin, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            mine = entries.part(slice(begin * k, end * k))
            try:
                found = solve(mine, self.problem, self.limit)
            except InputError:
                levels[begin * k : end * k] = mine.tops
                continue
            # The gap is that of all pairs of the user together: any of them may be decided differently.
            levels[begin * k : end * k], gap[begin:end] = found.levels, found.gap
        return showing(pairs, entries, trust, levels, gap, OPTIMIZED[self.problem])


@dataclass(frozen=True)
class ByNetwork:
    """Decides within a limit of the whole network, by the entry at which it is reached.

    Attributes
    ----------
    search : Search
        That has ended.
    gap : float
        What the whole network's objective may be better by, and so any pair be decided differently.
    """

    costs: Costs
    search: Search
    gap: float
    whole_users = False

    def at(self, trade_off: float) -> Decider:
        """Return the trade-off that has no limit."""
        return ByTradeOff(self.costs, trade_off)

    def decide(self, pairs: Acquainted) -> Showing:
        """Decide some pairs."""
        entries, trust = self.costs.of(pairs)
        levels = self.search.levels(entries, keys_of(pairs))
        gap = np.full(len(pairs.u), self.gap)
        return showing(pairs, entries, trust, levels, gap, OPTIMIZED[self.search.problem])


def collect_by_network(scratch: Scratch, ground: Ground, costs: Costs, problem: Problem, limit: float) -> ByNetwork:
    """Find the entry at which the limit of the whole network is reached, and its gap, in passes over all pairs.

    Parameters
    ----------
    problem : {"most-utility", "least-loss"}
    limit : float
        Above 0.

    Raises
    ------
    InfeasibleError
        If everything shown is worth less.
    """
    slices = ground.pairs.slices
    tasks = min(len(slices), TASKS)
    search = Search(problem, limit)

    def collect(of: Callable[[Iterator[tuple[Entries, WordArray]]], object]) -> list[dict[str, Any]]:
        def add(number: int) -> Iterator[pa.Table]:
            some = (pairs for piece in slices[number::tasks] for pairs in ground.acquainted(piece))
            yield report("", of((costs.of(pairs)[0], keys_of(pairs)) for pairs in some))

        return scratch.collect_parts(Batches.of_parts(scratch.spark, range(tasks), add, PARTS))

    while not search.done:

        def amounts_of(entries: Iterator[tuple[Entries, WordArray]], asked: Search = search) -> Amounts:
            total = Amounts.empty(asked)
            for one, keys in entries:
                total = total.plus(Amounts.of(one, keys, search=asked))
            return total

        amounts = Amounts.empty(search)
        for part in collect(amounts_of):
            amounts = amounts.plus(from_json(Amounts, part))
        try:
            search = search.narrowed(amounts)
        except InputError:
            raise InfeasibleError(
                f"sharing.model.utility_at_least: {limit:g} is more than all there is to show is worth; ask for less."
            ) from None
    found = search
    gaps = collect(lambda entries: {"gap": max((found.gap(one, keys) for one, keys in entries), default=0.0)})
    return ByNetwork(costs, search, max((float(part["gap"]) for part in gaps), default=0.0))
