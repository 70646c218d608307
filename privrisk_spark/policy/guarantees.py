"""What a release guarantees: least risk, k-anonymity, differential privacy, or nothing (masked, as published)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.as_published import AnyAsPublished
from privrisk_spark.policy.masking import MaskedGuarantee
from privrisk_spark.policy.privacy_model import PrivacyModel
from privrisk_spark.policy.private import AnyDp
from privrisk_spark.registry import MODELS, load


class RiskGuarantee(PrivacyModel):
    """Each record's risk is minimal subject to the floor."""

    kind: Literal["risk"] = "risk"


Guarantee = Annotated[
    RiskGuarantee | KAnonymityGuarantee | MaskedGuarantee | AnyDp | AnyAsPublished, Field(discriminator="kind")
]
"""What a release guarantees, by its kind."""


def anonymity_of(guarantee: Guarantee) -> KAnonymityGuarantee | None:
    """Return the guarantee if it recodes the whole table, or None."""
    return guarantee if isinstance(guarantee, KAnonymityGuarantee) else None


def model_of(manifest: Mapping[str, Any]) -> type[PrivacyModel]:
    """Return the privacy model of a release, by its manifest."""
    model: type[PrivacyModel] = load(MODELS[manifest["guarantee"]["kind"]].policy)
    return model
