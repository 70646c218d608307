"""How a differentially private release finds the generalizations a record may be drawn to: one type per mode.

Each is a frozen record of public parameters; see :class:`privrisk_spark.planning.stored.Stored` for how a manifest and
the ledger hold them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, PlainSerializer, PlainValidator, Tag

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.random.discrete_gaussian import Admission
from privrisk_spark.kernels.random.discrete_laplace import LaplaceAdmission
from privrisk_spark.planning.stored import AsText, Exact, Number, Stored, Vectors, Whole, number, taken, whole
from privrisk_spark.policy.private import AggregateObjective, ThresholdObjective

Schemes = Vectors
Noise = Admission | LaplaceAdmission


@dataclass(frozen=True)
class AggregateDraw:
    """Objective (5.4) of the exponential draw: ``lambda / risk + utility ** kappa``.

    Attributes
    ----------
    lambda_, kappa : float
    tau : float
        Inverse temperature; infinity takes the best.
    phi_min : float
        Public floor of Φ.
    count_cap : int
        Public cap of counts, in rows.
    """

    lambda_: Annotated[Number, Field(alias="lambda")]
    kappa: Number
    tau: AsText
    phi_min: Number
    count_cap: Whole


@dataclass(frozen=True)
class ThresholdDraw:
    """Minus the risk, of the generalizations whose utility is at least a floor.

    Attributes
    ----------
    utility_at_least : float
    tau : float
        Inverse temperature; infinity takes the best.
    count_cap : int
        Public cap of counts, in rows.
    """

    kind: Literal["threshold"] = field(default="threshold", init=False)
    utility_at_least: Number
    tau: AsText
    count_cap: Whole


Draw = AggregateDraw | ThresholdDraw


def _objective(value: Any) -> str:
    threshold = "kind" in value if isinstance(value, Mapping) else isinstance(value, ThresholdDraw)
    return "threshold" if threshold else "aggregate"


def draw_of(objective: AggregateObjective | ThresholdObjective, *, public_rows: int) -> Draw:
    """Return what a policy asks of the draw."""
    cap = objective.count_cap or public_rows
    if isinstance(objective, ThresholdObjective):
        return ThresholdDraw(objective.utility_at_least, objective.tau, cap)
    return AggregateDraw(objective.lambda_, objective.kappa, objective.tau, objective.phi_min, cap)


@dataclass(frozen=True)
class Choice:
    """Schemes drawn from public candidates.

    Attributes
    ----------
    epsilon : Decimal
        ε₀ of one pick.
    picks : int
        w.
    beyond : int
        ``t₀``: a scheme's score is π times the sum of its cells' rows beyond this.
    candidates : tuple of tuple of int
    precision : tuple of Fraction
        ``π`` of each, in [0, 1].
    """

    epsilon: Annotated[Exact, Field(alias="epsilon_choose")]
    picks: Whole
    beyond: Annotated[Whole, Field(alias="t0")]
    candidates: Schemes
    precision: tuple[Fraction, ...]


@dataclass(frozen=True)
class ReusedSet:
    """The admitted cells of an earlier release, as a mechanism names them.

    Attributes
    ----------
    run_id : str
        Of the earlier release.
    sha256 : str
        Of the file of cells, hex.
    """

    run_id: str
    sha256: str


def _read_noise(document: Mapping[str, Any]) -> Noise:
    """Read the noise of an admission; Gaussian if no noise is named."""
    threshold, select = taken(document, "T", whole), taken(document, "delta_select", number)
    if document.get("noise", "gaussian") == "laplace":
        return LaplaceAdmission(taken(document, "scale", Fraction), threshold, select)
    return Admission(taken(document, "sigma_squared", whole), threshold, taken(document, "delta_gauss", number), select)


_Drawn = Annotated[
    Annotated[AggregateDraw, Tag("aggregate")] | Annotated[ThresholdDraw, Tag("threshold")],
    Field(alias="objective"),
    Discriminator(_objective),
]
_Frequent = Annotated[Whole, Field(alias="t")]
_Admission = Annotated[Noise, PlainValidator(_read_noise), PlainSerializer(lambda noise: noise.to_dict())]
_NoParameter = Annotated[Schemes, Field(exclude=True)]


@dataclass(frozen=True)
class ModeParameters(Stored):
    """What all modes have.

    Attributes
    ----------
    epsilon : Decimal
        ε₁ of the admission; 0, as it was written, if the table is not counted for it.
    schemes : tuple of tuple of int
        Level vectors; none as long as they are to be proposed or drawn. They are no parameter if they are drawn.
    choice : Choice
        Of modes that draw their schemes.
    frequent : int
        ``t``: cells with a noisy count, or fewer rows of the dictionary, below it are not admitted.
    draw : Draw
        Of modes in which each record draws its generalization.
    admission : Admission or LaplaceAdmission
        Noise and least threshold of modes that admit cells by noisy counts of the table.
    cells : ReusedSet
        That an earlier release admitted and published.
    """

    name: ClassVar[str]

    epsilon: Annotated[Exact, Field(alias="epsilon_admit", exclude=True)]


@dataclass(frozen=True)
class GivenSchemes(ModeParameters):
    """Public schemes, among whose admitted cells each record draws."""

    schemes: Schemes
    frequent: _Frequent
    draw: _Drawn

    @property
    def w(self) -> int:
        """Number of schemes."""
        return len(self.schemes)


@dataclass(frozen=True)
class LocalSchemes(GivenSchemes):
    """Cells of public schemes, admitted by noisy counts of the table."""

    name: ClassVar[str] = "local"
    inline: ClassVar[tuple[str, ...]] = ("admission",)

    admission: _Admission


@dataclass(frozen=True)
class ReusedCells(GivenSchemes):
    """Cells that an earlier release admitted and published."""

    name: ClassVar[str] = "local"

    cells: Annotated[ReusedSet, Field(alias="reuse")]


@dataclass(frozen=True)
class PublicCells(GivenSchemes):
    """Cells of public schemes that are frequent in a public dictionary."""

    name: ClassVar[str] = "public-dictionary"


@dataclass(frozen=True)
class ChosenSchemes(ModeParameters):
    """Schemes that are drawn from candidates."""

    inline: ClassVar[tuple[str, ...]] = ("choice",)

    choice: Choice

    @property
    def w(self) -> int:
        """Number of schemes."""
        return self.choice.picks


@dataclass(frozen=True)
class PeeledSchemes(ChosenSchemes):
    """Cells of schemes drawn from candidates, admitted by noisy counts of the table."""

    name: ClassVar[str] = "local"
    inline: ClassVar[tuple[str, ...]] = ("choice", "admission")

    frequent: _Frequent
    draw: _Drawn
    admission: _Admission
    schemes: _NoParameter = field(default=(), compare=False)


@dataclass(frozen=True)
class OneScheme(ChosenSchemes):
    """One scheme for all records, drawn from candidates; no cell is admitted."""

    name: ClassVar[str] = "global"

    schemes: _NoParameter = field(default=(), compare=False)


Mode = LocalSchemes | PeeledSchemes | ReusedCells | PublicCells | OneScheme


def mode_from_dict(document: Mapping[str, Any]) -> Mode:
    """Read the mode from the parameters of a mechanism; see :meth:`Stored.from_dict` for errors."""
    name = taken(document, "mode", str)
    if name == "local":
        of_local = ReusedCells if "reuse" in document else PeeledSchemes if "picks" in document else LocalSchemes
        return of_local.from_dict(document)
    for one in (PublicCells, OneScheme):
        if name == one.name:
            return one.from_dict(document)
    raise InputError(f"The parameters of a release are not those of a mechanism: 'mode' is '{name}'.")
