"""One step of a walk, backwards: what functions of users are on average among friends, compiled.

``B g = (kept g + Σ g of the friends)/divisor``. A function is a list of the users at whom it is not 0, or a column of
64, as integers of 16 or of 8 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import BoolArray, ByteArray, FloatArray, IntArray, LongArray
from privrisk_spark.machine_code import compiled, fetch

Codes = npt.NDArray[np.uint16]
Sums = npt.NDArray[np.uint32] | npt.NDArray[np.uint16]

WIDTH = 64
"""Functions averaged at once: a user's codes of 16 bits are two lines of a cache, those of 8 bits are one."""

AHEAD = 16
"""Friends whose codes are asked for before it is their turn: of 8, 16 and 32 in a network of 500,000 the best."""

_LINE = 32
"""Codes of 16 bits in a line of the cache."""

TOP, NARROW_TOP = 65535, 255
"""The largest code of 16 bits, and of 8."""

_FLUSH, _NARROW_FLUSH = 65536, 256
"""Codes of 16 bits whose sum is below 2^32, and codes of 8 bits whose sum is below 2^16."""


def wide_codes(n: int) -> Codes:
    """uint16 (n, WIDTH) whose rows begin at lines of the cache."""
    return _lines(n * WIDTH * 2).view(np.uint16).reshape(n, WIDTH)


def narrow_codes(n: int) -> ByteArray:
    """uint8 (n, WIDTH), likewise."""
    return _lines(n * WIDTH).reshape(n, WIDTH)


def _lines(size: int) -> ByteArray:
    raw = np.zeros(size + 64, dtype=np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + size]


class Lists(NamedTuple):
    """Room for a function that is 0 but at a few users; 0 everywhere between two of them.

    Attributes
    ----------
    state : ndarray of float64, shape (n, 2)
        The value at each user, and room for the next one.
    marked : ndarray of bool, shape (n,)
    support : ndarray of int64, shape (n,)
        Users at whom the function may be other than 0; how many is said beside it.
    """

    state: FloatArray
    marked: BoolArray
    support: LongArray


def lists_of(n: int) -> Lists:
    """Room for a list of up to n users."""
    return Lists(np.zeros((n, 2)), np.zeros(n, dtype=np.bool_), np.zeros(n, dtype=np.int64))


KEPT, DIVISOR, MEASURE, TOLD = range(4)
"""Columns of what belongs to a user, side by side in one line of the cache, float64 (n, 4): ``TOLD`` is how many tell
him, and the measure may be any that is not negative where edges do not go both ways."""


@compiled
def fill(lists: Lists, users: LongArray, values: FloatArray) -> None:
    """Put a function into its room."""
    for i in range(len(users)):
        lists.support[i] = users[i]
        lists.state[users[i], 0] = values[i]


@compiled
def clear(lists: Lists, size: int) -> None:
    """Leave the room empty."""
    flat = lists.state.ravel()
    for i in range(size):
        if i + AHEAD < size:
            fetch(flat, 2 * lists.support[i + AHEAD])
        lists.state[lists.support[i], 0] = 0.0


