"""Generated tables of numbers with correlations that are known, of the shape of those masking methods are compared on.

The literature compares them on two files nobody may pass on with this software, of about a thousand records of a dozen
numeric attributes: of persons (Census) and of companies (Tarragona). What stands in for them is drawn from one common
factor and one factor for each block of attributes, so the correlation of any two is known: ``between`` of two blocks,
``within`` of one. Amounts are the exponentials of such numbers, a few of them far larger than the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray
from reproduce.generated.clustered import keyed_uniforms

_LEAST = 1e-12


@dataclass(frozen=True)
class NumericTable:
    """How a table of numbers is drawn.

    Attributes
    ----------
    rows, columns : int
        At least 1.
    block : int
        Attributes of a block, at least 1; the last block may have fewer.
    within, between : float
        Correlations of two attributes, before the exponential of amounts: of one block, and of two.
        ``0 <= between <= within < 1``.
    amounts : bool
        Whether the numbers are exponentials of normal ones.

    Raises
    ------
    InputError
        If there is nothing to draw, or no such correlations.
    """

    name: str
    rows: int
    columns: int
    block: int
    within: float
    between: float
    amounts: bool = False

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        if min(self.rows, self.columns, self.block) < 1 or not 0 <= self.between <= self.within < 1:
            raise InputError(
                "A generated table of numbers needs rows, columns and blocks of at least 1, and correlations "
                f"0 <= between <= within < 1. Got {self}."
            )

    def correlation(self) -> FloatArray:
        """Correlations of the normal numbers; ndarray of float64, shape (columns, columns)."""
        block = np.arange(self.columns) // self.block
        found = np.where(block[:, None] == block[None, :], self.within, self.between)
        np.fill_diagonal(found, 1.0)
        return np.asarray(found, dtype=np.float64)

    def values(self, seed: int) -> FloatArray:
        """Draw the table.

        Returns
        -------
        ndarray of float64, shape (rows, columns)
            Of mean 0 and variance 1, or exponentials of these. A longer table begins with the same rows.
        """
        blocks = -(-self.columns // self.block)
        drawn = keyed_uniforms(seed, f"numbers {self.name}", (self.rows, 1 + blocks + self.columns))
        normals = scipy.special.ndtri(drawn.clip(_LEAST, 1 - _LEAST))
        common, shared, own = normals[:, :1], normals[:, 1 : 1 + blocks], normals[:, 1 + blocks :]
        of = np.arange(self.columns) // self.block
        made = np.sqrt(self.between) * common + np.sqrt(self.within - self.between) * shared[:, of]
        made = made + np.sqrt(1 - self.within) * own
        return np.asarray(np.exp(made) if self.amounts else made, dtype=np.float64)
