"""Risk of a household: that at least one of its records is found.

Records of one household stand together: who finds one of them finds the others, as they are linked. With ``r_i`` the
risk of each, found independently of each other, the household's is ``1 - Π (1 - r_i)``, and it is that of each of its
records.

Source: Hundepool et al., "Statistical Disclosure Control", Wiley, 2012, section 3.3.2; Templ, Kowarik and Meindl,
"Statistical Disclosure Control for Micro-Data Using the R Package sdcMicro", Journal of Statistical Software 67(4),
2015, section 3.4.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.numeric.exact_sums import ExactMean
from privrisk_spark.kernels.numeric.independent import any_of


def household_risk(household: LongArray, risk: FloatArray) -> FloatArray:
    """``1 - Π (1 - r_i)`` of each household.

    Parameters
    ----------
    household : ndarray of int64, shape (n,)
        Household of each record, numbered from 0 without gaps.
    risk : ndarray of float64, shape (n,)
        Probabilities.

    Returns
    -------
    ndarray of float64, shape (m,)
        Probabilities; the order of the records changes no bit.

    Raises
    ------
    InputError
        If the shapes differ, or a risk is no probability.
    """
    if household.shape != risk.shape:
        raise InputError(f"There must be one household per record. Got shapes {household.shape} and {risk.shape}.")
    if not np.all((risk >= 0) & (risk <= 1)):
        raise InputError("Risks of records must be probabilities between 0 and 1, and some are not.")
    return any_of(household, risk)


@dataclass(frozen=True)
class HouseholdTally:
    """Risks of households, a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    of_records : ExactMean
        Of each record's household's risk.
    most : float
        Greatest; 0 of no household.
    """

    households: int = 0
    of_records: ExactMean = field(default_factory=ExactMean.empty)
    most: float = 0.0

    @classmethod
    def of(cls, household: LongArray, risk: FloatArray) -> HouseholdTally:
        """Tally whole households; parameters and errors as for :func:`household_risk`."""
        found = household_risk(household, risk)
        members = np.bincount(household, minlength=len(found)).astype(np.int64)
        return cls(len(found), ExactMean.of(found, members), float(found.max(initial=0.0)))

    @classmethod
    def empty(cls) -> HouseholdTally:
        """Tally of no household."""
        return cls()

    def plus(self, other: HouseholdTally) -> HouseholdTally:
        """Tally of both together."""
        return HouseholdTally(
            self.households + other.households, self.of_records.plus(other.of_records), max(self.most, other.most)
        )
