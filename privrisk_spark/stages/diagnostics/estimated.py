"""Estimated dictionaries as frames: whether the bounding theorem applies, how tight it is, and nested samples.

The mathematics is in :mod:`privrisk_spark.kernels.disclosure.estimated`. A dictionary of identities is a frame with

==========  ========================================================================================================
column      content
==========  ========================================================================================================
``id``      string, the identity; NULL matches nothing
``t<i>``    int dictionary code of quasi-identifier i, resolved; an attribute the dictionary lacks has no column
``people``  double, whole: how many people a row stands for; one if there is no such column
==========  ========================================================================================================
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, in_chunks, report
from privrisk_spark.engine.counts import StoredCounts
from privrisk_spark.engine.decided import WeightColumns, floats, integers
from privrisk_spark.engine.schemas import ID
from privrisk_spark.engine.vectors import collect_ordered
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis, consistent_at
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import looseness, order_facts, risk_of
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.kernels.numeric.moments import Moments
from privrisk_spark.results.release import Summary

SHARES = 10
"""Nested samples of a dictionary: sample s holds the share buckets 1 to s, about s tenths of the rows."""

_UNRESOLVED = -1


@dataclass(frozen=True)
class DictionaryOrder:
    """Whether ``θ̂ ≪ θ``, and what speaks against it (F12 Definition 2.5.1).

    Attributes
    ----------
    estimate_null_ids, true_null_ids : int
        Rows without an id.
    estimate_duplicate_ids, true_duplicate_ids : int
        Rows beyond the first of an id.
    unmatched : int
        Rows of ``θ̂`` whose id ``θ`` lacks.
    ambiguous : int
        Rows of ``θ̂`` whose id occurs in both, but not once in each; they are not compared.
    not_more_general : int
        Rows of ``θ̂`` whose counterpart is not equal or more general in every attribute.
    coarser : int
        Rows of ``θ̂`` whose counterpart is strictly more general in some attribute.
    of_attribute : dict of attribute to rows not more general on it
    fewer_people : int
        Rows of ``θ̂`` whose counterpart stands for fewer people.
    """

    estimate_rows: int
    true_rows: int
    estimate_null_ids: int
    true_null_ids: int
    estimate_duplicate_ids: int
    true_duplicate_ids: int
    unmatched: int
    ambiguous: int
    not_more_general: int
    coarser: int
    of_attribute: dict[str, int]
    fewer_people: int = 0

    json_keys = (
        "holds", "estimate_rows", "true_rows", "estimate_null_ids", "true_null_ids", "estimate_duplicate_ids",
        "true_duplicate_ids", "unmatched", "ambiguous", "not_more_general", "coarser", "of_attribute",
        "fewer_people",
    )  # fmt: skip

    @property
    def holds(self) -> bool:
        """Whether every row of ``θ̂`` has a row of ``θ`` of its own that is equal or more general.

        Repeated or missing ids of ``θ`` that no row of ``θ̂`` has do no harm: further rows are allowed.
        """
        against = (
            self.estimate_null_ids,
            self.estimate_duplicate_ids,
            self.unmatched,
            self.ambiguous,
            self.not_more_general,
            self.fewer_people,
        )
        return not any(against)


def measure_dictionary_order(
    estimate: DataFrame, true: DataFrame, hierarchies: Mapping[str, Hierarchy]
) -> DictionaryOrder:
    """Check ``θ̂ ≪ θ`` by a join of the two dictionaries on their ids; one job, one shuffle.

    Parameters
    ----------
    estimate, true : DataFrame
        Dictionaries of identities; other columns are ignored.
    hierarchies : mapping of attribute to Hierarchy
        In the order of the columns ``t<i>``.
    """
    k = len(hierarchies)
    names = schemas.dictionary_codes(k)
    at_depth = [hierarchy.at_depth for hierarchy in hierarchies.values()]
    roots = [hierarchy.root for hierarchy in hierarchies.values()]

    def side(frame: DataFrame, own: str, other: str) -> DataFrame:
        codes = [
            # A NULL code is a value nobody resolved: it is not known to be more general than anything.
            F.coalesce(F.col(name), F.lit(_UNRESOLVED)) if name in frame.columns else F.lit(root)
            for name, root in zip(names, roots, strict=True)
        ]
        people = F.col(schemas.PEOPLE) if schemas.PEOPLE in frame.columns else F.lit(1.0)
        return frame.select(
            F.col(ID),
            people.alias(f"p{own}"),
            F.lit(None).cast("double").alias(f"p{other}"),
            F.lit(1).cast("long").alias(f"n{own}"),
            F.lit(0).cast("long").alias(f"n{other}"),
            *[code.cast("int").alias(f"{own}{i}") for i, code in enumerate(codes)],
            *[F.lit(None).cast("int").alias(f"{other}{i}") for i in range(k)],
        )

    columns = [f"{which}{i}" for which in "et" for i in range(k)]
    both = side(estimate, "e", "t").unionByName(side(true, "t", "e")).groupBy(ID)
    # Values are compared only where an id has one row in both: their minimum is then the value.
    of_id = both.agg(
        F.sum("ne").alias("ne"),
        F.sum("nt").alias("nt"),
        (F.coalesce(F.min("pt"), F.lit(0.0)) < F.coalesce(F.min("pe"), F.lit(0.0))).alias("fewer"),
        *[F.coalesce(F.min(name), F.lit(_UNRESOLVED)).alias(name) for name in columns],
    ).select(F.col(ID).isNull().alias("missing"), "ne", "nt", "fewer", *columns)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            facts = order_facts(
                at_depth,
                table.column("ne").to_numpy(),
                table.column("nt").to_numpy(),
                table.column("missing").to_numpy(),
                integers(table, columns[:k]),
                integers(table, columns[k:]),
                fewer=table.column("fewer").to_numpy(),
            )
            yield report("", facts)

    parts = _collect_facts(Batches.of_frame(of_id).then(step, PARTS))
    total = {name: sum(part[name] for part in parts) for name in (parts[0] if parts else {})}
    whole = {one.name: total.get(one.name, 0) for one in fields(DictionaryOrder) if one.name != "of_attribute"}
    return DictionaryOrder(**whole, of_attribute={name: total.get(f"a{i}", 0) for i, name in enumerate(hierarchies)})


def _collect_facts(parts: Batches) -> list[dict[str, Any]]:
    return [json.loads(facts) for facts in parts.frame().toArrow().column("facts").to_pylist()]


@dataclass(frozen=True)
class Containment:
    """Whether a dictionary contains the records.

    Attributes
    ----------
    rows : int
        Records.
    missing : int
        Records with no consistent row at level 0.
    """

    rows: int
    missing: int


def measure_containment(records: Batches, counts: StoredCounts, *, k: int) -> Containment:
    """Count the records that a dictionary has no consistent row for.

    Parameters
    ----------
    records : Batches
        Holds ``q<i>``, and ``n_rows`` if a row stands for several records.
    counts : StoredCounts
        Of ``θ̂``.
    """
    code_depth = [axis.code_depth for axis in counts.axes]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            codes = integers(table, schemas.codes(k))
            first, member = distinct_rows(list(codes.T))
            found = consistent_at(counts.load(), code_depth, codes[first], [0] * k)
            times = _records(table)
            yield report("", {"rows": int(times.sum()), "missing": int(times[found[member] == 0].sum())})

    parts = _collect_facts(records.then(step, PARTS))
    return Containment(sum(part["rows"] for part in parts), sum(part["missing"] for part in parts))


def _records(table: pa.Table) -> npt.NDArray[np.int64]:
    """Records each row stands for."""
    if schemas.N_ROWS not in table.column_names:
        return np.ones(table.num_rows, dtype=np.int64)
    times: npt.NDArray[np.int64] = table.column(schemas.N_ROWS).to_numpy().astype(np.int64)
    return times


def gaps(
    order: DictionaryOrder,
    containment: Containment,
    *,
    model: RiskModel,
    estimate_axes: Sequence[Axis],
    true_axes: Sequence[Axis],
) -> tuple[str, ...]:
    """Return what is missing for ``R(δ, θ) <= R(δ, θ̂)`` to be proved for every rule δ; nothing when it is proved.

    Parameters
    ----------
    containment : Containment
        Of the records in ``θ̂``.
    model : {"I", "II", "III"}
    estimate_axes, true_axes : sequence of k Axis
        As the two dictionaries were counted.
    """
    found = []
    if model == "III":
        found.append("risk model III grows with the number of dictionary rows, so it has no such bound")
    if not order.holds:
        found.append("not every row of the estimate has a row of its own in the true dictionary that is more general")
    if containment.missing:
        found.append(f"the estimate lacks {containment.missing:,} of {containment.rows:,} records")
    pairs = list(zip(estimate_axes, true_axes, strict=True))
    # Fewer rows of the estimate under "subsumes" only raise the bound.
    meanings = {(e.consistency, t.consistency) for e, t in pairs if e.known and t.known}
    if any(e != t and (e, t) != ("subsumes", "compatible") for e, t in meanings):
        found.append("the two dictionaries are counted under different meanings of consistent")
    # Equal values are consistent with the same nodes, whatever that means; lacking is not the same as suppressed.
    same = order.coarser == 0 and all(e.known == t.known and e.wildcard == t.wildcard for e, t in pairs)
    if not same and any(t.known and t.consistency != "compatible" for _, t in pairs):
        found.append("the true dictionary is coarser than the estimate, which takes the consistency 'compatible'")
    return tuple(found)


@dataclass(frozen=True)
class Tightness:
    """How far the risk against the estimate lies above that against another dictionary, for the same decisions.

    Attributes
    ----------
    estimated, true : Summary
        ``ℓ(δ(x), θ̂)`` and ``ℓ(δ(x), θ)`` over the records; the means are ``R(δ, θ̂)`` and ``R(δ, θ)``.
    ratio : float
        ``R(δ, θ̂) / R(δ, θ)``: 1 is tight, less than 1 breaks the bound.
    greatest_ratio : float
        Greatest ratio of a record.
    broken : int
        Records with ``ℓ(δ(x), θ) > ℓ(δ(x), θ̂)``; 0 where the theorem applies.
    absent : int
        Records that ``θ`` has no consistent row for.
    """

    rows: int
    estimated: Summary
    true: Summary
    ratio: float
    greatest_ratio: float
    broken: int
    absent: int


def measure_tightness(
    decided: Batches, disclosure: Disclosure, counts: StoredCounts, *, k: int, weights: WeightColumns
) -> Tightness:
    """Evaluate decisions made against the estimate against another dictionary; one pass, no shuffle.

    Parameters
    ----------
    decided : Batches
        Holds ``q<i>``, ``l<i>``, ``w<i>`` and ``risk``, which was found against ``θ̂``, and ``n_rows`` if a row stands
        for several records.
    disclosure : Disclosure
        That was decided.
    counts : StoredCounts
        Of ``θ``.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            codes, levels = integers(table, schemas.codes(k)), integers(table, schemas.levels(k))
            given = floats(table, schemas.weights(weights.n))
            first, member = distinct_rows([*codes.T, *levels.T, *given.T])
            evaluated = risk_of(
                disclosure,
                counts.load(),
                codes[first],
                levels[first],
                personal=weights.personal(given[first]),
                record_weight=weights.of_record(given[first]),
            )
            estimated = floats(table, [schemas.RISK])[:, 0]
            ratio = looseness(estimated, evaluated.risk[member])
            times = _records(table)
            facts = {
                "estimated": Moments.of(estimated, times),
                "true": Moments.of(evaluated.risk[member], times),
                "greatest": float(ratio.max()),
                "broken": int(times[ratio < 1 - TOLERANCE].sum()),
                "absent": int(times[evaluated.absent[member]].sum()),
            }
            yield report("", facts)

    parts = _collect_facts(decided.then(step, PARTS))
    estimated, true = (folded_dicts(Moments.empty(), [part[name] for part in parts]) for name in ("estimated", "true"))
    return Tightness(
        rows=true.n,
        estimated=Summary.of(estimated),
        true=Summary.of(true),
        ratio=float(looseness(np.array([estimated.mean]), np.array([true.mean]))[0]),
        greatest_ratio=max((part["greatest"] for part in parts), default=1.0),
        broken=sum(part["broken"] for part in parts),
        absent=sum(part["absent"] for part in parts),
    )


