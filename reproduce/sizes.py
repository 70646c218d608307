"""How much of an experiment is run: whole numbers, each with the least and the most it can be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from privrisk_spark.errors import ConfigError, Fault, listing, nearest

SizesT = TypeVar("SizesT")


@dataclass(frozen=True)
class Bounds:
    """What a size can be.

    Attributes
    ----------
    least : int
    most : int or None
        None is no bound.
    """

    least: int
    most: int | None = None

    def rule(self, value: object) -> str:
        """Return the rule a value breaks; empty if it breaks none."""
        if isinstance(value, bool) or not isinstance(value, int):
            return "must be a whole number"
        if value < self.least:
            return f"must be at least {self.least:,}"
        if self.most is not None and value > self.most:
            return f"must be at most {self.most:,}"
        return ""


def size(usual: int, least: int = 1, most: int | None = None) -> Any:
    """Return a field of a dataclass of sizes.

    Parameters
    ----------
    usual : int
        Its default, for figures to be cited.
    least : int
    most : int, optional
    """
    return field(default=usual, metadata={"bounds": Bounds(least, most)})


def bounds(sizes: object) -> dict[str, Bounds]:
    """Return what each size of an experiment can be.

    Parameters
    ----------
    sizes : dataclass
        Made of :func:`size`, or its class.
    """
    return {one.name: one.metadata["bounds"] for one in fields(sizes)}  # type: ignore[arg-type]


def changed(sizes: SizesT, given: Mapping[str, int]) -> SizesT:
    """Return sizes with some of them changed.

    Parameters
    ----------
    sizes : dataclass
        Made of :func:`size`.
    given : mapping of str to int

    Raises
    ------
    ConfigError
        Naming each one that the experiment does not have, or that is out of its bounds.
    """
    known = bounds(sizes)
    faults = []
    for name, value in given.items():
        if name not in known:
            hint = nearest(name, list(known))
            faults.append(Fault(f"sizes.{name}", f"is no size of this experiment{hint}; it has {listing(list(known))}"))
        elif rule := known[name].rule(value):
            faults.append(Fault(f"sizes.{name}", f"{rule}, got {value!r}"))
    if faults:
        raise ConfigError(faults)
    return replace(sizes, **given)  # type: ignore[type-var]
