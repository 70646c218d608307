"""Records whose attributes are all numbers: what is nearest by squared distances, as products of matrices.

``|a - b|² = |a|² + |b|² - 2 a·b`` for a block of known records and all records of a file at once. That is fast and not
exact, as large numbers cancel: so it only says which records may be nearest, with a bound of what rounding adds, and
those are compared again one by one. The answers are those of comparing with every record.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, LongArray

__all__ = ["Points", "tie"]

_TOLERANCE = 1e-9

_PAIRS = 2**22
"""Distances kept at once; does not change a result."""


def tie(least: FloatArray) -> FloatArray:
    """Greatest distance that counts as the least one: what rounding of sums of differences can add."""
    return np.asarray(least + _TOLERANCE * (1.0 + least))


@dataclass(frozen=True, eq=False)
class Points:
    """The distinct records of a file as points.

    Attributes
    ----------
    at : ndarray of float64, shape (p, k)
        Finite numbers, each times the root of its attribute's weight.
    rows : ndarray of int64, shape (p,)
        With each.
    """

    at: FloatArray
    rows: LongArray

    def linked(self, known: FloatArray) -> tuple[FloatArray, LongArray, LongArray]:
        """Find the least squared distance of known points, the rows at it, and the first point at it.

        Parameters
        ----------
        known : ndarray of float64, shape (m, k)
            As :attr:`at`.

        Returns
        -------
        distance : ndarray of float64, shape (m,)
        rows, first : ndarray of int64, shape (m,)
        """
        m, (p, k) = len(known), self.at.shape
        # About their middle numbers are smaller, and less of them cancels.
        middle = self.at.mean(axis=0)
        file, mine = self.at - middle, known - middle
        of_file, of_mine = np.einsum("ij,ij->i", file, file), np.einsum("ij,ij->i", mine, mine)
        distance, rows, first = np.empty(m), np.empty(m, dtype=np.int64), np.empty(m, dtype=np.int64)
        block = max(1, _PAIRS // p)
        for begin in range(0, m, block):
            part = slice(begin, min(begin + block, m))
            about = of_file[None, :] - 2.0 * (mine[part] @ file.T)  # less the square of the known point
            # Each product, and each of the sums, is off by its size times some units in the last place.
            off = 4.0 * (k + 4) * np.finfo(np.float64).eps * (of_mine[part] + of_file.max())
            bound = about.min(axis=1) + 2.0 * off
            # Ties are a little farther than what is nearest.
            near = np.maximum(bound + of_mine[part], 0.0)
            a, b = np.nonzero(about <= (tie(near) - of_mine[part] + off)[:, None])
            exact = self.distances(known[part][a], b)
            least = np.full(part.stop - begin, np.inf)
            np.minimum.at(least, a, exact)
            tied = exact <= tie(least)[a]
            total = np.zeros(part.stop - begin, dtype=np.int64)
            np.add.at(total, a[tied], self.rows[b[tied]])
            foremost = np.full(part.stop - begin, p)
            np.minimum.at(foremost, a[tied], b[tied])
            distance[part], rows[part], first[part] = least, total, foremost
        return distance, rows, first

    def distances(self, known: FloatArray, record: LongArray) -> FloatArray:
        """Squared distance of each known point from one of the file.

        Parameters
        ----------
        known : ndarray of float64, shape (m, k)
        record : ndarray of int64, shape (m,)
        """
        total = np.zeros(len(known))
        for j in range(self.at.shape[1]):
            total += (known[:, j] - self.at[record, j]) ** 2
        return total
