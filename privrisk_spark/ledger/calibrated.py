"""Mechanism R: the public parameters of a differentially private release, fixed before the table is read.

The release is admission of t-frequent cells under discrete Gaussian or Laplace noise, an exponential draw per record
among admitted generalizations (F12 eq 5.4), a keyed Bernoulli sample, and a crowd threshold on whole released tuples.
Beforehand the schemes whose cells are counted may be drawn from public candidates; in mode ``global`` one is, all
records take it, and nothing is admitted.

Status: *proved*, for add/remove of one row and one row per person (drawn beforehand where a person may have several:
``sampling.one_row_each``), assuming the keyed function is pseudo-random: the
admission is (ε₁, δ_gauss + δ_select)-DP (δ_gauss = 0 under Laplace noise), the rest is (ε₂, δ*)-DP for every admitted
set (:mod:`privrisk_spark.kernels.dp.crowd`), each of w picks of a scheme is (ε₀, 0)-DP
(:mod:`privrisk_spark.kernels.dp.scheme_choice`), and all add up: what follows holds for every scheme and set that may
have come out before.

The fields of a mechanism, their order and their aliases are those of the document that manifests and the ledger hold.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticKnownError

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.dp.crowd import survival_rows
from privrisk_spark.kernels.random.discrete_gaussian import Admission
from privrisk_spark.kernels.random.discrete_laplace import LaplaceAdmission
from privrisk_spark.ledger.losses import GaussianCounts, LaplaceCounts, ReleaseEvents, Sampling, SchemePicks
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.private import AggregateObjective, ThresholdObjective
from privrisk_spark.policy.private import Objective as AskedObjective

__all__ = [
    "KEEP_DENOMINATOR",
    "Calibrated",
    "Choosing",
    "Drawing",
    "LocalSchemes",
    "Noise",
    "Noisy",
    "OneScheme",
    "PeeledSchemes",
    "PublicCells",
    "ReusedCells",
    "ReusedSet",
    "Scheme",
    "Schemes",
    "calibrated",
    "calibrated_of",
    "content_digest",
    "losses_of",
    "protects",
]

KEEP_DENOMINATOR = 2**32

Noise = Admission | LaplaceAdmission
Scheme = tuple[StrictInt, ...]
Schemes = tuple[Scheme, ...]

_ROWS = "one row per person"
_PERSONS = "person, one row drawn of each"


def _keep_numerator(value: object) -> int:
    if isinstance(value, int):
        return value
    numerator, denominator = str(value).split("/")
    if int(denominator) != KEEP_DENOMINATOR:
        raise ValueError
    return int(numerator)


def _text(value: object) -> object:
    if not isinstance(value, str | Decimal):
        raise ValueError("must be a text, which is exact")
    return value


def _published_objective(objective: AggregateObjective | ThresholdObjective) -> dict[str, Any]:
    """Write tau as a text, as JSON has no infinity, and the kind only if it is not the usual one."""
    usual = {"kind"} if objective.kind == "aggregate" else None
    return {**objective.model_dump(by_alias=True, exclude=usual), "tau": str(objective.tau)}


_Exact = Annotated[Decimal, BeforeValidator(_text)]
_Keep = Annotated[
    int, BeforeValidator(_keep_numerator), PlainSerializer(lambda numerator: f"{numerator}/{KEEP_DENOMINATOR}")
]
_Objective = Annotated[AskedObjective, PlainSerializer(_published_objective)]
_Drawn = Annotated[Schemes, Field(exclude=True)]


class _Stored(BaseModel):
    """What a manifest and the ledger hold; keys of others are not looked at."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, serialize_by_alias=True)


class ReusedSet(_Stored):
    """The admitted cells of an earlier release, as a mechanism names them.

    Attributes
    ----------
    run_id : str
        Of the earlier release.
    sha256 : str
        Of the file of cells, hex.
    """

    run_id: StrictStr
    sha256: StrictStr


