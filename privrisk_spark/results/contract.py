"""What a contract asks of a measured fact."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class FactRule:
    """One rule on one fact.

    Attributes
    ----------
    name : str
        Name of the fact, a column of the facts table.
    text : str
        What must hold, in words.
    at_least, at_most : float or None
        Allowed range of the fact, ends included.
    level : {"error", "warning"}
    """

    name: str
    text: str
    at_least: float | None = None
    at_most: float | None = None
    level: Level = "error"

    def holds(self, value: float) -> bool:
        """Whether a fact is in the range; NaN never is."""
        least = -math.inf if self.at_least is None else self.at_least
        most = math.inf if self.at_most is None else self.at_most
        return least <= value <= most
