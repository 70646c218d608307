"""One scheme for the whole table, found on the driver by the counts of distinct records, and applied where rows are.

Collected are the distinct records of the table with their rows, with how often each sensitive value is in them that
something is asked of, and with who is in several of them where persons are counted: all as far as the plan ``sorted``
of counting may (``counting.sorted_vectors``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import isfinite, prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.claims import Status
from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, decoded, grouped, in_chunks
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.engine.decided import Decide, Decided, integers
from privrisk_spark.engine.grounds import grounds_of
from privrisk_spark.engine.sources import dictionary_of
from privrisk_spark.engine.stored_levels import StoredLevels
from privrisk_spark.engine.vectors import collect_records
from privrisk_spark.errors import CheckError, InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.listed import Keys, keys_of, places_of
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.persons import Persons
from privrisk_spark.kernels.recoding.population import Population
from privrisk_spark.kernels.recoding.problem import Problem, Scheme
from privrisk_spark.kernels.recoding.searches import ENUMERATED, SEARCHES
from privrisk_spark.kernels.search.rules import decide_at, generalizing
from privrisk_spark.planning.recoding import conditions, sensitive_of
from privrisk_spark.planning.rules import Recoding
from privrisk_spark.planning.schemes import drift
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.schemes import FittedPartition
from privrisk_spark.results.release import ChosenRule, Section
from privrisk_spark.stages.deciding.decide import value_numbers
from privrisk_spark.stages.deciding.exposure import Rows
from privrisk_spark.stages.deciding.local import local_section, partitioned
from privrisk_spark.stages.deciding.mondrian import collect_partition
from privrisk_spark.stages.deciding.rules import Meeting, RuleInputs
from privrisk_spark.stages.deciding.unmet import broken, impossible, refuse_few, refuse_nothing


def collect_recoding(inputs: RuleInputs, encoded: Batches, rule: Recoding) -> tuple[Batches, Decide, ChosenRule]:
    """Find the scheme of a table, and decide every row by it.

    Parameters
    ----------
    inputs : RuleInputs
    encoded : Batches
        The table, resolved.
    rule : Recoding

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
    if stays_in_tasks(inputs.policy, asked):
        leaves = [hierarchy.n_under for hierarchy in inputs.hierarchies.values()]
        ordered = [name in asked.ordered for name in inputs.hierarchies]
        spread = collect_partition(inputs.scratch, encoded, inputs.disclosure, leaves, asked.k, ordered=ordered)
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


def stays_in_tasks(policy: Policy, asked: KAnonymityGuarantee) -> bool:
    """Whether no distinct record comes to the driver; tasks add up rows, and do not know persons."""
    spread = asked.method == "mondrian" and not asked.also and asked.scheme is None and policy.table.entity_id is None
    return spread and policy.counting.plan == "shuffle"


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
    keys, held, distributions, texts = keys_of(vectors), [], {}, {}
    for column in sensitive_of(asked):
        released = schemas.released(len(kept))[kept.index(column)]
        runs, texts[column], total = _collect_values(encoded, names, released, keys, column=column, most=most)
        distributions[column] = TableDistribution(total)
        held.append(runs)
    persons = None
    if schemas.ENTITY in encoded.schema.fieldNames():
        persons = _collect_persons(encoded, names, keys, most=most)
    table = FullDomain.of(disclosure.ancestor, vectors, counts, held, persons)
    leaves = [one.n_under[of] for one, of in zip(hierarchies.values(), disclosure.ancestor, strict=True)]
    refuse_few(table.rows, asked)
    limit = asked.suppressed_at_most(table.rows)
    people = _population(inputs, table) if asked.asks_population else None
    held_to = conditions(asked, distributions, grounds_of(asked, texts), people)
    return Problem(Measured.of(table, leaves), held_to, METRICS[asked.metric], limit)


