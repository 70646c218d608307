"""One scheme for the whole table, found on the driver by the counts of distinct records, and applied where rows are.

Collected are the distinct records of the table with their rows, with how often each sensitive value is in them that
something is asked of, and with who is in several of them where persons are counted: all as far as the plan ``sorted``
of counting may (``counting.sorted_vectors``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, decoded, grouped, in_chunks
from privrisk_spark.engine.decided import Decide, Decided, integers
from privrisk_spark.engine.sources import dictionary_of
from privrisk_spark.engine.stored_levels import StoredLevels
from privrisk_spark.engine.vectors import collect_vectors, vectors_of_table
from privrisk_spark.errors import InfeasibleError, InputError
from privrisk_spark.kernels.arrays import LevelArray
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.recoding.bounded import bounded
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.listed import Keys, keys_of, places_of
from privrisk_spark.kernels.recoding.metrics import METRICS, Measured
from privrisk_spark.kernels.recoding.persons import Persons
from privrisk_spark.kernels.recoding.problem import Problem, Scheme
from privrisk_spark.kernels.recoding.whole_lattice import SEARCHES
from privrisk_spark.kernels.search.rules import decide_at, generalizing
from privrisk_spark.planning.recoding import asked_in_words, conditions, sensitive_of
from privrisk_spark.planning.rules import Recoding
from privrisk_spark.policy.anonymity import KAnonymityGuarantee
from privrisk_spark.results.release import ChosenRule, Section
from privrisk_spark.stages.deciding.decide import value_numbers
from privrisk_spark.stages.deciding.exposure import Rows
from privrisk_spark.stages.deciding.rules import Meeting, RuleInputs


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
    InfeasibleError
        If no scheme meets what is asked, or none has a row to release.
    InputError
        If there are more distinct records than the driver may hold, or a sensitive column has nested values.
    """
    disclosure, k, drop = inputs.disclosure, inputs.reader.k, rule.asked.suppressed == "drop"
    problem = collect_problem(inputs, encoded, rule)
    scheme = (bounded if rule.asked.method == "best" else SEARCHES[rule.asked.method])(problem)
    if scheme is None:
        raise InfeasibleError(_impossible(problem, rule.asked))
    if drop and scheme.facts.suppressed == problem.measured.table.rows:
        raise InfeasibleError(
            "guarantee: nothing would be released: no scheme gives a class what is asked, and suppressed rows are left "
            "out. Lower k, ask for less besides, or release them too (suppressed: keep)."
        )
    stored = _stored(inputs, problem, scheme)

    def levels_of(_: pa.Table, rows: Rows) -> LevelArray:
        return generalizing(disclosure, rows.codes, stored.of(rows.codes)[0])

    def evaluated(attacker: Attacker, rows: Rows, levels: LevelArray) -> Decisions:
        return decide_at(disclosure, attacker, rows.codes, levels, **rows.given)

    with_levels = inputs.reader.with_chosen(encoded, levels_of)
    meeting = Meeting.collect_by_plan(inputs, with_levels, lambda _, levels: [levels])
    rows, decide_chunk = meeting.decided(evaluated, gaps=False)

    def decide_and_suppress(table: pa.Table) -> Decided:
        found = decide_chunk(table)
        _, suppressed = stored.of(integers(table, schemas.codes(k)))
        return replace(found, suppressed=suppressed, kept=found.kept & ~suppressed if drop else found.kept)

    return rows, decide_and_suppress, _chosen(inputs, problem, scheme)


def collect_problem(inputs: RuleInputs, encoded: Batches, rule: Recoding) -> Problem:
    """Count the distinct records of a table on the driver, and say what is asked of its schemes; errors as above."""
    asked, hierarchies, disclosure = rule.asked, inputs.hierarchies, inputs.disclosure
    k, most, kept = len(hierarchies), inputs.policy.counting.sorted_vectors, inputs.policy.kept_columns
    names = schemas.codes(k)
    vectors, counts = collect_vectors(vectors_of_table(encoded, k, 0), names, most=most)
    keys, held, distributions = keys_of(vectors), [], {}
    for column in sensitive_of(asked):
        released = schemas.released(len(kept))[kept.index(column)]
        runs, distributions[column] = _collect_values(encoded, names, released, keys, column=column, most=most)
        held.append(runs)
    persons = None
    if schemas.ENTITY in encoded.schema.fieldNames():
        persons = _collect_persons(encoded, names, keys, most=most)
    table = FullDomain.of(disclosure.ancestor, vectors, counts, held, persons)
    leaves = [one.n_under[of] for one, of in zip(hierarchies.values(), disclosure.ancestor, strict=True)]
    limit = asked.suppressed_at_most(table.rows)
    return Problem(Measured.of(table, leaves), conditions(asked, distributions), METRICS[asked.metric], limit)


def _collect_values(
    encoded: Batches, names: Sequence[str], released: str, keys: Keys, *, column: str, most: int
) -> tuple[SensitiveRuns, TableDistribution]:
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
    order = np.lexsort([code, owner])
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(keys)))]).astype(np.int64)
    total = np.zeros(len(values), dtype=np.int64)
    np.add.at(total, code, rows)
    return SensitiveRuns(start, code[order].astype(np.int32), rows[order]), TableDistribution(total)


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


def _impossible(problem: Problem, asked: KAnonymityGuarantee) -> str:
    """Say what cannot be met, and what would do."""
    table = problem.measured.table
    least = int(table.counts[problem.suppressed(table.lattice.heights)].sum())
    unit = "rows" if table.persons is None else "persons"
    every = " and ".join(asked_in_words(asked, unit))
    return (
        f"guarantee: no scheme gives every class {every} with at most {problem.limit:,} of {table.rows:,} rows "
        f"suppressed. Not even with all quasi-identifiers at their roots: {least:,} rows are suppressed then. Raise "
        "suppression_limit, lower k, or ask for less besides."
    )


def _chosen(inputs: RuleInputs, problem: Problem, scheme: Scheme) -> ChosenRule:
    """What is said of the scheme, exact, for the vault."""
    levels = dict(zip(inputs.hierarchies, scheme.levels, strict=True))
    metric, facts = problem.metric.name, scheme.facts
    found = "the best of all" if scheme.optimal else "the best found"
    figures = {
        "levels": levels,
        "suppressed": facts.suppressed,
        "classes": facts.classes,
        "metric": {"name": metric, "value": scheme.value},
        "nodes_evaluated": scheme.nodes_evaluated,
        "optimal": scheme.optimal,
        "gap": 0.0 if scheme.optimal else None,
    }
    section = Section(
        "recoding",
        "Recoding of the whole table",
        f"Of {prod(problem.measured.table.lattice.shape):,} schemes {scheme.nodes_evaluated:,} were looked at. The one "
        f"taken is {found} with at most {problem.limit:,} rows suppressed, by the metric '{metric}'; of "
        "equal ones, that with fewer rows suppressed, then that of the lexicographically least levels.",
        "proved" if scheme.optimal else "heuristic",
        {
            **{f"level of '{name}'": level for name, level in levels.items()},
            f"metric '{metric}'": scheme.value,
            "suppressed rows": facts.suppressed,
            "released classes": facts.classes,
        },
        figures=figures,
    )
    return ChosenRule("(" + ", ".join(map(str, scheme.levels)) + ")", levels, section)
