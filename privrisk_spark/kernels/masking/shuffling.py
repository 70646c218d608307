"""Data shuffling: values of confidential attributes are dealt anew, near what known attributes tell (Muralidhar and
Sarathy 2006)."""

from __future__ import annotations

from privrisk_spark.kernels.arrays import FloatArray


def shuffled(confidential: FloatArray, known: FloatArray, normals: FloatArray) -> FloatArray:
    """Shuffle confidential attributes.

    Parameters
    ----------
    confidential : ndarray of float64, shape (n, k)
        Finite.
    known : ndarray of float64, shape (n, q)
        Finite; published as they are. q may be 0.
    normals : ndarray of float64, shape (n, k)
        Independent standard normal numbers.

    Returns
    -------
    ndarray of float64, shape (n, k)
        Column by column the same values in another order.
    """
    raise NotImplementedError
