"""What a run will do, as text, before it does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.assessment import carried
from privrisk_spark.planning.counting import PlanChoice, explained
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.disclosure import greatest_utility
from privrisk_spark.planning.search import lattice_size
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.models.texts import texts_of


def explanation(
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    choices: Mapping[str, PlanChoice],
    plan: Any,
) -> str:
    """What a run will do and what it holds in memory, as text."""
    lines = [
        f"{name}: {h.n_leaves:,} leaves, {h.height + 1} levels ({', '.join(h.level_names)})"
        for name, h in hierarchies.items()
    ]
    lines.append(f"lattice: up to {lattice_size(hierarchies):,} nodes a record")
    for name, choice in choices.items():
        lines += explained(choice, name="the table itself" if policy.dictionary.kind == "self" else name)
    if policy.decides:
        decision = decision_of(policy)
        chosen = decision.choice(hierarchies)
        lines.append(decision.expectation(greatest_utility(policy, hierarchies)))
        lines.append(f"search: {chosen.method} ({chosen.reason})")
    elif plan is not None:
        lines += [plan.statement, *texts_of(policy.guarantee.kind).explain(policy, hierarchies, plan)]
    return "\n".join(lines)


def leaves_and_levels(name: str, hierarchy: Hierarchy) -> str:
    """Return how large a hierarchy is, and what its levels are called.

    Parameters
    ----------
    name : str
        Of the column.
    """
    levels = f"{hierarchy.height + 1} levels ({', '.join(hierarchy.level_names)})"
    return f"{name}: {hierarchy.n_leaves:,} leaves, {levels}"


def assessment_explanation(
    policy: Policy, hierarchies: Mapping[str, Hierarchy], sets: Mapping[str, Sequence[str]], *, release: str | None
) -> str:
    """What an assessment will measure, as text.

    Parameters
    ----------
    hierarchies : mapping of quasi-identifier to Hierarchy
    sets : mapping of name to quasi-identifiers
        Each measured by itself.
    release : str or None
        Title of the release the table is held against.
    """
    assess = policy.assess
    lines = [
        f"{name}: {h.n_leaves:,} leaves, {h.height + 1} levels ({', '.join(h.level_names)})"
        for name, h in hierarchies.items()
    ]
    lines += [f"set '{name}': {', '.join(columns)}" for name, columns in sets.items()]
    lines.append("sensitive: " + (", ".join(carried(policy)) or "none"))
    how = ", masked, compared as values" if not policy.guarantee.generalizes else ""
    lines.append("release: " + ("none, the table alone" if release is None else f"{release}{how}"))
    fraction = assess.sampling_fraction
    people = "none" if fraction is None else f"estimated, sampling fraction {fraction:g}"
    lines.append("population: " + (people if assess.population is None else "a table"))
    lines.append("adversary: " + ("none" if assess.adversary is None else "as the policy assumes"))
    wanted = ", ".join(f"{name} {bound:g}" for name, bound in assess.thresholds.items())
    lines.append("thresholds: " + (wanted or "none"))
    return "\n".join(lines)
