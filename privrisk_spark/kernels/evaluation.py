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

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.lattice import TOLERANCE
from privrisk_spark.kernels.record import RecordLattice
from privrisk_spark.kernels.risk import identification_risk

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

    Raises
    ------
    InputError
        If a weight is not finite.
    """

    def __init__(self, lattice: RecordLattice, *, floor: float = -np.inf) -> None:
        self.lattice = lattice
        self.levels = int(lattice.heights.max(initial=0)) + 1
        self.weights = np.zeros((lattice.k, self.levels))
        self.utilities = np.full((lattice.k, self.levels), -np.inf)
        for i, (w, d) in enumerate(zip(lattice.weights, lattice.utilities, strict=True)):
            if not np.isfinite(w).all():
                raise InputError(
                    f"weights[{i}]: a search over one record's lattice needs finite weights. Got infinity; give the "
                    "levels that must not be disclosed a utility that no floor can ask for, or a large weight."
                )
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
    def _utilities_with(self) -> list[tuple[slice, LongArray, npt.NDArray[np.float32]]]:
        """Attributes, strides of their levels, and ``Σ d_i(max(x_i, g_i))`` of every combination of levels and row."""
        columns = np.ascontiguousarray(self.lattice.vectors[self._order].T)
        n = max(1, columns.shape[1])
        groups: list[tuple[slice, LongArray, npt.NDArray[np.float32]]] = []
        for start, stop, strides in _grouped((self.lattice.heights + 1).tolist(), max(1, min(64, _TABLE_WORDS // n))):
            table = np.zeros((1, columns.shape[1]), dtype=np.float32)
            for i in range(start, stop):
                size = int(self.lattice.heights[i]) + 1
                joined = np.maximum(columns[i][None, :], np.arange(size)[:, None])
                of_attribute = self.utilities[i].astype(np.float32)[joined]
                table = (table[:, None, :] + of_attribute[None, :, :]).reshape(len(table) * size, columns.shape[1])
            groups.append((slice(start, stop), strides, table))
        return groups

    @cached_property
    def _order(self) -> LongArray:
        """Rows counted, in descending order of multiplicity."""
        order: LongArray = self.rows[np.argsort(-self.lattice.counts[self.rows], kind="stable")]
        return order

    @cached_property
    def _digits(self) -> list[tuple[int, WordArray]]:
        """Value of each binary digit of the multiplicities, and the rows that have it, as far as any do."""
        counts = -np.sort(-self.lattice.counts[self.rows])
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

    def consistent(self, levels: LongArray) -> LongArray:
        """``ρ`` of level vectors.

        Parameters
        ----------
        levels : ndarray of int64, shape (n, k)

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        found = np.zeros(len(levels), dtype=np.int64)
        for part in self._parts(len(levels)):
            rows = self._row_sets(levels[part])
            for value, having in self._digits:
                bits = np.bitwise_count(rows[:, : len(having)] & having)
                found[part] += value * bits.sum(axis=1, dtype=np.int64)
        return found

    def consistent_within(self, lo: LongArray, hi: LongArray, floor: float) -> LongArray:
        """Upper bound of ``ρ(x)`` among ``lo <= x <= hi`` with ``u(x) >= floor``: rows ``g <= hi``, ``u(g ∨ lo) >= c``.

        Such an ``x`` that generalizes ``g`` is at least ``g ∨ lo``, so its utility is at most that of ``g ∨ lo``.

        Parameters
        ----------
        lo, hi : ndarray of int64, shape (n, k)
        floor : float

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        found = np.zeros(len(hi), dtype=np.int64)
        times = self.lattice.counts[self._order]
        # Sums in single precision, so with slack.
        slack = 1e-5 * max(1.0, float(self.utilities[:, 0].sum()))
        for part in self._parts(len(hi)):
            rows = self._row_sets(hi[part])
            box, word = np.nonzero(rows)
            bits = np.unpackbits(rows[box, word].astype(_WORD).view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
            at, bit = np.nonzero(bits)
            box, row = box[at], word[at] * 64 + bit
            reached = np.zeros(len(row), dtype=np.float32)
            for attributes, strides, table in self._utilities_with:
                reached += table.ravel().take((lo[part, attributes] @ strides * table.shape[1])[box] + row)
            found[part] = np.bincount(
                box, weights=np.where(reached >= floor - slack, times[row], 0), minlength=len(rows)
            ).astype(np.int64)
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
        return _summed(self.weights, levels)

    def utility(self, levels: npt.NDArray[np.integer]) -> FloatArray:
        """``u`` of level vectors, shape (n, k) to (n,); summed from the first attribute to the last."""
        return _summed(self.utilities, levels)

    def risk(self, levels: LongArray) -> FloatArray:
        """``r`` of level vectors, shape (n, k) to (n,)."""
        return self.risk_of(self.sensitivity(levels), self.consistent(levels))

    def risk_of(self, sensitivity: FloatArray, consistent: LongArray) -> FloatArray:
        """Risk for given ``Φ`` and ``ρ``, shape (n,) each."""
        return identification_risk(
            self.lattice.model, sensitivity, consistent, dictionary_rows=self.lattice.dictionary_rows
        )


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
