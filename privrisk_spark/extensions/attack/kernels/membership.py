r"""Membership: whether somebody is in the release at all.

The intruder knows some columns of everybody, members and others, and says of each person whether he thinks that the
person is a member. Of people who are alike to him he can say but the same, so every attack is a score of what he knows,
and a threshold. By the lemma of Neyman and Pearson none has more right answers among the members, for the same wrong
ones among the others, than that by the likelihood ratio, which rises with the share of the people alike who are
members. What he gains is told by the points (FPR, TPR) of all thresholds, by the area under them, and by the
*advantage*, the greatest TPR - FPR. A score may also tell members by being low: the advantage of the attacker who takes
those with the lowest scores for members is told, too.

That share is what the intruder wants to know. What he can do with the two files alone is to deal every row in equal
parts to the people nearest to it, and to take those for members who get most. Where people fit the rows of one class
only, what each gets is the share of the members of the class; a table of suppressed rows tells him nothing. Where all
pairs are too many, a row is dealt to the nearest people of a block: of consistent cells the very ones, where somebody
fits it.

Under :math:`(ε, δ)`-differential privacy every attack that knows all else keeps to :math:`TPR ≤ e^ε FPR + δ`, and the
same of the opposite answers, so that its advantage is at most :math:`(e^ε - 1 + 2δ)/(e^ε + 1)`.

From which score on somebody is said to be a member is chosen by the truth of the people given. What it is worth on
others is measured on others: half of the people choose it, and the other half tell its TPR and FPR, with limits.

Status: points, area and advantage of the people given are exact, ties too (*tested*); that no intruder does better than
one who knows the shares, and the bounds, are *proved*. Who deals rows does one thing that can be done, not the best.
The limits are *proved* for people drawn at random (Clopper and Pearson 1934, 97.5 % for each of TPR and FPR, so 95 %
for both).

References
----------
J. Neyman, E. Pearson, "On the problem of the most efficient tests of statistical hypotheses", 1933.
P. Kairouz, S. Oh, P. Viswanath, "The composition theorem for differential privacy", ICML 2015, theorem 2.1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.blocked import BlockedFile
from privrisk_spark.extensions.attack.kernels.learned.aggregates import WeightedMean
from privrisk_spark.extensions.attack.kernels.learned.searched import all_distances, in_blocks
from privrisk_spark.extensions.attack.kernels.nearest import Linked, SearchedFile, tie
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.bounds import TOLERANCE
from privrisk_spark.kernels.numeric.binomial_limits import lower_limit, upper_limit

__all__ = ["Bound", "HeldOut", "Membership", "dealt", "dealt_in_blocks", "held_out", "membership"]

CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Membership:
    """How well a score tells members from others.

    Attributes
    ----------
    members, others : float
        People.
    score : ndarray of float64, shape (t,)
        Distinct scores, the highest first: who has this one or a higher one is said to be a member.
    true_positives, false_positives : ndarray of float64, shape (t + 1,)
        Shares of the members and of the others said to be members; at first nobody is, at last everybody.
    """

    members: float
    others: float
    score: FloatArray
    true_positives: FloatArray
    false_positives: FloatArray

    @property
    def advantage(self) -> float:
        """Greatest TPR - FPR, in [0, 1]; 0 of an intruder who guesses."""
        return float((self.true_positives - self.false_positives).max())

    @property
    def reversed_advantage(self) -> float:
        """The same of an attacker who takes those with the lowest scores for members."""
        return float((self.false_positives - self.true_positives).max())

    @property
    def area(self) -> float:
        """Area under the points: a member has a higher score than somebody else, ties count half; 1/2 by guessing."""
        width = np.diff(self.false_positives)
        height = (self.true_positives[1:] + self.true_positives[:-1]) / 2
        return math.fsum((width * height).tolist())

    def within(self, bound: Bound) -> BoolArray:
        """Which points keep to a bound, but for rounding; ndarray of bool, shape (t + 1,)."""
        most = bound.positives(self.false_positives)
        return np.asarray(self.true_positives <= most + TOLERANCE)


@dataclass(frozen=True)
class HeldOut:
    """What an attack on membership is worth on people it was not chosen by.

    Attributes
    ----------
    members, others : float
        People it was tried on.
    true_positives, false_positives : float
        Shares of them said to be members.
    low, high : float
        Limits of the advantage with 95 % confidence.
    """

    members: float
    others: float
    true_positives: float
    false_positives: float
    low: float
    high: float

    @property
    def advantage(self) -> float:
        """TPR - FPR; below 0 if it does worse than guessing."""
        return self.true_positives - self.false_positives


@dataclass(frozen=True)
class Bound:
    """What differential privacy allows.

    Attributes
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1].

    Raises
    ------
    InputError
        If they are not so.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Refuse what is no guarantee."""
        if not (self.epsilon >= 0 and 0 <= self.delta <= 1):
            raise InputError(
                f"Membership: epsilon must be at least 0 and delta in [0, 1], not {self.epsilon} and {self.delta}."
            )

    def positives(self, false_positives: FloatArray) -> FloatArray:
        """Greatest TPR at each FPR, ndarray of float64 of one shape.

        The opposite answers keep to it too: ``1 - FPR <= e^ε (1 - TPR) + δ``.
        """
        few = np.exp(min(self.epsilon, 700.0)) * false_positives + self.delta
        many = 1.0 - math.exp(-self.epsilon) * (1.0 - self.delta - false_positives)
        return np.asarray(np.minimum(np.minimum(few, many), 1.0))

    @property
    def advantage(self) -> float:
        """Greatest TPR - FPR, ``(e^ε - 1 + 2δ) / (e^ε + 1)``."""
        low = math.exp(-self.epsilon)
        return (1.0 - low + 2.0 * self.delta * low) / (1.0 + low)

    @property
    def area(self) -> float:
        """Greatest area under the points."""
        meet = (1.0 - self.delta) / (1.0 + math.exp(min(self.epsilon, 700.0)))
        corners = np.array([0.0, meet, 1.0 - self.delta, 1.0])
        height = self.positives(corners)
        return float(((height[1:] + height[:-1]) / 2 * np.diff(corners)).sum())


def membership(members: FloatArray, others: FloatArray, score: FloatArray | None = None) -> Membership:
    """Tell members from others.

    Parameters
    ----------
    members, others : ndarray of float64, shape (n,)
        Of the people who are alike to the intruder; whole numbers, or expected ones where it is drawn who is released.
        At least one of each in all.
    score : ndarray of float64, shape (n,), optional
        Of each group. If not given, the share of members in it, which is the best there is, and more than anybody knows
        who has not been told: it rises with the likelihood ratio, and of whole numbers equal shares are equal.

    Raises
    ------
    InputError
        If a number is below 0, a score is NaN, or there is no member or nobody else.
    """
    if members.shape != others.shape or (members < 0).any() or (others < 0).any():
        raise InputError("Membership: groups need members and others, at least 0 of each.")
    total_members, total_others = math.fsum(members.tolist()), math.fsum(others.tolist())
    if not total_members > 0 or not total_others > 0:
        raise InputError("Membership: there must be people who are in the release, and people who are not.")
    people = members + others
    there = people > 0
    given = members[there] / people[there] if score is None else score[there]
    if np.isnan(given).any():
        raise InputError("Membership: a score must be a number.")
    distinct, place = np.unique(-given, return_inverse=True)
    hits, misses = np.zeros(len(distinct)), np.zeros(len(distinct))
    np.add.at(hits, place.reshape(-1), members[there])
    np.add.at(misses, place.reshape(-1), others[there])
    return Membership(
        total_members,
        total_others,
        np.asarray(-distinct),
        _cumulated(hits / total_members),
        _cumulated(misses / total_others),
    )


def held_out(
    chosen_members: FloatArray, chosen_others: FloatArray, members: FloatArray, others: FloatArray, score: FloatArray
) -> HeldOut | None:
    """Choose by some people from which score on somebody is said to be a member, and try it on others.

    Parameters
    ----------
    chosen_members, chosen_others : ndarray of float64, shape (n,)
        Of the groups of people who are alike, those by whom it is chosen; whole numbers or expected ones.
    members, others : ndarray of float64, shape (n,)
        Those on whom it is tried.
    score : ndarray of float64, shape (n,)
        Of each group. Of the thresholds of greatest advantage the highest is taken.

    Returns
    -------
    HeldOut or None
        None where either half lacks a whole member or a whole other.
    """
    totals = [math.fsum(one.tolist()) for one in (chosen_members, chosen_others, members, others)]
    if min(totals) < 1:
        return None
    chosen = membership(chosen_members, chosen_others, score)
    best = int(np.argmax(chosen.true_positives - chosen.false_positives))
    said = score >= chosen.score[best - 1] if best else np.zeros(len(score), dtype=np.bool_)
    low, share, high = [], [], []
    for people, total in zip((members, others), totals[2:], strict=True):
        hits = math.fsum(people[said].tolist())
        below, above = _limits(hits, total)
        low.append(below)
        share.append(hits / total)
        high.append(above)
    return HeldOut(totals[2], totals[3], share[0], share[1], low[0] - high[1], high[0] - low[1])


def _limits(hits: float, total: float) -> tuple[float, float]:
    """Limits of a share with 97.5 % confidence; expected numbers are rounded away from it."""
    alpha, trials = (1 - CONFIDENCE) / 4, math.floor(total + 1e-9)
    whole = round(hits)
    down, up = (whole, whole) if abs(hits - whole) < 1e-9 * total else (math.floor(hits), math.ceil(hits))
    down, up = max(down - (math.ceil(total) - trials), 0), min(up, trials)
    low = float(lower_limit(np.array([down]), trials, alpha)[0])
    return low, float(upper_limit(np.array([up]), trials, alpha)[0])


def dealt(people: SearchedFile, known: IntArray, rows: LongArray) -> FloatArray:
    """Deal rows to the people nearest to them, in equal parts.

    Parameters
    ----------
    people : SearchedFile
        Distinct ones, with how many are alike.
    known : ndarray of int32, shape (m, k)
        Nodes of the distinct rows.
    rows : ndarray of int64, shape (m,)
        With each.

    Returns
    -------
    ndarray of float64, shape (p,)
        What each single one of the people gets.
    """
    found = np.zeros(len(people.rows))
    for part, _, near in _nearest(people, known):
        found += (rows[part] / (near @ people.rows)) @ near
    return found


def dealt_in_blocks(people: BlockedFile, known: IntArray, rows: LongArray) -> tuple[FloatArray, Linked, BoolArray]:
    """Deal rows to the people nearest to them of those in their blocks.

    Parameters
    ----------
    people, known, rows
        As :func:`dealt` takes them.

    Returns
    -------
    got : ndarray of float64, shape (p,)
        What each single one of the people gets.
    linked : Linked
        To whom each distinct row is dealt.
    complete : ndarray of bool, shape (m,)
        Whether it is proved that a row is dealt to the very people as by :func:`dealt`.
    """
    m, got = len(known), np.zeros(len(people.file.rows))
    distance, complete = np.zeros(m), np.zeros(m, dtype=np.bool_)
    alike, first = (np.zeros(m, dtype=np.int64) for _ in range(2))
    for those, candidates, beyond in people.compared(known):
        file = people.file.among(candidates)
        for part, least, near in _nearest(file, known[those]):
            here, tied = those[part], near @ file.rows
            got[candidates] += (rows[here] / tied) @ near
            distance[here], alike[here], first[here] = least, tied, candidates[near.argmax(axis=1)]
            complete[here] = tie(least) < beyond[part]
    return got, Linked(distance, alike, first), complete


def _nearest(people: SearchedFile, known: IntArray) -> Iterator[tuple[slice, FloatArray, BoolArray]]:
    """Yield which of the rows, their least distances, and which people are at it."""
    columns = [np.ascontiguousarray(people.cells[:, i]) for i in range(people.cells.shape[1])]
    for part, compared in in_blocks(people.differences, columns, known):
        every = all_distances(WeightedMean(people.weights), compared)
        least = every.min(axis=1)
        yield part, least, every <= tie(least)[:, None]


def _cumulated(shares: FloatArray) -> FloatArray:
    """Shares up to each one, from nobody to everybody, without what rounding adds."""
    total = np.minimum(np.concatenate([[0.0], np.cumsum(shares)]), 1.0)
    total[-1] = 1.0
    return np.asarray(total)
