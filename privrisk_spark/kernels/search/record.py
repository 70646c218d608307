"""One record's decision problem: what a search over its lattice may ask, and what it must answer with.

Level vectors ``x`` run over ``0 <= x_i <= h_i``; 0 releases the value as it is, ``h_i`` suppresses it. A dictionary
row ``t`` is consistent with ``x`` where its generalization vector ``g(t) <= x``, with ``g_i(t)`` the least level at
which the record's value covers the row's (F12 §4.2). So of the dictionary only the distinct vectors ``g`` and their
multiplicities matter, and

``ρ(x) = Σ_g c_g [g <= x]``,  ``Φ(x) = Σ_i w_i(x_i)`` or ``exp(Σ_i w_i(x_i))``,  ``u(x) = Σ_i d_i(x_i)``.

Of several dictionaries every one has multiplicities of its own, and the risk is the expected or the largest one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.kernels.arrays import FloatArray, LevelArray, LongArray
from privrisk_spark.kernels.disclosure.risk import DictionaryRule, RiskModel, identification_risk, over_dictionaries
from privrisk_spark.kernels.numeric.distinct import distinct_rows

Status = Literal["proved", "heuristic"]


@dataclass(frozen=True, eq=False)
class RecordLattice:
    """One record against one dictionary, or several of which the attacker holds one.

    Attributes
    ----------
    vectors : ndarray of int8, shape (m, k)
        Distinct generalization vectors of the dictionary rows, in lexicographic order; the record's own, all zeros, is
        among them.
    counts : ndarray of int64, shape (m,)
        Rows of each in the first dictionary; positive if it is the only one.
    weights : tuple of k ndarrays of float64, shape (h_i + 1,)
        ``w_i`` of each level, non-negative and non-increasing; infinity allowed.
    utilities : tuple of k ndarrays of float64, shape (h_i + 1,)
        ``d_i`` of each level, non-negative, finite and non-increasing.
    model : {"I", "II", "III"}
    exponential : bool
        Φ is the exponential of the sum of weights.
    further : tuple of ndarrays of int64, shape (m,)
        Rows of each in the other dictionaries. The record itself is in every dictionary.
    rule : {"bayes", "minimax"}
    prior : tuple of float
        Probability of every dictionary under ``bayes``.
    ruled_out : tuple of int
        Rows of every dictionary that are no longer consistent with any level vector, as what is out already tells them
        apart from the record (:meth:`after`); none where it is empty.
    """

    vectors: LevelArray
    counts: LongArray
    weights: tuple[FloatArray, ...]
    utilities: tuple[FloatArray, ...]
    model: RiskModel = "I"
    exponential: bool = False
    further: tuple[LongArray, ...] = ()
    rule: DictionaryRule = "bayes"
    prior: tuple[float, ...] = (1.0,)
    ruled_out: tuple[int, ...] = ()

    @classmethod
    def of_rows(
        cls,
        rows: npt.NDArray[np.integer],
        weights: Sequence[FloatArray],
        utilities: Sequence[FloatArray],
        *,
        counts: LongArray | None = None,
        model: RiskModel = "I",
        exponential: bool = False,
    ) -> RecordLattice:
        """From generalization vectors that may repeat; a record that no row equals is added (F12 §4.2).

        Parameters
        ----------
        rows : ndarray of integers, shape (n, k)
        weights, utilities : sequence of k ndarrays of float64, shape (h_i + 1,)
        counts : ndarray of int64, shape (n,), optional
            Multiplicity of each row; one by default.
        model : {"I", "II", "III"}
        """
        times = np.ones(len(rows), dtype=np.int64) if counts is None else counts
        return cls.of_dictionaries([(rows, times)], weights, utilities, model=model, exponential=exponential)

    @classmethod
    def of_dictionaries(
        cls,
        dictionaries: Sequence[tuple[npt.NDArray[np.integer], LongArray]],
        weights: Sequence[FloatArray],
        utilities: Sequence[FloatArray],
        *,
        model: RiskModel = "I",
        exponential: bool = False,
        rule: DictionaryRule = "bayes",
        prior: tuple[float, ...] = (1.0,),
    ) -> RecordLattice:
        """From the rows of several dictionaries; the record is added to those that lack it (F12 §4.2).

        Parameters
        ----------
        dictionaries : sequence of (ndarray of integers, shape (n_d, k); ndarray of int64, shape (n_d,))
            Generalization vectors that may repeat, and the multiplicity of each.
        weights, utilities : sequence of k ndarrays of float64, shape (h_i + 1,)
        model : {"I", "II", "III"}
        rule : {"bayes", "minimax"}
        """
        k = len(weights)
        all_levels: list[LevelArray] = []
        all_times: list[LongArray] = []
        for rows, counts in dictionaries:
            levels, times = rows.astype(np.int8).reshape(-1, k), counts.astype(np.int64)
            if not (times[(levels == 0).all(axis=1)] > 0).any():
                levels, times = np.vstack([levels, np.zeros((1, k), dtype=np.int8)]), np.append(times, 1)
            all_levels.append(levels)
            all_times.append(times)
        levels = np.concatenate(all_levels)
        first, member = distinct_rows([np.ascontiguousarray(column) for column in levels.T])
        sums = np.zeros((len(dictionaries), len(first)), dtype=np.int64)
        start = 0
        for d, times in enumerate(all_times):
            np.add.at(sums[d], member[start : start + len(times)], times)
            start += len(times)
        # Distinct rows come in lexicographic order.
        having = sums.any(axis=0)
        counts, *further = sums[:, having]
        return cls(
            levels[first[having]],
            counts,
            tuple(weights),
            tuple(utilities),
            model,
            exponential=exponential,
            further=tuple(further),
            rule=rule,
            prior=prior,
        )

    def plain(self, search: str) -> None:
        """Refuse what a search of ratios cannot take.

        Raises
        ------
        InputError
            If there are several dictionaries, or Φ is not a sum of weights.
        """
        if self.further:
            raise InputError(f"decision.method: '{search}' takes one dictionary. Got {1 + len(self.further)}.")
        if self.exponential and self.model != "II":
            raise InputError(
                f"decision.method: '{search}' needs a sensitivity that is a sum over attributes; with the form "
                "'multiplicative' use another method."
            )

    def __post_init__(self) -> None:
        for name, of_levels in (("weights", self.weights), ("utilities", self.utilities)):
            for values in of_levels:
                if (values < 0).any() or (values[1:] > values[:-1]).any():
                    raise InternalError(f"{name} must be non-negative and non-increasing")
        if self.vectors.shape[1] != self.k or (self.vectors > self.heights).any() or (self.vectors < 0).any():
            raise InternalError("generalization vectors must lie in the lattice")
        if not len(self.vectors) or self.vectors[0].any():
            raise InternalError("the record itself must be in the dictionary")
        if not all(counts[0] > 0 for counts in self.multiplicities):
            raise InternalError("the record itself must be in every dictionary")
        if self.rule == "bayes" and len(self.prior) != len(self.multiplicities):
            raise InternalError("there must be one probability per dictionary")

    @property
    def k(self) -> int:
        """Number of quasi-identifiers."""
        return len(self.weights)

    @cached_property
    def heights(self) -> npt.NDArray[np.int64]:
        """int64 (k,): ``h_i``."""
        return np.array([len(values) - 1 for values in self.weights], dtype=np.int64)

    @property
    def multiplicities(self) -> tuple[LongArray, ...]:
        """Rows of each vector in every dictionary."""
        return (self.counts, *self.further)

    @cached_property
    def dictionary_rows(self) -> tuple[int, ...]:
        """``N`` of every dictionary, the record itself included."""
        there = tuple(int(counts.sum()) for counts in self.multiplicities)
        return there if not self.ruled_out else tuple(map(sum, zip(there, self.ruled_out, strict=True)))

    def after(self, history: LevelArray) -> RecordLattice:
        """Return the lattice that is left of the record where a level vector ``h`` is out already.

        It ends at ``h``: the risk of ``x`` after it is that at ``x ∧ h``, which has no less utility, so nothing above
        ``h`` is better than what is there (:mod:`privrisk_spark.kernels.search.records`). Rows that ``h`` tells apart
        from the record count for ``N`` alone.

        Parameters
        ----------
        history : ndarray of int8, shape (k,)
            At most the heights.
        """
        there = (self.vectors <= history).all(axis=1)
        counts, *further = (counts[there] for counts in self.multiplicities)
        return replace(
            self,
            vectors=self.vectors[there],
            counts=counts,
            further=tuple(further),
            weights=tuple(values[: h + 1] for values, h in zip(self.weights, history.tolist(), strict=True)),
            utilities=tuple(values[: h + 1] for values, h in zip(self.utilities, history.tolist(), strict=True)),
            ruled_out=tuple(int(counts[~there].sum()) for counts in self.multiplicities),
        )

    @property
    def size(self) -> int:
        """Nodes of the lattice; exact, of any size."""
        product = 1
        for height in self.heights.tolist():
            product *= height + 1
        return product

    def rho(self, levels: npt.NDArray[np.integer]) -> tuple[int, ...]:
        """``ρ(x)`` of every dictionary."""
        rows = (self.vectors <= levels).all(axis=1)
        return tuple(int(counts[rows].sum()) for counts in self.multiplicities)

    def consistent(self, levels: npt.NDArray[np.integer]) -> int:
        """``ρ(x)``; the least one, of several dictionaries."""
        return min(self.rho(levels))

    def sensitivity(self, levels: npt.NDArray[np.integer]) -> float:
        """``Φ(x)``."""
        total = float(sum(float(values[x]) for values, x in zip(self.weights, levels, strict=True)))
        with np.errstate(over="ignore"):
            return float(np.exp(total)) if self.exponential else total

    def utility(self, levels: npt.NDArray[np.integer]) -> float:
        """``u(x)``."""
        return float(sum(float(values[x]) for values, x in zip(self.utilities, levels, strict=True)))

    def risks(self, sensitivity: FloatArray, rho: Sequence[LongArray]) -> FloatArray:
        """Risk of the record's model for given ``Φ`` and ``ρ``, shape (n,) each, the latter one per dictionary."""
        return over_dictionaries(
            self.rule,
            self.prior,
            [
                identification_risk(self.model, sensitivity, consistent, dictionary_rows=n)
                for consistent, n in zip(rho, self.dictionary_rows, strict=True)
            ],
        )

    def risk(self, levels: npt.NDArray[np.integer]) -> float:
        """``r(x)``."""
        rho = [np.array([consistent]) for consistent in self.rho(levels)]
        return float(self.risks(np.array([self.sensitivity(levels)]), rho)[0])


