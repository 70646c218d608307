"""The aggregate model against the threshold model (Fouad 2012, Fig. 5.1), and how its optimum moves with λ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.numeric.min_cut import Network, minimum_cut
from privrisk_spark.kernels.search.aggregate import aggregate, crossing, optima
from privrisk_spark.kernels.search.enumeration import Nodes, enumerate_nodes
from privrisk_spark.kernels.search.record import Answer, RecordLattice
from reproduce.deciding.effort import MOST_CUBE, SEARCHES, compile_searches
from reproduce.deciding.subject import Subject

METHODS = ("aggregate, cuts", "aggregate, enumeration", "ARUBA, cube", "ARUBA, swap", "branch and bound")
"""What is timed: the aggregate model twice, then the threshold model."""

DECADES = 9
"""The sweep of λ goes so many decades up and down from the crossing."""

PER_DECADE = 10


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Over the records searched.

    Attributes
    ----------
    records : int
        Records with a finite crossing.
    trade_offs : ndarray of float64, shape (L,)
        λ: quantiles of the records' crossings, half the least and twice the greatest before and after them.
    utility : ndarray of float64, shape (L,)
        Mean utility of the aggregate optimum; the floor of the threshold model.
    aggregate_risk, threshold_risk : ndarray of float64, shape (L, 3)
        Mean, greatest and least risk of the records.
    as_it_is, one_left : ndarray of float64, shape (L,)
        Share of the records whose aggregate optimum is the release as it is, or discloses one attribute or none.
    attributes : ndarray of int64, shape (K,)
    seconds : ndarray of float64, shape (K, 5)
        CPU time measured, per record, of :data:`METHODS` with λ the median crossing; NaN where not run.
    worse : int
        Records for which the cuts gave a worse value than enumeration.
    sweep : ndarray of float64, shape (S,)
        Common logarithm of λ over the record's own crossing.
    retained : ndarray of float64, shape (S,)
        Mean over records of the optimum's utility over that of the release as it is.
    distinct : ndarray of int64, shape (records,)
        Different optima over the sweep.
    undominated : ndarray of int64, shape (records,)
        Nodes of positive risk that no other beats in risk and utility.
    jump : ndarray of float64, shape (records,)
        Greatest loss of utility from one optimum of the sweep to the next, over the loss along the whole sweep.
    """

    records: int
    trade_offs: FloatArray
    utility: FloatArray
    aggregate_risk: FloatArray
    threshold_risk: FloatArray
    as_it_is: FloatArray
    one_left: FloatArray
    attributes: LongArray
    seconds: FloatArray
    worse: int
    sweep: FloatArray
    retained: FloatArray
    distinct: LongArray
    undominated: LongArray
    jump: FloatArray


def trade_off(
    subject: Subject, *, seed: int, records: int, timed: int, quantiles: Sequence[float], attributes: Sequence[int]
) -> TradeOff:
    """Solve both models for some records; κ is 1.

    Parameters
    ----------
    seed : int
        Draws the records.
    records : int
        How many to solve for.
    timed : int
        How many to measure times of, at each number of attributes.
    quantiles : sequence of float
        Of the crossings, ascending.
    attributes : sequence of int
        Numbers of first attributes, for the times.
    """
    lattices = [subject.record(row, turn=turn) for turn, row in enumerate(subject.drawn(seed, records).tolist())]
    crossings = [crossing(record) for record in lattices]
    lattices = [record for record, at in zip(lattices, crossings, strict=True) if np.isfinite(at) and at > 0]
    crossings = [at for at in crossings if np.isfinite(at) and at > 0]
    spread = np.quantile(crossings, quantiles) if crossings else np.ones(len(quantiles))
    values = [min(crossings, default=1.0) / 2, *spread.tolist(), 2 * max(crossings, default=1.0)]
    utility, of_aggregate, of_threshold, extremes = [], [], [], []
    for value in values:
        found = [aggregate(record, trade_off=value) for record in lattices]
        floor = float(np.mean([one.utility for one in found])) if found else 0.0
        bounded = [enumerate_nodes(record, LeastRisk(floor)) for record in lattices]
        utility.append(floor)
        of_aggregate.append(_summary([one.risk for one in found]))
        extremes.append(_extremes(lattices, found))
        of_threshold.append(_summary([one.risk for one in bounded if one is not None]))
    _compile_cuts()
    compile_searches()
    seconds, worse = np.zeros((len(attributes), len(METHODS))), 0
    for p, k in enumerate(attributes):
        seconds[p], missed = _times(subject.first(k), seed, timed)
        worse += missed
    at = np.arange(-DECADES * PER_DECADE, DECADES * PER_DECADE + 1) / PER_DECADE
    steps = [_steps(record, star, at) for record, star in zip(lattices, crossings, strict=True)]
    return TradeOff(
        records=len(lattices),
        trade_offs=np.array(values),
        utility=np.array(utility),
        aggregate_risk=np.array(of_aggregate).reshape(-1, 3),
        threshold_risk=np.array(of_threshold).reshape(-1, 3),
        as_it_is=np.array([whole for whole, _ in extremes]),
        one_left=np.array([one for _, one in extremes]),
        attributes=np.array(attributes, dtype=np.int64),
        seconds=seconds,
        worse=worse,
        sweep=at,
        retained=np.mean([retained for retained, _, _ in steps], axis=0) if steps else np.ones(len(at)),
        distinct=np.array([distinct for _, distinct, _ in steps], dtype=np.int64),
        undominated=np.array([_undominated(Nodes.of_record(record)) for record in lattices], dtype=np.int64),
        jump=np.array([jump for _, _, jump in steps]),
    )


