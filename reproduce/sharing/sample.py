"""A generated network in memory, and some pairs of its users: who shows whom what.

Pairs are drawn by walks of two friendships, so that whoever asks is a friend of a friend: of pairs drawn evenly from a
large network, as F12 §7.7 draws them, hardly one has a common friend, and there is nothing to count.

A shown level of attribute k costs user i ``Φ_ik``, one of 0.1, 0.2, …, 1, and is worth 1; so ``w_i`` and ``d_i`` of
F12 §7.5.1 are levels from the root, with and without a factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.extensions.network.kernels.modified_aggregate import Pairs
from privrisk_spark.extensions.network.stages.modified_aggregate import by_level
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LevelArray, LongArray
from reproduce.generated.clustered import keyed_uniforms
from reproduce.generated.network import SocialNetwork

COSTS = 10
"""Different sensitivities of a level."""


def graph_of(network: SocialNetwork) -> Graph:
    """Who is whose friend in a generated network."""
    ends = [(u.astype(np.int32), v.astype(np.int32)) for u, v in network.friendships()]
    return Graph.of_edges(network.users, *(np.concatenate(side) for side in zip(*ends, strict=True)))


@dataclass(frozen=True, eq=False)
class Profiles:
    """Values of users as numbers.

    Attributes
    ----------
    values : ndarray of int16, shape (n_users, k)
        Words of ``tops[j]`` bits, of which a level of generalization hides one from the right; -1 for no value.
    tops : ndarray of int64, shape (k,)
    """

    values: npt.NDArray[np.int16]
    tops: LongArray

    @classmethod
    def of(cls, network: SocialNetwork) -> Profiles:
        """Profiles of a generated network."""
        return cls(np.concatenate([part.astype(np.int16) for part in network.numbers()]), network.tops)

    def heights(self, users: LongArray) -> LevelArray:
        """int8 (n, k): levels each value has; 0 where there is none."""
        return np.where(self.values[users] >= 0, self.tops, 0).astype(np.int8)

    def agreements(self, users: LongArray, others: LongArray) -> LevelArray:
        """int8 (n, k): least level at which a user's value covers another's; his height where that one has none.

        Parameters
        ----------
        users, others : ndarray of int64, shape (n,)
        """
        mine, theirs = self.values[users], self.values[others]
        # The position of the highest bit in which two words differ.
        apart = np.frexp((mine ^ theirs).astype(np.float64))[1]
        found = np.where(theirs >= 0, apart, self.tops)
        return np.where(mine >= 0, found, 0).astype(np.int8)

    def likeness(self, users: LongArray, others: LongArray) -> FloatArray:
        """float64 (n, m): levels two profiles share, over the geometric mean of those they have; 0 if one has none."""
        mine, theirs = np.repeat(users, len(others)), np.tile(others, len(users))
        of = self.heights(mine).sum(axis=1, dtype=np.int64)
        shared = (of - self.agreements(mine, theirs).sum(axis=1, dtype=np.int64)).reshape(len(users), len(others))
        norm = np.sqrt(of * self.heights(theirs).sum(axis=1, dtype=np.int64)).reshape(shared.shape)
        alike: FloatArray = shared / np.maximum(norm, 1.0)
        return alike


@dataclass(frozen=True, eq=False)
class Sample:
    """Pairs of users of a network.

    Attributes
    ----------
    u, v : ndarray of int64, shape (n,)
        Who shows, and who sees.
    """

    graph: Graph
    profiles: Profiles
    seed: int
    u: LongArray
    v: LongArray

    @cached_property
    def friends(self) -> tuple[LongArray, IntArray]:
        """Common friends of pair p are ``friends[1][friends[0][p]:friends[0][p + 1]]``."""
        return self.graph.common_friend_lists(self.u.astype(np.int32), self.v.astype(np.int32))

    @property
    def common(self) -> LongArray:
        """int64 (n,): number of common friends."""
        return np.diff(self.friends[0])

    @cached_property
    def acquainted(self) -> BoolArray:
        """Whether the two are friends; bool (n,)."""
        return np.array([_holds(self.graph, a, b) for a, b in zip(self.u.tolist(), self.v.tolist(), strict=True)])

    @cached_property
    def levels(self) -> LevelArray:
        """int8 (n, k): levels that may be shown of each value."""
        return self.profiles.heights(self.u)

    @cached_property
    def sensitivity(self) -> FloatArray:
        """float64 (n, k): ``Φ_ik`` of a shown level; a user has the same in every pair."""
        users, at = np.unique(self.u, return_inverse=True)
        k = self.profiles.values.shape[1]
        drawn = [keyed_uniforms(self.seed, f"sensitivity {user}", (k,)) for user in users.tolist()]
        return (1 + np.floor(COSTS * np.array(drawn).reshape(len(users), k)))[at] / COSTS

    @cached_property
    def pairs(self) -> Pairs:
        """What Modified-Aggregate takes."""
        first, friends = self.friends
        owner = np.repeat(self.u, np.diff(first))
        most = int(self.profiles.tops.max())
        weights = by_level(self.sensitivity, self.levels, most)
        utilities = by_level(np.ones(self.levels.shape), self.levels, most)
        agreements = self.profiles.agreements(owner, friends.astype(np.int64))
        return Pairs(self.levels, weights, utilities, first, agreements)


def _holds(graph: Graph, user: int, other: int) -> bool:
    friends = graph.indices[graph.indptr[user] : graph.indptr[user + 1]]
    place = int(np.searchsorted(friends, other))
    return place < len(friends) and int(friends[place]) == other


def walked(graph: Graph, n: int, seed: int, steps: int = 2) -> tuple[LongArray, LongArray]:
    """Draw pairs by a walk from a user to a friend, on to a friend of that one, and so on.

    Parameters
    ----------
    n : int
        Walks; those that come back, or that start where there is no friend, are no pairs.
    steps : int, default 2

    Returns
    -------
    u, v : ndarray of int64, shape (at most n,)
    """
    drawn = keyed_uniforms(seed, f"walks of {steps} friendships", (n, 1 + steps))
    start = (drawn[:, 0] * graph.n).astype(np.int64)
    start = start[graph.degree[start] > 0]
    end = start
    for step in range(1, 1 + steps):
        place = (drawn[: len(end), step] * graph.degree[end]).astype(np.int64)
        end = graph.indices[graph.indptr[end] + place].astype(np.int64)
    apart = start != end
    return start[apart], end[apart]


def evenly(graph: Graph, n: int, seed: int) -> tuple[LongArray, LongArray]:
    """Draw pairs of different users evenly, as F12 §7.7 does; int64 (n,) each."""
    drawn = keyed_uniforms(seed, "pairs", (n, 2))
    u = (drawn[:, 0] * graph.n).astype(np.int64)
    v = (drawn[:, 1] * (graph.n - 1)).astype(np.int64)
    return u, v + (v >= u)


def samples(users: int, ks: Sequence[int], pairs: int, seed: int) -> Iterator[tuple[int, Sample]]:
    """Yield the same pairs of the same graph, with profiles of 1 to k attributes, for each k."""
    graph = graph_of(SocialNetwork(users, ks[0], seed))
    u, v = walked(graph, pairs, seed)
    for k in ks:
        yield k, Sample(graph, Profiles.of(SocialNetwork(users, k, seed)), seed, u, v)


def mixed(users: int, k: int, pairs: int, seed: int) -> Sample:
    """Friends, friends of friends and anybody, a third of the pairs each.

    Parameters
    ----------
    users, k, pairs : int
        Of the network, attributes, and about how many pairs.
    """
    network = SocialNetwork(users, k, seed)
    graph, third = graph_of(network), -(-pairs // 3)
    drawn = (walked(graph, third, seed, 1), walked(graph, third, seed, 2), evenly(graph, third, seed))
    u, v = (np.concatenate(side) for side in zip(*drawn, strict=True))
    return Sample(graph, Profiles.of(network), seed, u, v)


def befriended(users: int, k: int, seed: int) -> Sample:
    """All pairs of friends, in both directions."""
    network = SocialNetwork(users, k, seed)
    graph = graph_of(network)
    u = np.repeat(np.arange(graph.n), graph.degree)
    return Sample(graph, Profiles.of(network), seed, u, graph.indices.astype(np.int64))
