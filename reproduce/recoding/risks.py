"""What recoded tables are worth to three attackers, and beside optimal disclosures of the same utility.

The first knows who is in the table and takes a person's class for what it is: he is right with ``1/f`` (prosecutor;
R23). The second plans, and attacks if it pays (Xia et al. 2015; X15) with the parameters of the paper's case study. The
third is the officer's: identification risk with the sensitivities of the policy, by records that are consistent
(Lebanon et al. 2006), the one a release by risk is decided by.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.adversary.process import solve
from privrisk_spark.kernels.adversary.risk import assess
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.kernels.lattice.lattice import Lattice
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from reproduce.adversary.case_study import STUDY
from reproduce.deciding.sample import Sample
from reproduce.deciding.subject import Subject
from reproduce.recoding.algorithms import Recoded
from reproduce.recoding.mean_frontier import MeanFrontier

FLOORS = tuple(i / 10 for i in range(1, 10))
"""Least utilities of the optimal disclosures, as shares of the greatest."""

WHOLE = ("best",)
"""Algorithms beside which the whole table is decided, to count the classes of optimal disclosures."""


@dataclass(frozen=True)
class ByClasses:
    """Risks that depend on sizes of classes alone; the suppressed rows are one class.

    Attributes
    ----------
    prosecutor_max : float
        ``1 / min f`` of the released classes; 0 if none is released.
    prosecutor_mean : float
        Mean of ``1/f`` over all rows.
    attacked : float
        Share of the rows that are released in a class that the planning attacker attacks.
    reidentified : float
        Mean over all rows of his probability of success.
    """

    prosecutor_max: float
    prosecutor_mean: float
    attacked: float
    reidentified: float


def by_classes(subject: Subject, recoded: Recoded) -> ByClasses:
    """Measure a recoded table by the sizes of its classes."""
    _, rows, suppressed = recoded.classes(subject)
    released = rows[~suppressed]
    sizes, member = np.unique(rows, return_inverse=True)
    success = assess(solve(STUDY, int(sizes.max(initial=1))), sizes).p_reid[member]
    return ByClasses(
        1 / int(released.min()) if len(released) else 0.0,
        len(rows) / subject.rows,
        int(rows[(success > 0) & ~suppressed].sum()) / subject.rows,
        math.fsum((rows * success).tolist()) / subject.rows,
    )


@dataclass(frozen=True, eq=False)
class Frontier:
    """Means over the rows that have the values of the drawn records; F floors, P recoded tables.

    Attributes
    ----------
    model : str
        Of the officer's risk.
    records : int
        Distinct records drawn.
    floors, risk, utility : ndarray of float64, shape (F,)
        Of the optimal disclosures, by least utility.
    method : tuple of P str
    anonymity : ndarray of int64, shape (P,)
    recoded_risk, recoded_utility : ndarray of float64, shape (P,)
    matched_risk, matched_utility : ndarray of float64, shape (P,)
        Of the optimal disclosures whose least utility, of every record, is the recoded table's mean.
    matched_below : ndarray of float64, shape (P,)
        Share of the rows of the whole table that are, in these disclosures, in a class of fewer than k rows;
        NaN of all but the algorithms in :data:`WHOLE`, for which all records are decided.
    optimal_risk : ndarray of float64, shape (P,)
        Least mean risk there is at the recoded table's mean utility; never more than its own.
    mean_utility, mean_risk : ndarray of float64, shape (c,)
        Corners of the frontier of these.
    """

    model: str
    records: int
    floors: FloatArray
    risk: FloatArray
    utility: FloatArray
    method: tuple[str, ...]
    anonymity: LongArray
    recoded_risk: FloatArray
    recoded_utility: FloatArray
    matched_risk: FloatArray
    matched_utility: FloatArray
    matched_below: FloatArray
    optimal_risk: FloatArray
    mean_utility: FloatArray
    mean_risk: FloatArray


def frontier(
    subject: Subject,
    recoded: Iterable[tuple[str, int, Recoded]],
    *,
    seed: int,
    records: int,
    model: RiskModel,
    floors: Sequence[float] = FLOORS,
) -> Frontier:
    """Hold recoded tables against optimal disclosures under the officer's risk.

    Parameters
    ----------
    recoded : iterable of (str, int, Recoded)
        Tables with their algorithm and k.
    seed : int
        Draws the records.
    records : int
        Most distinct records drawn.
    model : {"I", "II", "III"}
    """
    sample = Sample.of(subject, seed=seed, records=records)
    least = np.array(floors, dtype=np.float64) * subject.greatest_utility
    optima = [sample.decided(model, floor) for floor in least.tolist()]
    least_mean = MeanFrontier.of(_choices(sample, model), sample.times)
    everyone = Sample.of(subject, seed=seed, records=len(subject.counts))
    names, ks, points = [], [], []
    for method, k, table in recoded:
        names.append(method)
        ks.append(k)
        risk, utility = _means(sample, table, model)
        matched = sample.decided(model, utility)
        below = _below(everyone, model, utility, k) if method in WHOLE else np.nan
        points.append(
            (
                risk,
                utility,
                sample.mean(matched.risk),
                sample.mean(matched.utility),
                below,
                least_mean.least_risk(utility),
            )
        )
    columns = np.ascontiguousarray(np.array(points, dtype=np.float64).reshape(-1, 6).T)
    recoded_risk, recoded_utility, matched_risk, matched_utility, matched_below, optimal_risk = columns
    return Frontier(
        model=model,
        records=len(sample.times),
        floors=least,
        risk=np.array([sample.mean(one.risk) for one in optima]),
        utility=np.array([sample.mean(one.utility) for one in optima]),
        method=tuple(names),
        anonymity=np.array(ks, dtype=np.int64),
        recoded_risk=recoded_risk,
        recoded_utility=recoded_utility,
        matched_risk=matched_risk,
        matched_utility=matched_utility,
        matched_below=matched_below,
        optimal_risk=optimal_risk,
        mean_utility=least_mean.utility,
        mean_risk=least_mean.risk,
    )


def _means(sample: Sample, table: Recoded, model: RiskModel) -> tuple[float, float]:
    """Mean risk and utility of the drawn records in a recoded table, whose records may be in several pieces."""
    place = np.full(len(sample.subject.counts), -1, dtype=np.int64)
    place[sample.record] = np.arange(len(sample.record))
    drawn = place[table.record] >= 0
    of, levels, rows = place[table.record[drawn]], table.levels[drawn], table.rows[drawn]
    # One look per different levels of a record.
    first, member = distinct_rows([of, *np.ascontiguousarray(levels.T)])
    times = np.bincount(member, weights=rows, minlength=len(first))
    pieces = sample.taken(of[first], times)
    risk, utility = pieces.risk_at(levels[first], model), pieces.utility_at(levels[first])
    return pieces.mean(risk), pieces.mean(utility)


def _choices(sample: Sample, model: RiskModel) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield, of each record, the utilities it can have and the least risk at each."""
    lattice = Lattice(sample.subject.heights)
    records = len(sample.record)
    best: dict[float, FloatArray] = {}
    for levels in lattice.levels(np.arange(lattice.n_nodes)):
        everywhere = np.tile(levels.astype(np.int64), (records, 1))
        utility, risk = sample.utility_at(everywhere), sample.risk_at(everywhere, model)
        for value in np.unique(utility).tolist():
            there = utility == value
            least = best.setdefault(value, np.full(records, np.inf))
            least[there] = np.minimum(least[there], risk[there])
    values = np.array(sorted(best))
    risks = np.column_stack([best[value] for value in values.tolist()])
    for least in risks:
        yield values[np.isfinite(least)], least[np.isfinite(least)]


def _below(everyone: Sample, model: RiskModel, floor: float, k: int) -> float:
    """Share of the rows in classes of fewer than k rows, if every record is decided optimally."""
    found, subject = everyone.decided(model, floor), everyone.subject
    release = Recoded(everyone.record, everyone.times.astype(np.int64), found.levels, ~found.feasible)
    _, rows, _ = release.classes(subject)
    return int(rows[rows < k].sum()) / subject.rows
