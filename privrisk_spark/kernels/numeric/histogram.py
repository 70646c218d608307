"""Counting equal vectors of small integers, chunk by chunk: the histogram ``n[t_1,…,t_k]`` every count starts from."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from privrisk_spark.kernels.arrays import IntArray, LongArray

DENSE_CELLS = 2**24
"""Possible vectors up to which a histogram is an array with a cell for each."""


class VectorHistogram:
    """How often each vector was added: the buffer of a task, which is filled, taken and filled again; no tally.

    Parameters
    ----------
    radices : sequence of k int
        Exclusive upper bound of each column; columns are not negative.
    most_held : int
        Distinct vectors a sparse histogram holds before it is :attr:`full`.
    """

    def __init__(self, radices: Sequence[int], *, most_held: int = 2**21) -> None:
        self.radices = tuple(radices)
        self.most_held = most_held
        cells = prod(self.radices)
        self._cells = np.zeros(cells, dtype=np.int64) if cells <= DENSE_CELLS else None
        # Beyond 63 bits a vector is several words; each is packed in mixed radix.
        self._words: list[slice] = []
        begin = 0
        while begin < len(self.radices):
            end = begin + 1
            while end < len(self.radices) and prod(self.radices[begin : end + 1]) < 2**63:
                end += 1
            self._words.append(slice(begin, end))
            begin = end
        self._held: list[tuple[list[LongArray], LongArray]] = []
        self._added = 0
        self._total = 0

    def add(self, columns: Sequence[IntArray], times: LongArray | None = None) -> None:
        """Count the rows of a chunk, ``times[i]`` times each if given."""
        n = len(columns[0]) if columns else 0
        if not n:
            return
        words = [self._packed(columns, word) for word in self._words]
        self._total += n if times is None else _exact_sum(times)
        if self._cells is not None:
            np.add.at(self._cells, words[0], 1 if times is None else times)
            return
        self._held.append(_grouped(words, np.ones(n, dtype=np.int64) if times is None else times))
        self._added += len(self._held[-1][1])
        if self._added > 2 * self.most_held:
            self._compact()

    def _packed(self, columns: Sequence[IntArray], word: slice) -> LongArray:
        key: LongArray = columns[word.start].astype(np.int64)
        for column, radix in zip(
            columns[word.start + 1 : word.stop], self.radices[word.start + 1 : word.stop], strict=True
        ):
            key *= radix
            key += column
        return key

    def _compact(self) -> None:
        if len(self._held) > 1:
            words = [np.concatenate([held[0][w] for held in self._held]) for w in range(len(self._words))]
            self._held = [_grouped(words, np.concatenate([held[1] for held in self._held]))]
        self._added = sum(len(held[1]) for held in self._held)

    @property
    def full(self) -> bool:
        """Whether it should be taken before more is added: more distinct vectors than it is to hold."""
        if self._cells is not None or self._added <= self.most_held:
            return False
        self._compact()
        return self._added > self.most_held

    @property
    def total(self) -> int:
        """Sum of the times of what was added since the last :meth:`take`; exact, of any size.

        From 2^63 on the counts themselves overflow.
        """
        return self._total

    def take(self) -> tuple[IntArray, LongArray]:
        """Return what was counted and start again.

        Returns
        -------
        vectors : ndarray of int32, shape (m, k)
            Distinct, in lexicographic order.
        counts : ndarray of int64, shape (m,)
        """
        self._total = 0
        if self._cells is not None:
            keys = np.flatnonzero(self._cells)
            counts = self._cells[keys]
            self._cells[keys] = 0
            return self._unpacked([keys]), counts
        self._compact()
        if not self._held:
            return np.zeros((0, len(self.radices)), dtype=np.int32), np.zeros(0, dtype=np.int64)
        words, counts = self._held.pop()
        self._added = 0
        return self._unpacked(words), counts

    def _unpacked(self, words: Sequence[LongArray]) -> IntArray:
        result = np.empty((len(words[0]) if words else 0, len(self.radices)), dtype=np.int32, order="F")
        for word, keys in zip(self._words, words, strict=True):
            rest = keys
            for i in range(word.stop - 1, word.start, -1):
                rest, result[:, i] = np.divmod(rest, self.radices[i])
            result[:, word.start] = rest
        return result


def _exact_sum(times: LongArray) -> int:
    """Sum of non-negative integers; each half of fewer than 2^31 of them sums to less than 2^63."""
    return (int((times >> 32).sum()) << 32) + int((times & (2**32 - 1)).sum())


def _grouped(words: Sequence[LongArray], times: LongArray) -> tuple[list[LongArray], LongArray]:
    """Distinct rows of words, ascending, and the sum of their times."""
    order = np.argsort(words[0], kind="stable") if len(words) == 1 else np.lexsort(tuple(reversed(words)))
    ordered = [word[order] for word in words]
    new = np.ones(len(order), dtype=np.bool_)
    new[1:] = np.logical_or.reduce([word[1:] != word[:-1] for word in ordered])
    starts = np.flatnonzero(new)
    return [word[starts] for word in ordered], np.add.reduceat(times[order], starts)
