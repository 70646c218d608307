"""Diffusion read from the other end: what a function of users is, on average, where information has spread to.

``(K g)(v) = Σ_j K_vj g(j)`` is a series of means over friends, ``Σ_k weights[k] B^k g`` (:mod:`.diffusion`), and needs
no row of K. Three properties of means make it cheap, all proved:

* All later terms lie between the least and the greatest value of ``B^k g``. Once these are close, the rest of the
  series is their middle, off by at most half their distance times the weights that are left. One more term needs the
  friends of the wanted users alone.
* Where edges go both ways, there is a measure m with ``m_i B_ij = m_j B_ji``: the number of friends, or 1 for each.
  So ``(B^(j+k) g)(v) = <B^j h, B^k g>`` with ``h = e_v/m_v`` and ``<x, y> = Σ m x y``: two more terms need a short walk
  from v. B makes no norm larger, nor moves a constant c, so that by Cauchy and Schwarz all terms behind these are off
  from c by at most ``|B^j h| |B^k g - c|``; c is the mean of g.
* A mean of rounded values is off by no more than the worst of them. So values are kept as integers of 16 bits between
  the least and the greatest one, or of 8 where that does, whose sums are exact; what they were rounded by is added up
  as a bound.

A function that is 0 but at a few users is walked from these as long as they are few. Where 16 bits do not keep the
bound that is asked for, the series is added up in float64.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privrisk_spark.extensions.network.kernels.columns import HALF, Columns, Room
from privrisk_spark.extensions.network.kernels.diffusion import Leak, Series, expected, rate
from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.extensions.network.kernels.walking import (
    DIVISOR,
    KEPT,
    MEASURE,
    TOLD,
    TOP,
    WIDTH,
    Codes,
    Lists,
    clear,
    encode,
    fill,
    lists_of,
    meet,
    pull,
    push,
    survey,
)
from privrisk_spark.kernels.arrays import FloatArray, LongArray

_SPARSE, _LONG = 16, 2**21
"""A function is walked by lists while a step visits less than one of so many edges; if these are more than so many, and
their users no longer fit the caches, while it visits less than half as many."""

_LISTED = 2
"""Steps by lists, whatever they cost, before 16 bits are given up."""

_MET, _MET_TOGETHER = 128, 64
"""A walk from a wanted user visits at most one of so many edges, and those of a function together."""

_GUESSED = 2.0
"""How many times the error is guessed to be when it is worth to find it."""

_NARROW = 0.5
"""Share of the error that may be spent once codes of 8 bits are used."""

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
    leak : {"laplacian", "stochastic"}
    series : Series
        Of mean ``rate(graph, leak) t``; a ``missing`` above what is asked for makes ``error`` larger.
    functions : Functions
        Each is found by itself: which others are there does not change a bit of it.
    within : ndarray of float64, shape (b,)
        The greatest error each may have. What float64 cannot promise is returned with the error it has.
    """
    walked = _Walked.of(graph, leak, series)
    values, error = np.zeros(len(functions.wanted)), np.full(functions.n, np.inf)
    steps = np.full(functions.n, -1, dtype=np.int64)
    # Those that soon reach many users have more steps in common.
    edges = np.zeros(functions.n, dtype=np.int64)
    np.add.at(
        edges, np.repeat(np.arange(functions.n), np.diff(functions.first)), graph.transposed.degree[functions.users]
    )
    order = np.argsort(edges, kind="stable")
    for begin in range(0, functions.n, WIDTH):
        rows = order[begin : begin + WIDTH]
        found = walked.block(functions.part(rows), within[rows])
        values[_rows(functions.wanted_first, rows)[1]], error[rows], steps[rows] = found
    left = np.flatnonzero(error > within)
    at_once = max(1, min(_AT_ONCE, _VALUES // max(graph.n, 1)))
    for begin in range(0, len(left), at_once):
        rows = left[begin : begin + at_once]
        some = functions.part(rows)
        spread = expected(graph, leak, series, some.whole(graph.n))
        of = np.repeat(np.arange(len(rows)), np.diff(some.wanted_first))
        _, places = _rows(functions.wanted_first, rows)
        values[places] = spread.values[some.wanted, of]
        error[rows] = spread.error * _largest(some.first, some.values)
        steps[rows] = -1
    return Averages(values, error, steps)


_AT_ONCE, _VALUES = 16, 2**24
"""Functions added up in float64 at once, and at most so many of their values; does not change a result."""


def _largest(first: LongArray, values: FloatArray) -> FloatArray:
    """float64 (b,): the largest absolute value of each list; 0 of an empty one."""
    found = np.zeros(len(first) - 1)
    np.maximum.at(found, np.repeat(np.arange(len(found)), np.diff(first)), np.abs(values))
    return found


@dataclass(eq=False)
class _Near:
    """Walks from the wanted users of a function."""

    steps: LongArray
    guess: FloatArray
    """About ``|B^steps h|`` of each, where the measure of all users together is 1."""
    size: FloatArray | None = None
    """At least that, once it is known."""


@dataclass(eq=False)
class _Function:
    """One function, and what of its series is added up."""

    users: LongArray
    values: FloatArray
    wanted: LongArray
    within: float
    centre: float
    """Its mean by the measure."""
    largest: float
    near: _Near | None
    totals: FloatArray
    spent: float
    """What is added up is off by, at most."""
    error: float = np.inf
    steps: int = -1


@dataclass(frozen=True, eq=False)
class _Walked:
    """A graph with room for a block of functions: ``B g = (kept g + Σ g of the friends)/divisor``."""

    graph: Graph
    own: FloatArray
    """Kept, divisor and measure of each user, as :mod:`.walking` has them."""
    mass: float
    weights: FloatArray
    left: FloatArray
    """At least the weights of all later terms, of each term; what the weights were rounded by is in ``rounding``."""
    rounding: float
    room: Room
    listed: Lists
    met: Lists

    @classmethod
    def of(cls, graph: Graph, leak: Leak, series: Series) -> _Walked:
        degree, n = graph.degree, graph.n
        own = np.zeros((n, 4))
        if leak == "stochastic":
            own[:, KEPT], own[:, DIVISOR] = degree == 0, np.maximum(degree, 1)
            own[:, MEASURE] = own[:, DIVISOR]
        else:
            q = rate(graph, leak)
            own[:, KEPT], own[:, DIVISOR], own[:, MEASURE] = (q - degree if q else 1.0), q or 1.0, 1.0
        own[:, TOLD] = graph.transposed.degree
        weights = series.weights
        sums = np.array([math.fsum(weights[: k + 1].tolist()) for k in range(len(weights))])
        most = int(degree.max(initial=0))
        return cls(
            graph,
            own,
            float(own[:, MEASURE].sum()),
            weights,
            np.maximum(1.0 - sums, 0.0) + 2 * _UP,
            (most + 2 * len(weights) + 16) * (len(weights) + 1) * _UP,
            Room.of(n),
            lists_of(n),
            lists_of(n),
        )

    def block(self, some: Functions, within: FloatArray) -> tuple[FloatArray, FloatArray, LongArray]:
        """Average up to :data:`WIDTH` functions, as :class:`Averages` has it; the error is infinite where it fails."""
        columns = Columns(self.graph, self.own, self.mass, self.room)
        functions = [self._function(some, c, float(within[c])) for c in range(some.n)]
        opened = [c for c, one in enumerate(functions) if self._by_lists(one, columns, c)]
        if opened:
            columns.begin()
            self._by_codes(functions, columns, opened)
        totals = np.concatenate([np.zeros(0), *(one.totals for one in functions)])
        return totals, np.array([one.error for one in functions]), np.array([one.steps for one in functions], np.int64)

    def _function(self, some: Functions, c: int, within: float) -> _Function:
        here, there = slice(*some.first[c : c + 2].tolist()), slice(*some.wanted_first[c : c + 2].tolist())
        users, values, wanted = some.users[here], some.values[here], some.wanted[there]
        largest = float(np.abs(values).max(initial=0.0))
        centre = float((self.own[users, MEASURE] * values).sum()) / self.mass if self.mass else 0.0
        totals = np.zeros(len(wanted))
        return _Function(users, values, wanted, within, centre, largest, None, totals, self.rounding * largest)

    def _by_lists(self, one: _Function, columns: Columns, c: int) -> bool:
        """Walk a function by lists while they are short; whether it then goes on as codes."""
        graph, back, lists = self.graph, self.graph.transposed, self.listed
        sparse = min(len(graph.indices) // _SPARSE, max(len(graph.indices) // (2 * _SPARSE), _LONG))
        size, k, coded, seen = len(one.users), 0, False, np.zeros(5)
        fill(lists, one.users, one.values)
        survey(self.own, lists, size, one.centre, seen)
        while True:
            value = lists.state[:, 0]
            one.totals += self.weights[k] * value[one.wanted]
            bottom, top, counted, square, edges = seen.tolist()
            if size < graph.n:
                bottom, top = min(bottom, 0.0), max(top, 0.0)
            end = self._ending(one, k, bottom, top, 0.0)
            if end is not None:
                if end[0] > k:
                    one.totals += self.weights[k + 1] * pull(graph.indptr, graph.indices, self.own, value, one.wanted)
                one.totals += end[1]
                one.steps, one.error = end[0], end[2]
                break
            if edges > max(sparse, 1):
                one.near = self._near(one)
                square += max(self.mass - counted, 0.0) * one.centre**2
                norm = math.sqrt(square / self.mass) * (1 + (graph.n + 64) * _UP)
                if self._meeting(one, k, norm, 0.0, value, 0.0, 1.0):
                    break
                unit = (top - bottom) / TOP
                if one.spent + self.left[k] * HALF * unit <= one.within:
                    columns.put(c, at=k, bottom=bottom, unit=unit, norm=norm, centre=one.centre)
                    encode(lists, size, bottom, unit, columns.rows[c])
                    coded = True
                    break
                if k >= _LISTED:
                    break
            size = push(back.indptr, back.indices, self.own, lists, size, one.centre, seen)
            k += 1
        clear(lists, size)
        return coded

    def _by_codes(self, functions: list[_Function], columns: Columns, opened: list[int]) -> None:
        """Walk functions by codes until each has ended, or cannot keep its error."""
        while True:
            for c in list(opened):
                one, k, off = functions[c], int(columns.at[c]), float(columns.off[c])
                end = self._ending(one, k, *columns.range(c), off)
                if end is not None:
                    if end[0] > k:
                        one.totals += self.weights[k + 1] * self._next(columns, c, one.wanted)
                    one.totals += end[1]
                    one.steps, one.error = end[0], end[2]
                elif (
                    not self._meeting(one, k, float(columns.norm[c]), off, columns.codes(c), *columns.reading(c))
                    and one.spent + self.left[k] * off <= one.within
                    and k + 1 < len(self.weights)
                ):
                    continue
                opened.remove(c)
            if not opened:
                return
            for c in opened:
                one = functions[c]
                weight = float(self.weights[columns.at[c] + 1])
                one.totals += weight * self._next(columns, c, one.wanted)
                one.spent += weight * float(columns.off[c])
            off_in_8_bits, affordable = columns.narrowed_off(), np.zeros(WIDTH, dtype=np.bool_)
            for c in opened:
                one = functions[c]
                later = float(self.left[columns.at[c] + 1] * off_in_8_bits[c])
                affordable[c] = one.spent + later <= _NARROW * one.within
            columns.step(opened, affordable)

    def _ending(self, one: _Function, k: int, bottom: float, top: float, off: float) -> tuple[int, float, float] | None:
        """Whether the series may end with term k, or with k + 1 at the wanted users alone, by the range of term k.

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
            spent = one.spent + (float(self.weights[last]) * off if last > k else 0.0)
            error = (spent + left * (half + off)) * (1 + 16 * _UP)
            if error <= one.within:
                return last, left * middle, error
        return None

    def _near(self, one: _Function) -> _Near | None:
        """Walks of one or two steps from the wanted users, if edges go both ways and they are short."""
        graph, edges = self.graph, len(self.graph.indices)
        degree = graph.degree[one.wanted]
        if graph.directed or not len(one.wanted) or int(degree.sum()) > max(edges // _MET_TOGETHER, 1):
            return None
        first, places = _rows(graph.indptr, one.wanted)
        ends = np.concatenate([[0], np.cumsum(graph.degree[graph.indices[places]])])
        visited = degree + np.diff(ends[first])
        steps = np.where(visited <= max(edges // _MET, 1), 2, 1)
        cost = np.where(steps == 2, visited, degree)
        if int(cost.sum()) > max(edges // _MET_TOGETHER, 1):
            return None
        return _Near(steps, np.sqrt(self.mass / np.maximum(visited, 1)))

    def _meeting(
        self, one: _Function, k: int, norm: float, off: float, column: FloatArray | Codes, low: float, scale: float
    ) -> bool:
        """End the series a few terms behind k, by walks from the wanted users, if that keeps the error; whether it did.

        Term k is ``low + scale column``, but for ``off``, and the norm that of the coded values less the centre.
        """
        near = one.near
        later = self.weights[k + 1 : k + 3]
        # Terms behind the last one must be at least as many steps behind term k as the walks have.
        if near is None or len(later) < max(int(near.steps.max()) - 1, 1):
            return False
        steps = np.minimum(near.steps, len(later))
        left, weight = self.left[k + steps], np.cumsum(later)[steps - 1]

        def error_of(size: FloatArray) -> float:
            return float((one.spent + weight * off + left * (size * norm + off)).max())

        if error_of(near.guess if near.size is None else near.size) > one.within * (
            _GUESSED if near.size is None else 1
        ):
            return False
        graph = self.graph
        found, energy, longest = meet(graph.indptr, graph.indices, self.own, self.met, one.wanted, steps, later, column)
        rounding = (longest + 4 * int(graph.degree.max()) + 64) * 3 * _UP
        if near.size is None:
            # A walk that is cut to fewer steps has no smaller norm.
            near.size = np.sqrt(self.mass * energy) * (1 + rounding)
        error = (error_of(near.size) + 2 * rounding * one.largest) * (1 + 16 * _UP)
        if error > one.within:
            return False
        one.totals += weight * low + scale * found + left * one.centre
        one.steps, one.error = k + int(steps.max()), error
        return True

    def _next(self, columns: Columns, c: int, wanted: LongArray) -> FloatArray:
        """The next term of a function at the wanted users."""
        low, scale = columns.reading(c)
        return low + scale * pull(self.graph.indptr, self.graph.indices, self.own, columns.codes(c), wanted)
