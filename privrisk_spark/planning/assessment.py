"""What an assessment reads of a policy: its columns, its dictionary, and the sets of quasi-identifiers it measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from privrisk_spark.errors import InputError
from privrisk_spark.policy.assessment import Detection, Population
from privrisk_spark.policy.dictionaries import SelfDictionary, TableDictionary
from privrisk_spark.policy.guarantees import RiskGuarantee, model_of
from privrisk_spark.policy.policy import Insensitive, Policy, RiskPolicy, WeightColumn
from privrisk_spark.policy.policy import Sensitive as SensitiveColumn
from privrisk_spark.results.assessment import Assumption

POPULATION = "assess.population"
RELEASE = "assess.release"
"""Keys of the policy, for messages."""

ALL = "all"
"""Name of the set of all quasi-identifiers."""


def sets_of(policy: Policy) -> dict[str, list[str]]:
    """Return the sets of quasi-identifiers that are measured, each by itself."""
    return policy.assess.sets or {ALL: list(policy.quasi_identifiers)}


def carried(policy: Policy) -> list[str]:
    """Columns whose values the classes hold: the sensitive ones, then the label if it is none of them."""
    names = [name for name, column in policy.columns.items() if isinstance(column, SensitiveColumn)]
    label = policy.assess.label
    return names + ([label] if label is not None and label not in names else [])


def narrowed(policy: Policy) -> Policy:
    """Return the policy by which the table is read: what is measured is carried, and nothing is decided."""
    population = policy.assess.population
    dictionary = SelfDictionary(consistency="compatible") if population is None else population_dictionary(population)
    # Numbers that are masked are read again as values, and their quasi-identifiers have no action.
    numbers = () if not policy.guarantee.generalizes else policy.assess.intervals
    kept, household = [*carried(policy), *numbers], policy.assess.household
    if household is not None:
        # An identifier cannot be kept; to read it, it is like any other column.
        named = Insensitive(role="insensitive", read=getattr(policy.columns[household], "read", None))
        columns = policy.columns if household in kept else {**policy.columns, household: named}
        policy, kept = policy.model_copy(update={"columns": columns}), [*kept, household]
    return reading_only(policy, kept, dictionary)


def refuse_other_kind(policy: Policy, manifest: Mapping[str, Any] | None) -> None:
    """Refuse a release of ours that this policy could not have made: one is of values that are masked, one of labels.

    Raises
    ------
    InputError
        Naming both kinds.
    """
    if manifest is not None and model_of(manifest).generalizes != policy.guarantee.generalizes:
        raise InputError(
            f"{RELEASE}: release {manifest['run_id']} is of the kind '{manifest['guarantee']['kind']}', and "
            f"guarantee.kind is '{policy.guarantee.kind}'; assess it by the policy it was made with."
        )


def refuse_masks_of_another(policy: Policy, manifest: Mapping[str, Any]) -> None:
    """Refuse masks that are not those of a release: numbers, and what is claimed of them, would be others.

    Parameters
    ----------
    policy : Policy
        Of the kind 'masked'.
    manifest : mapping
        Of a release of ours.

    Raises
    ------
    InputError
        Naming a column, or both kinds.
    """
    refuse_other_kind(policy, manifest)
    released = {column["name"]: column["released"] for column in manifest["columns"]}
    for name, mask in policy.masks.items():
        if released.get(name) != mask.declared():
            raise InputError(
                f"columns.{name}.mask: is not the mask that release {manifest['run_id']} was made with; give it as it "
                "was, or release again."
            )


def reading_only(
    policy: Policy, kept: Sequence[str], dictionary: SelfDictionary | TableDictionary | None = None
) -> Policy:
    """Return a policy by which a table is read and nothing is decided.

    Parameters
    ----------
    kept : sequence of str
        Columns to carry besides the quasi-identifiers.
    dictionary : SelfDictionary or TableDictionary, optional
        What records are held against; by default the table itself.
    """
    columns: dict[str, Any] = {}
    for name, given in policy.columns.items():
        action = getattr(given, "action", None)
        if isinstance(given, WeightColumn):
            columns[name] = given.model_copy(update={"release": False})
        elif name in kept:
            columns[name] = given.model_copy(update={"action": "keep"})
        elif action == "keep":
            columns[name] = given.model_copy(update={"action": "drop"})
        else:
            columns[name] = given
    against = SelfDictionary(consistency="compatible") if dictionary is None else dictionary
    changed = {"columns": columns, "dictionary": against, "risk": RiskPolicy(), "guarantee": RiskGuarantee()}
    return policy.model_copy(update={**changed, "decision": None, "linkage": None, "output": None})


_MONEY = frozenset({"gain", "penalty", "cost_access", "cost_link", "cost_exploit"})


def assumptions_of(policy: Policy) -> tuple[Assumption, ...]:
    """Return what the policy assumes of the adversary, if it has one."""
    adversary = policy.assess.adversary
    if adversary is None:
        return ()
    found = []
    for name, field in type(adversary).model_fields.items():
        given, value = name in adversary.model_fields_set, getattr(adversary, name)
        if isinstance(value, Detection):
            for part, of in type(value).model_fields.items():
                said = given and part in value.model_fields_set
                found.append(Assumption(f"{name} {part}", getattr(value, part), "", of.description or "", said))
            continue
        unit = adversary.currency if name in _MONEY else ""
        shown = "as many as are detected" if name == "fines" and value is None else value
        found.append(Assumption(name.replace("_", " "), shown, unit, field.description or "", given))
    return tuple(found)


def population_dictionary(population: Population) -> TableDictionary:
    """Return the population as the dictionary the table is held against."""
    fields = {name: getattr(population, name) for name in Population.model_fields}
    return TableDictionary(kind="table", consistency="compatible", **fields).at(population.pinned)


def predicts_values(policy: Policy) -> bool:
    """Return True if classifiers learn from values before and after: of a masked release that holds the label."""
    asked = policy.assess
    masked = asked.release is not None and not policy.guarantee.generalizes
    return masked and asked.classifiers is not None and asked.label in policy.kept_columns
