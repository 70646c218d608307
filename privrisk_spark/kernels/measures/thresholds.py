"""Records whose risk is above a threshold, and what is refused of sizes and thresholds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray


@dataclass(frozen=True)
class Above:
    """Records whose risk is above a threshold.

    Attributes
    ----------
    threshold : float
        Probability. A risk equal to it is not above; risks are compared as they are rounded to float64, so that ``1/3``
        written in Python is not below the risk in a class of three.
    share : float
        Of the records the risk is known of; 0 of none.
    """

    threshold: float
    records: int
    share: float

    @classmethod
    def of_sizes(cls, threshold: float, entries: Iterable[tuple[int, int]], records: int) -> Above:
        """Count the records of entries ``(size, records)`` whose risk ``1/size`` is above a threshold."""
        found = sum(n for size, n in entries if 1 / size > threshold)
        return cls(threshold, found, found / records if records else 0.0)


def refuse_thresholds(thresholds: Sequence[float]) -> None:
    """Refuse thresholds that are no probabilities.

    Raises
    ------
    InputError
    """
    for threshold in thresholds:
        if not 0 <= threshold <= 1:
            raise InputError(f"A threshold on risk must be a probability between 0 and 1. Got {threshold!r}.")


def refuse_shapes(sizes: LongArray, others: npt.NDArray[Any]) -> None:
    """Refuse arrays that do not hold one value per class.

    Raises
    ------
    InputError
    """
    if sizes.ndim != 1 or sizes.shape != others.shape:
        raise InputError(f"There must be one value per class. Got shapes {sizes.shape} and {others.shape}.")


def refuse_below(values: LongArray, least: int, name: str) -> None:
    """Refuse integers below the least that makes sense, by name.

    Raises
    ------
    InputError
    """
    if len(values) and values.min() < least:
        raise InputError(f"{name} must be at least {least}. Got {values.min()}.")


def refuse_weights(weights: FloatArray) -> None:
    """Refuse estimated sizes that are NaN or negative.

    Raises
    ------
    InputError
    """
    if len(weights) and not (weights >= 0).all():
        raise InputError("Sums of sampling weights must not be negative or NaN.")
