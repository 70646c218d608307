"""The one rule of a list, for the whole table, of least mean risk at a mean utility: Fouad 2012, Algorithm 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from privrisk_spark.errors import InputError
from privrisk_spark.planning.decisions.decision import Decision, Hierarchies
from privrisk_spark.planning.rules import BestListedRule, LevelRule
from privrisk_spark.planning.search import MethodChoice, refuse_unreachable
from privrisk_spark.policy.decisions import ListedRulesDecision
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.contract import FactRule
from privrisk_spark.results.facts import DecisionFacts, ReleaseFacts
from privrisk_spark.results.release import ChosenRule


@dataclass(frozen=True)
class ByListedRules(Decision):
    """All records by one rule of a list.

    Attributes
    ----------
    asked : ListedRulesDecision
        Its decision.
    """

    policy: Policy
    asked: ListedRulesDecision

    def choice(self, hierarchies: Hierarchies) -> MethodChoice:
        """Return that all rules are measured."""
        del hierarchies
        return MethodChoice("rules", f"each of {len(self.asked.rules):,} rules is measured over the whole table")

    def procedure(self, hierarchies: Hierarchies) -> BestListedRule:
        """Return the rules as level vectors; refuses a floor that no record can reach, so that none can be the mean."""
        rules = _level_rules(self.asked, hierarchies)
        refuse_unreachable(self.policy, hierarchies, self.asked.utility_at_least)
        return BestListedRule(rules, self.asked.utility_at_least)

    def objective(self, *, risk: str) -> str:
        """Say which rule is taken of how many, and what the mean is against several dictionaries."""
        asked = (
            f"of {len(self.asked.rules):,} listed ones that of least mean {risk} among those with a mean "
            f"{self.policy.utility.measure} utility of at least {self.asked.utility_at_least:g}"
        )
        if self.policy.dictionary.kind == "minimax":
            asked += "; the mean against each dictionary is taken, and the largest of these is the least there is"
        return asked

    def parameters(self) -> dict[str, object]:
        """Return the floor and the number of rules."""
        return {"utility_at_least": self.asked.utility_at_least, "rules": len(self.asked.rules)}

    def statement(self, asked: str, measured: DecisionFacts, *, method: str, rule: ChosenRule | None) -> str:
        """Say which rule was chosen."""
        del measured, method
        assert rule is not None, "the rule that was chosen is stated"
        return f"Every record is disclosed by the rule '{rule.name}', {asked}."

    def contract(self, measured: DecisionFacts, released: ReleaseFacts) -> Iterator[tuple[FactRule, float]]:
        """Yield the floor of the mean utility."""
        del released
        floor = self.asked.utility_at_least
        # For sums of weights that differ in their last bits.
        slack = 1e-9 * max(1.0, abs(floor))
        rule = FactRule("mean utility", f"the mean utility is at least {floor:g}", at_least=floor - slack)
        yield rule, measured.utility.mean


def _level_rules(decision: ListedRulesDecision, hierarchies: Hierarchies) -> tuple[LevelRule, ...]:
    """Resolve the listed rules to level vectors.

    Raises
    ------
    InputError
        If a level is above its hierarchy, or two rules are the same.
    """
    result: list[LevelRule] = []
    for i, given in enumerate(decision.rules):
        levels = []
        for name, hierarchy in hierarchies.items():
            level = hierarchy.height if name in given.suppress else given.levels.get(name, 0)
            if level > hierarchy.height:
                raise InputError(
                    f"decision.rules.{i}.levels.{name}: must be at most {hierarchy.height}, the height of the "
                    f"hierarchy. Got {level}."
                )
            levels.append(level)
        same = [j for j, rule in enumerate(result) if rule.levels == tuple(levels)]
        if same:
            raise InputError(f"decision.rules.{i}: repeats decision.rules.{same[0]}; give each rule once.")
        result.append(LevelRule(given.name or str(i + 1), tuple(levels)))
    return tuple(result)
