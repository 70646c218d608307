"""What hierarchy suits a column: the calendar, masks, intervals at round cuts, ordinals, codes by prefixes, or flat."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from privrisk_spark.hierarchies.paths import LeafPath
from privrisk_spark.kernels.numeric.round_cuts import round_cuts
from privrisk_spark.planning.first_policy.roles import Guess
from privrisk_spark.planning.first_policy.scales import atc_path, icd10_path, nace_path, ordered
from privrisk_spark.planning.first_policy.tidying import reading
from privrisk_spark.policy.values import BLANKS, Reading
from privrisk_spark.results.profile import ColumnProfile

Form = Literal["dates", "mask", "intervals", "order", "groups", "flat"]


@dataclass(frozen=True)
class Proposal:
    """What is proposed for a quasi-identifier.

    Attributes
    ----------
    form : str
        See :data:`Form`.
    rule : mapping
        The ``hierarchy`` of the policy; of ``groups`` it is made where the paths are written.
    height : int
        Steps from a value to ``*``.
    reason : str
        A sentence without its full stop; it holds no value of a record.
    unsure : bool
        Whether the hierarchy or the role may well be another.
    read : mapping
        How values are tidied; empty if they need not be.
    paths : tuple of tuple of str
        Of ``groups``: each value with its groups, finest first.
    suppress_unknown : bool
        Whether values outside the hierarchy are suppressed instead of an error.
    """

    column: str
    form: Form
    rule: Mapping[str, Any]
    height: int
    reason: str
    unsure: bool = False
    read: Mapping[str, Any] = field(default_factory=dict)
    read_reason: str = ""
    paths: tuple[LeafPath, ...] = ()
    suppress_unknown: bool = False


def thinner(proposal: Proposal) -> Proposal | None:
    """Return a proposal with one level less, or None where none can be spared.

    Of dates the quarter goes first, then the month, then the decade; of masks the coarsest level; of groups the
    finest, then the coarsest; of intervals and ordinals the finest. A decade that stays is kept where a year would go.
    """
    if proposal.height < (4 if proposal.form == "mask" else 3):
        return None
    rule: dict[str, Any] = {}
    if proposal.form == "dates":
        steps = list(proposal.rule["dates"]["steps"])
        steps.remove(next(step for step in ("quarter", "month", "decade") if step in steps))
        rule = {"dates": {"steps": steps}}
    elif proposal.form == "mask":
        mask = proposal.rule["mask"]
        rule = {"mask": {**mask, "steps": mask["steps"] - 1}}
    elif proposal.form == "order":
        order = proposal.rule["order"]
        first, second, *rest = order["fanouts"]
        rule = {"order": {**order, "fanouts": [first * second, *rest]}}
    elif proposal.form == "intervals":
        intervals = proposal.rule["intervals"]
        kind = "cuts" if "cuts" in intervals else "widths"
        rule = {"intervals": {**intervals, kind: intervals[kind][1:]}}
    finest = proposal.height > 3
    paths = tuple((path[0], *path[2:]) if finest else path[:-1] for path in proposal.paths)
    return replace(proposal, rule=rule, height=proposal.height - 1, paths=paths)


@dataclass(frozen=True)
class _Found:
    form: Form
    rule: Mapping[str, Any]
    height: int
    reason: str
    unsure: bool = False
    paths: tuple[LeafPath, ...] = ()
    suppress_unknown: bool = False


def propose(column: ColumnProfile, guess: Guess) -> Proposal:
    """Return the hierarchy that is proposed for a quasi-identifier.

    Parameters
    ----------
    guess : Guess
        Of the same column.
    """
    read, why = reading(column, guess.concept)
    values = _read_values(column, read)
    found = _found(column, guess.concept, values)
    return Proposal(
        column.name, found.form, found.rule, found.height, found.reason, found.unsure or guess.unsure, read, why,
        found.paths, found.suppress_unknown,
    )  # fmt: skip


def _read_values(column: ColumnProfile, read: Mapping[str, Any]) -> Sequence[str] | None:
    """All values as they are once tidied; None if not all are known."""
    if column.values.counts is None:
        return None
    return tidied_values([value for value, _ in column.values.counts], read)


def tidied_values(values: Sequence[str], read: Mapping[str, Any]) -> list[str]:
    """Return different values as a reading leaves them, in order; what it takes for missing is left out.

    Parameters
    ----------
    read : mapping
        A policy's ``read``.
    """
    if not read:
        return sorted(set(values))
    asked = Reading.model_validate(read)
    return sorted({text for value in values if (text := read_as(value, asked)) is not None})


def tidied_rows(values: Sequence[str | None], read: Mapping[str, Any]) -> list[str | None]:
    """Return the values of rows as a reading leaves them.

    Parameters
    ----------
    values : sequence of (str or None)
    read : mapping
        A policy's ``read``; empty for none.
    """
    if not read:
        return list(values)
    asked = Reading.model_validate(read)
    tidy = {value: read_as(value, asked) for value in set(values) if value is not None}
    return [None if value is None else tidy[value] for value in values]


def read_as(value: str, asked: Reading) -> str | None:
    """Return a text as a reading leaves it; None for a missing one."""
    text = value.strip(BLANKS) if asked.trim else value
    text = {"upper": text.upper(), "lower": text.lower(), None: text}[asked.case]
    if text in asked.null_if:
        return None
    text = asked.map.get(text, text)
    return text[:10] if asked.cast == "date" else text


def _found(column: ColumnProfile, concept: str, values: Sequence[str] | None) -> _Found:
    of_texts = column.type == "string"
    if column.kind in ("date", "time"):
        return _dates(column, concept, of_texts)
    if column.share("written_date") > 0.8:
        return _written_dates(column)
    if concept == "postcode" or _is_postcode(column, concept):
        return _mask(column, "a postcode's places are wider the fewer of its signs are known")
    if concept == "birth_year" and column.share("year") > 0.9:
        return _Found("intervals", {"intervals": {"widths": [5, 10, 20]}}, 4, "years in spans")
    coded = _codes(column, concept, values)
    if coded is not None:
        return coded
    if column.kind == "number":
        return _numbers(column, concept)
    scale = None if values is None else ordered(values)
    if scale is not None:
        fanouts = [2] * max(1, (len(scale) - 1).bit_length() - 1)
        reason = "its values are a scale, and neighbours are grouped"
        return _Found("order", {"order": {"values": scale, "fanouts": fanouts}}, len(fanouts) + 1, reason)
    many = column.distinct > _MANY
    reason = "nothing in its values groups them: each is released or suppressed"
    if many:
        reason += "; group them in a file, as suppressing is all that can be done with so many"
    return _Found("flat", {"flat": {}}, 1, reason, many)


_MANY = 60
"""Values of a flat hierarchy from which on somebody should group them."""


# --------------------------------------------------------------------------------------------------- dates


def _dates(column: ColumnProfile, concept: str, of_texts: bool) -> _Found:
    first, last = (column.values.least or "")[:10], (column.values.greatest or "")[:10]
    steps = ["day", "month", "year", "decade"] if concept in ("birth_date", "death_date") else _steps(first, last)
    reason = "dates along the calendar"
    return _Found("dates", {"dates": {"steps": steps}}, len(steps), reason, suppress_unknown=of_texts)


def _steps(first: str, last: str) -> list[str]:
    """Steps of dates that lie close: a step all of them share is no other than ``*``."""
    steps = ["day", "month", "quarter", "year"]
    try:
        low, high = dt.date.fromisoformat(first), dt.date.fromisoformat(last)
    except ValueError:
        return steps
    if high.year - low.year > 15:
        return ["day", "month", "year", "decade"]
    if high.year - low.year > 1:
        return ["day", "month", "year"]
    if low.year == high.year:
        steps = steps[:3]
        if (low.month - 1) // 3 == (high.month - 1) // 3:
            steps = steps[:2]
    return steps


def _written_dates(column: ColumnProfile) -> _Found:
    """Dates of another form than YYYY-MM-DD: a file holds every day of their decades, so that it names no record's."""
    known = column.values.known
    parts = [re.findall(r"[0-9]+", value) for value in known]
    triples = [tuple(map(int, part)) for part in parts if len(part) == 3]
    year_first = sum(triple[0] > 31 for triple in triples) > len(triples) / 2
    day_first = year_first or any(triple[0] > 12 for triple in triples)
    years = [triple[0] if year_first else triple[2] for triple in triples]
    shape = next((shape for shape, share in column.shapes.items() if share > 0.95), "")
    separator = next((sign for sign in "./-" if sign in shape), "")
    if shape.replace(separator or "-", "") != "99999999" or not years or max(years) - min(years) > _MOST_YEARS:
        reason = "dates are written in several ways, so signs are masked from the right; write them YYYY-MM-DD"
        return _Found("mask", {"mask": {"steps": 4}}, 5, reason, True)
    form = separator.join(("%Y", "%m", "%d") if year_first else ("%d", "%m", "%Y") if day_first else ("%m", "%d", "%Y"))
    paths = tuple(_days(min(years) // 10 * 10, max(years) // 10 * 10 + 9, form))
    reason = "dates are not written YYYY-MM-DD, so a file says the month, year and decade of every day of their decades"
    return _Found("groups", {}, 4, reason, not day_first, paths=paths, suppress_unknown=True)


_MOST_YEARS = 130


def _days(first: int, last: int, form: str) -> Iterator[LeafPath]:
    day, end = dt.date(first, 1, 1), dt.date(last, 12, 31)
    while day <= end:
        yield (day.strftime(form), f"{day:%Y-%m}", f"{day:%Y}", f"{day.year // 10 * 10}s")
        day += dt.timedelta(days=1)


# --------------------------------------------------------------------------------------------------- codes


def _is_postcode(column: ColumnProfile, concept: str) -> bool:
    wanted = concept in ("place", "region", "unknown") and column.kind == "text"
    return wanted and column.share("postcode") > 0.95 and column.distinct > 20


_MOST_MASKED = 3
"""Signs of a code that are masked one by one; after them it is suppressed."""


def _mask(column: ColumnProfile, reason: str, unsure: bool = False) -> _Found:
    longest = column.lengths[1] if column.lengths else 5
    steps = max(1, min(longest - 1, _MOST_MASKED))
    if column.kind == "number" and column.type != "string":
        reason += "; it is stored as a number, so that zeros at the front may be lost"
        unsure = unsure or (column.lengths is not None and column.lengths[0] != column.lengths[1])
    return _Found("mask", {"mask": {"steps": steps}}, steps + 1, reason, unsure)


_LISTS: tuple[tuple[str, str, Callable[[str], tuple[str, ...] | None]], ...] = (
    ("nace", "NACE codes by group, division and section", nace_path),
    ("icd10", "ICD-10 codes by category and chapter", icd10_path),
    ("atc", "ATC codes by the levels of their classification", atc_path),
)


def _codes(column: ColumnProfile, concept: str, values: Sequence[str] | None) -> _Found | None:
    """Codes whose prefixes group them."""
    if values is not None and column.kind == "text" and len(values) >= 5:
        for pattern, reason, path_of in _LISTS:
            if column.share(pattern) > 0.9:
                paths = [path_of(value) for value in values]
                if all(paths):
                    height = max(len(path) for path in paths if path)
                    return _Found("groups", {}, height, reason, paths=tuple(path for path in paths if path))
    signs = all(re.fullmatch(r"[A9.\-/ ]+\+?", shape) for shape in column.shapes) and bool(column.shapes)
    same = column.lengths is not None and column.lengths[0] == column.lengths[1] and 3 <= column.lengths[1] <= 8
    named = concept in ("occupation", "industry", "place", "region", "department")
    with_digits = any("9" in shape for shape in column.shapes)
    if signs and same and with_digits and column.distinct >= 15 and (column.kind == "text" or named):
        reason = "codes of one length: they are grouped by what they begin with"
        return _mask(column, reason, unsure=not named)
    return None


# ------------------------------------------------------------------------------------------------- numbers


def _numbers(column: ColumnProfile, concept: str) -> _Found:
    loose = column.type == "string"
    low, high = _ends(column)
    if concept == "age":
        rule: dict[str, Any] = {"widths": [5, 10, 30]}
        if high >= 90:
            rule["top"] = 90
        return _Found("intervals", {"intervals": rule}, 4, "ages in spans of years, from 90 on one", False)
    whole = not any("." in shape for shape in column.shapes)
    if whole and column.distinct <= 8 and high - low <= 16:
        return _Found("intervals", {"intervals": {"widths": [2, 4]}}, 3, "few whole numbers, in groups of neighbours")
    cuts = cuts_near(column.values.quantiles)
    if not cuts:
        return _Found("flat", {"flat": {}}, 1, "nearly all rows have one number", True)
    levels = [cuts]
    while len(levels[-1]) > 3:
        levels.append(levels[-1][1::2])
    reason = "numbers in intervals at round cuts near quantiles"
    return _Found("intervals", {"intervals": {"cuts": levels}}, len(levels) + 1, reason, suppress_unknown=loose)


def _ends(column: ColumnProfile) -> tuple[float, float]:
    try:
        if column.type == "string":  # least and greatest are texts there
            return column.values.quantiles[0], column.values.quantiles[-1]
        return float(column.values.least or 0), float(column.values.greatest or 0)
    except (ValueError, IndexError):
        return 0.0, 0.0


def cuts_near(quantiles: Sequence[float]) -> list[int | float]:
    """Return round cuts near the quantiles of a column, ascending.

    Parameters
    ----------
    quantiles : sequence of float
        At :data:`privrisk_spark.results.profile.QUANTILES`; the first and the last are no cuts.
    """
    if len(quantiles) < 3:
        return []
    q = np.array(quantiles, dtype=np.float64)
    if not np.isfinite(q).all() or q[0] == q[-1]:
        return []
    middle = q[1:-1]
    # Within a third of the way to the neighbours, so that cuts stay apart.
    cuts = round_cuts(middle - (middle - q[:-2]) / 3, middle + (q[2:] - middle) / 3)
    inside = cuts[(cuts > q[0]) & (cuts <= q[-1])]
    return [int(cut) if float(cut).is_integer() else float(cut) for cut in inside.tolist()]
