"""Sizes of an experiment: integers, each with its minimum and maximum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from privrisk_spark.errors import ConfigError, Fault

SizesT = TypeVar("SizesT")


@dataclass(frozen=True)
class Bounds:
    """Minimum and maximum of a size; a maximum of None is no limit."""

    least: int
    most: int | None = None

    def rule(self, value: int) -> str:
        """Return the rule that a value breaks; empty if it breaks none."""
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
    """
    return field(default=usual, metadata={"bounds": Bounds(least, most)})


def bounds(sizes: object) -> dict[str, Bounds]:
    """Return the bounds of each size of an experiment.

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
        By the names of the sizes.

    Raises
    ------
    ConfigError
        Naming the option of each size that is out of its bounds.
    """
    known = bounds(sizes)
    faults = [
        Fault(f"--{name}", f"{rule}. Got {value}") for name, value in given.items() if (rule := known[name].rule(value))
    ]
    if faults:
        raise ConfigError(faults)
    return replace(sizes, **given)  # type: ignore[type-var]
