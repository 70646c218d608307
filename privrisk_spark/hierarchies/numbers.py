"""Numbers as texts: the one definition of which texts are the same number, and of those of true and false."""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact, InvalidOperation

# Numbers of the policy and of records are bounded below, so that no operation in this context ever rounds.
EXACT = Context(prec=300, traps=[Inexact, InvalidOperation])
_PLAIN = 38
"""Numbers in ``[10^-38, 10^38)`` are written without an exponent; no decimal of Spark is greater."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_CODE = re.compile(r"[+-]?0[0-9]")
_LONGEST_NUMBER = 64
_WORDS = {"inf": "Infinity", "-inf": "-Infinity", "True": "true", "TRUE": "true", "False": "false", "FALSE": "false"}


def read_number(text: str) -> Decimal | None:
    """Return the number that a text writes, exactly; None for inf, nan, anything else and absurd exponents."""
    number = _read(text)
    return number if number is None or not number or abs(number.adjusted()) <= _LONGEST_NUMBER else None


def show_number(number: Decimal) -> str:
    """Return a number without exponent and trailing zeros."""
    return format(number.normalize(EXACT), "f") if number else "0"


def equal_text(text: str) -> str:
    """Return the text that all ways to write a value have in common: ``10`` for ``10.0``, and ``true`` for ``True``.

    Parameters
    ----------
    text : str
        Returned as it is if it is neither a number nor true or false. A text with leading zeros, such as ``010``, is a
        code.
    """
    number = None if _CODE.match(text) else _read(text)
    if number is None:
        return _WORDS.get(text, text)
    if not number or -_PLAIN <= number.adjusted() < _PLAIN:
        return show_number(number)
    return _scientific(number)


def spellings(text: str) -> tuple[str, ...]:
    """Return the text that all ways to write a number have in common, and the number with an exponent: ``1.0E1``.

    Parameters
    ----------
    text : str
        Returned alone if it is not a number.
    """
    number = _read(text)
    return (equal_text(text),) if not number else (equal_text(text), _scientific(number))


def _scientific(number: Decimal) -> str:
    """Return a number as Spark writes large and small ones, such as ``1.5E-7``."""
    digits = "".join(map(str, number.normalize(EXACT).as_tuple().digits))
    return f"{'-' if number < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{number.adjusted()}"


def _read(text: str) -> Decimal | None:
    if len(text) > _LONGEST_NUMBER or _NUMBER.fullmatch(text) is None:
        return None
    return Decimal(text) or Decimal(0)  # -0 and 0e999 are 0
