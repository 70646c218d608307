"""Greatest lambda / risk + utility^kappa, of each record: Fouad 2012 eq. 5.1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.disclosure.objective import GreatestAggregate
from privrisk_spark.planning.decisions.searched import BySearch
from privrisk_spark.planning.search import EXACT_LIMIT, SearchChoice
from privrisk_spark.policy.decisions import AggregateDecision
from privrisk_spark.policy.rules.decisions import against_record_search

CHEAPLY_ENUMERATED = 2**14
"""Nodes up to which ``max-aggregate`` is decided by enumeration where minimum cuts would do as well.

A node costs each record a look-up, about 0.07 µs, and under the plan ``sorted`` each task a grouping of the dictionary
besides, about 0.25 ms + 0.1 µs a vector. A record decided by itself costs 1 to 2 ms + 0.05 to 0.1 µs a vector. With the
20,000 distinct records of Adult as the dictionary both cost the same at about 16,000 nodes (at its 6,480 nodes, 25 s
against 50 s on two cores); with more records enumeration gains, as one grouping serves all of them, and with fewer
either is done in seconds. A small table against a register of millions is the exception: name ``aggregate`` there.
"""


@dataclass(frozen=True)
class ByAggregate(BySearch):
    """Each record at its level vector of greatest aggregate."""

    asked: AggregateDecision

    caveat: ClassVar[str] = (
        " This model is nearly all or nothing: as lambda grows, a record's optimum jumps from the release as it is "
        "to the suppression of nearly all of it."
    )

    def optimum(self) -> GreatestAggregate:
        """Return the greatest sum."""
        return GreatestAggregate(self.asked.lambda_, float(self.asked.kappa), self.asked.zero_phi)

    def fitting(self, size: int) -> SearchChoice:
        """Choose enumeration of all records' lattices, or minimum cuts record by record: what is possible, or faster.

        Raises
        ------
        InputError
            If neither is possible.
        """
        faults = against_record_search(self.policy, "aggregate", enumerable=False)
        against = [f"{fault.path}: {fault.rule}" for fault in faults]
        if self.policy.dictionary.consistency == "similar":
            against.append("counts by likeness of labels are not monotone")
        if size > EXACT_LIMIT:
            many = f"a lattice may have {size:,} nodes, more than the {EXACT_LIMIT:,} to be enumerated"
            if against:
                raise InputError(
                    f"decision.method: {many}, and minimum cuts cannot do it either: {'; '.join(against)}."
                )
            return SearchChoice("aggregate", many)
        fits = f"a lattice has at most {size:,} nodes"
        if against:
            return SearchChoice("exhaustive", f"{fits}, and minimum cuts cannot do it: {'; '.join(against)}")
        if size <= CHEAPLY_ENUMERATED:
            return SearchChoice(
                "exhaustive",
                f"{fits}; up to {CHEAPLY_ENUMERATED:,}, all records together, node by node, are faster",
            )
        return SearchChoice(
            "aggregate", f"{fits}; beyond {CHEAPLY_ENUMERATED:,}, minimum cuts record by record are faster"
        )

    def objective(self, *, risk: str) -> str:
        """Say which sum is greatest."""
        utility, kappa = f"{self.policy.utility.measure} utility", self.asked.kappa
        power = f"its {utility}" + ("" if kappa == 1 else f" to the power {kappa:g}")
        return f"greatest sum of {self.asked.lambda_:g} divided by its {risk}, and {power}"

    def parameters(self) -> dict[str, object]:
        """Return lambda, kappa, and what becomes of a disclosure without risk."""
        return {"lambda": self.asked.lambda_, "kappa": self.asked.kappa, "zero_phi": self.asked.zero_phi}
