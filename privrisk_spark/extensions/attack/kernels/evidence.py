"""What an attack has found: people, with an interval, beside what guessing finds and what was predicted.

A link to ``t`` tied rows, one of which is the person's own, is right with probability ``1/t``: ties count fractionally
(T20). The people found are the sum of these probabilities, the mean for an intruder who draws among ties.

Status: the limits are *proved* for people who are drawn at random, and who are found or not (Clopper and Pearson 1934).
Fractions are rounded down for the lower limit and up for the upper one.

Where it is drawn who is in a file, and not known, people count with the probability that they are; those tried are
their sum, rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.numeric.binomial_limits import lower_limit, upper_limit

__all__ = ["Found", "Outcomes", "PersonOutcomes", "PredictedPersons", "deciles", "found"]

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Found:
    """How many people were found.

    Attributes
    ----------
    tried : int
        People whose links were tried.
    correct : float
        Those found: the sum of their probabilities of being linked rightly.
    share : float
        Of those tried, before they are rounded; 0 if none was tried.
    low, high : float
        Limits of the share with 95 % confidence.
    """

    tried: int
    correct: float
    share: float
    low: float
    high: float


def found(probability: FloatArray, people: LongArray | FloatArray) -> Found:
    """Sum up links.

    Parameters
    ----------
    probability : ndarray of float64, shape (n,)
        Of being right, in [0, 1].
    people : ndarray of int64 or float64, shape (n,)
        With each; expected ones may be fractions.

    Raises
    ------
    InputError
        If a probability is none.
    """
    if len(probability) and not (probability.min() >= 0 and probability.max() <= 1):
        raise InputError("Record linkage: a probability must be in [0, 1].")
    expected = math.fsum(people.tolist())
    tried = round(expected)
    if not tried:
        return Found(0, 0.0, 0.0, 0.0, 1.0)
    # Rounded once, so that the order of the links does not matter.
    correct = math.fsum((probability * people).tolist())
    whole = round(correct)
    down, up = (whole, whole) if abs(correct - whole) < 1e-9 * tried else (math.floor(correct), math.ceil(correct))
    down, up = min(down, tried), min(up, tried)
    alpha = (1 - CONFIDENCE) / 2
    low = float(lower_limit(np.array([down]), tried, alpha)[0])
    high = float(upper_limit(np.array([up]), tried, alpha)[0])
    return Found(tried, correct, correct / expected, low, high)


def deciles(predicted: FloatArray, people: LongArray | FloatArray) -> LongArray:
    """Tenth of the people each prediction is in, the lowest first.

    Equal predictions stay together: a tenth may then hold more or fewer than a tenth of the people, or nobody.

    Parameters
    ----------
    predicted : ndarray of float64, shape (n,)
    people : ndarray of int64 or float64, shape (n,)
        With each.

    Returns
    -------
    ndarray of int64, shape (n,)
        0 to 9, by the middle one of the people with an equal prediction.
    """
    values, place = np.unique(predicted, return_inverse=True)
    of_value = np.zeros(len(values), dtype=people.dtype)
    np.add.at(of_value, place.reshape(-1), people)
    below = np.cumsum(of_value) - of_value
    total = of_value.sum() or 1
    tenth = np.minimum((2 * below + of_value) * 10 // (2 * total), 9)
    return np.asarray(tenth[place.reshape(-1)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """How the links of all records came out, those that came out alike together.

    Attributes
    ----------
    people : ndarray of float64, shape (n,)
        Expected ones where it is not known which of them there is something to begin with of.
    probability : ndarray of float64, shape (n,)
        That the link of each is right.
    alike : ndarray of int64, shape (n,)
        Rows of the file that look like its own; 0 where the file lacks it.
    present : ndarray of float64, shape (n,)
        Probability that its own is in the file.
    consistent : ndarray of int64, shape (n,)
        Dictionary rows it was decided by; -1 where that is not known.
    """

    people: FloatArray
    probability: FloatArray
    alike: LongArray
    present: FloatArray
    consistent: LongArray


@dataclass(frozen=True, eq=False)
class PersonOutcomes:
    """How the links of all persons came out, those with as many rows together.

    Attributes
    ----------
    rows : ndarray of int64, shape (n,)
        Rows of each person that were linked.
    there : ndarray of bool, shape (n,)
        Whether the file in which was searched has rows of theirs.
    persons : ndarray of int64, shape (n,)
    found : ndarray of float64, shape (n,)
        Mean probability that one of them is found.
    linked_rows : int
        Rows of all of them.
    right_rows : float
        Those expected to be linked to a row of the same person.
    guessed : float
        Persons that somebody finds who draws a candidate for each row.
    """

    rows: LongArray
    there: BoolArray
    persons: LongArray
    found: FloatArray
    linked_rows: int
    right_rows: float
    guessed: float
    predicted: PredictedPersons


@dataclass(frozen=True, eq=False)
class PredictedPersons:
    """What is predicted of persons who have rows in the file, those of whom about the same is together.

    Attributes
    ----------
    persons : ndarray of int64, shape (b,)
    predicted, found : ndarray of float64, shape (b,)
        Mean probability that who knows the classes of all of their rows finds them, and that they were found.
    """

    persons: LongArray
    predicted: FloatArray
    found: FloatArray
