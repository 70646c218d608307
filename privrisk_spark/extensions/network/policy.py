"""What ``privrisk share`` decides: who is whose friend, whom to decide for, and what showing costs and brings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sections import Section
from privrisk_spark.policy.types import NUMBER, SORTED, Count, Finite, Natural, NonNegative, Part, Positive, Text

Unknown = Literal["refuse", "ignore"]
_UNKNOWN = "Rows that name nobody of the profiles, or name nobody at all, are an error, or are counted and left out."
_WEIGHTS = Annotated[dict[str, NonNegative], SORTED]


class UserPairs(Table):
    """A table of pairs of users."""

    u: Text = Field("u", description="Column of the first user's id: who shows, or trusts.")
    v: Text = Field("v", description="Column of the second user's id: who sees, or is trusted.")
    unknown: Unknown = Field("refuse", description=_UNKNOWN)


class EdgePairs(UserPairs):
    """Who is whose friend."""

    directed: bool = Field(
        False,
        description="Whether an edge goes one way: u tells v, so that v is a friend of u, who shows him something and "
        "whose information reaches him, and u is none of v. By default both are friends of each other.",
    )


class UserAttributes(Table):
    """A table of a number for a user and an attribute."""

    user: Text = Field("user", description="Column of the user's id.")
    attribute: Text = Field("attribute", description="Column that holds the name of a quasi-identifier.")
    value: Text = Field("value", description="Column of the number, not negative.")
    unknown: Unknown = Field("refuse", description=_UNKNOWN)


# ---------------------------------------------------------------------------------------------------------------- pairs


class FriendPairs(Part):
    """Every user shows his friends something: both directions of every edge, or the one of a directed edge."""

    kind: Literal["edges"]


class FriendOfFriendPairs(Part):
    """Everybody shows the friends of his friends something, friends themselves left out."""

    kind: Literal["friends-of-friends"]
    most_walks: Count = Field(
        10**9, description="Walks over a common friend that may be listed; beyond, the run is refused before it lists."
    )


class SampledPairs(Part):
    """Pairs of different users, drawn evenly."""

    kind: Literal["sample"]
    pairs: Count = Field(description="How many are drawn; one that is drawn again is decided once.")
    seed: Natural = Field(1, description="Which are drawn.")


class GivenPairs(UserPairs):
    """Pairs of a table: u decides what v sees."""

    kind: Literal["table"]


def _usual_pairs(value: object) -> object:
    return {"kind": value} if value in ("edges", "friends-of-friends") else value


_Pairs = FriendPairs | FriendOfFriendPairs | SampledPairs | GivenPairs
PairsPolicy = Annotated[
    _Pairs,
    Field(discriminator="kind"),
    BeforeValidator(_usual_pairs, json_schema_input_type=Literal["edges", "friends-of-friends"] | _Pairs),
]
"""Whom to decide for."""


# ---------------------------------------------------------------------------------------------------------- sensitivity


class _Weighed(Part):
    weights: _WEIGHTS = Field(default_factory=dict, description="Quasi-identifier: Φ of each shown level; default 1.")


class AttributeSensitivity(_Weighed):
    """What a shown level of each attribute costs, the same for all users."""

    kind: Literal["attributes"] = "attributes"


class ColumnSensitivity(_Weighed):
    """What it costs each user, from columns of the profiles."""

    kind: Literal["columns"]
    columns: Annotated[dict[str, Text], SORTED] = Field(
        min_length=1, description="Quasi-identifier: column of role 'weight' that multiplies its weight."
    )


class TableSensitivity(UserAttributes, _Weighed):
    """What it costs each user, from a table of its own; what it does not say is as `weights` has it."""

    kind: Literal["table"]


def _usual_kind(usual: str) -> BeforeValidator:
    def fill(value: object) -> object:
        return {"kind": usual, **value} if isinstance(value, Mapping) and "kind" not in value else value

    return BeforeValidator(fill)


SharingSensitivity = Annotated[
    AttributeSensitivity | ColumnSensitivity | TableSensitivity, Field(discriminator="kind"), _usual_kind("attributes")
]
"""Φ_ik of Fouad 2012, §7.4: what a level of attribute k costs user i."""


# ---------------------------------------------------------------------------------------------------------------- trust


class CommonFriendTrust(Part):
    """T is the number of common friends: friends of u of whom v is a friend."""

    kind: Literal["common-friends"] = "common-friends"


class StatedTrust(UserPairs):
    """T is what a table says of a pair, and 0 of the others."""

    kind: Literal["table"]
    trust: Text = Field("trust", description="Column of T: positive is trust, negative mistrust.")


class TrustRule(Part):
    """T of two users whose profiles show the same values."""

    same: list[Text] = Field(min_length=1, description="Quasi-identifiers in which both have the same value.")
    then: Finite = Field(1.0, description="T if they do.")


class RuledTrust(Part):
    """T by the first rule that holds of both profiles."""

    kind: Literal["rules"]
    rules: list[TrustRule] = Field(min_length=1, max_length=100, description="Such as [{same: [age, hobby], then: 1}].")
    otherwise: Finite = Field(-1.0, description="T where no rule holds.")


class PropagatedTrust(UserPairs):
    """T is what a table says, after walks along edges from those it names: personalized PageRank, or diffusion."""

    kind: Literal["propagated"]
    restart: Annotated[float, Field(gt=0, le=1), NUMBER] | None = Field(
        None,
        description="Probability with which a walk ends at each step (personalized PageRank); 1 leaves what is stated. "
        "0.5 if neither it nor time is given.",
    )
    time: Annotated[float, Field(ge=0, le=1e4), NUMBER] | None = Field(
        None, description="How long walks go on instead, a step per unit of time on average (diffusion)."
    )
    error: Annotated[float, Field(ge=1e-12, lt=1), NUMBER] = Field(1e-6, description="Share of the walks left out.")
    trust: Text = Field("trust", description="Column of the stated T: positive is trust, negative mistrust.")


class OneClassTrust(UserPairs):
    """T is 1 of who is like those that a user has listed, else -1: a one-class support vector machine (Fouad 2012)."""

    kind: Literal["one-class"]
    outliers: Annotated[float, Field(gt=0, le=1), NUMBER] = Field(
        0.5, description="ν: the greatest share of the listed people who may be taken for others."
    )
    otherwise: Finite = Field(0.0, description="T of a user who has listed nobody.")


TrustPolicy = Annotated[
    CommonFriendTrust | StatedTrust | RuledTrust | PropagatedTrust | OneClassTrust,
    Field(discriminator="kind"),
    _usual_kind("common-friends"),
]
"""T_ij of Fouad 2012, §7.4: how much user i trusts user j."""


class Point(Part):
    """A value of a function."""

    trust: Finite = Field(description="Trust T.")
    value: NonNegative = Field(description="f(T) there.")


class ReciprocalExposure(Part):
    """1/(1 + T), and 1 + |T| for mistrust."""

    kind: Literal["reciprocal"] = "reciprocal"


class ExponentialExposure(Part):
    """exp(-T/scale)."""

    kind: Literal["exponential"]
    scale: Positive = Field(1.0, description="f falls by a factor of e for each such step of T.")


class StepExposure(Part):
    """One value from a trust on, and a greater one below."""

    kind: Literal["step"]
    threshold: Finite = Field(0.0, description="The T from which somebody is trusted.")
    below: NonNegative = Field(1.0, description="f of a smaller T.")
    above: NonNegative = Field(0.0, description="f of this T and more.")


class TableExposure(Part):
    """Values by trust: that of the greatest trust in the list that is not above T."""

    kind: Literal["table"]
    points: list[Point] = Field(min_length=1, description="Such as [{trust: 0, value: 1}, {trust: 5, value: 0.1}].")


ExposurePolicy = Annotated[
    ReciprocalExposure | ExponentialExposure | StepExposure | TableExposure,
    Field(discriminator="kind"),
    _usual_kind("reciprocal"),
]
"""f(T): what a shown level weighs at a trust; it must not rise."""


# -------------------------------------------------------------------------------------------------------------- utility


class EqualUtility(Part):
    """Every shown level of every attribute is worth 1."""

    kind: Literal["equal"] = "equal"


class DetailUtility(Part):
    """What a shown level of each attribute is worth, the same for all users."""

    kind: Literal["detail"]
    weights: _WEIGHTS = Field(default_factory=dict, description="Quasi-identifier: worth of each level; default 1.")


class TableUtility(UserAttributes):
    """What a shown level of each attribute is worth to each user who sees it, from a table; 1 where it says nothing."""

    kind: Literal["table"]


class DiversityUtility(Part):
    """A shown level is worth the difference of the two profiles: the more, the less they are alike."""

    kind: Literal["diversity"]


SharingUtility = Annotated[
    EqualUtility | DetailUtility | TableUtility | DiversityUtility, Field(discriminator="kind"), _usual_kind("equal")
]
"""Ψ of Fouad 2012, §7.4: what a level of attribute k is worth."""


# --------------------------------------------------------------------------------------------------------------- models


class PublishedLayers(Part):
    """Algorithm 8 as Fouad 2012 prints it, layer by layer of the sensitivity, for comparison with what is exact."""

    epsilon: Positive = Field(0.1, description="Ratio of the layers' sensitivities, less one.")
    reading: Literal["layer", "equality"] = Field(
        "layer",
        description="What a layer is: 'layer', all between two sensitivities; 'equality', all that costs the first, "
        "by the letter.",
    )


class ModifiedAggregate(Part):
    """Greatest lambda · ξ/Φ + utility^kappa of each pair, ξ being the consistent common friends (Fouad 2012)."""

    kind: Literal["modified-aggregate"] = "modified-aggregate"
    lambda_: NonNegative = Field(
        1.0, alias="lambda", description="What a consistent common friend per unit of sensitivity is worth."
    )
    kappa: NonNegative = Field(1.0, description="Exponent of the utility: 0, or at least 1.")
    consistency: Literal["all", "any"] = Field(
        "all",
        description="A common friend counts if what is shown fits his profile: in 'all' attributes (exact), or in "
        "'any', as Fouad 2012 says in words (exact for small lattices, else with a gap).",
    )
    no_common_friend: Literal["reject", "owner", "as-published"] = Field(
        "reject",
        description="A pair without common friends: 'reject' shows nothing; 'owner' counts the owner, so that ξ is 1; "
        "'as-published' leaves ξ at 0, by which everything is shown.",
    )
    zero_phi: Literal["exclude", "floor"] = Field(
        "exclude",
        description="Whether what costs nothing, such as showing nothing, is no candidate, or one whose cost counts as "
        "the user's least positive one.",
    )
    most_boxes: Count = Field(100_000, description="Boxes after which the search of one pair ends with its best.")
    as_published: PublishedLayers | None = Field(
        None,
        description="Decide by Algorithm 8 as published instead, for comparison: gap is then what the exact answer is "
        "better by. Lattices of up to 2^20 level vectors.",
    )


class _Limited(Part):
    scope: Literal["network", "user"] = Field(
        "network", description="Whether the limit is on all users together, or on each by himself."
    )


class TradeOff(Part):
    """Access control: least loss less lambda times utility (Fouad 2012, §7.4)."""

    kind: Literal["trade-off"]
    lambda_: NonNegative = Field(1.0, alias="lambda", description="What a unit of utility is worth in units of loss.")


class MostUtility(_Limited):
    """Access control: greatest utility with at most so much loss (Fouad 2012, §7.4)."""

    kind: Literal["most-utility"]
    loss_at_most: NonNegative = Field(description="The greatest loss.")


class LeastLoss(_Limited):
    """Access control: least loss with at least so much utility (Fouad 2012, §7.4)."""

    kind: Literal["least-loss"]
    utility_at_least: NonNegative = Field(description="The least utility.")


class Diffusion(Part):
    """Show a user only if what reaches others from him costs at most so much (Fouad 2012, §7.3)."""

    kind: Literal["diffusion"]
    time: NonNegative | None = Field(
        None, description="How long information spreads: t of exp(tL). 1 if neither it nor steps is given."
    )
    steps: Count | None = Field(
        None,
        description="How many steps it takes instead, each to a friend drawn evenly: p of L^p, L being the row-"
        "stochastic leak matrix.",
    )
    leak: Literal["stochastic", "laplacian"] = Field(
        "stochastic",
        description="How it spreads: each user tells one friend per unit of time, drawn evenly; or, by the Laplacian, "
        "tells each friend at this rate.",
    )
    computation: Literal["automatic", "whole", "ego", "series"] = Field(
        "automatic",
        description="Where it is computed. 'whole': each task holds the graph; 'ego': each task holds those around "
        "one user; 'series': by joins of Spark, step by step, for graphs that fit no machine. 'automatic' "
        "is 'whole' up to adjacency_on_machine directed edges, beyond them 'ego' if a radius of 3 keeps the error, "
        "else 'series'.",
    )
    radius: Count | None = Field(
        None,
        description="Steps around a user within which 'ego' looks; what leaves counts as the worst. By default the "
        "least one that keeps the error, up to 6; if that does not keep it in every pair, the run is refused.",
    )
    error: Annotated[float, Field(ge=1e-12, lt=1), NUMBER] = Field(
        1e-6, description="Share of the information of which it may stay open whom it reaches."
    )
    risk_at_most: NonNegative = Field(description="The greatest risk of a pair; levels are hidden until it holds.")


ModelPolicy = Annotated[
    ModifiedAggregate | TradeOff | MostUtility | LeastLoss | Diffusion,
    Field(discriminator="kind"),
    _usual_kind("modified-aggregate"),
]
"""How it is decided what a user shows another."""


class CurvePolicy(Part):
    """Loss and utility over what is asked, on a sample of the pairs."""

    lambdas: list[NonNegative] = Field(
        default_factory=lambda: [0.0, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0],
        min_length=1,
        max_length=50,
        description="Values of lambda, or of the limit of the risk.",
    )
    pairs: Count = Field(1000, description="Pairs of the sample, at most.")


class SharingPolicy(Section):
    """To whom may each member of a network show which attribute at which level; profiles are the policy's table."""

    edges: EdgePairs = Field(description="Who is whose friend, such as {path: edges.parquet, u: from, v: to}.")
    pairs: PairsPolicy = Field(FriendPairs(kind="edges"), description="Whom to decide for: 'edges', or a mapping.")
    sensitivity: SharingSensitivity = AttributeSensitivity()
    trust: TrustPolicy | None = Field(None, description="How much u trusts v; not for model 'modified-aggregate'.")
    exposure: ExposurePolicy | None = Field(None, description="What a shown level weighs at a trust, f(T).")
    utility: SharingUtility = EqualUtility()
    model: ModelPolicy = ModifiedAggregate()
    connected_at: Count = Field(
        1, description="Levels of each attribute v must see, if u has it, to count as connected in the graph."
    )
    listed: Natural = Field(10, description="Pairs, and users with the greatest loss, that the report lists.")
    curve: CurvePolicy = CurvePolicy()
    adjacency_on_machine: Count = Field(
        10**8, description="Directed edges of a graph that may be held in the memory of one machine."
    )

    @property
    def weight_columns(self) -> list[str]:
        """Columns of the role ``weight`` that multiply the weights of quasi-identifiers."""
        return list(self.sensitivity.columns.values()) if isinstance(self.sensitivity, ColumnSensitivity) else []


def sharing_of(policy: Policy) -> SharingPolicy:
    """Return the section ``sharing`` of a policy.

    Raises
    ------
    ConfigError
        If the policy has none.
    """
    if not isinstance(policy.sharing, SharingPolicy):
        raise ConfigError([Fault("sharing", "is required to share; write sharing: {edges: {path: …}}")])
    return policy.sharing
