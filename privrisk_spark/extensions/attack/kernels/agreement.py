"""How far two records agree, attribute by attribute, in a few levels.

The comparison of a pair of records is a vector of agreement levels (Fellegi and Sunter 1969). Levels are compared
through hierarchies, so that a generalized cell agrees with what it covers. A cell that is suppressed or not known
cannot be compared: that is a level of its own, and no evidence. Levels are symmetric: it is the same whether an
intruder knows a person and looks for the row, or has a row and looks for the person.

References
----------
I. P. Fellegi, A. B. Sunter, "A theory for record linkage", J. Amer. Statist. Assoc. 64 (1969).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.differences import narrowed, refuse_other_than_nodes, shared_depths
from privrisk_spark.kernels.arrays import ByteArray, FloatArray, IntArray, LongArray

__all__ = ["Agreement", "LevelAgreement", "LostWeight", "Misfit", "NumberAgreement"]


class Agreement(Protocol):
    """Agreement levels of one attribute, between known cells and the distinct cells of a searched file."""

    @property
    def cells(self) -> int:
        """Distinct cells, v."""

    @property
    def levels(self) -> int:
        """Levels, L: 0 is agreement, L - 1 disagreement. L itself is a pair that cannot be compared."""

    @property
    def fitting(self) -> int:
        """Levels, from 0 on, of cells that fit each other: of one person where nothing is wrong, as it was changed."""

    def of(self, known: IntArray) -> ByteArray:
        """Return the levels of known cells with every cell of the file.

        Parameters
        ----------
        known : ndarray of int32, shape (u,)
            Nodes.

        Returns
        -------
        ndarray of uint8, shape (u, v)
            0 to L.
        """

    def among(self, places: LongArray) -> Agreement:
        """Return the levels with some of the cells.

        Parameters
        ----------
        places : ndarray of int64, shape (w,)
            Positions among the cells.
        """


@dataclass(frozen=True, eq=False)
class LevelAgreement:
    """Agreement by the lowest common ancestor of two nodes.

    Two nodes agree if one covers the other. Else the deeper they meet, the nearer they are, and they disagree if they
    meet in none of the depths asked for. The root covers everything and says nothing: it cannot be compared.

    Attributes
    ----------
    at_depth : ndarray of int32, shape (n_nodes, H + 1)
        Ancestor-or-self of each node at each depth, the root at depth 0; -1 below the node.
    nodes : ndarray of int32, shape (v,)
        Of the distinct cells of the file.
    near : tuple of int
        Least depth of the lowest common ancestor for each level between agreement and disagreement, descending and at
        least 1. By default one level: the two meet below the root.
    equal : bool
        Whether equal nodes are a level of their own, before that of nodes one of which covers the other.

    Raises
    ------
    InputError
        If a cell is no node, or the depths do not descend to at least 1.
    """

    at_depth: IntArray
    nodes: IntArray
    near: tuple[int, ...] = (1,)
    equal: bool = False

    def __post_init__(self) -> None:
        """Refuse cells that are no nodes, and depths out of order."""
        refuse_other_than_nodes(self.nodes, len(self.at_depth))
        if any(a <= b for a, b in pairwise((*self.near, 0))):
            raise InputError(f"Record linkage: depths of near values must descend, to at least 1. Got {self.near}.")

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return len(self.nodes)

    @property
    def levels(self) -> int:
        """Agreement, those between, and disagreement."""
        return len(self.near) + 2 + self.equal

    def among(self, places: LongArray) -> LevelAgreement:
        """As :meth:`Agreement.among`."""
        return narrowed(self, nodes=self.nodes[places])

    @property
    def fitting(self) -> int:
        """Those of nodes one of which covers the other."""
        return 1 + self.equal

    def of(self, known: IntArray) -> ByteArray:
        """As :meth:`Agreement.of`."""
        refuse_other_than_nodes(known, len(self.at_depth))
        shared = shared_depths(self.at_depth, known, self.nodes)
        mine, theirs = ((self.at_depth[nodes] >= 0).sum(axis=1).astype(np.int8) for nodes in (known, self.nodes))
        of_known, of_cell = mine[:, None], theirs[None, :]
        found = np.full(shared.shape, self.levels - 1, dtype=np.uint8)
        for depth in reversed(self.near):
            found[shared > depth] -= 1
        found[(shared == of_known) | (shared == of_cell)] = self.equal
        if self.equal:
            found[known[:, None] == self.nodes[None, :]] = 0
        found[(of_known == 1) | (of_cell == 1)] = self.levels
        return found


@dataclass(frozen=True, eq=False)
class NumberAgreement:
    """Agreement by the difference of the numbers that nodes stand for.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n_nodes,)
        Ends of what each node stands for, in standard deviations; equal for a number. A node with no finite end, such
        as the root or a missing value, cannot be compared.
    nodes : ndarray of int32, shape (v,)
        Of the distinct cells of the file.
    within : tuple of float
        Greatest difference of each level but disagreement, ascending and at least 0. Intervals differ by the gap
        between them. By default two agree if they overlap, and are near within half a standard deviation.

    Raises
    ------
    InputError
        If a node ends before it begins, a cell is no node, or the thresholds do not ascend from at least 0.
    """

    low: FloatArray
    high: FloatArray
    nodes: IntArray
    within: tuple[float, ...] = (0.0, 0.5)

    def __post_init__(self) -> None:
        """Refuse intervals that are none, and thresholds out of order."""
        if (self.high < self.low).any():
            raise InputError("Record linkage: an interval must not end before it begins.")
        refuse_other_than_nodes(self.nodes, len(self.low))
        ascending = all(a < b for a, b in pairwise(self.within))
        if not (self.within and self.within[0] >= 0 and ascending):
            raise InputError(f"Record linkage: thresholds must ascend, from at least 0. Got {self.within}.")

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return len(self.nodes)

    @property
    def levels(self) -> int:
        """One for each threshold, and disagreement."""
        return len(self.within) + 1

    def among(self, places: LongArray) -> NumberAgreement:
        """As :meth:`Agreement.among`."""
        return narrowed(self, nodes=self.nodes[places])

    @property
    def fitting(self) -> int:
        """All but disagreement: numbers that were changed a little are of one person, too."""
        return len(self.within)

    def of(self, known: IntArray) -> ByteArray:
        """As :meth:`Agreement.of`."""
        refuse_other_than_nodes(known, len(self.low))
        apart = np.maximum(
            self.low[known][:, None] - self.high[self.nodes][None, :],
            self.low[self.nodes][None, :] - self.high[known][:, None],
        )
        found = np.zeros(apart.shape, dtype=np.uint8)
        for threshold in self.within:
            found += apart > threshold
        mine, theirs = (np.isfinite(self.low[of]) | np.isfinite(self.high[of]) for of in (known, self.nodes))
        found[~mine, :] = self.levels
        found[:, ~theirs] = self.levels
        return found


@dataclass(frozen=True, eq=False)
class LostWeight:
    """Match weight that a pair of cells lacks of the greatest there is: a :class:`Difference` of one attribute.

    The match weight of a pair of records is a sum over attributes. So the pairs of least mean difference are those of
    greatest weight, and what finds the nearest records finds the likeliest ones.

    Attributes
    ----------
    weights : tuple of L + 1 float
        Of each level, finite; the last is that of pairs that cannot be compared.

    Raises
    ------
    InputError
        If there is not one finite weight a level.
    """

    agreement: Agreement
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse weights that are none."""
        if len(self.weights) != self.agreement.levels + 1 or not np.isfinite(self.weights).all():
            raise InputError("Record linkage: every agreement level must have one finite weight.")

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return self.agreement.cells

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`Difference.of`; in the unit of the weights."""
        weights = np.array(self.weights)
        return np.asarray((weights.max() - weights)[self.agreement.of(known)])

    def among(self, places: LongArray) -> LostWeight:
        """As :meth:`Difference.among`."""
        return narrowed(self, agreement=self.agreement.among(places))

    @property
    def misfit(self) -> Misfit:
        """The same of cells that do not fit each other, and nothing of those that do."""
        return Misfit(self.agreement, self.weights)


@dataclass(frozen=True, eq=False)
class Misfit:
    """What a pair of cells lacks of the greatest match weight if the two do not fit each other; else nothing.

    A suppressed or missing cell fits any other. A
    :class:`~privrisk_spark.extensions.attack.kernels.differences.Difference` by
    which blocks of consistent cells are made, where :class:`LostWeight` is what is searched by.

    Attributes
    ----------
    weights : tuple of L + 1 float
        As :class:`LostWeight` has them.
    """

    agreement: Agreement
    weights: tuple[float, ...]

    @property
    def cells(self) -> int:
        """Distinct cells."""
        return self.agreement.cells

    def of(self, known: IntArray) -> FloatArray:
        """As :meth:`Difference.of`; in the unit of the weights."""
        lost = max(self.weights) - np.array(self.weights)
        lost[: self.agreement.fitting], lost[-1] = 0.0, 0.0
        return np.asarray(lost[self.agreement.of(known)])

    def among(self, places: LongArray) -> Misfit:
        """As :meth:`Difference.among`."""
        return narrowed(self, agreement=self.agreement.among(places))
