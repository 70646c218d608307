"""Integer vectors in as few 63-bit words as hold them, in mixed radix: exact, no hashing, sortable, joinable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import LongArray

WORD_VALUES = 2**63
"""Values a word can hold: a Spark long has no unsigned twin."""


@dataclass(frozen=True)
class Packing:
    """Mixed radix words.

    Attributes
    ----------
    radices : tuple of int
        Exclusive upper bound of each slot's digit, at least 1. Consecutive slots share a word while the product of
        their radices is at most ``room``; the first slot of a word is its most significant, so words in order are
        vectors in lexicographic order.
    room : int
        At most 2**63.
    """

    radices: tuple[int, ...]
    room: int = WORD_VALUES

    @cached_property
    def word(self) -> tuple[int, ...]:
        """Word of each slot."""
        result, held = [], 1
        number = 0
        for radix in self.radices:
            if held > 1 and held * radix > self.room:
                number, held = number + 1, 1
            held *= radix
            result.append(number)
        return tuple(result)

    @property
    def n_words(self) -> int:
        """Number of words, at least 1."""
        return self.word[-1] + 1 if self.word else 1

    @cached_property
    def stride(self) -> tuple[int, ...]:
        """What one unit of each slot's digit adds to its word."""
        result = [1] * len(self.radices)
        for slot in range(len(self.radices) - 2, -1, -1):
            if self.word[slot] == self.word[slot + 1]:
                result[slot] = result[slot + 1] * self.radices[slot + 1]
        return tuple(result)

    def pack(self, digits: Sequence[npt.NDArray[np.integer]], n: int) -> list[LongArray]:
        """Words of ``n`` vectors.

        Parameters
        ----------
        digits : sequence of ndarrays, shape (n,)
            One per slot, each below its radix.
        """
        words = [np.zeros(n, dtype=np.int64) for _ in range(self.n_words)]
        for slot, digit in enumerate(digits):
            words[self.word[slot]] += digit.astype(np.int64) * self.stride[slot]
        return words

    def digit(self, words: Sequence[LongArray], slot: int) -> LongArray:
        """Digit of one slot of every vector."""
        result: LongArray = words[self.word[slot]] // self.stride[slot] % self.radices[slot]
        return result


def gathered(words: Sequence[LongArray], tally: LongArray, *, distinct: bool) -> tuple[list[LongArray], LongArray]:
    """Gather equal rows.

    Parameters
    ----------
    words : sequence of ndarrays of int64, shape (n,)
        At least one.
    tally : ndarray of int64, shape (n,)
        Dictionary rows, summed over equal words; or entities.
    distinct : bool
        ``tally`` names entities: equal pairs of words and entity become one.

    Returns
    -------
    words, tally
        In lexicographic order.
    """
    if not len(tally):
        return list(words), tally
    keys = [*words, tally] if distinct else list(words)
    order = np.argsort(keys[0]) if len(keys) == 1 else np.lexsort(keys[::-1])
    starts = np.zeros(len(order), dtype=np.bool_)
    starts[0] = True
    ordered = [key[order] for key in keys]
    for key in ordered:
        starts[1:] |= key[1:] != key[:-1]
    first = np.flatnonzero(starts)
    kept = [key[first] for key in ordered[: len(words)]]
    return kept, ordered[-1][first] if distinct else np.add.reduceat(tally[order], first)


def rows_by_value(values: LongArray) -> Iterator[tuple[int, LongArray]]:
    """Rows of each distinct non-negative value, both ascending.

    Parameters
    ----------
    values : ndarray of int64, shape (n,)
        Rows with a negative value are left out.
    """
    # Narrow integers are sorted by radix.
    narrow = values.astype(np.int16) if len(values) and values.max() < 2**15 else values
    order = np.argsort(narrow, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], np.diff(ordered) != 0])[: len(ordered)])
    for start, rows in zip(starts, np.split(order, starts[1:]) if len(starts) else [], strict=True):
        if ordered[start] >= 0:
            yield int(ordered[start]), rows
