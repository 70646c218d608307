"""What a person writes under ``hierarchy:`` for values on a scale: numbers in intervals, dates along the calendar."""

from __future__ import annotations

import datetime as dt
import math
import re
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from privrisk_spark.errors import listing
from privrisk_spark.hierarchies.hierarchy import MAX_LEAVES
from privrisk_spark.hierarchies.numbers import EXACT, equal_text, read_number, show_number
from privrisk_spark.hierarchies.paths import MAX_HEIGHT, LeafPath
from privrisk_spark.hierarchies.text import Builder, Label, Some


def no_truth(value: object) -> object:
    """Refuse true and false where a number belongs: Python counts them as 1 and 0. Read YAML's forms of numbers."""
    if isinstance(value, bool):
        raise ValueError("must be a number, not true or false")
    if not isinstance(value, str):
        return value
    return int(value, 16) if _HEXADECIMAL.fullmatch(value) else _INFINITE.get(value.lower(), value)


_HEXADECIMAL = re.compile("[+-]?0x[0-9a-fA-F]+")
_INFINITE = {".inf": math.inf, "+.inf": math.inf, "-.inf": -math.inf, ".nan": math.nan}


def _plain(number: Decimal) -> int | float | str:
    """Return a number for YAML or JSON that reads back as the same decimal."""
    if number.as_tuple().exponent == 0:
        return int(number)
    return float(number) if str(float(number)) == str(number) else str(number)


Number = Annotated[
    Decimal,
    BeforeValidator(no_truth),
    Field(allow_inf_nan=False, ge=-(10**18), le=10**18, decimal_places=12),
    PlainSerializer(_plain, return_type=int | float | str),
    WithJsonSchema({"type": "number"}),
]


def _floor_divide(number: Decimal, divisor: Decimal) -> int:
    """Return the floor of a quotient, exactly."""
    quotient = int(EXACT.divide_int(number, divisor))
    return quotient - (number < 0 and EXACT.remainder(number, divisor) != 0)


class _Numbers(Builder):
    """Numeric values; what the two ways to write intervals share."""

    numbers: ClassVar[bool] = True
    understands: ClassVar[str] = "a number such as 39 or 39.5, within the domain if there is one"

    domain: tuple[Number, Number] | None = Field(
        None,
        description="Least and greatest value; declares the leaves, one per unit, both ends included.",
        examples=[[0, 120]],
    )
    unit: Number = Field(
        Decimal(1),
        gt=0,
        json_schema_extra={"default": 1},
        description="Step between declared values, which have as many decimals as domain and unit.",
    )

    @model_validator(mode="after")
    def _check_domain(self) -> Self:
        if self.domain is not None:
            low, high = self.domain
            if low > high:
                raise ValueError(f"domain must go from low to high; got {low}, {high}")
            if EXACT.remainder(EXACT.subtract(high, low), self.unit) != 0:
                raise ValueError(
                    f"domain must be a whole number of units long; got {low}, {high} in steps of {self.unit}"
                )
            size = _floor_divide(EXACT.subtract(high, low), self.unit) + 1
            if size > MAX_LEAVES:
                raise ValueError(f"domain must hold at most {MAX_LEAVES:,} values; {low} to {high} holds {size:,}")
        return self

    @property
    def public(self) -> bool:
        """True if a domain is declared."""
        return self.domain is not None

    def remedy(self) -> str:
        """Name the unit: a value between two steps of it is outside, although it is within the domain."""
        if self.domain is None:
            return "Make them numbers"
        unit = show_number(self.unit)
        return f"Widen domain, or set a unit below {unit} if values are between its steps, such as unit: 0.5"

    def declared(self) -> Sequence[str] | None:
        """Return every value of the domain as text, ascending."""
        if self.domain is None:
            return None
        low, high = self.domain
        size = _floor_divide(EXACT.subtract(high, low), self.unit) + 1
        return [self._in_domain(step) for step in range(size)]

    def _in_domain(self, step: int) -> str:
        low = self.domain[0] if self.domain is not None else Decimal(0)
        return format(EXACT.add(low, EXACT.multiply(step, self.unit)), "f")

    def path(self, value: str) -> LeafPath | None:
        """Return the number, as the domain has it, and the intervals around it."""
        number = read_number(value)
        if number is None:
            return None
        leaf = equal_text(value)
        if self.domain is not None:
            low, high = self.domain
            there = self._in_domain(_floor_divide(EXACT.subtract(number, low), self.unit))
            if not low <= number <= high or equal_text(there) != leaf:
                return None
            leaf = there
        return (leaf, *self._above(number))

    @abstractmethod
    def _above(self, number: Decimal) -> LeafPath:
        """Return the labels of the intervals around a number, finest first."""

    def sort_key(self, value: str) -> Any:
        """Order by number, then by text."""
        return (read_number(value) or Decimal(0), value)


