"""Who holds each value of a sensitive attribute in equivalence classes, where one person may have several rows.

A person who has several rows may hold several values, and one value in several rows. What conditions on shares count is
each person once for each value that is held in the class, ``c_s``, and each person once for the class, ``n``:

* of alpha and of recursive (c, l)-diversity a share is one of persons: ``c_s / n`` of the class hold ``s``, and these
  shares may add up to more than 1;
* of entropy l-diversity, t-closeness, beta-likeness and delta-disclosure, which need shares that add up to 1, it is one
  of the pairs of a person and a value: ``c_s / Σ c_s``, in the class as in the table.

Both are those of :mod:`privrisk_spark.kernels.classes.diversity`, by which a release is assessed.

*Nothing of this is monotone.* A person who is in two classes, with one value here and another there, holds both in
their union, so that a share of the union need not be between those of its parts, and the pairs of the union need not be
the pairs of its parts: what all parts of a class meet the class may fail. Persons 1 and 2 hold ``a`` and ``b`` in one
class, and ``b`` and ``a`` in another: half of each class hold a value, and all of their union do. So conditions on
shares of persons (:func:`~privrisk_spark.kernels.recoding.problem.held_to`) declare no monotonicity, and searches leave
nothing out for them. How many values a class holds (p-sensitivity, distinct l-diversity) does not depend on whose they
are, and stays monotone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, IntArray, LongArray
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_keys, distinct_rows
from privrisk_spark.kernels.recoding.persons import Persons

__all__ = ["Held", "Holders", "runs_of"]


@dataclass(frozen=True, eq=False)
class Holders:
    """Who holds each value in each class.

    A *cell* is a class with one of its values. Who holds the value of a cell is counted as :class:`Persons` counts who
    is in a class. Somebody with other values in other cells may still be in one cell alone: cells of different values
    never unite.

    Attributes
    ----------
    class_start : ndarray of int64, shape (n_classes + 1,)
        The cells of class ``j`` are ``class_start[j] … class_start[j + 1]``, at least one.
    value : ndarray of int32, shape (n_cells,)
        Code of each, at least 0, ascending inside a class.
    of_cells : Persons
        Who holds the value of each cell.
    of_classes : Persons
        The persons in each class.
    of_known : Persons or None
        Those of them who hold a known value; None where no value is missing.
    """

    class_start: LongArray
    value: IntArray
    of_cells: Persons
    of_classes: Persons
    of_known: Persons | None = None

    @classmethod
    def of(
        cls, owner: LongArray, value: LongArray, person: LongArray, n_classes: int, *, missing: int | None = None
    ) -> Holders:
        """Take every distinct record, value and person that are together in a row.

        Parameters
        ----------
        owner, value, person : ndarrays of int64, shape (n,)
            Distinct record, code of the value and number of the person, all at least 0; the same may be given again.
        n_classes : int
            Distinct records, each of which has a row.
        missing : int, optional
            Code of the missing value.

        Raises
        ------
        InputError
            If a number is out of range, or a record has no row.
        """
        if len(value) and value.min() < 0:
            raise InputError("Holders: codes of values must be at least 0.")
        persons = Persons.of(owner, person, n_classes)
        first, cell = distinct_rows([owner, value])
        _, holding = distinct_rows([value, person])
        of_known = None
        if missing is not None:
            known = value != missing
            of_known = Persons.of(owner[known], person[known], n_classes)
        return cls.beside(owner[first], value[first], Persons.of(cell, holding, len(first)), persons, of_known)

    @classmethod
    def beside(
        cls,
        owner: LongArray,
        value: LongArray,
        of_cells: Persons,
        of_classes: Persons,
        of_known: Persons | None = None,
    ) -> Holders:
        """Take the cells with what was counted of them.

        Parameters
        ----------
        owner, value : ndarrays of int64, shape (n_cells,)
            Class and code of the value of each cell, each pair once, in lexicographic order.

        Raises
        ------
        InputError
            If they do not fit.
        """
        n_classes = len(of_classes.alone)
        start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_classes))]).astype(np.int64)
        found = cls(start, value.astype(np.int32), of_cells, of_classes, of_known)
        if (
            len(of_cells.alone) != len(value)
            or len(start) != n_classes + 1
            or (of_known is not None and len(of_known.alone) != n_classes)
        ):
            raise InputError("Holders: persons must be counted of every cell and of every class.")
        _ = found.runs
        return found

    @property
    def n_classes(self) -> int:
        """Classes."""
        return len(self.class_start) - 1

    @property
    def owner(self) -> LongArray:
        """Class of each cell, ndarray of int64, shape (n_cells,)."""
        return self.runs.owner

    @cached_property
    def runs(self) -> SensitiveRuns:
        """Persons who hold each value of each class, with the persons of the classes."""
        known = None if self.of_known is None else self.of_known.count
        return SensitiveRuns(self.class_start, self.value, self.of_cells.count, self.of_classes.count, known)

    @property
    def rows(self) -> LongArray:
        """Pairs of person and value of each class, each of which takes a row; ndarray of int64, shape (n_classes,)."""
        return self.runs.rows

    def where(self, kept: BoolArray) -> Holders:
        """Return those of some of the classes.

        Parameters
        ----------
        kept : ndarray of bool, shape (n_classes,)
        """
        of_cells = kept[self.owner]
        start = np.concatenate([[0], np.cumsum(np.diff(self.class_start)[kept])]).astype(np.int64)
        return Holders(
            start,
            self.value[of_cells],
            self.of_cells.where(of_cells),
            self.of_classes.where(kept),
            None if self.of_known is None else self.of_known.where(kept),
        )

    def united(self, of: LongArray, n_classes: int) -> Holders:
        """Return those of classes that are unions: class ``of[j]`` takes in class ``j``; each takes in one."""
        values = int(self.value.max(initial=0)) + 1
        pairs = of[self.owner] * values + self.value
        first, cell = distinct_keys(pairs, n_classes * values)
        key = pairs[first]
        start = np.concatenate([[0], np.cumsum(np.bincount(key // values, minlength=n_classes))]).astype(np.int64)
        return Holders(
            start,
            (key % values).astype(np.int32),
            self.of_cells.united(cell, len(key)),
            self.of_classes.united(of, n_classes),
            None if self.of_known is None else self.of_known.united(of, n_classes),
        )


Held = SensitiveRuns | Holders
"""A sensitive attribute in classes: how many rows have each value, or who holds it."""


def runs_of(held: Held) -> SensitiveRuns:
    """Return what numbers of classes are computed of."""
    return held.runs if isinstance(held, Holders) else held
