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
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any

from pydantic import Field, PlainSerializer, PlainValidator

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.dp.crowd import survival_rows
from privrisk_spark.kernels.random.discrete_gaussian import Admission
from privrisk_spark.ledger.losses import GaussianCounts, LaplaceCounts, ReleaseEvents, Sampling, SchemePicks
from privrisk_spark.planning.modes import (
    Choice,
    Draw,
    Mode,
    Noise,
    OneScheme,
    PeeledSchemes,
    PublicCells,
    ReusedCells,
    Schemes,
    mode_from_dict,
)
from privrisk_spark.planning.stored import Stored, exact, number, taken, whole
from privrisk_spark.policy.policy import Policy

KEEP_DENOMINATOR = 2**32


@dataclass(frozen=True)
class Mechanism:
    """Parameters of one release; everything here may be published.

    Attributes
    ----------
    mode : Mode
        How the generalizations are found that a record may be drawn to.
    epsilon_keep : Decimal
        ε₂ of sampling and crowd threshold.
    delta : Decimal
        Of the whole release.
    keep_numerator : int
        ``B``; a row is kept with probability ``B / 2**32``.
    crowd : int
        ``k``: tuples with fewer kept rows are not released.
    delta_crowd : float
        Certificate of the sampling and threshold, rounded up.
    public_rows : int
        Public estimate of the number of rows.
    persons : bool
        Whether one row of each person is drawn beforehand; else every row is a person.
    noise_reason : str or None
        Why this noise, where ``guarantee.noise`` left it open; no parameter.
    proposed : str or None
        Why these schemes or candidates, where the policy names none; no parameter.
    """

    mode: Mode
    epsilon_keep: Decimal
    delta: Decimal
    keep_numerator: int
    crowd: int
    delta_crowd: float
    public_rows: int
    persons: bool
    noise_reason: str | None = field(default=None, compare=False)
    proposed: str | None = field(default=None, compare=False)

    @property
    def schemes(self) -> Schemes:
        """Level vectors: public, or chosen; none as long as they are to be chosen."""
        return self.mode.schemes

    @property
    def choice(self) -> Choice | None:
        """How the schemes are chosen; None where they are public."""
        return self.mode.choice if isinstance(self.mode, PeeledSchemes | OneScheme) else None

    @property
    def admission(self) -> Noise | None:
        """Noise of the admission; None where the table is not counted for it."""
        return None if isinstance(self.mode, PublicCells | ReusedCells | OneScheme) else self.mode.admission

    @property
    def frequent(self) -> int:
        """``t``: cells with a (noisy) count below it are not admitted; 1 where nothing is."""
        return 1 if isinstance(self.mode, OneScheme) else self.mode.frequent

    @property
    def draw(self) -> Draw:
        """What a record's draw prefers; there is none in mode global."""
        assert not isinstance(self.mode, OneScheme)
        return self.mode.draw

    @property
    def count_cap(self) -> int:
        """Public cap of counts, in rows."""
        return self.public_rows if isinstance(self.mode, OneScheme) else self.mode.draw.count_cap

    @property
    def survival(self) -> tuple[int, int]:
        """Rows a cell needs to be released with probability 50 % and 99 %."""
        return survival_rows(self.crowd, self.keep_numerator, 0.5), survival_rows(self.crowd, self.keep_numerator, 0.99)

    @property
    def epsilon(self) -> Decimal:
        """Total ε."""
        chosen = self.choice.picks * self.choice.epsilon if self.choice is not None else Decimal(0)
        return chosen + self.mode.epsilon + self.epsilon_keep

    @property
    def events(self) -> ReleaseEvents:
        """What the release does to the privacy of a row, for accounting."""
        counts: GaussianCounts | LaplaceCounts | None = None
        if isinstance(self.admission, Admission):
            counts = GaussianCounts(self.admission.sigma_squared, self.mode.w)
        elif self.admission is not None:
            counts = LaplaceCounts(self.admission.scale, self.mode.w)
        choice = self.choice
        return ReleaseEvents(
            sampling=Sampling(self.keep_numerator, self.crowd, Fraction(self.epsilon_keep), Fraction(self.delta_crowd)),
            counts=counts,
            delta_select=Fraction(0) if self.admission is None else Fraction(self.admission.delta_select),
            epsilon=Fraction(self.epsilon),
            delta=Fraction(self.delta),
            picks=None if choice is None else SchemePicks(Fraction(choice.epsilon), choice.picks),
        )

    @property
    def statement(self) -> str:
        """The guarantee, as printed with the release."""
        admitted = ""
        if isinstance(self.mode, PublicCells):
            admitted = " The admissible cells come from a public dictionary and cost nothing."
        if isinstance(self.mode, ReusedCells):
            admitted = (
                f" The admissible cells are those released by the run '{self.mode.cells.run_id}' and cost nothing more."
            )
        unit = "one row as it is parsed, one row per person,"
        if self.persons:
            unit = (
                "one person with all their rows, of which one is drawn (a row that names nobody is a person by itself),"
            )
        return (
            f"({self.epsilon}, {self.delta})-differential privacy for adding or removing {unit} under the "
            f"assumption that the keyed function is pseudo-random.{admitted}"
        )

    def drawn(self, schemes: Schemes) -> Mechanism:
        """Return the mechanism with the schemes that were chosen."""
        assert isinstance(self.mode, PeeledSchemes | OneScheme)
        return replace(self, mode=replace(self.mode, schemes=schemes))

    def to_dict(self) -> dict[str, object]:
        """Return everything that determines the law of the release given the table; all of it may be published.

        The digest is over it and the ledger keeps it: keys, their order and how a number is written are fixed.
        """
        return {
            "mode": self.mode.name,
            "epsilon_admit": str(self.mode.epsilon),
            "epsilon_keep": str(self.epsilon_keep),
            "delta": str(self.delta),
            "neighbours": "add or remove one person with all their rows" if self.persons else "add or remove one row",
            "unit": unit_of(self.persons),
            "w": self.mode.w,
            "keep_probability": f"{self.keep_numerator}/{KEEP_DENOMINATOR}",
            "k": self.crowd,
            "delta_crowd": self.delta_crowd,
            "public_rows": self.public_rows,
            **self.mode.to_dict(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Mechanism:
        """Read the parameters of a release, as a manifest and the ledger hold them; further keys are not looked at.

        Raises
        ------
        InputError
            If one is missing or is not what a mechanism has; names the key.
        """
        found = cls(
            mode=mode_from_dict(document),
            epsilon_keep=taken(document, "epsilon_keep", exact),
            delta=taken(document, "delta", exact),
            keep_numerator=taken(document, "keep_probability", _keep_numerator),
            crowd=taken(document, "k", whole),
            delta_crowd=taken(document, "delta_crowd", number),
            public_rows=taken(document, "public_rows", whole),
            persons=taken(document, "unit", str) == unit_of(True),
        )
        if taken(document, "w", whole) != found.mode.w:
            raise InputError("The parameters of a release are not those of a mechanism: 'w' cannot be read.")
        return found

    def digest(self, policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> str:
        """SHA-256 over everything but the table that the released tuples depend on, hex.

        Hierarchies count by their content, a public dictionary by where it lies.
        """
        document: dict[str, object] = {"mechanism": self.to_dict()}
        if self.persons:
            document["entity_id"] = policy.table.entity_id
        return content_digest(document, policy, hierarchies)


def _keep_numerator(text: str) -> int:
    numerator, denominator = text.split("/")
    if int(denominator) != KEEP_DENOMINATOR:
        raise ValueError
    return int(numerator)


def _read_mechanism(document: object) -> Mechanism:
    if not isinstance(document, Mapping):
        raise ValueError("must be a mapping")
    return Mechanism.from_dict(document)


@dataclass(frozen=True)
class StoredMechanism(Stored):
    """What the ledger keeps of a run's mechanism: by it a retry is told from another release.

    Attributes
    ----------
    mechanism : Mechanism
    digest : str
        Of the mechanism with policy and hierarchies, hex.
    version : str
        Of the program.
    """

    mechanism: Annotated[
        Mechanism,
        Field(alias="parameters"),
        PlainValidator(_read_mechanism),
        PlainSerializer(lambda mechanism: mechanism.to_dict()),
    ]
    digest: str
    version: str

    @classmethod
    def of_run(cls, mechanism: str) -> StoredMechanism:
        """Read the JSON text of a run in the ledger; errors are those of :meth:`from_dict`."""
        return cls.from_dict(json.loads(mechanism))


def losses_of(mechanism: str) -> ReleaseEvents | None:
    """Return what a run in the ledger did to the privacy of a row, by the JSON text of its mechanism.

    None where the ledger does not hold what it takes, as for runs of other programs.
    """
    try:
        return StoredMechanism.of_run(mechanism).mechanism.events
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


def unit_of(persons: bool) -> str:
    """What a release protects, in words."""
    return "person, one row drawn of each" if persons else "one row per person"
