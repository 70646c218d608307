"""Equivalence classes of a table or a release by one count: the frames between a table and the measures.

A *subject* is a table whose quasi-identifiers are nodes of hierarchies: leaves in the table as it is, any nodes in a
release. Tasks count equal rows, write what they found in buckets by class, and each bucket is then read by one task,
which sees its classes whole. No row is shuffled, nothing that grows with the table is collected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import (
    PARTS,
    Batches,
    Scratch,
    in_chunks,
    materialized,
    read_ipc,
    report,
    write_ipc,
)
from privrisk_spark.engine.slices import read_slices, write_slices
from privrisk_spark.engine.value_codes import ValueCodes
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import IntArray, LongArray
from privrisk_spark.kernels.classes.classes import Classes
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric import fingerprint
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.storage.parts import PartDirectory

ROWS_PER_BUCKET = 1_000_000
"""Rows of the table for each bucket of classes; a task holds the distinct ones of a bucket."""


@dataclass(frozen=True, eq=False)
class Layout:
    """What the rows of a subject hold.

    Attributes
    ----------
    radices : tuple of k int
        Nodes of each quasi-identifier's hierarchy.
    value_counts : tuple of int
        Distinct values of each sensitive column; a missing one is the code after the last.
    persons, weighted : bool
        Whether rows name their person, and have a sampling weight.
    """

    radices: tuple[int, ...]
    value_counts: tuple[int, ...] = ()
    persons: bool = False
    weighted: bool = False

    @property
    def names(self) -> list[str]:
        """Columns of codes: nodes, then sensitive values."""
        return [*schemas.nodes(len(self.radices)), *schemas.sensitive(len(self.value_counts))]

    @property
    def bounds(self) -> list[int]:
        """Exclusive upper bound of each."""
        return [*self.radices, *(count + 1 for count in self.value_counts)]

    @property
    def schema(self) -> T.StructType:
        """Of the subject's rows; ``n_rows`` of them are alike."""
        fields = [T.StructField(name, T.IntegerType(), False) for name in self.names]
        fields += [T.StructField(schemas.ENTITY, T.StringType())] if self.persons else []
        fields += [T.StructField(schemas.N_ROWS, T.LongType(), False)]
        fields += [T.StructField(schemas.MILLIONTHS, T.LongType(), False)] if self.weighted else []
        return T.StructType(fields)

    @property
    def others(self) -> list[str]:
        """Columns besides the nodes."""
        k = len(self.radices)
        return [name for name in self.schema.fieldNames() if name not in schemas.nodes(k)]

    def of_set(self, positions: Sequence[int]) -> Layout:
        """Layout of a set of the quasi-identifiers."""
        return Layout(tuple(self.radices[i] for i in positions), self.value_counts, self.persons, self.weighted)


def table_rows(
    encoded: Batches,
    hierarchies: Mapping[str, Hierarchy],
    sensitive: Mapping[str, ValueCodes],
    layout: Layout,
    more: Sequence[str] = (),
) -> Batches:
    """Rows of the table as it is: leaves, and the root where a value is ⊥.

    Parameters
    ----------
    encoded : Batches
        ENCODED, resolved; ``r<i>`` holds the sensitive column i.
    hierarchies : mapping of attribute to Hierarchy
    sensitive : mapping of column ``r<i>`` to ValueCodes
        In the order of the layout.
    more : sequence of str
        Columns to carry.
    """
    codes = schemas.codes(len(hierarchies))
    nodes = [np.append(np.arange(h.n_leaves, dtype=np.int32), np.int32(h.root)) for h in hierarchies.values()]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            columns = [of[table.column(name).to_numpy()] for name, of in zip(codes, nodes, strict=True)]
            yield _subject(table, columns, sensitive, layout, more)

    return encoded.then(step, _with(layout, encoded, more))


def _with(layout: Layout, rows: Batches, more: Sequence[str]) -> T.StructType:
    return T.StructType([*layout.schema.fields, *(rows.schema[name] for name in more)])


