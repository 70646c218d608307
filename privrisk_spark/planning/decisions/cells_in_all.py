"""The cells of least exposure of the whole table: Lebanon et al. 2006, Δ1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privrisk_spark.planning.decisions.cells import ByCellOrder, disclosed, exactly
from privrisk_spark.planning.decisions.decision import Hierarchies
from privrisk_spark.planning.rules import LeastExposedInOrder
from privrisk_spark.policy.decisions import DiscloseInAll
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts


@dataclass(frozen=True)
class ByCellsInAll(ByCellOrder):
    """Of the whole table a number of cells."""

    asked: DiscloseInAll

    def procedure(self, hierarchies: Hierarchies) -> LeastExposedInOrder:
        """Return one order over all cells."""
        del hierarchies
        return LeastExposedInOrder(self.asked.cells, "table")

    def objective(self, *, risk: str) -> str:
        """Say which cells are disclosed, and what is least by it."""
        return self.least_exposed("of the table", risk=risk)

    def contract(self, measured: DecisionFacts, released: ReleaseFacts) -> Iterator[tuple[FactRule, float]]:
        """Yield the number of cells."""
        del released
        yield exactly("values disclosed", self.asked.cells), sum(disclosed(measured).values())
