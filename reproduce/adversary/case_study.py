"""The case study of a planned attack: what an adversary does by group size, to a table, and what deters him.

Source: Xia et al. (2015; X15), section 7. The process is that of :mod:`privrisk_spark.kernels.adversary.process`, with
the parameters of X15 §7.1 and §7.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import process_time

import numpy as np
import numpy.typing as npt
import scipy

from privrisk_spark.kernels.adversary.deterrence import sweep
from privrisk_spark.kernels.adversary.process import TOLERANCE, Attack, solve
from privrisk_spark.kernels.adversary.risk import (
    Assessment,
    assess,
    baseline,
    exploitation,
    payoff_of_belief,
    payoff_of_known,
    reidentification_probability,
)
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from reproduce.adversary.regions import policy_regions
from reproduce.generated.clustered import keyed_uniforms
from reproduce.generated.registry import PRIOR, Law, Persons

Groups = tuple[LongArray, LongArray, LongArray]
"""Group size, people and records of each cell a record is in."""

STUDY = Attack(prior=PRIOR, gain=8000.0, penalty=10_000.0, fines_paid=1, cost_access=100.0, cost_exploit=10.0, h0=-4.59)
"""X15 §7.2; what it does not state, the discount, is 0.9."""

SETTINGS: dict[str, Attack] = {
    "h1 = 0, n_f = ∞": replace(STUDY, fines_paid=None),
    "n_f = 1": STUDY,
    "h1 = 0.18, n_f = ∞": replace(STUDY, fines_paid=None, h1=0.18),
}
CONSTANT, ONCE, GROWING = SETTINGS
BASELINE = "baseline"

FEW_FINES = (1, 2, 3, 5, 10)
"""Limits of the number of fines finding 3 is tried with."""

LARGEST = 60
"""Largest group size drawn; none larger is attacked."""

LARGE = 55
"""X15 §7.2.2 counts records with more candidates than this."""

PROGRAM_ROWS = (5_000, 50_000, 500_000, 6_018_999)
"""Rows of the registry in X15 Figure 5, and of all of it."""

PUBLISHED_SECONDS = {"two-level LP, published": 616.0, "LP, published": 13_444.0}
"""X15 §7.1, of 5,000 records and 500,000 rows; CPLEX on 24 processors."""

PROGRAM_RECORDS = 5_000

MORE_CODES = (100, 200, 400, 808, 1600, 3200)
SPREADS = tuple(i / 20 for i in range(11))
"""Standard deviations of the logarithm of a place's rate of registration."""

_RATES = 41

DETERRED = Attack(
    prior=1.0, gain=1000.0, penalty=20_000.0, fines_paid=1, cost_access=100.0, cost_exploit=10.0, h0=0.0
).with_detection(0.014)
"""X15 §7.3, which does not state the probability of detection; with 0.014 its two thresholds come out."""

DETERRENTS: dict[str, tuple[float, ...]] = {
    "cost_access": tuple(50.0 * i for i in range(19)),
    "cost_exploit": (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0, 80.0, 100.0, 150.0, 200.0, 300.0, 400.0, 600.0, 800.0),
    "penalty": tuple(5_000.0 * i for i in range(13)),
    "detection": (0.001, 0.002, 0.005, 0.01, 0.014, 0.02, 0.03, 0.04, 0.05),
}
TOLD = (10_000.0, 50_000.0)
"""Penalties X15 §7.3 names thresholds of."""

_MOST_CANDIDATES = 1_000


@dataclass(frozen=True, eq=False)
class ByGroup:
    """What the adversary does who knows the group size, in the three settings; no table is needed.

    Attributes
    ----------
    sizes : ndarray of int64, shape (n,)
        1, 2, … .
    risk, payoff : ndarray of float64, shape (4, n)
        Of the settings, then of the baseline; the payoff before it is decided to start.
    exploited : ndarray of float64, shape (3, n)
        Candidates he means to exploit; 0 where he does not start.
    linked : ndarray of float64, shape (3, n)
        The same once access is paid.
    known, sunk : ndarray of int64, shape (3,)
        Least group sizes not worth access, and not worth an exploit once access is paid.
    least_left : ndarray of int64, shape (n,)
        Where detection grows: fewest candidates left at which he, once inside, still exploits; 0 if at none.
    few_fines, subsets : ndarray of int64, shape (f,)
        Limits of the number of fines, and how many group sizes a part is exploited of under each, without growth.
    """

    sizes: LongArray
    risk: FloatArray
    payoff: FloatArray
    exploited: FloatArray
    linked: FloatArray
    known: LongArray
    sunk: LongArray
    least_left: LongArray
    few_fines: LongArray
    subsets: LongArray


