"""Re-identification as a planned attack: a Markov decision process of an adversary who may stop at any step.

Source: Xia, Heatherly, Kantarcioglu, Vorobeychik, Wan and Malin, Process-driven data privacy, CIKM 2015 (X15). The
adversary may *access* an identified table at a cost, *link* a published record to the group of ``g`` people in it who
match, and *exploit* these one after another: an exploit succeeds if it hits the record's person, and may be detected
and fined. He does what pays best in expectation. ``P_reid`` is the probability that he succeeds; the risk of the record
is ``P_reid`` times the publisher's loss (X15 eq 1).

With ``r`` of ``g`` candidates left, ``a = g - r`` exploited and ``p`` fines paid, of at most ``n_f``:

    s(g, r)    = 1 / (r + g (1 - π) / π)                  probability of success (X15 eq 3)
    d(a)       = 1 / (1 + exp(-(h0 + h1 a)))              probability of detection (X15 eq 4)
    f(p)       = C_p if p < n_f, else 0;  p⁺ = min(p + 1, n_f)
    Q(g, r, p) = -C_e + γ {s G - d f(p) + (1 - s) [(1 - d) V(g, r - 1, p) + d V(g, r - 1, p⁺)]}
    V(g, r, p) = max(0, Q(g, r, p)),  V(g, 0, p) = 0;  v(g) = V(g, g, 0)
    L(g)       = max(0, -C_l + γ v(g))                    linking
    W          = -C_d + γ L(g)                            access, where g is known
    W          = -C_d + γ Σ_k Binomial(k; n, p) L(k)      access, where g is believed to be binomial (X15 eq 6)

Gain and fine are earned in the state after the exploit, so each is discounted once; a fine is due also for a detected
exploit that succeeded or was the last. Terminating is worth 0, and what pays at most ``TOLERANCE`` is not done. Inside
a group ``r`` only falls, so the values follow by one recurrence and need no linear program.

Facts used here; ``T`` is the number of failures before the success (infinite if the person is not in the table).

- ``P(T = a) = π/g`` for ``a < g``, and ``P(T >= a) = 1 - π a/g``: the factors ``1 - s(g, g - b)`` telescope. Detections
  do not depend on ``T``.
- So, given the detections, whoever plans to stop after ``τ`` exploits earns
  ``Σ_{a<τ} γ^a [γ G π/g - (1 - π a/g)(C_e + γ fine_a)]``. The plan of group ``g + 1``, followed in group ``g`` and cut
  after ``g`` exploits, costs no more at any step, and gains no less, as the mean of ``γ^a`` over ``a < g`` is no less
  than over ``a <= g``. Hence ``v`` never increases from ``g = 1`` on, whatever ``h1``, ``n_f`` and ``π``: the first
  ``g`` with ``v(g) = 0`` ends the table.
- Each exploit costs at least ``c = C_e``, plus ``γ C_p min d`` if every detection is fined. The terms
  ``γ G π/g - c (1 - π a/g)`` rise with ``a``; if their sum over all ``a < g`` is not positive, no sum of the first of
  them is, and by Abel's summation no discounted one. So ``v(g) = 0`` from ``g >= γ π G / (c (1 - π/2))`` on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, ByteArray, FloatArray, LongArray

TOLERANCE = 1e-9
"""An action is taken only if it pays more than this; money."""

_MOST_STATES = 2**31
_PROBES = 32


@dataclass(frozen=True, kw_only=True)
class Attack:
    """What an adversary may win, lose and spend; money in any one unit.

    Attributes
    ----------
    prior : float
        ``π``, probability in (0, 1] that the record's person is in the identified table.
    gain : float
        ``G``, won by a success; at least 0.
    penalty : float
        ``C_p``, one fine; at least 0.
    fines_paid : int or None
        ``n_f``, most fines an adversary ever pays; None if every detection is fined.
    cost_access, cost_link, cost_exploit : float
        ``C_d``, ``C_l`` and ``C_e``; at least 0.
    h0, h1 : float
        Detection: logit of its probability at the first exploit, and what each exploit adds. ``h0`` may be -inf
        (never detected) or inf (always), then ``h1`` must be 0.
    gamma : float
        Discount of one step in (0, 1].

    Raises
    ------
    InputError
        If a parameter is outside its range.
    """

    prior: float
    gain: float
    penalty: float
    fines_paid: int | None
    cost_access: float
    cost_exploit: float
    h0: float
    h1: float = 0.0
    cost_link: float = 0.0
    gamma: float = 0.9

    def __post_init__(self) -> None:
        for name in ("prior", "gamma"):
            value = getattr(self, name)
            if not 0 < value <= 1:
                raise InputError(f"attack.{name} must be more than 0 and at most 1. Got {value}.")
        for name in ("gain", "penalty", "cost_access", "cost_link", "cost_exploit"):
            value = getattr(self, name)
            if not 0 <= value < math.inf:
                raise InputError(f"attack.{name} must be a finite number of at least 0. Got {value}.")
        fines = self.fines_paid
        if fines is not None and (isinstance(fines, bool) or not isinstance(fines, int) or fines < 0):
            raise InputError(
                f"attack.fines_paid must be a whole number of at least 0, or none for no limit. Got {fines}."
            )
        if math.isnan(self.h0):
            raise InputError("attack.h0 must be a number; -inf is never detected, inf always. Got nan.")
        if not math.isfinite(self.h1):
            raise InputError(f"attack.h1 must be a finite number. Got {self.h1}.")
        if math.isinf(self.h0) and self.h1:
            raise InputError(f"attack.h1 must be 0 where attack.h0 is infinite. Got {self.h1}.")

    def detection(self, exploited: npt.ArrayLike) -> FloatArray:
        """Probability that the next exploit is detected (X15 eq 4), after ``exploited`` others; never overflows."""
        with np.errstate(over="ignore"):
            logit = self.h0 + self.h1 * np.asarray(exploited, dtype=np.float64)
        small = np.exp(-np.abs(logit))
        return np.asarray(np.where(logit >= 0, 1.0, small) / (1.0 + small))

    def with_detection(self, probability: float) -> Attack:
        """Return the attack with one probability of detection in [0, 1] for all exploits."""
        if not 0 <= probability <= 1:
            raise InputError(f"The probability of detection must be from 0 to 1. Got {probability}.")
        if probability in (0, 1):
            return replace(self, h0=math.inf if probability else -math.inf, h1=0.0)
        return replace(self, h0=math.log(probability) - math.log1p(-probability), h1=0.0)

    @property
    def most_groups(self) -> int | None:
        """A group size from which on ``v`` is 0, by the costs alone; None if they give no limit."""
        least = self.cost_exploit
        if self.fines_paid is None and self.h1 >= 0:  # with h1 < 0 the probability of detection falls to 0
            least += self.gamma * self.penalty * float(self.detection(0))
        if least * (1 - self.prior / 2) <= 0:
            return 1 if self.gain == 0 else None
        bound = self.gamma * self.prior * self.gain / (least * (1 - self.prior / 2))
        return math.ceil(bound) + 1 if math.isfinite(bound) else None


@dataclass(frozen=True, eq=False)
class Solution:
    """The adversary's best plan for every group size.

    Attributes
    ----------
    values : ndarray of float64, shape (m,)
        ``v(0), …, v(m - 1)``, value of a linked group before the first exploit.
    linked : ndarray of float64, shape (m,)
        ``L(g)``, value once the table was accessed.
    accessed : ndarray of float64, shape (m,)
        ``W(g)``, value of accessing where the group size is known; ``-C_d`` for ``g = 0``.
    complete : bool
        Whether ``v`` is 0 from ``m`` on; otherwise group sizes of ``m`` and more were not solved.
    levels : int
        Numbers of fines paid that are told apart: ``n_f + 1``, or 1 where they do not matter.
    policy : ndarray of uint8, shape (m, levels, ceil(m / 8))
        Whether to exploit: bit ``g`` of row ``[r, p]``, the highest bit of a byte first.
    """

    attack: Attack
    values: FloatArray
    linked: FloatArray
    accessed: FloatArray
    complete: bool
    levels: int
    policy: ByteArray

    @property
    def cut_off(self) -> int | None:
        """``g*``, the least group size with ``v = 0``; None if it was not reached."""
        return len(self.values) if self.complete else None

    @property
    def known_threshold(self) -> int | None:
        """Least group size of at least 1 that is known and not worth access; None if it was not reached."""
        return self._first(self.accessed <= TOLERANCE)

    @property
    def sunk_threshold(self) -> int | None:
        """Least group size of at least 1 not worth linking once access is paid; None if it was not reached."""
        return self._first(self.linked <= TOLERANCE)

    def _first(self, met: BoolArray) -> int | None:
        found = np.flatnonzero(met[1:])
        return int(found[0]) + 1 if len(found) else self.cut_off

    def exploits(self, fines: int, group_sizes: LongArray, remaining: LongArray) -> BoolArray:
        """Whether the next candidate is exploited.

        Parameters
        ----------
        fines : int
            Fines paid, below ``levels``.
        group_sizes, remaining : ndarray of int64, shape (n,)
            ``1 <= remaining <= group_sizes < m``.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        bits = self.policy[remaining, fines, group_sizes >> 3] >> (7 - (group_sizes & 7)) & 1
        return np.asarray(bits, dtype=np.bool_)

    def within(self, group_sizes: LongArray) -> LongArray:
        """Return the group sizes as positions in the table, all that are beyond its end as 0.

        A group of nobody and one beyond the end are alike: nothing is linked and nothing exploited.

        Raises
        ------
        InputError
            If a group size is negative or was not solved.
        """
        if (group_sizes < 0).any():
            raise InputError("A group size must be at least 0.")
        beyond = group_sizes >= len(self.values)
        if not self.complete and beyond.any():
            raise InputError(
                f"The attack was solved for groups of at most {len(self.values) - 1}, and a group of "
                f"{group_sizes.max()} is asked for; raise the largest group."
            )
        return np.where(beyond, 0, group_sizes)


