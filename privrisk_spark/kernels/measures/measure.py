"""What the catalogue says of a measure: what it is, in plain words, where it comes from, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privrisk_spark.claims import Status
from privrisk_spark.kernels.classes.criteria import Criterion

Family = Literal[
    "identity",
    "population",
    "special",
    "columns",
    "attribute",
    "concealment",
    "interval",
    "utility",
    "numeric",
    "attack",
]
Safe = Literal["low", "high"]

FAMILIES: dict[Family, str] = {
    "identity": "Identity disclosure: how many records look alike",
    "population": "Identity disclosure in the population",
    "special": "Special uniques: few values that single a record out",
    "columns": "Which columns identify",
    "attribute": "Attribute disclosure: what a class gives away",
    "concealment": "Concealment: how many releases a record could be",
    "interval": "Interval disclosure: how close masked numbers are",
    "utility": "Utility of the release",
    "numeric": "Utility of masked numbers",
    "attack": "An adversary who attacks if it pays",
}


@dataclass(frozen=True)
class Measure:
    """What a number means.

    Attributes
    ----------
    family : Family
    title : str
    unit : str
    means : str
        In plain words, a sentence.
    source : str
        Who defined it first; empty for what is only counted.
    safe : {"low", "high"} or None
        Which side is safe, for a threshold; None for a number that is no risk.
    status : {"proved", "tested", "heuristic"}
        ``tested``: computed exactly, and the computation tested. ``heuristic``: an estimate under a model.
    criteria : tuple of Criterion
        The privacy criteria the number is the worst number of, if any: one, or those between which a parameter
        chooses, or that are held at once.
    """

    family: Family
    title: str
    unit: str
    means: str
    source: str
    safe: Safe | None = None
    status: Status = "tested"
    criteria: tuple[Criterion, ...] = ()

    @classmethod
    def of_criteria(cls, family: Family, title: str, unit: str, means: str, criteria: tuple[Criterion, ...]) -> Measure:
        """Measure that privacy criteria hold against a bound: they say which side is safe, and where they are from."""
        (direction,) = {criterion.direction for criterion in criteria}
        sources = dict.fromkeys(criterion.source for criterion in criteria)
        safe: Safe = "high" if direction == "at least" else "low"
        return cls(family, title, unit, means, "; ".join(sources), safe, criteria=criteria)
