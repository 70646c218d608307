"""One decision per record, whoever combine it: a search of its lattice, or a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray


@dataclass(frozen=True, eq=False)
class AfterHistory:
    """Decisions beside what earlier releases of the same records have disclosed already.

    Attributes
    ----------
    alone : ndarray of float64, shape (n,)
        Risk at the chosen node by itself, as if nothing else were out.
    out : ndarray of float64, shape (n,)
        Risk of what is out already: no decision has less.
    beyond : ndarray of bool, shape (n,)
        Records that are suppressed only because what is out already exceeds what is asked.
    """

    alone: FloatArray
    out: FloatArray
    beyond: BoolArray


@dataclass(frozen=True, eq=False)
class Decisions:
    """One decision per record.

    Attributes
    ----------
    levels : ndarray of int8, shape (n, k)
        Chosen level of each attribute; at most the depth of the record's value.
    nodes : ndarray of int32, shape (n, k)
        The disclosed nodes.
    risk, risk_before : ndarray of float64, shape (n,)
        Risk at the chosen node and of the original record.
    utility : ndarray of float64, shape (n,)
    consistent : ndarray of int64, shape (n,)
        ``ρ`` of the chosen cell; a record the dictionary lacks counts itself. Of several dictionaries the worst, the
        smallest ``ρ_θ``; a dictionary of prior 0 does not count.
    consistent_before : ndarray of int64, shape (n,)
        The same of the original record.
    feasible : ndarray of bool, shape (n,)
        False where nothing satisfies the constraint, as where even the original record has ``u < c``; such a record is
        suppressed.
    gap : ndarray of float64, shape (n,), or None
        What a better decision could gain at most, in units of the objective; 0 where the decision is proved.
        None: all are.
    history : AfterHistory or None
        Where records have a history: ``risk`` and ``consistent`` are then those of all releases together.
    """

    levels: npt.NDArray[np.int8]
    nodes: IntArray
    risk: FloatArray
    risk_before: FloatArray
    utility: FloatArray
    consistent: LongArray
    consistent_before: LongArray
    feasible: BoolArray
    gap: FloatArray | None = None
    history: AfterHistory | None = None

    def take(self, rows: LongArray) -> Decisions:
        """Return the decisions of some of the records."""
        found: Decisions = _combine(Decisions, [self], lambda one: one[0][rows])
        return found

    @classmethod
    def concatenate(cls, parts: Sequence[Decisions]) -> Decisions:
        """Concatenate decisions of one search; at least one part."""
        found: Decisions = _combine(Decisions, parts, np.concatenate)
        return found


def _combine(kind: type[Any], parts: Sequence[Any], combine: Callable[[Sequence[Any]], Any]) -> Any:
    """Combine each array of the parts."""
    found = {}
    for field in fields(kind):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], AfterHistory):
            found[field.name] = _combine(AfterHistory, values, combine)
        else:
            found[field.name] = None if values[0] is None else combine(values)
    return kind(**found)
