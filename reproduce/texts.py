"""Numbers and labels as the pages of experiments show them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from privrisk_spark.reporting.numbers import rounded


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds; NaN is a time that was not measured."""
    return "not run" if math.isnan(seconds) else f"{rounded(1000 * seconds)} ms"


def least_to_most(values: Sequence[float]) -> str:
    """Return the least and the greatest of some numbers, once if they read the same.

    Parameters
    ----------
    values : sequence of float
        At least one.
    """
    low, high = rounded(min(values)), rounded(max(values))
    return low if low == high else f"{low} to {high}"


def all_but_ends_blank(labels: Sequence[str]) -> tuple[str, ...]:
    """Keep the first and the last label, so that labels of points close to each other do not overlap."""
    return tuple(label if i in (0, len(labels) - 1) else "" for i, label in enumerate(labels))