def by_group() -> ByGroup:
    """Solve the three settings for all group sizes."""
    sizes = np.arange(1, LARGEST + 1, dtype=np.int64)
    solved = [solve(attack) for attack in SETTINGS.values()]
    regions = policy_regions(solved[2], sizes.tolist())
    least = [
        int(regions.least[(regions.group_size == size) & regions.exploits].min(initial=LARGEST + 1))
        for size in sizes.tolist()
    ]
    found = [assess(solution, sizes) for solution in solved]
    limited = [assess(solve(replace(STUDY, fines_paid=fines)), sizes) for fines in FEW_FINES]
    return ByGroup(
        sizes=sizes,
        risk=np.array([*(one.p_reid for one in found), baseline(STUDY, sizes)]),
        payoff=np.array([*(payoff_of_known(solution, sizes) for solution in solved), baseline_payoff(STUDY, sizes)]),
        exploited=np.array([one.exploits for one in found]),
        linked=np.array([exploitation(solution, sizes).planned for solution in solved]),
        known=np.array([solution.known_threshold for solution in solved], dtype=np.int64),
        sunk=np.array([solution.sunk_threshold for solution in solved], dtype=np.int64),
        least_left=np.array([size if size <= LARGEST else 0 for size in least], dtype=np.int64),
        few_fines=np.array(FEW_FINES, dtype=np.int64),
        subsets=np.array([parts(one.exploits, sizes) for one in limited], dtype=np.int64),
    )


def parts(exploited: FloatArray, sizes: LongArray) -> int:
    """How many groups only a part is exploited of, in the mean over detections."""
    return int(((exploited > 1e-9) & (exploited < sizes - 1e-9)).sum())


def baseline_payoff(attack: Attack, sizes: LongArray) -> FloatArray:
    """Payoff of an adversary who exploits once or not at all (X15 eq 7)."""
    spent = float(attack.detection(0)) * attack.penalty + attack.cost_access + attack.cost_link + attack.cost_exploit
    return attack.gain * attack.prior / sizes - spent


@dataclass(frozen=True, eq=False)
class OfTable:
    """What the adversary does to the records of a table.

    Attributes
    ----------
    sizes, with_size : ndarray of int64, shape (n,)
        Group sizes of 0, 1, … :data:`LARGEST`, and how many records have each.
    large : float
        Share of the records with more than :data:`LARGE` candidates.
    mean_risk, attacked : ndarray of float64, shape (4,)
        Mean risk over the records, and share of those attacked, by an adversary who knows the group size.
    exceeding : int
        Records whose baseline risk exceeds that in one of the settings.
    lower, higher : int
        Records at less, and at more, risk where he does not know the group size; with one fine.
    full_lower, full_higher : int
        Those of them with a risk of the whole prior on the other side, and of 0 on theirs, or the reverse.
    believed : float
        Greatest expected group size he accesses the registry for without knowing it.
    lower_at, higher_at : tuple of arrays, each of shape (3, m)
        Group size, expected group size and records of the cells with less, and with more, risk.
    """

    records: int
    sizes: LongArray
    with_size: LongArray
    large: float
    mean_risk: FloatArray
    attacked: FloatArray
    exceeding: int
    lower: int
    higher: int
    full_lower: int
    full_higher: int
    believed: float
    lower_at: FloatArray
    higher_at: FloatArray


