"""Exposure of single values, and the last cell a rule discloses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses
from pyspark.sql import types as T  # noqa: N812 - the name every Spark program uses

from privrisk_spark.engine import schemas
from privrisk_spark.engine.batches import Batches, in_chunks
from privrisk_spark.engine.counts import CountLookup, StoredCounts
from privrisk_spark.engine.decided import WeightColumns, floats, integers
from privrisk_spark.engine.fingerprints import fingerprints
from privrisk_spark.errors import InfeasibleError
from privrisk_spark.kernels.arrays import LevelArray, LongArray
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.search.cell_order import CellOrder
from privrisk_spark.kernels.search.rules import (
    Exposure,
    marginal_counts,
)
from privrisk_spark.planning.rules import LeastExposedInOrder


def collect_exposure(
    disclosure: Disclosure,
    counts: StoredCounts | CountLookup,
) -> Exposure:
    """Exposure from the counts of each attribute alone; collects no more numbers than the hierarchies have nodes."""
    if isinstance(counts, StoredCounts):
        alone: Sequence[LongArray] = marginal_counts(counts.load(), disclosure.code_depth)
        return Exposure.of(disclosure, alone, counts.dictionary_rows)
    dictionary_rows = counts.spread.dictionary_rows
    alone = [
        # A dictionary that lacks the attribute has its rows consistent with every value.
        found[relation.node_class[ancestor[:, 0]]]
        if relation.known
        else np.full(len(ancestor), dictionary_rows, dtype=np.int64)
        for found, relation, ancestor in zip(
            counts.collect_marginals(), counts.space.relations, disclosure.ancestor, strict=True
        )
    ]
    return Exposure.of(disclosure, alone, dictionary_rows)


def collect_last_cell(
    encoded: Batches, reader: Reader, exposure: Exposure, rule: LeastExposedInOrder, attributes: Sequence[str]
) -> CellOrder:
    """Find the last cell to disclose, in all or of each attribute; a pass over the table a digit.

    Collects at most 2^16 numbers a pass and order, however large the table.

    Raises
    ------
    InfeasibleError
        If there are fewer cells than asked for.
    """
    order = CellOrder.wanted(rule.scope, reader.k, rule.cells)
    schema = T.StructType([T.StructField(name, T.LongType(), False) for name in ("order", "digit", "cells")])
    while not order.done:

        def step(tables: Iterable[pa.Table], order: CellOrder = order) -> Iterator[pa.Table]:
            for table in in_chunks(tables):
                rows = reader.rows(table)
                records = fingerprints(table.column(schemas.RECORD_ID))
                found = order.tally(exposure.cells(rows.codes, rows.personal), records)
                yield pa.table([pa.array(column) for column in found], names=schema.fieldNames())

        tallied = encoded.then(step, schema).frame().groupBy("order", "digit").agg(F.sum("cells").alias("cells"))
        found = tallied.toArrow()
        columns = [found.column(name).to_numpy().astype(np.int64) for name in schema.fieldNames()]
        if order.step == 0:
            _refuse_more(columns, rule.cells, None if rule.scope == "table" else attributes)
        order = order.next(*columns)
    return order


def _refuse_more(columns: Sequence[LongArray], asked: int, attributes: Sequence[str] | None) -> None:
    """Refuse to disclose more cells than there are, missing values being none."""
    order, _, tally = columns
    there = [int(tally[order == o].sum()) for o in range(1 if attributes is None else len(attributes))]
    if asked > min(there):
        named = "the table has" if attributes is None else f"'{attributes[there.index(min(there))]}' has"
        raise InfeasibleError(
            f"decision.cells: must be at most {min(there):,}, the values {named} that are not missing. Got {asked:,}."
        )


@dataclass(frozen=True, eq=False)
class Reader:
    """How a chunk is read."""

    k: int
    weights: WeightColumns

    @property
    def keys(self) -> list[str]:
        """Columns that a rule and its risk depend on."""
        return [*schemas.codes(self.k), *schemas.weights(self.weights.n)]

    def rows(self, table: pa.Table) -> Rows:
        """Codes and weights of a chunk."""
        given = floats(table, schemas.weights(self.weights.n))
        return Rows(integers(table, schemas.codes(self.k)), self.weights.personal(given), self.weights.of_record(given))

    def chosen_in(self, schema: T.StructType) -> list[str]:
        """Columns of levels that were chosen before, if there are such."""
        return [name for name in schemas.chosen(self.k) if name in schema.fieldNames()]

    def levels(self, table: pa.Table) -> LevelArray:
        """Levels that were chosen before; none, of no attribute, where they follow from the record."""
        names = [name for name in schemas.chosen(self.k) if name in table.column_names]
        return integers(table, names).astype(np.int8)

    def with_chosen(self, rows: Batches, choose: Choose) -> Batches:
        """Add the levels ``x<i>`` of every row."""
        names = schemas.chosen(self.k)

        def step(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
            for table in in_chunks(tables):
                levels = choose(table, self.rows(table)).astype(np.int32)
                columns = dict(zip(table.column_names, table.columns, strict=True))
                yield pa.table(columns | {name: pa.array(levels[:, i]) for i, name in enumerate(names)})

        fields = [T.StructField(name, T.IntegerType(), False) for name in names]
        return rows.then(step, T.StructType([*rows.schema.fields, *fields]))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a chunk as the kernels take them.

    Attributes
    ----------
    codes : ndarray of int32, shape (n, k)
    personal, record_weight : ndarray of float64, or None
    """

    codes: npt.NDArray[np.int32]
    personal: npt.NDArray[np.float64] | None
    record_weight: npt.NDArray[np.float64] | None

    @property
    def given(self) -> dict[str, Any]:
        """Weights as keyword arguments."""
        return {"personal": self.personal, "record_weight": self.record_weight}


Choose = Callable[[pa.Table, Rows], LevelArray]
"""Levels of the rows of a chunk."""
