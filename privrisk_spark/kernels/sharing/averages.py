"""Diffusion read from the other end: what a function of users is, on average, where information has spread to.

``(K g)(v) = Σ_j K_vj g(j)`` is a series of means over friends, ``Σ_k weights[k] B^k g`` (:mod:`.diffusion`), and needs
no row of K. Two properties of means make it cheap, both proved for every graph:

* All later terms lie between the least and the greatest value of ``B^k g``. Once these are close, the rest of the
  series is their middle, off by at most half their distance times the weights that are left. One more term needs the
  friends of the wanted users alone.
* A mean of rounded values is off by no more than the worst of them. So values are kept as integers of 16 bits between
  the least and the greatest one, whose sums are exact; what they were rounded by is added up as a bound.

A function that is 0 but at a few users is walked from these as long as they are few. Where 16 bits do not keep the
bound that is asked for, the series is added up in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.sharing.diffusion import Leak, Series, expected, rate
from privrisk_spark.kernels.sharing.graph import Graph
from privrisk_spark.machine_code import compiled

Codes = npt.NDArray[np.uint16]

WIDTH = 64
"""Functions averaged at once: a user's codes are two lines of a cache."""

BYTES_OF_A_USER = 4 * WIDTH
"""Of working memory, besides the graph."""

_TOP = 65535
_FLUSH = 65536
"""Codes whose sum is below 2^32."""

_HALF = 0.5001
"""What a code is off by, in units of its scale, with room for the arithmetic in float64 around it."""

_SPARSE = 32
"""A function is walked by lists while a step visits less than one of so many edges."""

_LISTED = 2
"""Steps by lists, whatever they cost, before 16 bits are given up."""

_UP = 2.0**-52


@dataclass(frozen=True, eq=False)
class Functions:
    """Functions of users that are 0 but at a few, and where their averages are wanted.

    Attributes
    ----------
    first : ndarray of int64, shape (b + 1,)
        Function c is not 0 at ``users[first[c]:first[c + 1]]``.
    users : ndarray of int64
        Distinct within a function.
    values : ndarray of float64
    wanted_first : ndarray of int64, shape (b + 1,)
    wanted : ndarray of int64
        Users at whom function c is wanted: ``wanted[wanted_first[c]:wanted_first[c + 1]]``.
    """

    first: LongArray
    users: LongArray
    values: FloatArray
    wanted_first: LongArray
    wanted: LongArray

    @property
    def n(self) -> int:
        """Number of functions."""
        return len(self.first) - 1

    def part(self, rows: LongArray) -> Functions:
        """Some of the functions."""
        first, places = _rows(self.first, rows)
        wanted_first, wanted = _rows(self.wanted_first, rows)
        return Functions(first, self.users[places], self.values[places], wanted_first, self.wanted[wanted])

    def whole(self, n: int) -> FloatArray:
        """float64 (n, b): the functions at all users."""
        found = np.zeros((n, self.n))
        found[self.users, np.repeat(np.arange(self.n), np.diff(self.first))] = self.values
        return found


def _rows(first: LongArray, rows: LongArray) -> tuple[LongArray, LongArray]:
    """Lists of some rows, and the places of their entries."""
    size = first[rows + 1] - first[rows]
    ends = np.cumsum(size)
    total = int(ends[-1]) if len(ends) else 0
    return np.concatenate([[0], ends]), np.arange(total) + np.repeat(first[rows] - (ends - size), size)


@dataclass(frozen=True, eq=False)
class Averages:
    """``(K g)(v)`` at the wanted users.

    Attributes
    ----------
    values : ndarray of float64
        In the order of :attr:`Functions.wanted`.
    error : ndarray of float64, shape (b,)
        Bound on the error of each value of a function, rounding included.
    steps : ndarray of int64, shape (b,)
        Terms of the series; ``-1`` where it was added up in float64.
    """

    values: FloatArray
    error: FloatArray
    steps: LongArray


