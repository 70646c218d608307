"""The texts of a release by Algorithm 6 or 7 of Fouad 2012 as published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.models.texts import ModelTexts, named_lines
from privrisk_spark.results.release import Guarantee


class AsPublishedTexts(ModelTexts):
    """Its texts."""

    how: ClassVar[str] = "made coarser record by record"
    unproved: ClassVar[str | None] = (
        "There is no proof of anything here, and a known error in the one that was published. Do not rely on it."
    )
    risk_basis: ClassVar[str] = "counts of the table; before: an upper bound, as if one row were consistent"

    def safe(self, policy: Policy, guarantee: Guarantee) -> str:
        """State that the release is for comparison only."""
        del policy, guarantee
        return "Nothing is guaranteed. Do not hand it out; it is for comparison."

    def explain(self, policy: Policy, hierarchies: Mapping[str, Hierarchy], plan: Any) -> list[str]:
        """Return the statement and the constants."""
        del policy, hierarchies
        return [] if plan is None else [plan.statement, *named_lines(plan.to_dict())]


TEXTS = AsPublishedTexts()
