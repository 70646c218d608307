"""Rows dealt to buckets without Spark: tasks write parts in slices, and the task of a bucket reads its slice of each.

What equal keys decide together is then seen by one task. Rows neither cross into Java nor are sorted by it, and the
parts lie in the run's scratch directory, which every worker sees.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.batches import PARTS, Batches, decoded, in_chunks, part_name, report
from privrisk_spark.kernels.arrays import LongArray, WordArray
from privrisk_spark.storage.part_files import mapped_arrow, writing_arrow
from privrisk_spark.storage.parts import PartDirectory


def dealt(
    rows: Batches,
    fingerprint: Callable[[pa.Table], WordArray],
    columns: Sequence[str],
    buckets: int,
    directory: PartDirectory,
    facts: Callable[[pa.Table], Mapping[str, Any]] = lambda _: {},
) -> Batches:
    """Write some columns in slices by a fingerprint of each row, and return PARTS.

    Parameters
    ----------
    fingerprint : callable
        uint64 (n,) of the rows of a chunk; rows that are to meet have equal ones.
    facts : callable
        Reported of a chunk.
    """

    def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            bucket = (fingerprint(table) % np.uint64(buckets)).astype(np.int64)
            yield report(write_slices(decoded(table.select(list(columns))), bucket, buckets, directory), facts(table))

    return rows.then(step, PARTS)


def write_slices(table: pa.Table, bucket: LongArray, buckets: int, directory: PartDirectory) -> str:
    """Write a table as one part, each bucket's rows a batch of it; returns its name.

    Parameters
    ----------
    table : pa.Table
        Without dictionaries.
    bucket : ndarray of int64, shape (n,)
        Of each row.
    """
    # One schema for all parts: what Spark hands over says that it holds no nulls, what numpy does not.
    table = pa.table({name: table.column(name) for name in table.column_names})
    # Narrow integers are sorted by radix.
    order = np.argsort(bucket.astype(np.int16) if buckets < 2**15 else bucket, kind="stable")
    ends = np.searchsorted(bucket[order], np.arange(buckets + 1))
    ordered = table.take(pa.array(order)).combine_chunks()
    name = part_name("arrow")
    with writing_arrow(directory, name, table.schema) as writer:
        for begin, end in itertools.pairwise(ends.tolist()):
            batches = ordered.slice(begin, end - begin).combine_chunks().to_batches()
            writer.write_batch(batches[0] if batches else _no_rows(table.schema))
    return name


def read_slices(directory: PartDirectory, names: Iterable[str], bucket: int) -> pa.Table | None:
    """Read a bucket's rows of all parts of :func:`write_slices`; None if there are no parts."""
    pieces = []
    for name in names:
        with mapped_arrow(directory, name) as reader:
            pieces.append(reader.get_batch(bucket))
    return pa.Table.from_batches(pieces, pieces[0].schema).combine_chunks() if pieces else None


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
