"""Who is whose friend, as tasks hold it: sorted lists of friends, and what two users have in common.

What a table says of users, such as whom they trust and how much, is held likewise, as a network with values.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.extensions.network.stages.user_pairs import StoredPairs, packed
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IndexArray, LongArray, WordArray
from privrisk_spark.storage.part_files import map_array

SORTED_BELOW = 1 / 32
"""Users who are a smaller part of all are sorted to find the distinct ones, and others marked among all."""


@dataclass(frozen=True)
class StoredNetwork:
    """Edges in the scratch directory, each in the direction it goes.

    Attributes
    ----------
    offsets : tuple of n_buckets + 1 int
        First user of each bucket, and the number of users.
    valued : bool
        Whether edges have values.
    directed : bool
        Whether there may be an edge without its opposite.
    """

    edges: StoredPairs
    offsets: tuple[int, ...]
    valued: bool = False
    directed: bool = True

    def load(self) -> Network:
        """Map the lists, once per process."""
        return _loaded_network(self)


@dataclass(frozen=True, eq=False)
class Network:
    """Friends of users, in a task.

    Attributes
    ----------
    offsets : ndarray of int64, shape (n_buckets + 1,)
    words : tuple of ndarrays of uint64
        Edges of the users of each bucket, ascending.
    first : tuple of ndarrays of int64
        Place of the first edge of each user of a bucket, and the number of its edges.
    values : tuple of ndarrays of float64
        Of the edges; none where they have no values.
    directed : bool
        Whether there may be an edge without its opposite.
    """

    offsets: LongArray
    words: tuple[WordArray, ...]
    first: tuple[IndexArray, ...]
    values: tuple[FloatArray, ...] = ()
    directed: bool = True

    def degrees(self, users: LongArray) -> LongArray:
        """Return the number of friends of each user."""
        found = np.zeros(len(users), dtype=np.int64)
        for bucket, here in self._by_bucket(users):
            at = users[here] - self.offsets[bucket]
            found[here] = self.first[bucket][at + 1] - self.first[bucket][at]
        return found

    def friends(self, users: LongArray) -> tuple[LongArray, LongArray]:
        """Return the friends of users.

        Returns
        -------
        first : ndarray of int64, shape (n + 1,)
        friends : ndarray of int64
            Those of user i are ``friends[first[i]:first[i + 1]]``, ascending.
        """
        first, friends, _ = self._lists(users, valued=False)
        return first, friends

    def valued(self, users: LongArray) -> tuple[LongArray, LongArray, FloatArray]:
        """Return the friends of users as :meth:`friends` does, and the values of the edges to them."""
        return self._lists(users, valued=True)

    def _lists(self, users: LongArray, *, valued: bool) -> tuple[LongArray, LongArray, FloatArray]:
        degrees = self.degrees(users)
        first = np.concatenate([[0], np.cumsum(degrees)])
        friends = np.empty(int(first[-1]), dtype=np.int64)
        values = np.empty(len(friends) if valued else 0)
        for bucket, here in self._by_bucket(users):
            begin = np.asarray(self.first[bucket][users[here] - self.offsets[bucket]])
            source, target = spans(begin, degrees[here]), spans(first[:-1][here], degrees[here])
            friends[target] = (self.words[bucket][source] & np.uint64(2**32 - 1)).astype(np.int64)
            if valued:
                values[target] = self.values[bucket][source]
        return first, friends, values

    def value(self, u: LongArray, v: LongArray, *, otherwise: float) -> FloatArray:
        """Return the value of the edge of each pair, float64 (n,), or what is so where there is none."""
        found = np.full(len(u), otherwise)
        wanted = packed(u, v)
        for bucket, here in self._by_bucket(u):
            words = self.words[bucket]
            if len(words):
                place = np.minimum(np.searchsorted(words, wanted[here]), len(words) - 1)
                there = words[place] == wanted[here]
                found[here[there]] = self.values[bucket][place[there]]
        return found

    def are_friends(self, u: LongArray, v: LongArray) -> BoolArray:
        """Whether the second user of each pair is a friend of the first."""
        found = np.zeros(len(u), dtype=np.bool_)
        wanted = packed(u, v)
        for bucket, here in self._by_bucket(u):
            words = self.words[bucket]
            if len(words):
                place = np.minimum(np.searchsorted(words, wanted[here]), len(words) - 1)
                found[here] = words[place] == wanted[here]
        return found

    def common_friends(self, u: LongArray, v: LongArray) -> tuple[LongArray, LongArray]:
        """Return the common friends of pairs: friends of the first user of whom the second is a friend.

        The shorter list of the two is looked up in the longer one; in a directed network that of the first user is
        walked, as nobody's list says who tells him.

        Returns
        -------
        first : ndarray of int64, shape (n + 1,)
        friends : ndarray of int64
            Those of pair p are ``friends[first[p]:first[p + 1]]``, ascending.
        """
        if self.directed:
            few, many = u, v
        else:
            shorter = self.degrees(u) <= self.degrees(v)
            few, many = np.where(shorter, u, v), np.where(shorter, v, u)
        first, friends = self.friends(few)
        pair = np.repeat(np.arange(len(u)), np.diff(first))
        common = self.are_friends(friends, many[pair]) if self.directed else self.are_friends(many[pair], friends)
        counts = np.bincount(pair[common], minlength=len(u))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), friends[common]

    def ball(self, user: int, radius: int) -> LongArray:
        """Return the users to whom at most ``radius`` steps lead from a user, ascending."""
        n = int(self.offsets[-1])
        inside = np.zeros(n, dtype=bool)  # the system gives memory only for what is touched
        inside[user] = True
        waves = [np.array([user], dtype=np.int64)]
        for _ in range(radius):
            met = self.friends(waves[-1])[1]
            met = met[~inside[met]]
            if not len(met):
                break
            inside[met] = True
            waves.append(_distinct(met, n))
        # Few people in a large network are not looked for among all.
        return _distinct(np.concatenate(waves), n)

    def within(self, users: LongArray) -> Graph:
        """Return the friendships among some users, who are ascending, numbered by their places."""
        first, friends = self.friends(users)
        place = np.minimum(np.searchsorted(users, friends), len(users) - 1)
        there = users[place] == friends
        before = np.concatenate([[0], np.cumsum(there)])
        return Graph(before[first].astype(np.int64), place[there].astype(np.int32), self.directed)

    def whole(self) -> Graph:
        """Return all friendships: 4 bytes each, and 8 bytes a user, but for one bucket in twice as many."""
        ends = np.cumsum([0, *(len(words) for words in self.words)])
        first, friends = np.zeros(int(self.offsets[-1]) + 1, dtype=np.int64), np.empty(int(ends[-1]), dtype=np.int32)
        for bucket, words in enumerate(self.words):
            begin, end = self.offsets[bucket : bucket + 2]
            first[begin + 1 : end + 1] = self.first[bucket][1:] + ends[bucket]
            friends[ends[bucket] : ends[bucket + 1]] = words & np.uint64(2**32 - 1)
        return Graph(first, friends, self.directed)

    def _by_bucket(self, users: LongArray) -> list[tuple[int, IndexArray]]:
        of = np.searchsorted(self.offsets, users, side="right") - 1
        order = np.argsort(of, kind="stable")
        cuts = np.searchsorted(of[order], np.arange(len(self.words) + 1))
        return [(b, order[cuts[b] : cuts[b + 1]]) for b in range(len(self.words)) if cuts[b] < cuts[b + 1]]


def _distinct(users: LongArray, n: int) -> LongArray:
    """Return the users, of n, who occur, ascending: few are sorted, many are marked."""
    if len(users) < SORTED_BELOW * n:
        return np.unique(users)
    marked = np.zeros(n, dtype=bool)
    marked[users] = True
    return np.flatnonzero(marked)


def spans(begin: LongArray, lengths: LongArray) -> LongArray:
    """Return the numbers ``begin[i] … begin[i] + lengths[i] - 1`` of all spans, one after the other."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    numbers: LongArray = np.arange(total) + np.repeat(begin - (ends - lengths), lengths)
    return numbers


@functools.lru_cache(maxsize=2)
def _loaded_network(network: StoredNetwork) -> Network:
    edges = network.edges
    words = tuple(map_array(edges.directory, name) for name in edges.names)
    first = tuple(map_array(edges.directory, f"{name}.first") for name in edges.names)
    values = tuple(map_array(edges.directory, f"{name}.values") for name in edges.names if network.valued)
    return Network(np.array(network.offsets, dtype=np.int64), words, first, values, network.directed)
