"""What an attacker learns of individuals who have several records, and of whom several values may be true.

An individual has records in one or more classes of the protected table, and in each class holds the values of these
records. The attacker knows the classes. Each class gives away what follows from it; an individual counts once, and is
exposed if one of the classes exposes the individual. In a class of ``n`` individuals, of whom ``n(s)`` hold the value
``s`` and ``n(s, v)`` hold both:

* homogeneity: ``n(s) = n``: all hold ``s``;
* guess: the attacker takes a value with the greatest ``n(s)``, one of equally frequent ones at random, and is right if
  the individual holds it; in several classes, at least one of the guesses is right, ``1 - Π (1 - p)``;
* external knowledge: a member takes the own records away. If ``n(s) >= n - 1``, all others hold ``s`` in the eyes of
  the member who does not;
* background: the attacker knows of one value ``v`` that the individual does not hold it, and leaves all out who do.
  The others all hold ``s`` if everybody holds ``s`` or ``v``: ``n(s) + n(v) - n(s, v) = n``, with ``n(v) < n``;
* skewness: the individual holds a value ``s`` with ``n(s) / n`` more than a factor times the share of all individuals
  who hold it.

Status: *tested*, against loops over individuals; exact, also where individuals hold several values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.classes.bounds import fails
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.independent import any_of

__all__ = ["LEARNED", "Lessons", "Together", "learn", "lessons", "telling_values"]

LEARNED = ("homogeneity", "guess", "marginal", "external", "background", "skewness")
"""Columns of what :func:`learn` returns."""


@dataclass(frozen=True, eq=False)
class Together:
    """How many individuals of a class hold two values; pairs that nobody holds are left out.

    Attributes
    ----------
    owner : ndarray of int64, shape (p,)
        Class.
    one, other : ndarray of int64, shape (p,)
        Codes of two different values, in both orders.
    count : ndarray of int64, shape (p,)
        At least 1.
    """

    owner: LongArray
    one: LongArray
    other: LongArray
    count: LongArray

    @classmethod
    def of_pairs(cls, owner: LongArray, one: LongArray, other: LongArray, count: LongArray) -> Together:
        """Return pairs in both orders of pairs that are given in one."""
        twice = np.concatenate
        return cls(twice([owner, owner]), twice([one, other]), twice([other, one]), twice([count, count]))

    def implied(self, runs: SensitiveRuns) -> Together:
        """Return the pairs of which everybody who holds the first value holds the other."""
        held = runs.count[_places(runs, self.owner, self.one)]
        kept = self.count == held
        return Together(self.owner[kept], self.one[kept], self.other[kept], self.count[kept])


def _places(runs: SensitiveRuns, owner: LongArray, value: LongArray) -> LongArray:
    """Run of each value of a class, which must be there."""
    if not len(owner):
        return np.zeros(0, dtype=np.int64)
    values = 1 + max(int(runs.value.max()), int(value.max()))
    keys, wanted = runs.owner * values + runs.value, owner * values + value
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    if not np.array_equal(keys[place], wanted):
        raise InputError("Individuals: a value is held in a class that does not show it.")
    return place


def telling_values(runs: SensitiveRuns, together: Together) -> BoolArray:
    """Find the values that make another one certain of everybody who does not hold them.

    Parameters
    ----------
    runs : SensitiveRuns
        Individuals who hold each value.

    Returns
    -------
    ndarray of bool, shape (n_runs,)
    """
    members = runs.members
    telling: BoolArray = np.zeros(len(runs.value), dtype=np.bool_)
    # Of two values that everybody holds one of, one is held by half of them: few values of a class are.
    half = np.flatnonzero(2 * runs.count >= members[runs.owner])
    width = np.diff(runs.class_start)[runs.owner[half]]
    one = np.repeat(half, width)
    other = np.arange(len(one)) + np.repeat(runs.class_start[runs.owner[half]] - (np.cumsum(width) - width), width)
    n = members[runs.owner[one]]
    enough = (one != other) & (runs.count[one] + runs.count[other] >= n)
    one, other, n = one[enough], other[enough], n[enough]
    both = np.zeros(len(one), dtype=np.int64)
    if len(together.owner) and len(one):
        size = len(runs.value)
        pairs = _places(runs, together.owner, together.one) * size + _places(runs, together.owner, together.other)
        order = np.argsort(pairs)
        wanted = one * size + other
        place = np.minimum(np.searchsorted(pairs[order], wanted), len(pairs) - 1)
        both = np.where(pairs[order][place] == wanted, together.count[order][place], 0)
    all_hold = runs.count[one] + runs.count[other] - both == n
    for false in (one, other):
        telling[false[all_hold & (runs.count[false] < n)]] = True
    return telling


@dataclass(frozen=True, eq=False)
class Lessons:
    """What each class gives away, for tasks that look it up.

    Attributes
    ----------
    telling, gained : ndarray of bool, shape (n_runs,)
        Whether it helps to know that the value is false, and whether the value is far more likely than in the table.
    common : ndarray of bool, shape (v,)
        Whether a value is the most frequent one of the table, or one of these.
    """

    runs: SensitiveRuns
    telling: BoolArray
    gained: BoolArray
    common: BoolArray


def lessons(
    runs: SensitiveRuns, together: Together, holders: LongArray, individuals: int, *, gain_above: float
) -> Lessons:
    """Find out what each class gives away.

    Parameters
    ----------
    runs : SensitiveRuns
        Individuals of each class, and those who hold each value.
    holders : ndarray of int64, shape (v,)
        Individuals of the whole table who hold each value, in whatever class.
    individuals : int
        Of the whole table.
    gain_above : float
        At least 1.

    Raises
    ------
    InputError
        If a class has more holders of a value than the table.
    """
    if len(runs.value) and (
        int(runs.value.max()) >= len(holders)
        or (runs.count > holders[runs.value]).any()
        or (runs.members > individuals).any()
    ):
        raise InputError("Individuals: a class has a value more often than the whole table; count both alike.")
    gain = runs.held_by / (holders[runs.value] / max(individuals, 1))
    return Lessons(
        runs,
        telling_values(runs, together),
        np.asarray(fails(gain, gain_above, "at most")),
        holders == holders.max(initial=1),
    )


def learn(of: Lessons, start: LongArray, place: LongArray, value: LongArray) -> FloatArray:
    """Find what is learned of some individuals.

    Parameters
    ----------
    start : ndarray of int64, shape (n + 1,)
        What individual ``i`` holds is at ``start[i] … start[i + 1]``, at least one value.
    place, value : ndarray of int64, shape (h,)
        Class, and code of a value that the individual holds there; ascending, each once.

    Returns
    -------
    ndarray of float64, shape (n, 6)
        Probability of each of :data:`LEARNED`.
    """
    runs, n = of.runs, len(start) - 1
    result = np.zeros((n, len(LEARNED)))
    if not len(place):
        return result
    who = np.repeat(np.arange(n), np.diff(start))
    new = np.ones(len(place), dtype=np.bool_)
    new[1:] = (who[1:] != who[:-1]) | (place[1:] != place[:-1])
    first = np.flatnonzero(new)  # of what an individual holds in one class
    owner, members = who[first], runs.members
    run = _places(runs, place, value)
    greatest = runs.greatest(runs.count.astype(np.float64))
    likeliest = runs.count == greatest[runs.owner]
    ties, all_telling = runs.added(likeliest.astype(np.int64)), runs.added(of.telling.astype(np.int64))
    here = place[first]
    sure = greatest[here] == members[here]
    right = np.add.reduceat(likeliest[run].astype(np.int64), first) / ties[here]
    odd = np.maximum.reduceat((runs.count >= members[runs.owner] - 1)[run], first)
    told = sure | (np.add.reduceat(of.telling[run].astype(np.int64), first) < all_telling[here])
    gained = np.maximum.reduceat(of.gained[run], first)
    for j, exposed in ((0, sure), (3, odd), (4, told), (5, gained)):
        np.maximum.at(result[:, j], owner, exposed.astype(np.float64))
    result[:, 1] = any_of(owner, right)
    # One guess for the whole table, right if the individual holds the value anywhere.
    common = np.flatnonzero(of.common[value])
    held = np.unique(np.stack([who[common], value[common]], axis=1), axis=0)
    result[:, 2] = np.bincount(held[:, 0], minlength=n) / max(int(np.count_nonzero(of.common)), 1)
    return result
