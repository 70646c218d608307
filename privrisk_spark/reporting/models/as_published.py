"""The texts of a release by Algorithm 6 or 7 of Fouad 2012 as published."""

from __future__ import annotations

from typing import Any

from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.models.texts import Hierarchies, ModelTexts, name_lines


class AsPublishedTexts(ModelTexts):
    """Its texts."""

    how = "made coarser record by record"
    safe = "Nothing is guaranteed. Do not hand it out; it is for comparison."
    unproved = "There is no proof of anything here, and a known error in the one that was published. Do not rely on it."
    risk_basis = "counts of the table; before: an upper bound, as if one row were consistent"

    def explain(self, policy: Policy, hierarchies: Hierarchies, plan: Any) -> list[str]:  # noqa: ARG002
        """Return the constants."""
        return name_lines(plan.to_dict())


TEXTS = AsPublishedTexts()
