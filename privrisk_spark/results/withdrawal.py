"""What came of taking a release away."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

__all__ = ["Withdrawal"]

from privrisk_spark.json_values import JsonDocument


@dataclass(frozen=True)
class Withdrawal(JsonDocument):
    """A release that was taken away.

    Attributes
    ----------
    run_id : str
    place : str
        Of the release.
    fresh : bool
        False if it was withdrawn before.
    epsilon, delta : Decimal or None
        What stays spent for it; None without a charge.
    lake : str or None
        The table in a lake that still holds the rows, if it does.
    catalog : str or None
        The table of Spark's catalog that the policy names.
    """

    run_id: str
    place: str
    fresh: bool
    epsilon: Decimal | None
    delta: Decimal | None
    lake: str | None
    catalog: str | None = None

    json_keys = ("run_id", "place", "fresh", "epsilon", "delta", "lake")
