"""Choosing among public candidates by the exponential mechanism, exactly.

A full-domain scheme is a level vector. Of public candidates v one is drawn with

    Pr[v] ~ exp(epsilon score(v)),      score(v) = pi_v sum_c max(0, n_c(v) - t0),

``n_c(v)`` the rows of cell c under v, ``pi_v`` in [0, 1] a public precision and ``t0 >= 0`` a public number of rows.

**Privacy.** One row more raises one count by one, hence the sum by 0 or 1 and the score by 0 to 1: the score is
monotone with sensitivity 1. So every weight ``exp(epsilon score)`` grows by a factor between 1 and e^epsilon, and so
does their sum; a probability changes by a factor within ``[e^-epsilon, e^epsilon]``. One draw is
epsilon-differentially private, without the factor 2 that scores need which rise and fall (McSherry and Talwar 2007).
w draws, each among what is left, are ``w epsilon``-differentially private by composition, and the set or sequence of
picks is all that is returned: never the best of several picks by its exact score, which would not be a function of
the picks.

**Exactness.** The candidate is the one whose interval of the cumulative weights holds ``U`` times their sum, U uniform
in [0, 1). U is a stream of 64-bit words, one more at a time; weights are rational enclosures of ``exp(-epsilon gap)``,
gap the distance from the highest score, narrower by 64 bits with every word. A candidate is returned once it is the
only one that enclosures and words leave possible, which is the case after one word but with probability below
``n 2^-62``. So the law is the one above to the last bit: no probability is rounded to 0 and none is off by a float's
error. (Adding ``-ln(-ln u)`` to scores in float64 never draws a candidate whose score is more than 41 / epsilon below,
and an adversary who sees one learns more than epsilon says: Ilvento 2020, who takes exact powers of a rational base
instead.)

Status: *proved* (the two paragraphs above; no float enters), given uniform independent words (computationally: the
PRF of ``randomness``). How long a draw takes depends on the scores, as with every rejection sampler.

References
----------
F. McSherry, K. Talwar, "Mechanism Design via Differential Privacy", FOCS 2007. C. Ilvento, "Implementing the
Exponential Mechanism with Base-2 Differential Privacy", CCS 2020. R. Bild, K. A. Kuhn, F. Prasser, "SafePub: A
Truthful Data Anonymization Algorithm With Strong Privacy Guarantees", PoPETs 2018(1) (a full-domain scheme drawn
before sampling and a crowd threshold). L. Sweeney, IJUFKS 10(5), 2002 (precision).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.numeric.rational import exp_minus
from privrisk_spark.kernels.random.keyed import Streams

_Integers = NDArray[np.object_]
"""Python integers: they pass 64 bits."""

_WORD = 64
_BITS = 128
"""Bits of the first enclosures of weights."""


def precision(scheme: Sequence[int], heights: Sequence[int], weights: Sequence[Fraction]) -> Fraction:
    """Return the precision of a scheme: 1 for values as they are, 0 for full suppression (Sweeney 2002).

    Parameters
    ----------
    scheme : sequence of k int
        Levels, ``0 <= scheme[i] <= heights[i]``.
    heights : sequence of k int
        At least 1.
    weights : sequence of k Fraction
        Of the attributes; at least 0, not all 0.

    Returns
    -------
    Fraction
        ``sum_i w_i (1 - scheme[i] / heights[i]) / sum_i w_i``, in [0, 1].
    """
    lost = sum((w * Fraction(x, h) for x, h, w in zip(scheme, heights, weights, strict=True)), Fraction(0))
    return 1 - lost / sum(weights, Fraction(0))


def scores(excess: LongArray, precisions: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Return the score of each candidate.

    Parameters
    ----------
    excess : ndarray of int64, shape (n,)
        ``sum_c max(0, n_c - t0)`` of each candidate, in records.
    precisions : sequence of n Fraction
        In [0, 1].

    Returns
    -------
    tuple of n Fraction
        In records.

    Raises
    ------
    InputError
        If the lengths differ, an excess is negative or a precision outside [0, 1], where the score would have another
        sensitivity.
    """
    if excess.shape != (len(precisions),):
        raise InputError(f"There must be one precision per candidate. Got {len(precisions)} for {excess.shape}.")
    if (excess < 0).any():
        raise InputError("The rows of a candidate beyond the threshold must not be negative.")
    if not all(0 <= value <= 1 for value in precisions):
        raise InputError("A precision must be in [0, 1].")
    return tuple(value * int(rows) for rows, value in zip(excess, precisions, strict=True))


def peel(of_candidates: Sequence[Fraction], epsilon: Fraction, streams: Streams) -> LongArray:
    """Draw several candidates one after the other, each among those that are left.

    Parameters
    ----------
    of_candidates : sequence of n Fraction
        Scores; monotone in the table, with sensitivity 1.
    epsilon : Fraction
        Of one draw; all together cost ``streams.size`` times that.
    streams : Streams
        One stream per draw.

    Returns
    -------
    ndarray of int64, shape (w,)
        Different positions, in the order drawn.

    Raises
    ------
    InputError
        If there are fewer candidates than draws.
    """
    if streams.size > len(of_candidates):
        raise InputError(f"Of {len(of_candidates)} candidates {streams.size} cannot be chosen.")
    left = list(range(len(of_candidates)))
    picked: list[int] = []
    for element in range(streams.size):
        law = _Cumulative.of_scores([of_candidates[v] for v in left], epsilon)
        picked.append(left.pop(law.draw(streams, element)))
    return np.array(picked, dtype=np.int64)


class _Cumulative:
    """Cumulative sums of ``exp(-exponent)``, enclosed as narrowly as asked."""

    def __init__(self, exponents: Sequence[Fraction]) -> None:
        self._exponents = exponents
        self._enclosed: dict[int, tuple[_Integers, _Integers]] = {}

    @classmethod
    def of_scores(cls, of_candidates: Sequence[Fraction], epsilon: Fraction) -> _Cumulative:
        if not of_candidates:
            raise InputError("There must be at least one candidate to choose.")
        if epsilon < 0:
            raise InputError(f"The epsilon of a choice must not be negative. Got {float(epsilon):g}.")
        most = max(of_candidates)
        return cls([(most - score) * epsilon for score in of_candidates])

    def draw(self, streams: Streams, element: int) -> int:
        """Draw with the words of one element."""
        uniform = words = 0
        found = None
        while found is None:
            (word,) = streams.draw(np.array([element], dtype=np.intp)).tolist()
            uniform, words = uniform << _WORD | word, words + 1
            found = self.holding(uniform, words)
        return found

    def holding(self, uniform: int, words: int) -> int | None:
        """Return the candidate whose interval holds every U that begins with the words; None if it is not certain."""
        low, high = self._enclosure(_BITS + _WORD * (words - 1))
        bits = _WORD * words
        # U < (uniform + 1) / 2^bits: the first candidate that certainly ends there or beyond. The last one ends at 1.
        least = -(-((uniform + 1) * high[-1]) >> bits)
        found = min(int(np.searchsorted(low, np.array(least, dtype=object))), len(low) - 1)
        if found and high[found - 1] << bits > uniform * low[-1]:
            return None
        return found

    def _enclosure(self, bits: int) -> tuple[_Integers, _Integers]:
        if bits not in self._enclosed:
            weights = [exp_minus(exponent, bits) for exponent in self._exponents]
            low, high = (np.array(list(accumulate(side)), dtype=object) for side in zip(*weights, strict=True))
            self._enclosed[bits] = low, high
        return self._enclosed[bits]
