"""What every variant of a decision tells of itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray, IntArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.planning.rules import Recoding, Rule
from privrisk_spark.planning.search import MethodChoice
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts
from privrisk_spark.results.release import ChosenRule

Reach = Callable[[Disclosure, IntArray], FloatArray]
"""What each record of a chunk, given by its codes, can give at most."""

Hierarchies = Mapping[str, Hierarchy]
"""By quasi-identifier."""


class Decision(Protocol):
    """One variant of a policy's decision: how it is made, what is said of it, and what a release is held against.

    Variants are frozen values of a policy. What most have in common is said here; a variant says what is its own.
    """

    # ------------------------------------------------------------------------------------------------ how it is made

    @abstractmethod
    def choice(self, hierarchies: Hierarchies) -> MethodChoice:
        """Choose the method, or take the one the policy names.

        Raises
        ------
        InputError
            If a lattice may be too large for it, and for any other.
        """

    @abstractmethod
    def procedure(self, hierarchies: Hierarchies) -> Search | Rule | Recoding:
        """Return the search of each record's lattice, the rule, or the recoding of the table that decides.

        Raises
        ------
        InfeasibleError
            If no record, or no listed rule, can give what is asked.
        InputError
            If the hierarchies do not have what the policy names, or no method serves.
        """

    # ---------------------------------------------------------------------------------------------- what is said of it

    @abstractmethod
    def objective(self, *, risk: str) -> str:
        """Say in words what is optimized; ``risk`` says which risk."""

    @abstractmethod
    def parameters(self) -> dict[str, object]:
        """Return the numbers of the objective, as a guarantee names them."""

    @abstractmethod
    def statement(self, asked: str, measured: DecisionFacts, *, method: str, rule: ChosenRule | None) -> str:
        """Say what a release by this decision promises.

        Parameters
        ----------
        asked : str
            The objective in words.
        method : str
            By which it was decided.
        rule : ChosenRule or None
            The rule of a list that was chosen.
        """

    def expectation(self, greatest: float) -> str:
        """Say before a run what is asked, with the greatest utility there is."""
        return f"asked: {self.objective(risk='risk')}; utility at most {greatest:g}"

    @property
    def least_utility(self) -> float | None:
        """The utility every record must keep, if one is asked."""
        return None

    def remarks(self) -> str:
        """Say what is to be known of how it was decided, each sentence after a blank."""
        return ""

    def is_heuristic(self, measured: DecisionFacts) -> bool:
        """Whether there may be better decisions than those made."""
        return measured.unproved > 0

    def proof(self, measured: DecisionFacts) -> str:
        """Say how much better others could be, after a blank; nothing where all are proved."""
        if not measured.unproved:
            return ""
        return (
            f" For {measured.unproved:,} of {measured.rows:,} records it is not proved that there is no better one; "
            f"none is better by more than {measured.gap:.3g}."
        )

    # ----------------------------------------------------------------------------------- what a release is held against

    def contract(self, measured: DecisionFacts, released: ReleaseFacts) -> Iterator[tuple[FactRule, float]]:
        """Yield what the decisions, and the files, must keep to, each rule with the fact it is about."""
        del measured, released
        yield from ()

    def reach(self) -> tuple[Reach, float] | None:
        """Return how to find the most that each record can give, and what is asked; None where no record tells."""
        return None

    def shortfall(self, infeasible: int, total: int, most: float | None) -> str:
        """Say that some records cannot be disclosed as asked, and what would do.

        Parameters
        ----------
        infeasible, total : int
            Records for which nothing is feasible; records.
        most : float or None
            What all can give, as :meth:`reach` finds it; None if that is not known.
        """
        del infeasible, total, most
        raise AssertionError("by this decision every record can be disclosed")
