"""How much decisions depend on what trust is: the same pairs under every kind of trust and every f(T) (F12 §7.4.1).

F12 asked 300 people for Tables 7.3 and 7.4. Trust by them is a rule of what is known of two users: the criterion that
most people named first, and what most people say of a friend, a friend of a friend and a stranger. Stated trust is
drawn from the same table, as nobody states any: a friend is trusted, distrusted, or nothing is said of him.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from privrisk_spark.extensions.network.kernels.access import Entries, lagrangian, least_loss
from privrisk_spark.extensions.network.kernels.diffusion import Series
from privrisk_spark.extensions.network.kernels.trust import (
    Exposure,
    Rule,
    propagated_trust,
    trust_by_likeness,
    trust_by_rules,
)
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LevelArray, LongArray
from reproduce.generated.clustered import keyed_uniforms
from reproduce.sharing.limits import SHARES, entries_of, totals
from reproduce.sharing.sample import Sample

CRITERIA = (
    ("social network", 21), ("sensitive information", 5), ("prior knowledge of a user", 62),
    ("number of friends who already know this user", 6), ("shared interests", 4), ("shared demographic", 2),
)  # fmt: skip
"""Table 7.3 of F12: people's main criterion, in per cent."""

PERCEIVED = {"friend": (74, 23, 3), "friend of friend": (56, 30, 14), "stranger": (23, 23, 54)}
"""Table 7.4 of F12: who shares always, under some conditions and never, in per cent."""

COMMON, STATED, SAME, CRITERION, PERCEIVED_TRUST, PROPAGATED, ONE_CLASS = (
    "common friends", "stated", "rule: two attributes are the same", "rule: Table 7.3", "rule: Table 7.4",
    "propagated", "one-class",
)  # fmt: skip
"""Kinds of trust."""

EXPOSURES: Mapping[str, Exposure] = {
    "reciprocal": Exposure(),
    "exponential": Exposure("exponential"),
    "step": Exposure("step", threshold=0.5, below=1.0, above=0.1),
    "table": Exposure("table", table=((-1.0, 4.0), (0.0, 1.0), (0.5, 0.5), (5.0, 0.1))),
}
"""Kinds of f(T)."""

BASELINE = (COMMON, "reciprocal")
"""What the others are held against; the product's default."""

TRADE_OFF = 0.5
"""λ: between the least and the greatest Φ, so that without information some levels are shown and some not."""

RESTART, ERROR, OUTLIERS = 0.5, 1e-6, 0.5
"""Of propagated and of one-class trust; the product's defaults."""

_AT_ONCE = 16


@dataclass(frozen=True)
class Decided:
    """What is decided under a kind of trust and an f(T), beside the baseline.

    Attributes
    ----------
    loss, utility : float
        At the trade-off, as shares of showing everything.
    changed : float
        Share of the values whose level is another one.
    changed_pairs : float
        Share of the pairs with such a value.
    moved : float
        Share of the values whose level is another one where each shows half of all there is worth, at least loss.
    excess : float
        By how much that costs more than need be, if the baseline is right: a share of its loss.
    """

    trust: str
    exposure: str
    loss: float
    utility: float
    changed: float
    changed_pairs: float
    moved: float
    excess: float


@dataclass(frozen=True)
class Ordered:
    """A kind of trust beside the baseline, at equal utility.

    Attributes
    ----------
    share : float
        Utility, of all there is.
    moved, excess : float
        As of :class:`Decided`.
    """

    trust: str
    share: float
    moved: float
    excess: float


