"""Strict Mondrian on a table in tasks: a pass a depth while regions are large, then each region where its rows come.

The mathematics is in :mod:`privrisk_spark.kernels.recoding.local.first_cuts`. The driver holds the regions that were
cut and the histograms of those that are to be, and no record.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import PARTS, Batches, Scratch, grouped, in_chunks, report, together
from privrisk_spark.engine.decided import integers
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.lattice.levels import counted_from_root, steps_up
from privrisk_spark.kernels.numeric.exact_sums import exact_dot
from privrisk_spark.kernels.recoding.full_domain import FullDomain
from privrisk_spark.kernels.recoding.local.first_cuts import FirstCuts
from privrisk_spark.kernels.recoding.metrics import Facts, Measured

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


ROWS_PER_TASK = 250_000


@dataclass(frozen=True, eq=False)
class Spread:
    """A table that is recoded class by class, and stays in tasks.

    Attributes
    ----------
    rows : Batches
        With the levels ``x<i>`` of every row, cut at the depths of its values.
    facts : Facts
        As of a node of a lattice, but for levels.
    """

    rows: Batches
    facts: Facts


def collect_partition(
    scratch: Scratch,
    encoded: Batches,
    disclosure: Disclosure,
    leaves: Sequence[LongArray],
    k: int,
    *,
    ordered: Sequence[bool] | None = None,
    rows: int | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> Spread:
    """Recode a table by strict Mondrian, and measure what became of it.

    Parameters
    ----------
    encoded : Batches
        The table, resolved.
    leaves : sequence of ndarrays of int64, shape (n_nodes_i,)
        Leaves below each node of each attribute.
    k : int
        Rows of every class.
    ordered : sequence of bool, optional
        Attributes that are cut at the median, of each; by default none.
    rows : int, optional
        Of the table, where they are known.
    rows_per_task : int
        Rows of a region that are brought together; of values of few kinds there may be more.
    """
    counted = [counted_from_root(ancestors) for ancestors in disclosure.ancestor]
    ancestors, missing = tuple(of for of, _ in counted), [of for _, of in counted]
    n_attributes = len(ancestors)
    no_rows = np.zeros((0, n_attributes), dtype=np.int32)
    table = FullDomain.of(ancestors, no_rows, np.zeros(0, dtype=np.int64))
    measured = Measured.of(table, [of[nodes] for of, nodes in zip(leaves, ancestors, strict=True)])
    cuts = collect_first_cuts(encoded, FirstCuts.wanted(measured, k, ordered, rows_per_task))
    n_rows = encoded.frame().count() if rows is None else rows
    recoded = with_levels(encoded, cuts, tasks=max(2, -(-n_rows // rows_per_task)))
    names, levels = schemas.codes(n_attributes), schemas.chosen(n_attributes)

    def from_leaves(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Count levels as steps from each value."""
        for chunk in tables:
            codes, columns = integers(chunk, names), dict(zip(chunk.column_names, chunk.columns, strict=True))
            for i, name in enumerate(levels):
                steps = steps_up(columns[name].to_numpy(), missing[i][codes[:, i]])
                columns[name] = pa.array(steps.astype(np.int32))
            yield pa.table(columns)

    there = Batches.of_frame(scratch.write_frame(recoded.then(from_leaves, recoded.schema).frame(), "recoded"))
    return Spread(there, _collect_facts(there, disclosure, leaves, measured.domains, suppressed=n_rows * (n_rows < k)))


def _collect_facts(
    rows: Batches, disclosure: Disclosure, leaves: Sequence[LongArray], domains: tuple[int, ...], *, suppressed: int
) -> Facts:
    """Measure classes where they lie; what comes to the driver is a few sums a task."""
    k = len(leaves)
    nodes = schemas.nodes(k)

    def of_classes(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for chunk in in_chunks(tables):
            codes, levels = integers(chunk, schemas.codes(k)), integers(chunk, schemas.chosen(k)).astype(np.int8)
            found = [disclosure.disclosed(i, codes[:, i], levels[:, i]) for i in range(k)]
            first, member = grouped(found)
            columns = {name: pa.array(node[first]) for name, node in zip(nodes, found, strict=True)}
            times = np.bincount(member, minlength=len(first)).astype(np.int64)
            yield pa.table({**columns, schemas.N_ROWS: pa.array(times)})

    fields = [T.StructField(name, T.IntegerType(), False) for name in nodes]
    schema = T.StructType([*fields, T.StructField(schemas.N_ROWS, T.LongType(), False)])
    classes = rows.then(of_classes, schema).frame().groupBy(*nodes).agg(F.sum(schemas.N_ROWS).alias(schemas.N_ROWS))

    def sums(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        for chunk in in_chunks(tables):
            size = chunk.column(schemas.N_ROWS).to_numpy()
            below = [of[chunk.column(name).to_numpy()] for of, name in zip(leaves, nodes, strict=True)]
            inner = [np.where(of == 1, 0, of) for of in below]
            told: dict[str, Any] = {"rows": int(size.sum()), "classes": len(size), "squares": exact_dot(size, size)}
            told |= {"leaves": [exact_dot(of, size) for of in below], "inner": [exact_dot(of, size) for of in inner]}
            yield report("", told)

    parts = [
        json.loads(part) for part in Batches.of_frame(classes).then(sums, PARTS).frame().toArrow()["facts"].to_pylist()
    ]
    return Facts(
        rows=sum(part["rows"] for part in parts),
        suppressed=suppressed,
        classes=0 if suppressed else sum(part["classes"] for part in parts),
        squares=0 if suppressed else sum(part["squares"] for part in parts),
        levels=(),
        heights=(),
        leaves=tuple(sum(part["leaves"][i] for part in parts) for i in range(k)),
        inner=tuple(sum(part["inner"][i] for part in parts) for i in range(k)),
        domains=domains,
    )


def _times(table: pa.Table) -> LongArray:
    """How many rows each row stands for."""
    times = np.ones(table.num_rows, dtype=np.int64)
    return times * table.column(schemas.N_ROWS).to_numpy() if schemas.N_ROWS in table.column_names else times
