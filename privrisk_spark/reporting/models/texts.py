"""What the reports and the manifest of a release state by its privacy model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.history import EarlierRelease
from privrisk_spark.policy.policy import Policy
from privrisk_spark.registry import MODELS, load
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import ChosenRule, Guarantee

Hierarchies = Mapping[str, Hierarchy]
Earlier = Sequence[EarlierRelease]


class ModelTexts:
    """The texts of one privacy model.

    Attributes
    ----------
    how : str
        How the columns are changed.
    safe : str
        To whom the release can be given; ``{known}`` is what the attacker knows, ``{alike}`` the rows of a class.
    proved, unproved : str or None
        What the status of the guarantee means, if not what it means elsewhere.
    lost : str or None
        What users of the release cannot do.
    risk_basis : str
        What the figures of risk rest on.
    guarantees : bool
        Whether the page calls its statement a guarantee.
    """

    how: ClassVar[str]
    safe: ClassVar[str]
    proved: ClassVar[str | None] = None
    unproved: ClassVar[str | None] = None
    lost: ClassVar[str | None] = None
    risk_basis: ClassVar[str] = "dictionary counts"
    guarantees: ClassVar[bool] = False

    def guarantee(
        self, policy: Policy, measured: DecisionFacts, trees: Hierarchies, rule: ChosenRule | None, earlier: Earlier
    ) -> Guarantee:
        """Return the guarantee of a release whose rows are decided."""
        raise NotImplementedError

    def explain(self, policy: Policy, hierarchies: Hierarchies, plan: Any) -> list[str]:
        """Return the lines of a dry run about what is drawn."""
        raise NotImplementedError

    def warn(self, parameters: Mapping[str, object]) -> list[str]:  # noqa: ARG002 - for models whose guarantee costs
        """Return what the guarantee costs."""
        return []


def texts_of(kind: str) -> ModelTexts:
    """Return the texts of a privacy model, by ``guarantee.kind``."""
    texts: ModelTexts = load(MODELS[kind].texts)
    return texts


def name_lines(parameters: Mapping[str, object], *, within: str = "") -> list[str]:
    """Return parameters as lines; those of several parts a line for each part."""
    lines: list[str] = []
    for name, value in parameters.items():
        if isinstance(value, Mapping) and all(isinstance(part, Mapping) for part in value.values()):
            lines += name_lines(value, within=f"{within}{name}.")
        else:
            lines.append(f"{within}{name}: {value}")
    return lines