def solve(attack: Attack, largest_group: int | None = None) -> Solution:
    """Find the adversary's best plan for all group sizes at once (X15 §5.1, by backward induction).

    Parameters
    ----------
    largest_group : int, optional
        Largest group size of interest, at least 0. Needed where no cost limits the groups worth attacking.

    Returns
    -------
    Solution
        For group sizes up to the first with ``v = 0`` or up to ``largest_group``. Time and memory grow with the square
        of their number.

    Raises
    ------
    InputError
        If no limit is given and none follows, or there are more than 2^31 states.
    """
    limit = attack.most_groups
    if largest_group is not None:
        if largest_group < 0:
            raise InputError(f"The largest group must be at least 0. Got {largest_group}.")
        limit = largest_group if limit is None else min(limit, largest_group)
    if limit is None:
        raise InputError(
            "No cost limits the groups that are worth attacking (attack.cost_exploit is 0, and detections are not all "
            "fined with a probability that stays above 0): give the largest group."
        )
    end = _end(attack, limit)
    values, policy = _backward(attack, np.arange(end, dtype=np.int64))
    linked = np.maximum(0.0, attack.gamma * values - attack.cost_link)
    return Solution(
        attack=attack,
        values=values,
        linked=linked,
        accessed=attack.gamma * linked - attack.cost_access,
        complete=end <= limit,
        levels=policy.shape[1],
        policy=policy,
    )


