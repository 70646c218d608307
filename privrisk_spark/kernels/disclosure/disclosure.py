"""What records may disclose, whoever decides: the nodes of every value, their utility, and the risk of showing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from privrisk_spark.kernels.arrays import FloatArray, IntArray
from privrisk_spark.kernels.disclosure.risk import RiskModel
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.numeric.distinct import distinct_rows


@dataclass(frozen=True, eq=False)
class Disclosure:
    """What a node discloses, what that is worth, and how its risk is measured.

    A search (:class:`privrisk_spark.kernels.search.method.Search`) or a rule decides by it which level every value of a
    record is disclosed at.

    Attributes
    ----------
    ancestor : tuple of k ndarrays of int32, shape (n_leaves_i + 1, height_i + 1)
        Node of each code at each level, padded with the root (the largest node); the last code is ⊥.
    code_depth : tuple of k ndarrays of int32, shape (n_leaves_i + 1,)
        Depth of each code: the levels its value can take.
    utility : tuple of k ndarrays of float64, shape (n_nodes_i,)
        Utility of each node, non-increasing upwards.
    model : {"I", "II", "III"}
    """

    ancestor: tuple[IntArray, ...]
    code_depth: tuple[IntArray, ...]
    utility: tuple[FloatArray, ...]
    sensitivity: Sensitivity
    model: RiskModel

    @cached_property
    def profiles(self) -> tuple[IntArray, ...]:
        """int32 (n_leaves_i + 1,) per attribute: codes with the same depth and utilities share a number."""
        return tuple(self._kinds(i, [utility]) for i, utility in enumerate(self.utility))

    @cached_property
    def alike(self) -> tuple[IntArray, ...]:
        """int32 (n_leaves_i + 1,) per attribute: codes with the same depth, utilities and weights share a number."""
        pairs = zip(self.utility, self.sensitivity.weights, strict=True)
        return tuple(self._kinds(i, pair) for i, pair in enumerate(pairs))

    def _kinds(self, i: int, numbers: Sequence[FloatArray]) -> IntArray:
        """Codes of attribute ``i`` with the same depth, and the same numbers of the node at every level."""
        of_node = distinct_rows(numbers)[1]
        chain = [of_node[nodes] for nodes in self.ancestor_by_level[i]]
        return distinct_rows([self.code_depth[i], *chain])[1].astype(np.int32)

    @cached_property
    def ancestor_by_level(self) -> tuple[IntArray, ...]:
        """int32 (height_i + 1, n_leaves_i + 1) per attribute: :attr:`ancestor`, contiguous per level."""
        return tuple(np.ascontiguousarray(ancestor.T) for ancestor in self.ancestor)

    def chains(self, codes: Sequence[int]) -> list[FloatArray]:
        """Utility of each level of one record, per attribute; the last level is ⊥."""
        return [
            utility[ancestor[code, : depth[code] + 1]]
            for code, ancestor, depth, utility in zip(codes, self.ancestor, self.code_depth, self.utility, strict=True)
        ]

    def disclosed(self, i: int, codes: IntArray, levels: npt.NDArray[np.int8]) -> IntArray:
        """Node of attribute ``i`` of each code at its level."""
        ancestor = self.ancestor[i]
        return ancestor.ravel().take(codes * np.int64(ancestor.shape[1]) + levels)

    @property
    def least_utility(self) -> float:
        """Utility of a record that is suppressed whole."""
        return float(sum(utility[-1] for utility in self.utility))

    def greatest_utility(self, codes: IntArray) -> FloatArray:
        """Utility of the original records.

        Parameters
        ----------
        codes : ndarray of int32, shape (n, k)

        Returns
        -------
        ndarray of float64, shape (n,)
        """
        total = np.zeros(len(codes))
        for i, (ancestor, utility) in enumerate(zip(self.ancestor, self.utility, strict=True)):
            total = total + utility[ancestor[codes[:, i], 0]]
        return total
