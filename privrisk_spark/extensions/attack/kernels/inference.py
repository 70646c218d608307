"""What an intruder learns of a sensitive value from the class he finds somebody in, without finding the row.

Somebody is one of the members of a class of the protected table. If all of them hold one value, it is certain
(homogeneity attack, Machanavajjhala et al. 2006); otherwise the intruder guesses the most frequent one, and of equally
frequent ones he draws one. What he would guess without a class, by the marginal of the table, is the baseline.

An intruder who is a member himself takes his own row away first (external knowledge, T20: HYU, the only one of three
with a heart attack, learns the illness of the two others).

All numbers come from counts as whole numbers, so that ties are exact. Status: *tested*. They are exact where every
member holds one value; individuals who hold several are those of
:mod:`~privrisk_spark.extensions.attack.kernels.individuals`.

References
----------
A. Machanavajjhala, J. Gehrke, D. Kifer, M. Venkitasubramaniam, "l-diversity: Privacy beyond k-anonymity", ICDE 2006.
V. Torra, "Privacy models and disclosure risk" (2020, T20), attacks on k-anonymity: homogeneity and external knowledge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns, homogeneity
from privrisk_spark.kernels.numeric.distinct import distinct_rows

__all__ = [
    "Against",
    "Inferred",
    "at_values",
    "certain_for_others",
    "guessed",
    "marginal_guess",
    "of_known_values",
    "without_own_row",
]

Against = Literal["worst", "drawn"]
"""Which of several intruders, or pieces of knowledge, is looked at: the best one for each victim, or a random one."""

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, eq=False)
class Inferred:
    """What is inferred of the people in each class.

    Attributes
    ----------
    people : ndarray of int64, shape (m,)
        Who is looked for in each class.
    candidates : ndarray of int64, shape (m,)
        Members of each class.
    certain : ndarray of float64, shape (m,)
        Probability that the value of one of the people is certain, and is what the intruder takes it for.
    right : ndarray of float64, shape (m,)
        Probability that his best guess is right; at least ``certain``.
    """

    people: LongArray
    candidates: LongArray
    certain: FloatArray
    right: FloatArray

    @property
    def disclosed(self) -> Found:
        """People whose value is certain, with limits."""
        return found(self.certain, self.people)

    @property
    def guessed(self) -> Found:
        """People whose value is guessed rightly, with limits."""
        return found(self.right, self.people)


def of_known_values(
    runs: SensitiveRuns, truth: SensitiveRuns, missing: int
) -> tuple[SensitiveRuns, SensitiveRuns] | None:
    """Leave missing values out of classes, and the people out whose value is missing: nothing is learned of it.

    Parameters
    ----------
    runs, truth : SensitiveRuns
        As :func:`guessed` takes them.
    missing : int
        Code of the missing value.

    Returns
    -------
    tuple of SensitiveRuns or None
        Of the classes in which somebody has a known value; None if there is none. If a class shows nothing but missing
        values, it keeps them.
    """
    there = ~truth.holds_only(missing)
    if not there.any():
        return None
    known = truth.where(there).without(missing)
    return (known if truth is runs else runs.where(there).without(missing)), known


def guessed(runs: SensitiveRuns, truth: SensitiveRuns | None = None) -> Inferred:
    """Infer the value of the members of each class, or of the people who are taken for members.

    Parameters
    ----------
    runs : SensitiveRuns
        What the protected table shows of each class.
    truth : SensitiveRuns, optional
        What the people hold who are looked for in each class; the members themselves if not given.

    Raises
    ------
    InputError
        If ``truth`` has other classes.
    """
    own = runs if truth is None else truth
    _refuse_other_classes(own, runs)
    share = at_values(runs, own, own.held_by)
    of_all = runs.count == runs.members[runs.owner]
    best = _is_most_frequent(runs)
    return Inferred(
        people=own.members,
        candidates=runs.members,
        certain=runs.greatest(np.where(of_all, share, 0.0)),
        right=runs.added(np.where(best, share, 0.0)) / runs.added(best.astype(np.int64)),
    )


def at_values(truth: SensitiveRuns, runs: SensitiveRuns, of_runs: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Look up, for what people truly hold, what is said of the value in their class.

    Parameters
    ----------
    truth : SensitiveRuns
        What the people hold who are looked for in each class.
    runs : SensitiveRuns
        Of the same classes, what the protected table shows.
    of_runs : ndarray, shape (n_runs,)
        Of each run of `runs`.

    Returns
    -------
    ndarray, shape (n_truth,)
        Of each run of `truth`; 0 where the class does not show the value.

    Raises
    ------
    InputError
        If they have not as many classes.
    """
    _refuse_other_classes(truth, runs)
    if truth is runs:
        return of_runs
    values = 1 + max(int(of.value.max(initial=0)) for of in (truth, runs))
    keys, wanted = runs.owner * values + runs.value, truth.owner * values + truth.value
    place = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    if not len(keys):
        return np.zeros(len(wanted), dtype=of_runs.dtype)
    return np.where(keys[place] == wanted, of_runs[place], np.zeros((), dtype=of_runs.dtype))


