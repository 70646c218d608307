"""What is done to the values of a column: when it is read, and when it is released as it is."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from privrisk_spark.hierarchies.scales import Number
from privrisk_spark.hierarchies.text import Written
from privrisk_spark.policy.types import SORTED, Part, unsaid

BLANKS = "".join(map(chr, [*range(9, 14), *range(28, 33), 133, 160, 5760, *range(8192, 8203), 8232, 8233, 8239, 8287]))
BLANKS += "\u3000\ufeff"
"""What ``trim`` takes away: white space as Unicode has it, and the byte order mark."""

STEPS = ("trim", "case", "null_if", "map", "cast")
"""Order in which a reading is applied; each step sees what the one before it left."""


class NumberMarks(Part):
    """The marks in numbers that are written as texts."""

    decimal: Literal[",", "."] = Field(".", description="Mark before the decimals.")
    thousands: Literal[",", ".", "'", "’", " ", "\u00a0", "\u202f"] | None = Field(
        None, description="Mark between groups of three digits."
    )

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.decimal == self.thousands:
            raise ValueError(f"decimal and thousands must differ. Got {self.decimal!r} twice")
        return self

    @property
    def pattern(self) -> str:
        """Regular expression of a number with these marks, without anchors; for Java, Rust and Python."""
        groups = "" if self.thousands is None else f"[0-9]{{1,3}}(?:[{self.thousands}][0-9]{{3}})+|"
        return f"[+-]?(?:{groups}[0-9]+)(?:[{self.decimal}][0-9]+)?"


class Reading(Part):
    """How values of a column are tidied when they are read, in the order of the keys."""

    trim: bool = Field(False, description="Take blanks away at both ends.")
    case: Literal["upper", "lower"] | None = Field(None, description="Write all letters as upper or as lower case.")
    null_if: tuple[Written, ...] = Field((), description='Texts that mean a missing value, such as ["", "?"].')
    map: Annotated[dict[Written, Written], SORTED] = Field(
        default_factory=dict, description="What stands instead of a text, such as {m: M}; other texts stay."
    )
    cast: Literal["date", "integer", "number"] | None = Field(
        None,
        description="What the values are read as: 'date' takes timestamps (their day in UTC) and texts that begin with "
        "YYYY-MM-DD.",
    )

    number: NumberMarks | None = Field(
        None,
        description="How numbers are written, such as {decimal: ',', thousands: '.'} for 1.234,56; they are read as "
        "numbers.",
        exclude_if=unsaid,
    )

    @model_validator(mode="before")
    @classmethod
    def _cast_numbers(cls, given: Any) -> Any:
        """Read what has marks as a number."""
        if isinstance(given, dict) and given.get("number") is not None and given.get("cast") is None:
            return {**given, "cast": "number"}
        return given

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.number is not None and self.cast == "date":
            raise ValueError("takes number or cast: date, not both")
        if not self.steps:
            raise ValueError("must hold at least one of trim, case, null_if, map and cast; or leave it out")
        lost = [text for text in (*self.null_if, *self.map) if self._before(text) != text]
        if lost:
            raise ValueError(
                f"names the text {lost[0]!r}, which no value is when null_if and map are looked at: trim and case come "
                f"first; write {self._before(lost[0])!r}"
            )
        both = [text for text in self.map if text in self.null_if]
        if both:
            raise ValueError(f"names the text {both[0]!r} in null_if and in map; null_if comes first; leave one out")
        return self

    def _before(self, text: str) -> str:
        """Return a text as ``null_if`` and ``map`` see it."""
        text = text.strip(BLANKS) if self.trim else text
        return {"upper": text.upper(), "lower": text.lower(), None: text}[self.case]

    @property
    def steps(self) -> tuple[str, ...]:
        """What is done, in its order."""
        return tuple(step for step in STEPS if getattr(self, step))

    def declared(self) -> dict[str, Any]:
        """Return what is done, for a manifest."""
        said = self.model_dump(mode="json")
        marks = {} if self.number is None else {"number": said["number"]}
        return {step: said[step] for step in self.steps} | marks


class Recoding(Part):
    """How the numbers of a column that is kept are made coarser before they are released."""

    bottom_code: Number | None = Field(None, description="Smaller numbers are released as this one.")
    top_code: Number | None = Field(None, description="Greater numbers are released as this one.")
    round: Annotated[Number, Field(gt=0)] | None = Field(
        None, description="Numbers are released as the nearest multiple of this one, halves away from zero."
    )
    intervals: tuple[Number, ...] = Field(
        (), description="Numbers are released as the interval they are in, between cuts such as [0, 100, 1000]."
    )

    @field_validator("intervals")
    @classmethod
    def _ascending(cls, cuts: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
        for low, high in pairwise(cuts):
            if high <= low:
                raise ValueError(f"cuts must ascend; got {high} after {low}")
        return cuts

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.declared():
            raise ValueError("must hold at least one of bottom_code, top_code, round and intervals; or leave it out")
        if self.round is not None and self.intervals:
            raise ValueError("takes round or intervals, not both")
        if self.bottom_code is not None and self.top_code is not None and self.bottom_code >= self.top_code:
            raise ValueError(f"bottom_code must be below top_code = {self.top_code}. Got {self.bottom_code}")
        return self

    def declared(self) -> dict[str, Any]:
        """Return what is done, for a manifest."""
        return {key: value for key, value in self.model_dump(mode="json").items() if value not in (None, [])}
