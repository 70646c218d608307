"""Counting stage of dictionaries with several rows a person.

Rows are dealt by person once, and written as vectors with signed counts
(:mod:`privrisk_spark.kernels.counting.persons`), which the plans the driver holds count as they count rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, report, write_ipc
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.engine.slices import dealt, read_slices
from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import WordArray
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.counting.persons import Joins, signed_vectors
from privrisk_spark.kernels.numeric.histogram import VectorHistogram
from privrisk_spark.storage.parts import PartDirectory

BUCKETS = 256
"""Buckets rows are dealt to by person."""

ROWS_PER_TASK = 500_000
"""Rows of the buckets of one task, about, unless one bucket has more."""


def collect_persons(
    scratch: Scratch, rows: Batches, axes: Sequence[Axis], directory: PartDirectory, *, name: str
) -> tuple[list[dict[str, Any]], int]:
    """Deal rows by person, and write signed VECTORS as parts.

    Parameters
    ----------
    rows : Batches
        ``t<i>`` dictionary codes of the attributes the dictionary has, resolved; ``entity``.
    axes : sequence of k Axis
        None of them ``similar``.
    directory : PartDirectory
        Of the parts.
    name : str
        Of the dictionary, for the scratch directory.

    Returns
    -------
    parts : list of dict
        ``name`` of each part, and its ``persons``.
    unnamed : int
        Rows without a person, which are not counted.
    """
    joins = Joins.of(axes)
    names = schemas.dictionary_codes(len(axes))
    known = [code for code, axis in zip(names, axes, strict=True) if axis.known]
    source = scratch.directory(f"by-person-{name}")

    def of_person(table: pa.Table) -> WordArray:
        return fingerprints(table.column(schemas.ENTITY))

    def facts(table: pa.Table) -> dict[str, Any]:
        return {"rows": table.num_rows, "unnamed": table.column(schemas.ENTITY).null_count}

    dealt_parts = scratch.collect_parts(dealt(rows, of_person, [*known, schemas.ENTITY], BUCKETS, source, facts))
    held = tuple(part["name"] for part in dealt_parts)
    total = sum(part["rows"] for part in dealt_parts)
    tasks = min(BUCKETS, max(1, -(-total // ROWS_PER_TASK)))
    buckets = [tuple(range(task, BUCKETS, tasks)) for task in range(tasks)]

    def read(of_task: tuple[int, ...]) -> Iterator[pa.Table]:
        histogram = VectorHistogram(joins.radices)
        persons = 0
        for bucket in of_task:
            table = read_slices(source, held, bucket)
            if table is None or not table.num_rows:
                continue
            persons += _add_persons(histogram, joins, table)
            if histogram.full:
                yield written(histogram, persons)
                persons = 0
        yield written(histogram, persons)

    def written(histogram: VectorHistogram, persons: int) -> pa.Table:
        if histogram.total != persons:
            raise InternalError(f"counting: {persons} persons were written as {histogram.total}.")
        vectors, counts = histogram.take()
        columns = {code: pa.array(vectors[:, i]) for i, code in enumerate(names) if code in known}
        table = pa.table({**columns, schemas.N_ROWS: pa.array(counts)}).filter(pa.array(counts != 0))
        return report(write_ipc(table, directory), {"persons": persons})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, buckets, read, PARTS)) if total else []
    return parts, sum(part["unnamed"] for part in dealt_parts)


def _add_persons(histogram: VectorHistogram, joins: Joins, table: pa.Table) -> int:
    """Add the persons of a bucket to a histogram, and return their number."""
    person = table.column(schemas.ENTITY).combine_chunks()
    if person.null_count:
        table = table.filter(person.is_valid())
        person = table.column(schemas.ENTITY).combine_chunks()
    numbered = person.dictionary_encode()
    nothing = np.zeros(table.num_rows, dtype=np.int32)
    vectors = [
        table.column(name).to_numpy() if name in table.column_names else nothing
        for name in schemas.dictionary_codes(len(joins.radices))
    ]
    for columns, counts in signed_vectors(joins, numbered.indices.to_numpy().astype(np.int64), vectors):
        histogram.add(columns, counts)
    return len(numbered.dictionary)