@dataclass(frozen=True, eq=False)
class Answer:
    """The disclosure a search found, and what is known about it.

    Attributes
    ----------
    levels : ndarray of int8, shape (k,)
        Chosen level vector.
    risk, utility : float
        Of it.
    consistent : int
        ``ρ`` of it.
    objective : float
        What was minimized or maximized.
    bound : float
        No level vector that satisfies the constraint has a better objective than this.
    status : {"proved", "heuristic"}
        ``proved`` if no better one exists but for :data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE`, or a
        relative 1e-9 where minimum cuts with integer capacities say so; else the gap between ``objective`` and
        ``bound`` remains.
    visited : int
        Nodes, boxes or cuts the search evaluated; what one is, the search says.
    """

    levels: LevelArray
    risk: float
    utility: float
    consistent: int
    objective: float
    bound: float
    status: Status
    visited: int

    @property
    def gap(self) -> float:
        """``|objective - bound|``; 0 where the answer is proved or both are equal, be they infinite."""
        if self.status == "proved" or self.objective == self.bound:
            return 0.0
        return abs(self.objective - self.bound)


def answer(
    lattice: RecordLattice,
    levels: npt.NDArray[np.integer],
    *,
    objective: float,
    bound: float,
    visited: int,
    proved: bool,
) -> Answer:
    """Evaluate a level vector and put the answer together."""
    rho = lattice.rho(levels)
    risk = lattice.risks(np.array([lattice.sensitivity(levels)]), [np.array([consistent]) for consistent in rho])
    return Answer(
        levels=levels.astype(np.int8),
        risk=float(risk[0]),
        utility=lattice.utility(levels),
        consistent=min(rho),
        objective=objective,
        bound=bound,
        status="proved" if proved else "heuristic",
        visited=visited,
    )
