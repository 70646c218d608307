"""Counting stage of dictionaries with several rows a person.

Rows are dealt by person once, and written as vectors with signed counts
(:mod:`privrisk_spark.kernels.counting.persons`), which the plans the driver holds count as they count rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, report, together, write_ipc
from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.kernels.counting.persons import Joins, signed_vectors
from privrisk_spark.kernels.numeric.histogram import VectorHistogram


def count_persons(rows: DataFrame, axes: Sequence[Axis], directory: str) -> Batches:
    """Deal rows by person, write signed VECTORS as parts within each task, and return PARTS.

    Parameters
    ----------
    rows : DataFrame
        ``t<i>`` dictionary codes of the attributes the dictionary has, resolved; ``entity``.
    axes : sequence of k Axis
        None of them ``similar``.
    directory : str

    Returns
    -------
    Batches
        PARTS; facts ``persons``, and ``unnamed``, the rows without a person, which are not counted.
    """
    joins = Joins.of(axes)
    names = schemas.dictionary_codes(len(axes))
    known = [name for name, axis in zip(names, axes, strict=True) if axis.known]

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        held = [table for table in tables if table.num_rows]
        if not held:
            return
        table = together(held)
        person = table.column(schemas.ENTITY).combine_chunks()
        unnamed = person.null_count
        if unnamed:
            table = table.filter(person.is_valid())
            person = table.column(schemas.ENTITY).combine_chunks()
        numbered = person.dictionary_encode()
        if isinstance(numbered, pa.ChunkedArray):
            numbered = numbered.unify_dictionaries().combine_chunks()
        nothing = np.zeros(table.num_rows, dtype=np.int32)
        vectors = [
            table.column(name).to_numpy().astype(np.int32, copy=False) if name in known else nothing for name in names
        ]
        histogram = VectorHistogram(joins.radices)
        persons, total = len(numbered.dictionary), 0
        for columns, counts in signed_vectors(joins, numbered.indices.to_numpy().astype(np.int64), vectors):
            histogram.add(columns, counts)
            if histogram.full:
                total += histogram.total
                yield written(histogram, 0, 0)
        total += histogram.total
        if total != persons:
            raise InternalError(f"counting: {persons} persons were written as {total}.")
        yield written(histogram, persons, unnamed)

    def written(histogram: VectorHistogram, persons: int, unnamed: int) -> pa.Table:
        vectors, counts = histogram.take()
        columns = {name: pa.array(vectors[:, i]) for i, name in enumerate(names) if name in known}
        table = pa.table({**columns, schemas.N_ROWS: pa.array(counts)}).filter(pa.array(counts != 0))
        return report(write_ipc(table, directory), {"persons": persons, "unnamed": unnamed})

    return Batches.of_frame(rows.repartition(schemas.ENTITY)).then(step, PARTS)
