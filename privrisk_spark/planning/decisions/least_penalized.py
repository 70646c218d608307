"""Least risk less lambda times utility, of each record: Fouad 2012 eq. 4.3."""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.kernels.disclosure.objective import LeastPenalized
from privrisk_spark.planning.decisions.searched import BySearch
from privrisk_spark.policy.decisions import LeastPenalizedDecision


@dataclass(frozen=True)
class ByLeastPenalizedRisk(BySearch):
    """Each record at its level vector of least risk, less what its utility is worth."""

    asked: LeastPenalizedDecision

    def optimum(self) -> LeastPenalized:
        """Return the least difference."""
        return LeastPenalized(self.asked.lambda_)

    def objective(self, *, risk: str) -> str:
        """Say what is least, at which rate."""
        return f"least {risk} less {self.asked.lambda_:g} times its {self.policy.utility.measure} utility"

    def parameters(self) -> dict[str, object]:
        """Return the rate."""
        return {"lambda": self.asked.lambda_}
