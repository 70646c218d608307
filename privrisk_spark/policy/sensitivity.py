"""Sensitivity of a disclosed record: one type per form of Φ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from privrisk_spark.policy.types import SORTED, NonNegative, Part, Positive, Text, Weight
from privrisk_spark.policy.variants import Variant


class Personal(Part):
    """Personal weights, read from columns of the table with role ``weight``."""

    columns: Annotated[dict[str, str], SORTED] = Field(
        default_factory=dict, description="Quasi-identifier: column of w_{j,r}."
    )
    factor: Text | None = Field(
        None, description="Column of w'_r, multiplies every weight of the record, those of interactions too."
    )
    sum_to: Positive | None = Field(
        None, description="Scale each record's weights, its own times the attribute's, to this sum."
    )
    at_most: Positive | None = Field(
        None, description="Scale down records whose weights, own times attribute, sum to more."
    )


class Interaction(Part):
    """Attributes whose joint disclosure weighs more than each alone (Lebanon et al. 2006, Φ4; Fouad 2012, eq 2.3)."""

    columns: list[Text] = Field(min_length=2, description="Quasi-identifiers, each once; what counts is all disclosed.")
    weight: Weight = Field(description="What their joint disclosure adds, not negative; .inf allowed.")


class SensitivityPolicy(Variant):
    """Sensitivity Φ of a disclosed record; what a form has no use for reads as if it were not given."""

    told_by: ClassVar[str] = "form"
    silent: ClassVar[Mapping[str, Any]] = {
        "form": ...,
        "constant": 1.0,
        "weights": {},
        "node_weights": {},
        "record": None,
        "interactions": [],
        "personal": None,
    }

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """Columns of the table the form reads weights from."""
        return ()


class ConstantSensitivity(SensitivityPolicy):
    """The same Φ of every disclosure."""

    form: Literal["constant"]
    constant: NonNegative = Field(1.0, description="Φ of the constant form.")


class RecordSensitivity(SensitivityPolicy):
    """A Φ of each record."""

    form: Literal["record"]
    record: Text | None = Field(None, description="Column of w_r for the record form (default 1).")

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """Columns of the table the form reads weights from."""
        return () if self.record is None else (self.record,)


class WeighedSensitivity(SensitivityPolicy):
    """A Φ made of weights of the disclosed nodes."""

    weights: Annotated[dict[str, Weight], SORTED] = Field(
        default_factory=dict, description="Leaf weight per quasi-identifier (default 1; .inf allowed)."
    )
    node_weights: Annotated[dict[str, Annotated[dict[str, Weight], SORTED]], SORTED] = Field(
        default_factory=dict, description="Weights of single nodes by label, in place of the harmonic mean."
    )
    personal: Personal | None = Field(None, description="Weights of single records; null: all records alike.")

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """Columns of the table the form reads weights from."""
        if self.personal is None:
            return ()
        factor = () if self.personal.factor is None else (self.personal.factor,)
        return (*self.personal.columns.values(), *factor)


class LinearSensitivity(WeighedSensitivity):
    """The sum of the disclosed nodes' weights; the form where none is named."""

    form: Literal["linear"] = "linear"


class MultiplicativeSensitivity(WeighedSensitivity):
    """The product of a factor of each disclosed node."""

    form: Literal["multiplicative"]


class InteractionSensitivity(WeighedSensitivity):
    """The sum of weights, and of those of attributes that are disclosed together."""

    asks: ClassVar[Mapping[str, str]] = {"interactions": "by the form 'interaction'"}

    form: Literal["interaction"]
    interactions: list[Interaction] = Field(
        min_length=1,
        max_length=256,
        description="Sets of attributes and their weights, such as [{columns: [age, city], weight: 0.3}].",
    )


def _form(value: object) -> object:
    form = value.get("form", "linear") if isinstance(value, Mapping) else getattr(value, "form", None)
    return f"form '{form}'" if isinstance(form, str) else None


Sensitivity = Annotated[
    Annotated[ConstantSensitivity, Tag("form 'constant'")]
    | Annotated[LinearSensitivity, Tag("form 'linear'")]
    | Annotated[RecordSensitivity, Tag("form 'record'")]
    | Annotated[MultiplicativeSensitivity, Tag("form 'multiplicative'")]
    | Annotated[InteractionSensitivity, Tag("form 'interaction'")],
    Discriminator(_form),
]
"""Sensitivity Φ of a disclosed record, by its form."""
