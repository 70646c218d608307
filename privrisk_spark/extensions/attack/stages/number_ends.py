"""Numbers that the nodes of a hierarchy stand for, as an attack compares them."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.differences import standard_units
from privrisk_spark.extensions.attack.stages.protected import Tuples
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray


def numbers_of(name: str, hierarchy: Hierarchy) -> FloatArray:
    """Numbers that the leaves of a hierarchy are, or dates in days; NaN is the leaf of missing values.

    Returns
    -------
    ndarray of float64, shape (n_leaves,)

    Raises
    ------
    InputError
        If one is neither.
    """
    found = np.full(hierarchy.n_leaves, np.nan)
    for leaf, label in enumerate(hierarchy.labels[: hierarchy.n_leaves]):
        if label is None:
            continue
        try:
            found[leaf] = float(label)
        except ValueError:
            try:
                found[leaf] = dt.date.fromisoformat(label).toordinal()
            except ValueError:
                raise InputError(
                    f"attack.numbers: every value of the hierarchy of '{name}' must be a number or a date YYYY-MM-DD; "
                    "leave it out to compare by levels."
                ) from None
    return found


def values_of(name: str, hierarchy: Hierarchy, nodes: IntArray, *, number: bool) -> FloatArray:
    """Values that nodes are: numbers, or else the nodes themselves, of which equal ones are equal values.

    Parameters
    ----------
    nodes : ndarray of int32, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n,)
        NaN of the root, and of a missing value.
    """
    leaves = numbers_of(name, hierarchy) if number else np.arange(hierarchy.n_leaves, dtype=np.float64)
    missing = np.array([label is None for label in hierarchy.labels[: hierarchy.n_leaves]])
    leaves[missing] = np.nan
    inner = np.arange(hierarchy.n_leaves, hierarchy.n_nodes, dtype=np.float64)
    if number:
        inner[:] = np.nan
    inner[hierarchy.root - hierarchy.n_leaves] = np.nan
    return np.concatenate([leaves, inner])[nodes]


@dataclass(frozen=True, eq=False)
class NumberEnds:
    """What the nodes of a hierarchy of numbers stand for, in standard deviations of the values of a file.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n_nodes,)
        Infinite of the root, which stands for every number; NaN of a missing value.
    mean : float
        Of the values that they are standardized by.
    """

    low: FloatArray
    high: FloatArray
    mean: float

    @property
    def centred(self) -> NumberEnds:
        """The same about their mean."""
        return NumberEnds(self.low - self.mean, self.high - self.mean, 0.0)

    def equals(self, other: NumberEnds) -> bool:
        """Whether nodes stand for the same."""
        pairs = ((self.low, other.low), (self.high, other.high))
        return all(np.array_equal(mine, theirs, equal_nan=True) for mine, theirs in pairs)


def number_ends(name: str, hierarchy: Hierarchy, rows_of_node: LongArray) -> NumberEnds:
    """Ends of what each node of a hierarchy of numbers stands for.

    Parameters
    ----------
    rows_of_node : ndarray of int64, shape (n_nodes,)
        People with each node as their value.

    Raises
    ------
    InputError
        If a leaf is no number.
    """
    numbers = numbers_of(name, hierarchy)
    mean, deviation = standard_units(numbers, rows_of_node[: hierarchy.n_leaves])
    low, high = np.full(hierarchy.n_nodes, -np.inf), np.full(hierarchy.n_nodes, np.inf)
    for node in range(hierarchy.n_nodes - 1):
        under = numbers[hierarchy.first_leaf[node] : hierarchy.last_leaf[node]] / deviation
        low[node], high[node] = under.min(), under.max()
    return NumberEnds(low, high, mean / deviation)


def rows_of_nodes(tuples: Tuples, position: int, hierarchy: Hierarchy) -> LongArray:
    """People with each node of a column as their value; ndarray of int64, shape (n_nodes,)."""
    rows = np.zeros(hierarchy.n_nodes, dtype=np.int64)
    np.add.at(rows, tuples.nodes[:, position], tuples.rows)
    return rows


def ends_by_each_file(
    name: str, hierarchy: Hierarchy, people: LongArray, rows: LongArray
) -> tuple[NumberEnds, NumberEnds]:
    """Ends of nodes by the people's own mean and deviation, and by those of the rows of a protected table (T20).

    Parameters
    ----------
    people, rows : ndarray of int64, shape (n_nodes,)
        Of either file, with each node as their value.

    Returns
    -------
    tuple of (NumberEnds, NumberEnds)
        About the means. Both are the people's where the protected table generalizes the column: a cell is at no
        difference from what it covers.
    """
    mine = number_ends(name, hierarchy, people).centred
    generalized = rows[hierarchy.n_leaves : hierarchy.n_nodes].copy()
    generalized[hierarchy.root - hierarchy.n_leaves] = 0
    return mine, mine if generalized.any() else number_ends(name, hierarchy, rows).centred
