"""Risk and utility of many level vectors of one record at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.search.record import RecordLattice
from privrisk_spark.kernels.search.row_sets import rho_of, row_sets


class Evaluation:
    """Evaluates level vectors of one record.

    Parameters
    ----------
    floor : float, optional
        Utility that level vectors must reach for their ``ρ`` to be exact; see
        :func:`privrisk_spark.kernels.search.row_sets.row_sets`.
    """

    def __init__(self, lattice: RecordLattice, *, floor: float = -np.inf) -> None:
        self.lattice = lattice
        self._sets = row_sets(lattice, floor=floor)

    def rho(self, levels: LongArray) -> LongArray:
        """``ρ`` of level vectors in every dictionary, shape (n, k) to (n_dictionaries, n)."""
        return rho_of(self._sets, np.ascontiguousarray(levels, dtype=np.int64))

    def sensitivity(self, levels: npt.NDArray[np.integer]) -> FloatArray:
        """``Φ`` of level vectors, shape (n, k) to (n,); summed from the first attribute to the last."""
        total = _summed(self.lattice.weights, levels)
        with np.errstate(over="ignore"):
            # Too large for a float is infinite.
            return np.exp(total) if self.lattice.exponential else total

    def utility(self, levels: npt.NDArray[np.integer]) -> FloatArray:
        """``u`` of level vectors, shape (n, k) to (n,); summed from the first attribute to the last."""
        return _summed(self.lattice.utilities, levels)

    def risk(self, levels: LongArray) -> FloatArray:
        """``r`` of level vectors, shape (n, k) to (n,)."""
        return self.lattice.risks(self.sensitivity(levels), list(self.rho(levels)))


def _summed(values: tuple[FloatArray, ...], levels: npt.NDArray[np.integer]) -> FloatArray:
    total = np.zeros(len(levels))
    for of_levels, level in zip(values, levels.T, strict=True):
        total += of_levels.take(level)
    return total
