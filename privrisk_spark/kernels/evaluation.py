"""Risk and utility of many level vectors of one record at once.

The anonymity number ``ρ(x) = Σ_g c_g [g <= x]`` is a count of the rows in an intersection of k sets,
``{g : g_i <= x_i}``. Each set is a bit per distinct row. The intersections of every combination of levels of a few
adjacent attributes are formed once, so that a level vector costs one conjunction per such group instead of one per
attribute. Multiplicities are counted by their binary digits: ``ρ = Σ_b 2^b |rows whose c_g has digit b|``, with rows
in descending order of multiplicity, so that high digits occur only in a short prefix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.lattice import TOLERANCE
from privrisk_spark.kernels.record import RecordLattice

FloatArray = npt.NDArray[np.float64]
LongArray = npt.NDArray[np.int64]
WordArray = npt.NDArray[np.uint64]

_WORD = np.dtype("<u8")

_COMBINATIONS = 256
"""Most combinations of levels per group of attributes. Does not change a result."""

_WORDS_AT_ONCE = 2**18
"""Words of row sets held at once. Does not change a result."""

_TABLE_WORDS = 2**22
"""Words of a group's table, unless a single attribute needs more. Does not change a result."""


class Evaluation:
    """Evaluates level vectors of one record.

    Parameters
    ----------
    lattice : RecordLattice
    floor : float, optional
        Rows ``g`` with ``u(g)`` below it are left out: no level vector of at least this utility, up to rounding,
        generalizes them. ``ρ`` is then exact at those level vectors, and at the others a lower bound that is still at
        least the ``ρ`` of every such level vector below them.

    Attributes
    ----------
    lattice : RecordLattice
    levels : int
        ``max h_i + 1``.
    rows : ndarray of int64
        Distinct vectors that are counted.
    weights, utilities : ndarray of float64, shape (k, levels)
        ``w_i`` and ``d_i`` of each level. Beyond ``h_i`` they hold 0 and minus infinity.
    """

    def __init__(self, lattice: RecordLattice, *, floor: float = -np.inf) -> None:
        self.lattice = lattice
        self.levels = int(lattice.heights.max(initial=0)) + 1
        self.weights = np.zeros((lattice.k, self.levels))
        self.utilities = np.full((lattice.k, self.levels), -np.inf)
        for i, (w, d) in enumerate(zip(lattice.weights, lattice.utilities, strict=True)):
            self.weights[i, : len(w)] = w
            self.utilities[i, : len(d)] = d
        utility = self.utility(lattice.vectors)
        self.rows = np.flatnonzero(utility >= floor - TOLERANCE * max(1.0, abs(floor)))

    @cached_property
    def _groups(self) -> list[tuple[slice, LongArray, WordArray]]:
        """Attributes, strides of their levels, and the row set of each combination of levels."""
        columns = np.ascontiguousarray(self.lattice.vectors[self._order].T)
        words = max(1, -(-columns.shape[1] // 64))
        groups: list[tuple[slice, LongArray, WordArray]] = []
        sizes = (self.lattice.heights + 1).tolist()
        for start, stop, strides in _grouped(sizes, max(1, min(_COMBINATIONS, _TABLE_WORDS // words))):
            table = np.full((1, words), ~np.uint64(0))
            for i in range(start, stop):
                within = columns[i][None, :] <= np.arange(sizes[i])[:, None]
                packed = np.zeros((sizes[i], words * 8), dtype=np.uint8)
                packed[:, : -(-columns.shape[1] // 8)] = np.packbits(within, axis=1, bitorder="little")
                table = (table[:, None, :] & packed.view(_WORD)[None, :, :]).reshape(-1, words)
            groups.append((slice(start, stop), strides, table))
        return groups

    @cached_property
    def _order(self) -> LongArray:
        """Rows counted, in descending order of multiplicity."""
        times = np.sum([counts[self.rows] for counts in self.lattice.multiplicities], axis=0)
        order: LongArray = self.rows[np.argsort(-times, kind="stable")]
        return order

    @cached_property
    def _digits(self) -> list[list[tuple[int, WordArray]]]:
        """Of every dictionary, each binary digit's value and the rows whose multiplicity has it, as far as any do."""
        return [self._digits_of(counts[self._order]) for counts in self.lattice.multiplicities]

    def _digits_of(self, counts: LongArray) -> list[tuple[int, WordArray]]:
        digits = []
        for b in range(int(counts.max(initial=0)).bit_length()):
            having = (counts >> b) & 1 == 1
            if having.any():
                rows = -(-(int(np.flatnonzero(having)[-1]) + 1) // 64) * 64
                packed = np.packbits(np.concatenate([having, np.zeros(64, dtype=np.bool_)])[:rows], bitorder="little")
                packed = np.concatenate([packed, np.zeros(rows // 8 - len(packed), dtype=np.uint8)])
                digits.append((1 << b, packed.view(_WORD)))
        return digits

    def _parts(self, n: int) -> Iterator[slice]:
        words = self._groups[0][2].shape[1]
        step = max(1, _WORDS_AT_ONCE // words)
        for start in range(0, n, step):
            yield slice(start, start + step)

    def rho(self, levels: LongArray) -> LongArray:
        """``ρ`` of level vectors in every dictionary.

        Parameters
        ----------
        levels : ndarray of int64, shape (n, k)

        Returns
        -------
        ndarray of int64, shape (n_dictionaries, n)
        """
        found = np.zeros((len(self._digits), len(levels)), dtype=np.int64)
        for part in self._parts(len(levels)):
            rows = self._row_sets(levels[part])
            for d, digits in enumerate(self._digits):
                for value, having in digits:
                    bits = np.bitwise_count(rows[:, : len(having)] & having)
                    found[d, part] += value * bits.sum(axis=1, dtype=np.int64)
        return found

    def _row_sets(self, levels: LongArray) -> WordArray:
        """Bits of the rows that each level vector generalizes, shape (n, words)."""
        rows: WordArray | None = None
        for attributes, strides, table in self._groups:
            sets = table.take(levels[:, attributes] @ strides, axis=0)
            rows = sets if rows is None else np.bitwise_and(rows, sets, out=rows)
        assert rows is not None
        return rows

    def sensitivity(self, levels: npt.NDArray[np.integer]) -> FloatArray:
        """``Φ`` of level vectors, shape (n, k) to (n,); summed from the first attribute to the last."""
        total = _summed(self.weights, levels)
        with np.errstate(over="ignore"):
            return np.exp(total) if self.lattice.exponential else total

    def utility(self, levels: npt.NDArray[np.integer]) -> FloatArray:
        """``u`` of level vectors, shape (n, k) to (n,); summed from the first attribute to the last."""
        return _summed(self.utilities, levels)

    def risk(self, levels: LongArray) -> FloatArray:
        """``r`` of level vectors, shape (n, k) to (n,)."""
        return self.lattice.risks(self.sensitivity(levels), list(self.rho(levels)))


def _grouped(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int, LongArray]]:
    """Runs of adjacent attributes with at most ``most`` combinations of levels, and the strides of these."""
    start = 0
    while start < len(sizes):
        stop, combinations = start + 1, sizes[start]
        while stop < len(sizes) and combinations * sizes[stop] <= most:
            combinations *= sizes[stop]
            stop += 1
        yield start, stop, np.array([math.prod(sizes[i + 1 : stop]) for i in range(start, stop)], dtype=np.int64)
        start = stop


def _summed(values: FloatArray, levels: npt.NDArray[np.integer]) -> FloatArray:
    total = np.zeros(len(levels))
    for of_levels, level in zip(values, levels.T, strict=True):
        total += of_levels.take(level)
    return total
