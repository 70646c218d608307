"""Records a class may be told from: where a missing or suppressed value may be any, classes overlap.

Two records are compatible if in every attribute they have the same value, or one of them has a value that may be any
(a missing value of a microdata table, a cell that was suppressed to the root), or if one of them is suppressed whole
where such records count as compatible with all. The crowd a record hides in is what it is compatible with. It is how
sdcMicro counts ``fk`` and ``Fk`` with missing values (Templ, Kowarik and Meindl, JSS 67(4), 2015, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray
from privrisk_spark.kernels.counting.persons import Joins, signed_vectors
from privrisk_spark.kernels.numeric.distinct import distinct_rows


def compatible_sums(
    nodes: IntArray, amounts: LongArray, roots: Sequence[int], wild: Sequence[int], suppressed: BoolArray | None = None
) -> LongArray:
    """Sum amounts over the classes each class is compatible with, itself among them.

    Parameters
    ----------
    nodes : ndarray of int32, shape (m, k)
        Of each class, different for different classes.
    amounts : ndarray of int64, shape (m, a)
        What a class has: rows, weights.
    roots : sequence of int, length k
        The node that may be any value.
    wild : sequence of int
        Attributes in which it may; in the others it is equal to its like.
    suppressed : ndarray of bool, shape (m,), optional
        Classes that are compatible with all.

    Returns
    -------
    ndarray of int64, shape (m, a)
        At least the amounts.
    """
    any_value = np.zeros(nodes.shape, dtype=np.bool_)
    for i in wild:
        any_value[:, i] = nodes[:, i] == roots[i]
    if suppressed is not None:
        any_value[suppressed] = True
    first, pattern = distinct_rows(list(any_value.T))
    patterns = any_value[first]
    members = [np.flatnonzero(pattern == number) for number in range(len(first))]
    result = np.zeros(amounts.shape, dtype=np.int64)
    for one, of_others in zip(patterns, members, strict=True):
        # Classes that differ from these in other attributes alone are looked up together.
        either, at = distinct_rows(list((patterns | one).T))
        for number, representative in enumerate(either):
            compared = np.flatnonzero(~(patterns | one)[representative])
            asking = np.concatenate([members[other] for other in np.flatnonzero(at == number)])
            result[asking] += _looked_up(nodes, amounts, asking, of_others, compared)
    return result


def compatible_persons(
    nodes: IntArray, of_class: LongArray, person: LongArray, roots: Sequence[int], wild: Sequence[int]
) -> LongArray:
    """Count the distinct persons of the classes each class is compatible with, its own among them.

    Parameters
    ----------
    nodes : ndarray of int32, shape (m, k)
        Of each class, different for different classes.
    of_class, person : ndarray of int64, shape (n,)
        Who has a row of which class; pairs may repeat.
    roots, wild
        As :func:`compatible_sums` takes them; a root is greater than the values it stands for.

    Returns
    -------
    ndarray of int64, shape (m,)

    Notes
    -----
    A row is consistent with its own value and the root, and a root that may be any with all: a tree of one level, in
    which rows of a person are put together with signs (:mod:`privrisk_spark.kernels.counting.persons`). Rows that
    differ where no value may be any share no class, and are put together apart.
    """
    if not len(person):
        return np.zeros(len(nodes), dtype=np.int64)
    rows = nodes[of_class]
    _, apart = distinct_rows([person, *(rows[:, i] for i in range(len(roots)) if i not in wild)])
    parts = list(signed_vectors(Joins.of_values(roots, wild), apart, list(rows.T)))
    vectors = np.concatenate([np.column_stack(columns) for columns, _ in parts])
    both = np.concatenate([nodes, vectors])
    amounts = np.concatenate([np.zeros(len(nodes), dtype=np.int64), *(counts for _, counts in parts)])
    first, member = distinct_rows(list(both.T))
    sums = np.zeros((len(first), 1), dtype=np.int64)
    np.add.at(sums[:, 0], member, amounts)
    result: LongArray = compatible_sums(both[first], sums, roots, wild)[member[: len(nodes)], 0]
    return result


def _looked_up(
    nodes: IntArray, amounts: LongArray, asking: LongArray, others: LongArray, compared: LongArray
) -> LongArray:
    """Sum, for each class that asks, what others have that equal it in some attributes."""
    if not len(compared):
        return np.broadcast_to(amounts[others].sum(axis=0), (len(asking), amounts.shape[1]))
    if len(compared) == nodes.shape[1]:  # both are of the pattern without any: a class equals itself alone
        return amounts[asking]
    both = np.concatenate([asking, others])
    first, member = distinct_rows([nodes[both, i] for i in compared])
    sums = np.zeros((len(first), amounts.shape[1]), dtype=np.int64)
    np.add.at(sums, member[len(asking) :], amounts[others])
    return sums[member[: len(asking)]]
