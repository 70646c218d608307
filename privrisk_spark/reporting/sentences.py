"""What the stages of a release did, in words."""

from __future__ import annotations

from collections.abc import Mapping

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.counting import PlanChoice
from privrisk_spark.planning.mechanism import Mechanism
from privrisk_spark.planning.modes import OneScheme, ReusedCells
from privrisk_spark.planning.search import method_of
from privrisk_spark.policy.decisions import (
    AggregateDecision,
    CellsDecision,
    DiscloseInAll,
    DisclosePerRecord,
    GreatestUtilityDecision,
    LeastPenalizedDecision,
    LeastRiskDecision,
    ListedRulesDecision,
    RuleDecision,
)
from privrisk_spark.policy.policy import Policy


def objective_in_words(policy: Policy, *, risk: str) -> tuple[str, dict[str, object]]:
    """The policy's optimization problem in words, and its parameters."""
    decision, utility = policy.decision, f"{policy.utility.measure} utility"
    if isinstance(decision, LeastRiskDecision):
        floor = decision.utility_at_least
        return f"least {risk} among those with {utility} at least {floor:g}", {"utility_at_least": floor}
    if isinstance(decision, GreatestUtilityDecision):
        ceiling = decision.risk_at_most
        return f"greatest {utility} among those with {risk} at most {ceiling:g}", {"risk_at_most": ceiling}
    if isinstance(decision, LeastPenalizedDecision):
        rate = decision.lambda_
        return f"least {risk} less {rate:g} times its {utility}", {"lambda": rate}
    if isinstance(decision, CellsDecision):
        return _objective_of_cells(decision, risk=risk), {"cells": decision.cells}
    if isinstance(decision, ListedRulesDecision):
        floor, number = decision.utility_at_least, len(decision.rules)
        asked = f"of {number:,} listed ones that of least mean {risk} among those with a mean {utility} of at least"
        asked += f" {floor:g}"
        if policy.dictionary.kind == "minimax":
            asked += "; the mean against each dictionary is taken, and the largest of these is the least there is"
        return asked, {"utility_at_least": floor, "rules": number}
    assert isinstance(decision, AggregateDecision)
    parameters: dict[str, object] = {
        "lambda": decision.lambda_,
        "kappa": decision.kappa,
        "zero_phi": decision.zero_phi,
    }
    power = f"its {utility}" + ("" if decision.kappa == 1 else f" to the power {decision.kappa:g}")
    return f"greatest sum of {decision.lambda_:g} divided by its {risk}, and {power}", parameters


def _objective_of_cells(decision: CellsDecision, *, risk: str) -> str:
    cells = f"{decision.cells:,} {'value' if decision.cells == 1 else 'values'}"
    independent = "if the attributes of the dictionary were independent"
    if isinstance(decision, DisclosePerRecord):
        return (
            f"of each record the {cells} of least exposure exp(w) N/ρ alone, and nothing else (LSFB06, MinRisk): the "
            f"least {risk} of all ways to disclose so many, {independent}"
        )
    of = "of the table" if isinstance(decision, DiscloseInAll) else "of each attribute"
    return (
        f"the {cells} {of} with the least exposure exp(w) N/ρ alone, and nothing else: {independent}, the mean "
        f"logarithm of the {risk} would be the least of all ways to disclose so many; for its mean this is a heuristic"
    )


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
    asked, _ = objective_in_words(policy, risk=f"model-{policy.risk.model} risk{over.get(policy.dictionary.kind, '')}")
    method, why = method_of(policy, hierarchies)
    sentence = f"Chose each record's disclosure by '{method}' ({why}): {asked}."
    if isinstance(policy.decision, RuleDecision):
        return sentence
    if policy.dictionary.consistency == "similar":
        sentence += (
            " Every feasible node was looked at: counts by likeness of labels are not monotone, and no theorem that "
            "leaves nodes out holds for them."
        )
    if isinstance(policy.decision, AggregateDecision):
        sentence += (
            " This model is nearly all or nothing: as lambda grows, a record's optimum jumps from the release as it is "
            "to the suppression of nearly all of it."
        )
    if policy.dictionary.kind == "minimax":
        sentence += " The mean of the records' worst risks is an upper bound of the worst dictionary's mean risk."
    return sentence


def choice_sentence(plan: Mechanism) -> str:
    """What choosing the schemes of a differentially private release did, in words."""
    assert plan.choice is not None
    picks = "one scheme" if plan.choice.picks == 1 else f"{plan.choice.picks} schemes, one after the other,"
    return (
        f"Drew {picks} of {len(plan.choice.candidates)} public candidates by the exponential mechanism with epsilon "
        f"{plan.choice.epsilon} a pick; the score is a scheme's precision times the rows of its cells beyond "
        f"t0 = {plan.choice.beyond}."
    )


def admission_sentence(plan: Mechanism) -> str:
    """What the admission of a differentially private release did, in words."""
    if isinstance(plan.mode, ReusedCells):
        return (
            f"Took the cells that the run '{plan.mode.cells.run_id}' admitted and released; no row was counted for it."
        )
    if plan.admission is None:
        return f"Counted the public dictionary; cells with at least t = {plan.frequent} rows are admissible."
    kind = "public" if plan.choice is None else "chosen"
    return (
        f"Admitted the cells of {plan.mode.w} {kind} schemes whose count plus {plan.admission.noise} reaches "
        f"t = {plan.frequent}."
    )


def recoding_sentence(plan: Mechanism) -> str:
    """What recoding and sampling of a differentially private release did, in words."""
    if isinstance(plan.mode, OneScheme):
        return (
            "Recoded every record by the chosen scheme, and kept each with probability "
            f"{plan.keep_numerator}/2^32, by a keyed function of the record."
        )
    return (
        "Drew each record's generalization among the admitted ones by the exponential objective, and kept each "
        f"record with probability {plan.keep_numerator}/2^32, both by keyed functions of the record."
    )
