"""SHA-256 of many short byte strings at once.

The identity of a record enters its keyed draws as a digest of its id. Ids are short and there is one for every row, so
that asking a library for each costs mostly the asking. Here a group of strings goes through the compression function
together: each of its steps is one loop over the group, which becomes vector instructions.

Status: *tested* against :mod:`hashlib`. Source: NIST FIPS 180-4, 4.1.2 (functions), 4.2.2 and 5.3.3 (constants), 5.1.1
(padding), 6.2 (SHA-256).
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from math import isqrt

import numpy as np
import numpy.typing as npt

ByteArray = npt.NDArray[np.uint8]
WordArray = npt.NDArray[np.uint32]
LongArray = npt.NDArray[np.int64]

DIGEST_BYTES = 32
SHORT = 55
"""Longest string of one block of 64 bytes, of which 9 are padding; a longer one is left to the library."""

FEW = 2**15
"""So many strings are left to the library as well: the machine code takes as long to load. Changes no result."""

_LANES = 64
"""Strings that go together: what a step reads and writes fits the nearest cache."""


def sha256(data: ByteArray, offsets: LongArray) -> ByteArray:
    """Digest of each of some byte strings.

    Parameters
    ----------
    data : ndarray of uint8
        All strings one after another.
    offsets : ndarray of int64, shape (n + 1,)
        Not descending; string i is ``data[offsets[i]:offsets[i + 1]]``.

    Returns
    -------
    ndarray of uint8, shape (n, 32)
    """
    lengths = np.diff(offsets)
    words = np.empty((len(lengths), DIGEST_BYTES // 4), dtype=np.uint32)
    if len(lengths) > FEW:
        long = np.flatnonzero(lengths > SHORT)
        _machine_code()(np.ascontiguousarray(data), offsets, words, _ROOTS, _START)
    else:
        long = np.arange(len(lengths))
    digests = words.byteswap().view(np.uint8)
    text = data.tobytes() if len(long) else b""
    for i in long.tolist():
        digest = hashlib.sha256(text[offsets[i] : offsets[i + 1]]).digest()
        digests[i] = np.frombuffer(digest, dtype=np.uint8)
    return digests


def _fractions(root: Callable[[int], int], n: int) -> WordArray:
    """The first 32 bits of the fractions of a root, given in units of 2^-32, of the first n primes."""
    primes = [p for p in range(2, 312) if all(p % d for d in range(2, isqrt(p) + 1))]
    return np.array([root(p) % 2**32 for p in primes[:n]], dtype=np.uint32)


def _cube_root(p: int) -> int:
    """``floor(2^32 p^(1/3))``."""
    root = int(2**32 * float(p) ** (1 / 3))
    # The float is off by a unit or so at most.
    root -= 2
    while (root + 1) ** 3 <= p << 96:
        root += 1
    return root


_ROOTS = _fractions(_cube_root, 64)
_START = _fractions(lambda p: isqrt(p << 64), 8)


@functools.cache
def _machine_code() -> Callable[[ByteArray, LongArray, WordArray, WordArray, WordArray], None]:
    # Imported here: tables of few rows do without.
    from privrisk_spark.kernels.machine_code import compiled

    return compiled(_digest_short)


def _digest_short(data: ByteArray, offsets: LongArray, digests: WordArray, roots: WordArray, start: WordArray) -> None:
    """Write the words of the digest of each string of at most :data:`SHORT` bytes; what a longer one gets is void."""
    # 32 bits are cut off after every operation: machine code takes the sum of two words as 64 bits.
    u = np.uint32
    n = len(offsets) - 1
    schedule = np.empty((16, _LANES), dtype=np.uint32)
    state = np.empty((8, _LANES), dtype=np.uint32)
    for first in range(0, n, _LANES):
        lanes = min(_LANES, n - first)
        schedule[:] = 0
        for j in range(8):
            state[j, :] = start[j]
        for lane in range(lanes):
            begin, end = offsets[first + lane], offsets[first + lane + 1]
            length = end - begin
            if length <= SHORT:
                for i in range(length):
                    schedule[i >> 2, lane] |= u(u(data[begin + i]) << u(24 - 8 * (i & 3)))
                schedule[length >> 2, lane] |= u(u(0x80) << u(24 - 8 * (length & 3)))
                schedule[15, lane] = u(8 * length)
        for step in range(64):
            w = schedule[step & 15]
            if step >= 16:
                w2, w7, w15 = schedule[(step - 2) & 15], schedule[(step - 7) & 15], schedule[(step - 15) & 15]
                for i in range(_LANES):
                    x, y = w15[i], w2[i]
                    s0 = u(u(x >> u(7)) | u(x << u(25))) ^ u(u(x >> u(18)) | u(x << u(14))) ^ u(x >> u(3))
                    s1 = u(u(y >> u(17)) | u(y << u(15))) ^ u(u(y >> u(19)) | u(y << u(13))) ^ u(y >> u(10))
                    w[i] = u(u(u(w[i] + s0) + w7[i]) + s1)
            # Instead of moving the eight words by one place, the place where they begin moves.
            a, b, c, d = state[-step & 7], state[(1 - step) & 7], state[(2 - step) & 7], state[(3 - step) & 7]
            e, f, g, h = state[(4 - step) & 7], state[(5 - step) & 7], state[(6 - step) & 7], state[(7 - step) & 7]
            root = roots[step]
            for i in range(_LANES):
                x, y = e[i], a[i]
                s1 = (
                    u(u(x >> u(6)) | u(x << u(26))) ^ u(u(x >> u(11)) | u(x << u(21))) ^ u(u(x >> u(25)) | u(x << u(7)))
                )
                s0 = (
                    u(u(y >> u(2)) | u(y << u(30)))
                    ^ u(u(y >> u(13)) | u(y << u(19)))
                    ^ u(u(y >> u(22)) | u(y << u(10)))
                )
                choice = u((x & f[i]) ^ (u(~x) & g[i]))
                majority = u((y & b[i]) ^ (y & c[i]) ^ (b[i] & c[i]))
                added = u(u(u(u(h[i] + u(s1)) + choice) + root) + w[i])
                d[i] = u(d[i] + added)
                h[i] = u(u(added + u(s0)) + majority)
        for lane in range(lanes):
            for j in range(8):
                digests[first + lane, j] = u(state[j, lane] + start[j])
