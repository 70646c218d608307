"""Greatest utility of each record whose risk is at most a ceiling: Fouad 2012 eq. 4.1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privrisk_spark.kernels.disclosure.objective import GreatestUtility
from privrisk_spark.planning.decisions.searched import BySearch
from privrisk_spark.policy.decisions import GreatestUtilityDecision
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts


@dataclass(frozen=True)
class ByGreatestUtility(BySearch):
    """Each record at its most useful level vector among those of little enough risk."""

    asked: GreatestUtilityDecision

    def optimum(self) -> GreatestUtility:
        """Return the greatest utility below the ceiling."""
        return GreatestUtility(self.asked.risk_at_most)

    def objective(self, *, risk: str) -> str:
        """Say what is greatest, below which ceiling."""
        utility = f"{self.policy.utility.measure} utility"
        return f"greatest {utility} among those with {risk} at most {self.asked.risk_at_most:g}"

    def parameters(self) -> dict[str, object]:
        """Return the ceiling."""
        return {"risk_at_most": self.asked.risk_at_most}

    def contract(self, measured: DecisionFacts, released: ReleaseFacts) -> Iterator[tuple[FactRule, float]]:
        """Yield the ceiling, if every record could stay below it but for what is out of it already."""
        del released
        if measured.infeasible > measured.beyond:
            return
        ceiling = self.asked.risk_at_most
        # The slack is that of the search.
        text = f"every record's risk is at most {ceiling:g}"
        if measured.history is not None:
            text += ", earlier releases included, but for records disclosed beyond it already"
        rule = FactRule("risk", text, at_most=ceiling * (1 + 1e-9))
        yield rule, measured.greatest_bounded_risk

    def shortfall(self, infeasible: int, total: int, most: float | None) -> str:
        """Say that the ceiling is too low for some records."""
        del most
        return (
            f"decision.risk_at_most: {infeasible:,} of {total:,} records have a higher risk than "
            f"{self.asked.risk_at_most:g} even fully suppressed. Raise it, or set decision.infeasible: suppress."
        )
