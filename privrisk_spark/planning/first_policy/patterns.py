"""What values look like: shapes, and patterns of things that name a person or stand in a list of codes.

The library python-stdnum verifies the check digits of a number, so that a match is hardly chance: IBAN (ISO 13616, and
its form by country), payment cards (Luhn), the Dutch BSN, the Spanish DNI and NIE, the French NIR, the Brazilian CPF.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Sequence
from importlib import import_module

IDENTIFYING = {
    "email": "e-mail addresses", "iban": "IBANs with right check digits",
    "card": "card numbers with a right check digit",
    "ip": "IP addresses", "url": "URLs", "mac": "MAC addresses", "uuid": "UUIDs", "phone": "telephone numbers",
    "ssn": "US social security numbers", "nino": "UK national insurance numbers", "dni": "Spanish DNI or NIE",
    "nir": "French NIR", "bsn": "Dutch BSN", "codice_fiscale": "Italian codici fiscali", "cpf": "Brazilian CPF",
}  # fmt: skip
"""Patterns of what names a person or a device, in words: the identifiers of HIPAA Safe Harbor that have a form."""

CODED = {
    "iso_date": "dates YYYY-MM-DD", "iso_time": "dates with a time of day", "written_date": "dates of another form",
    "year": "years", "postcode": "postcodes", "icd10": "ICD-10 codes", "nace": "NACE codes", "atc": "ATC codes",
    "words": "texts of several words",
}  # fmt: skip
"""Patterns of what has parts that say less, in words."""

_FORMS: dict[str, str] = {
    "email": r"[^@\s;,<>]+@[^@\s;,<>]+\.[A-Za-z]{2,}",
    "url": r"(?:https?://|ftp://|www\.)\S+",
    "mac": r"[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}",
    "uuid": r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}",
    # A decimal number, such as a latitude, is none.
    "phone": r"(?!(?:0|[1-9][0-9]*)\.[0-9]+\Z)"
    r"(?:(?:\+|00)[0-9][0-9 ()/.-]{6,18}[0-9]|\(?0?[0-9]{2,4}\)?[ /.-][0-9][0-9 /.-]{4,12}[0-9])",
    "ssn": r"(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}",
    "nino": r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]",
    "codice_fiscale": r"[A-Z]{6}[0-9]{2}[A-EHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z]",
    "iso_date": r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])",
    "iso_time": r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])[T ][0-9]{2}:[0-9]{2}.*",
    "written_date": r"[0-9]{1,2}([./-])[0-9]{1,2}\1(?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}[./](?:[0-9]{1,2})[./][0-9]{1,2}",
    "year": r"(?:19|20)[0-9]{2}",
    "postcode": r"(?:[A-Z]{1,2}-)?[0-9]{4,5}|[0-9]{4} ?[A-Z]{2}|[A-Z]{1,2}[0-9][0-9A-Z]? ?[0-9][A-Z]{2}|"
    r"[A-Z][0-9][A-Z] ?[0-9][A-Z][0-9]|[0-9]{2}-[0-9]{3}|[0-9]{4}-[0-9]{3}|[0-9]{5}-[0-9]{3,4}|[0-9]{3} [0-9]{2}",
    "icd10": r"[A-TV-Z][0-9][0-9A-B](?:\.?[0-9A-Z]{1,4})?[*+!]?",
    "nace": r"(?:[A-U]\.?)?[0-9]{2}\.[0-9]{1,2}|[A-U][0-9]{2}",
    "atc": r"[A-DGHJL-NPRSV][0-9]{2}[A-Z]{2}[0-9]{2}",
    "words": r"\S+(?:\s+\S+){3,}",
}  # fmt: skip
_COMPILED = {name: re.compile(form) for name, form in _FORMS.items()}


def patterns_of(values: Sequence[str]) -> dict[str, float]:
    """Return the share of values that have each pattern, most frequent first.

    Parameters
    ----------
    values : sequence of str
        Without blanks at the ends; a value that occurs twice counts twice.
    """
    if not values:
        return {}
    counts = dict.fromkeys((*IDENTIFYING, *CODED), 0)
    for value, times in Counter(values).items():
        for name in counts:
            counts[name] += times * matches(name, value)
    found = sorted((-count / len(values), name) for name, count in counts.items() if count)
    return {name: -share for share, name in found}


def matches(pattern: str, value: str) -> bool:
    """Whether a value has a pattern, check digits included.

    Parameters
    ----------
    pattern : str
        Of :data:`IDENTIFYING` or :data:`CODED`.
    """
    if pattern in _NUMBERS:
        return _has_check_digits(pattern, value)
    return _is_ip(value) if pattern == "ip" else _COMPILED[pattern].fullmatch(value) is not None


def shape_of(value: str) -> str:
    """Return a value with digits as 9, capitals as A, other letters as a, and longer runs of one class with a plus.

    ``DE-53113`` is ``AA-99999``, ``Anna Maria`` is ``Aa+ Aa+``; signs that are no letters stay, but for those that are
    no ASCII, which are ``?``.
    """
    classes = "".join(_class_of(letter) for letter in value[:_LONGEST_SHAPE])
    return re.sub(r"(a)\1{2,}|([A9])\2{11,}", lambda run: (run[1] or run[2]) + "+", classes)


_LONGEST_SHAPE = 48


def _class_of(letter: str) -> str:
    if letter.isdigit():
        return "9"
    if letter.isalpha():
        return "A" if letter.isupper() else "a"
    if letter.isspace():
        return " "
    return letter if letter.isascii() else "?"


def _is_ip(value: str) -> bool:
    if value.count(".") != 3 and ":" not in value:
        return False
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


_NUMBERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "iban": (" ", r"[A-Z]{2}[0-9]{2}[0-9A-Z]{11,30}", ("iban",)),
    "card": (" -", r"[3-6][0-9]{12,18}", ("luhn",)),
    "dni": ("-", r"[0-9XYZ][0-9]{7}[A-Z]", ("es.dni", "es.nie")),
    "nir": (" ", r"[1278][0-9]{2}(?:0[1-9]|1[0-2]|[2-9][0-9])(?:[0-9]{2}|2[AB])[0-9]{8}", ("fr.nir",)),
    "bsn": (".", r"[0-9]{9}", ("nl.bsn",)),
    # Eleven equal digits have right check digits, and are no CPF.
    "cpf": ("", r"(?!([0-9])(?:[.-]?\1){10})[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2}", ("br.cpf",)),
}
"""Of numbers with check digits: separators, form without them, and the modules of python-stdnum that may accept it."""


def _has_check_digits(pattern: str, value: str) -> bool:
    separators, form, modules = _NUMBERS[pattern]
    text = value.translate(dict.fromkeys(map(ord, separators))).upper()
    if not re.fullmatch(form, text):
        return False
    return any(import_module(f"stdnum.{module}").is_valid(text) for module in modules)