@compiled
def push(indptr: LongArray, indices: IntArray, own: FloatArray, lists: Lists, size: int, centre: float,
         found: FloatArray) -> int:  # fmt: skip
    """One step of a function that is 0 but at a few users, in place; returns at how many it is then.

    The graph is the transposed one: those who are told by each user do not see his value, but those who tell him do.
    What :func:`survey` says of the list is written to ``found``.
    """
    state, marked, support = lists.state, lists.marked, lists.support
    flat, last = state.ravel(), len(indices) - 1
    n = size
    for i in range(size):
        marked[support[i]] = True
    for i in range(size):
        if i + AHEAD < size:
            fetch(indptr, support[i + AHEAD])
        if i + _LISTS_AHEAD < size:
            fetch(indices, indptr[support[i + _LISTS_AHEAD]])
        user = support[i]
        amount = state[user, 0]
        for place in range(indptr[user], indptr[user + 1]):
            later = indices[min(place + AHEAD, last)]
            fetch(flat, 2 * np.int64(later))
            fetch(marked, later)
            other = indices[place]
            if not marked[other]:
                marked[other] = True
                support[n] = other
                n += 1
            state[other, 1] += amount
    _nothing(found)
    whose = own.ravel()
    for i in range(n):
        if i + AHEAD < n:
            fetch(flat, 2 * support[i + AHEAD])
            fetch(whose, 4 * support[i + AHEAD])
        user = support[i]
        value = (own[user, KEPT] * state[user, 0] + state[user, 1]) / own[user, DIVISOR]
        state[user, 0], state[user, 1] = value, 0.0
        marked[user] = False
        _note(own, user, value, centre, found)
    return n


_LISTS_AHEAD = 4
"""Users whose lists of friends are asked for before it is their turn."""


@compiled
def survey(own: FloatArray, lists: Lists, size: int, centre: float, found: FloatArray) -> None:
    """What is known of a list.

    Parameters
    ----------
    own : ndarray of float64, shape (n, 4)
    size : int
        Users in the list.
    found : ndarray of float64, shape (5,)
        Becomes the least and the greatest value, the sum of the measure, and of the measure times the squares of the
        values less the centre, and how many edges the next step visits.
    """
    _nothing(found)
    for i in range(size):
        user = lists.support[i]
        _note(own, user, lists.state[user, 0], centre, found)


@compiled
def _nothing(found: FloatArray) -> None:
    found[:] = 0.0
    found[0], found[1] = np.inf, -np.inf


@compiled
def _note(own: FloatArray, user: int, value: float, centre: float, found: FloatArray) -> None:
    counts = own[user, MEASURE]
    found[0], found[1] = min(found[0], value), max(found[1], value)
    found[2] += counts
    found[3] += counts * (value - centre) ** 2
    found[4] += own[user, TOLD]


@compiled
def encode(lists: Lists, size: int, bottom: float, unit: float, row: Codes) -> None:
    """Write a list as codes ``(value - bottom)/unit``, rounded to the nearest, and that of 0 at all other users."""
    row[:] = np.uint16(min(max(-bottom / unit + 0.5, 0.0), 65535.0))
    flat = lists.state.ravel()
    for i in range(size):
        if i + AHEAD < size:
            fetch(flat, 2 * lists.support[i + AHEAD])
        user = lists.support[i]
        row[user] = np.uint16(min(max((lists.state[user, 0] - bottom) / unit + 0.5, 0.0), 65535.0))


_TILE = 64
"""Users whose codes are turned at once."""


@compiled
def turned(rows: Codes, found: Codes) -> None:
    """Turn codes, a row a function, into a row a user."""
    flat, n = rows.ravel(), len(found)
    for start in range(0, n, _TILE):
        stop = min(start + _TILE, n)
        for c in range(WIDTH):
            # A row is a line or two before another is read, too short for the processor to foresee the next ones.
            for place in range(stop, min(stop + _TILE, n), _LINE):
                fetch(flat, c * n + place)
            for user in range(start, stop):
                found[user, c] = rows[c, user]


@compiled
def pull(
    indptr: LongArray, indices: IntArray, own: FloatArray, column: FloatArray | Codes, wanted: LongArray
) -> FloatArray:
    """One step of a function, given at all users, at some users alone."""
    found = np.empty(len(wanted))
    for i in range(len(wanted)):
        user = wanted[i]
        total = own[user, KEPT] * column[user]
        for place in range(indptr[user], indptr[user + 1]):
            total += column[indices[place]]
        found[i] = total / own[user, DIVISOR]
    return found


