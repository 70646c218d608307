"""Exact coins and integers from keyed words: uniform below a bound, and true with probability e^-x for rational x.

Status: *proved* exact, given uniform independent words (computationally: the PRF of ``randomness``): integer
arithmetic throughout, no float enters. An element uses words of its own stream only, so what it gets does not depend
on the batch.

Shapes are common to all: ``index`` names distinct elements of the streams, shape (r,), and so have the arrays taken
and returned.

References
----------
C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020, Algorithm 1.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, IndexArray, LongArray
from privrisk_spark.kernels.random.keyed import Streams

_WORD_MAX = (1 << 64) - 1


def bernoulli_exp(
    streams: Streams,
    index: IndexArray,
    whole: LongArray,
    rest: LongArray,
    denominator: int,
) -> BoolArray:
    """Draw true with probability ``exp(-(whole + rest / denominator))`` (Algorithm 1, second part)."""
    alive: BoolArray = successes(streams, index, whole) == whole
    survivors = np.flatnonzero(alive)
    alive[survivors] = bernoulli_exp_fraction(streams, index[survivors], rest[survivors], denominator)
    return alive


def successes(streams: Streams, index: IndexArray, at_most: LongArray | None) -> LongArray:
    """Count Bernoulli(1/e) successes per element before the first failure, stopping at ``at_most``."""
    count = np.zeros(index.size, dtype=np.int64)
    pending = np.arange(index.size, dtype=np.intp)
    while True:
        if at_most is not None:
            pending = pending[count[pending] < at_most[pending]]
        if not pending.size:
            return count
        ones = np.ones(pending.size, dtype=np.int64)
        pending = pending[bernoulli_exp_fraction(streams, index[pending], ones, 1)]
        count[pending] += 1


def bernoulli_exp_fraction(streams: Streams, index: IndexArray, numerator: LongArray, denominator: int) -> BoolArray:
    """Draw true with probability ``exp(-fraction)``, fraction in [0, 1] (Algorithm 1, first part).

    With A_k ~ Bernoulli(fraction / k), the first k with A_k = 0 is odd with that probability. A_k is drawn
    as Bernoulli(fraction) and Bernoulli(1 / k), so that no product of bounds can overflow.
    """
    odd = np.zeros(index.size, dtype=np.bool_)
    pending = np.arange(index.size, dtype=np.intp)
    k = 1
    while pending.size:
        hit = np.ones(pending.size, dtype=np.bool_)
        if denominator > 1:
            hit = below(streams, index[pending], denominator) < numerator[pending]
        if k > 1:
            first = np.flatnonzero(hit)
            hit[first] = below(streams, index[pending[first]], k) == 0
        elif denominator == 1:
            hit = numerator[pending] == 1
        odd[pending[~hit]] = k % 2 == 1
        pending = pending[hit]
        k += 1
    return odd


def below(streams: Streams, index: IndexArray, bound: int) -> LongArray:
    """Draw uniform integers in [0, bound) per element, by rejection; ``1 <= bound < 2^63``."""
    values = np.zeros(index.size, dtype=np.int64)
    # 2^64 - (2^64 mod bound) words remain, a multiple of the bound.
    least = np.uint64((_WORD_MAX % bound + 1) % bound)
    pending = np.arange(index.size, dtype=np.intp)
    while pending.size:
        words = streams.draw(index[pending])
        fair = words >= least
        values[pending[fair]] = (words[fair] % np.uint64(bound)).astype(np.int64)
        pending = pending[~fair]
    return values
