"""The texts of a release that is k-anonymous, and its guarantee."""

from __future__ import annotations

from collections.abc import Mapping

from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.models.texts import Earlier, Hierarchies, ModelTexts
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import ChosenRule, Guarantee


class AnonymityTexts(ModelTexts):
    """Its texts."""

    how = "made coarser by one scheme for the whole table"
    proved = (
        "What is proved is what every released class has, by the released labels. Not that nobody can be found by "
        "other means, and nothing about columns of which nothing is asked."
    )
    safe = (
        "To hand to readers who know a person by the quasi-identifiers: {alike} rows look alike in them, so the person "
        "is one of these."
    )

    def guarantee(
        self, policy: Policy, measured: DecisionFacts, trees: Hierarchies, rule: ChosenRule | None, earlier: Earlier
    ) -> Guarantee:
        """Return the guarantee of a release by the scheme of a table."""
        del earlier
        assert rule is not None, "the scheme that was found is stated"
        decision = decision_of(policy)
        choice = decision.choice(trees)
        statement = decision.statement(decision.objective(risk=""), measured, method=choice.method, rule=rule)
        statement += (
            " Alike are rows with the same released labels. It is no promise against an attacker who knows other "
            "columns, or of columns of which nothing is asked."
        )
        parameters: dict[str, object] = {
            **decision.parameters(),
            "method": f"{choice.method} ({choice.reason})",
            "levels": dict(rule.levels) or None,
            **(
                {"scheme": scheme["digest"]}
                if isinstance(scheme := rule.section.figures.get("scheme"), Mapping)
                else {}
            ),
        }
        return Guarantee("k-anonymity", statement, "proved", parameters)


TEXTS = AnonymityTexts()
