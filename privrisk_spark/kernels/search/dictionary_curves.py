"""Risk as the attacker's dictionary grows and the owner asks for more utility (F12 Figs 3.1 and 3.3)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import Counts
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import risk_of
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.lattice.lattice import Neighbourhood
from privrisk_spark.kernels.search.method import Method, Search
from privrisk_spark.kernels.search.table_search import decide


@dataclass(frozen=True, eq=False)
class DictionaryCurves:
    """Mean risk over dictionary sizes ``s`` and utility floors ``c`` (F12 Figs 3.1 and 3.3).

    Attributes
    ----------
    floors : ndarray of float64, shape (F,)
    dictionary_rows : ndarray of int64, shape (S,)
    minimal : ndarray of float64, shape (S, F)
        Mean risk of the best decisions against dictionary ``s`` (Fig 3.1).
    estimated : ndarray of float64, shape (F,)
        ``R(δ_c, θ̂)`` of the decisions ``δ_c`` that are best against the estimate.
    true : ndarray of float64, shape (S, F)
        ``R(δ_c, θ_s)`` of the same decisions; with ``estimated`` the points of Fig 3.3.
    infeasible : ndarray of int64, shape (F,)
        Records that cannot reach the floor; they are suppressed, which lowers the mean.
    absent : ndarray of int64, shape (S,)
        Records that dictionary ``s`` has no consistent row for.
    """

    floors: FloatArray
    dictionary_rows: LongArray
    minimal: FloatArray
    estimated: FloatArray
    true: FloatArray
    infeasible: LongArray
    absent: LongArray


def dictionary_curves(
    disclosure: Disclosure,
    floors: Sequence[float],
    shares: Iterable[Counts],
    codes: IntArray,
    multiplicity: LongArray,
    *,
    method: Method = "exact",
    neighbourhood: Neighbourhood = "swap",
    estimate: Counts | None = None,
    personal: FloatArray | None = None,
    record_weight: FloatArray | None = None,
) -> DictionaryCurves:
    """Risk as the attacker's dictionary grows and the owner asks for more utility.

    Parameters
    ----------
    floors : sequence of F float
        ``c``, in units of the utility; the least risk is sought anew for each.
    shares : iterable of S Counts
        Of nested dictionaries, the smallest first; read once, at least one.
    codes : ndarray of int32, shape (n, k)
        Distinct records.
    multiplicity : ndarray of int64, shape (n,)
        Rows of the table per distinct record, at least 1.
    method, neighbourhood
        See :class:`privrisk_spark.kernels.search.method.Search`.
    estimate : Counts, optional
        Of ``θ̂``; the smallest dictionary by default.
    personal : ndarray of float64, shape (n, k), optional
    record_weight : ndarray of float64, shape (n,), optional

    Notes
    -----
    Under the models I and II, ``minimal`` and ``true`` do not increase with the dictionary. ``ρ`` of a cell only grows
    with rows; a record the smaller sample lacks counts itself there, and once the larger has a row consistent with the
    original record, that row is one more at every level, under ``subsumes`` and ``compatible`` alike. Hence also
    ``true <= estimated`` when the estimate is the smallest sample. The minimum of functions that do not increase does
    not increase either.
    """
    searches = [Search(LeastRisk(float(floor)), method, neighbourhood) for floor in floors]
    given = {"personal": personal, "record_weight": record_weight}

    def decide_by(search: Search, counts: Counts) -> Decisions:
        return decide(disclosure, search, counts, codes, personal=personal, record_weight=record_weight)

    total = int(multiplicity.sum())

    def mean(risk: FloatArray) -> float:
        return math.fsum((risk * multiplicity).tolist()) / total if total else 0.0

    rows: list[int] = []
    minimal: list[list[float]] = []
    true: list[list[float]] = []
    absent: list[int] = []
    fixed = None if estimate is None else [decide_by(search, estimate) for search in searches]
    for counts in shares:
        best = [decide_by(search, counts) for search in searches]
        fixed = best if fixed is None else fixed
        evaluated = [risk_of(disclosure, counts, codes, d.levels, **given) for d in fixed]
        rows.append(counts.dictionary_rows)
        minimal.append([mean(decisions.risk) for decisions in best])
        true.append([mean(e.risk) for e in evaluated])
        absent.append(int(multiplicity[evaluated[0].absent].sum()) if evaluated else 0)
    decided = fixed or []
    shape = (len(rows), len(searches))
    return DictionaryCurves(
        floors=np.array([float(floor) for floor in floors], dtype=np.float64),
        dictionary_rows=np.array(rows, dtype=np.int64),
        minimal=np.array(minimal, dtype=np.float64).reshape(shape),
        estimated=np.array([mean(d.risk) for d in decided], dtype=np.float64),
        true=np.array(true, dtype=np.float64).reshape(shape),
        infeasible=np.array([int(multiplicity[~d.feasible].sum()) for d in decided], dtype=np.int64),
        absent=np.array(absent, dtype=np.int64),
    )
