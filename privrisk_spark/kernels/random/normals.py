"""Standard normal numbers from keyed words."""

from __future__ import annotations

import scipy

from privrisk_spark.kernels.arrays import FloatArray, WordArray
from privrisk_spark.kernels.random.keyed import uniforms


def normals(words: WordArray) -> FloatArray:
    """Map 64-bit words to standard normal numbers, by inversion of the distribution function.

    Parameters
    ----------
    words : ndarray of uint64
        Any shape.

    Returns
    -------
    ndarray of float64
        Same shape, symmetric about 0, within 8.3 standard deviations: a uniform number is never nearer to 0 than 2^-53.
    """
    result: FloatArray = scipy.special.ndtri(uniforms(words))
    return result
