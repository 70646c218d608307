"""Decisions by a rule: the least exposed cells of records, table or attributes, or the best of listed rules.

The mathematics is in :mod:`privrisk_spark.kernels.search.rules`. A rule gives every record its levels, ``x<i>``,
without looking at its joint counts; then the risk of these levels is evaluated against the dictionaries as they are,
by whatever plan they were counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, grouped, in_chunks, report
from privrisk_spark.engine.counts import AskedCounts, CountLookup, StoredAttacker, StoredCounts
from privrisk_spark.engine.decided import Decide, Decided, WeightColumns
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.vectors import vectors_of_table
from privrisk_spark.errors import InfeasibleError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import LevelArray, LongArray
from privrisk_spark.kernels.counting.consistent import Counts
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.risk import Attacker
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.kernels.numeric.moments import Moments
from privrisk_spark.kernels.search.cells_asked import cells_at
from privrisk_spark.kernels.search.rules import (
    alternatives,
    choose_rule,
    decide_at,
    generalizing,
    least_exposed,
    min_risk,
    risks_at,
    suppressing,
    utility_at,
)
from privrisk_spark.planning.rules import BestListedRule, LeastExposedOfRecord, Rule
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.release import ChosenRule, Section
from privrisk_spark.stages.deciding.decide import decided, join_decisions
from privrisk_spark.stages.deciding.exposure import (
    Reader,
    Rows,
    collect_exposure,
    collect_last_cell,
)

RECORDS_PER_TASK = 250_000


Evaluate = Callable[[Attacker, Rows, LevelArray], Decisions]
"""Decisions of distinct rows; the levels are those chosen before."""

Measure = Callable[[Attacker, Rows, LongArray], dict[str, Any]]
"""Facts of distinct rows that stand for so many records each."""

Ask = Callable[[Rows, LevelArray], Iterable[LevelArray]]
"""Level vectors that evaluating looks up, besides the records as they are; the levels are those chosen before."""


# --------------------------------------------------------------------------------------------------------- exposure


# ------------------------------------------------------------------------------------- records and their counts meet


@dataclass(frozen=True, eq=False)
class RuleInputs:
    """What a rule is chosen on.

    Attributes
    ----------
    counted : tuple of StoredCounts or CountLookup
        Every dictionary of the policy.
    hierarchies : mapping of quasi-identifier to Hierarchy
    rows : int or None
        Of the table, where they are known.
    """

    scratch: Scratch
    disclosure: Disclosure
    counted: tuple[StoredCounts | CountLookup, ...]
    policy: Policy
    hierarchies: Mapping[str, Hierarchy]
    rows: int | None = None

    @property
    def reader(self) -> Reader:
        """How chunks of the table are read."""
        return Reader(len(self.hierarchies), WeightColumns.of_policy(self.policy, list(self.hierarchies)))


@dataclass(frozen=True, eq=False)
class Meeting:
    """Rows of the table, or its distinct records, where their counts can be looked up.

    Attributes
    ----------
    encoded : Batches
        The rows, with ``x<i>`` where their levels depend on more than the record.
    records : Batches
        These rows, or their distinct records with ``n_rows``.
    counts : StoredAttacker or AskedCounts
        Counts every task can hold, or those that come to each chunk of records.
    distinct : int
        Distinct records; 0 where the records are the rows.
    """

    reader: Reader
    encoded: Batches
    records: Batches
    counts: StoredAttacker | AskedCounts
    distinct: int = 0

    @classmethod
    def collect_by_plan(cls, inputs: RuleInputs, encoded: Batches, ask: Ask, *, costly: bool = False) -> Meeting:
        """Bring them together by the plan of the counts.

        Parameters
        ----------
        ask : callable
            Which cells will be looked up, where not all are counted.
        costly : bool
            Whether it takes long to evaluate a record. By default the distinct records of each chunk are evaluated,
            which takes less time than to join each row with its record.
        """
        scratch, reader = inputs.scratch, inputs.reader
        stored = [counts for counts in inputs.counted if isinstance(counts, StoredCounts)]
        if stored and (not costly or all(counts.plan == "dense" for counts in stored)):
            return cls(reader, encoded, encoded, StoredAttacker.of(inputs.policy, stored))
        vectors = vectors_of_table(encoded, reader.k, reader.weights.n, reader.chosen_in(encoded.schema))
        records = scratch.write_frame(vectors, "records")
        distinct = records.count()
        if stored:
            tasks = max(2, -(-distinct // RECORDS_PER_TASK))
            held = StoredAttacker.of(inputs.policy, stored)
            return cls(reader, encoded, Batches.of_frame(records.repartition(tasks)), held, distinct)
        (lookup,) = [counts for counts in inputs.counted if not isinstance(counts, StoredCounts)]
        space = lookup.space

        def asked(table: pa.Table) -> list[LongArray]:
            rows = reader.rows(table)
            vectors = ask(rows, reader.levels(table))
            return cells_at(space, rows.codes, [np.zeros(rows.codes.shape, dtype=np.int8), *vectors])

        return cls(
            reader, encoded, Batches.of_frame(records), lookup.collect_asked(records, asked, again=True), distinct
        )

    def facts(self, measure: Measure) -> DataFrame:
        """Return PARTS, the facts of every chunk."""
        reader = self.reader

        def found(table: pa.Table, attacker: Attacker) -> pa.Table:
            first, member = grouped([table.column(name).to_numpy() for name in reader.keys])
            times = np.zeros(len(first), dtype=np.int64)
            there = schemas.N_ROWS in table.column_names
            np.add.at(times, member, table.column(schemas.N_ROWS).to_numpy() if there else 1)
            return report("", measure(attacker, reader.rows(table.take(pa.array(first))), times))

        if not isinstance(self.counts, StoredAttacker):
            return self.counts.each(lambda table, counts: found(table, Attacker.knowing(counts)), PARTS)
        held = self.counts

        def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
            for table in in_chunks(tables):
                yield found(table, held.load())

        return self.records.then(step, PARTS).frame()

    def decided(self, evaluate: Evaluate, *, gaps: bool) -> tuple[Batches, Decide]:
        """Rows of the table, and how a chunk of them gets its decisions.

        Parameters
        ----------
        gaps : bool
            Whether decisions come with a gap.
        """
        reader, k = self.reader, self.reader.k
        more = reader.chosen_in(self.records.schema)
        names = [*reader.keys, *more]

        def run(table: pa.Table, attacker: Attacker) -> Decided:
            first, member = grouped([table.column(name).to_numpy() for name in names])
            one = table.select(names).take(pa.array(first))
            decisions = evaluate(attacker, reader.rows(one), reader.levels(one))
            return Decided(table, decisions, member, np.ones(table.num_rows, dtype=np.bool_))

        if not isinstance(self.counts, StoredAttacker):
            schema = schemas.decided(self.records.schema, k, gaps=gaps)

            def chunk(table: pa.Table, counts: Counts) -> pa.Table:
                kept = [name for name in table.column_names if name in schema.fieldNames()]
                return run(table.select(kept), Attacker.knowing(counts)).with_columns()

            of_records = self.counts.each(chunk, schema)
        else:
            held = self.counts

            def decide_chunk(table: pa.Table) -> Decided:
                return run(table, held.load())

            if self.records is self.encoded:
                return self.encoded, decide_chunk
            of_records = decided(self.records, decide_chunk, k=k, gaps=gaps).frame()
        joined = join_decisions(
            self.encoded.frame(), of_records, distinct=self.distinct, k=k, n_weights=reader.weights.n, more=more
        )
        return Batches.of_frame(joined), partial(Decided.of_columns, k=k)


# -------------------------------------------------------------------------------------------------------------- rules


def collect_rule(inputs: RuleInputs, encoded: Batches, rule: Rule) -> tuple[Batches, Decide, ChosenRule | None]:
    """Decide the table by a rule.

    Parameters
    ----------
    encoded : Batches
        The table, resolved.

    Returns
    -------
    rows : Batches
    decide_chunk : Decide
        Gives a chunk of the rows its decisions.
    chosen : ChosenRule or None
        The rule of a list that was chosen.

    Raises
    ------
    InfeasibleError
        If the table has fewer cells than are to be disclosed, or no listed rule is useful enough.
    """
    disclosure = inputs.disclosure
    if isinstance(rule, BestListedRule):
        return _collect_best(inputs, encoded, rule)
    (counts,) = inputs.counted
    exposure = collect_exposure(disclosure, counts)
    if isinstance(rule, LeastExposedOfRecord):
        most = rule.cells

        def looked_up(rows: Rows, levels: LevelArray) -> Iterator[LevelArray]:
            del levels
            shown = least_exposed(exposure.cells(rows.codes, rows.personal), most)
            yield suppressing(disclosure, rows.codes, shown)
            yield suppressing(disclosure, rows.codes, np.zeros_like(shown))
            yield from (other for other, _ in alternatives(disclosure, rows.codes, most))

        def of_record(attacker: Attacker, rows: Rows, levels: LevelArray) -> Decisions:
            del levels
            return min_risk(disclosure, attacker, rows.codes, exposure, most, **rows.given)

        meeting = Meeting.collect_by_plan(inputs, encoded, looked_up, costly=True)
        return *meeting.decided(of_record, gaps=True), None
    reader = inputs.reader
    order = collect_last_cell(encoded, reader, exposure, rule, list(inputs.hierarchies))

    def of_cells(table: pa.Table, rows: Rows) -> LevelArray:
        records = fingerprints(table.column(schemas.RECORD_ID))
        return suppressing(disclosure, rows.codes, order.disclosed(exposure.cells(rows.codes, rows.personal), records))

    def evaluated(attacker: Attacker, rows: Rows, levels: LevelArray) -> Decisions:
        return decide_at(disclosure, attacker, rows.codes, levels, **rows.given)

    chosen = reader.with_chosen(encoded, of_cells)
    return *Meeting.collect_by_plan(inputs, chosen, lambda _, levels: [levels]).decided(evaluated, gaps=False), None


def _collect_best(inputs: RuleInputs, encoded: Batches, wanted: BestListedRule) -> tuple[Batches, Decide, ChosenRule]:
    """Measure every listed rule over the table in one pass, and apply the best."""
    disclosure, rules, floor = inputs.disclosure, wanted.rules, wanted.utility_at_least

    def looked_up(rows: Rows, levels: LevelArray) -> Iterator[LevelArray]:
        del levels
        return (generalizing(disclosure, rows.codes, rule.levels) for rule in rules)

    def measure(attacker: Attacker, rows: Rows, times: LongArray) -> dict[str, Any]:
        found = []
        for rule in rules:
            levels = generalizing(disclosure, rows.codes, rule.levels)
            risks, _ = risks_at(disclosure, attacker, rows.codes, levels, **rows.given)
            # Minimax is of the table here: the mean against each dictionary, of which the worst is taken.
            means = risks if attacker.rule == "minimax" else [attacker.risk(risks)]
            utility = Moments.of(utility_at(disclosure, rows.codes, levels), times)
            found.append({"utility": utility, "risks": [Moments.of(r, times) for r in means]})
        return {"rules": found}

    meeting = Meeting.collect_by_plan(inputs, encoded, looked_up, costly=True)
    parts = [json.loads(facts) for facts in meeting.facts(measure).toArrow().column("facts").to_pylist()]
    of_rule = [[part["rules"][i]["utility"] for part in parts] for i in range(len(rules))]
    utilities = [folded_dicts(Moments.empty(), utility).mean for utility in of_rule]
    risks = []
    for i in range(len(rules)):
        of_dictionary = zip(*[part["rules"][i]["risks"] for part in parts], strict=True)
        risks.append([folded_dicts(Moments.empty(), of_part).mean for of_part in of_dictionary])
    best = choose_rule(np.array([max(of) for of in risks]), np.array(utilities), floor)
    if best is None:
        raise InfeasibleError(
            f"decision.utility_at_least: no rule has a mean utility of {floor:g}; the greatest is "
            f"{max(utilities):.12g}, of rule '{rules[int(np.argmax(utilities))].name}'. Lower it, or list a finer rule."
        )
    levels = rules[best].levels

    def evaluated(attacker: Attacker, rows: Rows, given: LevelArray) -> Decisions:
        del given
        return decide_at(disclosure, attacker, rows.codes, generalizing(disclosure, rows.codes, levels), **rows.given)

    chosen = ChosenRule(
        rules[best].name,
        dict(zip(inputs.hierarchies, levels, strict=True)),
        _section(inputs, wanted, risks, utilities, best),
    )
    return *meeting.decided(evaluated, gaps=False), chosen


def _section(
    inputs: RuleInputs, wanted: BestListedRule, risks: Sequence[Sequence[float]], utilities: Sequence[float], best: int
) -> Section:
    """Risk and utility of every rule, for the vault."""
    rules, minimax = wanted.rules, inputs.policy.dictionary.kind == "minimax"
    names = [one.name for one in inputs.policy.dictionaries] if minimax else []
    figures = [
        {
            "name": rule.name,
            "levels": dict(zip(inputs.hierarchies, rule.levels, strict=True)),
            "risk": max(of),
            "utility": utility,
            **({"risk_by_dictionary": dict(zip(names, of, strict=True))} if minimax else {}),
            "chosen": i == best,
        }
        for i, (rule, of, utility) in enumerate(zip(rules, risks, utilities, strict=True))
    ]
    return Section(
        "rules",
        "Listed rules",
        f"Each of the {len(rules):,} listed rules was applied to every record. Of those with a mean utility of at "
        f"least {wanted.utility_at_least:g}, '{rules[best].name}' has the least mean risk"
        + (" against the worst dictionary" if minimax else "")
        + "; of equal ones, the more useful, then the first of the list (Fouad 2012, Algorithm 1).",
        "proved",
        {
            f"rule '{rule.name}'": f"mean risk {max(of):.6g}, mean utility {utility:.6g}"
            for rule, of, utility in zip(rules, risks, utilities, strict=True)
        },
        figures={"rules": figures},
    )