class Widths(_Numbers):
    """Intervals of fixed width: at level j of width ``widths[j - 1]``, counted from the origin."""

    widths: Some[Annotated[Number, Field(gt=0)]] = Field(
        max_length=MAX_HEIGHT - 1,
        description="Width of the intervals per level, each a larger multiple of the one before.",
        examples=[[5, 10, 20]],
    )
    origin: Number = Field(
        Decimal(0), json_schema_extra={"default": 0}, description="Where an interval of every level starts."
    )
    bottom: Number | None = Field(
        None, description="Values below are one open interval at every level; a boundary of every level."
    )
    top: Number | None = Field(
        None,
        description="Values from here up are one open interval at every level; a boundary of every level.",
    )

    @field_validator("widths")
    @classmethod
    def _multiples(cls, widths: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
        for finer, coarser in pairwise(widths):
            if coarser <= finer or EXACT.remainder(coarser, finer) != 0:
                raise ValueError(
                    f"each of widths must be a larger multiple of the one before; got {coarser} after {finer}"
                )
        return widths

    @field_validator("bottom", "top")
    @classmethod
    def _on_boundary(cls, end: Decimal | None, info: ValidationInfo) -> Decimal | None:
        widths, origin = info.data.get("widths"), info.data.get("origin")
        if end is None or widths is None or origin is None:
            return end
        for width in widths:
            if EXACT.remainder(EXACT.subtract(end, origin), width) != 0:
                raise ValueError(f"{info.field_name} must be a boundary of every level; {end} is none of width {width}")
        bottom = info.data.get("bottom")
        if info.field_name == "top" and bottom is not None and end <= bottom:
            raise ValueError(f"top must be above bottom; got {end} and {bottom}")
        return end

    @cached_property
    def _known(self) -> dict[int, LeafPath]:
        return {}

    def _above(self, number: Decimal) -> LeafPath:
        if self.bottom is not None and number < self.bottom:
            return (f"<{show_number(self.bottom)}",) * len(self.widths)
        if self.top is not None and number >= self.top:
            return (f">={show_number(self.top)}",) * len(self.widths)
        finest = _floor_divide(EXACT.subtract(number, self.origin), self.widths[0])
        above = self._known.get(finest)
        if above is None:
            start = EXACT.add(self.origin, EXACT.multiply(finest, self.widths[0]))
            above = self._known[finest] = tuple(self._interval(start, width) for width in self.widths)
        return above

    def level_names(self) -> tuple[str, ...]:
        """Return the widths."""
        return ("as it is", *(f"width {show_number(width)}" for width in self.widths))

    def _interval(self, number: Decimal, width: Decimal) -> str:
        step = _floor_divide(EXACT.subtract(number, self.origin), width)
        low = EXACT.add(self.origin, EXACT.multiply(step, width))
        return f"[{show_number(low)},{show_number(EXACT.add(low, width))})"


class Cuts(_Numbers):
    """Intervals between given cut points, open at both ends."""

    cuts: Some[Some[Number]] = Field(
        max_length=MAX_HEIGHT - 1,
        description="Ascending cut points per level; each list leaves out some points of the list before.",
        examples=[[[0, 18, 40, 65], [0, 40]]],
    )

    @field_validator("cuts")
    @classmethod
    def _nested(cls, cuts: tuple[tuple[Decimal, ...], ...]) -> tuple[tuple[Decimal, ...], ...]:
        for level, points in enumerate(cuts, start=1):
            for low, high in pairwise(points):
                if low >= high:
                    raise ValueError(f"cuts of level {level} must ascend; got {high} after {low}")
        for level, (finer, coarser) in enumerate(pairwise(cuts), start=2):
            foreign = [str(point) for point in coarser if point not in finer]
            if foreign:
                raise ValueError(
                    f"cuts of level {level} must be among those of level {level - 1}; got {listing(foreign)}"
                )
            if len(coarser) == len(finer):
                raise ValueError(f"cuts of level {level} must leave out some of level {level - 1}; got the same")
        return cuts

    def level_names(self) -> tuple[str, ...]:
        """Return how many intervals there are, the two open ones included."""
        return ("as it is", *(f"{len(points) + 1} intervals" for points in self.cuts))

    @cached_property
    def _between(self) -> list[LeafPath]:
        """Labels per level above each of the finest intervals, in ascending order."""
        lowest = tuple(f"<{show_number(points[0])}" for points in self.cuts)
        return [lowest, *(tuple(_cut_label(points, start) for points in self.cuts) for start in self.cuts[0])]

    def _above(self, number: Decimal) -> LeafPath:
        return self._between[bisect_right(self.cuts[0], number)]


def _cut_label(points: tuple[Decimal, ...], number: Decimal) -> str:
    """Return the interval between cut points a number is in, closed on the left."""
    place = bisect_right(points, number)
    if place == 0:
        return f"<{show_number(points[0])}"
    if place == len(points):
        return f">={show_number(points[-1])}"
    return f"[{show_number(points[place - 1])},{show_number(points[place])})"


def interval_labels(cuts: Sequence[Decimal]) -> list[str]:
    """Return the labels of the intervals between ascending cut points, the one below the first point first.

    Parameters
    ----------
    cuts : sequence of Decimal
        At least one.
    """
    points = tuple(cuts)
    return [f"<{show_number(points[0])}", *(_cut_label(points, point) for point in points)]


# ----------------------------------------------------------------------------------------------- dates

DateStep = Literal["day", "month", "quarter", "year", "decade"]
_DATE_STEPS: tuple[DateStep, ...] = ("day", "month", "quarter", "year", "decade")
_DATE_FORM: dict[DateStep, str] = {
    "day": "YYYY-MM-DD",
    "month": "YYYY-MM",
    "quarter": "YYYY-Qn",
    "year": "YYYY",
    "decade": "YYY0s",
}
_DATE = {
    "day": re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})"),
    "month": re.compile(r"([0-9]{4})-([0-9]{2})"),
    "quarter": re.compile(r"([0-9]{4})-Q([1-4])"),
    "year": re.compile(r"([0-9]{4})"),
    "decade": re.compile(r"([0-9]{3}0)s"),
}


