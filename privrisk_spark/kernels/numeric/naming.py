"""Columns that name individuals: a value repeats, and determines two columns that have nothing to do with each other.

An individual with several rows has one birth date and one sex in all of them, so the column with their id determines
both. Birth date and sex do not determine each other. A postcode also determines a city and a state, but there the city
determines the state. Status: *heuristic*; a shop that determines a size and a region is found, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privrisk_spark.kernels.arrays import LongArray

FEWEST_VALUES = 20
"""Distinct values below which a column names groups and not individuals."""

MOST_UNEXPLAINED = 0.1
"""A column determines another if at most this share of the expected disagreement is left: errors of input are usual."""

LEAST_UNRELATED = 0.5
"""Two columns are unrelated if each leaves more than this share of the other's expected disagreement."""

LEAST_EXPECTED = 20.0
"""Disagreements that chance would make, below which a column may determine another by chance."""

_COMPARED_PAIRS = 5_000
"""Pairs of rows that show that most columns are not determined, before all rows are compared."""

_PAIRED = 30
"""Determined columns of which it is asked whether two are unrelated, the first ones."""


def find_naming_columns(
    codes: LongArray, asked: Sequence[int], others: Sequence[int] | None = None
) -> dict[int, tuple[int, int]]:
    """Find columns that repeat and determine two others that do not determine each other.

    Rows that share a value of the column are compared. The disagreement of another column is the share of pairs of
    such rows that differ in it, each value weighted by its rows less one. It is compared with the share of all pairs
    of rows that differ.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, k)
        Equal values have equal codes; a missing value is negative.
    asked : sequence of int
        Columns that may name individuals.
    others : sequence of int, optional
        Columns that they may determine; default all.

    Returns
    -------
    dict of int to (int, int)
        Columns in the order of `asked`, each with the first two columns that it determines and that do not determine
        each other.
    """
    columns = [_numbered(codes[:, column]) for column in range(codes.shape[1])]
    able = range(codes.shape[1]) if others is None else others
    found = {}
    for column in asked:
        groups = _Groups.of(columns[column])
        if groups.values < FEWEST_VALUES:
            continue
        determined = _determined(groups, columns, [other for other in able if other != column])
        # One row a value: an individual's own rows must not make birth dates look like ids.
        modes = {other: _numbered(_modes(columns[column], columns[other])) for other in determined[:_PAIRED]}
        pair = next((two for two in combinations(list(modes), 2) if _unrelated(modes[two[0]], modes[two[1]])), None)
        if pair is not None:
            found[column] = pair
    return found


def determined_columns(codes: LongArray, column: int) -> list[int]:
    """Return the columns that a column determines, however few its values are.

    Parameters
    ----------
    codes : ndarray of int64, shape (n, k)
        As :func:`find_naming_columns` takes them.
    """
    columns = [_numbered(codes[:, other]) for other in range(codes.shape[1])]
    return _determined(
        _Groups.of(columns[column]), columns, [other for other in range(len(columns)) if other != column]
    )


def _determined(groups: _Groups, columns: Sequence[LongArray], others: Sequence[int]) -> list[int]:
    if len(groups.rows) < LEAST_EXPECTED:
        return []
    first, second = groups.neighbours(_COMPARED_PAIRS)
    others = [other for other in others if _may_be_determined(groups, columns[other], first, second)]
    measured = {other: groups.unexplained(columns[other]) for other in others}
    return [other for other, left in measured.items() if left is not None and left <= MOST_UNEXPLAINED]


def _may_be_determined(groups: _Groups, codes: LongArray, first: LongArray, second: LongArray) -> bool:
    """Whether some pairs of rows that share a value leave it open that they agree; all pairs are costly to compare."""
    one, other = codes[first], codes[second]
    there = (one >= 0) & (other >= 0)
    apart = int(np.count_nonzero(there & (one != other)))
    # A wrong value disagrees with both neighbours, hence twice; and few disagree by chance.
    most = 2 * MOST_UNEXPLAINED * int(np.count_nonzero(there))
    return apart <= LEAST_EXPECTED or (
        apart <= most + LEAST_EXPECTED and apart <= most * groups.by_chance(codes) + LEAST_EXPECTED
    )


