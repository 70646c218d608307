"""Which cells deciding looks up, so that they alone need be counted."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, IntArray, LevelArray, LongArray
from privrisk_spark.kernels.counting.cells import CellSpace
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.lattice.lattice import Lattice, reaches
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.packing import gathered

_CELLS_AT_ONCE = 2**22


def chunk_rows(disclosure: Disclosure) -> int:
    """Records to decide together, a power of two: at most 2**16, and 2**22 cells unless one record has more."""
    nodes = 1
    for ancestor in disclosure.ancestor:
        nodes *= ancestor.shape[1]
    rows = 2**16
    while rows > 1 and rows * nodes > _CELLS_AT_ONCE:
        rows //= 2
    return rows


def needed_cells(disclosure: Disclosure, floor: float | None, space: CellSpace, codes: IntArray) -> list[LongArray]:
    """Every cell that deciding these records can look up.

    Those are the record itself, its full suppression, and every feasible node: candidates are feasible, and ties are
    settled among feasible nodes, which are closed downwards.

    Parameters
    ----------
    floor : float or None
        Utility below which no node is looked at.
    codes : ndarray of int32, shape (n, k)
        Leaf codes.

    Returns
    -------
    list of ndarrays of int64, shape (n_cells,)
        Words of distinct cells, in lexicographic order.
    """
    n, k = codes.shape
    none = [np.empty(0, dtype=np.int64) for _ in range(space.n_words)]
    if not n:
        return none
    of_profile, profile = distinct_rows([disclosure.profiles[i][codes[:, i]] for i in range(k)])
    depths = [disclosure.code_depth[i][codes[of_profile, i]] for i in range(k)]
    of_shape, shape = distinct_rows(depths)
    held: list[list[LongArray]] = [none]
    cells = 0
    for s, one in enumerate(of_shape):
        lattice = Lattice(tuple(int(depth[one]) for depth in depths))
        same = np.flatnonzero(shape == s)
        step = max(1, _CELLS_AT_ONCE // lattice.n_nodes)
        for begin in range(0, len(same), step):
            profiles = same[begin : begin + step]
            asked = _asked_nodes(disclosure, floor, lattice, codes[of_profile[profiles]])
            local = np.full(len(of_profile), -1)
            local[profiles] = np.arange(len(profiles))
            rows = np.flatnonzero(local[profile] >= 0)
            columns = [np.ascontiguousarray(codes[rows, i]) for i in range(k)]
            member = local[profile[rows]]
            for node in np.flatnonzero(asked.any(axis=0)).tolist():
                levels = lattice.levels(np.array([node]))[0].tolist()
                chosen = columns
                if not asked[:, node].all():
                    here = asked[member, node]
                    chosen = [column[here] for column in columns]
                held.append(_distinct(space.words_at(chosen, levels)))
                cells += len(held[-1][0])
                if cells > 2 * _CELLS_AT_ONCE:
                    held = [_distinct([np.concatenate(parts) for parts in zip(*held, strict=True)])]
                    cells = 0
    return _distinct([np.concatenate(parts) for parts in zip(*held, strict=True)])


def _asked_nodes(disclosure: Disclosure, floor: float | None, lattice: Lattice, codes: IntArray) -> BoolArray:
    """Feasible nodes, the bottom and the top, bool (n, n_nodes), of one record per profile."""
    if floor is None:
        return np.ones((len(codes), lattice.n_nodes), dtype=np.bool_)
    total = np.zeros((len(codes), 1))
    # The same sums in the same order as Lattice.utility: feasibility must not differ in the last bit.
    for i, (ancestor, utility) in enumerate(zip(disclosure.ancestor, disclosure.utility, strict=True)):
        chain = utility[ancestor[codes[:, i], : lattice.shape[i]]]
        total = (total[:, :, None] + chain[:, None, :]).reshape(len(codes), -1)
    asked = reaches(total, floor)
    asked[:, 0] = asked[:, -1] = True
    return asked


def _distinct(words: list[LongArray]) -> list[LongArray]:
    if len(words) == 1:
        # Sorting is far faster than np.unique, which hashes first.
        word = np.sort(words[0])
        return [word[np.concatenate([[True], word[1:] != word[:-1]])[: len(word)]]]
    before, last = gathered(words[:-1], words[-1], distinct=True)
    return [*before, last]


def cells_at(space: CellSpace, codes: IntArray, vectors: Iterable[LevelArray]) -> list[LongArray]:
    """Words of the distinct cells of records at given levels, in lexicographic order.

    Parameters
    ----------
    codes : ndarray of int32, shape (n, k)
    vectors : iterable of ndarrays of int8, shape (n, k)
    """
    held: list[list[LongArray]] = [[np.zeros(0, dtype=np.int64)] * space.n_words]
    for levels in vectors:
        first, member = distinct_rows(list(levels.T))
        for number, row in enumerate(first):
            rows = np.flatnonzero(member == number)
            columns = [np.ascontiguousarray(codes[rows, i]) for i in range(codes.shape[1])]
            held.append(space.words_at(columns, levels[row].tolist()))
    words = [np.concatenate(parts) for parts in zip(*held, strict=True)]
    return _distinct(words)
