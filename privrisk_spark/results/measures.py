"""Every measure of an assessment: its name, unit, meaning in plain words, source and status."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from privrisk_spark.claims import Status


@dataclass(frozen=True)
class Measure:
    """The meaning of a number.

    Attributes
    ----------
    family : str
        A key of :func:`read_families`.
    means : str
        A sentence in plain words.
    source : str
        Who defined it first; empty for a plain count.
    safe : {"low", "high"} or None
        Which side is safe, for a threshold; None for a number that is no risk.
    status : {"proved", "tested", "heuristic"}
        ``tested``: computed exactly, and the computation tested. ``heuristic``: an estimate under a model.
    """

    family: str
    title: str
    unit: str
    means: str
    source: str
    safe: Literal["low", "high"] | None = None
    status: Status = "tested"


@cache
def read_families() -> dict[str, str]:
    """Return the title of each family of measures, in the order of the report."""
    return dict(_read_catalogue()["families"])


@cache
def read_measures() -> dict[str, Measure]:
    """Return each measure by name, in the order of the report."""
    return {name: Measure(**entry) for name, entry in _read_catalogue()["measures"].items()}


@cache
def _read_catalogue() -> dict[str, Any]:
    text = files("privrisk_spark.results").joinpath("measures.json").read_text(encoding="utf-8")
    catalogue: dict[str, Any] = json.loads(text)
    return catalogue
