"""What a planned attack means for records: whether it is started, how often it succeeds, and the risk.

Source: Xia et al., Process-driven data privacy, CIKM 2015 (X15); the process and its solution are in
:mod:`privrisk_spark.kernels.adversary.process`. All depends on a record through its group size and, where the adversary
does not know that, through the binomial ``(n, p)`` he believes it to follow: compute for distinct ones and join.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.adversary.process import TOLERANCE, Attack, Solution
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray


def payoff_of_known(solution: Solution, group_sizes: LongArray) -> FloatArray:
    """Return ``W(g)``: what accessing pays an adversary who knows the group size.

    Parameters
    ----------
    group_sizes : ndarray of int64, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n,)
        May be negative; he accesses if it exceeds ``TOLERANCE``.
    """
    return solution.accessed[solution.within(group_sizes)]


def payoff_of_belief(solution: Solution, rows: LongArray, densities: FloatArray) -> FloatArray:
    """Return ``W(n, p)``: what accessing pays an adversary who believes the group size to be binomial (X15 eq 6).

    The logarithms of the probabilities are summed by their recurrence
    ``l_k = l_{k-1} + log((n - k + 1)/k) + log p - log(1 - p)`` from ``l_0 = n log(1 - p)``; differences of
    ``log Γ`` would lose 1e-8 at six million rows. Only group sizes worth anything are summed.

    Parameters
    ----------
    rows : ndarray of int64, shape (n,)
        Rows of the identified table, at least 0.
    densities : ndarray of float64, shape (n,)
        Probability in [0, 1] that a row agrees with the record. Equal pairs give equal values: pass distinct ones.

    Returns
    -------
    ndarray of float64, shape (n,)
        May be negative; he accesses if it exceeds ``TOLERANCE``.

    Raises
    ------
    InputError
        If a value is outside its range, or groups were not solved that the adversary believes possible.
    """
    if not ((densities >= 0) & (densities <= 1)).all():
        raise InputError("A probability density must be from 0 to 1.")
    if (rows < 0).any():
        raise InputError("The rows of an identified table must be at least 0.")
    solution.within(rows)
    linked = solution.linked
    inner = (densities > 0) & (densities < 1)
    n, p = rows[inner].astype(np.float64), densities[inner]
    expected = np.zeros(len(p))
    log = n * np.log1p(-p)
    odds = np.log(p) - np.log1p(-p)
    for k in range(1, len(linked)):
        # beyond n the factor is 0 and the logarithm stays at -inf
        with np.errstate(divide="ignore"):
            log += np.log(np.maximum(n - k + 1, 0.0) / k) + odds
        if linked[k] > 0:
            expected += np.exp(log) * linked[k]
    total = np.zeros(len(rows))
    total[inner] = expected
    certain = densities == 1
    total[certain] = linked[solution.within(rows[certain])]
    return solution.attack.gamma * total - solution.attack.cost_access


@dataclass(frozen=True, eq=False)
class Exploitation:
    """What an adversary does once he has accessed the table.

    Attributes
    ----------
    probability : ndarray of float64, shape (n,)
        That he succeeds.
    planned : ndarray of float64, shape (n,)
        Mean number of candidates he exploits if none of them is the right one, over his detections: a whole number
        where fines paid do not matter. ``probability = π planned / g``.
    made : ndarray of float64, shape (n,)
        Mean number of exploits he makes: a success ends them.
    """

    probability: FloatArray
    planned: FloatArray
    made: FloatArray


def exploitation(solution: Solution, group_sizes: LongArray) -> Exploitation:
    """Follow the adversary's plan from the access of the table on (X15 §5.2, with the actual group sizes).

    Detections do not depend on where the record's person stands among the candidates, so the probability to get to the
    exploit number ``a`` is that of the detections which lead there times ``P(T >= a) = 1 - π a/g``, and the probability
    to succeed with it is ``π/g`` times the first. Nothing is discounted.

    Parameters
    ----------
    group_sizes : ndarray of int64, shape (n,)
    """
    positions, back = np.unique(solution.within(group_sizes), return_inverse=True)
    attack = solution.attack
    sizes = positions[solution.linked[positions] > TOLERANCE]  # others are not linked
    planned, made = np.zeros((2, len(sizes)))
    mass = np.zeros((solution.levels, len(sizes)))
    mass[0] = 1.0
    detection = attack.detection(np.arange(len(solution.values)))
    for a in range(int(sizes.max(initial=0))):
        first = int(np.searchsorted(sizes, a, side="right"))
        size = sizes[first:]
        reached = mass[:, first:]
        for fines in range(solution.levels):
            reached[fines] *= solution.exploits(fines, size, size - a)
        if not reached.any():
            break
        # row by row, so that the order of the sum is the same for any number of group sizes
        total = reached[0].copy()
        for row in reached[1:]:
            total += row
        planned[first:] += total
        made[first:] += total * (1.0 - attack.prior * a / size)
        if solution.levels > 1:
            fined = detection[a] * reached[:-1]
            reached[:-1] -= fined
            reached[1:] += fined
    all_planned, all_made, probability = np.zeros((3, len(positions)))
    at = np.searchsorted(positions, sizes)
    all_planned[at] = np.minimum(planned, sizes)
    all_made[at] = made
    probability[at] = attack.prior * (all_planned[at] / sizes)
    return Exploitation(probability[back], all_planned[back], all_made[back])


def reidentification_probability(
    solution: Solution, group_sizes: LongArray, access: BoolArray | None = None
) -> FloatArray:
    """Return ``P_reid`` (X15 eq 5).

    Parameters
    ----------
    group_sizes : ndarray of int64, shape (n,)
        Actual ones; repeated ones are followed once.
    access : ndarray of bool, shape (n,), optional
        Whether the adversary accesses the table, if he does not know the group size
        (``payoff_of_belief(…) > TOLERANCE``). Left out, he knows it.

    Returns
    -------
    ndarray of float64, shape (n,)
        In [0, π].
    """
    if access is None:
        access = payoff_of_known(solution, group_sizes) > TOLERANCE
    return np.where(access, exploitation(solution, group_sizes).probability, 0.0)


def baseline(attack: Attack, group_sizes: LongArray) -> FloatArray:
    """Return ``P_reid`` of an adversary who exploits one candidate or none (X15 eq 7).

    He decides once, on ``G π/g - d(0) C_p - C_d - C_l - C_e``, undiscounted.

    Parameters
    ----------
    group_sizes : ndarray of int64, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n,)
        ``π/g`` or 0.
    """
    chance = np.where(group_sizes > 0, attack.prior / np.maximum(group_sizes, 1), 0.0)
    spent = float(attack.detection(0)) * attack.penalty + attack.cost_access + attack.cost_link + attack.cost_exploit
    return np.where(attack.gain * chance - spent > TOLERANCE, chance, 0.0)


@dataclass(frozen=True, eq=False)
class Assessment:
    """What the attack means for each of n records.

    Attributes
    ----------
    p_reid : ndarray of float64, shape (n,)
        Probability of re-identification, in [0, π].
    expected_payoff : ndarray of float64, shape (n,)
        What the adversary expects before he starts; 0 where he does not.
    exploits : ndarray of float64, shape (n,)
        Candidates he means to exploit (``planned`` of :class:`Exploitation`); 0 where he does not start.
    p_reid_baseline : ndarray of float64, shape (n,)
        Of an adversary who exploits at most once.
    """

    p_reid: FloatArray
    expected_payoff: FloatArray
    exploits: FloatArray
    p_reid_baseline: FloatArray


def assess(
    solution: Solution, group_sizes: LongArray, rows: LongArray | None = None, densities: FloatArray | None = None
) -> Assessment:
    """Assess records by their group sizes, known to the adversary or not.

    All depends on the group size and, where it is not known, on the pair ``(n, p)``: assess distinct ones and join.

    Parameters
    ----------
    solution : Solution
    group_sizes : ndarray of int64, shape (n,)
        Actual ones.
    rows, densities : ndarray of int64 and of float64, shape (n,), optional
        Both, if the adversary does not know the group size, as for :func:`payoff_of_belief`.

    Returns
    -------
    Assessment

    Raises
    ------
    InputError
        If one of ``rows`` and ``densities`` is given without the other.
    """
    if (rows is None) != (densities is None):
        raise InputError("The rows of the identified table and the densities are given both or not at all.")
    if rows is None or densities is None:
        payoff = payoff_of_known(solution, group_sizes)
    else:
        payoff = payoff_of_belief(solution, rows, densities)
    access = payoff > TOLERANCE
    done = exploitation(solution, group_sizes)
    return Assessment(
        p_reid=np.where(access, done.probability, 0.0),
        expected_payoff=np.where(access, payoff, 0.0),
        exploits=np.where(access, done.planned, 0.0),
        p_reid_baseline=baseline(solution.attack, group_sizes),
    )


def risk(probability: FloatArray, loss: FloatArray | float) -> FloatArray:
    """Return ``P_reid`` times the publisher's loss (X15 eq 1).

    Parameters
    ----------
    probability : ndarray of float64, shape (n,)
    loss : float, or ndarray of float64, shape (n,)
        Finite, at least 0.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    losses = np.asarray(loss, dtype=np.float64)
    if not ((losses >= 0) & (losses < np.inf)).all():
        raise InputError("A loss must be a finite number of at least 0.")
    return probability * losses
