"""The canonical order of a release: which file a tuple goes to, and where it stands in it.

Tuples go to files by a fingerprint of their content and are sorted by it within a file, so that neither the order nor
the partitioning of the input shows, and the same release has the same bytes. Equal rows travel as one, with their
number. Parts of TUPLES lie ordered by file; a task gathers the slices of its file from all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, read_ipc, together
from privrisk_spark.engine.tuples import TupleParts
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric.packing import Packing
from privrisk_spark.storage.part_files import map_array

FILE = ""
"""Column with the number of a row's file; the one name no column of a policy can have."""


def ordered(spark: SparkSession, parts: TupleParts, *, files: int, first: Sequence[str] = ()) -> Batches:
    """Return TUPLES once each in canonical order, one task a file, with the number of the file as the first column.

    Parameters
    ----------
    parts : TupleParts
        Written for so many files.
    first : sequence of str
        Columns that rows are sorted by before the others.
    """

    def read(number: int) -> Iterator[pa.Table]:
        slices = []
        for name in parts.names:
            begins = map_array(parts.directory, f"{name}.files.npy")
            begin, end = int(begins[number]), int(begins[number + 1])
            if end > begin:
                slices.append(read_ipc(parts.directory, name).slice(begin, end - begin))
        if slices:
            table = sorted_tuples(together(slices), first=first)
            yield table.add_column(0, FILE, pa.array(np.full(table.num_rows, number, dtype=np.int32)))

    schema = T.StructType([T.StructField(FILE, T.IntegerType()), *parts.schema.fields])
    return Batches.of_parts(spark, range(files), read, schema)


def sorted_tuples(tuples: pa.Table, *, first: Sequence[str] = ()) -> pa.Table:
    """Each tuple once with the sum of its rows, sorted by its columns, some first; a missing value is least.

    Values of different bits are different, also 0.0 and -0.0; floats are sorted by their bits, nested values by their
    texts.
    """
    names = [*first, *(name for name in tuples.column_names if name not in {*first, schemas.N_ROWS})]
    ranks = [_ranks(tuples.column(name)) for name in names]
    packing = Packing(tuple(int(rank.max()) + 1 for rank in ranks))
    words = packing.pack(ranks, tuples.num_rows)
    order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(tuple(reversed(words)))
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.logical_or.reduce([word[order][1:] != word[order][:-1] for word in words])
    starts = np.flatnonzero(new)
    rows = np.add.reduceat(tuples.column(schemas.N_ROWS).to_numpy()[order], starts)
    once = tuples.take(pa.array(order[starts]))
    return once.set_column(once.column_names.index(schemas.N_ROWS), schemas.N_ROWS, pa.array(rows))


def _ranks(values: pa.ChunkedArray) -> LongArray:
    """Rank of each value among the distinct ones of a column, 0 for a missing one."""
    array = values.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_integer(array.type) and not array.null_count:
        codes = array.to_numpy().astype(np.int64)
        span = int(codes.max()) - int(codes.min())
        if span < 2**31:
            dense: LongArray = codes - (int(codes.min()) - 1)
            return dense
    if pa.types.is_nested(array.type):
        texts = [None if value is None else json.dumps(value, default=str) for value in array.to_pylist()]
        array = pa.array(texts, pa.string())
    elif pa.types.is_floating(array.type):
        doubles = array.cast(pa.float64())
        missing = doubles.is_null().to_numpy(zero_copy_only=False)
        bits = np.ascontiguousarray(doubles.fill_null(0.0).to_numpy(zero_copy_only=False)).view(np.int64)
        array = pa.array(bits, mask=missing)
    encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
    place = np.empty(len(encoded.dictionary) + 1, dtype=np.int64)
    place[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(1, len(encoded.dictionary) + 1)
    place[-1] = 0
    ranks: LongArray = place[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)]
    return ranks
