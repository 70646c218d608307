"""One scheme for the whole table, found on the driver by the counts of distinct records, and applied where rows are.

Collected are the distinct records of the table with their rows, with how often each sensitive value is in them that
something is asked of, and, where persons are counted, with who is in several of them, or holds a value in several: all
as far as the plan ``sorted`` of counting may (``counting.sorted_vectors``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import isfinite, prod
from typing import Any

import numpy as np
import pyarrow as pa

from privrisk_spark.claims import Status
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.engine.decided import Decide, Decided, integers
from privrisk_spark.engine.grounds import grounds_of, missing_codes
from privrisk_spark.engine.stored_levels import StoredLevels
from privrisk_spark.engine.vectors import collect_records
from privrisk_spark.errors import CheckError, InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LevelArray
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.holders import Held
from privrisk_spark.kernels.recoding.listed import keys_of
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.population import Population, reached
from privrisk_spark.kernels.recoding.problem import Problem, Scheme
from privrisk_spark.kernels.recoding.searches import ENUMERATED, SEARCHES
from privrisk_spark.kernels.search.rules import decide_at, generalizing
from privrisk_spark.planning.recoding import conditions, sensitive_of, shares_of
from privrisk_spark.planning.rules import Recoding
from privrisk_spark.planning.schemes import drift, refuse_other_population
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.schemes import FittedPartition
from privrisk_spark.results.release import ChosenRule, Section
from privrisk_spark.stages.deciding.exposure import Rows
from privrisk_spark.stages.deciding.holdings import collect_holders, collect_persons, collect_values, refuse_no_order
from privrisk_spark.stages.deciding.local import local_section, partitioned
from privrisk_spark.stages.deciding.mondrian import collect_partition
from privrisk_spark.stages.deciding.rules import Meeting, RuleInputs
from privrisk_spark.stages.deciding.unmet import broken, impossible, refuse_few, refuse_nothing


def collect_recoding(inputs: RuleInputs, encoded: Batches, rule: Recoding) -> tuple[Batches, Decide, ChosenRule]:
    """Find the scheme of a table, and decide every row by it.

    Parameters
    ----------
    encoded : Batches
        The table, resolved.

    Returns
    -------
    rows : Batches
    decide_chunk : Decide
        Gives a chunk of the rows its decisions; says which rows are suppressed.
    chosen : ChosenRule
        The scheme.

    Raises
    ------
    CheckError
        If no scheme meets what is asked, or the given one does not; or nothing would be released.
    InputError
        If there are more distinct records than the driver may hold, or a sensitive column has nested values.
    """
    asked = rule.asked
    if stays_in_tasks(inputs.policy, asked, inputs.rows):
        leaves = [hierarchy.n_under for hierarchy in inputs.hierarchies.values()]
        ordered = [name in asked.ordered for name in inputs.hierarchies]
        spread = collect_partition(
            inputs.scratch, encoded, inputs.disclosure, leaves, asked.k, ordered=ordered, rows=inputs.rows
        )
        refuse_few(spread.facts.rows, asked)
        refuse_nothing(spread.facts, asked)
        lost = bool(spread.facts.suppressed)
        rows, decide_chunk = _collect_decided(inputs, spread.rows)
        section = local_section(METRICS[asked.metric], asked, spread.facts)
        return (
            rows,
            _suppressing(asked, decide_chunk, lambda codes: np.full(len(codes), lost)),
            ChosenRule(asked.method, {}, section),
        )
    problem = collect_problem(inputs, encoded, rule)
    if asked.local:
        stored, chosen = partitioned(inputs, problem, rule)
    else:
        scheme, chosen = chosen_scheme(inputs, problem, rule)
        stored = _stored(inputs, problem, scheme)

    disclosure = inputs.disclosure

    def levels_of(_: pa.Table, rows: Rows) -> LevelArray:
        return generalizing(disclosure, rows.codes, stored.of(rows.codes)[0])

    rows, decide_chunk = _collect_decided(inputs, inputs.reader.with_chosen(encoded, levels_of))
    return rows, _suppressing(asked, decide_chunk, lambda codes: stored.of(codes)[1]), chosen


def stays_in_tasks(policy: Policy, asked: KAnonymityGuarantee, rows: int | None) -> bool:
    """Whether no distinct record comes to the driver, as is asked or as it may hold fewer than there are rows.

    Tasks add up rows, and do not know persons. The classes are the same.
    """
    spread = asked.method == "mondrian" and not asked.also and asked.scheme is None and policy.table.entity_id is None
    many = rows is not None and rows > policy.counting.sorted_vectors
    return spread and (policy.counting.plan == "shuffle" or many)


def _collect_decided(inputs: RuleInputs, rows: Batches) -> tuple[Batches, Decide]:
    """Evaluate the levels ``x<i>`` of rows."""
    disclosure = inputs.disclosure

    def evaluated(attacker: Attacker, rows: Rows, levels: LevelArray) -> Decisions:
        return decide_at(disclosure, attacker, rows.codes, levels, **rows.given)

    return Meeting.collect_by_plan(inputs, rows, lambda _, levels: [levels]).decided(evaluated, gaps=False)


def _suppressing(asked: KAnonymityGuarantee, decide: Decide, suppressed: Callable[[IntArray], BoolArray]) -> Decide:
    """Say of decisions which rows are suppressed, and leave them out if that is asked."""
    drop = asked.suppressed == "drop"

    def decide_chunk(table: pa.Table) -> Decided:
        found = decide(table)
        lost = suppressed(integers(table, schemas.codes(found.decisions.levels.shape[1])))
        return replace(found, suppressed=lost, kept=found.kept & ~lost if drop else found.kept)

    return decide_chunk


def chosen_scheme(inputs: RuleInputs, problem: Problem, rule: Recoding) -> tuple[Scheme, ChosenRule]:
    """Search for the best scheme, or hold the given one against the table; and say what is known of it.

    Raises
    ------
    CheckError
        If no scheme meets what is asked, or the given one does not; or nothing would be released.
    """
    asked, given = rule.asked, rule.given
    assert not isinstance(given, FittedPartition), "it has no one scheme"
    if given is None:
        found = SEARCHES[asked.method](problem)
        if found is None:
            raise CheckError(impossible(problem, asked))
        refuse_nothing(found.facts, asked)
        return found, ChosenRule(_named(found), _levels(inputs, found), _section(inputs, problem, found))
    if asked.asks_population:
        refuse_other_population(given, _stored_people(inputs).population)
    levels = {column.name: column.level for column in given.columns}
    held = problem.scheme(tuple(levels[name] for name in inputs.hierarchies))
    if not problem.keeps_limit(held.facts):
        classes = problem.measured.table.classes(held.levels)
        raise CheckError(broken(problem, asked, given, problem.conditions, classes, held.facts))
    refuse_nothing(held.facts, asked)
    small = prod(problem.measured.table.lattice.shape) <= ENUMERATED
    best = SEARCHES["best"](problem) if small else None
    drifted = drift(given, held.facts)
    drifted["best"] = None if best is None else {"levels": list(best.levels), "value": best.value}
    section = _section(inputs, problem, held, drifted)
    return held, ChosenRule(_named(held), _levels(inputs, held), section)


def collect_problem(inputs: RuleInputs, encoded: Batches, rule: Recoding) -> Problem:
    """Count the distinct records of a table on the driver, and say what is asked of its schemes; errors as above."""
    asked, hierarchies, disclosure = rule.asked, inputs.hierarchies, inputs.disclosure
    k, most, kept = len(hierarchies), inputs.policy.counting.sorted_vectors, inputs.policy.kept_columns
    names = schemas.codes(k)
    vectors, counts = collect_records(encoded, k, most=most, rows=inputs.rows)
    keys, distributions, texts = keys_of(vectors), {}, {}
    held: list[Held] = []
    persons, holding = None, []
    if schemas.ENTITY in encoded.schema.fieldNames():
        persons, holding = collect_persons(encoded, names, keys, most=most), shares_of(asked)
    for column in sensitive_of(asked):
        released = schemas.released(len(kept))[kept.index(column)]
        refuse_no_order(encoded, released, column)
        if persons is not None and column in holding:
            who, texts[column], total = collect_holders(encoded, names, released, keys, persons, most=most)
            held.append(who)
        else:
            runs, texts[column], total = collect_values(encoded, names, released, keys, most=most)
            held.append(runs)
        distributions[column] = TableDistribution(total)
    table = FullDomain.of(disclosure.ancestor, vectors, counts, held, persons)
    leaves = [one.n_under[of] for one, of in zip(hierarchies.values(), disclosure.ancestor, strict=True)]
    refuse_few(table.rows, asked)
    limit = asked.suppressed_at_most(table.rows)
    people = _population(inputs, table) if asked.asks_population else None
    held_to = conditions(
        asked, distributions, grounds_of(asked, texts), people, persons=holding, missing=missing_codes(texts)
    )
    return Problem(Measured.of(table, leaves), held_to, METRICS[asked.metric], limit)


def _population(inputs: RuleInputs, table: FullDomain) -> Population:
    """Look classes up among the people of the dictionary."""
    counts = _stored_people(inputs)
    return Population.counted(counts.load(), counts.axes, table.vectors)


def _stored_people(inputs: RuleInputs) -> StoredCounts:
    """Counts of the dictionary whose people classes are held against.

    Raises
    ------
    InputError
        Where only tasks see them.
    """
    (counts,) = inputs.counted
    if not isinstance(counts, StoredCounts):
        raise InputError(
            "counting.plan: the dictionary was counted by 'shuffle', and k_map and delta_presence look it up on the "
            "driver; raise counting.sorted_vectors if the driver has the memory, or use coarser hierarchies."
        )
    return counts


def _people(inputs: RuleInputs, problem: Problem, scheme: Scheme) -> dict[str, Any]:
    """What the people of the dictionary come to in the released classes, and which people these are."""
    counts, table = _stored_people(inputs), problem.measured.table
    classes = table.classes(scheme.levels)
    fewest, share = reached(classes.only(np.flatnonzero(problem.released(classes))), _population(inputs, table))
    return {
        "people": {"fewest": fewest, "greatest_share": share},
        "population": {"digest": counts.population, "people": counts.dictionary_rows},
    }


def _stored(inputs: RuleInputs, problem: Problem, scheme: Scheme) -> StoredLevels:
    """Keep the scheme where tasks find it, with the distinct records whose class is not released."""
    table = problem.measured.table
    suppressed = problem.suppressed(scheme.levels)
    heights = tuple(hierarchy.height for hierarchy in inputs.hierarchies.values())
    return StoredLevels.of_scheme(scheme.levels, table.vectors[suppressed], heights, inputs.scratch.directory("scheme"))


def _said(name: str, value: float | None) -> dict[str, str | int | float]:
    return {name: "of no class" if value is None else value}


def _named(scheme: Scheme) -> str:
    return "(" + ", ".join(map(str, scheme.levels)) + ")"


def _levels(inputs: RuleInputs, scheme: Scheme) -> dict[str, int]:
    return dict(zip(inputs.hierarchies, scheme.levels, strict=True))


def _section(inputs: RuleInputs, problem: Problem, scheme: Scheme, drifted: Mapping[str, Any] | None = None) -> Section:
    """What is said of the scheme, exact, for the vault."""
    levels, facts, metric = _levels(inputs, scheme), scheme.facts, problem.metric.name
    people = _people(inputs, problem, scheme) if inputs.policy.guarantee.asks_population else {}
    figures = {
        "levels": levels,
        "suppressed": facts.suppressed,
        "classes": facts.classes,
        "metric": {"name": metric, "value": scheme.value},
        "nodes_evaluated": scheme.nodes_evaluated,
        "optimal": scheme.optimal,
        "gap": scheme.gap if isfinite(scheme.gap) else None,
        **(drifted or {}),
        **people,
    }
    told: dict[str, str | int | float] = {
        **{f"level of '{name}'": level for name, level in levels.items()},
        f"metric '{metric}'": scheme.value,
        "suppressed rows": facts.suppressed,
        "released classes": facts.classes,
    }
    if drifted is None:
        schemes = prod(problem.measured.table.lattice.shape)
        text = (
            f"Of {schemes:,} schemes {scheme.nodes_evaluated:,} were looked at. The one taken is the best "
            f"{'of all' if scheme.optimal else 'found'} with at most {problem.limit:,} rows suppressed, by the metric "
            f"'{metric}'; of equal ones, that with fewer rows suppressed, then that of the lexicographically least "
            "levels."
        )
    else:
        fitted, share, best = drifted["fitted"], drifted["suppressed_share"], drifted["best"]
        text = (
            f"The approved scheme of {drifted['scheme']['date']} was applied, and keeps its guarantee on this table. "
            "What it achieves may drift from batch to batch; fit another when it drifts too far."
        )
        told |= {
            f"metric '{metric}' when it was fitted": fitted["metric"]["value"],
            "share of suppressed rows": share["here"],
            "share of suppressed rows when it was fitted": share["fitted"],
            "approved by": drifted["scheme"]["approved_by"],
            "approved at": drifted["scheme"]["approved_at"],
        }
        if people and fitted.get("people") is not None:
            for name, key in (
                ("fewest people of the dictionary of a released class", "fewest"),
                ("greatest share of them in a released class", "greatest_share"),
            ):
                told |= _said(name, people["people"][key]) | _said(f"{name} when it was fitted", fitted["people"][key])
        if best is not None:
            told[f"metric '{metric}' of the best scheme of this table"] = best["value"]
            told["levels of the best scheme of this table"] = "(" + ", ".join(map(str, best["levels"])) + ")"
    status: Status = "proved" if scheme.optimal or drifted is not None else "heuristic"
    return Section("recoding", "Recoding of the whole table", text, status, told, figures=figures)
