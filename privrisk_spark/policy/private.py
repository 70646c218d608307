"""Differential privacy, as it is asked for: one type per mode, each with the privacy loss of its stages."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, ValidationInfo, field_validator

from privrisk_spark.hierarchies.text import PathText
from privrisk_spark.policy.privacy_model import DrawnModel
from privrisk_spark.policy.types import (
    NUMBER,
    SORTED,
    Count,
    Delta,
    KeyReference,
    Natural,
    NonNegative,
    NonNegativeExact,
    Part,
    Positive,
    PositiveExact,
)
from privrisk_spark.policy.variants import Variant

Choose = Annotated[
    PositiveExact,
    Field(description="One pick of a scheme among candidates; a release with several picks costs it as often."),
]
Admit = Annotated[PositiveExact, Field(description="Noisy admission of t-frequent cells.")]
Keep = Annotated[PositiveExact, Field(description="Sampling and crowd threshold.")]


def _zero(rule: str) -> AfterValidator:
    def nothing(value: Decimal) -> Decimal:
        if value != 0:
            raise ValueError(rule)
        return value

    return AfterValidator(nothing)


NoChoice = Annotated[NonNegativeExact, _zero("must be 0 where no scheme is chosen from candidates")]
NoAdmission = Annotated[NonNegativeExact, _zero("must be 0 in mode 'global', which admits no cells")]
Public = Annotated[NonNegativeExact, _zero("must be 0 in mode 'public-dictionary', as admission costs nothing there")]
Paid = Annotated[NonNegativeExact, _zero("must be 0 with reuse, which costs nothing")]


class Epsilon(Variant):
    """Privacy loss of the stages."""

    silent: ClassVar[Mapping[str, Any]] = {"choose": ..., "admit": ..., "keep": ...}


class AdmissionEpsilon(Epsilon):
    """Privacy loss of admission and sampling."""

    asks: ClassVar[Mapping[str, str]] = {"admit": "in mode 'local'"}

    choose: NoChoice = Field(Decimal(0), description="Nothing: the schemes are given.")
    admit: Admit
    keep: Keep


class PeelingEpsilon(Epsilon):
    """Privacy loss of each pick, of admission and sampling."""

    asks: ClassVar[Mapping[str, str]] = {"choose": "with peel", "admit": "in mode 'local'"}

    choose: Choose
    admit: Admit
    keep: Keep


class ReuseEpsilon(Epsilon):
    """Privacy loss of sampling alone: the admission is paid."""

    choose: Paid = Field(Decimal(0), description="Nothing: an earlier release paid for it.")
    admit: Paid = Field(Decimal(0), description="Nothing: an earlier release paid for it.")
    keep: Keep


class PublicEpsilon(Epsilon):
    """Privacy loss of sampling alone: a public dictionary costs nothing."""

    choose: NoChoice = Field(Decimal(0), description="Nothing: the schemes are given.")
    admit: Public = Field(Decimal(0), description="Nothing: a public dictionary admits.")
    keep: Keep


class GlobalEpsilon(Epsilon):
    """Privacy loss of the pick of the one scheme, and of sampling."""

    asks: ClassVar[Mapping[str, str]] = {"choose": "in mode 'global'"}

    choose: Choose
    admit: NoAdmission = Field(Decimal(0), description="Nothing: one scheme is chosen for all rows.")
    keep: Keep


class AggregateObjective(Part):
    """Objective (5.4) of the exponential draw: lambda / risk + utility^kappa, of every admitted generalization."""

    kind: Literal["aggregate"] = "aggregate"
    lambda_: NonNegative = Field(
        1.0, alias="lambda", description="What 1/sensitivity is worth in units of utility^kappa."
    )
    kappa: NonNegative = Field(1.0, description="Exponent of the utility.")
    tau: Annotated[float, Field(gt=0), NUMBER] = Field(1.0, description="Inverse temperature; .inf takes the best.")
    phi_min: Positive = Field(description="Public floor of Φ.")
    count_cap: Count | None = Field(None, description="Public cap of counts; default public_rows.")


class ThresholdObjective(Part):
    """Minus the risk, of the admitted generalizations whose utility is at least a floor; where none is, suppression."""

    kind: Literal["threshold"]
    utility_at_least: NonNegative = Field(description="The floor c of every drawn generalization's utility.")
    tau: Annotated[float, Field(gt=0), NUMBER] = Field(1.0, description="Inverse temperature; .inf takes the best.")
    count_cap: Count | None = Field(None, description="Public cap of counts; default public_rows.")


def _usual_objective(value: object) -> object:
    return {"kind": "aggregate", **value} if isinstance(value, Mapping) and "kind" not in value else value


Objective = Annotated[
    AggregateObjective | ThresholdObjective, Field(discriminator="kind"), BeforeValidator(_usual_objective)
]
"""What the exponential draw prefers; ``aggregate`` where none is named."""

Vectors = Annotated[list[list[Natural]], Field(min_length=1, max_length=4096)]
AskedObjective = Annotated[
    Objective,
    Field(
        description="Objective of the draw, such as {phi_min: 0.1} or {kind: threshold, utility_at_least: 8}; mode "
        "global has none."
    ),
]
Schemes = Annotated[
    Vectors | None,
    Field(
        description="Public level vectors, in the order of the quasi-identifiers; default proposed from hierarchies "
        "and public_rows."
    ),
]
Candidates = Annotated[
    Vectors | None,
    Field(description="Public level vectors to draw the scheme from, in mode global, or with peel; default proposed."),
]
Noise = Annotated[
    Literal["auto", "gaussian", "laplace"],
    Field(description="Noise of the admission in mode local; 'auto' takes the one with the lower threshold T."),
]
Frequent = Annotated[
    Count | None,
    Field(
        description="t; default the smallest that meets delta. In mode global the rows of a cell that a scheme's score "
        "does not count; default those a cell needs to be released with probability 50 %."
    ),
]
_MODE = (
    "A record's generalization is drawn among admitted ones ('local', or 'public-dictionary' where admission costs "
    "nothing), or all records take one drawn scheme ('global')."
)


class DpGuarantee(Variant, DrawnModel):
    """Differential privacy for add/remove of one row, one row per person (drawn, with table.entity_id)."""

    private: ClassVar[bool] = True
    stages: ClassVar[int] = 9
    unused: ClassVar[Mapping[str, str]] = {
        **DrawnModel.unused,
        "history": "the ledger composes releases",
        "checks.complete.rows_at_least": DrawnModel.unused["checks.row_count"],
    }
    guide_elsewhere: ClassVar[str | None] = "columns"
    told_by: ClassVar[str] = "mode"
    silent: ClassVar[Mapping[str, Any]] = {
        "kind": ...,
        "mode": ...,
        "epsilon": ...,
        "delta": ...,
        "public_rows": ...,
        "schemes": None,
        "candidates": None,
        "peel": None,
        "public_shares": ...,
        "reuse": None,
        "noise": "auto",
        "objective": None,
        "keep_fraction": ...,
        "crowd": ...,
        "frequent": None,
        "key": ...,
    }

    kind: Literal["dp"]
    delta: Delta = Field(description="Probability that the bound epsilon may fail.")
    public_rows: Count = Field(description="Public estimate of the number of rows.")
    public_shares: Annotated[dict[str, Annotated[dict[str, NonNegative], SORTED]], SORTED] = Field(
        default_factory=dict,
        description="Public shares of values or nodes, by quasi-identifier and label, for proposals; else uniform.",
    )
    keep_fraction: Annotated[float, Field(gt=0, le=1), NUMBER] | None = Field(
        None,
        description="Keep probability as a share of 1 - exp(-keep); default half, and without crowd as much more as "
        "the k found for half allows.",
    )
    crowd: Annotated[int, Field(ge=10), NUMBER] | None = Field(
        None, description="k; default the smallest that meets delta."
    )
    key: KeyReference = None


class LocalDp(DpGuarantee):
    """Each record draws among the admitted cells of public schemes, which are admitted by noisy counts."""

    unused: ClassVar[Mapping[str, str]] = {
        **DpGuarantee.unused,
        "dictionary": "in mode 'local' counts come from the noisy admission",
        "counting.plan": "mode 'local' counts cells of schemes",
    }
    switches: ClassVar[tuple[str, ...]] = ("peel", "reuse")
    refusals: ClassVar[Mapping[str, str]] = {
        "candidates": "is not used in mode 'local' without peel; add peel: the number to draw, or leave it out"
    }
    asks: ClassVar[Mapping[str, str]] = {"objective": "in mode 'local'"}

    mode: Literal["local"] = Field("local", description=_MODE)
    epsilon: AdmissionEpsilon = Field(description="Privacy loss, such as {admit: 0.3, keep: 0.7}.")
    schemes: Schemes = None
    noise: Noise = "auto"
    objective: AskedObjective
    frequent: Frequent = None


class PeeledDp(DpGuarantee):
    """As mode 'local', under schemes that are drawn from public candidates."""

    stages: ClassVar[int] = 10
    unused: ClassVar[Mapping[str, str]] = LocalDp.unused
    refusals: ClassVar[Mapping[str, str]] = {
        "schemes": "are drawn from guarantee.candidates with peel; leave them out",
    }
    asks: ClassVar[Mapping[str, str]] = {"objective": "in mode 'local'"}

    mode: Literal["local"] = Field("local", description=_MODE)
    epsilon: PeelingEpsilon = Field(description="Privacy loss, such as {choose: 0.1, admit: 0.2, keep: 0.7}.")
    candidates: Candidates = None
    peel: Count = Field(description="Draw that many of the candidates as schemes of mode local.")
    noise: Noise = "auto"
    objective: AskedObjective
    frequent: Frequent = None

    @field_validator("peel")
    @classmethod
    def no_more_than_there_are(cls, peel: int, info: ValidationInfo) -> int:
        """Refuse more picks than candidates."""
        candidates = info.data.get("candidates")
        if candidates is not None and peel > len(candidates):
            raise ValueError(f"must be at most the {len(candidates)} candidates")
        return peel


_PAID = "is not used with reuse, which takes cells that are admitted already; leave it out"


class ReusingDp(DpGuarantee):
    """As mode 'local', with the cells that an earlier release admitted and published."""

    unused: ClassVar[Mapping[str, str]] = {
        **DpGuarantee.unused,
        **dict.fromkeys(("dictionary", "counting.plan"), "guarantee.reuse takes cells that are admitted already"),
    }
    refusals: ClassVar[Mapping[str, str]] = dict.fromkeys(("candidates", "peel", "noise", "frequent"), _PAID)
    asks: ClassVar[Mapping[str, str]] = {"objective": "in mode 'local'"}

    mode: Literal["local"] = Field("local", description=_MODE)
    epsilon: ReuseEpsilon = Field(description="Privacy loss, such as {keep: 0.7}.")
    schemes: Schemes = None
    reuse: PathText = Field(
        description="Manifest of an earlier release of the lineage, in its own directory: its admitted cells are taken "
        "and cost nothing more."
    )
    objective: AskedObjective


class PublicDp(DpGuarantee):
    """Each record draws among the cells that are frequent in a public dictionary."""

    counts_frequent: ClassVar[bool] = True
    refusals: ClassVar[Mapping[str, str]] = {
        "candidates": "is not used in mode 'public-dictionary'; leave it out",
        "peel": "is not used in mode 'public-dictionary'; leave it out",
        "reuse": "is only used in mode 'local', and the mode is 'public-dictionary'; leave it out",
        "noise": "is not used in mode 'public-dictionary', which adds none; leave it out",
    }
    asks: ClassVar[Mapping[str, str]] = dict.fromkeys(("objective", "frequent"), "in mode 'public-dictionary'")

    mode: Literal["public-dictionary"] = Field(description=_MODE)
    epsilon: PublicEpsilon = Field(description="Privacy loss, such as {keep: 0.7}.")
    schemes: Schemes = None
    objective: AskedObjective
    frequent: Count = Field(description="t, the rows of a frequent cell: there is no noise to derive it.")


class GlobalDp(DpGuarantee):
    """All records take one scheme, drawn from public candidates."""

    unused: ClassVar[Mapping[str, str]] = {
        **DpGuarantee.unused,
        "decision": "one scheme is drawn for all records",
        "dictionary": "mode 'global' looks no value up",
        "counting.plan": "mode 'global' counts cells of candidates",
    }
    refusals: ClassVar[Mapping[str, str]] = {
        key: f"is not used in mode 'global', {why}; leave it out"
        for key, why in {
            "schemes": "which draws its scheme from guarantee.candidates",
            "peel": "which draws one scheme",
            "reuse": "which admits no cells",
            "objective": "where all records take the drawn scheme",
            "noise": "which adds none",
        }.items()
    }

    mode: Literal["global"] = Field(description=_MODE)
    epsilon: GlobalEpsilon = Field(description="Privacy loss, such as {choose: 0.3, keep: 0.7}.")
    candidates: Candidates = None
    frequent: Frequent = None


def _mode(value: object) -> object:
    if isinstance(value, DpGuarantee):
        return _LABELS[type(value)]
    if not isinstance(value, Mapping):
        return None
    mode = value.get("mode", "local")
    if mode == "local":
        for key in ("reuse", "peel"):
            if value.get(key) is not None:
                return key
    return f"mode '{mode}'" if isinstance(mode, str) else None


_LABELS: dict[type[DpGuarantee], str] = {
    LocalDp: "mode 'local'",
    PeeledDp: "peel",
    ReusingDp: "reuse",
    PublicDp: "mode 'public-dictionary'",
    GlobalDp: "mode 'global'",
}

AnyDp = Annotated[
    Annotated[LocalDp, Tag("mode 'local'")]
    | Annotated[GlobalDp, Tag("mode 'global'")]
    | Annotated[PublicDp, Tag("mode 'public-dictionary'")]
    | Annotated[PeeledDp, Tag("peel")]
    | Annotated[ReusingDp, Tag("reuse")],
    Discriminator(_mode),
]
"""Differential privacy by its mode; mode 'local' where none is named, and there by the keys peel and reuse."""
