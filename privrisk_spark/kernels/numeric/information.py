"""How much columns tell: Shannon's entropy of their values, alone and as a part of what all tell together.

References
----------
C. E. Shannon, "A Mathematical Theory of Communication", Bell System Technical Journal 27, 1948.
L. S. Shapley, "A Value for n-Person Games", Contributions to the Theory of Games II, 1953.
"""

from __future__ import annotations

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray


def entropy_bits(counts: LongArray) -> float:
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


def joint_information(codes: LongArray) -> FloatArray:
    """Divide the joint entropy of columns among them.

    A column gets the mean of what it adds to the entropy of those before it, over 2 k orders: each rotation of the
    columns, forwards and backwards, so that every column stands at every place twice. This is Shapley's value with
    these orders in place of all. What two columns both tell is divided between them, and a column that tells nothing
    gets nothing.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, k)
        Equal numbers are equal values of a column.

    Returns
    -------
    ndarray of float64, shape (k,)
        In bits, not negative; they add up to the joint entropy.
    """
    k = codes.shape[1]
    forwards = list(range(k))
    shares = np.zeros(k)
    for order in (forwards, forwards[::-1]):
        for start in range(k):
            told, before = np.zeros(len(codes), dtype=np.int64), 0.0
            for column in order[start:] + order[:start]:
                told = _joined(told, codes[:, column])
                after = entropy_bits(np.bincount(told).astype(np.int64))
                shares[column] += max(0.0, after - before)
                before = after
    found: FloatArray = shares / (2 * max(k, 1))
    return found


def _joined(one: LongArray, other: LongArray) -> LongArray:
    """Numbers of pairs, from 0; those of equal pairs are equal."""
    other = np.unique(other, return_inverse=True)[1].astype(np.int64)
    pairs = one * np.int64(other.max(initial=0) + 1) + other
    numbers: LongArray = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return numbers