def averages(graph: Graph, leak: Leak, series: Series, functions: Functions, within: FloatArray) -> Averages:
    """Average functions over where information has spread to.

    Parameters
    ----------
    graph : Graph
    leak : {"laplacian", "stochastic"}
    series : Series
        Of mean ``rate(graph, leak) t``; a ``missing`` above what is asked for makes ``error`` larger.
    functions : Functions
        Each is found by itself: which others are there does not change a bit of it.
    within : ndarray of float64, shape (b,)
        The greatest error each may have. What float64 cannot promise is returned with the error it has.

    Returns
    -------
    Averages
    """
    walked = _Walked.of(graph, leak, series)
    values, error = np.zeros(len(functions.wanted)), np.full(functions.n, np.inf)
    steps = np.full(functions.n, -1, dtype=np.int64)
    # Those that soon reach many users have more steps in common.
    edges = np.zeros(functions.n, dtype=np.int64)
    np.add.at(edges, np.repeat(np.arange(functions.n), np.diff(functions.first)), graph.degree[functions.users])
    order = np.argsort(edges, kind="stable")
    for begin in range(0, functions.n, WIDTH):
        rows = order[begin : begin + WIDTH]
        found = walked.block(functions.part(rows), within[rows])
        values[_rows(functions.wanted_first, rows)[1]], error[rows], steps[rows] = found
    left = np.flatnonzero(error > within)
    for begin in range(0, len(left), _AT_ONCE):
        rows = left[begin : begin + _AT_ONCE]
        some = functions.part(rows)
        spread = expected(graph, leak, series, some.whole(graph.n))
        of = np.repeat(np.arange(len(rows)), np.diff(some.wanted_first))
        _, places = _rows(functions.wanted_first, rows)
        values[places] = spread.values[some.wanted, of]
        error[rows] = spread.error * _largest(some.first, some.values)
        steps[rows] = -1
    return Averages(values, error, steps)


_AT_ONCE = 16
"""Functions added up in float64 at once."""


def _largest(first: LongArray, values: FloatArray) -> FloatArray:
    """float64 (b,): the largest absolute value of each list; 0 of an empty one."""
    found = np.zeros(len(first) - 1)
    np.maximum.at(found, np.repeat(np.arange(len(found)), np.diff(first)), np.abs(values))
    return found


