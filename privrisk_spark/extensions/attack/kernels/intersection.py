"""What several releases disclose together: the intersection attack (Ganta, Kasiviswanathan and Smith 2008).

Somebody is in several releases, which know nothing of each other. In each he is in a class, and his sensitive value is
one of those the class holds; so it is one that all his classes hold. No release needs to be weak for that: of a
4-anonymous and a 6-anonymous table one value may be left. And if the releases are of the same records, he hides only
among those who are in the same classes as he is in all of them.

Where classes have individuals who hold several values, each record is looked at by itself. Its value is one that all
classes hold. A class may be of somebody who holds this value together with others: a value ``s`` is certain if, for
each value ``t`` that is left, in some release everybody who holds ``t`` holds ``s``. After one release that is so if
all individuals of the class hold ``s``.

Status: *tested*. Values that an intruder is left with are exact if the value is the same in all releases; that he may
weigh them, or look at several records of an individual at once, is left out.

References
----------
S. Ganta, S. Kasiviswanathan, A. Smith, "Composition attacks and auxiliary information in data privacy", KDD 2008.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.extensions.attack.kernels.individuals import Together
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_rows

__all__ = ["Left", "intersected"]

_MOST_AT_ONCE = 2**22
"""Values of groups of people that are looked at together; does not change a result."""


@dataclass(frozen=True, eq=False)
class Left:
    """What is left of the values of people after some releases.

    Attributes
    ----------
    people : ndarray of int64, shape (g,)
        Of each group of people who are in the same classes and have the same value.
    seen : ndarray of bool, shape (g,)
        Whether they are in any of the releases.
    values : ndarray of int64, shape (g,)
        Values that all their classes hold; 0 if the classes contradict each other, as values may have changed.
    holds : ndarray of bool, shape (g,)
        Whether their own value is one of these.
    sure : ndarray of bool, shape (g,)
        Whether a value is certain: one is left, or all that are left imply it.
    """

    people: LongArray
    seen: BoolArray
    values: LongArray
    holds: BoolArray
    sure: BoolArray

    @property
    def certain(self) -> FloatArray:
        """Whether the value is certain and right, as 0 or 1; ndarray of float64, shape (g,)."""
        return np.asarray(self.seen & self.holds & self.sure, dtype=np.float64)

    @property
    def right(self) -> FloatArray:
        """Probability that a draw from the values left is right; ndarray of float64, shape (g,)."""
        return np.where(self.seen & self.holds, 1.0 / np.maximum(self.values, 1), 0.0)

    @property
    def disclosed(self) -> Found:
        """People in any of the releases whose value is certain, with limits."""
        return found(self.certain[self.seen], self.people[self.seen])

    @property
    def contradicted(self) -> int:
        """People whose classes have no value in common."""
        return int(self.people[self.seen & (self.values == 0)].sum())


def intersected(
    places: LongArray,
    releases: Sequence[SensitiveRuns],
    own: IntArray,
    people: LongArray,
    together: Sequence[Together] = (),
) -> list[Left]:
    """Intersect the values of the classes that people are in, release after release.

    Parameters
    ----------
    places : ndarray of int64, shape (g, r)
        Class of each group of people in each release; -1 where they are in none.
    releases : sequence of r SensitiveRuns
        Of the classes of each, with one code for a value in all of them.
    own : ndarray of int32, shape (g,)
        Code of the value the people have; the groups differ in classes or value.
    people : ndarray of int64, shape (g,)
    together : sequence of r Together, optional
        Values that individuals of the classes hold together; none where each holds one.

    Returns
    -------
    list of r Left
        After the first release, the first two, …. Where nothing contradicts, nobody's value gets less certain.

    Raises
    ------
    InputError
        If shapes do not fit, or a class is none of a release's.
    """
    g = len(people)
    if places.shape != (g, len(releases)) or own.shape != (g,):
        raise InputError(
            f"Intersection attack: {g} groups need a value and a class in each of {len(releases)} releases, not arrays "
            f"of the shapes {own.shape} and {places.shape}."
        )
    for r, runs in enumerate(releases):
        if g and not (places[:, r].min() >= -1 and places[:, r].max() < runs.n_classes):
            raise InputError(f"Intersection attack: release {r + 1} has no such class.")
    if not releases:
        return []
    first, member = distinct_rows(list(places.T))
    codes = 1 + max([int(of.value.max(initial=0)) for of in releases] + [int(own.max(initial=0))])
    values = np.zeros((len(releases), g), dtype=np.int64)
    holds: BoolArray = np.zeros((len(releases), g), dtype=np.bool_)
    sure: BoolArray = np.zeros((len(releases), g), dtype=np.bool_)
    implied = [of.implied(runs) for of, runs in zip(together, releases, strict=True)] if together else []
    # Groups by their classes, so that a chunk of tuples of classes has all its groups.
    order = np.argsort(member, kind="stable")
    bounds = np.searchsorted(member[order], np.arange(len(first) + 1))
    widest = max(int(np.diff(of.class_start).max(initial=1)) for of in releases)
    step = max(1, _MOST_AT_ONCE // widest)
    for begin in range(0, len(first), step):
        end = min(begin + step, len(first))
        those = order[bounds[begin] : bounds[end]]
        of, mine = member[those] - begin, own[those].astype(np.int64)
        at = places[first[begin:end]]
        for r, (number, kept) in enumerate(_narrowed(at, releases, codes)):
            values[r, those] = number[of]
            sure[r, those] = (_implying(at[:, : r + 1], implied, kept, number, codes) if implied else number == 1)[of]
            # Ascending, so that a value is looked up.
            holds[r, those] = (mine >= 0) & _among(kept, of * codes + mine)
    seen = np.logical_or.accumulate(places >= 0, axis=1)
    return [Left(people, seen[:, r], values[r], holds[r], sure[r]) for r in range(len(releases))]


def _implying(
    places: LongArray, implied: Sequence[Together], left: LongArray, number: LongArray, codes: int
) -> BoolArray:
    """Whether some value of each tuple of classes is implied by all values that are left, itself by itself."""
    of, value = left // codes, left % codes
    triples = [(of, value, value)]
    for r, pairs in enumerate(implied[: places.shape[1]]):
        keys = pairs.owner * codes + pairs.one
        order = np.argsort(keys, kind="stable")
        keys, other = keys[order], pairs.other[order]
        wanted = np.where(places[of, r] < 0, -1, places[of, r] * codes + value)
        low, high = np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")
        size = high - low
        entry = np.arange(size.sum()) + np.repeat(low - (np.cumsum(size) - size), size)
        triples.append((np.repeat(of, size), np.repeat(value, size), other[entry]))
    of, value, other = (np.concatenate(column) for column in zip(*triples, strict=True))
    once, _ = distinct_rows([of, other, value])
    first, member = distinct_rows([of[once], other[once]])
    count = np.bincount(member, minlength=len(first))
    sure: BoolArray = np.zeros(len(number), dtype=np.bool_)
    mine = of[once][first]
    sure[mine[count == number[mine]]] = True
    return sure


def _narrowed(
    places: LongArray, releases: Sequence[SensitiveRuns], codes: int
) -> Iterator[tuple[LongArray, LongArray]]:
    """After each release, how many values are left of tuples of classes, and all of them as ``tuple codes + value``."""
    n = len(places)
    seen: BoolArray = np.zeros(n, dtype=np.bool_)
    left = np.zeros(0, dtype=np.int64)
    for r, runs in enumerate(releases):
        place, held = places[:, r], runs.owner * codes + runs.value
        of = left // codes
        left = left[(place[of] < 0) | _among(held, place[of] * codes + left % codes)]
        new = np.flatnonzero((place >= 0) & ~seen)
        size = np.diff(runs.class_start)[place[new]]
        entry = np.arange(size.sum()) + np.repeat(runs.class_start[place[new]] - (np.cumsum(size) - size), size)
        left = np.sort(np.concatenate([left, np.repeat(new, size) * codes + runs.value[entry]]))
        seen |= place >= 0
        yield np.bincount(left // codes, minlength=n).astype(np.int64), left


def _among(ascending: LongArray, wanted: LongArray) -> BoolArray:
    if not len(ascending):
        return np.zeros(len(wanted), dtype=np.bool_)
    place = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return np.asarray(ascending[place] == wanted)
