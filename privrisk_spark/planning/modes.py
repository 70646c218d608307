"""How a differentially private release finds the generalizations a record may be drawn to: one type per mode.

Each is a frozen record of public parameters. ``to_dict`` gives them as a manifest and the ledger hold them, where exact
numbers are texts, and ``from_dict`` reads that and nothing else does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.random.discrete_gaussian import Admission
from privrisk_spark.kernels.random.discrete_laplace import LaplaceAdmission
from privrisk_spark.planning.stored import exact, level_lists, number, taken, vectors, whole
from privrisk_spark.policy.private import AggregateObjective, ThresholdObjective

Scheme = tuple[int, ...]
Schemes = tuple[Scheme, ...]
Noise = Admission | LaplaceAdmission


# ------------------------------------------------------------------------------------------ what a draw prefers


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

    lambda_: float
    kappa: float
    tau: float
    phi_min: float
    count_cap: int

    def to_dict(self) -> dict[str, object]:
        """Return it as published; tau is a text, as JSON has no infinity."""
        return {
            "lambda": self.lambda_,
            "kappa": self.kappa,
            "tau": str(self.tau),
            "phi_min": self.phi_min,
            "count_cap": self.count_cap,
        }


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

    utility_at_least: float
    tau: float
    count_cap: int

    def to_dict(self) -> dict[str, object]:
        """Return it as published; tau is a text, as JSON has no infinity."""
        return {
            "kind": "threshold",
            "utility_at_least": self.utility_at_least,
            "tau": str(self.tau),
            "count_cap": self.count_cap,
        }


Draw = AggregateDraw | ThresholdDraw


def draw_of(objective: AggregateObjective | ThresholdObjective, *, public_rows: int) -> Draw:
    """Return what a policy asks of the draw."""
    cap = objective.count_cap or public_rows
    if isinstance(objective, ThresholdObjective):
        return ThresholdDraw(objective.utility_at_least, objective.tau, cap)
    return AggregateDraw(objective.lambda_, objective.kappa, objective.tau, objective.phi_min, cap)


def draw_from_dict(document: Mapping[str, Any]) -> Draw:
    """Read what a draw prefers; see :func:`taken` for errors."""
    tau, cap = taken(document, "tau", float), taken(document, "count_cap", whole)
    if "kind" in document:
        return ThresholdDraw(taken(document, "utility_at_least", number), tau, cap)
    return AggregateDraw(
        taken(document, "lambda", number),
        taken(document, "kappa", number),
        tau,
        taken(document, "phi_min", number),
        cap,
    )


# ---------------------------------------------------------------------------------------- parts of the modes


@dataclass(frozen=True)
class Choice:
    """Schemes drawn from public candidates.

    Attributes
    ----------
    candidates : tuple of tuple of int
    precision : tuple of Fraction
        ``π`` of each, in [0, 1].
    epsilon : Decimal
        ε₀ of one pick.
    picks : int
        w.
    beyond : int
        ``t₀``: a scheme's score is π times the sum of its cells' rows beyond this.
    """

    candidates: Schemes
    precision: tuple[Fraction, ...]
    epsilon: Decimal
    picks: int
    beyond: int

    def to_dict(self) -> dict[str, object]:
        """Return it as published."""
        return {
            "epsilon_choose": str(self.epsilon),
            "picks": self.picks,
            "t0": self.beyond,
            "candidates": level_lists(self.candidates),
            "precision": [str(precision) for precision in self.precision],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Choice:
        """Read it from the parameters of a mechanism; see :func:`taken` for errors."""
        return cls(
            candidates=taken(document, "candidates", vectors),
            precision=taken(document, "precision", lambda texts: tuple(Fraction(text) for text in texts)),
            epsilon=taken(document, "epsilon_choose", exact),
            picks=taken(document, "picks", whole),
            beyond=taken(document, "t0", whole),
        )


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

    def to_dict(self) -> dict[str, str]:
        """Return it as published."""
        return {"run_id": self.run_id, "sha256": self.sha256}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ReusedSet:
        """Read it; see :func:`taken` for errors."""
        return cls(taken(document, "run_id", str), taken(document, "sha256", str))


def noise_from_dict(document: Mapping[str, Any]) -> Noise:
    """Read the noise of an admission; Gaussian where none is named, as before there was another.

    Raises
    ------
    InputError
        See :func:`taken`.
    """
    threshold, select = taken(document, "T", whole), taken(document, "delta_select", number)
    if document.get("noise", "gaussian") == "laplace":
        return LaplaceAdmission(taken(document, "scale", Fraction), threshold, select)
    return Admission(taken(document, "sigma_squared", whole), threshold, taken(document, "delta_gauss", number), select)


# -------------------------------------------------------------------------------------------------- the modes


@dataclass(frozen=True)
class LocalSchemes:
    """Cells of public schemes, admitted by noisy counts of the table.

    Attributes
    ----------
    epsilon : Decimal
        ε₁ of the admission.
    schemes : tuple of tuple of int
        Level vectors; none as long as they are to be proposed.
    frequent : int
        ``t``: cells with a noisy count below it are not admitted.
    draw : Draw
    admission : Admission or LaplaceAdmission
        Noise and least threshold.
    """

    name: ClassVar[str] = "local"

    epsilon: Decimal
    schemes: Schemes
    frequent: int
    draw: Draw
    admission: Noise

    @property
    def w(self) -> int:
        """Number of schemes."""
        return len(self.schemes)

    def to_dict(self) -> dict[str, object]:
        """Return it as published."""
        return {
            "schemes": level_lists(self.schemes),
            "t": self.frequent,
            "objective": self.draw.to_dict(),
            **self.admission.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> LocalSchemes:
        """Read it from the parameters of a mechanism; see :func:`taken` for errors."""
        return cls(
            epsilon=taken(document, "epsilon_admit", exact),
            schemes=taken(document, "schemes", vectors),
            frequent=taken(document, "t", whole),
            draw=draw_from_dict(taken(document, "objective", dict)),
            admission=noise_from_dict(document),
        )


@dataclass(frozen=True)
class PeeledSchemes:
    """Cells of schemes drawn from candidates, admitted by noisy counts of the table.

    Attributes
    ----------
    epsilon : Decimal
        ε₁ of the admission.
    choice : Choice
    frequent : int
        ``t``: cells with a noisy count below it are not admitted.
    draw : Draw
    admission : Admission or LaplaceAdmission
        Noise and least threshold.
    schemes : tuple of tuple of int
        Level vectors once they are drawn; no parameter, as they are not fixed beforehand.
    """

    name: ClassVar[str] = "local"

    epsilon: Decimal
    choice: Choice
    frequent: int
    draw: Draw
    admission: Noise
    schemes: Schemes = field(default=(), compare=False)

    @property
    def w(self) -> int:
        """Number of schemes."""
        return self.choice.picks

    def to_dict(self) -> dict[str, object]:
        """Return it as published."""
        return {
            **self.choice.to_dict(),
            "t": self.frequent,
            "objective": self.draw.to_dict(),
            **self.admission.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PeeledSchemes:
        """Read it from the parameters of a mechanism; see :func:`taken` for errors."""
        return cls(
            epsilon=taken(document, "epsilon_admit", exact),
            choice=Choice.from_dict(document),
            frequent=taken(document, "t", whole),
            draw=draw_from_dict(taken(document, "objective", dict)),
            admission=noise_from_dict(document),
        )


@dataclass(frozen=True)
class ReusedCells:
    """Cells that an earlier release admitted and published.

    Attributes
    ----------
    epsilon : Decimal
        0, as it was written.
    schemes : tuple of tuple of int
        Level vectors of the earlier release.
    frequent : int
        ``t`` of the earlier release.
    draw : Draw
    cells : ReusedSet
    """

    name: ClassVar[str] = "local"

    epsilon: Decimal
    schemes: Schemes
    frequent: int
    draw: Draw
    cells: ReusedSet

    @property
    def w(self) -> int:
        """Number of schemes."""
        return len(self.schemes)

    def to_dict(self) -> dict[str, object]:
        """Return it as published."""
        return {
            "schemes": level_lists(self.schemes),
            "t": self.frequent,
            "objective": self.draw.to_dict(),
            "reuse": self.cells.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ReusedCells:
        """Read it from the parameters of a mechanism; see :func:`taken` for errors."""
        return cls(
            epsilon=taken(document, "epsilon_admit", exact),
            schemes=taken(document, "schemes", vectors),
            frequent=taken(document, "t", whole),
            draw=draw_from_dict(taken(document, "objective", dict)),
            cells=ReusedSet.from_dict(taken(document, "reuse", dict)),
        )


@dataclass(frozen=True)
class PublicCells:
    """Cells of public schemes that are frequent in a public dictionary.

    Attributes
    ----------
    epsilon : Decimal
        0, as it was written.
    schemes : tuple of tuple of int
        Level vectors; none as long as they are to be proposed.
    frequent : int
        ``t``: cells with fewer rows of the dictionary are not admissible.
    draw : Draw
    """

    name: ClassVar[str] = "public-dictionary"

    epsilon: Decimal
    schemes: Schemes
    frequent: int
    draw: Draw

    @property
    def w(self) -> int:
        """Number of schemes."""
        return len(self.schemes)

    def to_dict(self) -> dict[str, object]:
        """Return it as published."""
        return {"schemes": level_lists(self.schemes), "t": self.frequent, "objective": self.draw.to_dict()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PublicCells:
        """Read it from the parameters of a mechanism; see :func:`taken` for errors."""
        return cls(
            epsilon=taken(document, "epsilon_admit", exact),
            schemes=taken(document, "schemes", vectors),
            frequent=taken(document, "t", whole),
            draw=draw_from_dict(taken(document, "objective", dict)),
        )


@dataclass(frozen=True)
class OneScheme:
    """One scheme for all records, drawn from candidates; nothing is admitted.

    Attributes
    ----------
    epsilon : Decimal
        0, as it was written.
    choice : Choice
    schemes : tuple of tuple of int
        The level vector once it is drawn; no parameter, as it is not fixed beforehand.
    """

    name: ClassVar[str] = "global"

    epsilon: Decimal
    choice: Choice
    schemes: Schemes = field(default=(), compare=False)

    @property
    def w(self) -> int:
        """Number of schemes."""
        return self.choice.picks

    def to_dict(self) -> dict[str, object]:
        """Return it as published."""
        return self.choice.to_dict()

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> OneScheme:
        """Read it from the parameters of a mechanism; see :func:`taken` for errors."""
        return cls(taken(document, "epsilon_admit", exact), Choice.from_dict(document))


Mode = LocalSchemes | PeeledSchemes | ReusedCells | PublicCells | OneScheme


def mode_from_dict(document: Mapping[str, Any]) -> Mode:
    """Read the mode from the parameters of a mechanism; see :func:`taken` for errors."""
    name = taken(document, "mode", str)
    if name == "local":
        of_local = ReusedCells if "reuse" in document else PeeledSchemes if "picks" in document else LocalSchemes
        return of_local.from_dict(document)
    for one in (PublicCells, OneScheme):
        if name == one.name:
            return one.from_dict(document)
    raise InputError(f"The parameters of a release are not those of a mechanism: 'mode' is '{name}'.")
