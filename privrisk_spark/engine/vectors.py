"""Distinct vectors of codes: grouped by Spark, and collected in lexicographic order where a plan says they fit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import (
    Batches,
    grouped,
    in_chunks,
)
from privrisk_spark.errors import InputError
from privrisk_spark.kernels.numeric.distinct import distinct_rows


def vectors_of_table(encoded: Batches, k: int, n_weights: int, more: Sequence[str] = ()) -> DataFrame:
    """Return VECTORS of the table: distinct records, told apart also by personal weights, with their multiplicity.

    Parameters
    ----------
    more : sequence of str
        Further columns that tell records apart.
    """
    names = [*schemas.codes(k), *schemas.weights(n_weights), *more]
    return _of_chunks(encoded, names).groupBy(*names).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))


def _of_chunks(encoded: Batches, names: Sequence[str]) -> DataFrame:
    """Return the distinct vectors of each chunk, with their multiplicity in it."""
    kinds = {field.name: field.dataType for field in encoded.schema.fields}

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            first, member = grouped([table.column(name).to_numpy() for name in names])
            times = pa.array(np.bincount(member, minlength=len(first)).astype(np.int64))
            yield table.select(names).take(pa.array(first)).append_column(schemas.N_ROWS, times)

    fields = [T.StructField(name, kinds[name]) for name in names]
    return encoded.then(step, T.StructType([*fields, T.StructField(schemas.N_ROWS, T.LongType())])).frame()


def collect_records(
    encoded: Batches, k: int, *, most: int, rows: int | None = None
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Collect the distinct records of a table with their rows; results and errors are those of :func:`collect_vectors`.

    A table of no more rows than may be collected comes as its chunks have it, and is grouped here: a shuffle of vectors
    that are nearly all different saves nothing.

    Parameters
    ----------
    most : int
        Largest number of vectors to accept.
    rows : int, optional
        Of the table, where they are known.
    """
    names = schemas.codes(k)
    if not k or rows is None or rows > most:
        return collect_vectors(vectors_of_table(encoded, k, 0), names, most=most)
    table = _of_chunks(encoded, names).toArrow()
    columns = [table.column(name).to_numpy() for name in names]
    times = table.column(schemas.N_ROWS).to_numpy()
    first, member = distinct_rows(columns)
    # Sums of whole numbers below 2^53 are exact.
    times = np.bincount(member, weights=times, minlength=len(first)).astype(np.int64)
    return np.column_stack([column[first] for column in columns]).astype(np.int32), times


def collect_vectors(
    vectors: DataFrame, names: Sequence[str], *, most: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Collect distinct vectors to the driver, as the plans ``dense`` and ``sorted`` are allowed to.

    Parameters
    ----------
    vectors : DataFrame
        VECTORS.
    names : sequence of str
        Columns in axis order; one that is not there (an attribute the dictionary lacks) becomes zeros.
    most : int
        Largest number of vectors to accept.

    Returns
    -------
    vectors : ndarray of int32, shape (m, k)
        In lexicographic order, so that what follows does not depend on the engine's order.
    counts : ndarray of int64, shape (m,)

    Raises
    ------
    InputError
        If there are more than ``most``.
    """
    matrix, table = collect_ordered(vectors, names, most=most)
    return matrix, table.column(schemas.N_ROWS).to_numpy().astype(np.int64)


def collect_ordered(vectors: DataFrame, names: Sequence[str], *, most: int) -> tuple[npt.NDArray[np.int32], pa.Table]:
    """Collect a frame of distinct vectors, as :func:`collect_vectors`, with all its columns.

    Returns
    -------
    vectors : ndarray of int32, shape (m, k)
        In lexicographic order.
    table : pa.Table
        In the same order.
    """
    table = vectors.limit(most + 1).toArrow()
    if table.num_rows > most:
        raise InputError(
            f"counting.sorted_vectors: there are more than {most:,} distinct vectors; raise it if the driver has the "
            "memory, or use coarser hierarchies."
        )
    matrix = np.zeros((table.num_rows, len(names)), dtype=np.int32, order="F")
    for i, name in enumerate(names):
        if name in table.column_names:
            matrix[:, i] = table.column(name).to_numpy()
    order = np.lexsort(matrix.T[::-1]) if len(names) else np.arange(table.num_rows)
    return matrix[order], table.take(pa.array(order))
