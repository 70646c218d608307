"""How far a value that an intruder knows is from a cell of a protected file, attribute by attribute (T20).

A cell may be generalized: then it is at no distance from what it covers. A cell that is suppressed covers every value,
and so does a value the intruder does not know. What is returned are differences of values in [0, 1], or squared
standardized differences of numbers; a distance of records is an aggregate of them.

References
----------
V. Torra, "Guide to data privacy" (T20), record linkage: categorical 0/1, standardized numbers, and hierarchies by the
lowest common ancestor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray

__all__ = ["Difference", "LevelDifference", "NumberDifference", "Reading", "standard_units"]

Reading = Literal["nearest", "midpoint", "uniform"]
"""What stands for an interval: its point nearest to the value, its middle, or a uniform draw from it."""


class Difference(Protocol):
    """Differences of one attribute, between the codes of known values and the distinct cells of the protected file."""

    @property
    def cells(self) -> int:
        """Distinct cells, v."""

    def of(self, known: IntArray) -> FloatArray:
        """Return the differences of known values from every cell.

        Parameters
        ----------
        known : ndarray of int32, shape (u,)
            Codes of known values.

        Returns
        -------
        ndarray of float64, shape (u, v)
            At least 0.
        """


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
        Nodes of the cells. Codes of known values are nodes, too.

    Raises
    ------
    InputError
        If a cell is no node.
    """

    at_depth: IntArray
    nodes: IntArray

    def __post_init__(self) -> None:
        """Refuse cells that are no nodes."""
        if len(self.nodes) and (self.nodes.min() < 0 or self.nodes.max() >= len(self.at_depth)):
            raise InputError("Record linkage: every cell of the protected file must be a node of its hierarchy.")

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
    """Squared difference of numbers, in standard units.

    Attributes
    ----------
    low, high : ndarray of float64, shape (v,)
        Ends of each cell, equal for a number; infinite ends cover all numbers on their side, NaN is a missing cell.
    value : ndarray of float64, shape (n_values,)
        By code; NaN is a value the intruder does not know.
    reading : {"nearest", "midpoint", "uniform"}
        What stands for an interval. Of a uniform draw it is the expected squared difference, ``(v - m)² + w²/12`` with
        the middle ``m`` and the width ``w``. A cell without two finite ends is read as ``nearest``.

    Raises
    ------
    InputError
        If a cell ends before it begins.
    """

    low: FloatArray
    high: FloatArray
    value: FloatArray
    reading: Reading = "nearest"

    def __post_init__(self) -> None:
        """Refuse intervals that are none."""
        if (self.high < self.low).any():
            raise InputError("Record linkage: an interval must not end before it begins.")

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return len(self.low)

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`Difference.of`; 0 where one of the two is missing."""
        value = self.value[known][:, None]
        outside = np.maximum(np.maximum(self.low[None, :] - value, value - self.high[None, :]), 0.0)
        found = outside * outside
        if self.reading != "nearest":
            bounded = np.isfinite(self.low) & np.isfinite(self.high)
            low, high = np.where(bounded, self.low, 0.0), np.where(bounded, self.high, 0.0)
            of_middle = (value - (low + high)[None, :] / 2) ** 2
            if self.reading == "uniform":
                of_middle = of_middle + ((high - low) ** 2 / 12)[None, :]
            found = np.where(bounded[None, :], of_middle, found)
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
