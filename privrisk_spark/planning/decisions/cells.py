"""What decisions have in common that disclose a number of cells: Lebanon et al. 2006."""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.planning.decisions.decision import Decision, Hierarchies
from privrisk_spark.planning.search import MethodChoice
from privrisk_spark.policy.decisions import DiscloseInAll, DisclosePerAttribute, DisclosePerRecord
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import ChosenRule

INDEPENDENT = "if the attributes of the dictionary were independent"


@dataclass(frozen=True)
class ByCells(Decision):
    """A decision by suppression alone, of the cells that are exposed most.

    Attributes
    ----------
    asked : DiscloseInAll, DisclosePerAttribute or DisclosePerRecord
        Its decision.
    """

    policy: Policy
    asked: DiscloseInAll | DisclosePerAttribute | DisclosePerRecord

    def choice(self, hierarchies: Hierarchies) -> MethodChoice:
        """Return MinRisk."""
        del hierarchies
        return MethodChoice("minrisk", "cells are ranked by their exposure, and no lattice is searched")

    def parameters(self) -> dict[str, object]:
        """Return the number of cells."""
        return {"cells": self.asked.cells}

    def statement(self, asked: str, measured: DecisionFacts, *, method: str, rule: ChosenRule | None) -> str:
        """Say which cells are disclosed."""
        del measured, method, rule
        return f"What is disclosed is {asked}."


@dataclass(frozen=True)
class ByCellOrder(ByCells):
    """A decision by one order of cells, optimal for another objective than the mean risk."""

    def least_exposed(self, of: str, *, risk: str) -> str:
        """Say which cells are disclosed of the table or of each attribute, and what is least by it."""
        return (
            f"the {values(self.asked.cells)} {of} with the least exposure exp(w) N/ρ alone, and nothing else: "
            f"{INDEPENDENT}, the mean logarithm of the {risk} would be the least of all ways to disclose so many; for "
            "its mean this is a heuristic"
        )

    def is_heuristic(self, measured: DecisionFacts) -> bool:
        """Return True: for the mean risk it is one."""
        del measured
        return True


def values(cells: int) -> str:
    """So many values, in words."""
    return f"{cells:,} {'value' if cells == 1 else 'values'}"


def disclosed(measured: DecisionFacts) -> dict[str, int]:
    """Cells that are not suppressed, by attribute."""
    return {levels.attribute: sum(levels.rows[:-1]) for levels in measured.levels}


def exactly(name: str, wanted: int) -> FactRule:
    """So many values and no others."""
    return FactRule(name, f"{wanted:,} values are disclosed", wanted, wanted)
