"""Classification metric: rows whose class label is not that of most of their equivalence class.

Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.exact_sums import exact_dot, exact_total


@dataclass(frozen=True)
class ClassificationTally:
    """How many rows have another class label than most of their equivalence class.

    Attributes
    ----------
    minority : int
        Rows without the majority label of their class, and suppressed rows.
    charged : int
        ``Σ f`` over the rows without the majority label of their class, ``f`` the size of the class.
    """

    records: int = 0
    minority: int = 0
    charged: int = 0

    @classmethod
    def of(
        cls, class_start: LongArray, value: IntArray, count: LongArray, *, suppressed: BoolArray | None = None
    ) -> ClassificationTally:
        """Tally whole classes.

        Parameters
        ----------
        class_start : ndarray of int64, shape (m + 1,)
            Runs of class j are ``class_start[j] … class_start[j + 1]`` of the two arrays below; at least one each.
        value : ndarray of int32, shape (n_runs,)
            Class label, ascending within an equivalence class. Which of several most frequent labels is the majority
            changes no figure.
        count : ndarray of int64, shape (n_runs,)
            Rows of that label, at least 1.
        suppressed : ndarray of bool, shape (m,), optional
            Fully suppressed classes. By Iyengar every row of theirs counts, majority or not; the form with class sizes
            knows no suppression and takes them as a class like any other.

        Raises
        ------
        InputError
            If the runs do not fit.
        """
        n_runs = len(count)
        lengths = np.diff(class_start)
        if class_start[0] != 0 or class_start[-1] != n_runs or value.shape != count.shape or np.any(lengths < 1):
            raise InputError("Runs must be those of the classes, at least one each.")
        if n_runs and int(count.min()) < 1:
            raise InputError("A run must have at least one row.")
        inside = np.ones(max(n_runs - 1, 0), dtype=np.bool_)
        inside[class_start[1:-1] - 1] = False
        if np.any(np.diff(value.astype(np.int64))[inside] <= 0):
            raise InputError("Labels must ascend within an equivalence class, each once.")
        if not len(lengths):
            return cls()
        size = np.add.reduceat(count, class_start[:-1])
        others = size - np.maximum.reduceat(count, class_start[:-1])
        by_size = exact_dot(others, size)
        if suppressed is not None:
            if suppressed.shape != size.shape:
                raise InputError(f"There must be one mark per class. Got shapes {suppressed.shape} and {size.shape}.")
            others = np.where(suppressed, size, others)
        return cls(exact_total(size), exact_total(others), by_size)

    @classmethod
    def empty(cls) -> ClassificationTally:
        """Tally of no class."""
        return cls()

    def plus(self, other: ClassificationTally) -> ClassificationTally:
        """Tally of both together."""
        return ClassificationTally(
            self.records + other.records, self.minority + other.minority, self.charged + other.charged
        )

    @property
    def metric(self) -> float:
        """Iyengar's ``CM = (Σ_records penalty) / N`` with penalties of 0 and 1; in [0, 1], 0 without rows."""
        return float(Fraction(self.minority, self.records)) if self.records else 0.0
