"""How far two cells are apart, one of a file in which is searched and one that is known, attribute by attribute (T20).

Cells are nodes of a hierarchy, and may be generalized: then they are at no distance from what they cover, and a cell
that is suppressed or not known covers everything. What is returned are differences in [0, 1], or squared standardized
differences of numbers; a distance of records is an aggregate of them. They are symmetric: it is the same whether an
intruder knows a person and looks for the row, or has a row and looks for the person.

References
----------
V. Torra, "Privacy models and disclosure risk" (2020, T20), record linkage: categories 0 or 1, standardized numbers, and
hierarchies by the lowest common ancestor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray

__all__ = ["Difference", "LevelDifference", "NumberDifference", "Reading", "standard_units"]

Reading = Literal["nearest", "midpoint", "uniform"]
"""What stands for an interval: its nearest point, its middle, or a uniform draw from it."""


class Difference(Protocol):
    """Differences of one attribute, between known cells and the distinct cells of the file in which is searched."""

    @property
    def cells(self) -> int:
        """Distinct cells, v."""

    def of(self, known: IntArray) -> FloatArray:
        """Return the differences of known cells from every cell of the file.

        Parameters
        ----------
        known : ndarray of int32, shape (u,)
            Nodes.

        Returns
        -------
        ndarray of float64, shape (u, v)
            At least 0.
        """


def _are_nodes(nodes: IntArray, n_nodes: int) -> None:
    if len(nodes) and (nodes.min() < 0 or nodes.max() >= n_nodes):
        raise InputError("Record linkage: every cell must be a node of its hierarchy.")


@dataclass(frozen=True, eq=False)
class LevelDifference:
    """Height of the lowest common ancestor over the height of the hierarchy; 0 where one node covers the other.

    In a hierarchy of height 1 it is 0 or 1, the difference of categories. A node's height is that of the root less its
    depth.

    Attributes
    ----------
    at_depth : ndarray of int32, shape (n_nodes, H + 1)
        Ancestor-or-self of each node at each depth, the root at depth 0; -1 below the node.
    nodes : ndarray of int32, shape (v,)
        Of the distinct cells of the file.

    Raises
    ------
    InputError
        If a cell is no node.
    """

    at_depth: IntArray
    nodes: IntArray

    def __post_init__(self) -> None:
        """Refuse cells that are no nodes."""
        _are_nodes(self.nodes, len(self.at_depth))

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return len(self.nodes)

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`Difference.of`."""
        height = self.at_depth.shape[1] - 1
        shared = np.zeros((len(known), len(self.nodes)), dtype=np.int8)
        for depth in range(height + 1):
            there = self.at_depth[known, depth]
            # Two numbers that no node has, so that what is below a node equals nothing.
            mine = np.where(there < 0, -2, there)
            shared += mine[:, None] == self.at_depth[self.nodes, depth][None, :]
        own = (self.at_depth >= 0).sum(axis=1).astype(np.int8)
        covers = (shared == own[known][:, None]) | (shared == own[self.nodes][None, :])
        found = (height + 1 - shared) / max(height, 1)
        found[covers] = 0.0
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class NumberDifference:
    """Squared difference of the numbers that nodes stand for, in standard units.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n_nodes,)
        Ends of what each node stands for, equal for a number. A node without two finite ends, such as the root or a
        missing value, stands for any number: it is at no difference from what it may be.
    nodes : ndarray of int32, shape (v,)
        Of the distinct cells of the file.
    reading : {"nearest", "midpoint", "uniform"}
        What stands for an interval. Of uniform draws it is the expected squared difference, that of the middles plus
        ``w²/12`` for each width ``w``.

    Raises
    ------
    InputError
        If a node ends before it begins, or a cell is no node.
    """

    low: FloatArray
    high: FloatArray
    nodes: IntArray
    reading: Reading = "nearest"

    def __post_init__(self) -> None:
        """Refuse intervals that are none."""
        if (self.high < self.low).any():
            raise InputError("Record linkage: an interval must not end before it begins.")
        _are_nodes(self.nodes, len(self.low))

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return len(self.nodes)

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`Difference.of`."""
        low, high = self.low[known][:, None], self.high[known][:, None]
        cell_low, cell_high = self.low[self.nodes][None, :], self.high[self.nodes][None, :]
        apart = np.maximum(np.maximum(low - cell_high, cell_low - high), 0.0)
        found = apart * apart
        if self.reading != "nearest":
            bounded = np.isfinite(low) & np.isfinite(high) & np.isfinite(cell_low) & np.isfinite(cell_high)
            with np.errstate(invalid="ignore"):
                of_middle = ((low + high) / 2 - (cell_low + cell_high) / 2) ** 2
                if self.reading == "uniform":
                    of_middle = of_middle + ((high - low) ** 2 + (cell_high - cell_low) ** 2) / 12
            found = np.where(bounded, of_middle, found)
        found[np.isnan(found)] = 0.0
        return np.asarray(found)


def standard_units(values: FloatArray, rows: LongArray) -> tuple[float, float]:
    """Mean and standard deviation (of the rows, not of a sample) by which numbers are standardized (T20).

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        NaN and infinite ones are left out.
    rows : ndarray of int64, shape (n,)
        How often each occurs.

    Returns
    -------
    tuple of (float, float)
        The deviation is 1 where all numbers are equal or there are none, so that dividing by it changes nothing.
    """
    there = np.isfinite(values) & (rows > 0)
    value, times = values[there], rows[there].astype(np.float64)
    if not len(value):
        return 0.0, 1.0
    mean = float((value * times).sum() / times.sum())
    variance = float((times * (value - mean) ** 2).sum() / times.sum())
    return mean, float(np.sqrt(variance)) if variance > 0 else 1.0
