"""How decisions are searched for: the objective, and the method that finds its optimum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privrisk_spark.kernels.disclosure.objective import AnyObjective, LeastRisk
from privrisk_spark.kernels.lattice.lattice import Neighbourhood

TableMethod = Literal["exact", "aruba", "exhaustive"]
"""Searches of whole tables, nodes outside and records inside: :mod:`privrisk_spark.kernels.search.table_search`."""

RecordMethod = Literal["branch_and_bound", "btda", "genetic", "approximate", "aggregate"]
"""Searches of one record's lattice after the other: :mod:`privrisk_spark.kernels.search.record_search`."""

Method = TableMethod | RecordMethod


@dataclass(frozen=True)
class Search:
    """What a search is to find, and how.

    Attributes
    ----------
    objective : LeastRisk, GreatestUtility, LeastPenalized or GreatestAggregate
        What is optimized, and under which constraint.
    method : {"exact", "aruba", "exhaustive"} or a method of single records
        ``exact`` and ``aruba`` find the least risk; ``exhaustive`` serves every objective.
    neighbourhood : {"swap", "cube"}
        Moves of ``aruba``; no other method looks at it.
    most_steps : int
        Boxes, nodes or cuts after which a search of one record ends with its best so far; no search of a whole table
        looks at it.
    """

    objective: AnyObjective
    method: Method = "exact"
    neighbourhood: Neighbourhood = "swap"
    most_steps: int = 1_000_000

    @property
    def floor(self) -> float | None:
        """Utility below which no node is looked at; None where the objective sets none."""
        return self.objective.floor if isinstance(self.objective, LeastRisk) else None
