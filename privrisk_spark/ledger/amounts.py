"""Exact amounts of a budget: decimals as they are written, fractions as they are added."""

from __future__ import annotations

import re
import reprlib
from decimal import Decimal
from fractions import Fraction
from typing import Final

from privrisk_spark.errors import InputError

__all__ = ["Amounts", "amount", "decimal_of", "stored_amount"]

Amounts = tuple[Fraction, Fraction]
"""Of epsilon and of delta."""

# Bounds on the written form of an amount keep the exact sums small: 1e-400 is meant, 1e-999999999 is an
# accident.
_LONGEST: Final = 200
_DIGITS: Final = 100
_EXPONENT: Final = 400
_FORM: Final = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?", re.ASCII)


def amount(name: str, value: str | Decimal, *, below_one: bool = False) -> Fraction:
    """Return an amount as the fraction it is.

    Parameters
    ----------
    name : str
        What it is an amount of, for the message.
    value : str or decimal.Decimal
        Non-negative; floats are refused: 0.1 is not one.
    below_one : bool, default False
        Whether 1 and more are refused.

    Raises
    ------
    InputError
        If it is none.
    """
    number: Decimal | None = None
    if isinstance(value, Decimal):
        number = value
    elif isinstance(value, str) and len(value) <= _LONGEST and _FORM.fullmatch(value):
        number = Decimal(value)
    if number is None or not number.is_finite() or number < 0:
        raise InputError(
            f"{name} must be a finite non-negative decimal, given as text or Decimal, such as '0.3' or "
            f"'1e-9'. Got {reprlib.repr(value)}."
        )
    if len(number.as_tuple().digits) > _DIGITS or (number and abs(number.adjusted()) > _EXPONENT):
        raise InputError(
            f"{name} must have at most {_DIGITS} digits and lie between 1e-{_EXPONENT} and "
            f"1e{_EXPONENT}. Got {reprlib.repr(value)}."
        )
    exact = Fraction(number) if number else Fraction(0)
    if below_one and exact >= 1:
        raise InputError(f"{name} must be below 1; at 1 it promises nothing. Got {number}.")
    return exact


def stored_amount(text: object) -> Fraction | None:
    """Return an amount that a ledger stored as text; None if it is no amount."""
    return Fraction(text) if isinstance(text, str) and _FORM.fullmatch(text) else None


def decimal_of(amount: Fraction) -> Decimal:
    """Return a fraction as the decimal it is, without rounding.

    Parameters
    ----------
    amount : fractions.Fraction
        Non-negative, its denominator a divisor of a power of ten.
    """
    rest, fives = amount.denominator, 0
    twos = (rest & -rest).bit_length() - 1
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    places = max(twos, fives)
    digits = amount.numerator * 10**places // amount.denominator
    return Decimal((0, tuple(int(digit) for digit in str(digits)), -places))
