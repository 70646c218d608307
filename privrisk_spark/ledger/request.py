"""A request for budget: names, exact amounts, and the record of the mechanism as canonical JSON."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeGuard

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from privrisk_spark.errors import InputError
from privrisk_spark.ledger.amounts import Amounts, amount
from privrisk_spark.policy.policy import Accounting

__all__ = [
    "LONGEST_NAME",
    "Request",
    "canonical",
    "check_name",
    "digest_of",
    "is_lineage",
    "lineage_name",
    "same_lineage",
]

LONGEST_NAME: Final = 200


class Request(BaseModel):
    """A checked request for budget.

    Attributes
    ----------
    lineage : str
        The table through all its snapshots. Two products of one table share one lineage.
    run_id : str
        The run; one draw of randomness.
    epsilon, delta : fractions.Fraction
        What the run costs, given as text or Decimal: non-negative, delta below 1. A certificate that is no finite
        decimal is rounded up by the caller. Floats are refused: 0.1 is not one.
    cap_epsilon, cap_delta : fractions.Fraction
        What the lineage may spend in all, given likewise. They must equal the recorded cap or be lower; the lower one
        is then recorded with the reservation. Raising a cap is refused: whoever relied on the old promise would be
        left with less protection than was stated.
    mechanism : str
        Canonical JSON of the record, given as a mapping, of everything that fixes the draw (parameters, code version,
        and the snapshot if it is known by now). Never a key or a seed. Its digest tells a retry from another release.
    asked : dict of str to str
        Digests of what else the run was asked for, by name, such as parts of its policy: a retry must agree in all,
        and a refusal names those that differ.
    table : str or None
        Identity of the table, without its values: the lineage is of the table it was first used for, and no other
        lineage of the ledger is of it.
    files : tuple of str
        Identities of the files of the table, as far as they are known before it is opened. A table that shares a file
        with the lineage is its table; a file of another lineage is refused.
    unit : str or None
        What the release protects: losses add up for one unit.
    accounting : {'basic', 'pld'}
        What the cap binds on: the sums, or the tight composition of all charged runs at the cap's delta
        (`privrisk_spark.ledger.composition`), which reads the laws of a run out of its mechanism.

    Raises
    ------
    InputError
        If a value is malformed.
    """

    model_config = ConfigDict(frozen=True)

    lineage: str
    run_id: str
    epsilon: Fraction
    delta: Fraction
    cap_epsilon: Fraction
    cap_delta: Fraction
    mechanism: str
    asked: dict[str, str] = {}
    table: str | None = None
    files: tuple[str, ...] = ()
    unit: str | None = None
    accounting: Accounting = "basic"

    def __init__(self, **given: Any) -> None:
        try:
            super().__init__(**given)
        except ValidationError as error:
            first = error.errors()[0]
            raise first.get("ctx", {}).get("error") or InputError(f"{first['loc'][0]}: {first['msg']}") from None

    @field_validator("lineage", "run_id", "table", "unit", mode="plain")
    @classmethod
    def check_names(cls, value: Any, info: ValidationInfo) -> str:
        """Refuse what is no name."""
        return check_name(str(info.field_name), value)

    @field_validator("epsilon", "delta", "cap_epsilon", "cap_delta", mode="plain")
    @classmethod
    def check_amounts(cls, value: Any, info: ValidationInfo) -> Fraction:
        """Refuse what is no exact amount."""
        name = str(info.field_name)
        return amount(name, value, below_one=name.endswith("delta"))

    @field_validator("mechanism", mode="plain")
    @classmethod
    def write_mechanism(cls, value: Any) -> str:
        """Write the record as canonical JSON: sorted keys, no spaces, ASCII."""
        try:
            return canonical(dict(value))
        except (TypeError, ValueError) as error:
            raise InputError(
                "mechanism must be a mapping of JSON values: text, finite numbers, true, false, null, lists and "
                "mappings."
            ) from error

    @field_validator("asked", mode="plain")
    @classmethod
    def check_asked(cls, value: Mapping[str, str]) -> dict[str, str]:
        """Refuse digests and names of them that are no names."""
        return {check_name("asked", name): check_name("asked", of) for name, of in value.items()}

    @field_validator("files", mode="plain")
    @classmethod
    def check_files(cls, value: Iterable[str]) -> tuple[str, ...]:
        """Refuse identities of files that are no names."""
        return tuple(check_name("table", one) for one in value)

    @property
    def cost(self) -> Amounts:
        """What the run costs."""
        return self.epsilon, self.delta

    @property
    def caps(self) -> Amounts:
        """What the lineage may spend in all."""
        return self.cap_epsilon, self.cap_delta

    @property
    def digest(self) -> str:
        """SHA-256 of the mechanism record, hex."""
        return digest_of(self.mechanism)

    @property
    def tables(self) -> frozenset[str]:
        """All identities of the table."""
        return frozenset((*([] if self.table is None else [self.table]), *self.files))


def canonical(document: object) -> str:
    """Return a JSON document as one text: sorted keys, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def lineage_name(lineage: str) -> str:
    """Return what a lineage is called in the ledger, however somebody writes it.

    Returns
    -------
    str
        In Unicode's normal form C, without white space around it, case folded: names that look alike, or differ by a
        slip of the hand, are one account.

    Raises
    ------
    InputError
        If it is no name.
    """
    name = check_name("lineage", lineage)
    # Folding may take a text out of its normal form.
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).strip().casefold())
    return check_name("lineage", folded)


def is_lineage(name: object) -> TypeGuard[str]:
    """Tell whether what was read somewhere can be the name of a lineage."""
    try:
        return isinstance(name, str) and bool(lineage_name(name))
    except InputError:
        return False


def same_lineage(one: object, other: object) -> bool:
    """Tell whether two texts that were read somewhere are names of one lineage."""
    return is_lineage(one) and is_lineage(other) and lineage_name(one) == lineage_name(other)


def check_name(key: str, value: str, *, longest: int = LONGEST_NAME) -> str:
    """Return a name if it is printable text that is not too long.

    Parameters
    ----------
    key : str
        What it names, for the message.
    value : str
        The name.
    longest : int
        Most characters it may have.

    Returns
    -------
    str
        The name unchanged.

    Raises
    ------
    InputError
        If it is not.
    """
    if not isinstance(value, str) or not value.strip() or len(value) > longest or not value.isprintable():
        raise InputError(f"{key} must be printable text of 1 to {longest} characters.")
    return value


def digest_of(mechanism: str) -> str:
    """SHA-256 of the canonical JSON of a mechanism record, hex."""
    return hashlib.sha256(mechanism.encode()).hexdigest()
