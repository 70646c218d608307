"""How far two cells are apart, one of a file in which is searched and one that is known, attribute by attribute (T20).

Cells are nodes of a hierarchy, and may be generalized. Read as the nearest value they cover, they are at no distance
from it, and a cell that is suppressed or not known is at none from anything. Read as a uniform draw, a cell is the
farther the coarser it is: that is the better guess where a precise cell fits. What is returned are differences in
[0, 1], or squared standardized differences of numbers; a distance of records is an aggregate of them. They are
symmetric: it is the same whether an intruder knows a person and looks for the row, or has a row and looks for the
person.

References
----------
V. Torra, "Privacy models and disclosure risk" (2020, T20), record linkage: categories 0 or 1, standardized numbers, and
hierarchies by the lowest common ancestor.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, TypeVar

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LevelArray, LongArray

__all__ = ["Difference", "LevelDifference", "NumberDifference", "Reading", "narrowed", "standard_units"]

One = TypeVar("One")

Reading = Literal["nearest", "midpoint", "uniform"]
"""What a generalized cell is taken for: the nearest value it covers, its middle, or a uniform draw from it."""


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

    def among(self, places: LongArray) -> Difference:
        """Return the differences from some of the cells.

        Parameters
        ----------
        places : ndarray of int64, shape (w,)
            Positions among the cells.
        """


def narrowed(one: One, **cells: object) -> One:
    """The same object with other cells, some of its own: what was checked and found of its hierarchy stays."""
    found = copy(one)
    for name, value in cells.items():
        object.__setattr__(found, name, value)
    return found


def refuse_other_than_nodes(nodes: IntArray, n_nodes: int) -> None:
    """Refuse cells that are no nodes of their hierarchy."""
    if len(nodes) and (nodes.min() < 0 or nodes.max() >= n_nodes):
        raise InputError("Record linkage: every cell must be a node of its hierarchy.")


def shared_depths(at_depth: IntArray, known: IntArray, nodes: IntArray) -> LevelArray:
    """Nodes on the common way from the root to two nodes, 1 if they meet in the root alone.

    Parameters
    ----------
    at_depth : ndarray of int32, shape (n_nodes, H + 1)
        As :class:`LevelDifference` has it.
    known : ndarray of int32, shape (u,)
    nodes : ndarray of int32, shape (v,)

    Returns
    -------
    ndarray of int8, shape (u, v)
    """
    shared = np.zeros((len(known), len(nodes)), dtype=np.int8)
    for depth in range(at_depth.shape[1]):
        there = at_depth[known, depth]
        # Two numbers that no node has, so that what is below a node equals nothing.
        mine = np.where(there < 0, -2, there)
        shared += mine[:, None] == at_depth[nodes, depth][None, :]
    return shared


@dataclass(frozen=True, eq=False)
class LevelDifference:
    """Height of the lowest common ancestor over the height of the hierarchy.

    In a hierarchy of height 1 it is 0 or 1, the difference of categories. A node's height is that of the root less its
    depth.

    Attributes
    ----------
    at_depth : ndarray of int32, shape (n_nodes, H + 1)
        Ancestor-or-self of each node at each depth, the root at depth 0; -1 below the node. Parents have greater
        numbers than their children.
    leaves : ndarray of int64, shape (n_nodes,)
        Leaves under each node, 1 of a leaf.
    nodes : ndarray of int32, shape (v,)
        Of the distinct cells of the file.
    reading : {"nearest", "uniform"}
        ``nearest``: 0 where one node covers the other. ``uniform``: the expected difference of two leaves, one drawn
        from each node.

    Raises
    ------
    InputError
        If a cell is no node, or the reading is none of them: levels have no middle.
    """

    at_depth: IntArray
    leaves: LongArray
    nodes: IntArray
    reading: Reading = "nearest"

    def __post_init__(self) -> None:
        """Refuse cells that are no nodes."""
        refuse_other_than_nodes(self.nodes, len(self.at_depth))
        if self.reading == "midpoint":
            raise InputError("Record linkage: levels of a hierarchy have no middle; read cells as nearest or uniform.")

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return len(self.nodes)

    def among(self, places: LongArray) -> LevelDifference:
        """As :meth:`Difference.among`."""
        if self.reading == "uniform":
            _ = self._within  # once for all parts
        return narrowed(self, nodes=self.nodes[places])

    @cached_property
    def _within(self) -> FloatArray:
        """Expected difference of two leaves drawn from each node, shape (n_nodes,)."""
        levels = self.at_depth.shape[1]
        own = (self.at_depth >= 0).sum(axis=1)
        height = (levels - own) / max(levels - 1, 1)
        inside = np.zeros(len(own))  # n² times the expectation, added up from the children
        alike = np.zeros(len(own))  # squares of the children's leaves
        # Children before their parents: the deepest first.
        for node in np.argsort(-own, kind="stable"):
            n = float(self.leaves[node])
            if n > 1 or alike[node]:
                inside[node] += (n * n - alike[node]) * height[node]
            if own[node] > 1:
                parent = self.at_depth[node, own[node] - 2]
                inside[parent] += inside[node]
                alike[parent] += n * n
        return inside / self.leaves.astype(np.float64) ** 2

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`Difference.of`."""
        levels = self.at_depth.shape[1]
        shared = shared_depths(self.at_depth, known, self.nodes)
        mine, theirs = ((self.at_depth[nodes] >= 0).sum(axis=1).astype(np.int8) for nodes in (known, self.nodes))
        upper, lower = shared == mine[:, None], shared == theirs[None, :]
        found = (levels - shared) / max(levels - 1, 1)
        if self.reading == "nearest":
            found[upper | lower] = 0.0
            return np.asarray(found)
        a, b = np.nonzero(upper | lower)
        known_covers = upper[a, b]
        covering = np.where(known_covers, known[a], self.nodes[b])
        covered = np.where(known_covers, self.nodes[b], known[a])
        found[a, b] = self._nested(covering, covered)
        return np.asarray(found)

    def _nested(self, covering: IntArray, covered: IntArray) -> FloatArray:
        """Expected difference of a leaf of each node from one of a node it covers.

        A leaf drawn from the covering node is below each node on the way down to the covered one with the share of
        leaves that this has; where it leaves the way, the two meet there.
        """
        levels = self.at_depth.shape[1]
        total = self.leaves[covering].astype(np.float64)
        found = self._within[covered] * self.leaves[covered] / total
        begin = (self.at_depth[covering] >= 0).sum(axis=1) - 1
        end = (self.at_depth[covered] >= 0).sum(axis=1) - 1
        for depth in range(levels - 1):
            on_the_way = np.flatnonzero((depth >= begin) & (depth < end))
            here, below = self.at_depth[covered[on_the_way], depth], self.at_depth[covered[on_the_way], depth + 1]
            apart = (self.leaves[here] - self.leaves[below]) / total[on_the_way]
            found[on_the_way] += apart * (levels - 1 - depth) / max(levels - 1, 1)
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class NumberDifference:
    """Squared difference of the numbers that nodes stand for, in standard units.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n_nodes,)
        Ends of what each node stands for, equal for a number. A node without two finite ends, such as the root or a
        missing value, stands for any number. Read as the nearest one, it is at no difference from what it may be.
    nodes : ndarray of int32, shape (v,)
        Of the distinct cells of the file.
    reading : {"nearest", "midpoint", "uniform"}
        What stands for an interval. Of uniform draws it is the expected squared difference, that of the middles plus
        ``w²/12`` for each width ``w``.
    mean : float, optional
        Of the attribute, in standard units. Where it is given, a node without two finite ends is read as it by
        ``midpoint``, and as a draw with it and the deviation 1 by ``uniform``; where not, as the nearest number.
    known : tuple of (ndarray of float64, ndarray of float64), optional
        Ends of what each node stands for where it is known, if these are other ones than in the file: each file may be
        standardized by its own mean and deviation (T20).

    Raises
    ------
    InputError
        If a node ends before it begins, or a cell is no node.
    """

    low: FloatArray
    high: FloatArray
    nodes: IntArray
    reading: Reading = "nearest"
    mean: float | None = None
    known: tuple[FloatArray, FloatArray] | None = None

    def __post_init__(self) -> None:
        """Refuse intervals that are none."""
        if (self.high < self.low).any() or (self.of_known[1] < self.of_known[0]).any():
            raise InputError("Record linkage: an interval must not end before it begins.")
        refuse_other_than_nodes(self.nodes, min(len(self.low), len(self.of_known[0])))

    @property
    def of_known(self) -> tuple[FloatArray, FloatArray]:
        """Ends of what each node stands for where it is known."""
        return (self.low, self.high) if self.known is None else self.known

    def is_number(self, nodes: IntArray, *, known: bool = False) -> BoolArray:
        """Which nodes stand for one number, in the file or where they are known; ndarray of bool, shape (n,)."""
        low, high = self.of_known if known else (self.low, self.high)
        return np.asarray((low[nodes] == high[nodes]) & np.isfinite(low[nodes]))

    def centres(self, nodes: IntArray, *, known: bool = False) -> FloatArray:
        """Middles of what nodes stand for; of those that may be any number the mean, or 0 where it is not told."""
        low, high = self.of_known if known else (self.low, self.high)
        with np.errstate(invalid="ignore"):
            middle = (low[nodes] + high[nodes]) / 2
        return np.where(np.isfinite(middle), middle, self.mean or 0.0)

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return len(self.nodes)

    def among(self, places: LongArray) -> NumberDifference:
        """As :meth:`Difference.among`."""
        _ = self._ends  # once for all parts
        return narrowed(self, nodes=self.nodes[places])

    @cached_property
    def _ends(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """Ends by which cells of the file and known ones are compared."""
        file = self._filled(self.low, self.high)
        return file, file if self.known is None else self._filled(*self.known)

    def _filled(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends of any number are those with its mean and deviation, if they are to count."""
        if self.mean is None or self.reading == "nearest":
            return low, high
        bounded = np.isfinite(low) & np.isfinite(high)
        half = np.sqrt(3.0)  # a uniform draw from so far about the mean deviates by 1
        return np.where(bounded, low, self.mean - half), np.where(bounded, high, self.mean + half)

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`Difference.of`."""
        of_file, of_known = self._ends
        low, high = (end[known][:, None] for end in of_known)
        cell_low, cell_high = (end[self.nodes][None, :] for end in of_file)
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
