"""Risk against utility of whole recodings, of some records of a table: the R-U confidentiality map.

Every level vector, applied to all records alike, is one point (Duncan, Keller-McNulty and Stokes 2001, *Disclosure risk
vs. data utility: the R-U confidentiality map*). Beside these stand the best decisions record by record for several
utility floors (F12 Fig 3.6), and the best full-domain recodings under k-anonymity.

Status: exact for the records given. They are a sample of a table, so that means of the table are estimated by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.every_node import consistent_everywhere
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.risk import Attacker, identification_risk
from privrisk_spark.kernels.lattice.lattice import TOLERANCE, Lattice, reaches

NumberArray = npt.NDArray[np.float64] | npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Anonymous:
    """A full-domain recoding under which few records lie in classes of fewer than k.

    Attributes
    ----------
    node : int
        Of the lattice.
    risk, utility : float
        Means over the records, suppressed ones at the top.
    suppressed : int
        Records with fewer than k dictionary rows consistent with them.
    """

    k: int
    node: int
    risk: float
    utility: float
    suppressed: int


@dataclass(frozen=True)
class AtFloor:
    """The best decision of every record for one utility floor.

    Attributes
    ----------
    risk, utility : float
        Means over the records; those that cannot reach the floor are suppressed.
    infeasible : int
        How many these are.
    levels : tuple of k float
        Mean level of each attribute.
    """

    floor: float
    risk: float
    utility: float
    infeasible: int
    levels: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Risk and utility of records at every node of one lattice, or of part of it; the top is the last.

    Attributes
    ----------
    kept : tuple of k ndarrays of int64
        Levels of each attribute whose combinations are the nodes; at one above a value's depth it is suppressed.
    risk, utility : ndarray of float64, shape (n, n_nodes)
    consistent : ndarray of int64, shape (n, n_nodes)
        The smallest ``ρ_θ``.
    depths : ndarray of int64, shape (n, k)
        Of the values.
    """

    kept: tuple[LongArray, ...]
    risk: FloatArray
    utility: FloatArray
    consistent: LongArray
    depths: LongArray

    @classmethod
    def of(
        cls,
        disclosure: Disclosure,
        attacker: Attacker,
        codes: IntArray,
        *,
        personal: FloatArray | None = None,
        record_weight: FloatArray | None = None,
        kept: Sequence[Sequence[int]] | None = None,
    ) -> TradeOff:
        """Evaluate records at every node.

        Parameters
        ----------
        attacker : Attacker
            With counts that are dense or sorted. A record that a dictionary has no consistent row for is added to it,
            as in :func:`privrisk_spark.kernels.search.table_search.decide`.
        codes : ndarray of int32, shape (n, k)
            Leaf codes, at least one record.
        personal : ndarray of float64, shape (n, k), optional
        record_weight : ndarray of float64, shape (n,), optional
        kept : sequence of k sequences of int, optional
            Levels of each attribute, ascending, from 0 to the height of its hierarchy; all if not given.

        Notes
        -----
        Memory: about ``32 n n_nodes`` bytes.
        """
        n, k = codes.shape
        given = kept or [range(ancestor.shape[1]) for ancestor in disclosure.ancestor]
        some = tuple(np.array(of_attribute, dtype=np.int64) for of_attribute in given)
        lattice = _spanned(some)
        levels = _levels(some, np.arange(lattice.n_nodes))
        nodes = [np.ascontiguousarray(disclosure.ancestor[i][codes[:, i]][:, levels[:, i]]).ravel() for i in range(k)]
        utility = np.zeros(n * lattice.n_nodes)
        for worth, node in zip(disclosure.utility, nodes, strict=True):
            utility += worth[node]
        phi = disclosure.sensitivity.phi(
            nodes,
            personal=None if personal is None else np.repeat(personal, lattice.n_nodes, axis=0),
            record_weight=None if record_weight is None else np.repeat(record_weight, lattice.n_nodes),
        )
        risks, least = [], None
        for counts in attacker.possible:
            found = consistent_everywhere(counts, disclosure.code_depth, some, codes)
            absent = (found[:, :1] == 0).astype(np.int64)
            found = found + absent if counts.monotone else np.maximum(found + absent, 1)
            rows = np.broadcast_to(counts.dictionary_rows + absent, found.shape).ravel()
            risks.append(identification_risk(disclosure.model, phi, found.ravel(), dictionary_rows=rows))
            least = found if least is None else np.minimum(least, found)
        assert least is not None, "an attacker has a dictionary"
        shape = (n, lattice.n_nodes)
        depths = np.column_stack([depth[codes[:, i]] for i, depth in enumerate(disclosure.code_depth)])
        risk = attacker.risk(risks).reshape(shape)
        return cls(some, risk, utility.reshape(shape), least, depths.astype(np.int64))

    @property
    def n_nodes(self) -> int:
        """Nodes that are evaluated."""
        return len(self.risk[0])

    def levels(self, nodes: LongArray) -> LongArray:
        """Level vectors of nodes.

        Parameters
        ----------
        nodes : ndarray of int64, shape (m,)

        Returns
        -------
        ndarray of int64, shape (m, k)
        """
        return _levels(self.kept, nodes)

    @cached_property
    def mean_risk(self) -> FloatArray:
        """float64 (n_nodes,): mean risk if all records are disclosed at a node."""
        mean: FloatArray = self.risk.mean(axis=0)
        return mean

    @cached_property
    def mean_utility(self) -> FloatArray:
        """float64 (n_nodes,): mean utility if all records are disclosed at a node."""
        mean: FloatArray = self.utility.mean(axis=0)
        return mean

    def frontier(self) -> LongArray:
        """Nodes no other beats in both means, by increasing risk; of equal ones the first. Infinite risks are left out.

        Returns
        -------
        ndarray of int64
        """
        order = np.lexsort((np.arange(len(self.mean_risk)), -self.mean_utility, self.mean_risk))
        order = order[np.isfinite(self.mean_risk[order])]
        best = np.maximum.accumulate(np.append(-np.inf, self.mean_utility[order]))[:-1]
        kept: LongArray = order[self.mean_utility[order] > best]
        return kept

    def spread(self, *, columns: int, rows: int) -> LongArray:
        """Nodes that stand for all on a drawing: the frontier, and the first of each cell of a grid.

        Parameters
        ----------
        columns, rows : int
            Of the grid over ranks of risk and over utilities; each at least 1.

        Returns
        -------
        ndarray of int64
            Ascending. Nodes of infinite risk are left out.
        """
        nodes = np.flatnonzero(np.isfinite(self.mean_risk))
        if not len(nodes):
            return nodes
        risk, utility = self.mean_risk[nodes], self.mean_utility[nodes]
        rank = np.unique(risk, return_inverse=True)[1]
        column = rank * columns // (int(rank.max()) + 1)
        width = float(np.ptp(utility)) or 1.0
        row = np.minimum(((utility - utility.min()) / width * rows).astype(np.int64), rows - 1)
        first = np.unique(column * rows + row, return_index=True)[1]
        return np.union1d(nodes[first], self.frontier())

    def at_floor(self, floor: float) -> AtFloor:
        """Decide every record at least risk among its nodes of at least so much utility (F12 eq. 4.2).

        Returns
        -------
        AtFloor
            Ties: less risk, then more utility, then the first node, within a relative slack of 1e-12.
        """
        top = self.n_nodes - 1
        allowed = reaches(self.utility, floor)
        feasible = allowed.any(axis=1)
        risk = np.where(allowed, self.risk, np.inf)
        least = risk.min(axis=1, keepdims=True)
        tied = allowed & (risk <= least * (1 + TOLERANCE))
        utility = np.where(tied, self.utility, -np.inf)
        most = utility.max(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            node = np.where(feasible, (tied & (utility >= most - TOLERANCE * np.abs(most))).argmax(axis=1), top)
        own = np.arange(len(node))
        levels = np.minimum(self.levels(node), self.depths)
        return AtFloor(
            floor=floor,
            risk=float(self.risk[own, node].mean()),
            utility=float(self.utility[own, node].mean()),
            infeasible=int(np.count_nonzero(~feasible)),
            levels=tuple(levels.mean(axis=0).tolist()),
        )

    def anonymous(self, k: int, *, suppressed: float) -> Anonymous | None:
        """Find the full-domain recoding of most mean utility that suppresses few records.

        A record is suppressed where fewer than k dictionary rows are consistent with it: k-anonymity where the
        dictionary is the table itself, k-map where it is another one. Nothing is known of records that were not given.

        Parameters
        ----------
        k : int
            At least 1.
        suppressed : float
            Largest share of the records that may be suppressed, in [0, 1].

        Returns
        -------
        Anonymous or None
            None where there is none. Ties: less mean risk, then the first node.
        """
        few = self.consistent < k
        number = few.sum(axis=0)
        nodes = np.flatnonzero(number <= suppressed * len(few))
        if not len(nodes):
            return None
        risk = np.where(few[:, nodes], self.risk[:, -1:], self.risk[:, nodes]).mean(axis=0)
        utility = np.where(few[:, nodes], self.utility[:, -1:], self.utility[:, nodes]).mean(axis=0)
        best = int(np.lexsort((nodes, risk, -utility))[0])
        return Anonymous(k, int(nodes[best]), float(risk[best]), float(utility[best]), int(number[nodes[best]]))

    @staticmethod
    def released(values: NumberArray, shown: BoolArray, everywhere: NumberArray) -> FloatArray:
        """Return values of decisions of the same records, those that are not shown taken from the top.

        Parameters
        ----------
        values : ndarray of float64 or int64, shape (n,)
        shown : ndarray of bool, shape (n,)
        everywhere : ndarray, shape (n, n_nodes)
            The same at every node, such as :attr:`risk`.
        """
        return np.where(shown, values, everywhere[:, -1]).astype(np.float64)


def _spanned(kept: Sequence[LongArray]) -> Lattice:
    return Lattice(tuple(len(of_attribute) - 1 for of_attribute in kept))


def _levels(kept: Sequence[LongArray], nodes: LongArray) -> LongArray:
    places = _spanned(kept).levels(nodes)
    return np.column_stack([of_attribute[places[:, i]] for i, of_attribute in enumerate(kept)])


@dataclass(frozen=True)
class Fits:
    """Dictionary rows that fit a record.

    Attributes
    ----------
    alone : int
        Records that one row only fits.
    """

    least: int
    median: float
    alone: int

    @classmethod
    def of(cls, consistent: npt.NDArray[np.generic]) -> Fits:
        """Summarize the rows that fit each record; at least one record."""
        numbers = consistent.astype(np.int64)
        return cls(int(numbers.min()), float(np.median(numbers)), int(np.count_nonzero(numbers == 1)))


def floors_between(trade_off: TradeOff, steps: int, *, and_at: float | None = None) -> Sequence[float]:
    """Return utility floors, evenly from that of a suppressed record to the greatest of a record as it is.

    Parameters
    ----------
    steps : int
        At least 2; so many floors.
    and_at : float, optional
        A floor besides.

    Returns
    -------
    sequence of float
        Ascending, each once.
    """
    low, high = float(trade_off.utility[:, -1].max()), float(trade_off.utility[:, 0].max())
    floors = set(np.linspace(low, high, steps).tolist())
    return sorted(floors if and_at is None else floors | {float(and_at)})
