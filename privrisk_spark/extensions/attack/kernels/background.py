"""Background knowledge: an intruder knows of somebody that some values are not his (Machanavajjhala et al. 2006).

He leaves the members of the class out who hold these values, and infers the value from the others: Umeko is Japanese,
and it is unlikely that she has heart disease, so that in her class of two illnesses it is the other one.

Against a class with ``d`` values whoever knows ``d - 1`` false ones is certain. What is worst is that he knows those
that help him most; what may be expected is that he knows a random choice from the values of the table.

Status: *tested*; exact where every member holds one value. Individuals who hold several are those of
:mod:`~privrisk_spark.extensions.attack.kernels.individuals`.

References
----------
A. Machanavajjhala, J. Gehrke, D. Kifer, M. Venkitasubramaniam, "l-diversity: Privacy beyond k-anonymity", ICDE 2006.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.extensions.attack.kernels.inference import Against, Inferred, at_values
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns, homogeneity
from privrisk_spark.kernels.numeric.distinct import distinct_rows

__all__ = ["certain_if_told", "excluding"]


def excluding(runs: SensitiveRuns, known: int, against: Against, *, values: int) -> Inferred:
    """Infer the value of the members of each class where some values are known to be false.

    Parameters
    ----------
    known : int
        False values the intruder knows of each victim, at least 0; all of them if there are fewer.
    against : {"worst", "drawn"}
        The values that help most, or a random choice of so many of the table's values other than the victim's.
    values : int
        Different values of the table.

    Returns
    -------
    Inferred
        With 0 known, what :func:`~privrisk_spark.extensions.attack.kernels.inference.guessed` finds. Never less with
        more known.

    Raises
    ------
    InputError
        If fewer than 0 are known, or a class has more values than the table.

    Notes
    -----
    Let ``G`` values of the class be more frequent than the victim's and ``E`` as frequent, his own among them. His own
    is guessed once all ``G`` are left out, with probability ``1/(E - j)`` if ``j`` of the equally frequent others are
    left out too. Of a random choice ``j`` of them are with the probability of a hypergeometric draw.
    """
    distinct = np.diff(runs.class_start)
    if known < 0:
        raise InputError(f"Background knowledge: at least 0 false values must be known, not {known}.")
    if runs.n_classes and int(distinct.max()) > values:
        raise InputError(f"Background knowledge: a class has more values than the {values} of the whole table.")
    most = min(known, max(values - 1, 0))
    others = homogeneity(runs) - 1
    more, equal = _ranks(runs)
    if against == "worst":
        certain = np.asarray((others <= most).astype(np.float64))
        of_value = np.where(more <= most, 1.0 / np.maximum(equal - np.maximum(most - more, 0), 1), 0.0)
    else:
        certain = _looked_up([others], lambda d: _all_chosen(d, most, values - 1))
        of_value = _looked_up([more, equal], lambda g, e: _led(g, e, most, values - 1))
    right = runs.added(of_value * runs.count) / runs.rows
    # Of one value a member the means are these already; of several, pairs count for less than members.
    least = np.maximum(certain, runs.greatest(runs.held_by))
    return Inferred(runs.members, runs.members, certain, np.minimum(np.maximum(right, least), 1.0))


def certain_if_told(runs: SensitiveRuns, truth: SensitiveRuns, known: int, *, values: int) -> Found:
    """Count the people whose value is certain for somebody who knows the false values that help most.

    Parameters
    ----------
    runs : SensitiveRuns
        What the protected table shows of each class.
    truth : SensitiveRuns
        What the people hold who are looked for in each class; `runs` itself if those are the members.
    known : int
        False values that are known, at least 0.
    values : int
        Different values of the table.

    Raises
    ------
    InputError
        If there are not as many classes, or as :func:`excluding`.
    """
    sure = excluding(runs, known, "worst", values=values).certain
    if truth is runs:
        return found(sure, runs.members)
    # Of whoever holds what his class does not show, something else is taken for certain.
    return found(at_values(truth, runs, sure[runs.owner]), truth.count)


def _ranks(runs: SensitiveRuns) -> tuple[LongArray, LongArray]:
    """Values of the class that are more frequent than each, and as frequent, itself among them."""
    first, member = distinct_rows([runs.owner, -runs.count])
    equal = np.bincount(member, minlength=len(first)).astype(np.int64)
    before = np.cumsum(equal) - equal
    return (before - runs.class_start[runs.owner[first]])[member], equal[member]


def _looked_up(columns: list[LongArray], of: Callable[..., Fraction]) -> FloatArray:
    first, member = distinct_rows(columns)
    rows = zip(*(column[first].tolist() for column in columns), strict=True)
    return np.array([float(of(*row)) for row in rows])[member] if len(first) else np.zeros(0)


def _all_chosen(wanted: int, chosen: int, among: int) -> Fraction:
    """Probability that a choice of so many among so many holds all that are wanted."""
    if wanted > chosen:
        return Fraction(0)
    return Fraction(math.comb(among - wanted, chosen - wanted), math.comb(among, chosen))


def _led(more: int, equal: int, chosen: int, among: int) -> Fraction:
    """Probability of the right guess: all more frequent values are chosen, and ties are broken by a draw."""
    total, rest = Fraction(0), among - more - (equal - 1)
    for tied in range(equal):
        left = chosen - more - tied
        if 0 <= left <= rest:
            total += Fraction(math.comb(equal - 1, tied) * math.comb(rest, left), equal - tied)
    return total / math.comb(among, chosen)
