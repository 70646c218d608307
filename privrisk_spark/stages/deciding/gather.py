"""Where records meet their counts: rows where they are, or distinct records whose decisions are joined back.

Where the driver holds the counts, a chunk looks them up: rows are decided without a shuffle, each kind of alike ones of
a chunk once. Searches of single records, which take long, and counts that stay distributed decide distinct records of
the table and join the decisions back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, Scratch
from privrisk_spark.engine.counts import CountLookup, StoredAttacker, StoredCounts, not_held
from privrisk_spark.engine.decided import Decide, Decided, WeightColumns, integers
from privrisk_spark.engine.vectors import vectors_of_table
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.planning.rules import Recoding, Rule
from privrisk_spark.planning.search import decides_records
from privrisk_spark.policy.policy import Policy
from privrisk_spark.results.release import ChosenRule
from privrisk_spark.stages.deciding.decide import decided, decided_table, deciding, join_decisions

DECISIONS_PER_TASK = 100
"""Records that are decided one at a time: some take a thousand times as long as others, and no core should wait."""


def collect_decisions(
    scratch: Scratch,
    encoded: Batches,
    disclosure: Disclosure,
    procedure: Search | Rule | Recoding,
    policy: Policy,
    hierarchies: Mapping[str, Hierarchy],
    counted: Sequence[StoredCounts | CountLookup],
    *,
    rows: int | None = None,
) -> tuple[Batches, Decide, ChosenRule | None]:
    """Decide the table.

    Parameters
    ----------
    encoded : Batches
        The table, resolved.
    procedure : Search, Rule or Recoding
        Which decides.
    hierarchies : mapping of quasi-identifier to Hierarchy
    counted : sequence of StoredCounts or CountLookup
        Every dictionary of the policy.
    rows : int, optional
        Of the table, where they are known.

    Returns
    -------
    rows : Batches
    decide_chunk : Decide
        Gives a chunk of the rows its decisions.
    chosen : ChosenRule or None
        The rule for the whole table, where one was chosen from a list, or the scheme that was found.
    """
    k, weights = len(hierarchies), WeightColumns.of_policy(policy, list(hierarchies))
    if isinstance(procedure, Recoding):
        from privrisk_spark.stages.deciding.recode import collect_recoding
        from privrisk_spark.stages.deciding.rules import RuleInputs

        inputs = RuleInputs(scratch, disclosure, tuple(counted), policy, hierarchies, rows)
        return collect_recoding(inputs, encoded, procedure)
    if not isinstance(procedure, Search):
        from privrisk_spark.stages.deciding.rules import RuleInputs, collect_rule

        return collect_rule(RuleInputs(scratch, disclosure, tuple(counted), policy, hierarchies), encoded, procedure)
    stored = [counts for counts in counted if isinstance(counts, StoredCounts)]
    attacker = StoredAttacker.of(policy, stored)
    if stored and not decides_records(procedure.method):
        return encoded, deciding(disclosure, procedure, attacker, k=k, weights=weights), None
    history = schemas.history(k) if schemas.RELEASES in encoded.schema.fieldNames() else []
    if history and not stored:
        raise not_held(policy.dictionaries[0].key, "shuffle")
    records = scratch.write_frame(vectors_of_table(encoded, k, weights.n, history), "records")
    distinct = records.count()
    if stored:
        tasks = max(2, -(-distinct // DECISIONS_PER_TASK))
        spread_out = Batches.of_frame(records.repartition(tasks))
        decide_chunk = deciding(disclosure, procedure, attacker, k=k, weights=weights)
        on_distinct = decided(spread_out, decide_chunk, k=k, gaps=True).frame()
    else:
        schema = schemas.decided(records.schema, k)
        (lookup,) = [counts for counts in counted if not isinstance(counts, StoredCounts)]
        space, codes, floor = lookup.space, schemas.codes(k), procedure.floor

        from privrisk_spark.kernels.search.cells_asked import needed_cells

        def asked(table: pa.Table) -> list[LongArray]:
            return needed_cells(disclosure, floor, space, integers(table, codes))

        found = partial(decided_table, disclosure=disclosure, search=procedure, k=k, weights=weights, schema=schema)
        on_distinct = lookup.collect_asked(records, asked, again=False).each(found, schema)
    joined = join_decisions(encoded.frame(), on_distinct, distinct=distinct, k=k, n_weights=weights.n, more=history)
    return Batches.of_frame(joined), partial(Decided.of_columns, k=k), None
