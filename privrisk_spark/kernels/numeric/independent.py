"""Independent events, group by group."""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray

__all__ = ["any_of"]


def any_of(group: LongArray, probability: FloatArray) -> FloatArray:
    """Probability that at least one event of each group happens, ``1 - Π (1 - p_i)``.

    Parameters
    ----------
    group : ndarray of int64, shape (n,)
        Of each event, numbered from 0 without gaps.
    probability : ndarray of float64, shape (n,)
        In [0, 1].

    Returns
    -------
    ndarray of float64, shape (m,)
        The order of the events changes no bit.
    """
    if not len(probability):
        return np.zeros(0)
    order = np.lexsort((probability, group))
    start = np.searchsorted(group[order], np.arange(int(group.max()) + 1))
    with np.errstate(divide="ignore"):  # an event that is certain
        none = np.add.reduceat(np.log1p(-probability[order]), start)
    return np.asarray(-np.expm1(none))
