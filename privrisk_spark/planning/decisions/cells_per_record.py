"""The cells of least exposure of each record, so many of each: Lebanon et al. 2006, Δ2, by their algorithm MinRisk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.planning.decisions.cells import INDEPENDENT, ByCells, disclosed, exactly, values
from privrisk_spark.planning.decisions.decision import Hierarchies, Reach
from privrisk_spark.planning.rules import LeastExposedOfRecord
from privrisk_spark.policy.decisions import DisclosePerRecord
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts


@dataclass(frozen=True)
class ByCellsPerRecord(ByCells):
    """Of each record the same number of cells."""

    asked: DisclosePerRecord

    def procedure(self, hierarchies: Hierarchies) -> LeastExposedOfRecord:
        """Return the number of cells."""
        del hierarchies
        return LeastExposedOfRecord(self.asked.cells)

    def objective(self, *, risk: str) -> str:
        """Say which cells are disclosed, and what is least by it."""
        return (
            f"of each record the {values(self.asked.cells)} of least exposure exp(w) N/ρ alone, and nothing else "
            f"(MinRisk of Lebanon et al. 2006): the least {risk} of all ways to disclose so many, {INDEPENDENT}"
        )

    def proof(self, measured: DecisionFacts) -> str:
        """Say how good the choice of cells is where attributes are not independent."""
        if not measured.unproved:
            return (
                f" Against the dictionary as it is, no other {self.asked.cells} values of a record have a lower risk."
            )
        return (
            f" Attributes are hardly ever independent: for {measured.unproved:,} records other values may have a lower "
            f"risk against the dictionary as it is, by {measured.gap:.3g} at most."
        )

    def contract(self, measured: DecisionFacts, released: ReleaseFacts) -> Iterator[tuple[FactRule, float]]:
        """Yield the number of all cells of records that have as many."""
        del released
        wanted = self.asked.cells * (measured.rows - measured.infeasible)
        yield exactly("values disclosed", wanted), sum(disclosed(measured).values())

    def reach(self) -> tuple[Reach, float]:
        """Return the number of values that each record has, and that asked for."""
        return _values, self.asked.cells

    def shortfall(self, infeasible: int, total: int, most: float | None) -> str:
        """Say how many values all records have."""
        there = "" if most is None else f"; all have {most:g}"
        return (
            f"decision.cells: {infeasible:,} of {total:,} records have fewer than {self.asked.cells} values, others "
            f"being missing{there}. Lower it, or set decision.infeasible: suppress."
        )


def _values(disclosure: Disclosure, codes: IntArray) -> FloatArray:
    missing = np.array([len(depth) - 1 for depth in disclosure.code_depth])
    found: FloatArray = np.count_nonzero(codes != missing, axis=1).astype(np.float64)
    return found
