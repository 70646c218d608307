"""How far what v sees reaches those whom u trusts more or less than others: ``Σ_j K_vj g_u(j)`` of pairs, in tasks.

``g_u(j) = f(T_uj) - f(0)`` is 0 but for whom u names, so all pairs of u are of one function. It is averaged where
information from v has spread to: on the whole graph, which a task holds; on the people around u; or by joins of Spark
(:mod:`.spreading`). Each says by how much it may be wrong.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from privrisk_spark.engine.batches import PARTS, Batches, Scratch, part_name, report
from privrisk_spark.extensions.network.kernels.averages import Functions, averages
from privrisk_spark.extensions.network.kernels.diffusion import (
    SQUARED_FROM,
    SQUARED_USERS,
    ego_average,
    ego_spread,
    rate,
    squared,
)
from privrisk_spark.extensions.network.kernels.trust import Exposure
from privrisk_spark.extensions.network.planning import Computation, Spreading
from privrisk_spark.extensions.network.results import Spread
from privrisk_spark.extensions.network.stages.deciding import Ground
from privrisk_spark.extensions.network.stages.network import StoredNetwork
from privrisk_spark.extensions.network.stages.trusting import whole_graph
from privrisk_spark.extensions.network.stages.user_pairs import unpacked
from privrisk_spark.kernels.arrays import FloatArray, LongArray, WordArray
from privrisk_spark.storage.part_files import map_array, write_array
from privrisk_spark.storage.parts import PartDirectory

PAIRS_OF_A_TASK, LEAST_TASKS = 2**16, 16
"""Pairs whose reach is found by a task, about, and tasks if there are few pairs; does not change a result."""


@dataclass(frozen=True)
class StoredReach:
    """``Σ_j K_vj g_u(j)`` of every pair in the scratch directory, and by how much it may be wrong.

    Attributes
    ----------
    names : tuple of str
        Of each slice of the pairs: float64 (n, 2).
    offsets : tuple of int
        Number of the first pair of each slice, and the number of pairs.
    computation : Spread
        How it was found.
    share_open : float
        Greatest error of a pair, as a share of the largest difference of f(T) from f(0) of its u.
    """

    directory: PartDirectory
    names: tuple[str, ...]
    offsets: tuple[int, ...]
    computation: Spread
    share_open: float

    def of(self, numbers: LongArray) -> tuple[FloatArray, FloatArray]:
        """Return value and error of pairs by their numbers."""
        found = np.empty((len(numbers), 2))
        of = np.searchsorted(np.array(self.offsets), numbers, side="right") - 1
        for piece in np.unique(of).tolist():
            here = of == piece
            found[here] = _mapped(self.directory, self.names[piece])[numbers[here] - self.offsets[piece]]
        return found[:, 0], found[:, 1]


@functools.lru_cache(maxsize=4)
def _mapped(directory: PartDirectory, name: str) -> FloatArray:
    return map_array(directory, name)


@dataclass(frozen=True, eq=False)
class Surplus:
    """``g_u`` of the users of some pairs.

    Attributes
    ----------
    users : ndarray of int64, shape (m,)
        Distinct users u.
    of : ndarray of int64, shape (n,)
        Which of them shows, of each pair.
    first : ndarray of int64, shape (m + 1,)
        Whom user i names is ``whom[first[i]:first[i + 1]]``.
    whom : ndarray of int64
    values : ndarray of float64
        What ``f(T)`` is above, or below, that of a stranger.
    """

    users: LongArray
    of: LongArray
    first: LongArray
    whom: LongArray
    values: FloatArray

    @classmethod
    def of_pairs(cls, table: StoredNetwork, exposure: Exposure, u: LongArray) -> Surplus:
        """What the users who show in some pairs say of others; pairs in the order of the users."""
        users, of = np.unique(u, return_inverse=True)
        first, whom, values = table.load().valued(users)
        return cls(users, of, first, whom, exposure.surplus(values))

    @property
    def largest(self) -> FloatArray:
        """Largest absolute value of each, float64 (m,); 0 of who names nobody."""
        found = np.zeros(len(self.users))
        np.maximum.at(found, np.repeat(np.arange(len(found)), np.diff(self.first)), np.abs(self.values))
        return found


Reach = Callable[[Surplus, LongArray], tuple[FloatArray, FloatArray]]
"""Finds value and error of pairs, by what is said of their u and by their v."""


def collect_reach(
    scratch: Scratch,
    ground: Ground,
    table: StoredNetwork,
    exposure: Exposure,
    reach: Reach,
    *,
    computation: Computation,
    radius: int | None = None,
) -> StoredReach:
    """Find the reach of every pair, in tasks.

    Parameters
    ----------
    table : StoredNetwork
        Stated trust, with values.
    reach : Reach
        Small, as it goes to every task.
    computation, radius
        What it is, to be told.
    """
    directory, pairs = scratch.directory("reach"), ground.pairs
    slices = pairs.slices
    tasks = max(1, min(len(slices), max(LEAST_TASKS, -(-pairs.n // PAIRS_OF_A_TASK))))
    cuts = np.linspace(0, len(slices), tasks + 1).astype(np.int64).tolist()

    def fill(task: int) -> Iterator[pa.Table]:
        some = range(cuts[task], cuts[task + 1])
        words = [pairs.words(slices[number]) for number in some]
        u, v = unpacked(np.concatenate([np.zeros(0, dtype=np.uint64), *words]))
        surplus = Surplus.of_pairs(table, exposure, u)
        found = np.column_stack(reach(surplus, v))
        largest = surplus.largest[surplus.of]
        begin, error = 0, float(found[:, 1].max(initial=0.0))
        share = float((found[largest > 0, 1] / largest[largest > 0]).max(initial=0.0))
        for number, of in zip(some, words, strict=True):
            part = part_name("npy")
            write_array(found[begin : begin + len(of)], directory, part)
            begin += len(of)
            yield report(part, {"slice": number, "pairs": len(of), "error": error, "share": share})

    parts = scratch.collect_parts(Batches.of_parts(scratch.spark, range(tasks), fill, PARTS)) if slices else []
    parts.sort(key=lambda part: int(part["slice"]))
    ends = np.cumsum([0, *(int(part["pairs"]) for part in parts)]).tolist()
    told = Spread(computation, max((float(part["error"]) for part in parts), default=0.0), radius)
    share_open = max((float(part["share"]) for part in parts), default=0.0)
    return StoredReach(directory, tuple(part["name"] for part in parts), tuple(ends), told, share_open)


@dataclass(frozen=True)
class OnWholeGraph:
    """Finds it on the whole graph."""

    network: StoredNetwork
    spreading: Spreading

    def __call__(self, surplus: Surplus, v: LongArray) -> tuple[FloatArray, FloatArray]:
        """Find value and error of pairs."""
        graph, asked = whole_graph(self.network), self.spreading
        if graph.n <= SQUARED_USERS and asked.mean(rate(graph, asked.leak)) > SQUARED_FROM:
            spread = squared(graph, asked.leak, asked.time, asked.steps)
            given = np.zeros((graph.n, len(surplus.users)))
            given[surplus.whom, np.repeat(np.arange(len(surplus.users)), np.diff(surplus.first))] = surplus.values
            return (spread.values @ given)[v, surplus.of], spread.error * surplus.largest[surplus.of]
        series = asked.series(rate(graph, asked.leak))
        wanted = np.concatenate([[0], np.cumsum(np.bincount(surplus.of, minlength=len(surplus.users)))])
        functions = Functions(surplus.first, surplus.whom, surplus.values, wanted.astype(np.int64), v)
        found = averages(graph, asked.leak, series, functions, asked.error * surplus.largest)
        return found.values, found.error[surplus.of]


@dataclass(frozen=True)
class OnEgoNetworks:
    """Finds it among the people around u, or around v if v is far from u; what leaves them is taken for the worst."""

    network: StoredNetwork
    spreading: Spreading
    radius: int

    def __call__(self, surplus: Surplus, v: LongArray) -> tuple[FloatArray, FloatArray]:
        """Find value and error of pairs."""
        network, asked = self.network.load(), self.spreading
        largest = surplus.largest
        values, error = np.zeros(len(v)), largest[surplus.of]
        cuts = np.searchsorted(surplus.of, np.arange(len(surplus.users) + 1))
        for i in np.flatnonzero(largest > 0).tolist():
            ball = network.ball(int(surplus.users[i]), self.radius)
            here = np.arange(cuts[i], cuts[i + 1])
            place = np.searchsorted(ball, v[here])
            inside = ball[np.minimum(place, len(ball) - 1)] == v[here]
            function = np.zeros(len(ball))
            whom, given = (of[surplus.first[i] : surplus.first[i + 1]] for of in (surplus.whom, surplus.values))
            at = np.minimum(np.searchsorted(ball, whom), len(ball) - 1)
            near = ball[at] == whom
            function[at[near]] = given[near]
            degrees = network.degrees(ball)
            rate_of = float(degrees.max(initial=0)) if asked.leak == "laplacian" else 1.0
            series = asked.series(rate_of)
            values[here[inside]], error[here[inside]] = ego_average(
                network.within(ball),
                degrees,
                asked.leak,
                rate_of,
                series,
                function,
                place[inside],
                largest=float(largest[i]),
            )
        far = np.flatnonzero(error > asked.error * largest[surplus.of])
        for user in np.unique(v[far]).tolist():
            self._around(user, surplus, far[v[far] == user], values, error)
        return values, error

    def _around(self, user: int, surplus: Surplus, pairs: LongArray, values: FloatArray, error: FloatArray) -> None:
        """Find value and error of pairs among the people around their v, and keep those of the smaller error."""
        network, asked = self.network.load(), self.spreading
        ball = network.ball(user, self.radius)
        degrees = network.degrees(ball)
        rate_of = float(degrees.max(initial=0)) if asked.leak == "laplacian" else 1.0
        place = int(np.searchsorted(ball, user))
        found = ego_spread(network.within(ball), degrees, asked.leak, rate_of, asked.series(rate_of), place)
        for pair in pairs.tolist():
            i = surplus.of[pair]
            whom, given = (of[surplus.first[i] : surplus.first[i + 1]] for of in (surplus.whom, surplus.values))
            at = np.minimum(np.searchsorted(ball, whom), len(ball) - 1)
            reached = np.where(ball[at] == whom, found.values[at, 0], 0.0)
            here = (found.error + 1e-15 * (len(whom) + 2)) * float(np.abs(given).max(initial=0.0))
            if here < error[pair]:
                values[pair], error[pair] = reached @ given, here


@dataclass(frozen=True)
class FromStoredSpread:
    """Finds it in what has been spread before.

    Attributes
    ----------
    spread : StoredNetwork
        ``K_vj`` from v to j, by default 0, and none above the exact one.
    missing : StoredNetwork
        From v to v: what of the sum of ``K_v·`` is missing.
    """

    spread: StoredNetwork
    missing: StoredNetwork

    def __call__(self, surplus: Surplus, v: LongArray) -> tuple[FloatArray, FloatArray]:
        """Find value and error of pairs."""
        sizes = np.diff(surplus.first)[surplus.of]
        pair = np.repeat(np.arange(len(v)), sizes)
        places = surplus.first[:-1][surplus.of]
        at = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(places, sizes)
        reached = self.spread.load().value(v[pair], surplus.whom[at], otherwise=0.0)
        missing = self.missing.load().value(v, v, otherwise=1.0)
        # Parts of one and sums of a few of them are rounded.
        values: FloatArray = np.bincount(pair, reached * surplus.values[at], minlength=len(v)).astype(np.float64)
        return values, (missing + 1e-15 * (sizes + 2)) * surplus.largest[surplus.of]


def needed(table: StoredNetwork, exposure: Exposure, words: WordArray) -> tuple[LongArray, LongArray]:
    """Return the distinct (v, j) of some pairs (u, v) whose u names j."""
    u, v = unpacked(words)
    surplus = Surplus.of_pairs(table, exposure, u)
    sizes = np.diff(surplus.first)[surplus.of]
    starts = np.repeat(v, sizes)
    at = np.arange(len(starts)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    ends = surplus.whom[at + np.repeat(surplus.first[:-1][surplus.of], sizes)]
    return unpacked(np.unique((starts.astype(np.uint64) << np.uint64(32)) | ends.astype(np.uint64)))
