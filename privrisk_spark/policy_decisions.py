"""What the owner asks of each record's disclosure: one type per optimization problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from privrisk_spark.policy_types import Count, Finite, NonNegative, Part, Positive

Infeasible = Literal["error", "suppress"]
_INFEASIBLE = "A record for which nothing satisfies the constraint is an error, or is released fully suppressed."
_STEPS = "Boxes, nodes or cuts after which a search of one record's lattice ends with its best so far."


class LeastRiskDecision(Part):
    """Least risk of each record whose utility is at least a floor."""

    problem: Literal["min-risk"] = "min-risk"
    utility_at_least: Finite = Field(description="The floor c of every record's utility.")
    method: Literal["auto", "exact", "aruba", "exhaustive", "branch_and_bound", "btda", "genetic", "approximate"] = (
        "auto"
    )
    neighbourhood: Literal["swap", "cube"] = "swap"
    most_steps: Count = Field(1_000_000, description=_STEPS)
    infeasible: Infeasible = Field("error", description=_INFEASIBLE)


class GreatestUtilityDecision(Part):
    """Greatest utility of each record whose risk is at most a ceiling."""

    problem: Literal["max-utility"]
    risk_at_most: NonNegative = Field(description="The ceiling of every record's risk.")
    method: Literal["auto", "exhaustive", "branch_and_bound"] = "auto"
    most_steps: Count = Field(1_000_000, description=_STEPS)
    infeasible: Infeasible = Field("error", description=_INFEASIBLE)


class LeastPenalizedDecision(Part):
    """Least risk less lambda times utility, of each record."""

    problem: Literal["min-risk-minus-utility"]
    lambda_: NonNegative = Field(alias="lambda", description="What a unit of utility is worth in units of risk.")
    method: Literal["auto", "exhaustive", "branch_and_bound"] = "auto"
    most_steps: Count = Field(1_000_000, description=_STEPS)
    infeasible: ClassVar[Infeasible] = "error"


class AggregateDecision(Part):
    """Greatest lambda / risk + utility^kappa, of each record."""

    problem: Literal["max-aggregate"]
    lambda_: Positive = Field(alias="lambda", description="What 1/risk is worth in units of utility^kappa.")
    kappa: NonNegative = Field(1, description="Exponent of the utility; the method 'aggregate' takes 0, 1 and 2.")
    zero_phi: Literal["exclude", "floor"] = Field(
        "exclude",
        description="Whether a disclosure without risk is no candidate, or one whose zero sensitivity counts as the "
        "record's least positive one.",
    )
    method: Literal["auto", "aggregate", "exhaustive"] = "auto"
    most_steps: Count = Field(1_000_000, description=_STEPS)
    infeasible: ClassVar[Infeasible] = "error"


def _usual_problem(value: object) -> object:
    return {"problem": "min-risk", **value} if isinstance(value, Mapping) and "problem" not in value else value


SINGLE = ("branch_and_bound", "btda", "genetic", "approximate", "aggregate")
"""Methods that search one record's lattice at a time, against the dictionary's vectors."""

DecisionPolicy = Annotated[
    LeastRiskDecision | GreatestUtilityDecision | LeastPenalizedDecision | AggregateDecision,
    Field(discriminator="problem"),
    BeforeValidator(_usual_problem),
]
"""The optimization problem of each record; ``min-risk`` where none is named."""
