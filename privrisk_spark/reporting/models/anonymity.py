"""The texts of a release that is k-anonymous, and its guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.history import EarlierRelease
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.models.texts import ModelTexts
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import ChosenRule, Guarantee


class AnonymityTexts(ModelTexts):
    """Its texts."""

    how: ClassVar[str] = "made coarser by one scheme for the whole table"
    proved: ClassVar[str | None] = (
        "What is proved is what every released class has, by the released labels. Not that nobody can be found by "
        "other means, and nothing about columns of which nothing is asked."
    )

    def safe(self, policy: Policy, guarantee: Guarantee) -> str:
        """State who may have it: readers who know the quasi-identifiers."""
        del policy
        asked = guarantee.parameters.get("k")
        alike = f"at least {asked}" if asked is not None else "so many as was asked"
        return (
            f"To hand to readers who know a person by the quasi-identifiers: {alike} rows look alike in them, so the "
            "person is one of these."
        )

    def guarantee(
        self,
        policy: Policy,
        measured: DecisionFacts,
        hierarchies: Mapping[str, Hierarchy],
        rule: ChosenRule | None = None,
        earlier: Sequence[EarlierRelease] = (),
    ) -> Guarantee:
        """Return the guarantee of a release by the scheme of a table."""
        del earlier
        assert rule is not None, "the scheme that was found is stated"
        decision = decision_of(policy)
        choice = decision.choice(hierarchies)
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
