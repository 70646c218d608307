"""64-bit fingerprints of rows: what tells two tables, or two record ids, apart without keeping them.

No protection against somebody who looks for collisions; two given different values collide with chance 2^-64.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privrisk_spark.kernels.arrays import ByteArray, LongArray, WordArray

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


def of_integers(values: LongArray) -> WordArray:
    """Fingerprint of each integer; different integers differ."""
    return mixed(values.astype(np.int64).view(np.uint64))


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
        Length and words of 8 bytes, mixed in one after the other; a step is a bijection of what came before.
    """
    start, lengths = offsets[:-1], np.diff(offsets)
    result = mixed(lengths.astype(np.uint64))
    if not len(lengths) or not lengths.any():
        return result
    padded = np.concatenate([data[: int(offsets[-1])], np.zeros(8, dtype=np.uint8)])
    # The 8 bytes from every position on, also unaligned ones.
    words: WordArray = np.ndarray(shape=(len(padded) - 7,), dtype="<u8", buffer=padded.data, strides=(1,))
    for position in range(0, int(lengths.max()), 8):
        left = lengths - position
        active = slice(None) if left.min() > 0 else np.flatnonzero(left > 0)
        word = words[start[active] + position]
        short = left[active]
        if short.min() < 8:
            bits = (8 * np.minimum(short, 8)).astype(np.uint64)
            word = word & np.where(short >= 8, ~np.uint64(0), (np.uint64(1) << (bits & np.uint64(63))) - np.uint64(1))
        result[active] = mixed(result[active] ^ word)
    return result


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