def released_rows(
    opened: Batches, columns: Sequence[str], lookups: Sequence[ValueCodes], roots: Sequence[int],
    sensitive: Mapping[str, ValueCodes], layout: Layout, more: Sequence[str] = (),
) -> Batches:  # fmt: skip
    """Rows of a release: the node each label names.

    Parameters
    ----------
    opened : Batches
        The release's columns.
    columns : sequence of str
        Of the quasi-identifiers among them.
    lookups : sequence of ValueCodes
        Label to node; a missing cell or a label that is none must have been refused or counted before.
    roots : sequence of int
        What a missing cell is.
    sensitive, layout, more
        As :func:`table_rows` takes them.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            found = []
            for name, lookup, root in zip(columns, lookups, roots, strict=True):
                codes = lookup.encoded(table.column(name))
                found.append(np.where(codes < 0, np.int32(root), codes))
            yield _subject(table, found, sensitive, layout, more)

    return opened.then(step, _with(layout, opened, more))


def _subject(
    table: pa.Table,
    nodes: Sequence[IntArray],
    sensitive: Mapping[str, ValueCodes],
    layout: Layout,
    more: Sequence[str],
) -> pa.Table:
    columns: dict[str, Any] = dict(zip(schemas.nodes(len(nodes)), nodes, strict=True))
    for name, column, count in zip(schemas.sensitive(len(sensitive)), sensitive, layout.value_counts, strict=True):
        codes = sensitive[column].encoded(table.column(column))
        columns[name] = np.where(codes < 0, np.int32(count), codes)
    if layout.persons:
        columns[schemas.ENTITY] = table.column(schemas.ENTITY)
    columns[schemas.N_ROWS] = np.ones(table.num_rows, dtype=np.int64)
    if layout.weighted:
        weights = table.column(schemas.SAMPLE_WEIGHT).to_numpy()
        columns[schemas.MILLIONTHS] = np.rint(weights * 1e6).astype(np.int64)
    columns |= {name: table.column(name) for name in more}
    return pa.table(
        {name: pa.array(column) if isinstance(column, np.ndarray) else column for name, column in columns.items()}
    )


def counted_rows(spark: SparkSession, directory: PartDirectory, parts: Sequence[str], layout: Layout) -> Batches:
    """Rows of a subject as :func:`count_rows` wrote them, one part a task."""
    return materialized(spark, directory, parts, layout.schema)


def renamed(
    rows: Batches, positions: Sequence[int], more: Sequence[str], named: Sequence[str] | None = None
) -> Batches:
    """Rows with some of the nodes, numbered from 0, and some other columns, by other names if these are given."""
    nodes, names = [f"n{i}" for i in positions], schemas.nodes(len(positions))

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            yield table.select([*nodes, *more]).rename_columns([*names, *(more if named is None else named)])

    fields = [T.StructField(name, T.IntegerType(), False) for name in names]
    carried = [
        T.StructField(to, rows.schema[name].dataType, rows.schema[name].nullable)
        for name, to in zip(more, more if named is None else named, strict=True)
    ]
    return rows.then(step, T.StructType([*fields, *carried]))


def buckets_of(rows: int) -> int:
    """Number of buckets for a table of so many rows."""
    return max(1, -(-rows // ROWS_PER_BUCKET))


def count_rows(rows: Batches, layout: Layout, buckets: int, directory: PartDirectory) -> Batches:
    """Count equal rows within each task, write them in buckets by class, and return PARTS.

    Parameters
    ----------
    rows : Batches
        Of :attr:`Layout.schema`, with other columns or not.
    layout : Layout
        Of the columns that are counted.
    """
    names, k = layout.names, len(layout.radices)

    def written(table: pa.Table) -> pa.Table:
        nodes = [table.column(name).to_numpy().astype(np.int64) for name in names[:k]]
        name = write_slices(table, bucket_of(nodes, buckets), buckets, directory)
        rows = table.column(schemas.N_ROWS).to_numpy()
        roots = [node == radix - 1 for node, radix in zip(nodes, layout.radices, strict=True)]
        lost = np.logical_and.reduce(roots)
        held = []
        for value, count in zip(names[k:], layout.value_counts, strict=True):
            of_value = np.zeros(count + 1, dtype=np.int64)
            np.add.at(of_value, table.column(value).to_numpy(), rows)
            held.append(of_value.tolist())
        at_root = [int(rows[root].sum()) for root in roots]
        return report(
            name, {"rows": int(rows.sum()), "held": held, "at_root": at_root, "suppressed": int(rows[lost].sum())}
        )

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            yield written(_alike(table, layout))

    return rows.then(step, PARTS)


def bucket_of(nodes: Sequence[LongArray], buckets: int) -> LongArray:
    """Bucket of each row, by its class.

    Parameters
    ----------
    nodes : sequence of ndarrays of int64, shape (n,)
    """
    number = fingerprint.of_rows([fingerprint.of_integers(node) for node in nodes], len(nodes[0]))
    return (number % np.uint64(buckets)).astype(np.int64)


def _alike(table: pa.Table, layout: Layout) -> pa.Table:
    """Rows of a chunk alike in codes, and person where there are persons, once each."""
    keys = [table.column(name).to_numpy() for name in layout.names]
    kept = list(layout.names)
    if layout.persons:
        entity = table.column(schemas.ENTITY).combine_chunks().dictionary_encode()
        keys.append(entity.indices.fill_null(-1).to_numpy(zero_copy_only=False))
        kept.append(schemas.ENTITY)
    sums = [schemas.N_ROWS, *([schemas.MILLIONTHS] if layout.weighted else [])]
    first, member = distinct_rows(keys)
    if len(first) == table.num_rows:
        return table.select([*kept, *sums])
    once = table.select(kept).take(pa.array(first))
    for name in sums:
        total = np.zeros(len(first), dtype=np.int64)
        np.add.at(total, member, table.column(name).to_numpy())
        once = once.append_column(name, pa.array(total))
    return once


def read_bucket(directory: PartDirectory, names: Iterable[str], bucket: int, layout: Layout) -> Classes:
    """Read the classes of a bucket, in lexicographic order of their nodes.

    Parameters
    ----------
    names : iterable of str
        Parts of :func:`count_rows`.
    """
    return classes_of(read_slices(directory, names, bucket), layout)


def classes_of(table: pa.Table | None, layout: Layout) -> Classes:
    """Classes of counted rows, in lexicographic order of their nodes."""
    k = len(layout.radices)
    if table is None or not table.num_rows:
        return Classes.none(k, len(layout.value_counts), persons=layout.persons, weighted=layout.weighted)
    nodes = [table.column(name).to_numpy() for name in layout.names[:k]]
    first, member = distinct_rows(nodes)

    def summed(name: str) -> LongArray:
        result = np.zeros(len(first), dtype=np.int64)
        np.add.at(result, member, table.column(name).to_numpy())
        return result

    persons, entity = None, None
    if layout.persons:
        indices = table.column(schemas.ENTITY).combine_chunks().dictionary_encode().indices
        entity = indices.fill_null(-1).to_numpy(zero_copy_only=False)  # rows of nobody known may be one person's
        persons = _persons(member, entity, len(first))
    rows = table.column(schemas.N_ROWS).to_numpy()
    held = []
    for name, missing in zip(layout.names[k:], layout.value_counts, strict=True):
        code = table.column(name).to_numpy()
        if entity is None:
            held.append(_runs(first, member, code, rows))
            continue
        # Persons who hold the value.
        triples, _ = distinct_rows([member, code, entity])
        runs_in, of_row = distinct_rows([member[triples], code[triples]])
        runs = triples[runs_in]
        counts = np.bincount(of_row, minlength=len(runs)).astype(np.int64)
        start = np.searchsorted(member[runs], np.arange(len(first) + 1)).astype(np.int64)
        there = code != missing
        known = persons if there.all() else _persons(member[there], entity[there], len(first))
        held.append(SensitiveRuns(start, code[runs].astype(np.int32), counts, persons, known))
    return Classes(
        nodes=np.column_stack([node[first] for node in nodes]).astype(np.int32),
        rows=summed(schemas.N_ROWS),
        persons=persons,
        millionths=summed(schemas.MILLIONTHS) if layout.weighted else None,
        held=tuple(held),
    )


def _persons(member: LongArray, entity: LongArray, classes: int) -> LongArray:
    """Distinct persons of each class."""
    pairs, _ = distinct_rows([member, entity])
    return np.bincount(member[pairs], minlength=classes).astype(np.int64)


def _runs(first: LongArray, member: LongArray, code: IntArray, rows: LongArray) -> SensitiveRuns:
    """Rows of each class with each value; what occurs once, as most of a table as it is does, is not sorted.

    Parameters
    ----------
    first : ndarray of int64, shape (m,)
        An entry of each class.
    member, code, rows : ndarrays, shape (n,)
        Class and value of each entry, and the rows it stands for.
    """
    several = np.bincount(member, minlength=len(first)) > 1
    inside = np.flatnonzero(several[member])
    if 2 * len(inside) > len(member):
        inside, several = np.arange(len(member)), np.ones(len(first), dtype=np.bool_)
    runs, of_entry = distinct_rows([member[inside], code[inside]])
    number = np.ones(len(first), dtype=np.int64)
    number[several] = np.bincount(member[inside[runs]], minlength=len(first))[several]
    start = np.concatenate([[0], np.cumsum(number)])
    # Runs are in the order of the classes, these of one entry and those of several alike.
    among = np.repeat(several, number)
    value, count = np.empty((2, len(among)), dtype=np.int64)
    value[among], value[~among] = code[inside[runs]], code[first[~several]]
    sums = np.zeros(len(runs), dtype=np.int64)
    np.add.at(sums, of_entry, rows[inside])
    count[among], count[~among] = sums, rows[first[~several]]
    return SensitiveRuns(start, value.astype(np.int32), count)


def each_bucket(
    scratch: Scratch, directory: PartDirectory, names: Sequence[str], buckets: int, layout: Layout,
    measured: Callable[[Classes], tuple[pa.Table | None, Mapping[str, Any]]], target: PartDirectory | None,
    completed: Callable[[Classes, int], Classes] | None = None,
) -> Batches:  # fmt: skip
    """Measure the classes of each bucket in a task of its own, and return PARTS.

    Parameters
    ----------
    directory, names, layout
        As :func:`read_bucket` takes them.
    measured : callable
        Returns a table to keep of a bucket's classes, or None, and facts.
    target : PartDirectory or None
        Of the kept tables; None if nothing is kept.
    completed : callable, optional
        Adds to the classes of a bucket what the classes of others decide.
    """
    held = tuple(names)

    def read(bucket: int) -> Iterator[pa.Table]:
        classes = read_bucket(directory, held, bucket, layout)
        kept, facts = measured(classes if completed is None else completed(classes, bucket))
        yield report(write_ipc(kept, target) if kept is not None and target is not None else "", facts)

    return Batches.of_parts(scratch.spark, range(buckets), read, PARTS)


def kept_tables(directory: PartDirectory, parts: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Tables kept of the buckets, one after another; small enough to hold, which the caller has made sure of."""
    return pa.concat_tables([read_ipc(directory, part["name"]) for part in parts if part["name"]]).combine_chunks()
