"""Some records of a table, drawn by how often they occur: decided at a floor, or at levels chosen by something else."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.counting.consistent import consistent_at
from privrisk_spark.kernels.disclosure.decisions import Decisions
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.objective import LeastRisk
from privrisk_spark.kernels.disclosure.risk import RiskModel, identification_risk
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.search.method import Search
from privrisk_spark.kernels.search.table_search import decide
from reproduce.deciding.subject import Subject

Weights = tuple[FloatArray, ...]


@dataclass(frozen=True, eq=False)
class Decided:
    """Optimal disclosures of a sample.

    Attributes
    ----------
    risk, utility : ndarray of float64, shape (n,)
    feasible : ndarray of bool, shape (n,)
        Whether the floor can be reached; the record is suppressed otherwise.
    levels : ndarray of int64, shape (n, k)
    """

    risk: FloatArray
    utility: FloatArray
    feasible: BoolArray
    levels: LongArray


@dataclass(frozen=True, eq=False)
class Sample:
    """Distinct records of a table. They take the draws of its weights in turn; those of one draw are together.

    Attributes
    ----------
    record : ndarray of int64, shape (n,)
        Rows of ``subject.vectors``, by draw of the weights.
    draw : ndarray of int64, shape (n,)
        Number of the draw, ascending.
    times : ndarray of float64, shape (n,)
        Rows of the table with the record's values.
    """

    subject: Subject
    record: LongArray
    draw: LongArray
    times: FloatArray

    @classmethod
    def of(cls, subject: Subject, *, seed: int, records: int) -> Sample:
        """Draw at most so many distinct records."""
        drawn, draws = subject.drawn(seed, records), len(subject.weightings)
        turns = [drawn[i::draws] for i in range(min(draws, len(drawn)))]
        record = np.concatenate([*turns, drawn[:0]])
        draw = np.repeat(np.arange(len(turns)), [len(turn) for turn in turns])
        return cls(subject, record, draw, subject.counts[record].astype(np.float64))

    def taken(self, of: LongArray, times: npt.NDArray[np.generic]) -> Sample:
        """Return records of the sample, some of them several times.

        Parameters
        ----------
        of : ndarray of int64, shape (m,)
            Places in the sample; what is returned is in this order, so :meth:`decided` wants draws ascending.
        times : ndarray of a real type, shape (m,)
            What each stands for in a mean.
        """
        return Sample(self.subject, self.record[of], self.draw[of], times.astype(np.float64))

    def mean(self, values: npt.NDArray[np.generic]) -> float:
        """Mean over the rows that have the records' values."""
        return float(np.average(values.astype(np.float64), weights=self.times))

    def decided(self, model: RiskModel, floor: float) -> Decided:
        """Decide the records optimally.

        Parameters
        ----------
        model : {"I", "II", "III"}
        floor : float
            Least utility of each record.
        """
        search = Search(LeastRisk(floor))

        def of(codes: npt.NDArray[np.int32], weights: Weights) -> Decisions:
            subject = self.subject
            disclosure = Disclosure(
                ancestor=tuple(axis.ancestor for axis in subject.axes),
                code_depth=tuple(axis.code_depth for axis in subject.axes),
                utility=subject.utilities,
                sensitivity=Sensitivity("linear", weights),
                model=model,
            )
            return decide(disclosure, search, subject.held, codes)

        found = [of(self.subject.vectors[self.record[part]], weights) for part, weights in self._parts()]
        return Decided(
            np.concatenate([one.risk for one in found]),
            np.concatenate([one.utility for one in found]),
            np.concatenate([one.feasible for one in found]),
            np.concatenate([one.levels.astype(np.int64) for one in found]),
        )

    def utility_at(self, levels: LongArray) -> FloatArray:
        """Utility of the records at given levels.

        Parameters
        ----------
        levels : ndarray of int64, shape (n, k)
            Steps up from each value; as many as the height is the root.

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        nodes = self._nodes(levels)
        found: FloatArray = np.sum(
            [values[node] for values, node in zip(self.subject.utilities, nodes, strict=True)], 0
        )
        return found

    def risk_at(self, levels: LongArray, model: RiskModel) -> FloatArray:
        """Identification risk of the records at given levels, as for :meth:`utility_at`."""
        subject, nodes = self.subject, self._nodes(levels)
        phi = np.zeros(len(self.record))
        for part, weights in self._parts():
            phi[part] = Sensitivity("linear", weights).phi([node[part] for node in nodes])
        consistent = np.zeros(len(self.record), dtype=np.int64)
        depths = [axis.code_depth for axis in subject.axes]
        first, member = distinct_rows([np.ascontiguousarray(column) for column in levels.T])
        for number, at in enumerate(first):
            those = np.flatnonzero(member == number)
            codes = subject.vectors[self.record[those]]
            consistent[those] = consistent_at(subject.held, depths, codes, levels[at].tolist())
        return identification_risk(model, phi, consistent, dictionary_rows=subject.held.dictionary_rows)

    def _parts(self) -> list[tuple[LongArray, Weights]]:
        """Places of the records of each draw, with its weights."""
        drawn = self.subject.weightings
        return [(np.flatnonzero(self.draw == i), drawn[i]) for i in np.unique(self.draw).tolist()]

    def _nodes(self, levels: LongArray) -> list[npt.NDArray[np.int32]]:
        codes = self.subject.vectors[self.record]
        return [axis.ancestor[codes[:, i], levels[:, i]] for i, axis in enumerate(self.subject.axes)]
