"""Records of the table beside their released forms, by record id: dealt by the id's fingerprint, joined in tasks.

Neither a join of Spark's nor a sort: a task reads the rows of a bucket from both sides and looks the ids of one up
among those of the other. What comes out is materialized, and every measure that needs both sides is a tally of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, materialized, report, write_ipc
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.number_texts import dictionary_of
from privrisk_spark.engine.slices import dealt, read_slices
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import WordArray
from privrisk_spark.stages.assessing.classes import Layout

ROWS_PER_BUCKET = 1_000_000
"""Rows of the table a task joins."""


def originals(k: int) -> list[str]:
    """Columns of the nodes of a record in the table, -1 for a released record that the table lacks."""
    return [f"o{i}" for i in range(k)]


@dataclass(frozen=True, eq=False)
class Matched:
    """Released rows beside the records they are of.

    Attributes
    ----------
    rows : Batches
        The layout, the record id, ``o<i>``, and the numbers ``x<j>`` of the table and ``y<j>`` of the release, NaN for
        a missing one.
    absent : int
        Records of the table that the release lacks.
    """

    rows: Batches
    absent: int


def collect_matched(
    scratch: Scratch, table: Batches, release: Batches, layout: Layout, numbers: Mapping[str, str], rows: int,
    *, texts: Sequence[str] = (),
) -> Matched:  # fmt: skip
    """Put each released row beside its record.

    Parameters
    ----------
    table : Batches
        Record id, ``n<i>``, the numbers' columns, and ``entity`` and ``sample_weight`` where the layout has them.
    release : Batches
        Record id, ``n<i>``, ``s<j>`` and ``n_rows`` of the layout, and ``y<j>``.
    layout : Layout
        Of the released rows. Persons and weights are the table's: a record of nobody there is a person of its own,
        and has no weight.
    numbers : mapping of ``y<j>`` to str
        Column of the table that holds the number's original.
    rows : int
        Of the table.
    texts : sequence of str
        Columns of texts of the table to carry.

    Raises
    ------
    InputError
        If records of the table share an id.
    """
    k, buckets = len(layout.radices), max(1, -(-rows // ROWS_PER_BUCKET))
    theirs = [schemas.RECORD_ID, *layout.names, schemas.N_ROWS, *numbers]
    mine = [schemas.RECORD_ID, *schemas.nodes(k), *dict.fromkeys(numbers.values()), *texts]
    mine += ([schemas.ENTITY] if layout.persons else []) + ([schemas.SAMPLE_WEIGHT] if layout.weighted else [])
    sides = []
    for name, side, columns in (("table", table, mine), ("release", release, theirs)):
        directory = scratch.directory(f"by-id-{name}")
        found = scratch.collect_parts(dealt(side, _of_record_id, columns, buckets, directory))
        sides.append((directory, [part["name"] for part in found]))
    target = scratch.directory("matched")

    def read(bucket: int) -> Iterator[pa.Table]:
        records, released = (read_slices(directory, names, bucket) for directory, names in sides)
        joined, absent, again = _joined(records, released, layout, numbers, texts)
        yield report(write_ipc(joined, target), {"absent": absent, "again": again})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(buckets), read, PARTS))
    again = sum(part["again"] for part in parts)
    if again:
        raise InputError(
            f"table.record_id: {again:,} records have an id that another record has; records can be held against their "
            "released forms by an id that is unique only."
        )
    joined = materialized(scratch.spark, target, [part["name"] for part in parts], _schema(layout, numbers, texts))
    return Matched(joined, sum(part["absent"] for part in parts))


def _of_record_id(table: pa.Table) -> WordArray:
    return fingerprints(table.column(schemas.RECORD_ID))


def as_doubles(rows: Batches, names: Sequence[str]) -> Batches:
    """Rows with some columns as doubles, days since 1970 of dates; a text that is no number is missing."""

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in tables:
            doubles = table
            for name in names:
                values = _doubles(table.column(name))
                doubles = doubles.set_column(table.column_names.index(name), name, values)
            yield doubles

    fields = [T.StructField(f.name, T.DoubleType()) if f.name in names else f for f in rows.schema.fields]
    return rows.then(step, T.StructType(fields)) if names else rows


def _doubles(values: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    if not pa.types.is_string(values.type) and not pa.types.is_dictionary(values.type):
        return values.cast(pa.float64(), safe=False)
    distinct, place = dictionary_of(values)
    numbers = [_number(text) for text in distinct.to_pylist()]
    return pa.array(numbers, pa.float64()).take(place)


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _schema(layout: Layout, numbers: Mapping[str, str], texts: Sequence[str]) -> T.StructType:
    fields = [T.StructField(schemas.RECORD_ID, T.StringType())]
    fields += [T.StructField(name, T.IntegerType(), False) for name in originals(len(layout.radices))]
    fields += [T.StructField(name, T.DoubleType(), False) for of in numbers for name in (_x(of), of)]
    fields += [T.StructField(name, T.StringType()) for name in texts]
    return T.StructType([*layout.schema.fields, *fields])


def _x(masked: str) -> str:
    return f"x{masked[1:]}"


def _joined(
    records: pa.Table | None,
    released: pa.Table | None,
    layout: Layout,
    numbers: Mapping[str, str],
    texts: Sequence[str],
) -> tuple[pa.Table, int, int]:
    """Released rows of a bucket beside their records, how many of these have none, and how many share an id."""
    k = len(layout.radices)
    ids = pa.array([], pa.string()) if records is None else records.column(schemas.RECORD_ID).combine_chunks()
    again = len(ids) - len(pc.unique(ids))
    if released is None:
        return _schema_table(layout, numbers, texts), len(ids), again
    named = released.column(schemas.RECORD_ID).combine_chunks()
    place = pc.index_in(named, value_set=ids, skip_nulls=True)
    known = place.is_valid().to_numpy(zero_copy_only=False)
    found = place.fill_null(0).to_numpy()
    there = np.zeros(len(ids), dtype=np.bool_)
    there[found[known]] = True
    absent = len(ids) - int(np.count_nonzero(there))

    def of_record(name: str, missing: float) -> npt.NDArray[Any]:
        if records is None or not len(ids):
            return np.full(len(known), missing)
        values = records.column(name).to_numpy()
        result: npt.NDArray[Any] = np.where(known, values[found], missing)
        return result

    columns: dict[str, Any] = {name: released.column(name) for name in layout.names}
    if layout.persons:
        own = pc.binary_join_element_wise("?", named, "")
        theirs = pa.nulls(len(named), pa.string()) if records is None else records.column(schemas.ENTITY).take(place)
        columns[schemas.ENTITY] = pc.coalesce(theirs, own)
    columns[schemas.N_ROWS] = released.column(schemas.N_ROWS)
    if layout.weighted:
        columns[schemas.MILLIONTHS] = np.rint(of_record(schemas.SAMPLE_WEIGHT, 0.0) * 1e6).astype(np.int64)
    columns[schemas.RECORD_ID] = named
    for node, name in zip(schemas.nodes(k), originals(k), strict=True):
        columns[name] = of_record(node, -1).astype(np.int32)
    for masked, original in numbers.items():
        columns[_x(masked)] = of_record(original, np.nan).astype(np.float64)
        columns[masked] = released.column(masked).to_numpy().astype(np.float64)
    for name in texts:
        columns[name] = pa.nulls(len(named), pa.string()) if records is None else records.column(name).take(place)
    return pa.table(columns), absent, again


def _schema_table(layout: Layout, numbers: Mapping[str, str], texts: Sequence[str]) -> pa.Table:
    kinds = {T.IntegerType: pa.int32(), T.LongType: pa.int64(), T.DoubleType: pa.float64(), T.StringType: pa.string()}
    fields = _schema(layout, numbers, texts).fields
    return pa.schema([(field.name, kinds[type(field.dataType)]) for field in fields]).empty_table()