def _end(attack: Attack, limit: int) -> int:
    """Return the least group size of at least 1 with ``v = 0``, or ``limit + 1`` if there is none up to ``limit``."""
    above, size = 0, min(_PROBES, limit)
    while size:
        states = _levels(attack, size) * size**2
        if states > _MOST_STATES:
            raise InputError(
                f"The attack pays on groups of {above} and more, and groups up to {size} are {states} states, more "
                f"than {_MOST_STATES}: give a smaller largest group, or costs under which smaller groups do not pay."
            )
        if _backward(attack, np.array([size]), keep=False)[0][0] == 0:
            break
        above = size
        if size == limit:
            return limit + 1
        size = min(2 * size, limit)
    if not size:
        return 1
    zero = size
    while zero - above > 1:
        probes = np.unique(np.linspace(above + 1, zero - 1, _PROBES).astype(np.int64))
        ended = np.flatnonzero(_backward(attack, probes, keep=False)[0] == 0)
        first = int(ended[0]) if len(ended) else len(probes)
        above = int(probes[first - 1]) if first else above
        zero = int(probes[first]) if first < len(probes) else zero
    return zero


def _levels(attack: Attack, largest: int) -> int:
    """Numbers of fines paid to tell apart in groups of at most ``largest``, who cannot be detected more often."""
    fines = attack.fines_paid
    return 1 if fines is None or fines >= largest or attack.penalty == 0 else fines + 1


def _backward(attack: Attack, sizes: LongArray, *, keep: bool = True) -> tuple[FloatArray, ByteArray]:
    """Return ``v`` of ascending group sizes and, if they are 0, 1, 2, … and kept, the policy."""
    largest = int(sizes[-1]) if len(sizes) else 0
    levels = _levels(attack, largest)
    policy = np.zeros((len(sizes) if keep else 0, levels, (len(sizes) + 7) // 8), dtype=np.uint8)
    fine = np.full((levels, 1), attack.penalty)
    if attack.fines_paid is not None and attack.fines_paid < levels:
        fine[-1] = 0.0  # all that are ever paid are paid
    outside = sizes * ((1 - attack.prior) / attack.prior)
    detection = attack.detection(np.arange(largest))
    value = np.zeros((levels, len(sizes)))
    for r in range(1, largest + 1):
        first = int(np.searchsorted(sizes, r))
        success = 1.0 / (r + outside[first:])
        detected = detection[sizes[first:] - r]
        after = value[:, first:]
        fined = after if levels == 1 else np.concatenate([after[1:], after[-1:]])
        worth = attack.gamma * (
            success * attack.gain - detected * fine + (1.0 - success) * ((1.0 - detected) * after + detected * fined)
        )
        worth -= attack.cost_exploit
        if keep:
            chosen = np.zeros(value.shape, dtype=np.bool_)
            chosen[:, first:] = worth > TOLERANCE
            policy[r] = np.packbits(chosen, axis=1)
        value[:, first:] = np.maximum(0.0, worth)
    return value[0].copy(), policy
