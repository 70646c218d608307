"""Top and bottom coding and rounding of a numeric attribute: the same value for all that lie near.

Status: *proved*, by definition; neither needs randomness, and each value is masked by itself.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray

_MOST_MULTIPLES = 2**53


def top_bottom(
    values: FloatArray,
    low: float | None = None,
    high: float | None = None,
    *,
    low_code: float | None = None,
    high_code: float | None = None,
) -> FloatArray:
    """Replace values below and above two thresholds.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        NaN where missing; these stay.
    low, high : float, optional
        Values below ``low`` and above ``high`` are replaced; those equal to them stay. At least one is given.
    low_code, high_code : float, optional
        What replaces them; the thresholds themselves if not given. The mean of the replaced values, for one, keeps the
        mean of the attribute.

    Returns
    -------
    ndarray of float64, shape (n,)

    Raises
    ------
    InputError
        If there is no threshold, one is NaN, the lower exceeds the upper, or a code has no threshold.
    """
    if low is None and high is None:
        raise InputError("Top and bottom coding: a lower or an upper threshold must be given.")
    for threshold, code in ((low, low_code), (high, high_code)):
        if threshold is None and code is not None:
            raise InputError("Top and bottom coding: a code needs its threshold.")
        if any(given is not None and math.isnan(given) for given in (threshold, code)):
            raise InputError("Top and bottom coding: thresholds and codes must be numbers.")
    if low is not None and high is not None and low > high:
        raise InputError(f"Top and bottom coding: the lower threshold must not exceed the upper. Got {low} and {high}.")
    masked = values.copy()
    if low is not None:
        masked[values < low] = low if low_code is None else low_code
    if high is not None:
        masked[values > high] = high if high_code is None else high_code
    return masked


def rounded(values: FloatArray, base: float, *, origin: float = 0.0) -> FloatArray:
    """Round to the nearest of the numbers ``origin + m · base``.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        NaN where missing; these stay.
    base : float
        Above 0. It is the decimal number it prints as: 0.1 is a tenth.
    origin : float
        A number that stays.

    Returns
    -------
    ndarray of float64, shape (n,)
        Halfway between two multiples the even one (``m`` even) is taken, which keeps the mean of values that lie
        evenly. What is halfway is decided on the quotient in float64: 0.15 is halfway between 0.1 and 0.2. The result
        is the float64 nearest to the multiple if the origin is 0.

    Raises
    ------
    InputError
        If the base is not finite and above 0, the origin is not finite, or a value is 2^53 bases or more away.
    """
    if not 0 < base < math.inf or not math.isfinite(origin):
        raise InputError(f"Rounding: the base must be above 0 and finite, and the origin finite. Got {base}, {origin}.")
    exact = Fraction(str(float(base)))
    numerator, denominator = float(exact.numerator), float(exact.denominator)
    multiples = np.rint((values - origin) * denominator / numerator)
    if (np.abs(multiples) * max(numerator, 1.0) >= _MOST_MULTIPLES).any():
        raise InputError("Rounding: values must be less than 2^53 bases away from the origin, and some are not.")
    result: FloatArray = multiples * numerator / denominator + origin
    return result
