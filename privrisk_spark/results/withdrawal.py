"""What came of taking a release away."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

__all__ = ["Withdrawal"]


@dataclass(frozen=True)
class Withdrawal:
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

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON: exact amounts as text."""
        amounts = {"epsilon": self.epsilon, "delta": self.delta}
        texts = {name: None if amount is None else str(amount) for name, amount in amounts.items()}
        return {"run_id": self.run_id, "place": self.place, "fresh": self.fresh, **texts, "lake": self.lake}
