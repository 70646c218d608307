"""What decisions have in common that optimize an objective over each record's lattice."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, get_args

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.disclosure.objective import AnyObjective
from privrisk_spark.kernels.search.method import Search, TableMethod
from privrisk_spark.planning.decisions.decision import Decision, Hierarchies
from privrisk_spark.planning.search import EXACT_LIMIT, SearchChoice, lattice_size, refuse_untaken
from privrisk_spark.policy.decisions import (
    AggregateDecision,
    GreatestUtilityDecision,
    LeastPenalizedDecision,
    LeastRiskDecision,
)
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.facts import DecisionFacts
from privrisk_spark.results.release import ChosenRule


@dataclass(frozen=True)
class BySearch(Decision):
    """A decision that is searched for in each record's lattice.

    Attributes
    ----------
    asked : AggregateDecision, GreatestUtilityDecision, LeastPenalizedDecision or LeastRiskDecision
        Its decision.
    """

    policy: Policy
    asked: AggregateDecision | GreatestUtilityDecision | LeastPenalizedDecision | LeastRiskDecision

    caveat: ClassVar[str] = ""
    """What is to be known of the objective, after a blank."""

    @abstractmethod
    def optimum(self) -> AnyObjective:
        """Return what is optimized, as kernels take it."""

    def choice(self, hierarchies: Hierarchies) -> SearchChoice:
        """Choose the method by the size of lattices, or take the one the policy names; errors as in the base."""
        size, named = lattice_size(hierarchies), self.asked.method
        if named == "auto":
            return self.fitting(size)
        if size > EXACT_LIMIT and named in get_args(TableMethod):
            raise InputError(
                f"decision.method: a record's lattice has up to {size:,} nodes, and '{named}' enumerates at "
                f"most {EXACT_LIMIT:,}; use 'branch_and_bound', or fewer quasi-identifiers or lower hierarchies."
            )
        return SearchChoice(named, "named by decision.method")

    def fitting(self, size: int) -> SearchChoice:
        """Choose the method for lattices of so many nodes."""
        if self.policy.dictionary.consistency == "similar":
            return SearchChoice(
                "exhaustive", "counts by likeness of labels are not monotone, so nothing may be left out"
            )
        if size > EXACT_LIMIT:
            return SearchChoice(
                "branch_and_bound", f"a lattice may have {size:,} nodes, more than the {EXACT_LIMIT:,} to be enumerated"
            )
        by = self.enumeration()
        fits = f"a lattice has at most {size:,} nodes, of the {EXACT_LIMIT:,} to be enumerated"
        return SearchChoice(by.method, f"{fits}; {by.reason}")

    def enumeration(self) -> SearchChoice:
        """Return the method of lattices that can be enumerated, and why it is this one."""
        return SearchChoice("exhaustive", "the objective is not monotone")

    def procedure(self, hierarchies: Hierarchies) -> Search:
        """Return the search; errors as in the base."""
        method = self.choice(hierarchies).method
        refuse_untaken(self.policy, hierarchies, method)
        return Search(self.optimum(), method, most_steps=self.asked.most_steps)

    def statement(self, asked: str, measured: DecisionFacts, *, method: str, rule: ChosenRule | None) -> str:
        """Say that each record has its best level vector, or the best that was found."""
        del rule
        if measured.unproved:
            return f"Each record is disclosed at the best level vector that '{method}' found in search of the {asked}."
        return f"Each record is disclosed at the level vector of {asked}."

    def remarks(self) -> str:
        """Say what holds of the dictionary's counts, of the objective, and of several dictionaries."""
        remarks = ""
        if self.policy.dictionary.consistency == "similar":
            remarks += (
                " Every feasible node was looked at: counts by likeness of labels are not monotone, and no theorem "
                "that leaves nodes out holds for them."
            )
        remarks += self.caveat
        if self.policy.dictionary.kind == "minimax":
            remarks += " The mean of the records' worst risks is an upper bound of the worst dictionary's mean risk."
        return remarks
