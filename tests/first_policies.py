"""Profiles of small tables without Spark, as :mod:`privrisk_spark.pipelines.first_policy` makes them with it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from privrisk_spark.planning.first_policy.columns import column_profile, key_candidates, naming_columns
from privrisk_spark.planning.first_policy.roles import (
    guess_roles,
    may_name_individuals,
    person_candidates,
    released_as_they_are,
)
from privrisk_spark.results.profile import QUANTILES, Persons, TableProfile

_NUMBER = re.compile(r"\s*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,3})?\s*")


def profiled(frame: pd.DataFrame) -> tuple[TableProfile, dict[str, list[str | None]]]:
    """Profile a table of texts, whole numbers and doubles; return the texts of its rows, too."""
    sample = {name: [None if pd.isna(value) else _text(value) for value in frame[name]] for name in frame}
    columns = []
    for name, texts in sample.items():
        filled = [text for text in texts if text is not None and text.strip()]
        numbers = [float(text) for text in filled if _NUMBER.fullmatch(text)]
        is_number = pd.api.types.is_numeric_dtype(frame[name])
        counts: dict[str, int] = {}
        for text in filled:
            counts[text] = counts.get(text, 0) + 1
        figures: dict[str, Any] = {
            "missing": sum(text is None for text in texts),
            "blank": sum(text is not None and not text.strip() for text in texts),
            "distinct": len(counts),
            "shortest": min(map(len, filled), default=None),
            "longest": max(map(len, filled), default=None),
            "length": sum(map(len, filled)) / len(filled) if filled else None,
            "least": _text(min(numbers)) if is_number and numbers else min(filled, default=None),
            "greatest": _text(max(numbers)) if is_number and numbers else max(filled, default=None),
            "numbers": len(numbers),
            "leadingzeros": sum(re.match(r"\s*0[0-9]", text) is not None for text in filled),
            "quantiles": np.quantile(numbers, QUANTILES, method="lower").tolist() if numbers else [],
        }
        kind = ("bigint" if pd.api.types.is_integer_dtype(frame[name]) else "double") if is_number else "string"
        columns.append(column_profile(name, kind, len(frame), figures, texts, counts if len(counts) <= 5_000 else None))
    found = TableProfile(len(frame), len(frame), tuple(columns), ())
    keys = [name for name in key_candidates(found.columns) if found[name].distinct == len(frame)]
    found = replace(found, keys=tuple(name for name in frame if name in keys))
    guesses = guess_roles(found)
    known = [one.column for one in guesses if one.role == "quasi-identifier"]
    naming = naming_columns(may_name_individuals(guesses), known, released_as_they_are(guesses), sample)
    found = replace(found, naming=naming)
    persons = [
        Persons(
            name, found[name].distinct, int(frame[name].value_counts().max()), found[name].there / found[name].distinct
        )
        for name in person_candidates(guess_roles(found), found)
    ]
    return replace(found, persons=tuple(persons)), sample


def _text(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return repr(float(value))
    return str(value)
