"""The texts of a release whose records are decided by risk, and its guarantee."""

from __future__ import annotations

from privrisk_spark.claims import Status
from privrisk_spark.kernels.disclosure.utility import UNITS
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.dictionaries import counted_unit
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.history import composition_statement
from privrisk_spark.reporting.models.texts import Earlier, Hierarchies, ModelTexts
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import ChosenRule, Guarantee


class RiskTexts(ModelTexts):
    """Its texts."""

    how = "each value as exact or as coarse as was decided for its record"
    proved = (
        "What is proved is the optimum: no other disclosure it allows is better by the risk and utility it names. Not "
        "that nobody can be found, and nothing about columns that are kept."
    )
    safe = (
        "To hand to readers who know no more of a person than {known} tells of the quasi-identifiers. How likely such "
        "a reader finds a person is the risk below."
    )

    def guarantee(
        self, policy: Policy, measured: DecisionFacts, trees: Hierarchies, rule: ChosenRule | None, earlier: Earlier
    ) -> Guarantee:
        """Return the guarantee of a release decided by risk."""
        decision = decision_of(policy)
        choice = decision.choice(trees)
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
            " The risk is that of a uniform attacker who knows no more than that; it is no promise against one who "
            "knows more."
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


TEXTS = RiskTexts()
