"""Who is whose friend: a graph as sorted lists of friends, and what two users have in common.

In a directed graph an edge (i, j) says that i tells j: j is a friend of i, and i is none of j unless he is told so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.machine_code import compiled

_GALLOP = 8
"""How many times longer the other list must be for its entries to be searched instead of read through."""


@dataclass(frozen=True, eq=False)
class Graph:
    """A graph without loops and parallel edges.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n + 1,)
        Friends of user i are ``indices[indptr[i]:indptr[i + 1]]``.
    indices : ndarray of int32, shape (2 n_edges,)
        Users in ``[0, n)``, ascending within each list.
    directed : bool
        Whether j may be in the list of i where i is not in that of j.
    """

    indptr: LongArray
    indices: IntArray
    directed: bool = False

    @classmethod
    def of_edges(cls, n: int, u: IntArray, v: IntArray, *, directed: bool = False) -> Graph:
        """From edges, each named once or more, in any order; loops are dropped.

        Parameters
        ----------
        n : int
            Users, below 2^31.
        u, v : ndarray of int32, shape (m,)
            Ends, in ``[0, n)``.
        directed : bool
            Whether u tells v alone; else each edge goes both ways.

        Raises
        ------
        InputError
            If an end is no user.
        """
        if len(u) and (min(int(u.min()), int(v.min())) < 0 or max(int(u.max()), int(v.max())) >= n):
            raise InputError(f"An edge ends at no user: users are numbered from 0 to {n - 1}.")
        apart = u != v
        left, right = u[apart], v[apart]
        if not directed:
            left, right = np.concatenate([left, right]), np.concatenate([right, left])
        found = scipy.sparse.coo_array((np.ones(len(left), dtype=np.bool_), (left, right)), shape=(n, n)).tocsr()
        found.sum_duplicates()
        return cls(found.indptr.astype(np.int64), found.indices.astype(np.int32), directed)

    @property
    def n(self) -> int:
        """Number of users."""
        return len(self.indptr) - 1

    @cached_property
    def degree(self) -> LongArray:
        """int64 (n,): number of friends."""
        return np.diff(self.indptr)

    @cached_property
    def transposed(self) -> Graph:
        """Every edge the other way: whose friend each user is. Itself where edges go both ways."""
        if not self.directed:
            return self
        ones = np.ones(len(self.indices), dtype=np.bool_)
        links = scipy.sparse.csr_array((ones, self.indices, self.indptr), shape=(self.n, self.n)).tocsc()
        return Graph(links.indptr.astype(np.int64), links.indices.astype(np.int32), directed=True)

    def ball(self, user: int, radius: int) -> IntArray:
        """Users at most ``radius`` steps away from a user; int32, ascending."""
        inside = np.zeros(self.n, dtype=np.bool_)
        inside[user] = True
        wave = np.array([user], dtype=np.int32)
        for _ in range(radius):
            wave = np.unique(self.indices[_places(self.indptr, wave)])
            wave = wave[~inside[wave]]
            if not len(wave):
                break
            inside[wave] = True
        return np.flatnonzero(inside).astype(np.int32)

    def within(self, users: IntArray) -> Graph:
        """Friendships among some users, numbered by their places.

        Parameters
        ----------
        users : ndarray of int32, shape (m,)
            Ascending.
        """
        place = np.full(self.n, -1, dtype=np.int32)
        place[users] = np.arange(len(users), dtype=np.int32)
        ends = place[self.indices[_places(self.indptr, users)]]
        owner = np.repeat(np.arange(len(users)), self.degree[users])
        there = ends >= 0
        size = np.bincount(owner[there], minlength=len(users))
        return Graph(np.concatenate([[0], np.cumsum(size)]).astype(np.int64), ends[there], self.directed)

    def summed(self, values: FloatArray) -> FloatArray:
        """Sum of each user's friends' values, from the first friend to the last.

        Parameters
        ----------
        values : ndarray of float64, shape (n, b)

        Returns
        -------
        ndarray of float64, shape (n, b)
        """
        found = np.zeros_like(values)
        _sum_friends(self.indptr, self.indices, np.ascontiguousarray(values), found)
        return found

    def common_friends(self, left: IntArray, right: IntArray) -> LongArray:
        """Count common friends ``n_ij``: friends of i of whom j is a friend.

        Parameters
        ----------
        left, right : ndarray of int32, shape (n_pairs,)

        Returns
        -------
        ndarray of int64, shape (n_pairs,)
        """
        left, right = left.astype(np.int64), right.astype(np.int64)
        starts, ends, to = self.indptr[:-1], self.indptr[1:], self.transposed
        told, until = to.indptr[:-1], to.indptr[1:]
        return _count_common(starts[left], ends[left], self.indices, told[right], until[right], to.indices)

    def common_friend_lists(self, left: IntArray, right: IntArray) -> tuple[LongArray, IntArray]:
        """List common friends.

        Parameters
        ----------
        left, right : ndarray of int32, shape (n_pairs,)

        Returns
        -------
        first : ndarray of int64, shape (n_pairs + 1,)
        friends : ndarray of int32, shape (total,)
            Those of pair p are ``friends[first[p]:first[p + 1]]``, ascending.
        """
        left, right = left.astype(np.int64), right.astype(np.int64)
        starts, ends, to = self.indptr[:-1], self.indptr[1:], self.transposed
        told, until = to.indptr[:-1], to.indptr[1:]
        return _common(starts[left], ends[left], self.indices, told[right], until[right], to.indices)


def _common(
    left_start: LongArray,
    left_end: LongArray,
    left: IntArray,
    right_start: LongArray,
    right_end: LongArray,
    right: IntArray,
) -> tuple[LongArray, IntArray]:
    sizes = _count_common(left_start, left_end, left, right_start, right_end, right)
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    friends = np.empty(int(first[-1]), dtype=np.int32)
    _list_common(left_start, left_end, left, right_start, right_end, right, first, friends)
    return first, friends


def _places(indptr: LongArray, users: IntArray) -> LongArray:
    """Places of the friends of some users, one user after the other."""
    size = indptr[users + 1] - indptr[users]
    before = np.cumsum(size) - size
    places: LongArray = np.repeat(indptr[users] - before, size) + np.arange(int(size.sum()))
    return places


@compiled
def _sum_friends(indptr: LongArray, indices: IntArray, values: FloatArray, found: FloatArray) -> None:
    # One row at a time, and no sign to look at: twice as fast as the plain loops.
    b = np.uint64(values.shape[1])
    flat, row = values.ravel(), np.empty(values.shape[1])
    for user in range(len(indptr) - 1):
        row[:] = 0.0
        for place in range(indptr[user], indptr[user + 1]):
            start = np.uint64(indices[place]) * b
            for c in range(b):
                row[c] += flat[start + np.uint64(c)]
        found[user] = row


@compiled
def _meet(
    left: IntArray, i: int, left_end: int, right: IntArray, j: int, right_end: int, found: IntArray, at: int
) -> int:
    """Common entries of two ascending parts, written from ``at`` on unless it is negative; how many."""
    if left_end - i > right_end - j:
        left, i, left_end, right, j, right_end = right, j, right_end, left, i, left_end
    gallop = right_end - j > _GALLOP * (left_end - i)
    n = 0
    while i < left_end and j < right_end:
        wanted = left[i]
        if right[j] < wanted:
            if gallop:
                # Double the step until it is too long, then halve the last one.
                step = 1
                while j + step < right_end and right[j + step] < wanted:
                    j += step
                    step *= 2
                high = min(j + step, right_end)
                while j + 1 < high:
                    middle = (j + high) // 2
                    if right[middle] < wanted:
                        j = middle
                    else:
                        high = middle
            j += 1
        elif right[j] > wanted:
            i += 1
        else:
            if at >= 0:
                found[at + n] = wanted
            n += 1
            i += 1
            j += 1
    return n


@compiled
def _count_common(
    left_start: LongArray,
    left_end: LongArray,
    left: IntArray,
    right_start: LongArray,
    right_end: LongArray,
    right: IntArray,
) -> LongArray:
    sizes = np.empty(len(left_start), dtype=np.int64)
    none = np.empty(0, dtype=np.int32)
    for p in range(len(left_start)):
        sizes[p] = _meet(left, left_start[p], left_end[p], right, right_start[p], right_end[p], none, -1)
    return sizes


@compiled
def _list_common(
    left_start: LongArray,
    left_end: LongArray,
    left: IntArray,
    right_start: LongArray,
    right_end: LongArray,
    right: IntArray,
    first: LongArray,
    friends: IntArray,
) -> None:
    for p in range(len(left_start)):
        _meet(left, left_start[p], left_end[p], right, right_start[p], right_end[p], friends, first[p])
