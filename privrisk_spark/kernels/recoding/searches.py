"""All searches by name; one problem, one answer.

Each is a function of a :class:`~privrisk_spark.kernels.recoding.problem.Problem` that returns the
:class:`~privrisk_spark.kernels.recoding.problem.Scheme` it found, or None where none keeps the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from privrisk_spark.kernels.recoding.bounded import bounded
from privrisk_spark.kernels.recoding.problem import Problem, Scheme
from privrisk_spark.kernels.recoding.whole_lattice import exhaustive, flash, incognito, samarati

__all__ = ["SEARCHES", "Search", "best"]


class Search(Protocol):
    """What finds a scheme."""

    def __call__(self, problem: Problem, /) -> Scheme | None:
        """Return the scheme found; None if none keeps the limit."""


def best(problem: Problem) -> Scheme | None:
    """Return the best scheme by what is fastest; None if none keeps the limit."""
    return bounded(problem)


SEARCHES: Mapping[str, Search] = {
    "exhaustive": exhaustive,
    "samarati": samarati,
    "incognito": incognito,
    "flash": flash,
    "best": best,
}
"""By name."""
