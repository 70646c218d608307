"""The cells of least exposure of each attribute, so many of each: Lebanon et al. 2006, Δ3."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privrisk_spark.planning.decisions.cells import ByCellOrder, disclosed, exactly
from privrisk_spark.planning.decisions.decision import Hierarchies
from privrisk_spark.planning.rules import LeastExposedInOrder
from privrisk_spark.policy.decisions import DisclosePerAttribute
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts


@dataclass(frozen=True)
class ByCellsPerAttribute(ByCellOrder):
    """Of each attribute the same number of cells."""

    asked: DisclosePerAttribute

    def procedure(self, hierarchies: Hierarchies) -> LeastExposedInOrder:
        """Return an order for each attribute."""
        del hierarchies
        return LeastExposedInOrder(self.asked.cells, "attribute")

    def objective(self, *, risk: str) -> str:
        """Say which cells are disclosed, and what is least by it."""
        return self.least_exposed("of each attribute", risk=risk)

    def contract(self, measured: DecisionFacts, released: ReleaseFacts) -> Iterator[tuple[FactRule, float]]:
        """Yield the number of cells, for every attribute."""
        del released
        for name, cells in disclosed(measured).items():
            yield exactly(f"values of {name} disclosed", self.asked.cells), cells
