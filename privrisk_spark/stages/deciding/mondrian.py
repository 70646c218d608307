"""Strict Mondrian on a table in tasks: a pass a depth while regions are large, then each region where its rows come.

The mathematics is in :mod:`privrisk_spark.kernels.recoding.local.first_cuts`. The driver holds the regions that were
cut and the histograms of those that are to be, and no record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, grouped, in_chunks, together
from privrisk_spark.engine.decided import integers
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.recoding.local.first_cuts import FirstCuts

REGION = "region"
"""Column of the region a row is in, between two steps."""

_TALLY = ("attribute", "region", "place", "rows")


def collect_first_cuts(rows: Batches, cuts: FirstCuts) -> FirstCuts:
    """Cut the regions that are too large to be brought together.

    Parameters
    ----------
    rows : Batches
        With ``q<i>`` and, where a row stands for several, ``n_rows``. It is read once a depth.
    cuts : FirstCuts
        What is wanted.
    """
    schema = T.StructType([T.StructField(name, T.LongType(), False) for name in _TALLY])
    names = schemas.codes(len(cuts.orders))
    while not cuts.done:

        def step(tables: Iterable[pa.Table], cuts: FirstCuts = cuts) -> Iterator[pa.Table]:
            for table in in_chunks(tables):
                found = cuts.tally(integers(table, names), _times(table))
                yield pa.table([pa.array(column) for column in found], names=list(_TALLY))

        tallied = rows.then(step, schema).frame().groupBy(*_TALLY[:3]).agg(F.sum("rows").alias("rows"))
        found = tallied.toArrow()
        cuts = cuts.next(*(found.column(name).to_numpy().astype(np.int64) for name in _TALLY))
    return cuts


def with_levels(rows: Batches, cuts: FirstCuts, *, tasks: int) -> Batches:
    """Add the levels ``x<i>`` of every row, in tasks to which the rows of each region come together.

    A table of fewer than ``k`` rows has the levels of the roots: it is suppressed.

    Parameters
    ----------
    rows : Batches
    cuts : FirstCuts
        Done.
    tasks : int
        A task holds its rows at once.
    """
    k = len(cuts.orders)
    names, levels = schemas.codes(k), schemas.chosen(k)

    def located(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for table in in_chunks(tables):
            region, _ = cuts.regions(cuts.places(integers(table, names)), table.num_rows)
            yield table.append_column(REGION, pa.array(region))

    def decided(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        held = [table for table in tables if table.num_rows]
        if not held:
            return
        table = together(held).drop_columns([REGION])
        first, member = grouped([table.column(name).to_numpy() for name in names])
        of_record = np.bincount(member, weights=_times(table), minlength=len(first)).astype(np.int64)
        found = cuts.levels(integers(table.take(pa.array(first)), names), of_record)[member].astype(np.int32)
        for i, name in enumerate(levels):
            table = table.append_column(name, pa.array(found[:, i]))
        yield table

    fields = list(rows.schema.fields)
    there = rows.then(located, T.StructType([*fields, T.StructField(REGION, T.LongType(), False)]))
    together_by_region = Batches.of_frame(there.frame().repartition(tasks, REGION))
    added = [T.StructField(name, T.IntegerType(), False) for name in levels]
    return together_by_region.then(decided, T.StructType([*fields, *added]))


def _times(table: pa.Table) -> LongArray:
    """How many rows each row stands for."""
    times = np.ones(table.num_rows, dtype=np.int64)
    return times * table.column(schemas.N_ROWS).to_numpy() if schemas.N_ROWS in table.column_names else times
