"""Which variant of a decision a policy asks for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from privrisk_spark.planning.decisions.decision import Decision
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

VARIANTS: Mapping[type[Any], tuple[str, str]] = {
    LeastRiskDecision: ("least_risk", "ByLeastRisk"),
    GreatestUtilityDecision: ("greatest_utility", "ByGreatestUtility"),
    LeastPenalizedDecision: ("least_penalized", "ByLeastPenalizedRisk"),
    AggregateDecision: ("aggregate", "ByAggregate"),
    DisclosePerRecord: ("cells_per_record", "ByCellsPerRecord"),
    DiscloseInAll: ("cells_in_all", "ByCellsInAll"),
    DisclosePerAttribute: ("cells_per_attribute", "ByCellsPerAttribute"),
    ListedRulesDecision: ("listed_rules", "ByListedRules"),
}
"""Module and class of the variant of each type of decision in a policy; a run imports its own only."""


def decision_of(policy: Policy) -> Decision:
    """Return the variant a policy asks for: by its guarantee, or it has a decision."""
    recoding = anonymity_of(policy.guarantee)
    if recoding is not None:
        return _variant("recoded", "ByRecoding", policy, recoding)
    asked = policy.decision
    assert asked is not None, "only a policy with a decision is decided by risk"
    return _variant(*VARIANTS[type(asked)], policy, asked)


def _variant(module: str, name: str, policy: Policy, asked: object) -> Decision:
    """Import a variant and make it of a policy."""
    variant: Callable[[Policy, object], Decision] = getattr(
        import_module(f"privrisk_spark.planning.decisions.{module}"), name
    )
    return variant(policy, asked)
