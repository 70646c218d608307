"""Risk after record linkage: what the decisions cost if an attacker links records to further attributes (F12 §2.7).

The mathematics is in :mod:`privrisk_spark.kernels.disclosure.linked`, the linkage table in
:mod:`privrisk_spark.tables.links`. What a link may cost is the risk of the policy enlarged by the added
attributes, see :func:`enlarged_policy`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, report
from privrisk_spark.engine.counts import SpreadVectors, StoredCounts
from privrisk_spark.engine.decided import WeightColumns, floats, integers
from privrisk_spark.engine.links import KEY, PROBABILITY, Linked, added_codes
from privrisk_spark.engine.number_texts import column
from privrisk_spark.errors import InputError
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.linked import UnawareCounts, enlarged, expected_risk, linked_risk, unlinked_risk
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.kernels.numeric.moments import Moments
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.disclosure import node_weights
from privrisk_spark.policy.dictionaries import DictionaryColumn, OneDictionary
from privrisk_spark.policy.policy import Policy, QuasiIdentifier
from privrisk_spark.policy.sensitivity import WeighedSensitivity
from privrisk_spark.results.release import LinkageFacts, Summary

LINKS = "links"
UNLINKED_RISK = "unlinked_risk"
LINKED_RISK = "linked_risk"
GREATEST_RISK = "greatest_risk"
CONTRADICTED = "contradicted"


def enlarged_policy(policy: Policy) -> tuple[Policy, OneDictionary]:
    """Return the policy as if the added attributes were quasi-identifiers, and its dictionary with what it knows.

    Personal weights and the meaning of consistency are the policy's own. The plan is chosen afresh: the counts have
    more axes.
    """
    assert policy.linkage is not None
    columns = policy.linkage.columns
    weighed = policy.risk.sensitivity
    if isinstance(weighed, WeighedSensitivity):
        weights = weighed.weights | {name: added.weight for name, added in columns.items()}
        weighed = weighed.model_copy(update={"weights": weights})
    update = {
        "columns": policy.columns
        | {name: QuasiIdentifier(role="quasi-identifier", hierarchy=a.hierarchy) for name, a in columns.items()},
        "risk": policy.risk.model_copy(update={"sensitivity": weighed}),
        "counting": policy.counting.model_copy(update={"plan": "auto"}),
    }
    (one,) = policy.dictionaries
    if one.table is not None:
        known = {name: DictionaryColumn(column=a.dictionary) for name, a in columns.items() if a.dictionary is not None}
        table = one.table.model_copy(update={"columns": one.table.columns | known})
        one = replace(one, name=KEY, key=KEY, table=table)
    return policy.model_copy(update=update), one


def decided_records(
    scratch: Scratch, encoded: Batches, policy: Policy, hierarchies: Mapping[str, Hierarchy]
) -> Batches:
    """Bring the decisions of a run, as written, together with the codes of their records.

    Parameters
    ----------
    scratch : Scratch
        Holds ``decisions``, as :class:`privrisk_spark.stages.deciding.decide.Conclusion` writes them.
    encoded : Batches
        The table, resolved.
    hierarchies : mapping of quasi-identifier to Hierarchy

    Returns
    -------
    Batches
        Every record once: ``record_id``, ``q<i>``, ``w<i>``, ``l<i>``, ``risk``.
    """
    k = len(hierarchies)
    decisions = scratch.spark.read.parquet(str(scratch.path / "decisions"))
    chosen = decisions.select(
        # The first column holds the ids, whatever its name.
        column(decisions.columns[0]).alias(schemas.RECORD_ID),
        *[column(f"level_{name}").alias(to) for name, to in zip(hierarchies, schemas.levels(k), strict=True)],
        F.col("risk").alias(schemas.RISK),
    )
    codes = encoded.frame().select(schemas.RECORD_ID, *schemas.codes(k), *schemas.weights(len(policy.weight_columns)))
    return Batches.of_frame(codes.join(chosen, schemas.RECORD_ID))


def collect_linkage(
    decided_rows: Batches,
    disclosure: Disclosure,
    larger: Policy,
    one: OneDictionary,
    hierarchies: Mapping[str, Hierarchy],
    *,
    linked: Linked,
    counts: StoredCounts | SpreadVectors,
) -> LinkageFacts:
    """Measure the risk of the decisions after record linkage.

    Parameters
    ----------
    decided_rows : Batches
        Every record once: ``record_id``, ``q<i>``, ``l<i>``, ``w<i>`` and ``risk``.
    disclosure : Disclosure
        That was decided.
    one : OneDictionary
        Of :func:`enlarged_policy`.
    hierarchies : mapping of quasi-identifier to Hierarchy
    counts : StoredCounts or SpreadVectors
        The dictionary on all axes, or, where it knows no added attribute, on those of the decision.

    Raises
    ------
    InputError
        If the counts are too large for the driver.
    """
    if not isinstance(counts, StoredCounts):
        raise InputError(
            f"{KEY}: it looks records up in counts that the driver holds, and those of the dictionary fit neither "
            "counting.dense_cells nor counting.sorted_vectors; raise one of them, or use coarser hierarchies."
        )
    added = axes(larger, linked.hierarchies, one)
    weights = node_weights(larger.risk.sensitivity, linked.hierarchies)
    risks = with_linked_risk(
        decided_rows.frame(),
        linked.links,
        enlarged(disclosure, added, weights),
        counts,
        k=len(hierarchies),
        m=len(linked.hierarchies),
        weights=WeightColumns.of_policy(larger, [*hierarchies, *linked.hierarchies]),
    )
    return measure_linkage(risks, list(linked.hierarchies))


def with_linked_risk(
    decided: DataFrame,
    links: DataFrame,
    disclosure: Disclosure,
    counts: StoredCounts,
    *,
    k: int,
    m: int,
    weights: WeightColumns,
) -> Batches:
    """Risk of every record with and without linkage; only records with a link are evaluated.

    Parameters
    ----------
    decided : DataFrame
        Holds ``record_id``, unique, ``q<i>``, ``l<i>``, ``w<i>``, and ``risk`` against the same dictionary.
    links : DataFrame
        LINKS without faults. A row of an unknown record is lost.
    disclosure : Disclosure
        Over ``k + m`` attributes, see :func:`privrisk_spark.kernels.disclosure.linked.enlarged`.
    counts : StoredCounts
        Of the attacker's dictionary on ``k + m`` axes; on ``k`` axes where it knows no added attribute.
    k, m : int
        Released and added attributes.
    weights : WeightColumns
        Resolved for the ``k + m`` attributes.

    Returns
    -------
    Batches
        ``record_id``; ``links`` int; ``unlinked_risk`` double, ``ℓ(δ(x), θ)``; ``linked_risk`` double, the expectation
        over the links; ``greatest_risk`` double, the greatest loss that has a chance above 0; ``contradicted`` int,
        links the dictionary has no row for. Rows of any layout of the frames give the same values.
    """
    # In one array a record, sorted: its links stay together, and are added up in one order.
    link = F.struct(F.col(PROBABILITY).cast("double").alias(PROBABILITY), *added_codes(m))
    of_record = (
        links.where(F.col(schemas.RECORD_ID).isNotNull())
        .groupBy(schemas.RECORD_ID)
        .agg(F.sort_array(F.array_agg(link)).alias(LINKS))
    )
    needed = [schemas.RECORD_ID, *schemas.codes(k), *schemas.levels(k), *schemas.weights(weights.n), schemas.RISK]
    joined = decided.select(*needed).join(of_record, schemas.RECORD_ID, "left")

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield _evaluated(table, disclosure, counts, k=k, m=m, weights=weights)

    return Batches.of_frame(joined).then(step, _RISKS)


_RISKS = T.StructType(
    [
        T.StructField(schemas.RECORD_ID, T.StringType()),
        T.StructField(LINKS, T.IntegerType(), False),
        T.StructField(UNLINKED_RISK, T.DoubleType(), False),
        T.StructField(LINKED_RISK, T.DoubleType(), False),
        T.StructField(GREATEST_RISK, T.DoubleType(), False),
        T.StructField(CONTRADICTED, T.IntegerType(), False),
    ]
)


def _evaluated(
    table: pa.Table, disclosure: Disclosure, counts: StoredCounts, *, k: int, m: int, weights: WeightColumns
) -> pa.Table:
    lists = table.column(LINKS).combine_chunks()
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    held = np.flatnonzero(lengths)
    record = np.repeat(np.arange(len(held)), lengths[held])
    flat = pc.list_flatten(lists)
    link = pa.table({name: pc.struct_field(flat, name) for name in (PROBABILITY, *added_codes(m))})
    codes, levels = integers(table, schemas.codes(k))[held], integers(table, schemas.levels(k))[held]
    given = floats(table, schemas.weights(weights.n))[held]
    personal, of_record = weights.personal(given), weights.of_record(given)
    loaded = counts.load()
    if len(counts.axes) == k:
        loaded = UnawareCounts(loaded, tuple(len(depth) for depth in disclosure.code_depth[k:]))
    alone = unlinked_risk(disclosure, loaded, codes, levels, personal=personal, record_weight=of_record)
    linked = linked_risk(
        disclosure,
        loaded,
        codes[record],
        levels[record],
        integers(link, added_codes(m)),
        personal=None if personal is None else personal[record],
        record_weight=None if of_record is None else of_record[record],
    )
    probability = floats(link, [PROBABILITY])[:, 0]
    unlinked = floats(table, [schemas.RISK])[:, 0]
    unlinked[held] = alone.risk
    expected, greatest = unlinked.copy(), unlinked.copy()
    expected[held] = expected_risk(alone.risk, linked.risk, probability, record)
    likely = probability > 0
    np.maximum.at(greatest, held[record[likely]], linked.risk[likely])
    contradicted = np.bincount(held[record], weights=linked.absent, minlength=table.num_rows)
    return pa.table(
        {
            schemas.RECORD_ID: table.column(schemas.RECORD_ID),
            LINKS: pa.array(lengths.astype(np.int32)),
            UNLINKED_RISK: pa.array(unlinked),
            LINKED_RISK: pa.array(expected),
            GREATEST_RISK: pa.array(greatest),
            CONTRADICTED: pa.array(contradicted.astype(np.int32)),
        }
    )


def measure_linkage(risks: Batches, attributes: Sequence[str]) -> LinkageFacts:
    """Measure what :func:`with_linked_risk` returns, in the same pass; means are exact, whatever the order.

    Parameters
    ----------
    attributes : sequence of m str
        Names of the added attributes.
    """
    names = (UNLINKED_RISK, LINKED_RISK, GREATEST_RISK)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            once = np.ones(table.num_rows, dtype=np.int64)
            links = table.column(LINKS).to_numpy()
            facts = {name: Moments.of(floats(table, [name])[:, 0], once) for name in names}
            counts = {
                "linked": int(np.count_nonzero(links)),
                LINKS: int(links.sum()),
                CONTRADICTED: int(table.column(CONTRADICTED).to_numpy().sum()),
            }
            yield report("", {**facts, **counts})

    table = risks.then(step, PARTS).frame().toArrow()
    parts = [json.loads(facts) for facts in table.column("facts").to_pylist()]
    alone, linked, greatest = (folded_dicts(Moments.empty(), [part[name] for part in parts]) for name in names)
    return LinkageFacts(
        attributes=tuple(attributes),
        rows=linked.n,
        linked=sum(part["linked"] for part in parts),
        links=sum(part[LINKS] for part in parts),
        contradicted=sum(part[CONTRADICTED] for part in parts),
        unlinked_risk=Summary.of(alone),
        linked_risk=Summary.of(linked),
        greatest_risk=Summary.of(greatest),
    )