def of_table(groups: Groups, *, rows: int, people: int) -> OfTable:
    """Assess the records of a table by an adversary who knows group sizes, and by one who does not.

    Parameters
    ----------
    groups : tuple of three ndarrays of int64, shape (m,)
        Registered people and all people in each cell, and its records.
    rows, people : int
        Of the registry and of the population. Who does not know the group size believes it to be binomial, of the rows
        and the cell's share of the people (X15 eq 6).
    """
    size, person, records = groups
    total = int(records.sum())
    distinct, of = np.unique(size, return_inverse=True)
    known = np.array(
        [
            *(reidentification_probability(solve(attack), distinct) for attack in SETTINGS.values()),
            baseline(STUDY, distinct),
        ]
    )[:, of]
    density, at = np.unique(person / people, return_inverse=True)
    solution = solve(STUDY)
    access = payoff_of_belief(solution, np.full(len(density), rows), density) > TOLERANCE
    unknown = reidentification_probability(solution, size, access[at])
    sure = known[list(SETTINGS).index(ONCE)]
    lower, higher = unknown < sure - 1e-12, unknown > sure + 1e-12
    with_size = np.bincount(np.minimum(size, LARGEST + 1), weights=records, minlength=LARGEST + 2)[:-1]

    def count(chosen: npt.NDArray[np.bool_]) -> int:
        return int(records[chosen].sum())

    def points(chosen: npt.NDArray[np.bool_]) -> FloatArray:
        pairs, back = np.unique(np.stack([size, person], axis=1)[chosen], axis=0, return_inverse=True)
        each = np.bincount(back.ravel(), weights=records[chosen], minlength=len(pairs))
        return np.stack([pairs[:, 0], pairs[:, 1] * (rows / people), each])

    return OfTable(
        records=total,
        sizes=np.arange(LARGEST + 1, dtype=np.int64),
        with_size=with_size.astype(np.int64),
        large=count(size > LARGE) / total,
        mean_risk=np.array([math.fsum((risk * records).tolist()) / total for risk in known]),
        attacked=np.array([count(risk > 0) / total for risk in known]),
        exceeding=count((known[-1] > known[:-1] + 1e-12).any(axis=0)),
        lower=count(lower),
        higher=count(higher),
        full_lower=count(lower & (unknown == 0) & np.isclose(sure, STUDY.prior)),
        full_higher=count(higher & (sure == 0) & np.isclose(unknown, STUDY.prior)),
        believed=float(density[access].max(initial=0.0)) * rows,
        lower_at=points(lower),
        higher_at=points(higher),
    )


@dataclass(frozen=True, eq=False)
class Changed:
    """What other laws of the people would change.

    Attributes
    ----------
    codes : ndarray of int64, shape (c,)
        Postal codes of as many people.
    large, attacked : ndarray of float64, shape (c,)
        Share of the records expected to have more than :data:`LARGE` candidates, and few enough to be attacked.
    spreads : ndarray of float64, shape (s,)
        Of rates of registration.
    lower, higher : ndarray of float64, shape (s,)
        Expected share of the records at less, and at more, risk where the adversary does not know the group size.
    """

    codes: LongArray
    large: FloatArray
    attacked: FloatArray
    spreads: FloatArray
    lower: FloatArray
    higher: FloatArray


def changed(persons: Persons, groups: Groups, *, rows: int, people: int) -> Changed:
    """Vary how many postal codes there are, and how evenly people register.

    Group sizes under other numbers of codes are expected ones. Uneven rates are applied to the people that were drawn:
    each cell's is the overall one times ``exp(spread z)``, over 41 quantiles ``z`` of a normal law, scaled to the
    overall mean and cut at 1; the group size is binomial, and the adversary believes in the overall rate.
    """
    solution = solve(STUDY)
    end = len(solution.values)
    known, sunk = solution.known_threshold or end, solution.sunk_threshold or end
    large, attacked = [], []
    for codes in MORE_CODES:
        sizes, records = persons.expected(Law(max(1, round(codes * Law.of_rows(rows).codes / 808))), rows)
        large.append(records[sizes > LARGE].sum() / records.sum())
        attacked.append(records[(sizes > 0) & (sizes < known)].sum() / records.sum())
    person, of = np.unique(groups[1], return_inverse=True)
    weights = np.bincount(of, weights=groups[2]).astype(np.float64)
    access = payoff_of_belief(solution, np.full(len(person), rows), person / people) > TOLERANCE
    z = scipy.special.ndtri((np.arange(_RATES) + 0.5) / _RATES)
    lower, higher = [], []
    for spread in SPREADS:
        factor = np.exp(spread * z)
        rates = np.minimum(rows / people * factor / factor.mean(), 1.0)

        def below(size: int, rates: FloatArray = rates) -> FloatArray:
            one = scipy.special.bdtr(np.minimum(size - 1, person)[:, None], person[:, None], rates)
            found: FloatArray = one.mean(axis=1)
            return found

        empty = below(1)
        lower.append(_mean(np.where(access, 0.0, below(known) - empty), weights))
        higher.append(_mean(np.where(access, below(sunk) - below(known), 0.0), weights))
    return Changed(
        codes=np.array(MORE_CODES, dtype=np.int64),
        large=np.array(large),
        attacked=np.array(attacked),
        spreads=np.array(SPREADS),
        lower=np.array(lower),
        higher=np.array(higher),
    )


