"""What the reports and the manifest of a release state by its privacy model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.disclosure import greatest_utility
from privrisk_spark.planning.history import EarlierRelease
from privrisk_spark.policy.policy import Policy
from privrisk_spark.registry import MODELS, load
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import ChosenRule, Guarantee


class ModelTexts:
    """The texts of one privacy model.

    Attributes
    ----------
    how : str
        How the columns are changed, for the first paragraph.
    proved : str or None
        What the status 'proved' means for its guarantee.
    unproved : str or None
        What the status 'heuristic' means for its guarantee, if not what it means elsewhere.
    lost : str or None
        What users of the release cannot do.
    risk_basis : str
        What the figures of risk rest on.
    guarantees : bool
        Whether the page calls its statement a guarantee.
    """

    how: ClassVar[str]
    proved: ClassVar[str | None] = None
    unproved: ClassVar[str | None] = None
    lost: ClassVar[str | None] = None
    risk_basis: ClassVar[str] = "dictionary counts"
    guarantees: ClassVar[bool] = False

    def subject(self, policy: Policy) -> list[str]:
        """Return the columns that are changed."""
        return list(policy.quasi_identifiers)

    def safe(self, policy: Policy, guarantee: Guarantee) -> str:
        """State to whom the release can be given.

        Parameters
        ----------
        policy : Policy
        guarantee : Guarantee
        """
        raise NotImplementedError

    def guarantee(
        self,
        policy: Policy,
        measured: DecisionFacts,
        hierarchies: Mapping[str, Hierarchy],
        rule: ChosenRule | None = None,
        earlier: Sequence[EarlierRelease] = (),
    ) -> Guarantee:
        """Return the guarantee of a release whose rows are decided.

        Parameters
        ----------
        policy : Policy
        measured : DecisionFacts
            Of the decisions.
        hierarchies : mapping of attribute to Hierarchy
        rule : ChosenRule, optional
            The scheme, or the rule of a list that was chosen.
        earlier : sequence of EarlierRelease
            The earlier releases that the release composes with.
        """
        raise NotImplementedError

    def warnings(self, parameters: Mapping[str, object]) -> list[str]:
        """Return what the guarantee costs."""
        del parameters
        return []

    def explain(self, policy: Policy, hierarchies: Mapping[str, Hierarchy], plan: Any) -> list[str]:
        """Return the lines of a dry run about what decides.

        Parameters
        ----------
        policy : Policy
        hierarchies : mapping of attribute to Hierarchy
        plan : object or None
            What is drawn, if it is drawn.
        """
        del plan
        decision = decision_of(policy)
        chosen = decision.choice(hierarchies)
        expected = decision.expectation(greatest_utility(policy, hierarchies))
        return [expected, f"search: {chosen.method} ({chosen.reason})"]

    def describe_columns(self, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> list[dict[str, Any]]:
        """Return the released columns, as a manifest lists them.

        Parameters
        ----------
        policy : Policy
        hierarchies : mapping of attribute to Hierarchy
        """
        columns: list[dict[str, Any]] = []
        for name in policy.columns:
            if name in hierarchies:
                hierarchy = hierarchies[name]
                columns.append(
                    {
                        "name": name,
                        "role": "quasi-identifier",
                        "levels": hierarchy.height,
                        "suppressed": hierarchy.labels[hierarchy.root],
                        "nulls": policy.quasi_identifiers[name].nulls,
                    }
                )
            elif name in policy.kept_columns:
                recoding = policy.recodings.get(name)
                released = "as it is" if recoding is None else recoding.declared()
                columns.append({"name": name, "role": policy.columns[name].role, "released": released})
        return columns


def named_lines(parameters: Mapping[str, object], *, within: str = "") -> list[str]:
    """Return parameters as lines; those of several parts a line for each part.

    Parameters
    ----------
    parameters : mapping
    within : str, optional
        Prefix of each name.
    """
    lines: list[str] = []
    for name, value in parameters.items():
        if isinstance(value, Mapping) and all(isinstance(part, Mapping) for part in value.values()):
            lines += named_lines(value, within=f"{within}{name}.")
        else:
            lines.append(f"{within}{name}: {value}")
    return lines


def texts_of(kind: str) -> ModelTexts:
    """Return the texts of a privacy model.

    Parameters
    ----------
    kind : str
        ``guarantee.kind``.
    """
    texts: ModelTexts = load(MODELS[kind].texts)
    return texts
