"""The kinds of values a policy holds, and the base of its parts."""

from __future__ import annotations

import datetime as dt
from decimal import Context, Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from privrisk_spark.hierarchies.scales import no_truth
from privrisk_spark.hierarchies.text import AS_WRITTEN, KEEP_ABSOLUTE
from privrisk_spark.storage.locations import AbsolutePath


def _day(value: object) -> object:
    """Take dates in ISO form only: pydantic would read a number as seconds since 1970."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    try:
        return dt.date.fromisoformat(str(value))
    except ValueError:
        raise ValueError('must be a date YYYY-MM-DD, or "{ds}" in quotes for the date of the run') from None


def _instant(value: object) -> object:
    """Take a date and a time in ISO form with an offset: which version is read must not depend on a time zone."""
    try:
        found = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError("must be a date and a time with an offset from UTC, such as 2026-11-21T06:00:00Z")
    return found.astimezone(dt.UTC)


def _option(value: object) -> object:
    if not isinstance(value, str | int | float):
        raise ValueError("must be a text, a number, true or false")
    return value


def _by_name(value: dict[str, Any]) -> dict[str, Any]:
    """Sort a mapping whose order means nothing, so that the digest does not depend on it."""
    return dict(sorted(value.items()))


def _without_trailing_zeros(number: Decimal) -> str:
    return str(number.normalize(Context(prec=len(number.as_tuple().digits))))


def _after(prefix: str) -> AfterValidator:
    """Make the path after a prefix absolute; a text that begins otherwise is no path."""

    def absolute(text: str) -> str:
        # A name for a database in memory stays as it is written: the ledger refuses it.
        if not text.startswith(prefix) or text == prefix or text.startswith(f"{prefix}:memory:"):
            return text
        found = AbsolutePath(prefix + AbsolutePath.of(text.removeprefix(prefix)))
        found.written = text
        return found

    return AfterValidator(absolute)


def unsaid(value: object) -> bool:
    """Return True if a key is at its default and is left out of the canonical form."""
    return value is None or value is False or value in ((), [])


SORTED = AfterValidator(_by_name)

NullPolicy = Literal["own-value", "wildcard", "forbid", "suppress"]
Text = Annotated[str, Field(min_length=1)]
Option = Annotated[str | int | float | bool, BeforeValidator(_option)]
Day = Annotated[
    dt.date,
    BeforeValidator(_day),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date"}, {"const": "{ds}"}]}),
]
Instant = Annotated[
    dt.datetime,
    BeforeValidator(_instant),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]

# Python counts True as 1; a policy does not. Bounds stand before the validator, where the JSON Schema sees them.
NUMBER = BeforeValidator(no_truth)
Count = Annotated[int, Field(gt=0), NUMBER]
Natural = Annotated[int, Field(ge=0), NUMBER]
Year = Annotated[int, Field(ge=1, le=9999), NUMBER]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), NUMBER]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False), NUMBER]
Finite = Annotated[float, Field(allow_inf_nan=False), NUMBER]
Weight = Annotated[float, Field(ge=0), NUMBER]
# Decimals: 0.1 is one tenth exactly. Serialized so that 4 and 4.0 have one digest.
EXACT = PlainSerializer(_without_trailing_zeros, return_type=str, when_used="json")
NonNegativeExact = Annotated[Decimal, Field(ge=0), NUMBER, EXACT]
PositiveExact = Annotated[Decimal, Field(gt=0), NUMBER, EXACT]
Delta = Annotated[Decimal, Field(gt=0, lt=1), NUMBER, EXACT]

LedgerUrl = Annotated[Text, _after("sqlite:///"), KEEP_ABSOLUTE, AS_WRITTEN]
KeyReference = Annotated[
    Annotated[str, Field(pattern=r"^(env|file):.+$"), _after("file:"), KEEP_ABSOLUTE, AS_WRITTEN] | None,
    Field(
        description="Release key by reference, 'env:NAME' or 'file:PATH' (64 hex digits); null: made and destroyed.",
    ),
]


class Part(BaseModel):
    """One mapping of a policy: frozen, and without keys nobody knows."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, ser_json_inf_nan="strings")