@compiled
def meet(
    indptr: LongArray,
    indices: IntArray,
    own: FloatArray,
    lists: Lists,
    wanted: LongArray,
    steps: LongArray,
    weights: FloatArray,
    column: FloatArray | Codes,
) -> tuple[FloatArray, FloatArray, int]:
    """Walk a few steps from some users v, and look up a function where the walks end.

    With ``h = e_v/m_v``, m being a measure with ``m_i B_ij = m_j B_ji``, the function g after j more steps is
    ``(B^j g)(v) = Σ_w m_w (B^j h)(w) g(w)``.

    Parameters
    ----------
    indptr, indices, own
        The graph, whose edges go both ways.
    lists : Lists
        Empty before and after.
    wanted : ndarray of int64, shape (w,)
        Users v.
    steps : ndarray of int64, shape (w,)
        Of each.
    weights : ndarray of float64, shape (most steps,)
        Of the first step, the second ….
    column : ndarray, shape (n,)
        Function g.

    Returns
    -------
    found : ndarray of float64, shape (w,)
        ``Σ_j weights[j - 1] (B^j g)(v)``.
    energy : ndarray of float64, shape (w,)
        ``Σ_w m_w (B^steps h)(w)²``.
    longest : int
        Users in the longest list.
    """
    state, support = lists.state, lists.support
    found, energy = np.zeros(len(wanted)), np.zeros(len(wanted))
    longest, seen = 0, np.zeros(5)
    for i in range(len(wanted)):
        support[0] = wanted[i]
        state[wanted[i], 0] = 1.0 / own[wanted[i], MEASURE]
        size = 1
        for j in range(steps[i]):
            size = push(indptr, indices, own, lists, size, 0.0, seen)
            total = 0.0
            for s in range(size):
                if s + AHEAD < size:
                    fetch(column, support[s + AHEAD])
                user = support[s]
                total += own[user, MEASURE] * state[user, 0] * column[user]
            found[i] += weights[j] * total
        energy[i] = seen[3]
        clear(lists, size)
        longest = max(longest, size)
    return found, energy, longest


class Seen(NamedTuple):
    """What a step saw of the codes of each function.

    Attributes
    ----------
    least, most : ndarray of uint16, shape (WIDTH,)
    first, second : ndarray of float64, shape (WIDTH,)
        Sums of the measure times the codes, and times their squares.
    """

    least: Codes
    most: Codes
    first: FloatArray
    second: FloatArray


def nothing_seen() -> Seen:
    """Room for it."""
    codes, sums = np.zeros((2, WIDTH), np.uint16), np.zeros((2, WIDTH))
    return Seen(codes[0], codes[1], sums[0], sums[1])


