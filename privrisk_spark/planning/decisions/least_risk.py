"""Least risk of each record whose utility is at least a floor: Fouad 2012 eq. 4.2."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from privrisk_spark.kernels.arrays import FloatArray, IntArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.planning.decisions.decision import Hierarchies, Reach
from privrisk_spark.planning.decisions.searched import BySearch
from privrisk_spark.planning.search import SearchChoice, refuse_unreachable
from privrisk_spark.policy.decisions import LeastRiskDecision
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts


@dataclass(frozen=True)
class ByLeastRisk(BySearch):
    """Each record at its level vector of least risk among those useful enough."""

    asked: LeastRiskDecision

    def optimum(self) -> LeastRisk:
        """Return the least risk above the floor."""
        return LeastRisk(self.asked.utility_at_least)

    def enumeration(self) -> SearchChoice:
        """Return a search that leaves out what monotony decides."""
        return SearchChoice("exact", "risk is monotone, so only maximal feasible nodes need be looked at")

    def procedure(self, hierarchies: Hierarchies) -> Search:
        """Return the search, with the moves of ``aruba``; refuses a floor no record can reach."""
        refuse_unreachable(self.policy, hierarchies, self.asked.utility_at_least)
        return replace(super().procedure(hierarchies), neighbourhood=self.asked.neighbourhood)

    def objective(self, *, risk: str) -> str:
        """Say what is least, above which floor."""
        floor, utility = self.asked.utility_at_least, f"{self.policy.utility.measure} utility"
        return f"least {risk} among those with {utility} at least {floor:g}"

    def parameters(self) -> dict[str, object]:
        """Return the floor."""
        return {"utility_at_least": self.asked.utility_at_least}

    @property
    def least_utility(self) -> float | None:
        """The floor."""
        return self.asked.utility_at_least

    def expectation(self, greatest: float) -> str:
        """Say how high the floor is."""
        return f"floor: utility at least {self.asked.utility_at_least:g} of at most {greatest:g}"

    def contract(self, measured: DecisionFacts, released: ReleaseFacts) -> Iterator[tuple[FactRule, float]]:
        """Yield the floor, if every record could reach it."""
        del released
        if measured.infeasible:
            return
        floor = self.asked.utility_at_least
        # That of the search, for sums of weights that differ in their last bits.
        slack = 1e-9 * max(1.0, abs(floor))
        rule = FactRule("least utility", f"every record's utility is at least {floor:g}", at_least=floor - slack)
        yield rule, measured.utility.min

    def reach(self) -> tuple[Reach, float]:
        """Return the utility that each record has as it is, and the floor."""
        return _utility_as_it_is, self.asked.utility_at_least

    def shortfall(self, infeasible: int, total: int, most: float | None) -> str:
        """Say which floor every record could reach."""
        reached = "" if most is None else f"; all can reach {most:g}"
        return (
            f"decision.utility_at_least: {infeasible:,} of {total:,} records cannot reach "
            f"{self.asked.utility_at_least:g} even unchanged "
            f"(missing values, or short branches of a hierarchy){reached}. "
            "Lower it, or set decision.infeasible: suppress."
        )


def _utility_as_it_is(disclosure: Disclosure, codes: IntArray) -> FloatArray:
    return disclosure.greatest_utility(codes)