def _mean(values: FloatArray, weights: FloatArray) -> float:
    return math.fsum((values * weights).tolist()) / float(weights.sum())


@dataclass(frozen=True, eq=False)
class Runtime:
    """CPU time for records of a table whose group sizes are not known.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Of the registry.
    distinct : int
        Different shares of the people among them.
    seconds : ndarray of float64, shape (n,)
        To solve the process, and to assess every record.
    """

    rows: LongArray
    records: int
    distinct: int
    seconds: FloatArray


def runtime(groups: Groups, *, people: int, seed: int, clock: Callable[[], float] = process_time) -> Runtime:
    """Measure solving and assessing at the sizes of X15 Figure 5; a first, small run is not counted."""
    size, person, records = groups
    drawn = _drawn(records, PROGRAM_RECORDS, seed)
    density = person[drawn] / people
    assess(solve(STUDY), size[:1], np.array([PROGRAM_ROWS[0]]), density[:1])
    seconds = []
    for rows in PROGRAM_ROWS:
        started = clock()
        _assessed(size[drawn], density, rows)
        seconds.append(clock() - started)
    return Runtime(
        rows=np.array(PROGRAM_ROWS, dtype=np.int64),
        records=len(drawn),
        distinct=len(np.unique(density)),
        seconds=np.array(seconds),
    )


def _assessed(sizes: LongArray, density: FloatArray, rows: int) -> Assessment:
    """Solve the process, and assess records by what tells them apart."""
    pairs, back = np.unique(np.stack([sizes, density], axis=1), axis=0, return_inverse=True)
    found = assess(solve(STUDY), pairs[:, 0].astype(np.int64), np.full(len(pairs), rows), pairs[:, 1])
    at = back.ravel()
    return Assessment(found.p_reid[at], found.expected_payoff[at], found.exploits[at], found.p_reid_baseline[at])


def _drawn(records: LongArray, most: int, seed: int) -> LongArray:
    """Cells of so many records, drawn without replacement; of all if there are no more."""
    of = np.repeat(np.arange(len(records)), records)
    order = np.argsort(keyed_uniforms(seed, "timed records", (len(of),)), kind="stable")
    return of[np.sort(order[:most])]


@dataclass(frozen=True, eq=False)
class Deterred:
    """Thresholds of the group size under other costs (X15 Figure 10).

    Attributes
    ----------
    values : mapping of parameter to ndarray of float64, shape (n,)
    thresholds : mapping of parameter to ndarray of int64, shape (3, n)
        Least group size not attacked, in the three settings.
    told : ndarray of int64, shape (3, 2)
        At the penalties X15 names.
    """

    values: dict[str, FloatArray]
    thresholds: dict[str, LongArray]
    told: LongArray


def deterred() -> Deterred:
    """Sweep one parameter at a time."""
    attacks = [replace(DETERRED, fines_paid=one.fines_paid, h1=one.h1) for one in SETTINGS.values()]

    def swept(parameter: str, values: Sequence[float]) -> LongArray:
        if parameter != "detection":
            return np.array([sweep(one, parameter, values, largest_group=_MOST_CANDIDATES).known for one in attacks])
        solved = [[solve(replace(one.with_detection(p), h1=one.h1)).known_threshold for p in values] for one in attacks]
        return np.array(solved, dtype=np.int64)

    return Deterred(
        values={name: np.array(values) for name, values in DETERRENTS.items()},
        thresholds={name: swept(name, values) for name, values in DETERRENTS.items()},
        told=swept("penalty", TOLD),
    )
