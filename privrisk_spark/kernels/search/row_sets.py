"""Rows of the dictionaries as sets of bits: the anonymity numbers of level vectors of one record.

``ρ(x) = Σ_g c_g [g <= x]`` is a count of the rows in an intersection of k sets, ``{g : g_i <= x_i}``. Each set is a bit
per distinct row. The intersections of every combination of levels of a few adjacent attributes are formed once, so that
a level vector costs one conjunction per such group instead of one per attribute. Multiplicities are counted by their
binary digits: ``ρ = Σ_b 2^b |rows whose c_g has digit b|``, with rows in descending order of multiplicity, so that high
digits occur only in a short prefix.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import LevelArray, LongArray, WordArray
from privrisk_spark.kernels.lattice.lattice import TOLERANCE
from privrisk_spark.kernels.search.record import RecordLattice
from privrisk_spark.machine_code import compiled

_COMBINATIONS, _WORDS = 256, 2**20
"""Most combinations of levels per group of attributes, and words of their row sets. Do not change a result."""


class RowSets(NamedTuple):
    """Make one with :func:`row_sets`.

    Attributes
    ----------
    tables : ndarray of uint64, shape (n, words)
        Row sets of every combination of levels of a group of adjacent attributes, a bit per row.
    table_of : ndarray of int64, shape (groups + 1,)
        First row of each group's table.
    stride : ndarray of int64, shape (groups, k)
        What a level of an attribute adds to the row.
    planes : ndarray of uint64, shape (n_planes, words)
        Rows whose multiplicity has a binary digit.
    plane_value, plane_of, plane_words : ndarray of int64, shape (n_planes,)
        The digit's value, the dictionary, and the words up to the last such row.
    vectors : ndarray of int8, shape (m, k)
        The rows, in the order of the bits.
    counts : ndarray of int64, shape (D, m)
    """

    tables: WordArray
    table_of: LongArray
    stride: LongArray
    planes: WordArray
    plane_value: LongArray
    plane_of: LongArray
    plane_words: LongArray
    vectors: LevelArray
    counts: LongArray


def row_sets(lattice: RecordLattice, *, floor: float = -np.inf) -> RowSets:
    """Form the sets of a record's dictionaries.

    Parameters
    ----------
    floor : float, optional
        Rows ``g`` with ``u(g)`` below it are left out: no level vector of at least this utility, up to rounding,
        generalizes them. ``ρ`` is then exact at those level vectors, and at the others a lower bound that is still at
        least the ``ρ`` of every such level vector below them.
    """
    rows = _counted(lattice, floor)
    vectors = np.ascontiguousarray(lattice.vectors[rows])
    counts = np.ascontiguousarray(np.stack([counts[rows] for counts in lattice.multiplicities]))
    words = max(1, -(-len(rows) // 64))
    most = int(max(1, min(_COMBINATIONS, _WORDS // (words * max(1, lattice.k // 3)))))
    tables, table_of, stride = _tables(vectors, lattice.heights, most)
    planes, value, of, plane_words = _planes(counts, words)
    return RowSets(tables, table_of, stride, planes, value, of, plane_words, vectors, counts)


def _counted(lattice: RecordLattice, floor: float) -> LongArray:
    """Rows that a level vector of utility at least ``floor`` may generalize, by descending multiplicity."""
    total = np.zeros(len(lattice.vectors))
    for of_level, column in zip(lattice.utilities, lattice.vectors.T, strict=True):
        total += of_level.take(column)
    rows = np.flatnonzero(total >= floor - 2 * TOLERANCE * max(1.0, abs(floor)))
    times = np.sum([counts[rows] for counts in lattice.multiplicities], axis=0)
    order: LongArray = rows[np.argsort(-times, kind="stable")]
    return order


def _planes(counts: LongArray, words: int) -> tuple[npt.NDArray[np.uint64], LongArray, LongArray, LongArray]:
    """Rows whose multiplicity has each binary digit, its value, dictionary, and the words up to the last such row."""
    planes: list[npt.NDArray[np.uint64]] = []
    value, of, length = [], [], []
    for d, times in enumerate(counts):
        for digit in range(int(times.max(initial=0)).bit_length()):
            having = np.zeros(words * 64, dtype=np.bool_)
            having[: len(times)] = (times >> digit) & 1 == 1
            if having.any():
                planes.append(np.packbits(having, bitorder="little").view("<u8").astype(np.uint64))
                value.append(1 << digit)
                of.append(d)
                length.append(int(np.flatnonzero(having)[-1]) // 64 + 1)
    return np.array(planes, dtype=np.uint64).reshape(-1, words), *(
        np.array(column, dtype=np.int64) for column in (value, of, length)
    )  # type: ignore[return-value]


@compiled
def _tables(vectors: LevelArray, heights: LongArray, combinations: int) -> tuple[WordArray, LongArray, LongArray]:
    """Rows that every combination of levels of a few adjacent attributes generalizes.

    Parameters
    ----------
    vectors : ndarray of int8, shape (m, k)
    heights : ndarray of int64, shape (k,)
    combinations : int
        Most of a group of attributes, unless one alone has more levels.

    Returns
    -------
    tables : ndarray of uint64, shape (n, words)
        A bit per row.
    table_of : ndarray of int64, shape (groups + 1,)
        First row of each group's table.
    stride : ndarray of int64, shape (groups, k)
        What a level of an attribute adds to the row.
    """
    m, k = vectors.shape
    words = max(1, (m + 63) // 64)
    group_of = np.zeros(k, dtype=np.int64)
    groups, size = 0, 1
    for i in range(k):
        if i > 0 and size * (heights[i] + 1) > combinations:
            groups += 1
            size = 1
        size *= heights[i] + 1
        group_of[i] = groups
    groups += 1
    table_of = np.zeros(groups + 1, dtype=np.int64)
    stride = np.zeros((groups, k), dtype=np.int64)
    for group in range(groups):
        size = 1
        for i in range(k - 1, -1, -1):
            if group_of[i] == group:
                stride[group, i] = size
                size *= heights[i] + 1
        table_of[group + 1] = table_of[group] + size
    tables = np.zeros((table_of[groups], words), dtype=np.uint64)
    for i in range(k):
        group, step, size = group_of[i], stride[group_of[i], i], heights[i] + 1
        within = np.zeros((size, words), dtype=np.uint64)
        for row in range(m):
            bit = np.uint64(1) << np.uint64(row % 64)
            for level in range(vectors[row, i], size):
                within[level, row // 64] |= bit
        first = i == 0 or group_of[i - 1] != group
        for at in range(table_of[group], table_of[group + 1]):
            level = ((at - table_of[group]) // step) % size
            for word in range(words):
                if first:
                    tables[at, word] = within[level, word]
                else:
                    tables[at, word] &= within[level, word]
    return tables, table_of, stride


@compiled
def bits_in(word: int) -> int:
    """Bits of a 64-bit word that are set."""
    x = np.uint64(word)
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))  # type: ignore[return-value]


@compiled
def rows_within(sets: RowSets, levels: LongArray, rows: WordArray) -> None:
    """Set the bits of the rows that a level vector generalizes."""
    words = len(rows)
    for group in range(len(sets.table_of) - 1):
        at = sets.table_of[group]
        for i in range(len(levels)):
            at += sets.stride[group, i] * levels[i]
        if group == 0:
            for word in range(words):
                rows[word] = sets.tables[at, word]
        else:
            for word in range(words):
                rows[word] &= sets.tables[at, word]


@compiled
def count(sets: RowSets, rows: WordArray, rho: LongArray) -> None:
    """Count the rows of every dictionary whose bits are set."""
    rho[:] = 0
    for plane in range(len(sets.plane_value)):
        bits = 0
        for word in range(sets.plane_words[plane]):
            bits += bits_in(rows[word] & sets.planes[plane, word])
        rho[sets.plane_of[plane]] += sets.plane_value[plane] * bits


@compiled
def rho_of(sets: RowSets, levels: LongArray) -> LongArray:
    """``ρ`` of level vectors in every dictionary.

    Parameters
    ----------
    levels : ndarray of int64, shape (n, k)

    Returns
    -------
    ndarray of int64, shape (D, n)
    """
    n, dictionaries = len(levels), len(sets.counts)
    found = np.zeros((dictionaries, n), dtype=np.int64)
    rows = np.zeros(sets.tables.shape[1], dtype=np.uint64)
    rho = np.zeros(dictionaries, dtype=np.int64)
    for x in range(n):
        rows_within(sets, levels[x], rows)
        count(sets, rows, rho)
        for d in range(dictionaries):
            found[d, x] = rho[d]
    return found