def _summary(risks: Sequence[float]) -> tuple[float, float, float]:
    if not risks:
        return 0.0, 0.0, 0.0
    return float(np.mean(risks)), max(risks), min(risks)


def _extremes(lattices: Sequence[RecordLattice], found: Sequence[Answer]) -> tuple[float, float]:
    """Share of answers at the bottom, and of those that disclose one attribute or none."""
    if not found:
        return 0.0, 0.0
    disclosed = [int((one.levels < record.heights).sum()) for record, one in zip(lattices, found, strict=True)]
    return float(np.mean([not one.levels.any() for one in found])), float(np.mean([n <= 1 for n in disclosed]))


def undominated(nodes: Nodes) -> LongArray:
    """Return the nodes that no other beats in risk or utility without losing in the other, in ascending order of risk.

    Returns
    -------
    ndarray of int64
        Of nodes equal in both, within the tolerance, one is kept.
    """
    kept: list[int] = []
    most = -np.inf
    for node in np.lexsort((-nodes.utility, nodes.risk)).tolist():
        if nodes.utility[node] > most + TOLERANCE * max(1.0, abs(most)) or not kept:
            kept.append(node)
            most = float(nodes.utility[node])
    return np.array(kept, dtype=np.int64)


def _undominated(nodes: Nodes) -> int:
    return int((nodes.risk[undominated(nodes)] > 0).sum())


def _steps(record: RecordLattice, star: float, at: FloatArray) -> tuple[FloatArray, int, float]:
    """Utility retained at every λ, different optima, and the greatest jump, of one record."""
    found = optima(record, (star * 10.0**at).tolist())
    starts = np.array([first for first, _ in found])
    utility = np.array([one.utility for _, one in found])
    whole = record.utility(np.zeros(record.k, dtype=np.int64))
    place = np.searchsorted(starts, star * 10.0**at, side="right") - 1
    lost = -np.diff(utility)
    total = float(utility[0] - utility[-1])
    distinct = len({one.levels.tobytes() for _, one in found})
    return utility[place] / whole, distinct, float(lost.max() / total) if total > 0 else 0.0


def _compile_cuts() -> None:
    """Have the search for cuts compiled before its time is measured."""
    ends = np.array([0, 1], dtype=np.int32)
    minimum_cut(Network(2, ends[:1], ends[1:], np.ones(1, dtype=np.int64), source=0, sink=1))


def _times(subject: Subject, seed: int, records: int) -> tuple[FloatArray, int]:
    lattices = [subject.record(row, turn=turn) for turn, row in enumerate(subject.drawn(seed, records).tolist())]
    crossings = [crossing(record) for record in lattices]
    finite = [at for at in crossings if np.isfinite(at) and at > 0]
    middle = float(np.median(finite)) if finite else 1.0
    seconds, worse, found = np.zeros(len(METHODS)), 0, []
    for record in lattices:
        started = process_time()
        by_cuts = aggregate(record, trade_off=middle, most_nodes=0)
        half = process_time()
        enumerated = aggregate(record, trade_off=middle)
        seconds[:2] += half - started, process_time() - half
        worse += by_cuts.objective < enumerated.objective * (1 - 1e-9)
        found.append(enumerated)
    objective = LeastRisk(float(np.mean([one.utility for one in found])) if found else 0.0)
    for record in lattices:
        for j, name in enumerate(METHODS[2:], 2):
            if name == "ARUBA, cube" and subject.k > MOST_CUBE:
                seconds[j] = np.nan
                continue
            started = process_time()
            SEARCHES[name](record, objective)
            seconds[j] += process_time() - started
    return seconds / max(len(lattices), 1), int(worse)
