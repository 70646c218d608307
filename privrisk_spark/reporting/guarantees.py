"""What a release promises, and of what kind the promise is: the statement and parameters of its guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from privrisk_spark.claims import Status
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.utility import UNITS
from privrisk_spark.ledger.calibrated import Calibrated
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import counted_unit
from privrisk_spark.planning.history import EarlierRelease
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.policy import Accounting, Policy
from privrisk_spark.reporting.history import composition_statement
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import ChosenRule, Guarantee

if TYPE_CHECKING:
    pass


def risk_guarantee(
    policy: Policy,
    measured: DecisionFacts,
    hierarchies: Mapping[str, Hierarchy],
    rule: ChosenRule | None = None,
    earlier: Sequence[EarlierRelease] = (),
) -> Guarantee:
    """Guarantee of a release decided by risk.

    Parameters
    ----------
    policy : Policy
        With a decision.
    measured : DecisionFacts
        Of the decisions.
    hierarchies : mapping of attribute to Hierarchy
    rule : ChosenRule, optional
        The rule of a list that was chosen.
    earlier : sequence of EarlierRelease
        That are out already, and that the release composes with.
    """
    decision = decision_of(policy)
    choice = decision.choice(hierarchies)
    against = {
        "self": "the table itself",
        "table": "the given dictionary",
        "bayes": "the given dictionaries, expected over their prior,",
        "minimax": "the worst of the given dictionaries",
        "estimated": "the estimated dictionary",
    }[policy.dictionary.kind]
    form = "not used" if policy.risk.model == "II" else policy.risk.sensitivity.form
    sensitivity = "" if policy.risk.model == "II" else f" ({form} sensitivity)"
    asked = decision.objective(risk=f"model-{policy.risk.model} risk{sensitivity} against {against}")
    limits = decision.parameters()
    if rule is not None:
        limits |= {"rule": rule.name, "levels": dict(rule.levels)}
    statement = decision.statement(asked, measured, method=choice.method, rule=rule)
    statement += composition_statement(earlier)
    statement += (
        " The risk is that of a uniform attacker who knows no more than that; it is no promise against one who knows "
        "more."
    )
    if measured.infeasible > measured.beyond:
        statement += " Records for which that is impossible are fully suppressed."
    if measured.beyond:
        statement += " Records that earlier releases have disclosed beyond it already are fully suppressed."
    statement += decision.proof(measured)
    parameters: dict[str, object] = {
        "risk_model": policy.risk.model,
        "sensitivity": form,
        "dictionary": policy.dictionary.kind,
        "consistency": policy.dictionary.consistency,
        "utility": policy.utility.measure,
        "utility_unit": UNITS[policy.utility.measure],
        "method": f"{choice.method} ({choice.reason})",
        **limits,
        **({"history": [one.run_id for one in earlier]} if earlier else {}),
        **_known(policy),
    }
    status: Status = "heuristic" if decision.is_heuristic(measured) else "proved"
    return Guarantee("risk", statement, status, parameters)


def anonymity_guarantee(
    policy: Policy, measured: DecisionFacts, hierarchies: Mapping[str, Hierarchy], rule: ChosenRule
) -> Guarantee:
    """Guarantee of a release by the scheme of a table.

    Parameters
    ----------
    policy : Policy
        With ``guarantee.kind: k-anonymity``.
    measured : DecisionFacts
        Of the decisions.
    hierarchies : mapping of attribute to Hierarchy
    rule : ChosenRule
        The scheme.
    """
    decision = decision_of(policy)
    choice = decision.choice(hierarchies)
    statement = decision.statement(decision.objective(risk=""), measured, method=choice.method, rule=rule)
    statement += (
        " Alike are rows with the same released labels. It is no promise against an attacker who knows other columns, "
        "or of columns of which nothing is asked."
    )
    parameters: dict[str, object] = {
        **decision.parameters(),
        "method": f"{choice.method} ({choice.reason})",
        "levels": dict(rule.levels) or None,
        **({"scheme": scheme["digest"]} if isinstance(scheme := rule.section.figures.get("scheme"), Mapping) else {}),
    }
    return Guarantee("k-anonymity", statement, "proved", parameters)


def decided_guarantee(
    policy: Policy,
    measured: DecisionFacts,
    hierarchies: Mapping[str, Hierarchy],
    rule: ChosenRule | None = None,
    earlier: Sequence[EarlierRelease] = (),
) -> Guarantee:
    """Guarantee of a release whose rows are decided, by its kind; parameters as there."""
    if isinstance(policy.guarantee, KAnonymityGuarantee):
        assert rule is not None, "the scheme that was found is stated"
        return anonymity_guarantee(policy, measured, hierarchies, rule)
    return risk_guarantee(policy, measured, hierarchies, rule, earlier)


def _known(policy: Policy) -> dict[str, object]:
    """What is to be known of dictionaries beside their kind: thresholds, priors, and what is counted if not rows."""
    known: dict[str, object] = {}
    if policy.dictionary.similar:
        known["similar"] = dict(policy.dictionary.similar)
    if policy.dictionary.kind == "bayes":
        known["priors"] = {one.name: one.prior for one in policy.dictionaries}
    units = {one.name: counted_unit(policy, one) for one in policy.dictionaries}
    if set(units.values()) != {"rows"}:
        known["counted"] = units if len(units) > 1 else next(iter(units.values()))
    return known


def dp_guarantee(plan: Calibrated, bound_by: Accounting = "basic") -> Guarantee:
    """Guarantee of a differentially private release, its cost in both accountings, and what it says of several rows.

    Parameters
    ----------
    plan : Calibrated
    bound_by : {'basic', 'pld'}
        What the cap of its lineage binds on; the guarantee of the release itself is the same.
    """
    # Not before it is needed: its packages take a second to import.
    from privrisk_spark.ledger import accounting

    parameters = plan.parameters
    if plan.noise_reason is not None:
        parameters["noise_reason"] = plan.noise_reason
    if plan.proposed is not None:
        parameters["proposed_because"] = plan.proposed
    parameters["accounting"] = accounting.account(plan.events)
    if bound_by == "pld":
        parameters["accounting_of_the_cap"] = {
            "accounting": bound_by,
            "status": "tested",
            "rests_on": accounting.RESTS_ON,
        }
    parameters |= accounting.further_guarantees(plan.epsilon, plan.delta)
    return Guarantee("dp", plan.statement, "proved", parameters)
