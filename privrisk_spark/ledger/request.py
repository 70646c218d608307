"""A request for budget: names, exact amounts, and the record of the mechanism as canonical JSON."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeGuard

from privrisk_spark.errors import InputError
from privrisk_spark.ledger.amounts import amount
from privrisk_spark.ledger.composition import Losses

__all__ = [
    "LONGEST_NAME",
    "Request",
    "canonical",
    "check_name",
    "check_request",
    "digest_of",
    "is_lineage",
    "lineage_name",
    "same_lineage",
]

LONGEST_NAME: Final = 200


@dataclass(frozen=True)
class Request:
    """A checked request for budget.

    Attributes
    ----------
    lineage, run_id : str
        Whose budget, and for which run.
    epsilon, delta, cap_epsilon, cap_delta : fractions.Fraction
        The exact amounts.
    mechanism, digest : str
        Canonical JSON of the mechanism record, and its SHA-256 in hexadecimal.
    asked : str
        Canonical JSON of the digests of what the run was asked for, by name.
    table : str or None
        Identity of the table.
    files : tuple of str
        Identities of the files of the table.
    unit : str or None
        What the release protects.
    losses : callable or None
        By what the cap binds on the tight composition of all charged runs; None: on the sums.
    """

    lineage: str
    run_id: str
    epsilon: Fraction
    delta: Fraction
    cap_epsilon: Fraction
    cap_delta: Fraction
    mechanism: str
    digest: str
    asked: str = "{}"
    table: str | None = None
    losses: Losses | None = None
    files: tuple[str, ...] = ()
    unit: str | None = None

    @property
    def tables(self) -> frozenset[str]:
        """All identities of the table."""
        return frozenset((*([] if self.table is None else [self.table]), *self.files))

    @property
    def parts(self) -> dict[str, str]:
        """Digests of what the run was asked for, by name."""
        return dict(json.loads(self.asked))


def check_request(
    lineage: str,
    run_id: str,
    epsilon: str | Decimal,
    delta: str | Decimal,
    cap_epsilon: str | Decimal,
    cap_delta: str | Decimal,
    mechanism: Mapping[str, object],
    asked: Mapping[str, str] | None = None,
    table: str | None = None,
    losses: Losses | None = None,
    files: Sequence[str] = (),
    unit: str | None = None,
) -> Request:
    """Check and normalize the arguments of a reservation.

    Parameters
    ----------
    lineage, run_id, epsilon, delta, cap_epsilon, cap_delta, mechanism, asked, table, losses, files, unit
        See `privrisk_spark.ledger.ledger.Ledger.reserve`.

    Returns
    -------
    Request
        Amounts as fractions; the mechanism as canonical JSON (sorted keys, no spaces, ASCII) with its
        SHA-256.

    Raises
    ------
    InputError
        If one is malformed.
    """
    try:
        text = canonical(dict(mechanism))
    except (TypeError, ValueError) as error:
        raise InputError(
            "mechanism must be a mapping of JSON values: text, finite numbers, true, false, null, lists and mappings."
        ) from error
    return Request(
        lineage=check_name("lineage", lineage),
        run_id=check_name("run_id", run_id),
        epsilon=amount("epsilon", epsilon),
        delta=amount("delta", delta, below_one=True),
        cap_epsilon=amount("cap_epsilon", cap_epsilon),
        cap_delta=amount("cap_delta", cap_delta, below_one=True),
        mechanism=text,
        digest=digest_of(text),
        asked=canonical({check_name("asked", name): check_name("asked", of) for name, of in (asked or {}).items()}),
        table=None if table is None else check_name("table", table),
        losses=losses,
        files=tuple(check_name("table", one) for one in files),
        unit=None if unit is None else check_name("unit", unit),
    )


def canonical(document: object) -> str:
    """Return a JSON document as one text: sorted keys, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def lineage_name(lineage: str) -> str:
    """Return what a lineage is called in the ledger, however somebody writes it.

    Parameters
    ----------
    lineage : str

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
