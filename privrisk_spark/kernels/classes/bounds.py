"""How numbers of classes or records are held against a bound: from which side, and what counts as equal to it."""

from __future__ import annotations

from typing import Literal

from privrisk_spark.kernels.arrays import BoolArray, FloatArray

Direction = Literal["at least", "at most"]
"""What a number has to be: an ``at least`` number is the worst where it is least, such as k."""

TOLERANCE = 1e-12
"""Numbers that are not counts are taken as equal to a bound ``b`` within ``TOLERANCE · max(1, b)``."""


def fails(
    values: FloatArray, asked: float, direction: Direction, *, strict: bool = False, whole: bool = False
) -> BoolArray:
    """Which numbers are on the wrong side of a bound.

    Parameters
    ----------
    values : ndarray of float64
        No NaN; +inf allowed.
    asked : float
        The bound, finite.
    direction : {"at least", "at most"}
    strict : bool
        Whether a number equal to the bound fails.
    whole : bool
        Whether numbers are counts, which are compared exactly.

    Returns
    -------
    ndarray of bool
        Of the shape of ``values``.
    """
    slack = 0.0 if whole else TOLERANCE * max(1.0, abs(asked))
    if direction == "at least":
        return values <= asked + slack if strict else values < asked - slack
    return values >= asked - slack if strict else values > asked + slack
