"""k-anonymity and what may be asked besides, as a guarantee that a whole table is recoded for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from privrisk_spark.hierarchies.builders import HierarchySpec
from privrisk_spark.hierarchies.text import PathText
from privrisk_spark.policy.privacy_model import PrivacyModel
from privrisk_spark.policy.types import NUMBER, Count, NonNegative, Part, Positive, Text, unsaid

Share = Annotated[float, Field(ge=0, le=1), NUMBER]

_COLUMN = "Column with the role 'sensitive' that is released."


class OfColumn(Part):
    """A condition on the values of a sensitive column in every released class."""

    column: Text = Field(description=_COLUMN)


class OfKnownValues(OfColumn):
    """A condition on the values of a class that are not missing."""

    count_missing: bool = Field(
        False, description="Whether a missing value counts as one more value.", exclude_if=unsaid
    )


class LDiversity(OfKnownValues):
    """l-diversity: distinct, by entropy, or recursive (c, l)."""

    l: Annotated[float, Field(ge=1, allow_inf_nan=False), NUMBER] = Field(  # noqa: E741 - the papers' name
        description="Values of a class: their number, or exp of their entropy; whole but for the kind 'entropy'."
    )
    kind: Literal["distinct", "entropy", "recursive"] = Field(
        "distinct",
        description="Which definition: different values, exp of their entropy, or recursive (c, l)-diversity.",
    )
    c: Positive | None = Field(None, description="Of the kind 'recursive': r_1 < c (r_l + ... + r_m).")


class PSensitivity(OfKnownValues):
    """p-sensitivity: so many distinct values in every class."""

    p: Count = Field(description="Different values of every released class, at least.")


class TCloseness(OfColumn):
    """t-closeness: the earth mover's distance of a class to the table."""

    t: Share = Field(description="Distance of a class's shares from the table's, at most.")
    distance: Literal["equal", "ordered", "hierarchical"] = Field(
        "equal",
        description="How far values are apart: all equally, as far as their ranks, or as far up as they meet in a "
        "hierarchy.",
    )
    hierarchy: HierarchySpec | None = Field(
        None, description="Of the distance 'hierarchical', such as {file: disease.csv}.", exclude_if=unsaid
    )


class AlphaBound(OfKnownValues):
    """(alpha, k)-anonymity: the greatest share of a value in a class."""

    alpha: Share = Field(description="Share of any value in a class, at most.")


class BetaLikeness(OfColumn):
    """beta-likeness: the greatest relative gain of a value in a class over the table."""

    beta: NonNegative = Field(description="Relative gain of any value's share over the table's, at most.")
    enhanced: bool = Field(False, description="Whether a gain must be at most -ln of the value's share, too.")


class DeltaDisclosure(OfColumn):
    """delta-disclosure: the greatest |ln| of the ratio of a value's shares in class and table, below delta."""

    delta: Positive = Field(
        description="Logarithm of a value's share in a class over that in the table, at most, either way."
    )


class KMap(Part):
    """k-map: the people of the dictionary that every released class is consistent with."""

    k: Annotated[int, Field(ge=2), NUMBER] = Field(description="People, at least.")


class DeltaPresence(Part):
    """delta-presence: of the people of the dictionary whom a class is consistent with, the share in the table."""

    at_least: Share = Field(0.0, description="Share of these people, at least.")
    at_most: Share = Field(description="Share of these people, of every released class.")


class Besides(Part):
    """One condition besides k; exactly one key."""

    l_diversity: LDiversity | None = Field(None, description="l-diversity.")
    p_sensitivity: PSensitivity | None = Field(None, description="p-sensitivity.")
    t_closeness: TCloseness | None = Field(None, description="t-closeness.")
    alpha: AlphaBound | None = Field(None, description="(alpha, k)-anonymity.")
    beta_likeness: BetaLikeness | None = Field(None, description="beta-likeness.")
    delta_disclosure: DeltaDisclosure | None = Field(None, description="delta-disclosure privacy.")
    k_map: KMap | None = Field(None, description="k-map against the dictionary.")
    delta_presence: DeltaPresence | None = Field(None, description="delta-presence against the dictionary.")

    @property
    def given(self) -> dict[str, Condition]:
        """The conditions by key; one, if the policy is possible."""
        return {name: asked for name in type(self).model_fields if (asked := getattr(self, name)) is not None}


Condition = OfColumn | KMap | DeltaPresence


class KAnonymityGuarantee(PrivacyModel):
    """Every released row is one of at least k that are alike in all quasi-identifiers."""

    recodes: ClassVar[bool] = True
    unused: ClassVar[Mapping[str, str]] = {
        "decision": "guarantee.metric decides",
        "history": "classes of one release do not bound what several tell together",
        "checks.min_class_size": "guarantee.k is the least class size",
    }

    kind: Literal["k-anonymity"]
    k: Annotated[int, Field(ge=2), NUMBER] = Field(
        description="Rows, or persons with table.entity_id, that each released class has at least."
    )
    also: list[Besides] = Field(
        default_factory=list,
        description="What classes must meet besides, such as [{l_diversity: {column: disease, l: 3}}].",
    )
    suppression_limit: Share = Field(0.0, description="Share of the rows that may be suppressed as wholes.")
    metric: Literal["loss", "aecs", "dm", "precision", "height", "ncp", "entropy", "classes"] = Field(
        "loss", description="What the scheme costs; the least is taken, ties by suppressed rows, then by its levels."
    )
    method: Literal[
        "best",
        "exhaustive",
        "samarati",
        "incognito",
        "flash",
        "k_optimize",
        "top_down",
        "datafly",
        "mondrian",
        "hilbert",
        "bang",
    ] = Field(
        "best",
        description="Search of the schemes of the whole table, of which 'best' proves its optimum with the fewest "
        "looks; 'datafly' is a heuristic, and 'mondrian', 'hilbert', 'bang' give each class levels of its own.",
    )
    ordered: list[Text] = Field(
        default_factory=list,
        description="Quasi-identifiers that 'mondrian' cuts at the median of their values, as [age], instead of by the "
        "nodes of their hierarchies.",
        exclude_if=unsaid,
    )
    suppressed: Literal["keep", "drop"] = Field(
        "keep", description="Suppressed rows are released with every quasi-identifier at its root, or left out."
    )
    scheme: PathText | None = Field(
        None,
        description="Approved scheme of `privrisk fit` to apply instead of searching for one, such as scheme.json.",
        exclude_if=unsaid,
    )

    @property
    def local(self) -> bool:
        """Whether each class has levels of its own, instead of one scheme for the table."""
        return self.method in ("mondrian", "hilbert", "bang")

    @property
    def asks_population(self) -> bool:
        """Whether classes are held against the people of the dictionary."""
        return any(isinstance(one, KMap | DeltaPresence) for part in self.also for one in part.given.values())

    def suppressed_at_most(self, rows: int) -> int:
        """Rows of a table that may be suppressed; the limit is the decimal that was written."""
        return int(Fraction(repr(self.suppression_limit)) * rows)