@dataclass(frozen=True)
class Trusted:
    """What a kind of trust says of the pairs.

    Attributes
    ----------
    positive, negative : float
        Shares of the pairs.
    friends, others, strangers : float
        Mean T of friends, of friends of friends and of strangers; NaN where there are none.
    """

    trust: str
    positive: float
    negative: float
    friends: float
    others: float
    strangers: float


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Everything about kinds of trust."""

    pairs: int
    friends: int
    others: int
    strangers: int
    trusted: tuple[Trusted, ...]
    decided: tuple[Decided, ...]
    ordered: tuple[Ordered, ...]


def relation_of(sample: Sample) -> LongArray:
    """int64 (n,): 0 for friends, 1 for friends of friends, 2 for strangers."""
    return np.where(sample.acquainted, 0, np.where(sample.common > 0, 1, 2))


def stated_by(sample: Sample, user: int) -> tuple[IntArray, FloatArray]:
    """Friends of whom a user states anything, and T: 1 or -1, as often as the first row of Table 7.4 says."""
    graph = sample.graph
    friends = graph.indices[graph.indptr[user] : graph.indptr[user + 1]]
    drawn = 100 * keyed_uniforms(sample.seed, f"stated {user}", (len(friends),))
    always, sometimes, _ = PERCEIVED["friend"]
    trust = np.where(drawn < always, 1.0, np.where(drawn < always + sometimes, 0.0, -1.0))
    return friends[trust != 0], trust[trust != 0]


def trusts(sample: Sample) -> Iterator[tuple[str, FloatArray]]:
    """Yield T of every pair by every kind of trust; one-class only where scikit-learn is installed."""
    users, of = np.unique(sample.u, return_inverse=True)
    stated = [stated_by(sample, user) for user in users.tolist()]
    yield COMMON, sample.common.astype(np.float64)
    yield STATED, _stated(sample, stated, of)
    yield SAME, by_same_attributes(sample)
    yield CRITERION, by_criteria(sample)
    yield PERCEIVED_TRUST, by_relation(sample)
    yield PROPAGATED, _propagated(sample, users, stated, of)
    if find_spec("sklearn") is not None:
        yield ONE_CLASS, _by_likeness(sample, stated, of)


def _stated(sample: Sample, stated: list[tuple[IntArray, FloatArray]], of: LongArray) -> FloatArray:
    found = np.zeros(len(sample.u))
    for p, user in enumerate(of.tolist()):
        whom, trust = stated[user]
        found[p] = trust[whom == sample.v[p]].sum()
    return found


def _propagated(
    sample: Sample, users: LongArray, stated: list[tuple[IntArray, FloatArray]], of: LongArray
) -> FloatArray:
    found = np.zeros(len(sample.u))
    for begin in range(0, len(users), _AT_ONCE):
        some = range(begin, min(begin + _AT_ONCE, len(users)))
        starts = np.zeros((sample.graph.n, len(some)))
        for column, user in enumerate(some):
            whom, trust = stated[user]
            starts[whom, column] = trust
        spread = propagated_trust(sample.graph, starts, Series.geometric(RESTART, ERROR)).values
        here = np.flatnonzero((of >= begin) & (of < begin + _AT_ONCE))
        found[here] = spread[sample.v[here], of[here] - begin]
    return found


def _by_likeness(sample: Sample, stated: list[tuple[IntArray, FloatArray]], of: LongArray) -> FloatArray:
    found = np.zeros(len(sample.u))
    for user, (whom, trust) in enumerate(stated):
        listed, rows = whom[trust > 0].astype(np.int64), np.flatnonzero(of == user)
        if len(listed):
            known = sample.profiles.likeness(listed, listed)
            found[rows] = trust_by_likeness(known, sample.profiles.likeness(sample.v[rows], listed), OUTLIERS)
    return found


def _codes(sample: Sample, users: LongArray) -> dict[str, IntArray]:
    values = sample.profiles.values[users].astype(np.int32)
    return {str(j): values[:, j] for j in range(values.shape[1])}


def by_same_attributes(sample: Sample) -> FloatArray:
    """1 if both have the same values of the two attributes of least height, else -1: the rule of F12 §7.4.1."""
    two = [str(j) for j in np.sort(np.argsort(sample.profiles.tops, kind="stable")[:2]).tolist()]
    left, right = _codes(sample, sample.u), _codes(sample, sample.v)
    return trust_by_rules([Rule(tuple(two), 1.0)], -1.0, left, right, len(sample.u))


def by_criteria(sample: Sample) -> FloatArray:
    """The share of people who name the first criterion of Table 7.3 that speaks for the pair; 0 if none does.

    Prior knowledge is being friends; friends who know the user are common friends; of the others, shared interests are
    the same value of the attribute of least height, and a shared demographic that of the next.
    """
    percent = dict(CRITERIA)
    two = np.sort(np.argsort(sample.profiles.tops, kind="stable")[:2]).tolist()
    left, right = _codes(sample, sample.u), _codes(sample, sample.v)
    yes = np.ones(len(sample.u), dtype=np.int32)
    left |= {"known": yes, "common": yes}
    right |= {"known": sample.acquainted.astype(np.int32), "common": (sample.common > 0).astype(np.int32)}
    rules = [
        Rule(("known",), percent["prior knowledge of a user"] / 100),
        Rule(("common",), percent["number of friends who already know this user"] / 100),
        Rule((str(two[0]),), percent["shared interests"] / 100),
        Rule((str(two[-1]),), percent["shared demographic"] / 100),
    ]
    return trust_by_rules(rules, 0.0, left, right, len(yes))


def by_relation(sample: Sample) -> FloatArray:
    """Share of people who always share with a friend, a friend of a friend or a stranger, less those who never do."""
    of_relation = np.array([(always - never) / 100 for always, _, never in PERCEIVED.values()])
    return of_relation[relation_of(sample)]


def sensitivity_to_trust(sample: Sample) -> Sensitivity:
    """Decide the same pairs under every kind of trust and every f(T).

    Parameters
    ----------
    sample : Sample
        Of at least one pair.
    """
    relation = relation_of(sample)
    by_kind = dict(trusts(sample))
    base = entries_of(sample, by_kind[BASELINE[0]], EXPOSURES[BASELINE[1]])
    decided = [
        _decided(sample, base, entries_of(sample, trust, exposure), kind, form)
        for kind, trust in by_kind.items()
        for form, exposure in EXPOSURES.items()
    ]
    ordered = [
        Ordered(kind, share, *_ordered(base, entries_of(sample, trust, EXPOSURES[BASELINE[1]]), share))
        for kind, trust in by_kind.items()
        for share in SHARES[1::2]
    ]
    friends, others, strangers = np.bincount(relation, minlength=3).tolist()
    return Sensitivity(
        pairs=len(relation),
        friends=friends,
        others=others,
        strangers=strangers,
        trusted=tuple(_trusted(kind, trust, relation) for kind, trust in by_kind.items()),
        decided=tuple(decided),
        ordered=tuple(ordered),
    )


def _trusted(kind: str, trust: FloatArray, relation: LongArray) -> Trusted:
    means = [float(trust[relation == i].mean()) if (relation == i).any() else float("nan") for i in range(3)]
    return Trusted(kind, float((trust > 0).mean()), float((trust < 0).mean()), *means)


def _decided(sample: Sample, base: Entries, entries: Entries, kind: str, form: str) -> Decided:
    mine, theirs = lagrangian(entries, TRADE_OFF), lagrangian(base, TRADE_OFF)
    there = (entries.tops > 0).reshape(sample.levels.shape)
    other = (mine != theirs).reshape(sample.levels.shape)
    loss, utility = totals(entries)
    return Decided(
        kind,
        form,
        float((entries.loss * mine).sum()) / loss,
        float((entries.utility * mine).sum()) / utility,
        float(other[there].mean()),
        float(other.any(axis=1).mean()),
        *_ordered(base, entries, 0.5),
    )


def _ordered(base: Entries, entries: Entries, share: float) -> tuple[float, float]:
    """At a utility: share of the values that are shown otherwise than under the baseline, and what that costs there."""
    _, utility = totals(entries)
    mine, theirs = least_loss(entries, share * utility).levels, least_loss(base, share * utility).levels
    there = entries.tops > 0
    return float((mine != theirs)[there].mean()), _loss(base, mine) / _loss(base, theirs) - 1


def _loss(entries: Entries, levels: LevelArray) -> float:
    return float((entries.loss * levels).sum())
