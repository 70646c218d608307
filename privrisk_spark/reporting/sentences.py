"""What the stages of a release did, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.counting import PlanChoice
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.policy.policy import Policy

if TYPE_CHECKING:
    from privrisk_spark.ledger.calibrated import Calibrated, Choosing


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


def choice_sentence(plan: Choosing) -> str:
    """What choosing the schemes of a differentially private release did, in words."""
    picks = "one scheme" if plan.picks == 1 else f"{plan.picks} schemes, one after the other,"
    return (
        f"Drew {picks} of {len(plan.candidates)} public candidates by the exponential mechanism with epsilon "
        f"{plan.epsilon_choose} a pick; the score is a scheme's precision times the rows of its cells beyond "
        f"t0 = {plan.beyond}."
    )


def admission_sentence(plan: Calibrated) -> str:
    """What the admission of a differentially private release did, in words."""
    from privrisk_spark.ledger.calibrated import Choosing, ReusedCells

    if isinstance(plan, ReusedCells):
        return f"Took the cells that the run '{plan.reuse.run_id}' admitted and released; no row was counted for it."
    if plan.admission is None:
        return f"Counted the public dictionary; cells with at least t = {plan.frequent} rows are admissible."
    kind = "chosen" if isinstance(plan, Choosing) else "public"
    return (
        f"Admitted the cells of {plan.w} {kind} schemes whose count plus {plan.admission.noise} reaches "
        f"t = {plan.frequent}."
    )


def recoding_sentence(plan: Calibrated) -> str:
    """What recoding and sampling of a differentially private release did, in words."""
    from privrisk_spark.ledger.calibrated import OneScheme

    if isinstance(plan, OneScheme):
        return (
            "Recoded every record by the chosen scheme, and kept each with probability "
            f"{plan.keep_numerator}/2^32, by a keyed function of the record."
        )
    return (
        "Drew each record's generalization among the admitted ones by the exponential objective, and kept each "
        f"record with probability {plan.keep_numerator}/2^32, both by keyed functions of the record."
    )
