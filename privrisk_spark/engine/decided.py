"""Decisions of a chunk of records, and the columns of codes and weights they are made from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from privrisk_spark.engine import schemas
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.disclosure.decisions import AfterHistory, Decisions
from privrisk_spark.kernels.disclosure.sensitivity import normalized, scaled
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.sensitivity import InteractionSensitivity, Personal, RecordSensitivity, WeighedSensitivity


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
        Columns of ``w'_r`` and of ``w_r``; of the form ``interaction`` one column is both.
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
        weighed = sensitivity if isinstance(sensitivity, WeighedSensitivity) else WeighedSensitivity()
        given = weighed.personal or Personal()
        of_record = sensitivity.record if isinstance(sensitivity, RecordSensitivity) else None
        if isinstance(sensitivity, InteractionSensitivity):
            # The factor scales all weights of a record, those of interactions too.
            of_record = given.factor
        return cls(
            n=len(names),
            of_attribute=tuple(
                names.index(given.columns[name]) if name in given.columns else None for name in attributes
            ),
            attribute=tuple(weighed.weights.get(name, 1.0) for name in attributes),
            factor=names.index(given.factor) if given.factor else None,
            record=names.index(of_record) if of_record else None,
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


def history_of(table: pa.Table, k: int) -> npt.NDArray[np.int8] | None:
    """Deepest levels that are out already of each record, shape (n, k); None where there is no history."""
    if schemas.history(1)[0] not in table.column_names:
        return None
    return integers(table, schemas.history(k)).astype(np.int8)


@dataclass(frozen=True, eq=False)
class Decided:
    """Rows of a chunk and their decisions.

    Attributes
    ----------
    table : pa.Table
        ENCODED rows.
    decisions : Decisions
        Of the distinct records of the chunk, of more, or of kinds of alike ones.
    rows : ndarray of int64, shape (n,)
        Decision of each row.
    kept : ndarray of bool, shape (n,)
        Whether the row is released.
    disclosed : tuple of k ndarrays of int32, shape (n,), or None
        Node of each row, where records of other values share its decision; None where they do not.
    suppressed : ndarray of bool, shape (n,), or None
        Rows whose class under a scheme is not released; None where there is no scheme.
    """

    table: pa.Table
    decisions: Decisions
    rows: npt.NDArray[np.int64]
    kept: npt.NDArray[np.bool_]
    disclosed: tuple[npt.NDArray[np.int32], ...] | None = None
    suppressed: npt.NDArray[np.bool_] | None = None

    def node(self, i: int) -> npt.NDArray[np.int32]:
        """Node of attribute ``i`` of each row."""
        return self.decisions.nodes[:, i][self.rows] if self.disclosed is None else self.disclosed[i]

    def with_columns(self) -> pa.Table:
        """Rows with the DECIDED columns."""
        table, decisions, rows = self.table, self.decisions, self.rows
        k = decisions.levels.shape[1]
        for i, name in enumerate(schemas.levels(k)):
            table = table.append_column(name, pa.array(decisions.levels[:, i][rows]))
        for i, name in enumerate(schemas.nodes(k)):
            table = table.append_column(name, pa.array(self.node(i)))
        table = table.append_column(schemas.RISK, pa.array(decisions.risk[rows]))
        table = table.append_column(schemas.RISK_BEFORE, pa.array(decisions.risk_before[rows]))
        table = table.append_column(schemas.UTILITY, pa.array(decisions.utility[rows]))
        table = table.append_column(schemas.CONSISTENT, pa.array(decisions.consistent[rows]))
        table = table.append_column(schemas.CONSISTENT_BEFORE, pa.array(decisions.consistent_before[rows]))
        table = table.append_column(schemas.FEASIBLE, pa.array(decisions.feasible[rows]))
        table = table.append_column(schemas.KEPT, pa.array(self.kept))
        if decisions.gap is not None:
            table = table.append_column(schemas.GAP, pa.array(decisions.gap[rows]))
        if decisions.history is not None:
            after = decisions.history
            table = table.append_column(schemas.RISK_ALONE, pa.array(after.alone[rows]))
            table = table.append_column(schemas.RISK_OUT, pa.array(after.out[rows]))
            table = table.append_column(schemas.BEYOND, pa.array(after.beyond[rows]))
        return table

    @classmethod
    def of_columns(cls, table: pa.Table, *, k: int) -> Decided:
        """Rows that have the DECIDED columns already, each with a decision of its own."""
        numbers = {
            name: table.column(name).to_numpy()
            for name in (
                schemas.RISK,
                schemas.RISK_BEFORE,
                schemas.UTILITY,
                schemas.CONSISTENT,
                schemas.CONSISTENT_BEFORE,
            )
        }
        decisions = Decisions(
            levels=integers(table, schemas.levels(k)).astype(np.int8),
            nodes=integers(table, schemas.nodes(k)),
            risk=numbers[schemas.RISK],
            risk_before=numbers[schemas.RISK_BEFORE],
            utility=numbers[schemas.UTILITY],
            consistent=numbers[schemas.CONSISTENT],
            consistent_before=numbers[schemas.CONSISTENT_BEFORE],
            feasible=table.column(schemas.FEASIBLE).to_numpy(),
            gap=table.column(schemas.GAP).to_numpy() if schemas.GAP in table.column_names else None,
            history=_after_history(table),
        )
        return cls(table, decisions, np.arange(table.num_rows), table.column(schemas.KEPT).to_numpy())


def _after_history(table: pa.Table) -> AfterHistory | None:
    if schemas.BEYOND not in table.column_names:
        return None
    names = (schemas.RISK_ALONE, schemas.RISK_OUT, schemas.BEYOND)
    return AfterHistory(*(table.column(name).to_numpy() for name in names))


Decide = Callable[[pa.Table], Decided]

MAX_KNOWN = 2**19
"""Maximum number of decisions that a process keeps; about 100 bytes each for eight attributes."""

_FEW = 2**15
"""Number of kinds that a task does not share with others: half of them take more than half the time."""


class KnownDecisions:
    """Decisions of one search in this process, for kinds of records that occur in several chunks.

    Tasks of the embedded engine are threads. Each task takes half of the kinds that no other task decides.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._known: tuple[LongArray, tuple[Decisions, ...]] = (np.zeros(0, dtype=np.int64), ())
        self._taken: dict[int, LongArray] = {}

    def decide(self, keys: LongArray, decide: Callable[[LongArray], Decisions]) -> Decisions:
        """Return the decision of each kind of records. Make the missing ones.

        Parameters
        ----------
        keys : ndarray of int64, shape (n,)
            Keys of different kinds, at least one. A kind has the same key in every chunk.
        decide : callable
            Makes the decisions of positions in ``keys``.
        """
        own: tuple[LongArray, tuple[Decisions, ...]] = (keys[:0], ())
        while len(places := self._take(keys, own[0])):
            made: tuple[Decisions, ...] = ()
            try:
                made = (decide(places),)
            finally:
                with self._changed:
                    del self._taken[threading.get_ident()]
                    self._changed.notify_all()  # waiting tasks continue after this block, also if it raises
                    if made and len(self._known[0]) + len(places) <= MAX_KNOWN:
                        self._known = _join(self._known, (keys[places], made))
                    elif made:
                        own = _join(own, (keys[places], made))
        there, decisions = _join(self._known, own)
        order = np.argsort(there)
        return decisions[0].take(order[np.searchsorted(there, keys, sorter=order)])

    def _take(self, keys: LongArray, own: LongArray) -> LongArray:
        """Return positions for this task to decide, none if all are known. Wait while other tasks decide the rest."""
        with self._changed:
            while True:
                left = np.flatnonzero(~np.isin(keys, self._known[0]) & ~np.isin(keys, own))
                free = left[~np.isin(keys[left], np.concatenate([keys[:0], *self._taken.values()]))]
                if len(free) or not len(left):
                    break
                self._changed.wait()
            free = free[: max(_FEW, len(free) // 2)]
            if len(free):
                self._taken[threading.get_ident()] = keys[free]
            return free


def _join(
    one: tuple[LongArray, tuple[Decisions, ...]], other: tuple[LongArray, tuple[Decisions, ...]]
) -> tuple[LongArray, tuple[Decisions, ...]]:
    """Concatenate the keys and the decisions of two parts."""
    parts = (*one[1], *other[1])
    return np.concatenate([one[0], other[0]]), (Decisions.concatenate(parts),) if parts else ()


def known_decisions(search: str) -> KnownDecisions:
    """Return the decisions of a search. The process keeps those of the last two searches."""
    with _SEARCHES_LOCK:
        found = _SEARCHES.setdefault(search, KnownDecisions())
        for name in list(_SEARCHES)[:-2]:
            del _SEARCHES[name]
        return found


_SEARCHES: dict[str, KnownDecisions] = {}
_SEARCHES_LOCK = threading.Lock()