@lru_cache(maxsize=65_536)
def _calendar(steps: tuple[DateStep, ...], year: int, month: int) -> LeafPath:
    """Return the labels of a month at some steps; the month is not read at steps coarser than a quarter."""
    label = {
        "month": f"{year:04d}-{month:02d}",
        "quarter": f"{year:04d}-Q{(month + 2) // 3}",
        "year": f"{year:04d}",
        "decade": f"{year // 10 * 10:04d}s",
    }
    return tuple(label[step] for step in steps)


class Dates(Builder):
    """Calendar dates in ISO form, generalized along the calendar."""

    understands: ClassVar[str] = "a calendar date in the form of the first step, within the domain if there is one"

    steps: Some[DateStep] = Field(
        description="Form of the values, then of each level, in this order; steps may be left out.",
    )
    domain: tuple[Label, Label] | None = Field(
        None,
        description="First and last value, in the form of the first step; declares the leaves.",
        examples=[["1900-01-01", "2026-12-31"]],
    )

    @field_validator("steps")
    @classmethod
    def _ascending(cls, steps: tuple[DateStep, ...]) -> tuple[DateStep, ...]:
        places = [_DATE_STEPS.index(step) for step in steps]
        for finer, coarser in pairwise(places):
            if finer >= coarser:
                raise ValueError(
                    f"steps must ascend along {listing(_DATE_STEPS)}; got {_DATE_STEPS[coarser]} after "
                    f"{_DATE_STEPS[finer]}"
                )
        return steps

    @field_validator("domain")
    @classmethod
    def _check_domain(cls, domain: tuple[str, str] | None, info: ValidationInfo) -> tuple[str, str] | None:
        steps = info.data.get("steps")
        if domain is None or steps is None:
            return domain
        ends = [_serial(end, steps[0]) for end in domain]
        for end, serial in zip(domain, ends, strict=True):
            if serial is None:
                raise ValueError(f"domain must hold dates of the form {_DATE_FORM[steps[0]]}; got '{end}'")
        first, last = (serial or 0 for serial in ends)
        if first > last:
            raise ValueError(f"domain must go from first to last; got {domain[0]}, {domain[1]}")
        if last - first >= MAX_LEAVES:
            raise ValueError(f"domain must hold at most {MAX_LEAVES:,} values; this one holds {last - first + 1:,}")
        return domain

    @property
    def public(self) -> bool:
        """True if a domain is declared."""
        return self.domain is not None

    def level_names(self) -> tuple[str, ...]:
        """Return the steps along the calendar."""
        return self.steps

    @cached_property
    def _ends(self) -> tuple[int, int] | None:
        if self.domain is None:
            return None
        first, last = (_serial(end, self.steps[0]) or 0 for end in self.domain)
        return first, last

    def path(self, value: str) -> LeafPath | None:
        """Return the value and the longer periods it is in."""
        first = self.steps[0]
        serial = _serial(value, first)
        if serial is None or (self._ends is not None and not self._ends[0] <= serial <= self._ends[1]):
            return None
        year = int(value[:4])
        month = int(value[5:7]) if first in ("day", "month") else int(value[6]) * 3 if first == "quarter" else 1
        return (value, *_calendar(self.steps[1:], year, month))

    def declared(self) -> Sequence[str] | None:
        """Return every value of the domain, ascending."""
        if self._ends is None:
            return None
        return [_of_serial(serial, self.steps[0]) for serial in range(self._ends[0], self._ends[1] + 1)]


def _serial(text: str, step: DateStep) -> int | None:
    """Return the place of a date in the sequence of all dates of its form; None if it is not one."""
    match = _DATE[step].fullmatch(text)
    if match is None:
        return None
    year, *rest = (int(part) for part in match.groups())
    if step == "decade":
        return year // 10
    if year == 0:
        return None
    if step == "day":
        try:
            return dt.date(year, *rest).toordinal()
        except ValueError:
            return None
    if step == "month":
        return year * 12 + rest[0] - 1 if 1 <= rest[0] <= 12 else None
    return year * 4 + rest[0] - 1 if step == "quarter" else year


def _of_serial(serial: int, step: DateStep) -> str:
    """Return the date at a place; the inverse of `_serial`."""
    if step == "day":
        return dt.date.fromordinal(serial).isoformat()
    if step == "month":
        return f"{serial // 12:04d}-{serial % 12 + 1:02d}"
    if step == "quarter":
        return f"{serial // 4:04d}-Q{serial % 4 + 1}"
    return f"{serial:04d}" if step == "year" else f"{serial:03d}0s"
