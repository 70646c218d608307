"""Equivalence classes as arrays: what every measure of a table or a release is computed from.

Records with equal quasi-identifiers form an equivalence class. A quasi-identifier is a node of a value generalization
hierarchy, so that a table as it is (leaves) and a release (any nodes) have one form. Classes may come in pieces, each
class whole in one of them; measures are tallies of pieces that are added up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns


@dataclass(frozen=True, eq=False)
class Classes:
    """Equivalence classes, in lexicographic order of their nodes.

    Attributes
    ----------
    nodes : ndarray of int32, shape (m, k)
    rows : ndarray of int64, shape (m,)
        Positive.
    persons : ndarray of int64, shape (m,), or None
        Distinct persons, at most the rows; None where each row is a person.
    millionths : ndarray of int64, shape (m,), or None
        Sum of the sampling weights, in millionths; None where there are none.
    held : tuple of SensitiveRuns
        Of each sensitive attribute: rows with each value, or persons where persons are counted; a missing value is the
        code after the last.
    compatible : ndarray of int64, shape (m,), or None
        Rows, or persons where they are counted, the class is compatible with, at least its own; None where classes do
        not overlap.
    compatible_millionths : ndarray of int64, shape (m,), or None
        Sum of their sampling weights.
    """

    nodes: IntArray
    rows: LongArray
    persons: LongArray | None = None
    millionths: LongArray | None = None
    held: tuple[SensitiveRuns, ...] = ()
    compatible: LongArray | None = None
    compatible_millionths: LongArray | None = None

    @classmethod
    def none(cls, k: int, attributes: int, *, persons: bool = False, weighted: bool = False) -> Classes:
        """No class at all."""
        nothing = np.zeros(0, dtype=np.int64)
        start, code = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
        empty = SensitiveRuns(start, code, nothing, nothing if persons else None)
        return cls(
            nodes=np.zeros((0, k), dtype=np.int32),
            rows=nothing,
            persons=nothing if persons else None,
            millionths=nothing if weighted else None,
            held=(empty,) * attributes,
        )

    @property
    def sizes(self) -> LongArray:
        """Class sizes ``f``: persons where they are counted, else rows."""
        return self.rows if self.persons is None else self.persons

    @property
    def crowds(self) -> LongArray:
        """Among how many a record of the class hides: what it is compatible with, else the class's size."""
        return self.sizes if self.compatible is None else self.compatible

    def where(self, kept: BoolArray) -> Classes:
        """Return some of the classes.

        Parameters
        ----------
        kept : ndarray of bool, shape (m,)
        """

        def some(values: LongArray | None) -> LongArray | None:
            return None if values is None else values[kept]

        return Classes(
            self.nodes[kept],
            self.rows[kept],
            some(self.persons),
            some(self.millionths),
            tuple(runs.where(kept) for runs in self.held),
            some(self.compatible),
            some(self.compatible_millionths),
        )

    def __len__(self) -> int:
        return len(self.rows)
