"""A dictionary as one record sees it: the least level at which each row becomes consistent with the record.

``g_i(t)`` is the least level ``x_i`` of the record's value at which ``t_i`` is consistent with it, so that a row is
consistent with the record disclosed at ``x`` if and only if ``g(t) <= x`` (F12 §5.2.1, Theorem 5.2.1's vectors). This
asks that a value consistent with a node is consistent with the node's parent: true of ``subsumes`` and ``compatible``,
and not of ``similar``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import IntArray, LevelArray, LongArray
from privrisk_spark.kernels.counting.consistent import Axis, SortedCounts, incidence

_TABLE_BYTES = 2**27
"""Tables of levels kept for later records, in all attributes; does not change a result."""


@dataclass(frozen=True, eq=False)
class DictionaryRows:
    """The distinct vectors of a dictionary.

    Attributes
    ----------
    axes : tuple of k Axis
    vectors : ndarray of int32, shape (m, k)
        Dictionary codes; the column of an attribute the dictionary lacks is ignored.
    counts : ndarray of int64, shape (m,)
        Rows of each.

    Raises
    ------
    InputError
        If an axis is ``similar``.
    """

    axes: tuple[Axis, ...]
    vectors: IntArray
    counts: LongArray
    _tables: dict[tuple[int, int], LevelArray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(axis.monotone for axis in self.axes):
            raise InputError(
                "decision.method: searches of one record at a time need consistency that generalizing keeps, and "
                "labels that are 'similar' do not have it; use 'exhaustive'."
            )

    @cached_property
    def _present(self) -> list[tuple[IntArray, npt.NDArray[np.intp]]]:
        """Per attribute the codes that occur, and the place of each row's code among them."""
        columns = [
            np.unique(self.vectors[:, i] if axis.known else np.zeros(len(self.vectors), np.int32), return_inverse=True)
            for i, axis in enumerate(self.axes)
        ]
        return [(codes.astype(np.int32), place.ravel()) for codes, place in columns]

    @cached_property
    def _incidence(self) -> list[tuple[IntArray, scipy.sparse.csr_array]]:
        """Per attribute the class of each node, and the codes each class is consistent with."""
        result = []
        for axis, (codes, _) in zip(self.axes, self._present, strict=True):
            classes, matrix = incidence(axis, codes)
            result.append((classes, matrix))
        return result

    def levels(self, codes: Sequence[int]) -> LevelArray:
        """``g(t)`` of every distinct vector, for one record.

        Parameters
        ----------
        codes : sequence of k int
            The record's leaf codes.

        Returns
        -------
        ndarray of int8, shape (m, k), column by column in memory
            At most the depth of the record's value in each attribute.
        """
        result = np.empty((len(self.vectors), len(self.axes)), dtype=np.int8, order="F")
        for i, code in enumerate(codes):
            np.take(self._levels_of(i, int(code)), self._present[i][1], out=result[:, i])
        return result

    def _levels_of(self, i: int, code: int) -> LevelArray:
        """``g_i`` of every code that occurs, for one value."""
        found = self._tables.get((i, code))
        if found is None:
            axis = self.axes[i]
            depth = int(axis.code_depth[code])
            classes, matrix = self._incidence[i]
            consistent = matrix[classes[axis.ancestor[code, : depth + 1]]].toarray() > 0
            # Everything is consistent with ⊥, so there is always a first.
            found = consistent.argmax(axis=0).astype(np.int8)
            if sum(table.nbytes for table in self._tables.values()) + found.nbytes > _TABLE_BYTES:
                self._tables.clear()
            self._tables[i, code] = found
        return found


@lru_cache(maxsize=2)
def rows_of(counts: SortedCounts) -> DictionaryRows:
    """Return the distinct vectors behind a count; the last ones asked for are kept."""
    groups = counts.groups
    empty = np.zeros((0, len(counts.axes)), dtype=np.int32)
    return DictionaryRows(
        counts.axes,
        np.concatenate([empty, *[group.vectors for group in groups]]),
        np.concatenate([np.zeros(0, dtype=np.int64), *[group.counts for group in groups]]),
    )