class Calibrated(_Stored):
    """Parameters of one release; everything here may be published.

    Attributes
    ----------
    mode : {'local', 'public-dictionary', 'global'}
        How the generalizations are found that a record may be drawn to.
    epsilon_admit : Decimal
        ε₁ of the admission; 0 where it costs nothing, as it was written.
    epsilon_keep : Decimal
        ε₂ of sampling and crowd threshold.
    delta : Decimal
        Of the whole release.
    neighbours, unit : str
        What the release protects, in words (:func:`protects`).
    w : int
        Number of schemes.
    keep_numerator : int
        ``B``; a row is kept with probability ``B / 2**32``.
    crowd : int
        ``k``: tuples with fewer kept rows are not released.
    delta_crowd : float
        Certificate of the sampling and threshold, rounded up.
    public_rows : int
        Public estimate of the number of rows.
    schemes : tuple of tuple of int
        Level vectors; none as long as they are to be proposed or chosen. Chosen ones are no parameter, as they are not
        fixed beforehand.
    noise_reason : str or None
        Why this noise, where ``guarantee.noise`` left it open; no parameter.
    proposed : str or None
        Why these schemes or candidates, where the policy names none; no parameter.
    """

    mode: str
    epsilon_admit: _Exact
    epsilon_keep: _Exact
    delta: _Exact
    neighbours: str
    unit: StrictStr
    w: StrictInt
    keep_numerator: _Keep = Field(alias="keep_probability")
    crowd: StrictInt = Field(alias="k")
    delta_crowd: StrictFloat
    public_rows: StrictInt
    schemes: Schemes
    noise_reason: str | None = Field(None, exclude=True)
    proposed: str | None = Field(None, exclude=True)

    @property
    def persons(self) -> bool:
        """Whether one row of each person is drawn beforehand; else every row is a person."""
        return self.unit == _PERSONS

    @property
    def admission(self) -> Noise | None:
        """Noise of the admission; None where the table is not counted for it."""
        return None

    @property
    def frequent(self) -> int:
        """``t``: cells with a (noisy) count below it are not admitted; 1 where nothing is."""
        return 1

    @property
    def count_cap(self) -> int:
        """Public cap of counts, in rows."""
        return self.public_rows

    @property
    def picked(self) -> SchemePicks | None:
        """Cost of the choice of schemes; None where they are public."""
        return None

    @property
    def survival(self) -> tuple[int, int]:
        """Rows a cell needs to be released with probability 50 % and 99 %."""
        return survival_rows(self.crowd, self.keep_numerator, 0.5), survival_rows(self.crowd, self.keep_numerator, 0.99)

    @property
    def epsilon(self) -> Decimal:
        """Total ε."""
        return self.epsilon_admit + self.epsilon_keep

    @property
    def events(self) -> ReleaseEvents:
        """What the release does to the privacy of a row, for accounting."""
        counts: GaussianCounts | LaplaceCounts | None = None
        if isinstance(self.admission, Admission):
            counts = GaussianCounts(self.admission.sigma_squared, self.w)
        elif self.admission is not None:
            counts = LaplaceCounts(self.admission.scale, self.w)
        return ReleaseEvents(
            sampling=Sampling(self.keep_numerator, self.crowd, Fraction(self.epsilon_keep), Fraction(self.delta_crowd)),
            counts=counts,
            delta_select=Fraction(0) if self.admission is None else Fraction(self.admission.delta_select),
            epsilon=Fraction(self.epsilon),
            delta=Fraction(self.delta),
            picks=self.picked,
        )

    @property
    def free_cells(self) -> str:
        """Why the admissible cells cost nothing, as a sentence of the statement; empty if they are paid for."""
        return ""

    @property
    def statement(self) -> str:
        """The guarantee, as printed with the release."""
        unit = "one row as it is parsed, one row per person,"
        if self.persons:
            unit = (
                "one person with all their rows, of which one is drawn (a row that names nobody is a person by itself),"
            )
        return (
            f"({self.epsilon}, {self.delta})-differential privacy for adding or removing {unit} under the "
            f"assumption that the keyed function is pseudo-random.{self.free_cells}"
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """Everything that determines the law of the release given the table; all of it may be published.

        The digest is over it and the ledger keeps it: keys, their order and how a number is written are fixed.
        """
        return self.model_dump(mode="json", exclude_none=True)

    def digest(self, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
        """SHA-256 over everything but the table that the released tuples depend on, hex.

        Hierarchies count by their content, a public dictionary by where it lies.
        """
        document: dict[str, object] = {"mechanism": self.parameters}
        if self.persons:
            document["entity_id"] = policy.table.entity_id
        return content_digest(document, policy, hierarchies)


class Choosing(Calibrated):
    """Schemes drawn from public candidates.

    Attributes
    ----------
    epsilon_choose : Decimal
        ε₀ of one pick.
    picks : int
        w.
    beyond : int
        ``t₀``: a scheme's score is π times the sum of its cells' rows beyond this.
    precision : tuple of Fraction
        ``π`` of each, in [0, 1].
    """

    epsilon_choose: _Exact
    picks: StrictInt
    beyond: StrictInt = Field(alias="t0")
    candidates: Schemes
    precision: tuple[Fraction, ...]

    @property
    def picked(self) -> SchemePicks:
        """Cost of the choice of schemes."""
        return SchemePicks(Fraction(self.epsilon_choose), self.picks)

    @property
    def epsilon(self) -> Decimal:
        """Total ε."""
        return self.picks * self.epsilon_choose + self.epsilon_admit + self.epsilon_keep

    def with_schemes(self, schemes: Schemes) -> Self:
        """Return the mechanism with the schemes that were chosen."""
        return self.model_copy(update={"schemes": schemes})


class Drawing(Calibrated):
    """Each record draws its generalization among admitted cells.

    Attributes
    ----------
    least : int
        ``t``: cells with a (noisy) count below it are not admitted.
    objective : AggregateObjective or ThresholdObjective
        What a draw prefers, with its cap of counts.
    """

    least: StrictInt = Field(alias="t")
    objective: _Objective

    @property
    def frequent(self) -> int:
        """``t``: cells with a (noisy) count below it are not admitted."""
        return self.least

    @property
    def count_cap(self) -> int:
        """Public cap of counts, in rows."""
        return self.objective.count_cap or self.public_rows


class Noisy(Drawing):
    """Cells are admitted by noisy counts of the table.

    Attributes
    ----------
    noise : {'gaussian', 'laplace'}
    sigma_squared, scale, threshold, delta_gauss, delta_select
        As ``Admission`` and ``LaplaceAdmission`` have them.
    """

    noise: Literal["gaussian", "laplace"]
    sigma_squared: StrictInt | None = Field(None, validate_default=True)
    scale: Fraction | None = Field(None, validate_default=True)
    threshold: StrictInt = Field(alias="T")
    delta_gauss: StrictFloat | None = Field(None, validate_default=True)
    delta_select: StrictFloat

    @field_validator("sigma_squared", "scale", "delta_gauss")
    @classmethod
    def require_what_the_noise_has(cls, value: object, info: ValidationInfo) -> object:
        """Refuse a Gaussian without its variance and a Laplace without its scale."""
        laplace = info.data.get("noise") == "laplace"
        if value is None and laplace == (info.field_name == "scale"):
            raise PydanticKnownError("missing")
        return value

    @property
    def admission(self) -> Noise:
        """Noise of the admission."""
        if self.scale is not None:
            return LaplaceAdmission(self.scale, self.threshold, self.delta_select)
        assert self.sigma_squared is not None
        assert self.delta_gauss is not None
        return Admission(self.sigma_squared, self.threshold, self.delta_gauss, self.delta_select)


class LocalSchemes(Noisy):
    """Cells of public schemes, admitted by noisy counts of the table."""

    mode: Literal["local"] = "local"


class PeeledSchemes(Noisy, Choosing):
    """Cells of schemes drawn from candidates, admitted by noisy counts of the table."""

    mode: Literal["local"] = "local"
    schemes: _Drawn = ()


class ReusedCells(Drawing):
    """Cells that an earlier release admitted and published."""

    mode: Literal["local"] = "local"
    reuse: ReusedSet

    @property
    def free_cells(self) -> str:
        """Why the admissible cells cost nothing."""
        return f" The admissible cells are those released by the run '{self.reuse.run_id}' and cost nothing more."


class PublicCells(Drawing):
    """Cells of public schemes that are frequent in a public dictionary."""

    mode: Literal["public-dictionary"] = "public-dictionary"

    @property
    def free_cells(self) -> str:
        """Why the admissible cells cost nothing."""
        return " The admissible cells come from a public dictionary and cost nothing."


class OneScheme(Choosing):
    """One scheme for all records, drawn from candidates; nothing is admitted."""

    mode: Literal["global"] = "global"
    schemes: _Drawn = ()


def protects(*, persons: bool) -> dict[str, str]:
    """Return what a release protects, in words: its ``neighbours`` and its ``unit``.

    Parameters
    ----------
    persons : bool
        Whether one row of each person is drawn beforehand.
    """
    if persons:
        return {"neighbours": "add or remove one person with all their rows", "unit": _PERSONS}
    return {"neighbours": "add or remove one row", "unit": _ROWS}


def calibrated(document: Mapping[str, Any]) -> Calibrated:
    """Read the parameters of a release, as a manifest and the ledger hold them; further keys are not looked at.

    Raises
    ------
    InputError
        If one is missing or is not what a mechanism has; names the key.
    """
    of_local = ReusedCells if "reuse" in document else PeeledSchemes if "picks" in document else LocalSchemes
    kinds: dict[object, type[Calibrated]] = {"local": of_local, "public-dictionary": PublicCells, "global": OneScheme}
    if "mode" not in document:
        raise InputError("The parameters of a release lack 'mode'.")
    mode = document["mode"]
    if not isinstance(mode, str) or mode not in kinds:
        raise InputError(f"The parameters of a release are not those of a mechanism: 'mode' is '{mode}'.")
    try:
        found = kinds[mode].model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        if first["type"] == "missing":
            raise InputError(f"The parameters of a release lack '{first['loc'][-1]}'.") from None
        raise _unreadable(first["loc"][0]) from None
    if found.w != (found.picks if isinstance(found, Choosing) else len(found.schemes)):
        raise _unreadable("w")
    return found


def _unreadable(key: object) -> InputError:
    return InputError(f"The parameters of a release are not those of a mechanism: '{key}' cannot be read.")


def calibrated_of(mechanism: str) -> Calibrated:
    """Read the mechanism of a run in the ledger from its JSON text; errors are those of :func:`calibrated`."""
    parameters = json.loads(mechanism).get("parameters")
    if not isinstance(parameters, dict):
        raise InputError("The parameters of a release lack 'parameters'.")
    return calibrated(parameters)


def losses_of(mechanism: str) -> ReleaseEvents | None:
    """Return what a run in the ledger did to the privacy of a row, by the JSON text of its mechanism.

    None where the ledger does not hold what it takes, as for runs of other programs.
    """
    try:
        return calibrated_of(mechanism).events
    except InputError:
        return None


def content_digest(document: Mapping[str, object], policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
    """SHA-256 of a document together with columns, risk, utility, dictionary and hierarchies, hex."""
    whole = {
        **document,
        # Pairs, in the policy's order: the schemes' levels go by it.
        "columns": [[name, c.model_dump(mode="json", by_alias=True)] for name, c in policy.columns.items()],
        "risk": policy.risk.model_dump(mode="json"),
        "utility": policy.utility.model_dump(mode="json"),
        "dictionary": policy.dictionary.model_dump(mode="json"),
        "hierarchies": [[hierarchy.labels, hierarchy.parent.tolist()] for hierarchy in hierarchies.values()],
    }
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
