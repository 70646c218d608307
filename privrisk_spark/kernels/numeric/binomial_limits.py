"""Confidence limits of a probability, from how often something happened.

References
----------
C. Clopper, E. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", Biometrika
26 (1934).
"""

from __future__ import annotations

import numpy as np
import scipy

from privrisk_spark.kernels.arrays import FloatArray, LongArray

__all__ = ["lower_limit", "upper_limit"]


def lower_limit(hits: LongArray, trials: int, alpha: float) -> FloatArray:
    """One-sided Clopper-Pearson limit: at least this, but with probability alpha; 0 without a hit.

    Parameters
    ----------
    hits : ndarray of int64
        In [0, trials].
    alpha : float
        In (0, 1).

    Returns
    -------
    ndarray of float64
    """
    found = np.maximum(hits, 1).astype(np.float64)
    limit = scipy.special.betaincinv(found, trials - found + 1.0, alpha)
    return np.where(hits > 0, limit, 0.0)


def upper_limit(hits: LongArray, trials: int, alpha: float) -> FloatArray:
    """One-sided Clopper-Pearson limit: at most this, but with probability alpha; 1 if every trial is a hit.

    Parameters
    ----------
    hits, trials, alpha
        As for :func:`lower_limit`.

    Returns
    -------
    ndarray of float64
    """
    found = np.minimum(hits, trials - 1).astype(np.float64)
    limit = scipy.special.betainccinv(found + 1.0, trials - found, alpha)
    return np.where(hits < trials, limit, 1.0)
