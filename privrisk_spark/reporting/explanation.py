"""What a run will do, as text, before it does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.ledger.calibrated import Calibrated, Choosing, OneScheme
from privrisk_spark.planning.as_published import AsPublished
from privrisk_spark.planning.assessment import carried
from privrisk_spark.planning.counting import PlanChoice, explained
from privrisk_spark.planning.decisions.registry import decision_of
from privrisk_spark.planning.disclosure import greatest_utility
from privrisk_spark.planning.proposals import scheme_table
from privrisk_spark.planning.search import lattice_size
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.guarantees import dp_guarantee


def explanation(
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    choices: Mapping[str, PlanChoice],
    plan: Calibrated | AsPublished | None,
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
    if isinstance(plan, AsPublished):
        lines += [plan.statement, *_named(plan.to_dict())]
    elif plan is not None:
        lines.append(plan.statement)
        lines += _named(dp_guarantee(plan).parameters)
        half, almost = plan.survival
        schemes = plan.candidates if isinstance(plan, Choosing) else plan.schemes
        frequent = None if isinstance(plan, OneScheme) else plan.frequent
        lines += scheme_table(policy, hierarchies, schemes, frequent=frequent, crowd=plan.crowd, survival=plan.survival)
        lines.append(f"a cell needs {half} rows to be released with probability 50 %, {almost} for 99 %")
    return "\n".join(lines)


def leaves_and_levels(name: str, hierarchy: Hierarchy) -> str:
    """Return how large a hierarchy is, and what its levels are called.

    Parameters
    ----------
    name : str
        Of the column.
    hierarchy : Hierarchy
    """
    levels = f"{hierarchy.height + 1} levels ({', '.join(hierarchy.level_names)})"
    return f"{name}: {hierarchy.n_leaves:,} leaves, {levels}"


def _named(parameters: Mapping[str, object], *, within: str = "") -> list[str]:
    """Parameters as lines; those of several parts a line for each part."""
    lines: list[str] = []
    for name, value in parameters.items():
        if isinstance(value, Mapping) and all(isinstance(part, Mapping) for part in value.values()):
            lines += _named(value, within=f"{within}{name}.")
        else:
            lines.append(f"{within}{name}: {value}")
    return lines


def assessment_explanation(
    policy: Policy, hierarchies: Mapping[str, Hierarchy], sets: Mapping[str, Sequence[str]], *, release: str | None
) -> str:
    """What an assessment will measure, as text.

    Parameters
    ----------
    policy : Policy
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
    how = ", masked, compared as values" if policy.guarantee.kind == "masked" else ""
    lines.append("release: " + ("none, the table alone" if release is None else f"{release}{how}"))
    fraction = assess.sampling_fraction
    people = "none" if fraction is None else f"estimated, sampling fraction {fraction:g}"
    lines.append("population: " + (people if assess.population is None else "a table"))
    lines.append("adversary: " + ("none" if assess.adversary is None else "as the policy assumes"))
    wanted = ", ".join(f"{name} {bound:g}" for name, bound in assess.thresholds.items())
    lines.append("thresholds: " + (wanted or "none"))
    return "\n".join(lines)
