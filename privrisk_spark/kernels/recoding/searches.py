"""All searches by name; one problem, one answer.

Each is a function of a :class:`~privrisk_spark.kernels.recoding.problem.Problem` that returns the
:class:`~privrisk_spark.kernels.recoding.problem.Scheme` it found, or None where none keeps the limit.

===========  =================  ==================================================================================
search       optimal            gap where it is not
===========  =================  ==================================================================================
exhaustive   always             -
samarati     by ``height``      over the floor of the whole lattice
incognito    always             -
flash        always             -
k_optimize   always             -
datafly      never              over the floor of the whole lattice; None says no more than that its way had none,
                                unless the problem is monotone
top_down     if looks suffice   over the least floor of what was not looked at
best         as what it chose   as what it chose: ``bounded`` (always optimal) or ``top_down``
===========  =================  ==================================================================================

The gap is one of the metric's key: for ``classes``, by how many more there may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from privrisk_spark.kernels.recoding.bounded import bounded
from privrisk_spark.kernels.recoding.datafly import datafly
from privrisk_spark.kernels.recoding.floors import Floors
from privrisk_spark.kernels.recoding.k_optimize import k_optimize
from privrisk_spark.kernels.recoding.problem import Problem, Scheme
from privrisk_spark.kernels.recoding.top_down import NODES_AT_MOST, top_down
from privrisk_spark.kernels.recoding.whole_lattice import exhaustive, flash, incognito, samarati

__all__ = ["ENUMERATED", "SEARCHES", "Search", "best"]


class Search(Protocol):
    """What finds a scheme."""

    def __call__(self, problem: Problem, /) -> Scheme | None:
        """Return the scheme found; None if none keeps the limit."""


ENUMERATED = 2**18
"""Nodes of a lattice up to which arrays of its shape are worth it."""


def best(problem: Problem, *, nodes_at_most: int = NODES_AT_MOST) -> Scheme | None:
    """Return the best scheme by what is fastest; None if none keeps the limit.

    Parameters
    ----------
    problem : Problem
        A lattice of up to 2^18 nodes is searched to the end: by ``top_down``, which is faster where the problem is
        monotone and the metric is bounded by levels alone, or by ``bounded``. A larger one by ``top_down``.
    nodes_at_most : int
        Looks of ``top_down`` at a larger one.
    """
    nodes = problem.measured.table.lattice.n_nodes
    if nodes > ENUMERATED:
        return top_down(problem, nodes_at_most=nodes_at_most)
    if problem.monotone and not Floors(problem).of_classes:
        found = top_down(problem, nodes_at_most=nodes)
        if found is None or found.optimal:
            return found
    return bounded(problem)


SEARCHES: Mapping[str, Search] = {
    "exhaustive": exhaustive,
    "samarati": samarati,
    "incognito": incognito,
    "flash": flash,
    "k_optimize": k_optimize,
    "datafly": datafly,
    "top_down": top_down,
    "best": best,
}
"""By name."""
