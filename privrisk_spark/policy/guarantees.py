"""What a release guarantees: least risk, k-anonymity, differential privacy, or nothing (masked, as published)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.as_published import AnyAsPublished
from privrisk_spark.policy.masking import MaskedGuarantee
from privrisk_spark.policy.private import AnyDp
from privrisk_spark.policy.types import Part


class RiskGuarantee(Part):
    """Each record's risk is minimal subject to the floor."""

    kind: Literal["risk"] = "risk"


Guarantee = Annotated[
    RiskGuarantee | KAnonymityGuarantee | MaskedGuarantee | AnyDp | AnyAsPublished, Field(discriminator="kind")
]
"""What a release guarantees, by its kind."""
