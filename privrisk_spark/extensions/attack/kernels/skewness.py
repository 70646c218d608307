"""What a class says beyond the table: skewness and similarity (Li, Li and Venkatasubramanian 2007).

A class with values as diverse as one likes may make one of them far more probable than the table does (skewness), or
hold values that are different and mean the same (similarity). With ``q`` the shares in somebody's class, and ``p``
those in the table, the *gain* of a value is posterior over prior, ``q/p``.

Status: *tested*. Individuals who hold several values are those of
:mod:`~privrisk_spark.extensions.attack.kernels.individuals`.

References
----------
N. Li, T. Li, S. Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and l-diversity", ICDE 2007, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.extensions.attack.kernels.inference import at_values
from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.classes.bounds import fails
from privrisk_spark.kernels.classes.closeness import TableDistribution
from privrisk_spark.kernels.classes.diversity import SensitiveRuns
from privrisk_spark.kernels.numeric.distinct import distinct_rows

__all__ = ["Gains", "gains", "similar"]


@dataclass(frozen=True, eq=False)
class Gains:
    """Gains of the values of each class.

    Attributes
    ----------
    people : ndarray of int64, shape (m,)
        Members of each class.
    greatest : ndarray of float64, shape (m,)
        Of the value that gains most, at least 1: positive disclosure.
    least : ndarray of float64, shape (m,)
        Of the table's value that loses most, at most 1: negative disclosure; 0 if the class lacks one.
    own : ndarray of float64, shape (n_runs,)
        Of each value of each class, in the order of the runs: of the value its holders truly have.
    runs : SensitiveRuns
        What was compared with the table.
    """

    people: LongArray
    greatest: FloatArray
    least: FloatArray
    own: FloatArray
    runs: SensitiveRuns

    def exposed(self, factor: float, truth: SensitiveRuns | None = None) -> Found:
        """People whose own value has a gain above a factor.

        Parameters
        ----------
        factor : float
            Finite, at least 1. A gain that equals it is not above it.
        truth : SensitiveRuns, optional
            What the people hold who are looked for in each class; the members themselves if not given.

        Raises
        ------
        InputError
            If the factor is not so, or if there are not as many classes.
        """
        those, above = self.runs if truth is None else truth, _above(self.own, factor)
        return found(at_values(those, self.runs, above), those.count)


def gains(runs: SensitiveRuns, table: TableDistribution) -> Gains:
    """Compare the values of each class with those of the table.

    Raises
    ------
    InputError
        If a class is no part of the table.
    """
    table.holds(runs)
    own = np.asarray(runs.share / table.share[runs.value])
    lacks = np.diff(runs.class_start) < table.present
    least = np.where(lacks, 0.0, -runs.greatest(-own) if runs.n_classes else 0.0)
    # Shares sum to 1 in both, so that what rounds to less than 1 is 1, and so with what loses.
    return Gains(runs.members, np.maximum(runs.greatest(own), 1.0), np.minimum(least, 1.0)[: runs.n_classes], own, runs)


def similar(runs: SensitiveRuns, group: IntArray) -> SensitiveRuns:
    """Put values that mean the same together, for what is inferred of groups of values.

    Parameters
    ----------
    runs : SensitiveRuns
        Of rows. Persons who hold two values of a group would be counted twice: group the values before persons are
        counted.
    group : ndarray of int32, shape (v,)
        Of each value, such as its node at a level of a hierarchy; at least 0.

    Returns
    -------
    SensitiveRuns
        Of the same classes, with the groups as values.

    Raises
    ------
    InputError
        If persons are counted, or a value has no group.
    """
    if runs.persons is not None:
        raise InputError("Similarity attack: values of persons must be grouped before persons are counted.")
    if runs.n_classes and int(runs.value.max()) >= len(group):
        raise InputError(f"Similarity attack: groups are given for {len(group)} value codes, but there are more.")
    of_run = group[runs.value]
    first, member = distinct_rows([runs.owner, of_run])
    count = np.zeros(len(first), dtype=np.int64)
    np.add.at(count, member, runs.count)
    start = np.searchsorted(runs.owner[first], np.arange(runs.n_classes + 1)).astype(np.int64)
    return SensitiveRuns(start, of_run[first].astype(np.int32), count)


def _above(gain: FloatArray, factor: float) -> FloatArray:
    if not (math.isfinite(factor) and factor >= 1):
        raise InputError(f"Skewness attack: a factor must be a finite number of at least 1, not {factor}.")
    return fails(gain, factor, "at most").astype(np.float64)
