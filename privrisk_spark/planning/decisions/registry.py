"""Which variant of a decision a policy asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from privrisk_spark.planning.decisions.aggregate import ByAggregate
from privrisk_spark.planning.decisions.cells_in_all import ByCellsInAll
from privrisk_spark.planning.decisions.cells_per_attribute import ByCellsPerAttribute
from privrisk_spark.planning.decisions.cells_per_record import ByCellsPerRecord
from privrisk_spark.planning.decisions.decision import Decision
from privrisk_spark.planning.decisions.greatest_utility import ByGreatestUtility
from privrisk_spark.planning.decisions.least_penalized import ByLeastPenalizedRisk
from privrisk_spark.planning.decisions.least_risk import ByLeastRisk
from privrisk_spark.planning.decisions.listed_rules import ByListedRules
from privrisk_spark.planning.decisions.recoded import ByRecoding
from privrisk_spark.policy.decisions import (
    AggregateDecision,
    DiscloseInAll,
    DisclosePerAttribute,
    DisclosePerRecord,
    GreatestUtilityDecision,
    LeastPenalizedDecision,
    LeastRiskDecision,
    ListedRulesDecision,
)
from privrisk_spark.policy.guarantees import anonymity_of
from privrisk_spark.policy.policy import Policy

VARIANTS: Mapping[type[Any], Callable[[Policy, Any], Decision]] = {
    LeastRiskDecision: ByLeastRisk,
    GreatestUtilityDecision: ByGreatestUtility,
    LeastPenalizedDecision: ByLeastPenalizedRisk,
    AggregateDecision: ByAggregate,
    DisclosePerRecord: ByCellsPerRecord,
    DiscloseInAll: ByCellsInAll,
    DisclosePerAttribute: ByCellsPerAttribute,
    ListedRulesDecision: ByListedRules,
}
"""The variant of each type of decision in a policy."""


def decision_of(policy: Policy) -> Decision:
    """Return the variant a policy asks for: by its guarantee, or it has a decision."""
    recoding = anonymity_of(policy.guarantee)
    if recoding is not None:
        return ByRecoding(policy, recoding)
    asked = policy.decision
    assert asked is not None, "only a policy with a decision is decided by risk"
    return VARIANTS[type(asked)](policy, asked)
