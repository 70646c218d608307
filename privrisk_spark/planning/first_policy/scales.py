"""Ordered words and coded lists that need no person to group them: ordinals, industries, diseases, drugs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from privrisk_spark.planning.first_policy.vocabulary import normalized, read_vocabulary

_RANGE = re.compile(
    r"(?:[<>]=?|≥|≤|under|over|unter|ueber|über)?\s*([0-9]+)(?:\s*(?:-|–|to|bis|a)\s*[0-9]+|\s*\+)?\s*[a-z]*", re.I
)


def ordered(values: Sequence[str]) -> list[str] | None:
    """Return values in the order of a scale, or of the ranges of numbers they name; None if there is no such scale.

    Parameters
    ----------
    values : sequence of str
        All of a column, each once.
    """
    if not 3 <= len(values) <= 40:
        return None
    words = {value: normalized(value) for value in values}
    if len(set(words.values())) == len(values):
        for scale in read_vocabulary().scales:
            if set(words.values()) <= set(scale):
                return sorted(values, key=lambda value: scale.index(words[value]))
    if any(sign in value for value in values for sign in "-–+<>") and not any(v.startswith("-") for v in values):
        ranges = {value: _RANGE.fullmatch(value.strip()) for value in values}
        if all(ranges.values()):
            place = {value: (int(found[1]), value[0] not in "<≤") for value, found in ranges.items() if found}
            if len(set(place.values())) == len(values):
                return sorted(values, key=lambda value: place[value])
    return None


_SECTIONS = {
    "A": (1, 3), "B": (5, 9), "C": (10, 33), "D": (35, 35), "E": (36, 39), "F": (41, 43), "G": (45, 47), "H": (49, 53),
    "I": (55, 56), "J": (58, 63), "K": (64, 66), "L": (68, 68), "M": (69, 75), "N": (77, 82), "O": (84, 84),
    "P": (85, 85), "Q": (86, 88), "R": (90, 93), "S": (94, 96), "T": (97, 98), "U": (99, 99),
}  # fmt: skip
"""Divisions of each section of NACE Rev. 2 (Regulation (EC) No 1893/2006)."""


def nace_path(value: str) -> tuple[str, ...] | None:
    """Return class, group, division and section of a NACE code, such as ``62.01, 62.0, 62, J``; None if it is none.

    Parameters
    ----------
    value : str
        Such as ``62.01``, ``J62.01`` or ``62``.
    """
    found = re.fullmatch(r"([A-U]\.?)?([0-9]{2})(?:\.([0-9])([0-9])?)?", value)
    if found is None:
        return None
    division = int(found[2])
    section = next((letter for letter, (low, high) in _SECTIONS.items() if low <= division <= high), None)
    if section is None:
        return None
    above = [f"{found[2]}.{found[3]}" if found[3] else f"{found[2]}.", f"division {found[2]}", f"section {section}"]
    above[0] = f"group {above[0]}"
    return (value, *above)


_CHAPTERS = (
    ("A00", "B99"), ("C00", "D48"), ("D50", "D89"), ("E00", "E90"), ("F00", "F99"), ("G00", "G99"), ("H00", "H59"),
    ("H60", "H95"), ("I00", "I99"), ("J00", "J99"), ("K00", "K93"), ("L00", "L99"), ("M00", "M99"), ("N00", "N99"),
    ("O00", "O99"), ("P00", "P96"), ("Q00", "Q99"), ("R00", "R99"), ("S00", "T98"), ("U00", "U99"), ("V01", "Y98"),
    ("Z00", "Z99"),
)  # fmt: skip
"""First and last category of each chapter of ICD-10 (WHO)."""


def icd10_path(value: str) -> tuple[str, ...] | None:
    """Return category and chapter of an ICD-10 code, such as ``I21.4, category I21, I00-I99``; None if it is none."""
    category = value.upper()[:3]
    if not re.fullmatch(r"[A-Z][0-9][0-9A-B]", category):
        return None
    chapter = next((f"{low}-{high}" for low, high in _CHAPTERS if low <= category <= high), None)
    return None if chapter is None else (value, f"category {category}", chapter)


def atc_path(value: str) -> tuple[str, ...] | None:
    """Return the levels of an ATC code (WHO): substance, subgroups, main group; None if it is none."""
    if not re.fullmatch(r"[A-Z][0-9]{2}[A-Z]{2}[0-9]{2}", value):
        return None
    return (value, *(f"{value[:size]}{'*' * (7 - size)}" for size in (5, 4, 3, 1)))
