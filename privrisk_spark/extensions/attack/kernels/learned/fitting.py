"""Learn a distance from records whose own row is known (T20, the worst case), and never a worse one than the standard.

The rows in the way of a record enter the programs as they are met: those nearest under the parameters at hand, until
none is left that the program does not know (working sets). First the hinge relaxation is solved, with two margins; then
again without the records that it gives up, which else pull at it (a ramp loss, by the concave-convex procedure). A
family that holds the weighted means begins with the one learned, so that it never finds fewer; another with the mean.
Where few enough constraints are known, T20's mixed-integer program follows, whose bound says how far any parameters of
the family can get. Forms that are not positive semi-definite are cut off as the program meets them, and for the records
that it puts first a form is looked for by linear programs with the same cuts. Of all parameters met on the way those
are taken which find most training records, counted with fractional ties; the standard weights are among them.

Status: ``proved`` if no parameters of the family put more training records first by the margin, to HiGHS's tolerances;
else ``heuristic``, with the gap. That the standard weights find no more of the training records holds by construction.

References
----------
Torra, Navarro-Arribas, Abril (2010); Abril, Navarro-Arribas, Torra (2012, 2012b); Abril, Torra, Navarro-Arribas (2015).
R. Collobert, F. Sinz, J. Weston, L. Bottou, "Trading convexity for scalability" (2006): the ramp loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from privrisk_spark.claims import Status
from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.learned.aggregates import (
    Aggregate,
    Bilinear,
    OrderedWeightedAverage,
    WeightedMean,
)
from privrisk_spark.extensions.attack.kernels.learned.families import BilinearFamily, Kind, aggregate_from, family_of
from privrisk_spark.extensions.attack.kernels.learned.program import (
    Constraints,
    fewest_failures,
    greatest_margin,
    least_hinge,
)
from privrisk_spark.extensions.attack.kernels.learned.training import KnownRecords, Training
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray

__all__ = ["Learned", "Limits", "fit"]

_STRICT, _MARGINS = 1e-4, (0.1, 0.01)
"""Margins, of the program and of its relaxation, in units of the mean distance of records and rows."""

_CUTS, _FEW = 8, 200
"""Times as many rounds, and programs in each, where the set of a family is cut out; with so few constraints."""

_SLACK = 1e-6
"""By which the solver may miss a constraint, in the same units."""


@dataclass(frozen=True)
class Limits:
    """How much work goes into a distance.

    Attributes
    ----------
    rounds : int
        In which constraints are added to one program, at most.
    each : int
        Constraints of one record that are added in a round, at most.
    ramps : int
        Times the relaxation is solved again without what it gives up.
    constraints : int
        With more, the mixed-integer program is not tried; 0 never tries it.
    nodes : int
        Of its branch and bound, in each round.
    seconds : float
        For it in each round. Reached before the nodes, it makes the result depend on the machine.
    """

    rounds: int = 5
    each: int = 4
    ramps: int = 2
    constraints: int = 1500
    nodes: int = 500
    seconds: float = 60.0


@dataclass(frozen=True, eq=False)
class Learned:
    """A learned distance.

    Attributes
    ----------
    aggregate : Aggregate
        The weighted mean with the standard weights, where none of the family finds more.
    status : {"proved", "heuristic"}
    people : int
        Training people, those without a row of their own included.
    standard, found : float
        Training people found by the standard weights, and by the aggregate; ties count fractionally.
    firmly : float
        Of these, those whose own row comes first by the margin, less a tenth for the solver's tolerances.
    at_most : float
        No parameters of the family put more people's rows first by the margin.
    margin : float
        Of distances.
    constraints : int
        Rows in the way that the programs knew in the end.
    fell_back : bool
        Whether the standard weights are kept.
    """

    kind: Kind
    aggregate: Aggregate = field(metadata={"from_json": aggregate_from})
    status: Status
    people: int
    standard: float
    found: float
    firmly: float
    at_most: float
    margin: float
    constraints: int
    fell_back: bool

    @property
    def gap(self) -> float:
        """People that other parameters might put first beyond these."""
        return max(self.at_most - self.firmly, 0.0)


def fit(kind: Kind, file: SearchedFile, records: KnownRecords, limits: Limits | None = None) -> Learned:
    """Learn a distance.

    Parameters
    ----------
    kind : {"weighted_mean", "ordered_weighted_average", "bilinear", "choquet"}
    file : SearchedFile
        In which is searched; its weights are the standard ones.
    records : KnownRecords
        To learn from.
    limits : Limits, optional

    Raises
    ------
    InputError
        If there are no records, or too many attributes for a measure.
    """
    people = int(records.people.sum())
    if not people:
        raise InputError("Record linkage: a distance needs records to be learned from.")
    family, those = family_of(kind, len(file.weights)), records.only(records.own >= 0)
    means = fitting = _Fitting(Training(family_of("weighted_mean", len(file.weights)), file, those), limits or Limits())
    if kind != "weighted_mean":
        fitting = _Fitting(Training(family, file, those), limits or Limits())
        # Of the standard weights, what ordered differences do not tell apart counts too.
        fitting.best = fitting.standard = means.standard
    if kind == "ordered_weighted_average":
        fitting.begin(OrderedWeightedAverage(np.full(len(file.weights), 1 / len(file.weights))))
    elif kind != "weighted_mean":
        means.relax()
        means.decide()
        fitting.begin(means.best.aggregate)
    fitting.relax()
    fitting.decide()
    standard, best = fitting.standard, fitting.best
    kept = best.found <= standard.found
    chosen = standard if kept else best
    proved = chosen.firmly >= fitting.at_most - 1e-6 * max(people, 1)
    return Learned(
        kind=kind,
        aggregate=chosen.aggregate,
        status="proved" if proved else "heuristic",
        people=people,
        standard=standard.found,
        found=chosen.found,
        firmly=chosen.firmly,
        at_most=fitting.at_most,
        margin=_STRICT * fitting.scale,
        constraints=len(fitting.record),
        fell_back=kept,
    )


@dataclass(frozen=True, eq=False)
class _Tried:
    """A distance, the training people it finds, and those it puts first by the margin."""

    aggregate: Aggregate
    found: float
    firmly: float


class _Fitting:
    """The constraints met so far, and the best of the distances tried."""

    def __init__(self, training: Training, limits: Limits) -> None:
        self.training, self.limits, self.family = training, limits, training.family
        stakes, hopeless = training.prospects
        self.stakes = np.where(hopeless, 0.0, stakes)
        self.at_most = math.fsum(self.stakes)
        self.scale = training.scale
        features = len(self.family.limits()[0])
        self.record, self.place = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        self.gaps: Any = scipy.sparse.csr_array((0, features))
        self.least = np.zeros(0)
        self.cuts = np.zeros((0, features))
        self.parameters: FloatArray | None = None
        self.best = _Tried(WeightedMean(training.file.weights), -1.0, 0.0)
        self._try(self.best.aggregate, np.full(len(stakes), _MARGINS[0]))
        self.standard = self.best

    def begin(self, aggregate: Aggregate) -> None:
        """Begin with a distance of a family inside this one."""
        self._try(aggregate, np.full(len(self.stakes), _MARGINS[0]))
        if isinstance(self.family, BilinearFamily):
            self.parameters = self.family.parameters(Bilinear(np.diag(aggregate.weights_of_columns())))

    def relax(self) -> None:
        """Solve the hinge relaxation with each margin."""
        for margin in _MARGINS:
            self._relax(margin)

    def _relax(self, margin: float) -> None:
        """Solve the hinge relaxation, and again without the records that it gives up."""
        stakes = self.stakes
        for _ in range(1 + self.limits.ramps):
            left = np.full(len(stakes), np.inf)
            for _ in range(self.limits.rounds):
                if not len(self.record):
                    return
                solved = least_hinge(self._constraints, stakes, margin, self.parameters)
                self.parameters = solved.parameters
                assert self.parameters is not None
                wanted = np.where(stakes > 0, margin - solved.slack - _SLACK, -np.inf)
                left, more = self._try(self.family.aggregate(self.parameters), wanted)
                if not more:
                    break
            # Given up: another row is nearer than its own.
            held = np.where(left > 0, self.stakes, 0.0)
            if (held == stakes).all() or not held.any():
                return
            stakes = held

    def decide(self) -> None:
        """Solve the mixed-integer program, as long as few constraints are known."""
        total = math.fsum(self.stakes)
        # What forms miss of their set is cut off as it is met, which takes more rounds.
        for done in range(self.limits.rounds * (_CUTS if isinstance(self.family, BilinearFamily) else 1)):
            most = self.limits.constraints if done < self.limits.rounds else min(self.limits.constraints, _FEW)
            if not 0 < len(self.record) <= most:
                return
            solved = fewest_failures(
                self._constraints,
                self.stakes,
                _STRICT,
                at_most=total - self.best.firmly,
                nodes=self.limits.nodes,
                seconds=self.limits.seconds,
            )
            self.at_most = min(self.at_most, total - solved.bound)
            if solved.parameters is None:
                return
            wanted = np.where(solved.slack < 0.5, _STRICT - _SLACK, -np.inf)
            _, more = self._try(self.family.aggregate(solved.parameters), wanted)
            cut = self._cut(solved.parameters)
            if cut:
                more += cut + self._repair(solved.slack < 0.5)
            if not more or solved.bound < solved.value - 1e-6 * max(total, 1.0):
                return

    def _repair(self, held: BoolArray) -> int:
        """Look for a distance of the family that puts the same records first; return the constraints that added."""
        more = 0
        for _ in range(_CUTS):
            parameters = greatest_margin(self._constraints, held)
            if parameters is None:
                break
            added = self._cut(parameters)
            more += added
            if not added:
                more += self._try(self.family.aggregate(parameters), np.where(held, _STRICT - _SLACK, -np.inf))[1]
                break
        return more

    @property
    def _constraints(self) -> Constraints:
        return Constraints(self.family, self.record, self.gaps, self.least, self.cuts)

    def _cut(self, parameters: FloatArray) -> int:
        """Add what the parameters miss of the family; return how much."""
        cuts = self.family.cuts(parameters)
        self.cuts = np.vstack([self.cuts, cuts])
        return len(cuts)

    def _try(self, aggregate: Aggregate, wanted: FloatArray) -> tuple[FloatArray, int]:
        """Try a distance, and add what is in the way of records that lack the clearance wanted of them.

        Returns
        -------
        clearance : ndarray of float64, shape (m,)
        more : int
            Constraints that were added.
        """
        asked = np.where(self.stakes > 0, np.maximum(wanted, _STRICT), -np.inf)
        look = self.training.look(aggregate, asked * self.scale, wanted * self.scale, most=self.limits.each)
        clearance = look.clearance / self.scale
        found = math.fsum(look.probability * self.training.records.people)
        firmly = math.fsum(self.stakes[clearance >= 0.9 * _STRICT])
        if found > self.best.found + 1e-9 or (found > self.best.found - 1e-9 and firmly > self.best.firmly + 1e-9):
            self.best = _Tried(aggregate, found, firmly)
        return clearance, self._add(look.record, look.place)

    def _add(self, record: LongArray, place: LongArray) -> int:
        """Add the constraints that are new; return how many."""
        p = len(self.training.file.rows)
        new = ~np.isin(record * p + place, self.record * p + self.place)
        record, place = record[new], place[new]
        if len(record):
            others, own = self.training.pairs(record, place)
            gaps = (self.family.features(others) - self.family.features(own)) / self.scale
            self.gaps = scipy.sparse.vstack([self.gaps, scipy.sparse.csr_array(gaps)]).tocsr()
            self.least = np.concatenate([self.least, self.family.least_gap(others, own) / self.scale])
            self.record, self.place = np.concatenate([self.record, record]), np.concatenate([self.place, place])
        return len(record)
