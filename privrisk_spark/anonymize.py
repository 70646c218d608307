"""Deciding stage: each record's disclosure by a kernel inside Arrow UDFs over partitions, on distinct records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark program uses

from privrisk_spark import schemas
from privrisk_spark.counts import StoredCounts
from privrisk_spark.kernels.counting import distinct_rows
from privrisk_spark.kernels.decide import Decisions, Problem, decide
from privrisk_spark.kernels.sensitivity import normalized, scaled
from privrisk_spark.policy import Personal, Policy

CHUNK_ROWS = 2**18
"""Rows a task decides at once; distinct records are found within a chunk. Does not change a result."""


@dataclass(frozen=True)
class WeightColumns:
    """Where the personal weights of a record lie among the columns ``w<i>``.

    Attributes
    ----------
    n : int
        Number of weight columns.
    of_attribute : tuple of k int or None
        Column of ``w'_{j,r}``, which multiplies the attribute's weight; None leaves that.
    attribute : tuple of k float
        ``w_j``, for the normalization.
    factor, record : int or None
        Columns of ``w'_r`` and of ``w_r``.
    sum_to, at_most : float or None
        Normalization of a record's weights.
    """

    n: int = 0
    of_attribute: tuple[int | None, ...] = ()
    attribute: tuple[float, ...] = ()
    factor: int | None = None
    record: int | None = None
    sum_to: float | None = None
    at_most: float | None = None

    @classmethod
    def of_policy(cls, policy: Policy, attributes: Sequence[str]) -> WeightColumns:
        """Resolve the policy's column names to positions."""
        names, sensitivity = policy.weight_columns, policy.risk.sensitivity
        given = sensitivity.personal or Personal()
        return cls(
            n=len(names),
            of_attribute=tuple(
                names.index(given.columns[name]) if name in given.columns else None for name in attributes
            ),
            attribute=tuple(sensitivity.weights.get(name, 1.0) for name in attributes),
            factor=names.index(given.factor) if given.factor else None,
            record=names.index(sensitivity.record) if sensitivity.record else None,
            sum_to=given.sum_to,
            at_most=given.at_most,
        )

    def personal(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
        """Return ``w'_{j,r}`` of each record, shape (n, k), or None when no weight is personal."""
        if self.factor is None and all(position is None for position in self.of_attribute):
            return None
        ones = np.ones(len(weights))
        result = np.column_stack([ones if p is None else weights[:, p] for p in self.of_attribute])
        if self.factor is not None:
            result = scaled(result, weights[:, [self.factor]])
        total = self.sum_to or self.at_most
        if total is None:
            return result
        return normalized(result, total=total, at_most=self.sum_to is None, attribute=self.attribute)

    def of_record(self, weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64] | None:
        """Return ``w_r`` of each record, or None."""
        return None if self.record is None else weights[:, self.record]


def integers(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.int32]:
    """Columns of an Arrow table as one int32 matrix, shape (n, number of names)."""
    result = np.empty((table.num_rows, len(names)), dtype=np.int32, order="F")
    for i, name in enumerate(names):
        result[:, i] = table.column(name).to_numpy()
    return result


def floats(table: pa.Table, names: Sequence[str]) -> npt.NDArray[np.float64]:
    """Columns of an Arrow table as one float64 matrix, shape (n, number of names)."""
    result = np.empty((table.num_rows, len(names)), order="F")
    for i, name in enumerate(names):
        result[:, i] = table.column(name).to_numpy()
    return result


def in_chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Gather the batches of a task into tables of up to :data:`CHUNK_ROWS` rows and a batch."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def with_decisions(
    table: pa.Table, decisions: Decisions, rows: npt.NDArray[np.int64], kept: npt.NDArray[np.bool_] | None = None
) -> pa.Table:
    """Append the DECIDED columns to a chunk; ``rows[i]`` is the decision of row i."""
    k = decisions.levels.shape[1]
    for i, name in enumerate(schemas.levels(k)):
        table = table.append_column(name, pa.array(decisions.levels[:, i][rows]))
    for i, name in enumerate(schemas.nodes(k)):
        table = table.append_column(name, pa.array(decisions.nodes[:, i][rows]))
    table = table.append_column(schemas.RISK, pa.array(decisions.risk[rows]))
    table = table.append_column(schemas.RISK_BEFORE, pa.array(decisions.risk_before[rows]))
    table = table.append_column(schemas.UTILITY, pa.array(decisions.utility[rows]))
    table = table.append_column(schemas.CONSISTENT, pa.array(decisions.consistent[rows]))
    table = table.append_column(schemas.FEASIBLE, pa.array(decisions.feasible[rows]))
    sampled = np.ones(len(rows), dtype=np.bool_) if kept is None else kept
    return table.append_column(schemas.KEPT, pa.array(sampled))


def decide_records(
    frame: DataFrame, problem: Problem, counts: StoredCounts, *, k: int, weights: WeightColumns
) -> DataFrame:
    """Return DECIDED: the decision of every row, no shuffle.

    Parameters
    ----------
    frame : DataFrame
        Holds ``q<i>`` and ``w<i>``; other columns pass through.
    problem : Problem
    counts : StoredCounts
    k : int
        Number of quasi-identifiers.
    weights : WeightColumns
    """

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        loaded = counts.load()
        for table in in_chunks(batches):
            codes = integers(table, schemas.codes(k))
            given = floats(table, schemas.weights(weights.n))
            first, member = distinct_rows([*codes.T, *given.T])
            decisions = decide(
                problem,
                loaded,
                codes[first],
                personal=weights.personal(given[first]),
                record_weight=weights.of_record(given[first]),
            )
            yield from with_decisions(table, decisions, member).to_batches()

    return frame.mapInArrow(run, schemas.decided(frame.schema, k))


def join_decisions(encoded: DataFrame, decided: DataFrame, *, k: int, n_weights: int) -> DataFrame:
    """Give every row the decision of its distinct record; the keys are never null."""
    keys = [*schemas.codes(k), *schemas.weights(n_weights)]
    added = [name for name in decided.columns if name not in {*keys, schemas.N_ROWS}]
    left = encoded.alias("e")
    right = decided.select(*keys, *added).alias("d")
    same = [F.col(f"e.{key}").eqNullSafe(F.col(f"d.{key}")) for key in keys]
    return left.join(right, same).select("e.*", *[F.col(f"d.{name}") for name in added])
