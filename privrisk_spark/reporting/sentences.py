"""What the stages of a release did, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.counting import PlanChoice
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.policy.policy import Policy

if TYPE_CHECKING:
    pass


def counting_sentence(policy: Policy, choices: Mapping[str, PlanChoice]) -> str:
    """What the counting stage did, in words for everybody; :func:`plan_reasons` has exact counts."""
    plans = "; ".join(
        (f"{name}: " if len(choices) > 1 else "") + f"by the plan '{choice.plan}'" for name, choice in choices.items()
    )
    return f"Counted consistent dictionary rows {plans}; consistency '{policy.dictionary.consistency}'."


def plan_reasons(choices: Mapping[str, PlanChoice]) -> str:
    """Why each dictionary is counted by its plan, for the vault alone."""
    return "; ".join((f"{name}: " if len(choices) > 1 else "") + choice.reason for name, choice in choices.items())


def decision_sentence(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
    """What the deciding stage did, in words."""
    over = {"bayes": ", expected over the dictionaries", "minimax": " against the worst of the dictionaries"}
    decision = decision_of(policy)
    asked = decision.objective(risk=f"model-{policy.risk.model} risk{over.get(policy.dictionary.kind, '')}")
    choice = decision.choice(hierarchies)
    return f"Chose each record's disclosure by '{choice.method}' ({choice.reason}): {asked}." + decision.remarks()
