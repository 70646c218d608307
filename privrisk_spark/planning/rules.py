"""Rules that a policy lists, as level vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.decisions import ListedRulesDecision


@dataclass(frozen=True)
class LevelRule:
    """A listed rule.

    Attributes
    ----------
    name : str
    levels : tuple of k int
        Of the quasi-identifiers in order; the height is ⊥.
    """

    name: str
    levels: tuple[int, ...]


def listed_rules(decision: ListedRulesDecision, hierarchies: Mapping[str, Hierarchy]) -> tuple[LevelRule, ...]:
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
