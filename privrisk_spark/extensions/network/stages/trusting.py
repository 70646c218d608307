"""How much one user trusts another, in tasks: T_ij of F12 §7.4, by each of its sources."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privrisk_spark.extensions.network.kernels.diffusion import Series
from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.extensions.network.kernels.trust import Rule, propagated_trust, trust_by_likeness, trust_by_rules
from privrisk_spark.extensions.network.stages.deciding import Acquainted
from privrisk_spark.extensions.network.stages.network import StoredNetwork
from privrisk_spark.extensions.network.stages.profiles import Trees
from privrisk_spark.extensions.network.stages.users import Users
from privrisk_spark.kernels.arrays import FloatArray, IndexArray, LongArray

AT_ONCE = 16
"""Users whose trust is propagated at once; does not change a result."""


class Trust(Protocol):
    """How much u trusts v; small, as it goes to every task."""

    def of(self, pairs: Acquainted) -> FloatArray:
        """T of each pair, float64 (n,), finite."""


@dataclass(frozen=True)
class CommonFriends:
    """T is the number of common friends."""

    def of(self, pairs: Acquainted) -> FloatArray:
        """T of each pair."""
        return pairs.common.astype(np.float64)


@dataclass(frozen=True)
class Stated:
    """T is what a table says; 0 where it says nothing.

    Attributes
    ----------
    table : StoredNetwork
        With values.
    """

    table: StoredNetwork

    def of(self, pairs: Acquainted) -> FloatArray:
        """T of each pair."""
        return self.table.load().value(pairs.u, pairs.v, otherwise=0.0)


@dataclass(frozen=True)
class Ruled:
    """T by the first rule that holds of both profiles.

    Attributes
    ----------
    rules : tuple of (tuple of str, float)
        Numbers of attributes, as texts, and what T is.
    """

    rules: tuple[tuple[tuple[str, ...], float], ...]
    otherwise: float

    def of(self, pairs: Acquainted) -> FloatArray:
        """T of each pair."""
        theirs = pairs.users.profiles.take(pairs.v)
        sides = []
        for codes in (pairs.codes, theirs):
            known = np.where(pairs.trees.levels(codes) > 0, codes, -1).astype(np.int32)
            sides.append({str(j): known[:, j] for j in range(known.shape[1])})
        rules = [Rule(same, trust) for same, trust in self.rules]
        return trust_by_rules(rules, self.otherwise, sides[0], sides[1], len(pairs.u))


@dataclass(frozen=True)
class Propagated:
    """T is what a user has stated, after walks from those he names.

    Attributes
    ----------
    table : StoredNetwork
        What is stated, with values.
    network : StoredNetwork
        Who is whose friend; a task holds all of it.
    series : Series
        Of the lengths of the walks.
    """

    table: StoredNetwork
    network: StoredNetwork
    series: Series

    def of(self, pairs: Acquainted) -> FloatArray:
        """T of each pair."""
        graph, stated = whole_graph(self.network), self.table.load()
        trusting, of = np.unique(pairs.u, return_inverse=True)
        found = np.zeros(len(pairs.u))
        for begin in range(0, len(trusting), AT_ONCE):
            some = trusting[begin : begin + AT_ONCE]
            first, whom, values = stated.valued(some)
            starts = np.zeros((graph.n, len(some)))
            starts[whom, np.repeat(np.arange(len(some)), np.diff(first))] = values
            spread = propagated_trust(graph, starts, self.series).values
            here = np.flatnonzero((of >= begin) & (of < begin + AT_ONCE))
            found[here] = spread[pairs.v[here], of[here] - begin]
        return found


@functools.lru_cache(maxsize=1)
def whole_graph(network: StoredNetwork) -> Graph:
    """Hold a whole graph in a task, once per process."""
    return network.load().whole()


@dataclass(frozen=True)
class OneClass:
    """T is 1 of who resembles those whom a user has listed, else -1.

    Two profiles resemble each other by the levels their values share: the inner product of their paths in the
    hierarchies, normalized. That is a kernel in the sense of support vectors (Schölkopf et al. 2001), so profiles are
    compared without being turned into numbers.

    Attributes
    ----------
    listed : StoredNetwork
        Whom each user trusts.
    outliers : float
        ν.
    otherwise : float
        T of a user who has listed nobody.
    """

    listed: StoredNetwork
    outliers: float
    otherwise: float

    def of(self, pairs: Acquainted) -> FloatArray:
        """T of each pair."""
        trusting, of = np.unique(pairs.u, return_inverse=True)
        first, whom = self.listed.load().friends(trusting)
        found = np.full(len(pairs.u), self.otherwise)
        order = np.argsort(of, kind="stable")
        cuts = np.searchsorted(of[order], np.arange(len(trusting) + 1))
        for i in range(len(trusting)):
            listed, rows = whom[first[i] : first[i + 1]], order[cuts[i] : cuts[i + 1]]
            if len(listed):
                found[rows] = self._judged(pairs, listed, rows)
        return found

    def _judged(self, pairs: Acquainted, listed: LongArray, rows: IndexArray) -> FloatArray:
        known = likeness(pairs.users, pairs.trees, listed, listed)
        return trust_by_likeness(known, likeness(pairs.users, pairs.trees, pairs.v[rows], listed), self.outliers)


def likeness(users: Users, trees: Trees, some: LongArray, others: LongArray) -> FloatArray:
    """Return how alike profiles are: levels they share, over the geometric mean of the levels they have.

    Parameters
    ----------
    some, others : ndarray of int64, shape (n,) and (m,)

    Returns
    -------
    ndarray of float64, shape (n, m)
        In [0, 1]; 0 where a profile is empty.
    """
    left, right = users.profiles.take(some), users.profiles.take(others)
    mine = np.repeat(left, len(others), axis=0)
    theirs = np.tile(right, (len(some), 1))
    levels = trees.levels(mine)
    shared = (levels - trees.agreements(mine, theirs)).sum(axis=1, dtype=np.int64).reshape(len(some), len(others))
    of_some, of_others = (trees.levels(codes).sum(axis=1, dtype=np.int64) for codes in (left, right))
    norm = np.sqrt(np.multiply.outer(of_some, of_others).astype(np.float64))
    alike: FloatArray = shared / np.maximum(norm, 1.0)
    return alike
