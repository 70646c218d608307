"""Fictitious rows for a public report: what a release does to a row, shown by no row of the table.

A value before is a leaf of the column's hierarchy, chosen by a hash and not by the data, with every letter and digit
replaced: its shape is shown, and nothing else. How coarse it is afterwards follows the public shares of the levels.
Labels of inner nodes are shown if the policy wrote them, and blurred like values if they came from the data.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.results.release import AttributeLevels
from privrisk_spark.results.trade_off import RowPair

_ROWS = 4


def blurred(text: str | None) -> str | None:
    """Return the shape of a value: every letter an x, every digit a 9, at most 12 characters."""
    if text is None:
        return None
    shape = "".join("9" if one.isdigit() else "x" if one.isalpha() else one for one in text)
    return shape if len(shape) <= _LONGEST else shape[: _LONGEST - 1] + "…"


_LONGEST = 12


def fictitious_rows(hierarchies: Mapping[str, Hierarchy], levels: Sequence[AttributeLevels]) -> tuple[RowPair, ...]:
    """Return a few made-up rows before and after; the same for the same hierarchies and shares.

    Parameters
    ----------
    hierarchies : mapping of attribute to Hierarchy
    levels : sequence of AttributeLevels
        Public: of the release.
    """
    if not levels or not all(sum(one.rows) for one in levels):
        return ()
    return tuple(_row(hierarchies, levels, number) for number in range(_ROWS))


def _row(hierarchies: Mapping[str, Hierarchy], levels: Sequence[AttributeLevels], number: int) -> RowPair:
    before: list[str | None] = []
    after: list[str | None] = []
    for one in levels:
        hierarchy = hierarchies[one.attribute]
        leaf = _drawn("leaf", one.attribute, number) % max(1, hierarchy.n_leaves)
        # The middle of an even part of all rows: a few rows show the levels in their shares.
        place = (_drawn("turn", one.attribute, 0) + number * 2 + 1) % (2 * _ROWS)
        level = _at_share(one.rows, (place + 0.5) / (2 * _ROWS))
        node = int(hierarchy.ancestor[leaf, level])
        before.append(blurred(hierarchy.labels[leaf]))
        label = hierarchy.labels[node]
        known = node == hierarchy.root or (hierarchy.public and node >= hierarchy.n_leaves)
        after.append(label if known else blurred(label))
    return RowPair(tuple(before), tuple(after))


def _drawn(*of: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(of).encode()).digest()[:8], "big")


def _at_share(rows: Sequence[int], share: float) -> int:
    """Level of the row at a share of all, from the exact to the suppressed."""
    left = share * sum(rows)
    for level, number in enumerate(rows):
        left -= number
        if left < 0:
            return level
    return len(rows) - 1
