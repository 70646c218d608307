"""From what Spark counted of a column, and a sample of it, to its profile."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.numeric.combinations import combinations_of
from privrisk_spark.kernels.numeric.information import entropy_bits
from privrisk_spark.kernels.numeric.naming import determined_columns, find_naming_columns
from privrisk_spark.planning.first_policy.patterns import patterns_of, shape_of
from privrisk_spark.policy.values import BLANKS
from privrisk_spark.results.profile import ColumnProfile, ColumnSet, ColumnValues, Kind, Naming

SAMPLED_ROWS = 50_000
"""Rows of the sample; a smaller table is its own sample."""

FEW_VALUES = 5_000
"""Different values of a column that are all counted."""

_LOOKED_AT = 10_000
"""Values of the sample whose shapes and patterns are found."""

_KEY = 0.8
"""Approximate share of different values from which on a column is counted exactly."""

_SET_COLUMNS = 10
"""Columns whose pairs and triples are counted."""

_SHOWN_SHAPES = 6
_SHARE_OF_SHAPE = 0.005
"""A shape that fewer values have is left out, as it would tell of single records."""


def has_few(figures: Mapping[str, Any]) -> bool:
    """Whether all values of a column are worth counting, by what the first pass found of it.

    Parameters
    ----------
    figures : mapping
        As :func:`privrisk_spark.stages.profiling.columns.collect_columns` has them.
    """
    few: bool = figures.get("distinct", FEW_VALUES + 1) <= FEW_VALUES * 0.8
    return few


def column_profile(
    name: str,
    kind: str,
    rows: int,
    figures: Mapping[str, Any],
    sampled: Sequence[str | None],
    counts: Mapping[str, int] | None,
) -> ColumnProfile:
    """Return the profile of a column.

    Parameters
    ----------
    name, kind : str
        Of the column; its type as Spark writes it.
    rows : int
        Of the table.
    figures : mapping
        What the first pass found.
    sampled : sequence of (str or None)
        Texts of the sampled rows.
    counts : mapping of str to int, optional
        Rows of every value, if it has few.
    """
    missing, blank = figures["missing"], figures.get("blank") or 0
    filled = [value for value in sampled if value is not None and value.strip(BLANKS)]
    looked_at = [value.strip(BLANKS) for value in filled[:_LOOKED_AT]]
    patterns = patterns_of(looked_at)
    there = rows - missing - blank
    held = _held(kind, figures, there, patterns)
    known = None
    if counts is not None:
        filled_counts = ((value, n) for value, n in counts.items() if value.strip(BLANKS))
        known = tuple(sorted(filled_counts, key=lambda pair: (-pair[1], pair[0])))
    of_values = Counter(filled) if known is None else Counter(dict(known))
    absent = len(sampled) - len(filled) if known is None else missing + blank
    shapes: Counter[str] = Counter()
    for value, times in Counter(looked_at).items() if held != "other" else ():
        shapes[shape_of(value)] += times
    least = _SHARE_OF_SHAPE * len(looked_at)
    return ColumnProfile(
        name=name,
        type=kind,
        kind=held,
        rows=rows,
        missing=missing,
        blank=blank,
        distinct=min(there, figures.get("distinct") or 0) if known is None else len(known),
        exact=known is not None,
        unique=None if known is None else sum(n == 1 for _, n in known),
        lengths=None
        if figures.get("shortest") is None
        else (figures["shortest"], figures["longest"], round(figures["length"], 2)),
        shapes={shape: n / len(looked_at) for shape, n in _ordered(shapes)[:_SHOWN_SHAPES] if n >= max(least, 5)},
        patterns=patterns,
        information=entropy_bits(np.array([*of_values.values(), absent], dtype=np.int64)),
        variants=len(of_values) - len({tidied(value) for value in of_values}),
        values=ColumnValues(
            least=figures.get("least"),
            greatest=figures.get("greatest"),
            quantiles=tuple(figures.get("quantiles") or ()),
            counts=known,
            sampled=() if known is not None else tuple(sorted(of_values)),
        ),
    )


def _ordered(shapes: Counter[str]) -> list[tuple[str, int]]:
    return sorted(shapes.items(), key=lambda pair: (-pair[1], pair[0]))


def tidied(value: str) -> str:
    """Return a value without blanks at its ends, each run inside one blank, in capitals."""
    return " ".join(value.strip(BLANKS).upper().split())


def _held(kind: str, figures: Mapping[str, Any], there: int, share: Mapping[str, float]) -> Kind:
    """What a column holds: texts that are all numbers are numbers, unless zeros stand before them, as in codes."""
    if kind in ("tinyint", "smallint", "int", "bigint", "float", "double") or kind.startswith("decimal"):
        return "number"
    by_type: dict[str, Kind] = {"date": "date", "timestamp": "time", "timestamp_ntz": "time", "boolean": "boolean"}
    if kind in by_type:
        return by_type[kind]
    if "distinct" not in figures:
        return "other"
    if share.get("iso_date", 0) > 0.98:
        return "date"
    if share.get("iso_time", 0) + share.get("iso_date", 0) > 0.98:
        return "time"
    if there and figures["numbers"] >= there * 0.999 and not figures["leadingzeros"]:
        return "number"
    return "text"


def key_candidates(columns: Sequence[ColumnProfile]) -> list[str]:
    """Names of columns that may hold a different value in every row: few, for each is counted exactly."""
    able = [one for one in columns if one.rows and one.there == one.rows and one.distinction > _KEY]
    able = [one for one in able if one.kind in ("text", "number")]
    return [one.name for one in sorted(able, key=lambda one: (-one.distinction, one.lengths or (0, 0, 0)))[:5]]


def most_telling(
    columns: Sequence[ColumnProfile], sample: Mapping[str, Sequence[str | None]], *, most: int = 12
) -> tuple[ColumnSet, ...]:
    """Return the pairs and triples of columns that tell most rows of a sample apart; of equal ones, the smaller.

    Keys and texts of several words are left out: they tell all rows apart alone.

    Parameters
    ----------
    sample : mapping of column to texts
        Of equally many rows; a missing value is a value.
    most : int
        Sets that are returned.
    """
    able = [
        one
        for one in columns
        if one.kind != "other" and not one.constant and one.distinction < 0.5 and one.share("words") < 0.5
    ]
    told = sorted(able, key=lambda one: (-one.information, one.name))[:_SET_COLUMNS]
    names = [one.name for one in columns if one in told]
    if len(names) < 2:
        return ()
    codes = np.column_stack([_codes(sample[name]) for name in names])
    sets = [*combinations(range(len(names)), 2), *combinations(range(len(names)), 3)]
    counted = zip(sets, combinations_of(codes, sets).tolist(), strict=True)
    found = [ColumnSet(tuple(names[place] for place in one), n, len(codes)) for one, n in counted]
    return tuple(sorted(found, key=lambda one: (-one.distinct, len(one.columns), one.columns))[:most])


def naming_columns(
    asked: Sequence[str], others: Sequence[str], alone: Sequence[str], sample: Mapping[str, Sequence[str | None]]
) -> dict[str, Naming]:
    """Return the columns that seem to name individuals, alone or in pairs.

    Parameters
    ----------
    asked : sequence of str
        Columns that may name individuals.
    others : sequence of str
        Further columns that they may determine.
    alone : sequence of str
        Columns that may name individuals by themselves only. They are not asked what determines them: a diagnosis
        determines its treatment and its costs.
    sample : mapping of column to texts
        Of equally many rows.
    """
    codes = {name: _tidied_codes(sample[name]) for name in dict.fromkeys([*others, *asked]) if name in sample}
    names, asked = list(codes), [name for name in asked if name in codes]
    codes |= {name: _tidied_codes(sample[name]) for name in alone if name in sample and name not in codes}
    if len(codes) < 3:
        return {}
    places = {name: place for place, name in enumerate(codes)}
    table = np.stack(list(codes.values())).T  # each column in one piece
    wanted = [places[name] for name in dict.fromkeys([*asked, *alone]) if name in places]
    single = find_naming_columns(table, wanted, range(len(names)))
    every = list(codes)
    found = {every[column]: Naming((every[one], every[other])) for column, (one, other) in single.items()}
    table = table[:, : len(names)]
    able = (name for name in asked if name not in found and _may_be_part(codes[name], sample[name]))
    parts = list(islice(able, _PAIRED))
    own = {part: {names[other] for other in determined_columns(table, names.index(part))} | {part} for part in parts}
    for one, other in combinations(parts, 2):
        # What a part determines by itself is no evidence that both together name individuals.
        rest = [name for name in others if name in codes and name not in own[one] | own[other]]
        both = np.where((codes[one] < 0) | (codes[other] < 0), -1, codes[one] * len(codes[one]) + codes[other])
        pair = find_naming_columns(np.stack([both, *[codes[name] for name in rest]]).T, [0])
        if pair:
            determined = (rest[pair[0][0] - 1], rest[pair[0][1] - 1])
            found.setdefault(one, Naming(determined, other))
            found.setdefault(other, Naming(determined, one))
    return found


def _may_be_part(codes: npt.NDArray[np.int64], values: Sequence[str | None]) -> bool:
    """Whether a column may be a part of an id: its values repeat, and are not measured."""
    return 1 < codes.max() + 1 < len(codes) / 2 and not any(
        _DECIMALS.fullmatch(value) for value in set(values) if value
    )


_DECIMALS = re.compile(r"\s*[+-]?[0-9]*\.(?!0\s*$)[0-9]+([eE][+-]?[0-9]+)?\s*")


_PAIRED = 6
"""Columns whose pairs are compared, at most."""


def _tidied_codes(values: Sequence[str | None]) -> npt.NDArray[np.int64]:
    """Codes of values without case and surplus blanks; -1 for a value that is missing or blank."""
    tidy = {value: "" if value is None else tidied(value) for value in set(values)}
    texts = [tidy[value] for value in values]
    return np.where([text == "" for text in texts], -1, _codes(texts))


def _codes(values: Sequence[str | None]) -> npt.NDArray[np.int64]:
    place = {value: number for number, value in enumerate(dict.fromkeys(values))}
    return np.array([place[value] for value in values], dtype=np.int64)
