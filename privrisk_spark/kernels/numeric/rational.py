"""Rational bounds: of e^x from below and above, of powers, and of rationals by float64.

A printed guarantee must not be better than the true one, so what leads to it is exact, or rounded to the safe side
by one of these functions. Status: *proved*; no float enters but in :func:`round_up`, which only chooses one.
"""

from __future__ import annotations

import math
from fractions import Fraction

from privrisk_spark.errors import InputError

PRECISION = 256
"""Bits after the binary point of exponentials."""

_GUARD = 96
_WORKING = PRECISION + _GUARD
_HALVED_TO = 32
_POWER_PRECISION = 1200  # bits: a probability of 1e-300 keeps 200 of them


def rational(value: Fraction | str | float, name: str) -> Fraction:
    """Read a number; a float as the shortest decimal that denotes it.

    Parameters
    ----------
    value : Fraction, str or float
        A string is a decimal or a ratio.
    name : str
        What it is, for the error.

    Raises
    ------
    InputError
        If it is not a finite number.
    """
    try:
        return Fraction(value if isinstance(value, (Fraction, str, int)) else repr(float(value)))
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"{name} must be a finite number. Got {value!r}.") from error


def exp_scaled(x: Fraction) -> int:
    """Return ``floor(2^256 s)``, s a partial sum of the exponential series of ``x >= 0`` missing less than 2^-255."""
    total = term = Fraction(1)
    i = 0
    # Once i > 2 x the terms halve at least, so the missing ones sum to less than the last.
    while i <= 2 * x or term * (1 << (PRECISION - 1)) >= 1:
        i += 1
        term = term * x / i
        total += term
    return math.floor(total * (1 << PRECISION))


def exp_bounds(x: Fraction) -> tuple[Fraction, Fraction]:
    """Bound e^x from below and above.

    Parameters
    ----------
    x : Fraction
        At least 0. Above 32 it is halved h times until it is not, and the bounds are squared h times, each rounded to
        its own side.

    Returns
    -------
    (Fraction, Fraction)
        They differ by less than 2^-254 up to x = 32, and by a factor below ``1 + x 2^-254`` above.
    """
    halvings = 0
    while x > _HALVED_TO << halvings:
        halvings += 1
    small = x / (1 << halvings)
    low, high = (_series(small, up=up) for up in (False, True))
    for _ in range(halvings):
        low, high = low * low >> _WORKING, -(-(high * high) >> _WORKING)
    return Fraction(low >> _GUARD, 1 << PRECISION), Fraction(-(-high >> _GUARD), 1 << PRECISION)


def exp_minus(x: Fraction, bits: int) -> tuple[int, int]:
    """Enclose ``2^bits e^-x`` between integers.

    Parameters
    ----------
    x : Fraction
        At least 0. It is halved h times until it is at most 1; bounds of ``1 / e^(x / 2^h)`` are squared h times, each
        rounded to its own side.
    bits : int
        Positive.

    Returns
    -------
    (int, int)
        Equal for x = 0; else they differ by at most 2.
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits:  # e^-x < 2^-x
        return 0, 1
    halvings = max(0, math.ceil(x) - 1).bit_length()
    working = bits + 2 * halvings + 32
    unit, small = 1 << working, x / (1 << halvings)
    high, low = (
        side * (side * unit * unit // _power_series(small, working, up=up)) for up, side in ((False, -1), (True, 1))
    )
    for _ in range(halvings):
        low, high = low * low >> working, -(-(high * high) >> working)
    return low >> (working - bits), -(-high >> (working - bits))


def _power_series(x: Fraction, working: int, *, up: bool) -> int:
    """Sum the exponential series of ``0 <= x <= 1`` in integers over 2^working, every step rounded to one side."""
    side = -1 if up else 1
    argument = side * (side * (x.numerator << working) // x.denominator)
    total = term = 1 << working
    i = 0
    # From the second on the terms halve at least, so the missing ones sum to less than the last.
    while i < 2 or term > 1:
        i += 1
        term = side * (side * term * argument // (i << working))
        total += term
    return total + (term + 1 if up else 0)


def _series(x: Fraction, *, up: bool) -> int:
    """Sum the exponential series of ``0 <= x <= 32`` in integers over 2^352, every step rounded to one side.

    A step adds less than one unit to the error, which the later terms carry on: below ``200 e^32 < 2^54`` units in all.
    """
    side = -1 if up else 1
    argument = side * (side * (x.numerator << _WORKING) // x.denominator)
    total = term = 1 << _WORKING
    i = 0
    # Once i > 2 x the terms halve at least, so the missing ones sum to less than the last.
    while i <= 2 * x or term > 1:
        i += 1
        term = side * (side * term * argument // (i << _WORKING))
        total += term
    return total + (term + 1 if up else 0)


def any_of(probability: Fraction, times: int) -> Fraction:
    """Bound ``1 - (1 - p)^n`` from above: that one of n independent events of probability p happens.

    Parameters
    ----------
    probability : Fraction
        In [0, 1].
    times : int
        At least 0.

    Returns
    -------
    Fraction
        Above the exact value by less than ``4 n 2^-1200``; at most 1.
    """
    unit = 1 << _POWER_PRECISION
    base, power = math.floor((1 - probability) * unit), unit
    while times:
        if times & 1:
            power = power * base >> _POWER_PRECISION
        base = base * base >> _POWER_PRECISION
        times >>= 1
    return 1 - Fraction(power, unit)


def round_up(value: Fraction) -> float:
    """Return the least float64 not below a number."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def round_down(value: Fraction) -> float:
    """Return the greatest float64 not above a number."""
    return -round_up(-value)