@dataclass(frozen=True, eq=False)
class _Walked:
    """A graph with room for a block of functions: ``B g = (kept g + Σ g of the friends)/divisor``."""

    graph: Graph
    kept: LongArray
    divisor: LongArray
    weights: FloatArray
    left: FloatArray
    """At least the weights of all later terms, of each term; what the weights were rounded by is in ``rounding``."""
    rounding: float
    old: Codes
    new: Codes
    value: FloatArray
    room: FloatArray
    marked: BoolArray
    support: LongArray

    @classmethod
    def of(cls, graph: Graph, leak: Leak, series: Series) -> _Walked:
        degree, n = graph.degree, graph.n
        if leak == "stochastic":
            kept, divisor = (degree == 0).astype(np.int64), np.maximum(degree, 1)
        else:
            q = int(rate(graph, leak))
            kept, divisor = (q - degree, np.full(n, q)) if q else (np.ones(n, np.int64), np.ones(n, np.int64))
        weights = series.weights
        sums = np.array([math.fsum(weights[: k + 1].tolist()) for k in range(len(weights))])
        most = int(degree.max(initial=0))
        rounding = (most + 2 * len(weights) + 16) * (len(weights) + 1) * _UP
        return cls(
            graph,
            kept,
            divisor,
            weights,
            np.maximum(1.0 - sums, 0.0) + 2 * _UP,
            rounding,
            _codes(n),
            _codes(n),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, dtype=np.bool_),
            np.zeros(n, dtype=np.int64),
        )

    def block(self, some: Functions, within: FloatArray) -> tuple[FloatArray, FloatArray, LongArray]:
        """Average up to :data:`WIDTH` functions, as :class:`Averages` has it; the error is infinite where it fails."""
        b, indptr, indices = some.n, self.graph.indptr, self.graph.indices
        budget = max(len(indices) // _SPARSE, 1)
        error, steps = np.full(b, np.inf), np.full(b, -1, dtype=np.int64)
        totals = [np.zeros(int(size)) for size in np.diff(some.wanted_first)]
        wanted = [some.wanted[a:z] for a, z in zip(some.wanted_first, some.wanted_first[1:], strict=False)]
        at, off, spent = np.zeros(WIDTH, np.int64), np.zeros(WIDTH), np.zeros(WIDTH)
        low, scale = np.zeros(WIDTH), np.zeros(WIDTH)
        least, most = np.zeros(WIDTH, np.uint16), np.zeros(WIDTH, np.uint16)
        open_still: list[int] = []
        zeros = np.zeros(WIDTH, np.uint16)
        lists: list[tuple[LongArray, Codes]] = [(self.support[:0].copy(), self.old[:0, 0].copy())] * WIDTH
        for c in range(b):
            users, given = some.users[some.first[c] : some.first[c + 1]], some.values[some.first[c] : some.first[c + 1]]
            size, k = len(users), 0
            self.support[:size], self.value[users] = users, given
            spent[c] = self.rounding * float(np.abs(given).max(initial=0.0))
            while True:
                here = self.support[:size]
                reached = self.value[here]
                totals[c] += self.weights[k] * self.value[wanted[c]]
                zero = [0.0] if size < self.graph.n else []
                bottom = min([*zero, *([float(reached.min())] if size else [])])
                top = max([*zero, *([float(reached.max())] if size else [])])
                end = self._ending(k, bottom, top, 0.0, spent[c], within[c])
                if end is not None:
                    more = end[0] == k + 1
                    if more:
                        sums = np.zeros(len(wanted[c]))
                        _pull(indptr, indices, self.kept, self.divisor, self.value, wanted[c], sums)
                        totals[c] += self.weights[k + 1] * sums
                    totals[c] += end[1]
                    error[c], steps[c] = end[2], end[0]
                    break
                if int(self.graph.degree[here].sum()) > budget:
                    unit = (top - bottom) / _TOP
                    if spent[c] + self.left[k] * _HALF * unit <= within[c]:
                        scale[c], low[c], off[c], at[c] = unit, bottom, _HALF * unit, k
                        least[c], most[c] = 0, _TOP
                        zeros[c] = round(-bottom / unit) if zero else 0
                        lists[c] = (here.copy(), np.rint((reached - bottom) / unit).astype(np.uint16))
                        open_still.append(c)
                        break
                    if k >= _LISTED:
                        break
                size = _push(
                    indptr, indices, self.kept, self.divisor, self.value, self.room, self.marked, self.support, size
                )
                k += 1
            self.value[self.support[:size]] = 0.0
        old, new = self.old, self.new
        if open_still:
            old[:] = zeros
            for c in open_still:
                old[lists[c][0], c] = lists[c][1]
        while True:
            for c in list(open_still):
                k = int(at[c])
                bottom, top = low[c] + scale[c] * float(least[c]), low[c] + scale[c] * float(most[c])
                end = self._ending(k, bottom, top, off[c], spent[c], within[c])
                if end is None and spent[c] + self.left[k] * off[c] <= within[c] and k + 1 < len(self.weights):
                    continue
                open_still.remove(c)
                if end is None:
                    continue
                if end[0] == k + 1:
                    totals[c] += self.weights[k + 1] * self._at(old, c, wanted[c], low[c], scale[c])
                totals[c] += end[1]
                error[c], steps[c] = end[2], end[0]
            if not open_still:
                break
            for c in open_still:
                at[c] += 1
                totals[c] += self.weights[at[c]] * self._at(old, c, wanted[c], low[c], scale[c])
                spent[c] += self.weights[at[c]] * off[c]
            shift, width = least.astype(np.float64), np.maximum(most.astype(np.float64) - least, 1.0)
            least[:], most[:] = _TOP, 0
            _step(indptr, indices, self.kept, self.divisor, old, new, shift, _TOP / width, least, most)
            low += scale * shift
            scale *= width / _TOP
            off += _HALF * scale
            old, new = new, old
        return np.concatenate([np.zeros(0), *totals]), error, steps

    def _ending(
        self, k: int, bottom: float, top: float, off: float, spent: float, within: float
    ) -> tuple[int, float, float] | None:
        """Whether the series may end with term k, or with k + 1 at the wanted users alone.

        Returns
        -------
        tuple of (int, float, float), or None
            Its last term, what stands for those behind it, and the error.
        """
        middle, half = (bottom + top) / 2, (top - bottom) / 2 * (1 + 4 * _UP)
        for last in (k, k + 1):
            if last >= len(self.weights):
                return None
            left = float(self.left[last])
            error = (spent + (self.weights[last] * off if last > k else 0.0) + left * (half + off)) * (1 + 16 * _UP)
            if error <= within:
                return last, left * middle, error
        return None

    def _at(self, old: Codes, c: int, wanted: LongArray, low: float, scale: float) -> FloatArray:
        """The next term of a function at the wanted users."""
        found = np.zeros(len(wanted))
        _pull_codes(self.graph.indptr, self.graph.indices, self.kept, self.divisor, old, c, wanted, found)
        return low + scale * found


def _codes(n: int) -> Codes:
    """uint16 (n, WIDTH) whose rows begin at lines of the cache."""
    raw = np.zeros(n * WIDTH * 2 + 64, dtype=np.uint8)
    begin = -raw.ctypes.data % 64
    return raw[begin : begin + n * WIDTH * 2].view(np.uint16).reshape(n, WIDTH)


@compiled
def _push(
    indptr: LongArray,
    indices: IntArray,
    kept: LongArray,
    divisor: LongArray,
    value: FloatArray,
    room: FloatArray,
    marked: BoolArray,
    support: LongArray,
    size: int,
) -> int:
    """One step of a function that is 0 but at a few users, in place; returns at how many it is then."""
    n = size
    for i in range(size):
        marked[support[i]] = True
    for i in range(size):
        user = support[i]
        amount = value[user]
        for place in range(indptr[user], indptr[user + 1]):
            friend = indices[place]
            if not marked[friend]:
                marked[friend] = True
                support[n] = friend
                n += 1
            room[friend] += amount
    for i in range(n):
        user = support[i]
        value[user] = (kept[user] * value[user] + room[user]) / divisor[user]
        room[user] = 0.0
        marked[user] = False
    return n


@compiled
def _pull(
    indptr: LongArray,
    indices: IntArray,
    kept: LongArray,
    divisor: LongArray,
    value: FloatArray,
    wanted: LongArray,
    found: FloatArray,
) -> None:
    """One step of a function at some users alone."""
    for i in range(len(wanted)):
        user = wanted[i]
        total = kept[user] * value[user]
        for place in range(indptr[user], indptr[user + 1]):
            total += value[indices[place]]
        found[i] = total / divisor[user]


@compiled
def _pull_codes(
    indptr: LongArray,
    indices: IntArray,
    kept: LongArray,
    divisor: LongArray,
    codes: Codes,
    c: int,
    wanted: LongArray,
    found: FloatArray,
) -> None:
    """The same of a column of codes, in their units."""
    for i in range(len(wanted)):
        user = wanted[i]
        total = kept[user] * np.int64(codes[user, c])
        for place in range(indptr[user], indptr[user + 1]):
            total += np.int64(codes[indices[place], c])
        found[i] = total / divisor[user]


@compiled
def _step(
    indptr: LongArray,
    indices: IntArray,
    kept: LongArray,
    divisor: LongArray,
    old: Codes,
    new: Codes,
    shift: FloatArray,
    factor: FloatArray,
    least: Codes,
    most: Codes,
) -> None:
    """One step of all functions at all users, rounded to new units, with the least and the greatest code of each."""
    flat = old.ravel()
    part, total = np.empty(WIDTH, np.uint32), np.empty(WIDTH, np.float64)
    w = np.uint64(WIDTH)
    for user in range(len(indptr) - 1):
        begin, end = indptr[user], indptr[user + 1]
        own = np.uint64(user) * w
        for c in range(WIDTH):
            total[c] = kept[user] * flat[own + np.uint64(c)]
        while begin < end:
            stop = min(begin + _FLUSH, end)
            for c in range(WIDTH):
                part[c] = 0
            # Two friends at a time, without signs: the loops become vectors.
            while begin + 1 < stop:
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
        for c in range(WIDTH):
            code = np.uint16(min(max((total[c] / divisor[user] - shift[c]) * factor[c] + 0.5, 0.0), 65535.0))
            new[user, c] = code
            least[c] = min(least[c], code)
            most[c] = max(most[c], code)
