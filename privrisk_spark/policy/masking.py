"""Perturbative masking as a column asks for it: one type per method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from privrisk_spark.hierarchies.scales import Number
from privrisk_spark.policy.privacy_model import PrivacyModel
from privrisk_spark.policy.types import NUMBER, SORTED, KeyReference, NonNegative, Part, Positive, Text, unsaid

Share = Annotated[float, Field(ge=0, le=1), NUMBER]
Percent = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False), NUMBER]

SUMS_TO_ONE = 1e-9
"""How far the sum of a row of a transition matrix may be from 1."""


class Masking(Part):
    """One way of masking a column."""

    def declared(self) -> dict[str, Any]:
        """Return what is done, for a manifest; whoever has the release may know it."""
        said = self.model_dump(mode="json")
        return {key: value for key, value in said.items() if value is not None}


class NoMask(Masking):
    """Released as it is; said, so that it is no oversight."""

    method: Literal["none"]


class Microaggregation(Masking):
    """Every value becomes the mean of a group of at least k records."""

    method: Literal["microaggregation"]
    k: Annotated[int, Field(ge=2), NUMBER] = Field(description="Least records of a group.")
    algorithm: Literal["mdav", "v-mdav", "univariate"] = Field(
        "mdav",
        description="'mdav' groups of k records (Domingo-Ferrer and Mateo-Sanz), 'v-mdav' of k to 2k - 1, 'univariate' "
        "the best groups of one column by itself.",
    )
    gamma: NonNegative | None = Field(
        None, description="Of 'v-mdav': how readily a group takes in a further record; by default 0.2."
    )
    group: Text | None = Field(
        None,
        description="Columns that name one group are aggregated together; by default all quasi-identifiers that are "
        "microaggregated and name none.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.gamma is not None and self.algorithm != "v-mdav":
            raise ValueError(f"takes gamma with algorithm: v-mdav alone, and it is '{self.algorithm}'")
        if self.group is not None and self.algorithm == "univariate":
            raise ValueError("takes no group with algorithm: univariate, which looks at one column by itself")
        return self


class Noise(Masking):
    """Normal noise is added to every value."""

    method: Literal["noise"]
    share: Positive | None = Field(None, description="Variance of the noise, as a share of that of the column.")
    deviation: Positive | None = Field(None, description="Standard deviation of the noise, in the unit of the column.")
    group: Text | None = Field(
        None,
        description="Columns that name one group get noise that is correlated as they are, so that correlations are "
        "kept; by default the noise of each is independent.",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.share is None) == (self.deviation is None):
            raise ValueError("takes exactly one of share and deviation")
        if self.group is not None and self.share is None:
            raise ValueError("takes share with group, as the noise is correlated as the columns are")
        return self


class RankSwapping(Masking):
    """Every value is exchanged with one of about the same rank; the values stay as a whole what they were."""

    method: Literal["rank-swapping"]
    percent: Percent = Field(description="How far apart the ranks of two exchanged values may be, in percent of all.")


class Invariant(Part):
    """A transition matrix under which the shares of the categories stay, in expectation, what they are."""

    keep: Share = Field(description="Least probability that a value stays as it is.")


class Pram(Masking):
    """Every category becomes another one, or stays, by a transition matrix."""

    method: Literal["pram"]
    matrix: Annotated[dict[str, dict[str, Share]], SORTED] | None = Field(
        None,
        description="Probability of each category a category may become, such as {f: {f: 0.9, m: 0.1}, m: {f: 0.1, "
        "m: 0.9}}.",
    )
    two_stage: Literal[True] | None = Field(
        None,
        description="With matrix: true makes it invariant. What a value became by the matrix is drawn back by Bayes' "
        "rule, so that the shares of the categories stay what they are, in expectation.",
    )
    invariant: Invariant | None = Field(
        None, description="A matrix is made of the shares of the categories, such as {keep: 0.8}."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.matrix is None) == (self.invariant is None):
            raise ValueError("takes exactly one of matrix and invariant")
        if self.two_stage and self.matrix is None:
            raise ValueError("takes two_stage with matrix alone: invariant keeps the shares already")
        for category, becomes in (self.matrix or {}).items():
            if abs(sum(becomes.values()) - 1) > SUMS_TO_ONE:
                raise ValueError(f"gives {category!r} probabilities that sum to {sum(becomes.values()):g}, not to 1")
            strange = [other for other in becomes if other not in (self.matrix or {})]
            if strange:
                raise ValueError(f"lets {category!r} become {strange[0]!r}, which has no row of its own")
        return self


class TopBottom(Masking):
    """Values beyond two bounds are released as these."""

    method: Literal["top-bottom"]
    low: Number | None = Field(None, description="Smaller values are released as this one.")
    high: Number | None = Field(None, description="Greater values are released as this one.")
    quantiles: tuple[Share, Share] | None = Field(
        None, description="The bounds as quantiles of the column, such as [0.01, 0.99]."
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.quantiles is None) == (self.low is None and self.high is None):
            raise ValueError("takes low or high or both of them, or else quantiles")
        low, high = (self.low, self.high) if self.quantiles is None else self.quantiles
        if low is not None and high is not None and low >= high:
            raise ValueError(f"must have a low bound below the high one; got {low} and {high}")
        return self


class Rounding(Masking):
    """Values are released as the nearest multiple of a base."""

    method: Literal["rounding"]
    base: Annotated[Number, Field(gt=0)] = Field(description="Values are released as multiples of it.")


class Shuffle(Masking):
    """The values of a column are dealt out anew; with known columns so that rank correlations with these are kept."""

    method: Literal["shuffle"]
    known: tuple[Text, ...] = Field(
        (),
        description="Columns of numbers whose rank correlations with this one are kept, such as [age].",
    )


Mask = Annotated[
    NoMask | Microaggregation | Noise | RankSwapping | Pram | TopBottom | Rounding | Shuffle,
    Field(discriminator="method"),
]
"""How a column is masked, by its method."""

NUMERIC = Microaggregation | Noise | RankSwapping | TopBottom | Rounding | Shuffle
"""Methods for numbers and days."""

Masked = Annotated[
    Mask | None,
    Field(
        description="How the values are masked where guarantee.kind is 'masked', such as {method: noise, share: 0.1}.",
        exclude_if=unsaid,
    ),
]


class MaskedGuarantee(PrivacyModel):
    """Columns are masked as each of them says; nothing is guaranteed."""

    generalizes: ClassVar[bool] = False
    keyed: ClassVar[bool] = True
    unused: ClassVar[Mapping[str, str]] = {
        "decision": "columns are masked as each of them says",
        "linkage": "its risk is that of decisions by risk",
        "dictionary": "no value is looked up; privrisk attack measures what an attacker finds",
        "history": "releases by risk and k-anonymity are composed alone",
        "counting.plan": "no cell is counted",
        "assess.concealment": "changed values are consistent with no record",
        "table.entity_id": "each row is masked separately, and all rows of one person identify them; give one row per "
        "person",
        "table.weight": "rows are counted",
        "checks.max_mean_risk": "no risk is computed; use attack.correct_links_at_most",
        "checks.max_risk": "no risk is computed; use attack.correct_links_at_most",
        "checks.forbid_verbatim": "no value is generalized",
        "checks.kept_uniqueness_at_most": "masked columns are nearly unique by their method",
    }
    guide_elsewhere: ClassVar[str | None] = "masked"

    kind: Literal["masked"]
    key: KeyReference = None