def _population(inputs: RuleInputs, table: FullDomain) -> Population:
    """Look classes up among the people of the dictionary.

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
    return Population.counted(counts.load(), counts.axes, table.vectors)


def _collect_values(
    encoded: Batches, names: Sequence[str], released: str, keys: Keys, *, column: str, most: int
) -> tuple[SensitiveRuns, pa.Array, LongArray]:
    """Collect how often each value of a sensitive column is in each distinct record; values in their order."""
    if isinstance(encoded.schema[released].dataType, T.ArrayType | T.MapType | T.StructType | T.BinaryType):
        kind = encoded.schema[released].dataType.simpleString()
        raise InputError(f"guarantee.also: column '{column}' is of type {kind}, whose values have no order here.")
    counted = (
        _once(encoded, [*names, released]).groupBy(*names, released).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))
    )
    found = _collect_few(counted, most)
    values = pc.unique(found.column(released)).take(pc.sort_indices(pc.unique(found.column(released))))
    code = pc.index_in(found.column(released), value_set=values).to_numpy().astype(np.int64)
    owner = places_of(keys, integers(found, names))
    rows = found.column(schemas.N_ROWS).to_numpy().astype(np.int64)
    total = np.zeros(len(values), dtype=np.int64)
    np.add.at(total, code, rows)
    return SensitiveRuns.of_entries(owner, code, rows, len(keys)), values, total


def _collect_persons(encoded: Batches, names: Sequence[str], keys: Keys, *, most: int) -> Persons:
    """Collect how many persons are in each distinct record alone, and who is in several."""
    pairs = _once(encoded, [*names, schemas.ENTITY]).select(*names, schemas.ENTITY).distinct()
    several = F.count("*").over(Window.partitionBy(schemas.ENTITY)) > 1
    told = pairs.select(*names, F.when(several, F.col(schemas.ENTITY)).alias("who"), several.alias("several"))
    found = _collect_few(told.groupBy(*names, "who", "several").agg(F.count("*").alias(schemas.N_ROWS)), most)
    owner = places_of(keys, integers(found, names))
    wanders = found.column("several").to_numpy(zero_copy_only=False).astype(np.bool_)
    alone = np.zeros(len(keys), dtype=np.int64)
    np.add.at(alone, owner[~wanders], found.column(schemas.N_ROWS).to_numpy()[~wanders])
    _, person = dictionary_of(found.column("who"))
    number = person.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return Persons.beside(alone, owner[wanders], number[wanders])


def _once(encoded: Batches, names: Sequence[str]) -> DataFrame:
    """Rows of the table by some of their columns, each once a chunk, with their number."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            first, member = grouped([value_numbers(table.column(name)) for name in names])
            times = pa.array(np.bincount(member, minlength=len(first)).astype(np.int64))
            yield decoded(table.select(names).take(pa.array(first))).append_column(schemas.N_ROWS, times)

    fields = [encoded.schema[name] for name in names]
    return encoded.then(step, T.StructType([*fields, T.StructField(schemas.N_ROWS, T.LongType())])).frame()


def _collect_few(frame: DataFrame, most: int) -> pa.Table:
    """Collect what a scheme is found by, as far as the driver may hold it."""
    table = frame.limit(most + 1).toArrow()
    if table.num_rows > most:
        raise InputError(
            f"counting.sorted_vectors: there are more than {most:,} distinct records with their sensitive values or "
            "persons; raise it if the driver has the memory, or use coarser hierarchies."
        )
    return table


def _stored(inputs: RuleInputs, problem: Problem, scheme: Scheme) -> StoredLevels:
    """Keep the scheme where tasks find it, with the distinct records whose class is not released."""
    table = problem.measured.table
    suppressed = problem.suppressed(scheme.levels)
    heights = tuple(hierarchy.height for hierarchy in inputs.hierarchies.values())
    return StoredLevels.of_scheme(scheme.levels, table.vectors[suppressed], heights, inputs.scratch.directory("scheme"))


def _named(scheme: Scheme) -> str:
    return "(" + ", ".join(map(str, scheme.levels)) + ")"


def _levels(inputs: RuleInputs, scheme: Scheme) -> dict[str, int]:
    return dict(zip(inputs.hierarchies, scheme.levels, strict=True))


def _section(inputs: RuleInputs, problem: Problem, scheme: Scheme, drifted: Mapping[str, Any] | None = None) -> Section:
    """What is said of the scheme, exact, for the vault."""
    levels, facts, metric = _levels(inputs, scheme), scheme.facts, problem.metric.name
    figures = {
        "levels": levels,
        "suppressed": facts.suppressed,
        "classes": facts.classes,
        "metric": {"name": metric, "value": scheme.value},
        "nodes_evaluated": scheme.nodes_evaluated,
        "optimal": scheme.optimal,
        "gap": scheme.gap if isfinite(scheme.gap) else None,
        **(drifted or {}),
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
        if best is not None:
            told[f"metric '{metric}' of the best scheme of this table"] = best["value"]
            told["levels of the best scheme of this table"] = "(" + ", ".join(map(str, best["levels"])) + ")"
    status: Status = "proved" if scheme.optimal or drifted is not None else "heuristic"
    return Section("recoding", "Recoding of the whole table", text, status, told, figures=figures)
