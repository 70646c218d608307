"""Algorithms 6 and 7 of Fouad 2012 as published, as they are asked for: one type per algorithm and version."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag, ValidationInfo, field_validator

from privrisk_spark.policy.privacy_model import DrawnModel
from privrisk_spark.policy.types import NUMBER, Count, KeyReference, NonNegative, Positive
from privrisk_spark.policy.variants import Variant

_OF_WALK = "is of Algorithm 7 and not used by 6; leave it out, or write algorithm: 7"
_OF_AGGREGATE = "is of the aggregate objective and not used with utility_at_least; leave it out"

Lambda = Annotated[NonNegative, Field(description="Of the aggregate objective (5.4).")]
PhiL = Annotated[
    Positive, Field(description="Lower bound of Φ, for the aggregate objective; a smaller Φ counts as it.")
]
PhiU = Annotated[
    Positive,
    Field(description="Upper bound of Φ, for the threshold version, where a larger Φ counts as it, and Algorithm 7."),
]
_ALGORITHM = "Number of the algorithm in Fouad 2012: 6 draws from its law, 7 walks towards it."


class AsPublishedGuarantee(Variant, DrawnModel):
    """Algorithm 6 or 7 of Fouad 2012 (sections 6.4, 6.5) as published, for comparison only: nothing is guaranteed."""

    told_by: ClassVar[str] = "algorithm"
    guide: ClassVar[str | None] = "as-published"
    guide_elsewhere: ClassVar[str | None] = "as-published"
    counts_frequent: ClassVar[bool] = True
    unused: ClassVar[Mapping[str, str]] = {
        **DrawnModel.unused,
        "history": "its draws are not composed",
        "table.entity_id": "each row is a record",
        "dictionary": "Algorithms 6 and 7 count in the table itself",
    }
    doubt: ClassVar[str] = "the theorem of Algorithm 6 does not hold"
    silent: ClassVar[Mapping[str, Any]] = {
        "kind": ...,
        "algorithm": ...,
        "accept_unproven": ...,
        "epsilon": ...,
        "beta": ...,
        "theta0": ...,
        "lambda": 1.0,
        "kappa": 1.0,
        "phi_l": None,
        "phi_u": None,
        "utility_at_least": None,
        "steps": None,
        "layer_width": None,
        "sigma": None,
        "key": ...,
    }

    kind: Literal["as-published"]
    accept_unproven: bool = Field(
        False,
        validate_default=True,
        description="Must be true: says that whoever publishes knows that nothing is guaranteed.",
    )
    epsilon: Positive = Field(description="What Fouad 2012 claims; the draw depends on it.")
    beta: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        description="Probability that a row is not sampled; above exp(-epsilon)."
    )
    theta0: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        description="t is theta times the number of rows, theta uniform between this and 1."
    )
    key: KeyReference = None

    @field_validator("accept_unproven")
    @classmethod
    def accepted(cls, accept_unproven: bool) -> bool:
        """Refuse who does not say so."""
        if not accept_unproven:
            raise ValueError(
                f"must be true: {cls.doubt}, nothing is guaranteed, and such a release spoils the guarantees of "
                "everything else released from the table. Use the kind 'dp' or 'risk', or write accept_unproven: true "
                "to publish for comparison"
            )
        return accept_unproven

    @field_validator("beta")
    @classmethod
    def leaves_room_to_draw(cls, beta: float, info: ValidationInfo) -> float:
        """Refuse a probability that leaves the draw no epsilon."""
        least = math.exp(-info.data["epsilon"]) if "epsilon" in info.data else 0.0
        if beta <= least:
            raise ValueError(f"must be above exp(-epsilon) = {least:.6g}")
        return beta


class AggregateAsPublished(AsPublishedGuarantee):
    """Algorithm 6 with the aggregate objective."""

    switches: ClassVar[tuple[str, ...]] = ("utility_at_least",)
    refusals: ClassVar[Mapping[str, str]] = {
        "phi_u": "is only used by the threshold version, with utility_at_least; leave it out",
        **dict.fromkeys(("steps", "layer_width", "sigma"), _OF_WALK),
    }
    asks: ClassVar[Mapping[str, str]] = {"phi_l": "by the aggregate objective"}

    algorithm: Annotated[Literal[6], NUMBER] = Field(description=_ALGORITHM)
    lambda_: Lambda = Field(1.0, alias="lambda")
    kappa: Lambda = Field(1.0, description="Exponent of the utility.")
    phi_l: PhiL


class ThresholdAsPublished(AsPublishedGuarantee):
    """Algorithm 6 in the threshold version, which draws by risk."""

    refusals: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("lambda", "kappa", "phi_l"), _OF_AGGREGATE),
        **dict.fromkeys(("steps", "layer_width", "sigma"), _OF_WALK),
    }
    asks: ClassVar[Mapping[str, str]] = {"phi_u": "with utility_at_least"}

    algorithm: Annotated[Literal[6], NUMBER] = Field(description=_ALGORITHM)
    phi_u: PhiU
    utility_at_least: NonNegative = Field(
        description="c of the threshold version, which draws by risk; null: the aggregate objective."
    )


class WalkAsPublished(AsPublishedGuarantee):
    """Algorithm 7, which walks towards the law of Algorithm 6 with the aggregate objective."""

    doubt: ClassVar[str] = "the theorem of Algorithm 6, on which Algorithm 7 rests, does not hold"
    refusals: ClassVar[Mapping[str, str]] = {
        "utility_at_least": "is not available with Algorithm 7, which is printed for the aggregate objective alone; "
        "leave it out"
    }
    asks: ClassVar[Mapping[str, str]] = {
        "phi_l": "by the aggregate objective",
        **dict.fromkeys(("phi_u", "steps", "layer_width", "sigma"), "by Algorithm 7"),
    }

    algorithm: Annotated[Literal[7], NUMBER] = Field(description=_ALGORITHM)
    lambda_: Lambda = Field(1.0, alias="lambda")
    kappa: Lambda = Field(1.0, description="Exponent of the utility.")
    phi_l: PhiL
    phi_u: PhiU
    steps: Count = Field(
        description="Length of each row's walk, which Algorithm 7 needs and its print does not give, nor a bound on "
        "how far the walk is from its law then."
    )
    layer_width: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        description="epsilon'' of Algorithm 7, between 0 and 1: a layer's largest Φ is 1 + epsilon'' times its least."
    )
    sigma: Annotated[float, Field(gt=0, lt=1), NUMBER] = Field(
        description="Of Algorithm 7, between 0 and 1: an element is put out if it has at least sigma t rows."
    )

    @field_validator("kappa")
    @classmethod
    def supermodular(cls, kappa: float) -> float:
        """Refuse a power for which the walk's law is not what is printed."""
        if 0 < kappa < 1:
            raise ValueError(
                "must be 0, or at least 1, with Algorithm 7: the objective's numerator is not supermodular otherwise"
            )
        return kappa

    @field_validator("phi_u")
    @classmethod
    def above_phi_l(cls, phi_u: float, info: ValidationInfo) -> float:
        """Refuse bounds of Φ in the wrong order."""
        phi_l = info.data.get("phi_l")
        if phi_l is not None and phi_u < phi_l:
            raise ValueError(f"must be at least phi_l = {phi_l:g}")
        return phi_u


def _algorithm(value: object) -> object:
    if not isinstance(value, Mapping | AsPublishedGuarantee):
        return None
    given = dict(value) if isinstance(value, Mapping) else dict(value.__dict__)
    algorithm = given.get("algorithm")
    if algorithm == 7 and not isinstance(algorithm, bool):
        return "algorithm 7"
    if algorithm == 6:
        return "algorithm 6" if given.get("utility_at_least") is None else "utility_at_least"
    return None


AnyAsPublished = Annotated[
    Annotated[AggregateAsPublished, Tag("algorithm 6")]
    | Annotated[WalkAsPublished, Tag("algorithm 7")]
    | Annotated[ThresholdAsPublished, Tag("utility_at_least")],
    Discriminator(_algorithm),
]
"""An algorithm as published; of Algorithm 6 the threshold version where utility_at_least is given."""