def _refuse_other_classes(truth: SensitiveRuns, runs: SensitiveRuns) -> None:
    if truth.n_classes != runs.n_classes:
        raise InputError(
            f"Attribute inference: people are looked for in {truth.n_classes} classes, but the table has "
            f"{runs.n_classes}."
        )


def marginal_guess(truth: SensitiveRuns, marginal: LongArray) -> FloatArray:
    """How often the most frequent value of the whole table is right in each class: a guess without any class.

    Parameters
    ----------
    truth : SensitiveRuns
        What the people of each class hold.
    marginal : ndarray of int64, shape (v,)
        Rows, or persons, of the table with each value; one at least. Of equally frequent ones one is drawn.

    Returns
    -------
    ndarray of float64, shape (m,)
        Its mean over the people is the baseline.

    Raises
    ------
    InputError
        If the table has no row.
    """
    if not len(marginal) or marginal.max() < 1:
        raise InputError("Attribute inference: the table must have at least 1 row.")
    likeliest = np.append(marginal == marginal.max(), False)
    there = likeliest[np.minimum(truth.value, len(marginal))]
    return np.asarray(truth.added(np.where(there, truth.held_by, 0.0)) / np.count_nonzero(likeliest))


def without_own_row(runs: SensitiveRuns, against: Against) -> Inferred:
    """Infer the value of the members of each class for a member who takes his own row away.

    Parameters
    ----------
    against : {"worst", "drawn"}
        For each victim the member who learns most, or a random other member.

    Returns
    -------
    Inferred
        A class of one has no other member: there it is what everybody infers. At least what :func:`guessed` finds.

    Notes
    -----
    Of ``n`` members ``c`` hold a value. Without one row all others hold it if ``c = n``, or ``c = n - 1`` and the row
    is the odd one. A drawn row is the odd one of ``n`` with probability ``1/n``. The most frequent value, held by
    ``r``, is right for a share ``r/n`` still if it is the only one (rows with it are taken away with it), and for
    ``r/(n - 1)`` if others tie with it, as a row of any value leaves one that is held by ``r``.
    """
    n, most = runs.members, _greatest_count(runs)
    all_hold = homogeneity(runs) == 1
    but_one = runs.added((runs.count == (n - 1)[runs.owner]).astype(np.int64))
    tied = runs.added(_is_most_frequent(runs).astype(np.int64))
    if against == "drawn":
        certain = np.minimum(but_one, n) / n
        share = np.where(tied > 1, most / np.maximum(n - 1, 1), most / n)
    else:
        certain = np.minimum(but_one * (n - 1), n) / n
        # The victim's value is the most frequent one, or ties with it once a row of that one is gone.
        first, of_first = _is_most_frequent(runs), tied[runs.owner]
        follows = (runs.count == most[runs.owner] - 1) & (of_first == 1)
        of_value = np.where(first, 1.0 / np.maximum(of_first - 1, 1), 0.0)
        of_value[follows] = 1.0 / (1 + _equally_frequent(runs)[follows])
        share = runs.added(of_value * runs.count) / runs.rows
    certain = np.where(all_hold, 1.0, certain)
    return Inferred(n, n, certain, np.maximum(np.where(all_hold, 1.0, np.minimum(share, 1.0)), certain))


def certain_for_others(runs: SensitiveRuns, truth: SensitiveRuns) -> Found:
    """Count the people whose value is certain for the member of their class who learns most by his own row.

    Parameters
    ----------
    runs : SensitiveRuns
        What the protected table shows of each class.
    truth : SensitiveRuns
        What the people hold who are looked for in each class; `runs` itself if those are the members.

    Raises
    ------
    InputError
        If there are not as many classes.
    """
    if truth is runs:
        return without_own_row(runs, "worst").disclosed
    # All others hold a value that all members hold, or all but one of them.
    sure = (runs.count >= runs.members[runs.owner] - 1).astype(np.float64)
    return found(at_values(truth, runs, sure), truth.count)


def _greatest_count(runs: SensitiveRuns) -> LongArray:
    """How many members hold the most frequent value of each class."""
    return np.maximum.reduceat(runs.count, runs.class_start[:-1]) if runs.n_classes else runs.count[:0]


def _is_most_frequent(runs: SensitiveRuns) -> BoolArray:
    return np.asarray(runs.count == _greatest_count(runs)[runs.owner])


def _equally_frequent(runs: SensitiveRuns) -> LongArray:
    """Values of the class that are as frequent as each, itself among them."""
    first, member = distinct_rows([runs.owner, runs.count])
    return np.bincount(member, minlength=len(first))[member].astype(np.int64)
