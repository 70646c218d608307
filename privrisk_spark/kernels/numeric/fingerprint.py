"""64-bit fingerprints of rows: what tells two tables, or two record ids, apart without keeping them.

No protection against somebody who looks for collisions; two given different values collide with chance 2^-64.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import BoolArray, ByteArray, LongArray, WordArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ROUNDS = ((np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)), (np.uint64(27), np.uint64(0x94D049BB133111EB)))

_BLOCK = 2**14
"""Words mixed at once: all steps find them in the nearest cache."""


def mixed(values: WordArray) -> WordArray:
    """Bijection of 64-bit words in which every bit depends on every bit (the finalizer of splitmix64)."""
    result = np.empty(values.shape, dtype=np.uint64)
    shifted = np.empty(min(len(values), _BLOCK), dtype=np.uint64)
    with np.errstate(over="ignore"):
        for begin in range(0, len(values), _BLOCK):
            z = result[begin : begin + _BLOCK]
            s = shifted[: len(z)]
            np.add(values[begin : begin + _BLOCK], _GOLDEN, out=z)
            for bits, factor in _ROUNDS:
                np.right_shift(z, bits, out=s)
                np.bitwise_xor(z, s, out=z)
                np.multiply(z, factor, out=z)
            np.right_shift(z, np.uint64(31), out=s)
            np.bitwise_xor(z, s, out=z)
    return result


def sampled(words: WordArray, share: float) -> BoolArray:
    """Mark the words whose mixed bits are in the lowest share of all words: a sample that depends on the words only.

    Parameters
    ----------
    words : ndarray of uint64, shape (n,)
    share : float
        In (0, 1].
    """
    marked: BoolArray = mixed(words) <= np.uint64(min(int(share * 2**64), 2**64 - 1))
    return marked


def of_integers(values: LongArray) -> WordArray:
    """Fingerprint of each integer; different integers differ."""
    return mixed(values.astype(np.int64).view(np.uint64))


def of_counts(counts: LongArray) -> int:
    """Fingerprint of how often each number stands: the sum of the fingerprints of 0, 1, …, each as often as it stands.

    Parameters
    ----------
    counts : ndarray of int64, shape (n,)
        How often each of 0 to n - 1 stands.

    Returns
    -------
    int
        Below 2^64. Fingerprints of parts add up to that of the whole, modulo 2^64.
    """
    with np.errstate(over="ignore"):
        return int(np.sum(of_integers(np.arange(len(counts))) * counts.astype(np.uint64), dtype=np.uint64))


def of_tuples(columns: Sequence[npt.NDArray[np.integer]], rows: LongArray) -> int:
    """Fingerprint of how many rows each tuple of integers has: the sum of the tuples' own, each as often as it stands.

    Parameters
    ----------
    columns : sequence of ndarray of an integer type, shape (n,)
        The tuples, which may stand more than once.
    rows : ndarray of int64, shape (n,)
        Rows of each.

    Returns
    -------
    int
        Below 2^64. Fingerprints of parts add up to that of the whole, modulo 2^64.
    """
    tuples = of_rows([of_integers(column.astype(np.int64)) for column in columns], len(rows))
    with np.errstate(over="ignore"):
        return int(np.sum(tuples * rows.astype(np.uint64), dtype=np.uint64))


def of_bytes(data: ByteArray, offsets: LongArray) -> WordArray:
    """Fingerprint of each byte string.

    Parameters
    ----------
    data : ndarray of uint8
        All strings one after another.
    offsets : ndarray of int64, shape (n + 1,)
        String i is ``data[offsets[i]:offsets[i + 1]]``.

    Returns
    -------
    ndarray of uint64, shape (n,)
        Length and words of 8 bytes, mixed in one after the other; a step is a bijection of what came before. Of a
        string longer than :data:`LONG` the fingerprints of its blocks are what is mixed in, so that its words, too, are
        taken many at a time: the cost is linear in the bytes, however they are spread over the strings.
    """
    start, lengths = offsets[:-1], np.diff(offsets)
    if not len(lengths) or not lengths.any():
        return mixed(lengths.astype(np.uint64))
    padded = np.concatenate([data[: int(offsets[-1])], np.zeros(8, dtype=np.uint8)])
    # The 8 bytes from every position on, also unaligned ones.
    words: WordArray = np.ndarray(shape=(len(padded) - 7,), dtype="<u8", buffer=padded.data, strides=(1,))
    long = np.flatnonzero(lengths > LONG)
    if not len(long):
        return _chained(words, start, lengths)
    result = _chained(words, start, np.where(lengths > LONG, 0, lengths))
    result[long] = mixed(mixed(lengths[long].astype(np.uint64)) ^ _of_blocks(words, start[long], lengths[long]))
    return result


LONG = 2**14
"""Bytes up to which a string is mixed in word for word."""


def _chained(words: WordArray, start: LongArray, lengths: LongArray) -> WordArray:
    """Length and words of each string, one after the other."""
    result = mixed(lengths.astype(np.uint64))
    rows = np.arange(len(lengths)) if lengths.all() else np.flatnonzero(lengths)
    if not len(rows):
        return result
    at, left, held = (
        (start, lengths, result) if len(rows) == len(lengths) else (start[rows], lengths[rows], result[rows])
    )
    while True:
        word = words[at]
        if left.min() < 8:
            bits = (8 * np.minimum(left, 8)).astype(np.uint64)
            word = word & np.where(left >= 8, ~np.uint64(0), (np.uint64(1) << (bits & np.uint64(63))) - np.uint64(1))
        held = mixed(held ^ word)
        if left.max() <= 8:
            result[rows] = held
            return result
        if left.min() <= 8:
            # Strings that have ended are not looked at again.
            ended = left <= 8
            result[rows[ended]] = held[ended]
            rows, at, left, held = rows[~ended], at[~ended], left[~ended], held[~ended]
        at, left = at + 8, left - 8


_BLOCK_BYTES = 2**11


def _of_blocks(words: WordArray, start: LongArray, lengths: LongArray) -> WordArray:
    """Fingerprint of the fingerprints of each string's blocks."""
    blocks = -(-lengths // _BLOCK_BYTES)
    ends = np.cumsum(blocks)
    within = (np.arange(int(ends[-1])) - np.repeat(ends - blocks, blocks)) * _BLOCK_BYTES
    sizes = np.minimum(np.repeat(lengths, blocks) - within, _BLOCK_BYTES)
    of_block = _chained(words, np.repeat(start, blocks) + within, sizes)
    offsets = 8 * np.concatenate([[0], ends])
    return of_bytes(of_block.astype("<u8").view(np.uint8), offsets)


def of_rows(columns: Sequence[WordArray], n: int) -> WordArray:
    """Fingerprint of each row from those of its columns; their order matters."""
    result = np.zeros(n, dtype=np.uint64)
    with np.errstate(over="ignore"):
        for number, column in enumerate(columns):
            result = mixed(result * np.uint64(3) + column + np.uint64(number))
    return result


def of_table(rows: WordArray) -> tuple[int, int]:
    """Two words that do not depend on the order of rows: a sum and, after another mixing, an exclusive or.

    Words of parts of a table combine by addition mod 2^64 and by exclusive or.
    """
    with np.errstate(over="ignore"):
        total = int(np.add.reduce(rows, dtype=np.uint64)) if len(rows) else 0
        other = int(np.bitwise_xor.reduce(mixed(rows ^ _GOLDEN))) if len(rows) else 0
    return total, other