def share_vectors(dictionary: DataFrame, *, own: DataFrame | None = None, shares: int = SHARES) -> DataFrame:
    """Split a dictionary into share buckets: the distinct vectors with ``b1`` … ``b10``, people in each bucket.

    Parameters
    ----------
    dictionary : DataFrame
        ``t<i>``, ``id`` if its rows have one, and ``people`` if they stand for several.
    own : DataFrame, optional
        Column ``id``: identities whose rows are in every sample, such as those of the table's records.
    shares : int
        Buckets.

    Returns
    -------
    DataFrame
        ``t<i>`` int, ``b<s>`` long. The bucket of a row is a hash of its id, or of its content and its ordinal among
        identical rows, which are exchangeable; so samples are nested, repeatable, and the same in any partitioning.
    """
    names = [name for name in dictionary.columns if name != ID]
    bucket, ordinal = "bucket", "ordinal"
    identified, weighted = ID in dictionary.columns, schemas.PEOPLE in names
    anonymous = dictionary.where(F.col(ID).isNull()) if identified else dictionary
    copies = anonymous.groupBy(*names).agg(F.count("*").alias(schemas.N_ROWS))
    numbered = copies.select(*names, F.explode(F.sequence(F.lit(1).cast("long"), schemas.N_ROWS)).alias(ordinal))
    rows = numbered.select(*names, _bucket(shares, *names, ordinal).alias(bucket))
    if identified:
        with_id = dictionary.where(F.col(ID).isNotNull())
        drawn = _bucket(shares, ID)
        if own is not None:
            ids = own.select(F.col(ID)).distinct().withColumn("own", F.lit(True))
            with_id = with_id.join(ids, ID, "left")
            drawn = F.when(F.col("own"), F.lit(1).cast("long")).otherwise(drawn)
        rows = with_id.select(*names, drawn.alias(bucket)).unionByName(rows)
    people = F.col(schemas.PEOPLE).cast("long") if weighted else F.lit(1).cast("long")
    of_bucket = [F.sum(F.when(F.col(bucket) == s, people).otherwise(0)).alias(f"b{s}") for s in range(1, shares + 1)]
    return rows.groupBy(*[name for name in names if name != schemas.PEOPLE]).agg(*of_bucket)


def _bucket(shares: int, *names: str) -> Column:
    return F.pmod(F.xxhash64(*names), F.lit(shares).cast("long")) + 1


def collect_share_vectors(
    vectors: DataFrame, names: Sequence[str], *, most: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Collect share vectors to the driver, for :func:`privrisk_spark.kernels.disclosure.estimated.nested_counts`.

    Parameters
    ----------
    vectors : DataFrame
        Of :func:`share_vectors`.
    names : sequence of k str
        Columns in axis order; one that is not there (an attribute the dictionary lacks) becomes zeros.
    most : int
        Largest number of vectors to accept.

    Returns
    -------
    vectors : ndarray of int32, shape (m, k)
        In lexicographic order.
    of_bucket : ndarray of int64, shape (m, shares)

    Raises
    ------
    InputError
        If there are more than ``most``.
    """
    matrix, table = collect_ordered(vectors, names, most=most)
    buckets = [name for name in table.column_names if re.fullmatch(r"b\d+", name)]
    return matrix, np.column_stack([table.column(name).to_numpy() for name in buckets]).astype(np.int64)