def _numbered(codes: LongArray) -> LongArray:
    """Codes 0, 1, … in the order of the given ones; a missing value stays -1."""
    result = np.full(len(codes), -1, dtype=np.int64)
    there = codes >= 0
    if int(codes.max(initial=-1)) < 2 * len(codes):  # without a sort
        used = np.bincount(codes[there])
        result[there] = (np.cumsum(used > 0) - 1)[codes[there]]
    else:
        result[there] = np.unique(codes[there], return_inverse=True)[1]
    return result


@dataclass(frozen=True, eq=False)
class _Groups:
    """Rows that share a value with another row, in groups.

    Attributes
    ----------
    present, rows : ndarray of int64
        Rows that have a value; those that share it.
    group : ndarray of int64
        Which of the values each of `rows` has.
    values : int
        Distinct values.
    """

    present: LongArray
    rows: LongArray
    group: LongArray
    values: int

    @classmethod
    def of(cls, codes: LongArray) -> _Groups:
        """Group rows by codes of :func:`_numbered`."""
        present = np.flatnonzero(codes >= 0)
        sizes = np.bincount(codes[present])
        rows = present[sizes[codes[present]] > 1]
        return cls(present, rows, codes[rows], len(sizes))

    def neighbours(self, most: int) -> tuple[LongArray, LongArray]:
        """Rows next to each other in a group, evenly spaced over all groups if there are more than `most`."""
        order = self.rows[np.argsort(self.group, kind="stable")]
        sorted_groups = np.sort(self.group, kind="stable")
        first = np.flatnonzero(sorted_groups[1:] == sorted_groups[:-1])
        first = first[:: -(-len(first) // most)] if len(first) else first
        return order[first], order[first + 1]

    def by_chance(self, codes: LongArray) -> float:
        """Share of all pairs of rows that differ in another column."""
        values = codes[self.present]
        of_value = np.bincount(values[values >= 0]).astype(np.float64)
        total = of_value.sum()
        if total < 2:
            return 0.0
        return 1.0 - float((of_value * (of_value - 1.0)).sum() / (total * (total - 1.0)))

    def unexplained(self, codes: LongArray) -> float | None:
        """Share of the expected disagreement within groups that is left; None if too little is expected."""
        by_chance = self.by_chance(codes)
        if by_chance * len(self.rows) < LEAST_EXPECTED:
            return None
        group, _, rows = _tally(self.group, codes[self.rows])
        sizes = np.bincount(group, weights=rows, minlength=self.values)
        agreeing = np.bincount(group, weights=rows * (rows - 1.0), minlength=self.values)
        several = sizes > 1
        expected = by_chance * float((sizes[several] - 1).sum())
        if expected < LEAST_EXPECTED:
            return None
        # Pairs that disagree over all pairs of a group, times its rows less one.
        return float(((sizes[several] - 1) - agreeing[several] / sizes[several]).sum()) / expected


def _modes(groups: LongArray, codes: LongArray) -> LongArray:
    """The most frequent value of each group, the smallest of several; -1 for a group without one."""
    there = groups >= 0
    group, values, rows = _tally(groups[there], codes[there])
    result = np.full(int(groups.max(initial=-1)) + 1, -1, dtype=np.int64)
    order = np.lexsort((-values, rows, group))
    result[group[order]] = values[order]
    return result


def _tally(group: LongArray, values: LongArray) -> tuple[LongArray, LongArray, LongArray]:
    """Group, value and rows of each pair of group and value that occurs; missing values are left out."""
    there = values >= 0
    width = int(values.max(initial=0)) + 1
    keys, rows = np.unique(group[there] * width + values[there], return_counts=True)
    return keys // width, keys % width, rows.astype(np.int64)


def _unrelated(one: LongArray, other: LongArray) -> bool:
    """Whether neither determines the other; one whose values are too seldom equal to show it does not."""
    left = _Groups.of(one).unexplained(other), _Groups.of(other).unexplained(one)
    return all(share is None or share > LEAST_UNRELATED for share in left)
