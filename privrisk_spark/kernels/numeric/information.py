"""How much a column tells: Shannon's entropy of its values.

References
----------
C. E. Shannon, "A Mathematical Theory of Communication", Bell System Technical Journal 27, 1948.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def entropy_bits(counts: npt.NDArray[np.int64]) -> float:
    """Return ``-Σ p log2 p`` of the shares of counted values.

    Of a sample of n rows it is at most ``log2 n``, and below that of the whole column where most values are rare.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_distinct,)
        Rows of each value; zeros count nothing.

    Returns
    -------
    float
        In bits; 0 for a constant column, and for none at all.
    """
    there = counts[counts > 0].astype(np.float64)
    if len(there) < 2:
        return 0.0
    shares = there / there.sum()
    return float(-(np.sort(shares) * np.log2(np.sort(shares))).sum())
