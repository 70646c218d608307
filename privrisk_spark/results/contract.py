"""What a contract asks of a measured fact."""

from __future__ import annotations

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
