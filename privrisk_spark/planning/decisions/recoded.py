"""One scheme for the whole table, all released classes of which meet what is asked: k-anonymity and its kin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privrisk_spark.errors import InputError
from privrisk_spark.planning.decisions.decision import Decision, Hierarchies
from privrisk_spark.planning.recoding import asked_in_words
from privrisk_spark.planning.rules import Recoding
from privrisk_spark.planning.schemes import approved_scheme
from privrisk_spark.planning.search import MethodChoice, lattice_size
from privrisk_spark.policy.anonymity import Besides, KAnonymityGuarantee
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts
from privrisk_spark.results.release import ChosenRule


@dataclass(frozen=True)
class ByRecoding(Decision):
    """All records by one scheme; those whose class does not meet what is asked are suppressed.

    Attributes
    ----------
    asked : KAnonymityGuarantee
        Its guarantee.
    """

    policy: Policy
    asked: KAnonymityGuarantee

    @property
    def unit(self) -> str:
        """What classes are counted in."""
        return "rows" if self.policy.table.entity_id is None else "persons"

    def choice(self, hierarchies: Hierarchies) -> MethodChoice:
        """Return the search of the schemes, or that one is given."""
        if self.asked.scheme is not None:
            return MethodChoice("approved scheme", "given by guarantee.scheme, and held against this table")
        if self.asked.local:
            return MethodChoice(self.asked.method, "each class has levels of its own; a heuristic for the cost")
        nodes = f"{lattice_size(hierarchies):,} schemes"
        return MethodChoice(self.asked.method, f"{nodes}, the least {self.asked.metric} of those within the limit")

    def procedure(self, hierarchies: Hierarchies) -> Recoding:
        """Return what is searched for, or applied.

        Raises
        ------
        ConfigError
            If the scheme that is given is not approved, or is of another guarantee or other hierarchies.
        InputError
            If there are more schemes than the method can go through.
        """
        if self.asked.scheme is not None:
            return Recoding(self.asked, approved_scheme(self.policy, hierarchies, self.asked.scheme))
        if not self.asked.local:
            refuse_many_schemes(self.asked.method, lattice_size(hierarchies))
        return Recoding(self.asked)

    def objective(self, *, risk: str) -> str:
        """Say what is asked of every class, and what is minimised."""
        del risk
        asked = self.asked
        every = " and ".join(asked_in_words(asked, self.unit))
        if asked.local:
            return (
                f"classes of alike records by '{asked.method}', every released one having {every}, with at most "
                f"{asked.suppression_limit:.6g} of the rows suppressed"
            )
        return (
            f"the level of each attribute that costs least by the metric '{asked.metric}', every released class having "
            f"{every}, with at most {asked.suppression_limit:.6g} of the rows suppressed"
        )

    def parameters(self) -> dict[str, object]:
        """Return k, what is asked besides, and how is searched."""
        asked = self.asked
        return {
            "k": asked.k,
            "counted": self.unit,
            **({"also": [_stated(part) for part in asked.also]} if asked.also else {}),
            "suppression_limit": asked.suppression_limit,
            "metric": asked.metric,
            "suppressed": asked.suppressed,
        }

    def statement(self, asked: str, measured: DecisionFacts, *, method: str, rule: ChosenRule | None) -> str:
        """Say what holds of every released class, and what of suppressed rows."""
        del asked, method
        assert rule is not None, "the scheme that was found is stated"
        every = " and ".join(asked_in_words(self.asked, self.unit))
        text = f"Every class of released rows that are alike in all quasi-identifiers has {every}."
        if measured.suppressed and self.asked.suppressed == "keep":
            text += (
                f" Not so the {measured.suppressed:,} suppressed rows: all their quasi-identifiers are suppressed, "
                "they are released together, and nothing is promised of their number or their other columns."
            )
        elif measured.suppressed:
            text += " Rows of classes that have not are left out."
        return text

    def contract(self, measured: DecisionFacts, released: ReleaseFacts) -> Iterator[tuple[FactRule, float]]:
        """Yield the limit of suppressed rows, and the least class in the files."""
        limit = self.asked.suppressed_at_most(measured.rows)
        text = f"at most {self.asked.suppression_limit:.6g} of the rows are suppressed"
        yield FactRule("suppressed rows", text, at_most=limit), measured.suppressed
        # Rows suppressed as wholes are a class of their own, of which nothing is promised.
        apart = measured.suppressed and self.asked.suppressed == "keep"
        least = released.min_telling_size if apart else released.min_class_size
        if released.rows and least is not None:
            text = f"every released class that is not suppressed has at least {self.asked.k:,} rows"
            yield FactRule("smallest released class", text, at_least=self.asked.k), least
        for words, classes in released.failing.items():
            text = f"every released class that is not suppressed has {words}"
            yield FactRule(f"classes without {words}", text, at_most=0), classes


def _stated(part: Besides) -> dict[str, object]:
    """What is published of a condition; a hierarchy of sensitive values is not."""
    return {name: one.model_dump(exclude_none=True, exclude={"hierarchy"}) for name, one in part.given.items()}


MOST_SCHEMES = 2**24
"""Nodes of the largest lattice a search holds a number of each of."""

_OF_ANY_SIZE = ("best", "top_down", "datafly")
"""Methods that hold no number of each node."""


def refuse_many_schemes(method: str, schemes: int) -> None:
    """Refuse a lattice whose nodes cannot be held.

    Raises
    ------
    InputError
    """
    if schemes > MOST_SCHEMES and method not in _OF_ANY_SIZE:
        raise InputError(
            f"guarantee.method: '{method}' goes through at most {MOST_SCHEMES:,} schemes, and the hierarchies "
            f"allow for {schemes:,}. Choose 'best', use hierarchies of fewer levels, or drop quasi-identifiers."
        )
