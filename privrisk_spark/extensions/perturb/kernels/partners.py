"""Partners of rank swapping, drawn in one pass over the ranks."""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.arrays import LongArray, WordArray
from privrisk_spark.machine_code import compiled


@compiled
def drawn_partners(width: int, words: WordArray) -> LongArray:
    """Draw partners, checked by :func:`~privrisk_spark.extensions.perturb.kernels.rank_swapping.partners_within`.

    Free ranks are counted in a binary indexed tree, in which the m-th free one is looked up.

    Parameters
    ----------
    width : int
        At least 0.
    words : ndarray of uint64, shape (n,)
        C-contiguous, n below 2^32.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    n = len(words)
    partner = np.arange(n)
    counts = np.zeros(n + 1, dtype=np.int64)
    for place in range(1, n + 1):
        counts[place] += 1
        above = place + (place & -place)
        if above <= n:
            counts[above] += counts[place]
    highest = 1
    while 2 * highest <= n:
        highest *= 2
    free = np.ones(n, dtype=np.bool_)  # none below the rank looked at, so that the first free ones are its partners
    reach = 0  # free ranks from the one looked at up to the last it may swap with, itself among them
    last = -1
    for rank in range(n):
        while last < min(n - 1, rank + width):
            last += 1
            reach += 1
        if not free[rank]:
            continue
        free[rank] = False
        reach -= 1
        place = rank + 1
        while place <= n:
            counts[place] -= 1
            place += place & -place
        if reach == 0:
            continue
        # The top 64 bits of word times reach: each free rank is drawn with probability 1 / reach but for reach / 2^64.
        word, many = words[rank], np.uint64(reach)
        high = (word >> np.uint64(32)) * many
        low = ((word & np.uint64(0xFFFFFFFF)) * many) >> np.uint64(32)
        wanted = np.int64((high + low) >> np.uint64(32)) + 1
        place = 0
        step = highest
        while step > 0:
            if place + step <= n and counts[place + step] < wanted:
                place += step
                wanted -= counts[place]
            step //= 2
        other = place
        free[other] = False
        reach -= 1
        place = other + 1
        while place <= n:
            counts[place] -= 1
            place += place & -place
        partner[rank], partner[other] = other, rank
    return partner
