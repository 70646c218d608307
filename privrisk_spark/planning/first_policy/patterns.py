"""What values look like: shapes, and patterns of things that name a person or stand in a list of codes.

Where a number has check digits they are computed, so that a pattern that holds is hardly chance: IBAN (ISO 13616,
modulo 97), payment cards (Luhn), the Dutch BSN (modulo 11), the Spanish DNI and NIE (modulo 23), the French NIR (modulo
97), the Brazilian CPF (modulo 11).
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Sequence

from privrisk_spark.results.profile import ShareOf

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


def patterns_of(values: Sequence[str]) -> tuple[ShareOf, ...]:
    """Return the patterns that some values have, most frequent first.

    Parameters
    ----------
    values : sequence of str
        Without blanks at the ends; a value that occurs twice counts twice.
    """
    if not values:
        return ()
    counts = dict.fromkeys((*IDENTIFYING, *CODED), 0)
    for value, times in Counter(values).items():
        for name in counts:
            counts[name] += times * matches(name, value)
    there = [ShareOf(name, count / len(values)) for name, count in counts.items() if count]
    return tuple(sorted(there, key=lambda found: (-found.share, found.name)))


def matches(pattern: str, value: str) -> bool:
    """Whether a value has a pattern, check digits included.

    Parameters
    ----------
    pattern : str
        Of :data:`IDENTIFYING` or :data:`CODED`.
    value : str
    """
    form = _COMPILED.get(pattern)
    return form.fullmatch(value) is not None if form is not None else _CHECKED[pattern](value)


def shape_of(value: str) -> str:
    """Return a value with digits as 9, capitals as A, other letters as a, and longer runs of one class with a plus.

    ``DE-53113`` is ``AA-99999``, ``Anna Maria`` is ``Aa+ Aa+``; signs that are no letters stay, but for those that are
    no ASCII, which are ``?``.

    Parameters
    ----------
    value : str
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


# -------------------------------------------------------------------------------------------- check digits


def is_iban(value: str) -> bool:
    """Whether a text is an IBAN: its remainder modulo 97 is 1 (ISO 13616), letters counting from A = 10.

    Parameters
    ----------
    value : str
        With or without blanks.
    """
    text = value.replace(" ", "").upper()
    if not re.fullmatch(r"[A-Z]{2}[0-9]{2}[0-9A-Z]{11,30}", text):
        return False
    return int("".join(str(int(sign, 36)) for sign in text[4:] + text[:4])) % 97 == 1


def is_card(value: str) -> bool:
    """Whether a text is a payment card's number: 13 to 19 digits that Luhn's sum divides by 10 (ISO/IEC 7812).

    Parameters
    ----------
    value : str
        With or without blanks and hyphens.
    """
    text = re.sub(r"[ -]", "", value)
    if not re.fullmatch(r"[3-6][0-9]{12,18}", text):
        return False
    doubled = [int(sign) * (1 + place % 2) for place, sign in enumerate(reversed(text))]
    return sum(digit - 9 * (digit > 9) for digit in doubled) % 10 == 0


def _is_ip(value: str) -> bool:
    if value.count(".") != 3 and ":" not in value:
        return False
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _is_dni(value: str) -> bool:
    text = value.replace("-", "").upper()
    if not re.fullmatch(r"[0-9XYZ][0-9]{7}[A-Z]", text):
        return False
    number = int(text[0].translate(str.maketrans("XYZ", "012")) + text[1:8])
    return "TRWAGMYFPDXBNJZSQVHLCKE"[number % 23] == text[8]


def _is_nir(value: str) -> bool:
    text = value.replace(" ", "").upper()
    if not re.fullmatch(r"[1278][0-9]{2}(?:0[1-9]|1[0-2]|[2-9][0-9])(?:[0-9]{2}|2[AB])[0-9]{8}", text):
        return False
    number = int(text[:13].replace("2A", "19").replace("2B", "18"))
    return 97 - number % 97 == int(text[13:])


def _is_bsn(value: str) -> bool:
    text = value.replace(".", "")
    if not re.fullmatch(r"[0-9]{9}", text) or int(text) == 0:
        return False
    weights = (9, 8, 7, 6, 5, 4, 3, 2, -1)
    return sum(weight * int(digit) for weight, digit in zip(weights, text, strict=True)) % 11 == 0


def _is_cpf(value: str) -> bool:
    if not re.fullmatch(r"[0-9]{3}\.?[0-9]{3}\.?[0-9]{3}-?[0-9]{2}", value):
        return False
    digits = [int(sign) for sign in value if sign.isdigit()]
    if len(set(digits)) == 1:
        return False
    for size in (9, 10):
        rest = sum((size + 1 - place) * digit for place, digit in enumerate(digits[:size])) * 10 % 11 % 10
        if rest != digits[size]:
            return False
    return True


_CHECKED: dict[str, Callable[[str], bool]] = {
    "iban": is_iban, "card": is_card, "ip": _is_ip, "dni": _is_dni, "nir": _is_nir, "bsn": _is_bsn, "cpf": _is_cpf,
}  # fmt: skip
