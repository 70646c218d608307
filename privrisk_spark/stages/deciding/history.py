"""What earlier releases have disclosed of each record, joined by a keyed digest of its id."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, in_chunks, report
from privrisk_spark.engine.chains import path_fingerprints
from privrisk_spark.engine.counts import StoredAttacker
from privrisk_spark.engine.decided import WeightColumns, floats, integers
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray, LevelArray, LongArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.history import History, meet
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.numeric.fold import folded_dicts
from privrisk_spark.kernels.numeric.moments import Moments
from privrisk_spark.kernels.search.rules import risks_at
from privrisk_spark.planning.history import EarlierRelease
from privrisk_spark.results.composition import QUANTILES, DisclosedRisk
from privrisk_spark.results.release import Summary
from privrisk_spark.tables.released import parts_at

_OUT, _NUMBER = "out", "number"


def write_history(
    scratch: Scratch, encoded: Batches, earlier: Sequence[EarlierRelease], hierarchies: Mapping[str, Hierarchy]
) -> Batches:
    """Add to each record what is out of it already: the columns of :func:`schemas.with_history`.

    Parameters
    ----------
    encoded : Batches
        ENCODED, resolved; ids are unique.
    earlier : sequence of EarlierRelease
        At least one.
    hierarchies : mapping of quasi-identifier to Hierarchy
    """
    k, past = len(hierarchies), Past.of(hierarchies)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            history, added = past.of_all(table), table.drop_columns([_OUT])
            for i, name in enumerate(schemas.history(k)):
                added = added.append_column(name, pa.array(history.levels[:, i]))
            added = added.append_column(schemas.RELEASES, pa.array(history.releases))
            yield added.append_column(schemas.CHANGED, pa.array(history.changed))

    joined = Batches.of_frame(with_releases(scratch.spark, encoded, earlier, list(hierarchies)))
    added = joined.then(step, schemas.with_history(encoded.schema, k)).frame()
    return Batches.of_frame(scratch.write_frame(added, "history"))


def with_releases(
    spark: SparkSession, encoded: Batches, earlier: Sequence[EarlierRelease], attributes: Sequence[str]
) -> DataFrame:
    """Give each record what earlier releases hold of it: a list, in no order, that is null for a new record."""
    # Each vault has a key of its own; those of most policies are one.
    secrets = list(dict.fromkeys(one.secret for one in earlier))
    digests = [f"{schemas.DIGEST}{i}" for i in range(len(secrets))]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            added = table
            for name, secret in zip(digests, secrets, strict=True):
                added = added.append_column(name, digests_of(table, secret))
            yield added

    fields = [T.StructField(name, T.StringType()) for name in digests]
    rows = encoded.then(step, T.StructType([*encoded.schema.fields, *fields])).frame()
    outs = []
    for digest, secret in zip(digests, secrets, strict=True):
        of_vault = [_entries(spark, j, one, attributes) for j, one in enumerate(earlier) if one.secret == secret]
        entries = reduce(DataFrame.unionByName, of_vault)
        columns = [name for name in entries.columns if name != schemas.DIGEST]
        out = F.array_agg(F.struct(*columns)).alias(f"{_OUT}_{digest}")
        lists = entries.groupBy(F.col(schemas.DIGEST).alias(digest)).agg(out)
        rows = rows.join(lists, digest, "left").drop(digest)
        outs.append(F.col(f"{_OUT}_{digest}"))
    every = F.when(F.coalesce(*outs).isNotNull(), F.flatten(F.array_compact(F.array(*outs))))
    return rows.select(*encoded.schema.fieldNames(), every.alias(_OUT))


def digests_of(table: pa.Table, secret: bytes) -> pa.Array:
    """Return what a vault keeps in place of record ids: equal for equal ids, and nobody without the key finds one."""
    ids = table.column(schemas.RECORD_ID).cast(pa.string()).to_pylist()
    return pa.array(
        [None if one is None else hashlib.blake2b(one.encode(), key=secret, digest_size=16).hexdigest() for one in ids],
        pa.string(),
    )


def _entries(spark: SparkSession, number: int, one: EarlierRelease, attributes: Sequence[str]) -> DataFrame:
    """Levels and paths of a release, in the order of the attributes; null where it has no such attribute."""
    place = {name: i for i, name in enumerate(one.hierarchies)}
    levels, paths = schemas.levels(len(attributes)), schemas.paths(len(attributes))
    rows = parts_at(spark, one.parts, schemas.remembered(len(place)))
    columns = [F.lit(number).alias(_NUMBER), F.col(schemas.DIGEST)]
    for name, level, path in zip(attributes, levels, paths, strict=True):
        there = place.get(name)
        columns.append((F.lit(None) if there is None else F.col(f"l{there}")).cast("tinyint").alias(level))
        columns.append((F.lit(None) if there is None else F.col(f"p{there}")).cast("bigint").alias(path))
    return rows.select(*columns)


class Past:
    """What the records of a chunk have behind them.

    Parameters
    ----------
    depths : sequence of k ndarrays of int8, shape (n_leaves_i + 1,)
        Depth of each code.
    paths : sequence of k ndarrays of int64, shape (n_leaves_i + 1,)
        Fingerprint of each code with its path.
    """

    def __init__(self, depths: Sequence[LevelArray], paths: Sequence[LongArray]) -> None:
        self.depths, self.paths = depths, paths

    @classmethod
    def of(cls, hierarchies: Mapping[str, Hierarchy]) -> Past:
        """Of the hierarchies of now."""
        of_each = hierarchies.values()
        depths = [one.depth[one.ancestor[:, 0]].astype(np.int8) for one in of_each]
        return cls(depths, [path_fingerprints(one) for one in of_each])

    def of_all(self, table: pa.Table) -> History:
        """Put all releases together, of records as :func:`with_releases` returns them."""
        return self.of_some(table, None)

    def of_some(self, table: pa.Table, number: int | None) -> History:
        """Put one release alone, or all where the number is None."""
        k = len(self.depths)
        codes = integers(table, schemas.codes(k))
        record = pc.list_parent_indices(table.column(_OUT)).to_numpy().astype(np.int64)
        entry = pc.list_flatten(table.column(_OUT)).combine_chunks()
        if isinstance(entry, pa.ChunkedArray):
            entry = pa.concat_arrays(entry.chunks)

        def column(name: str, missing: int) -> LongArray:
            values: LongArray = entry.field(name).fill_null(missing).to_numpy(zero_copy_only=False).astype(np.int64)
            return values

        taken = slice(None) if number is None else np.flatnonzero(column(_NUMBER, -1) == number)
        # An attribute that a release lacks is as if suppressed there, and has not changed: its own path, the top.
        own = np.column_stack([paths[codes[:, i]] for i, paths in enumerate(self.paths)])
        depths = np.column_stack([depth[codes[:, i]] for i, depth in enumerate(self.depths)])
        levels, paths = [], []
        for i, (level, path) in enumerate(zip(schemas.levels(k), schemas.paths(k), strict=True)):
            there = entry.field(level).is_valid().to_numpy(zero_copy_only=False)
            levels.append(np.where(there, column(level, 0), depths[record, i]).astype(np.int8))
            paths.append(np.where(there, column(path, 0), own[record, i]))
        return meet(depths, record[taken], np.column_stack(levels)[taken], np.column_stack(paths)[taken], own)


def remembered_part(table: pa.Table, levels: LevelArray, paths: Sequence[LongArray], secret: bytes) -> pa.Table:
    """What a vault is to remember of the decisions of a chunk.

    Parameters
    ----------
    table : pa.Table
        ENCODED, resolved.
    levels : ndarray of int8, shape (n, k)
    paths : sequence of k ndarrays of int64
        As :func:`privrisk_spark.engine.chains.path_fingerprints` returns them.
    secret : bytes
        Key of the digests of the ids.
    """
    k = len(paths)
    columns = {schemas.DIGEST: digests_of(table, secret)}
    columns |= {name: pa.array(levels[:, i]) for i, name in enumerate(schemas.levels(k))}
    codes = integers(table, schemas.codes(k))
    columns |= {name: pa.array(paths[i][codes[:, i]]) for i, name in enumerate(schemas.paths(k))}
    return pa.table(columns)


@dataclass(frozen=True)
class Evaluation:
    """How the risk of what is out is found."""

    disclosure: Disclosure
    attacker: StoredAttacker
    weights: WeightColumns

    def risk(self, table: pa.Table, levels: LevelArray) -> FloatArray:
        """Risk of the records of a chunk, disclosed at given levels."""
        codes = integers(table, schemas.codes(levels.shape[1]))
        given = floats(table, schemas.weights(self.weights.n))
        attacker = self.attacker.load()
        personal, record_weight = self.disclosure.sensitivity.own(
            self.weights.personal(given), self.weights.of_record(given)
        )
        risks, _ = risks_at(self.disclosure, attacker, codes, levels, personal=personal, record_weight=record_weight)
        return attacker.risk(risks)


def write_disclosed_risk(
    scratch: Scratch,
    encoded: Batches,
    earlier: Sequence[EarlierRelease],
    hierarchies: Mapping[str, Hierarchy],
    evaluation: Evaluation,
) -> DataFrame:
    """Find each record's risk after every release alone, and after all of them.

    Parameters
    ----------
    encoded : Batches
        ENCODED, resolved; ids are unique.
    earlier : sequence of EarlierRelease
        At least one.
    hierarchies : mapping of quasi-identifier to Hierarchy

    Returns
    -------
    DataFrame
        ``risk<j>`` double and ``changed<j>`` boolean after release j alone, and after all of them for j the number of
        releases; null where they do not hold the record.
    """
    past, last = Past.of(hierarchies), len(earlier)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            columns = {}
            for j in range(last + 1):
                history = past.of_all(table) if j == last else past.of_some(table, j)
                absent = history.releases == 0
                columns[f"risk{j}"] = pa.array(evaluation.risk(table, history.levels), mask=absent)
                columns[f"changed{j}"] = pa.array(history.changed, mask=absent)
            yield pa.table(columns)

    fields = [
        field
        for j in range(last + 1)
        for field in (T.StructField(f"risk{j}", T.DoubleType()), T.StructField(f"changed{j}", T.BooleanType()))
    ]
    joined = Batches.of_frame(with_releases(scratch.spark, encoded, earlier, list(hierarchies)))
    return scratch.write_frame(joined.then(step, T.StructType(fields)).frame(), "disclosed-risk")


def measure_disclosed_risk(risks: DataFrame, earlier: Sequence[EarlierRelease]) -> tuple[list[DisclosedRisk], int]:
    """Measure what :func:`write_disclosed_risk` returns.

    Returns
    -------
    found : list of DisclosedRisk
        After each release alone, then after all.
    risen : int
        Records whose risk after all is greater than after any alone.
    """
    n = len(earlier)

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            values = [table.column(f"risk{j}").to_numpy() for j in range(n + 1)]
            held = [~np.isnan(of) for of in values]
            moments = [
                Moments.of(of[there], np.ones(int(there.sum()), dtype=np.int64))
                for of, there in zip(values, held, strict=True)
            ]
            changed = [int(pc.sum(table.column(f"changed{j}")).as_py() or 0) for j in range(n + 1)]
            greatest = np.fmax.reduce(values[:n])
            with np.errstate(invalid="ignore"):
                risen = int(np.count_nonzero(values[n] > greatest * (1 + TOLERANCE)))
            yield report("", {"moments": moments, "changed": changed, "risen": risen})

    parts = [json.loads(facts) for facts in Batches.of_frame(risks).then(step, PARTS).frame().toArrow()[1].to_pylist()]
    # Exact, and values that occur: an infinite one is not interpolated.
    quantiles = risks.agg(
        *[
            F.expr(f"percentile_disc({share}) WITHIN GROUP (ORDER BY risk{j})").alias(f"q{j}_{i}")
            for j in range(n + 1)
            for i, share in enumerate(QUANTILES)
        ]
    ).first()
    assert quantiles is not None
    found = []
    for j in range(n + 1):
        moments = folded_dicts(Moments.empty(), [part["moments"][j] for part in parts])
        found.append(
            DisclosedRisk(
                release=earlier[j].public if j < n else None,
                records=moments.n,
                changed=sum(part["changed"][j] for part in parts),
                risk=Summary.of(moments),
                quantiles=tuple(
                    0.0 if quantiles[f"q{j}_{i}"] is None else quantiles[f"q{j}_{i}"] for i in range(len(QUANTILES))
                ),
            )
        )
    return found, sum(part["risen"] for part in parts)