@compiled
def step(
    indptr: LongArray,
    indices: IntArray,
    own: FloatArray,
    old: Codes | ByteArray,
    new: Codes,
    sums: Sums,
    shift: FloatArray,
    factor: FloatArray,
    seen: Seen,
) -> None:
    """One step of all functions at all users, rounded to new units.

    Parameters
    ----------
    indptr, indices, own
        The graph.
    old, new : ndarrays, shape (n, WIDTH)
        Codes of 16 or 8 bits, and of 16.
    sums : ndarray of uint32 or uint16, of any shape
        Of the type in which codes of 16 or of 8 bits are added up.
    shift, factor : ndarray of float64, shape (WIDTH,)
        The new code is ``(average of the old ones - shift) factor``, rounded to the nearest.
    seen : Seen
        Becomes what there is of the new codes.
    """
    flat = old.ravel()
    total, part = np.empty(WIDTH, np.float64), np.zeros(WIDTH, sums.dtype)
    codes = np.empty(WIDTH, np.int32)
    w, at_once = np.uint64(WIDTH), _FLUSH if part.itemsize == 4 else _NARROW_FLUSH
    low, high = np.full(WIDTH, TOP, np.int32), np.zeros(WIDTH, np.int32)
    first, second = seen.first, seen.second
    first[:], second[:] = 0.0, 0.0
    last, wide = len(indices) - 1, flat.itemsize > 1
    for user in range(len(indptr) - 1):
        begin, end = indptr[user], indptr[user + 1]
        itself, kept = np.uint64(user) * w, own[user, KEPT]
        for c in range(WIDTH):
            total[c] = kept * flat[itself + np.uint64(c)]
        while begin < end:
            stop = min(begin + at_once, end)
            # Two friends at a time, without signs: the loops become vectors.
            while begin + 1 < stop:
                for place in range(begin + AHEAD, begin + AHEAD + 2):
                    later = np.int64(indices[min(place, last)]) * WIDTH
                    fetch(flat, later)
                    if wide:
                        fetch(flat, later + _LINE)
                one, other = np.uint64(indices[begin]) * w, np.uint64(indices[begin + 1]) * w
                for c in range(WIDTH):
                    part[c] += np.uint32(flat[one + np.uint64(c)]) + np.uint32(flat[other + np.uint64(c)])
                begin += 2
            if begin < stop:
                one = np.uint64(indices[begin]) * w
                for c in range(WIDTH):
                    part[c] += np.uint32(flat[one + np.uint64(c)])
                begin += 1
            for c in range(WIDTH):
                total[c] += part[c]
                part[c] = 0
        # Few arrays in each loop, for the same reason.
        share, counts = 1.0 / own[user, DIVISOR], own[user, MEASURE]
        for c in range(WIDTH):
            total[c] = (total[c] * share - shift[c]) * factor[c] + 0.5
        for c in range(WIDTH):
            code = total[c] if total[c] > 0.0 else 0.0
            codes[c] = np.int32(code if code < 65535.0 else 65535.0)
        for c in range(WIDTH):
            low[c] = codes[c] if codes[c] < low[c] else low[c]
            high[c] = codes[c] if codes[c] > high[c] else high[c]
        for c in range(WIDTH):
            new[user, c] = codes[c]
        for c in range(WIDTH):
            amount = counts * np.float64(codes[c])
            first[c] += amount
            second[c] += amount * np.float64(codes[c])
    seen.least[:], seen.most[:] = low, high


@compiled
def step_alone(
    indptr: LongArray,
    indices: IntArray,
    own: FloatArray,
    old: Codes | ByteArray,
    new: Codes,
    shift: float,
    factor: float,
    found: FloatArray,
) -> None:
    """One step of one function at all users: to the last bit what :func:`step` does to its column.

    Parameters
    ----------
    indptr, indices, own
        The graph.
    old, new : ndarrays, shape (n,)
        Codes of 16 or 8 bits, and of 16.
    found : ndarray of float64, shape (4,)
        Becomes what there is of the new codes, as :class:`Seen` has it.
    """
    low, high, first, second = np.int32(TOP), np.int32(0), 0.0, 0.0
    for user in range(len(indptr) - 1):
        total = np.uint64(0)
        for place in range(indptr[user], indptr[user + 1]):
            total += np.uint64(old[indices[place]])
        share, counts = 1.0 / own[user, DIVISOR], own[user, MEASURE]
        value = own[user, KEPT] * old[user] + np.float64(total)
        value = (value * share - shift) * factor + 0.5
        code = np.int32(min(max(value, 0.0), 65535.0))
        low, high = min(low, code), max(high, code)
        new[user] = code
        amount = counts * np.float64(code)
        first += amount
        second += amount * np.float64(code)
    found[0], found[1], found[2], found[3] = low, high, first, second


@compiled
def narrow(codes: Codes, shift: FloatArray, factor: FloatArray, found: ByteArray) -> None:
    """Codes of 16 bits as codes of 8: ``(code - shift) factor``, rounded to the nearest."""
    for user in range(len(codes)):
        for c in range(WIDTH):
            code = min(max((np.float64(codes[user, c]) - shift[c]) * factor[c] + 0.5, 0.0), 255.0)
            found[user, c] = np.uint8(code)
