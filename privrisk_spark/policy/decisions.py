"""What the owner asks of each record's disclosure, or of the table's: one type per optimization problem."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from privrisk_spark.policy.types import SORTED, Count, Natural, NonNegative, Part, Positive, Text

Infeasible = Literal["error", "suppress"]
_INFEASIBLE = "A record for which nothing satisfies the constraint is an error, or is released fully suppressed."
_METHOD = "How the best disclosure is searched; auto takes the exact method that suits the lattice."
_ONE_METHOD = "How it is found; there is one method."
_STEPS = "Boxes, nodes or cuts after which a search of one record's lattice ends with its best so far."


class LeastRiskDecision(Part):
    """Least risk of each record whose utility is at least a floor."""

    problem: Literal["min-risk"] = "min-risk"
    utility_at_least: NonNegative = Field(description="The floor c of every record's utility.")
    method: Literal["auto", "exact", "aruba", "exhaustive", "branch_and_bound", "btda", "genetic", "approximate"] = (
        Field("auto", description=_METHOD)
    )
    neighbourhood: Literal["swap", "cube"] = Field(
        "swap",
        description="Moves of aruba: one level up and another down (swap), or all by up to one (cube).",
    )
    most_steps: Count = Field(1_000_000, description=_STEPS)
    infeasible: Infeasible = Field("error", description=_INFEASIBLE)


class GreatestUtilityDecision(Part):
    """Greatest utility of each record whose risk is at most a ceiling."""

    problem: Literal["max-utility"]
    risk_at_most: NonNegative = Field(description="The ceiling of every record's risk.")
    method: Literal["auto", "exhaustive", "branch_and_bound"] = Field("auto", description=_METHOD)
    most_steps: Count = Field(1_000_000, description=_STEPS)
    infeasible: Infeasible = Field("error", description=_INFEASIBLE)


class LeastPenalizedDecision(Part):
    """Least risk less lambda times utility, of each record."""

    problem: Literal["min-risk-minus-utility"]
    lambda_: NonNegative = Field(alias="lambda", description="What a unit of utility is worth in units of risk.")
    method: Literal["auto", "exhaustive", "branch_and_bound"] = Field("auto", description=_METHOD)
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
    method: Literal["auto", "aggregate", "exhaustive"] = Field("auto", description=_METHOD)
    most_steps: Count = Field(1_000_000, description=_STEPS)
    infeasible: ClassVar[Infeasible] = "error"


class DisclosePerRecord(Part):
    """The cells of least exposure of each record, so many of each: Lebanon et al. 2006, Δ2, by MinRisk."""

    problem: Literal["disclose-per-record"]
    cells: Natural = Field(description="Values k that every record discloses; the others are suppressed.")
    method: Literal["auto", "minrisk"] = Field("auto", description=_ONE_METHOD)
    infeasible: Infeasible = Field(
        "error", description="A record with fewer values is an error, or is released fully suppressed."
    )


class DiscloseInAll(Part):
    """The cells of least exposure of the whole table: Lebanon et al. 2006, Δ1."""

    problem: Literal["disclose-in-all"]
    cells: Natural = Field(description="Values k that are disclosed in all; the others are suppressed.")
    method: Literal["auto", "minrisk"] = Field("auto", description=_ONE_METHOD)
    infeasible: ClassVar[Infeasible] = "error"


class DisclosePerAttribute(Part):
    """The cells of least exposure of each attribute, so many of each: Lebanon et al. 2006, Δ3."""

    problem: Literal["disclose-per-attribute"]
    cells: Natural = Field(description="Values k of every attribute that are disclosed; the others are suppressed.")
    method: Literal["auto", "minrisk"] = Field("auto", description=_ONE_METHOD)
    infeasible: ClassVar[Infeasible] = "error"


class ListedRule(Part):
    """A disclosure rule for all records."""

    name: Text | None = Field(None, description="Its name in reports; by default its number in the list, from 1.")
    levels: Annotated[dict[str, Natural], SORTED] = Field(
        default_factory=dict, description="Level per quasi-identifier; one not named is released as it is (level 0)."
    )
    suppress: list[Text] = Field(default_factory=list, description="Quasi-identifiers that are fully suppressed.")


class ListedRulesDecision(Part):
    """The one rule of a list, for the whole table, of least mean risk at a mean utility: Fouad 2012, Algorithm 1."""

    problem: Literal["rules"]
    utility_at_least: NonNegative = Field(description="The floor c of the mean utility over the records.")
    rules: list[ListedRule] = Field(
        min_length=1,
        max_length=256,
        description="Rules to choose from, such as [{levels: {age: 2}, suppress: [city]}].",
    )
    method: Literal["auto", "rules"] = Field("auto", description=_ONE_METHOD)
    infeasible: ClassVar[Infeasible] = "error"


def _usual_problem(value: object) -> object:
    return {"problem": "min-risk", **value} if isinstance(value, Mapping) and "problem" not in value else value


SINGLE = ("branch_and_bound", "btda", "genetic", "approximate", "aggregate")
"""Methods that search one record's lattice at a time, against the dictionary's vectors."""

CellsDecision = DisclosePerRecord | DiscloseInAll | DisclosePerAttribute
"""Decisions by suppression alone that disclose a number of cells."""

SearchedDecision = LeastRiskDecision | GreatestUtilityDecision | LeastPenalizedDecision | AggregateDecision
"""Decisions that optimize an objective over each record's lattice."""

DecisionPolicy = Annotated[
    LeastRiskDecision
    | GreatestUtilityDecision
    | LeastPenalizedDecision
    | AggregateDecision
    | DisclosePerRecord
    | DiscloseInAll
    | DisclosePerAttribute
    | ListedRulesDecision,
    Field(discriminator="problem"),
    BeforeValidator(_usual_problem),
]
"""The optimization problem of each record, or of the table; ``min-risk`` where none is named."""
