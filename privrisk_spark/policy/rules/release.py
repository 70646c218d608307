"""Rules of a policy that take several keys together; each fault names the key to mend."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import replace

from privrisk_spark.errors import Fault, listing, nearest
from privrisk_spark.policy.dictionaries import (
    DictionaryTable,
    EstimatedDictionary,
    SelfEstimate,
    SeveralDictionaries,
)
from privrisk_spark.policy.policy import Identifier, Insensitive, Policy, Sensitive, WeightColumn
from privrisk_spark.policy.rules.assessment import impossible_assessment
from privrisk_spark.policy.rules.decisions import impossible_decision, impossible_where_similar
from privrisk_spark.policy.rules.history import impossible_history
from privrisk_spark.policy.rules.partitions import impossible_partitions
from privrisk_spark.policy.rules.places import (
    dictionary_tables,
    impossible_scratch,
    impossible_sources,
    impossible_targets,
)
from privrisk_spark.policy.rules.unused import find_unused_keys
from privrisk_spark.policy.sections import sections_of
from privrisk_spark.policy.sensitivity import (
    InteractionSensitivity,
    LinearSensitivity,
    RecordSensitivity,
    SensitivityPolicy,
    WeighedSensitivity,
)
from privrisk_spark.policy.values import Reading
from privrisk_spark.registry import EXTENSIONS, MODELS, Extension, load


def impossible(policy: Policy, *, releasing: bool = True, partial: bool = False) -> Iterable[Fault]:
    """Yield the faults of rules that take several keys together.

    Parameters
    ----------
    releasing : bool
        Demand what a release needs.
    partial : bool
        Whether keys with faults are left out of the policy: a rule ends where it reads such a key.
    """
    of_release = (_impossible_undecided, _impossible_release)
    for rule in (*_RULES, *(of_release if releasing else ())):
        with suppress(AttributeError) if partial else nullcontext():
            yield from rule(policy)


def _find_faults_of(extension: Extension, policy: Policy) -> Iterable[Fault]:
    """Yield the faults of the section that an extension declares."""
    if extension.section in sections_of(policy):
        yield from extension.load("rules", "find_faults")(policy)


def _impossible_checks(policy: Policy) -> Iterable[Fault]:
    rows = policy.checks.row_count
    if rows.at_most is not None and rows.at_most < rows.at_least:
        yield Fault("checks.row_count.at_most", f"must be at least at_least = {rows.at_least}. Got {rows.at_most}")


def _impossible_output(policy: Policy) -> Iterable[Fault]:
    output = policy.output
    if output is not None:
        if output.quote_formulas and output.format != "csv":
            yield Fault("output.quote_formulas", f"is only used by the format 'csv', and it is '{output.format}'")
        yield from impossible_partitions(policy, output)


def _impossible_decision(policy: Policy) -> Iterable[Fault]:
    if policy.decision is not None:
        yield from impossible_decision(policy, policy.decision)


def _impossible_guarantee(policy: Policy) -> Iterable[Fault]:
    guarantee = policy.guarantee
    entry = MODELS[guarantee.kind].rules
    for fault in load(entry)(policy, guarantee) if entry is not None else ():
        elsewhere = guarantee.guide_elsewhere is not None and not fault.path.startswith(("guarantee", "ledger"))
        yield replace(fault, guide=guarantee.guide_elsewhere) if elsewhere else fault


def _impossible_release(policy: Policy) -> Iterable[Fault]:
    if policy.output is None:
        yield Fault("output", "is required to release; write output: {path: …, vault: …}")
    if policy.decision is None and "decision" not in policy.guarantee.unused:
        kind = policy.guarantee.kind
        yield Fault("decision", f"is required when guarantee.kind is '{kind}'; write decision: {{utility_at_least: …}}")


def _impossible_columns(policy: Policy) -> Iterable[Fault]:
    quasi = list(policy.quasi_identifiers)
    if not quasi:
        yield Fault("columns", "at least one column must have the role 'quasi-identifier', and none has")
    record_id = policy.table.record_id
    if record_id is not None:
        column = policy.columns.get(record_id)
        if column is None:
            hint = nearest(record_id, list(policy.columns))
            yield Fault(
                "table.record_id", f"'{record_id}' is not among columns{hint}; add {record_id}: {{role: identifier}}"
            )
        elif not isinstance(column, Identifier):
            yield Fault(
                f"columns.{record_id}.role", f"must be 'identifier', as it is table.record_id. Got '{column.role}'"
            )
    sensitivity = policy.risk.sensitivity
    if policy.risk.model == "II" and sensitivity != LinearSensitivity():
        yield Fault("risk.sensitivity", "is not used by model 'II', which is the identification probability alone")
    mentions: list[tuple[str, Iterable[str]]] = [
        *_weighed_names(sensitivity),
        ("utility.weights", policy.utility.weights),
        ("dictionary.similar", policy.dictionary.similar),
        *[(f"{key}.columns", table.columns) for key, table in dictionary_tables(policy)],
    ]
    for key, name in (("table.entity_id", policy.table.entity_id), ("table.weight", policy.table.weight)):
        if name is not None and name not in policy.columns:
            role = "identifier" if key == "table.entity_id" else "weight"
            hint = nearest(name, list(policy.columns))
            yield Fault(key, f"'{name}' is not among columns{hint}; add {name}: {{role: {role}}}")
    if policy.table.weight is not None and policy.table.weight in policy.columns:
        of_weight = policy.columns[policy.table.weight]
        if not isinstance(of_weight, WeightColumn):
            at = f"columns.{policy.table.weight}.role"
            yield Fault(at, f"must be 'weight', as it is table.weight. Got '{of_weight.role}'")
    if policy.table.entity_id is not None and policy.table.entity_id in policy.columns:
        of_entity = policy.columns[policy.table.entity_id]
        if not isinstance(of_entity, Identifier):
            at = f"columns.{policy.table.entity_id}.role"
            yield Fault(at, f"must be 'identifier', as it is table.entity_id. Got '{of_entity.role}'")
        if policy.table.entity_id == policy.table.record_id:
            yield Fault("table.entity_id", "must be another column than table.record_id: one person, several rows")
    for name, column in policy.columns.items():
        if isinstance(column, Sensitive | Insensitive) and column.release is not None and column.action == "drop":
            yield Fault(f"columns.{name}.release", "is only used by columns that are kept, and action is 'drop'")
    for path, mapping in mentions:
        for name in mapping:
            if name not in quasi:
                there = f"; there are {listing(quasi)}" if quasi else ""
                yield Fault(f"{path}.{name}", f"is not a quasi-identifier{nearest(name, quasi)}{there}")


def _unknown_undecided(policy: Policy) -> Iterable[Fault]:
    names = list(policy.columns)
    for i, name in enumerate(policy.undecided):
        if name not in policy.columns:
            rule = f"there is no such column under columns{nearest(name, names)}. Got '{name}'"
            yield Fault(f"undecided.{i}", f"{rule}. Fix: remove it from the list")


def _impossible_undecided(policy: Policy) -> Iterable[Fault]:
    waiting = [name for name in policy.undecided if name in policy.columns]
    if waiting:
        yield Fault(
            "undecided",
            f"nobody has confirmed what is proposed for {listing(waiting)}. Fix: check the role and the hierarchy of "
            "each, and remove it from the list; to release by the proposals as they are, give --accept-undecided "
            "(Python: accept_undecided=True)",
        )


def _weighed_names(sensitivity: SensitivityPolicy) -> list[tuple[str, Iterable[str]]]:
    """Keys of the sensitivity under which quasi-identifiers are named, with the names."""
    if not isinstance(sensitivity, WeighedSensitivity):
        return []
    return [
        ("risk.sensitivity.weights", sensitivity.weights),
        ("risk.sensitivity.node_weights", sensitivity.node_weights),
        ("risk.sensitivity.personal.columns", sensitivity.personal.columns if sensitivity.personal else {}),
    ]


def _impossible_interactions(policy: Policy, sensitivity: InteractionSensitivity) -> Iterable[Fault]:
    at = "risk.sensitivity.interactions"
    quasi = list(policy.quasi_identifiers)
    first: dict[frozenset[str], int] = {}
    for i, given in enumerate(sensitivity.interactions):
        for j, name in enumerate(given.columns):
            if name not in quasi:
                hint = nearest(name, quasi)
                yield Fault(
                    f"{at}.{i}.columns.{j}", f"'{name}' is not a quasi-identifier{hint}; there are {listing(quasi)}"
                )
        if len(set(given.columns)) < len(given.columns):
            yield Fault(f"{at}.{i}.columns", "names a column twice; an interaction is of different columns")
        before = first.setdefault(frozenset(given.columns), i)
        if before != i:
            yield Fault(f"{at}.{i}", f"repeats {at}.{before}; give each set of columns once")
    personal = sensitivity.personal
    if personal is not None:
        for key in ("sum_to", "at_most"):
            if getattr(personal, key) is not None:
                yield Fault(
                    f"risk.sensitivity.personal.{key}",
                    "normalizes a sum of weights, and the form 'interaction' has weights beyond that; leave it out",
                )


def _impossible_sensitivity(policy: Policy) -> Iterable[Fault]:
    sensitivity, at = policy.risk.sensitivity, "risk.sensitivity"
    if isinstance(sensitivity, InteractionSensitivity):
        yield from _impossible_interactions(policy, sensitivity)
    personal = sensitivity.personal if isinstance(sensitivity, WeighedSensitivity) else None
    readers: list[tuple[str, str]] = []
    if personal is not None:
        readers += [(f"{at}.personal.columns.{name}", column) for name, column in personal.columns.items()]
        readers += [(f"{at}.personal.factor", personal.factor)] if personal.factor is not None else []
    if isinstance(sensitivity, RecordSensitivity) and sensitivity.record is not None:
        readers.append((f"{at}.record", sensitivity.record))
    for path, name in readers:
        if not isinstance(policy.columns.get(name), WeightColumn):
            hint = "" if name in policy.columns else nearest(name, list(policy.columns))
            yield Fault(path, f"'{name}' must be mentioned under columns with the role 'weight'{hint}")
    used = {*policy.weight_columns, policy.table.weight}
    used.update(name for section in sections_of(policy).values() for name in section.weight_columns)
    for name, column in policy.columns.items():
        if isinstance(column, WeightColumn) and name not in used:
            yield Fault(
                f"columns.{name}.role",
                "is 'weight', but neither risk.sensitivity nor table.weight uses the column; choose another role",
            )
    if isinstance(sensitivity, WeighedSensitivity) and personal is not None:
        if (personal.sum_to or personal.at_most) and any(w == float("inf") for w in sensitivity.weights.values()):
            yield Fault("risk.sensitivity.weights", "must be finite where personal weights are normalized")
        if personal.sum_to is not None and personal.at_most is not None:
            yield Fault(f"{at}.personal", "takes sum_to or at_most, not both")
        if not personal.columns and personal.factor is None:
            yield Fault(f"{at}.personal", "needs columns or factor: the columns of the table that hold the weights")


def _impossible_dictionaries(policy: Policy) -> Iterable[Fault]:
    given = policy.dictionary
    similar = given.consistency == "similar"
    if similar and not given.similar:
        yield Fault(
            "dictionary.similar", "must name at least one quasi-identifier and its threshold, such as {name: 0.8}"
        )
    if given.similar and not similar:
        yield Fault("dictionary.similar", f"is only used by the consistency 'similar', and it is '{given.consistency}'")
    if isinstance(given, SeveralDictionaries):
        names = [member.name for member in given.members]
        for i, member in enumerate(given.members):
            at = f"dictionary.members.{i}"
            if member.name in names[:i]:
                yield Fault(f"{at}.name", f"'{member.name}' is the name of another member; give each its own")
            if given.kind == "bayes" and member.prior is None:
                yield Fault(f"{at}.prior", "is required by the kind 'bayes': the probability of this dictionary")
            if given.kind == "minimax" and member.prior is not None:
                yield Fault(f"{at}.prior", "is only used by the kind 'bayes'; 'minimax' takes the worst; leave it out")
        priors = [member.prior for member in given.members]
        total = sum(prior for prior in priors if prior is not None)
        if given.kind == "bayes" and None not in priors and abs(total - 1) > 1e-9:
            yield Fault("dictionary.members", f"the priors must sum to 1. They sum to {total:g}")
        if sum(member.kind == "self" for member in given.members) > 1:
            yield Fault("dictionary.members", "at most one member may be the table itself")
    if isinstance(given, EstimatedDictionary):
        if given.consistency != "compatible":
            yield Fault(
                "dictionary.consistency",
                "must be 'compatible' with the kind 'estimated': the bound of the estimate is proved for it alone. "
                f"Got '{given.consistency}'",
            )
        if given.against is not None and isinstance(given.estimate, SelfEstimate) and policy.table.record_id is None:
            yield Fault("table.record_id", "is required where dictionary.against is held against the table itself")
    if policy.decision is not None:
        yield from impossible_where_similar(policy, policy.decision)


def _impossible_counting(policy: Policy) -> Iterable[Fault]:
    plan, similar = policy.counting.plan, policy.dictionary.consistency == "similar"
    if plan == "iceberg" and not policy.guarantee.counts_frequent:
        yield Fault(
            "counting.plan",
            "'iceberg' counts only cells with at least t rows, which nothing but the guarantee dp in mode "
            "'public-dictionary' asks for; choose another plan",
        )
    if similar and plan in ("sorted", "iceberg"):
        yield Fault(
            "counting.plan",
            f"'{plan}' needs a consistency that follows the hierarchy; 'similar' takes dense or shuffle",
        )
    entities = [
        one.key
        for one in policy.dictionaries
        if (policy.table.entity_id if one.table is None else one.table.entity_id) is not None
    ]
    if entities and similar and plan in ("dense", "sorted"):
        yield Fault(
            "counting.plan",
            f"'{plan}' cannot count distinct persons under the consistency 'similar'; choose 'shuffle' or 'auto'",
        )
    if entities and similar and len(policy.dictionaries) > 1:
        yield Fault(
            "dictionary.members",
            "an entity_id is not available with several dictionaries under the consistency 'similar'; give one row "
            "per person",
        )
    for key, table in dictionary_tables(policy):
        yield from _impossible_readings(key, table)
        if table.entity_id is not None and table.weight is not None:
            yield Fault(f"{key}.weight", "counts people per row and entity_id rows per person; give one of them")


def _impossible_readings(key: str, table: DictionaryTable) -> Iterable[Fault]:
    """One column is read in one way, whoever asks for it."""
    first: dict[str, tuple[str, Reading | None]] = {}
    for name, given in table.columns.items():
        column, read = (given, None) if isinstance(given, str) else (given.column, given.read)
        before, reading = first.setdefault(column, (name, read))
        if reading != read:
            yield Fault(
                f"{key}.columns.{name}",
                f"reads the column '{column}' otherwise than {key}.columns.{before}; give both the same 'read'",
            )


def _impossible_linkage(policy: Policy) -> Iterable[Fault]:
    linkage = policy.linkage
    if linkage is None or "decision" in policy.guarantee.unused:
        return
    if policy.table.record_id is None:
        yield Fault("table.record_id", "is required with linkage, whose rows name records")
    refusals = {
        f"takes one dictionary, and dictionary.kind is '{policy.dictionary.kind}'": len(policy.dictionaries) > 1,
        "is not available under the consistency 'similar'": policy.dictionary.consistency == "similar",
        "is not available where a dictionary's entity_id makes counts those of distinct persons": any(
            (policy.table.entity_id if one.table is None else one.table.entity_id) is not None
            for one in policy.dictionaries
        ),
    }
    refused = [reason for reason, applies in refusals.items() if applies]
    if refused:
        yield Fault("linkage", f"{'; '.join(refused)}; leave it out")
    if policy.counting.plan == "shuffle":
        yield Fault(
            "counting.plan",
            "must be 'auto', 'dense' or 'sorted' with linkage, which looks records up in held counts. Got 'shuffle'",
        )
    sensitivity, own = policy.risk.sensitivity, policy.dictionaries[0].table is None
    personal = sensitivity.personal if isinstance(sensitivity, WeighedSensitivity) else None
    if personal is not None and (personal.sum_to or personal.at_most) is not None:
        yield Fault(
            "risk.sensitivity.personal",
            "must not be normalized (sum_to, at_most) with linkage: an added attribute would lower the other weights",
        )
    weighed = policy.risk.model != "II" and isinstance(sensitivity, WeighedSensitivity)
    for name, added in linkage.columns.items():
        if name in policy.columns:
            yield Fault(f"linkage.columns.{name}", "is a column of the table; linkage adds what the table lacks")
        if added.dictionary is not None and own:
            yield Fault(
                f"linkage.columns.{name}.dictionary", "the dictionary is the table itself, which lacks the attribute"
            )
        if added.weight != 1 and not weighed:
            yield Fault(
                f"linkage.columns.{name}.weight",
                "is only used by the models 'I' and 'III' with the form 'linear' or 'multiplicative' or 'interaction'; "
                "leave it out",
            )


def _impossible_completeness(policy: Policy) -> Iterable[Fault]:
    asked = policy.checks.complete
    if asked is None:
        return
    if asked.marker is None and asked.rows_at_least is None and asked.written_within_days is None:
        yield Fault(
            "checks.complete", "says nothing; give marker, rows_at_least or written_within_days, or leave it out"
        )
    if policy.table.catalog is not None or policy.table.lake is not None:
        for name, given in (("marker", asked.marker), ("written_within_days", asked.written_within_days)):
            if given is not None:
                yield Fault(
                    f"checks.complete.{name}",
                    "needs a table.path of plain files, which are looked at; of a table of a catalog, of Delta or "
                    "Iceberg only rows_at_least is known",
                )


_RULES: tuple[Callable[[Policy], Iterable[Fault]], ...] = (
    _impossible_columns,
    _unknown_undecided,
    _impossible_sensitivity,
    _impossible_dictionaries,
    _impossible_counting,
    _impossible_linkage,
    impossible_history,
    impossible_sources,
    impossible_scratch,
    impossible_targets,
    impossible_assessment,
    *(functools.partial(_find_faults_of, one) for one in EXTENSIONS),
    _impossible_completeness,
    _impossible_checks,
    _impossible_decision,
    _impossible_output,
    find_unused_keys,
    _impossible_guarantee,
)
