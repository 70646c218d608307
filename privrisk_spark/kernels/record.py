"""One record's decision problem: what a search over its lattice may ask, and what it must answer with.

Level vectors ``x`` run over ``0 <= x_i <= h_i``; 0 releases the value as it is, ``h_i`` suppresses it. A dictionary
row ``t`` is consistent with ``x`` where its generalization vector ``g(t) <= x``, with ``g_i(t)`` the least level at
which the record's value covers the row's (F12 §4.2). So of the dictionary only the distinct vectors ``g`` and their
multiplicities matter, and

``ρ(x) = Σ_g c_g [g <= x]``,  ``Φ(x) = Σ_i w_i(x_i)``,  ``u(x) = Σ_i d_i(x_i)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.counting import distinct_rows
from privrisk_spark.kernels.lattice import TOLERANCE
from privrisk_spark.kernels.risk import RiskModel, identification_risk

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]
LevelArray = npt.NDArray[np.int8]

Status = Literal["proved", "heuristic"]


@dataclass(frozen=True, eq=False)
class RecordLattice:
    """One record against one dictionary.

    Attributes
    ----------
    vectors : ndarray of int8, shape (m, k)
        Distinct generalization vectors of the dictionary rows, in lexicographic order; the record's own, all zeros, is
        among them.
    counts : ndarray of int64, shape (m,)
        Rows of each, positive.
    weights : tuple of k ndarrays of float64, shape (h_i + 1,)
        ``w_i`` of each level, non-negative and non-increasing.
    utilities : tuple of k ndarrays of float64, shape (h_i + 1,)
        ``d_i`` of each level, non-negative and non-increasing.
    model : {"I", "II", "III"}
    """

    vectors: LevelArray
    counts: LongArray
    weights: tuple[FloatArray, ...]
    utilities: tuple[FloatArray, ...]
    model: RiskModel = "I"

    @classmethod
    def of_rows(
        cls,
        rows: npt.NDArray[np.integer],
        weights: Sequence[FloatArray],
        utilities: Sequence[FloatArray],
        *,
        counts: LongArray | None = None,
        model: RiskModel = "I",
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
        k = len(weights)
        times = np.ones(len(rows), dtype=np.int64) if counts is None else counts.astype(np.int64)
        levels = rows.astype(np.int8).reshape(-1, k)
        if not (times[(levels == 0).all(axis=1)] > 0).any():
            levels, times = np.vstack([levels, np.zeros((1, k), dtype=np.int8)]), np.append(times, 1)
        first, member = distinct_rows([np.ascontiguousarray(column) for column in levels.T])
        sums = np.zeros(len(first), dtype=np.int64)
        np.add.at(sums, member, times)
        order = np.lexsort(levels[first].T[::-1])
        order = order[sums[order] > 0]
        return cls(levels[first][order], sums[order], tuple(weights), tuple(utilities), model)

    def __post_init__(self) -> None:
        for name, of_levels in (("weights", self.weights), ("utilities", self.utilities)):
            for values in of_levels:
                if (values < 0).any() or (values[1:] > values[:-1]).any():
                    raise InternalError(f"{name} must be non-negative and non-increasing")
        if self.vectors.shape[1] != self.k or (self.vectors > self.heights).any() or (self.vectors < 0).any():
            raise InternalError("generalization vectors must lie in the lattice")
        if not len(self.vectors) or self.vectors[0].any():
            raise InternalError("the record itself must be in the dictionary")

    @property
    def k(self) -> int:
        """Number of quasi-identifiers."""
        return len(self.weights)

    @cached_property
    def heights(self) -> npt.NDArray[np.int64]:
        """int64 (k,): ``h_i``."""
        return np.array([len(values) - 1 for values in self.weights], dtype=np.int64)

    @cached_property
    def dictionary_rows(self) -> int:
        """``N``, the record itself included."""
        return int(self.counts.sum())

    @property
    def size(self) -> int:
        """Nodes of the lattice; exact, of any size."""
        product = 1
        for height in self.heights.tolist():
            product *= height + 1
        return product

    def consistent(self, levels: npt.NDArray[np.integer]) -> int:
        """``ρ(x)``."""
        return int(self.counts[(self.vectors <= levels).all(axis=1)].sum())

    def sensitivity(self, levels: npt.NDArray[np.integer]) -> float:
        """``Φ(x)``."""
        return float(sum(float(values[x]) for values, x in zip(self.weights, levels, strict=True)))

    def utility(self, levels: npt.NDArray[np.integer]) -> float:
        """``u(x)``."""
        return float(sum(float(values[x]) for values, x in zip(self.utilities, levels, strict=True)))

    def risk_of(self, sensitivity: float, consistent: int) -> float:
        """Risk of the record's model for given ``Φ`` and ``ρ``."""
        found = identification_risk(
            self.model, np.array([sensitivity]), np.array([consistent]), dictionary_rows=self.dictionary_rows
        )
        return float(found[0])

    def risk(self, levels: npt.NDArray[np.integer]) -> float:
        """``r(x)``."""
        return self.risk_of(self.sensitivity(levels), self.consistent(levels))


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
        ``proved`` if no better one exists but for :data:`privrisk_spark.kernels.lattice.TOLERANCE`, or a relative 1e-9
        where minimum cuts with integer capacities say so; else the gap between ``objective`` and ``bound`` remains.
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
        """``|objective - bound|``; 0 where the answer is proved."""
        return 0.0 if self.status == "proved" else abs(self.objective - self.bound)


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
    return Answer(
        levels=levels.astype(np.int8),
        risk=lattice.risk(levels),
        utility=lattice.utility(levels),
        consistent=lattice.consistent(levels),
        objective=objective,
        bound=bound,
        status="proved" if proved else "heuristic",
        visited=visited,
    )


def better(risk: float, utility: float, levels: Sequence[int], than: tuple[float, float, Sequence[int]]) -> bool:
    """The tie rule of every search that minimizes risk.

    Lower risk, then higher utility, then the lexicographically smaller level vector; numbers within
    :data:`privrisk_spark.kernels.lattice.TOLERANCE` of each other count as equal.
    """
    other_risk, other_utility, other_levels = than
    if risk < other_risk * (1 - TOLERANCE) or risk > other_risk * (1 + TOLERANCE):
        return risk < other_risk
    slack = TOLERANCE * max(1.0, abs(other_utility))
    if abs(utility - other_utility) > slack:
        return utility > other_utility
    return tuple(levels) < tuple(other_levels)
