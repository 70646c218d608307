"""How dirty values of a column can be tidied by a policy's ``read``: blanks, case, words for a missing value."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from privrisk_spark.planning.first_policy.columns import tidied
from privrisk_spark.policy.values import BLANKS, NumberMarks
from privrisk_spark.results.profile import ColumnProfile

_MISSING = """? ?? - -- . NA N/A #N/A NAN NULL NONE NIL UNKNOWN UNK MISSING UNBEKANNT K.A. INCONNU DESCONOCIDO
    SCONOSCIUTO ONBEKEND DESCONHECIDO (NULL) <NA>"""
MISSING_WORDS = frozenset(_MISSING.split())
"""Texts that mean a missing value, in capitals."""

SEXES = {
    "F": "F FEMALE WOMAN W WEIBLICH FRAU FEMME FEMENINO MUJER FEMMINA DONNA VROUW FEMININO FEMININ",
    "M": "M MALE MAN MAENNLICH MÄNNLICH MANN HERR HOMME H MASCULIN MASCULINO HOMBRE VARON UOMO MASCHIO",
    "X": "X D DIVERS DIVERSE OTHER NONBINARY NON-BINARY",
}
"""Words for a sex, in capitals."""

_MOST_MAPPED = 50
"""Values that are mapped one by one; where there are more, all letters are written alike."""


def find_cleaning(column: ColumnProfile) -> tuple[dict[str, Any], str]:
    """Return how texts must be cleaned so that all are numbers or dates, and why their numbers may be others.

    Parameters
    ----------
    column : ColumnProfile
        Of the texts as they are.

    Returns
    -------
    read : dict
        As the policy's ``read`` takes it; empty if the texts are numbers or dates already, or are neither.
    doubt : str
        Without its full stop; empty if there is none.
    """
    if column.type != "string" or not column.values.known:
        return {}, ""
    values = {value: value.strip(BLANKS) for value in column.values.known}
    words = sorted({text for text in values.values() if text.upper() in MISSING_WORDS})
    rest = sorted(set(values.values()) - {*words, ""})
    read: dict[str, Any] = {"trim": True} if any(value != text for value, text in values.items()) else {}
    if words:
        read["null_if"] = words
    if rest and all(_DATE.fullmatch(text) for text in rest):
        return (read, "") if words else ({}, "")
    if not rest or any(re.fullmatch("0[0-9]+", text) for text in rest):  # a code
        return {}, ""
    if all(_PLAIN.fullmatch(text) for text in rest):
        return (read if words else {}), _doubt(rest, ".")
    marks = next((one for one in _MARKS if all(re.fullmatch(one.pattern, text) for text in rest)), None)
    if marks is None:
        return {}, ""
    said = {"decimal": marks.decimal} | ({} if marks.thousands is None else {"thousands": marks.thousands})
    return read | {"number": said}, _doubt(rest, ",") if marks.thousands is None else ""


_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MARKS = tuple(
    NumberMarks(decimal=decimal, thousands=thousands)
    for decimal, thousands in (
        (",", None), (",", "."), (",", " "), (",", "\u00a0"), (",", "\u202f"), (",", "'"), (",", "’"), (".", ","),
        (".", "'"), (".", "’"), (".", " "), (".", "\u00a0"), (".", "\u202f"),
    )
)  # fmt: skip
"""Marks of numbers in the order in which they are tried."""


def _doubt(values: Sequence[str], mark: str) -> str:
    """Return the doubt whether a mark is that of decimals: three digits follow it wherever it occurs."""
    marked = [value for value in values if mark in value]
    grouped = [re.fullmatch(rf"[+-]?[1-9][0-9]{{0,2}}[{mark}][0-9]{{3}}", value) for value in marked]
    if len(marked) < 2 or not all(grouped):
        return ""
    name, other = ("point", ",") if mark == "." else ("comma", ".")
    return (
        f"three digits follow each {name}, which is read as the mark of decimals; if it separates thousands, set "
        f"read: {{number: {{decimal: '{other}', thousands: '{mark}'}}}}"
    )


def reading(column: ColumnProfile, concept: str) -> tuple[dict[str, Any], str]:
    """Return how the values of a column are to be tidied, and why.

    Parameters
    ----------
    concept : str
        What the column is about.

    Returns
    -------
    read : dict
        As the policy's ``read`` takes it; empty if there is nothing to tidy.
    reason : str
        Without its full stop; it holds no value of a record. Empty if there is nothing to tidy.
    """
    read: dict[str, Any] = dict(column.read)
    said = [_explain(read, column.doubt)] if read or column.doubt else []
    if column.type != "string":
        if column.kind == "time":
            read["cast"] = "date"
            said.append("of a time its day is taken")
        return read, "; ".join(said)
    values = column.values.known
    if column.blank or any(value != value.strip(BLANKS) for value in values):
        read["trim"] = True
        said.append("blanks at the ends are taken away")
    inside = Counter[str]()
    for value, rows in _counted(column):
        inside[value.strip(BLANKS) if "trim" in read else value] += rows
    missing = sorted({value for value in inside if value.upper() in MISSING_WORDS} - {""})
    case, mapped = _alike({v: n for v, n in inside.items() if v not in missing}, column, concept)
    if case is not None:
        read["case"] = case
        missing = sorted({value.upper() if case == "upper" else value.lower() for value in missing})
    missing = ([""] if column.blank else []) + missing
    if concept == "sex":  # X may be a sex, and - is none
        missing = [value for value in missing if value.upper() != "X"]
    if missing:
        read["null_if"] = sorted({*read.get("null_if", ()), *missing})
        said.append("words and blanks that stand for a missing value are read as one")
    if mapped:
        read["map"] = mapped
    if mapped or case is not None:
        said.append(
            f"{column.variants} values differ from another by case or blanks alone"
            if column.variants
            else "several words stand for one value"
        )
    if column.kind == "time":
        read["cast"] = "date"
        said.append("of a time its day is taken")
    return read, "; ".join(said)


def _explain(read: Mapping[str, Any], doubt: str) -> str:
    """Return why texts were cleaned before they were counted."""
    said = []
    if "null_if" in read:
        said.append("words that stand for a missing value are read as one")
    if "number" in read:
        said.append("its numbers are written with other marks than a point before the decimals")
    return "; ".join([*said, *([doubt] if doubt else [])])


def _counted(column: ColumnProfile) -> Sequence[tuple[str, int]]:
    return column.values.counts if column.values.counts is not None else [(v, 1) for v in column.values.sampled]


def _alike(counts: dict[str, int], column: ColumnProfile, concept: str) -> tuple[str | None, dict[str, str]]:
    """Case in which all are written, and which texts stand for others."""
    if concept == "sex":
        return _sexes(counts)
    if not column.variants or column.kind not in ("text", "boolean"):
        return None, {}
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for value in counts:
        groups[tidied(value)].append(value)
    several = [sorted(group, key=lambda value: (-counts[value], value)) for group in groups.values() if len(group) > 1]
    if not several:
        return None, {}
    most = [group[0] for group in several]
    if column.values.counts is not None and sum(len(group) - 1 for group in several) <= _MOST_MAPPED:
        upper = all(value == value.upper() for value in counts if value in most) and _inner_blanks_agree(several)
        if upper and all(value == value.upper() for value in most):
            return "upper", {}
        return None, {value: group[0] for group in several for value in group[1:]}
    return ("lower" if all(value == value.lower() for value in most) else "upper"), {}


def _inner_blanks_agree(groups: Sequence[Sequence[str]]) -> bool:
    return all(len({value.upper() for value in group}) == 1 for group in groups)


def _sexes(counts: dict[str, int]) -> tuple[str | None, dict[str, str]]:
    sex_of = {word: sex for sex, words in SEXES.items() for word in words.split()}
    found = {value.upper() for value in counts}
    of_sex: defaultdict[str, set[str]] = defaultdict(set)
    for word in found:
        of_sex[sex_of.get(word, word)].add(word)
    several = {sex: words for sex, words in of_sex.items() if len(words) > 1}
    cased = len(found) < len(counts)
    if not several and not cased:
        return None, {}
    # One word of each stays: the letter where it occurs, else the most frequent.
    mapped: dict[str, str] = {}
    for sex, words in several.items():
        kept = sex if sex in words else max(sorted(words), key=lambda word: _rows(counts, word))
        mapped |= {word: kept for word in sorted(words) if word != kept}
    return "upper", mapped


def _rows(counts: dict[str, int], word: str) -> int:
    return sum(rows for value, rows in counts.items() if value.upper() == word)
