r"""Privacy criteria: which number of a class, or of a record, is held against a bound, and what a search may rely on.

Every Boolean privacy model here gives each equivalence class one number, or each record one (the criteria of
:mod:`privrisk_spark.kernels.classes.concealment`), and asks that none is on the wrong side of a bound. How numbers
change as a recoding gets coarser decides which nodes of a lattice a search need not look at. A criterion declares that:

*Generalization.* A coarser recoding puts every class ``A`` into a larger one. ``monotone_in_generalization``: if all
classes of a recoding pass a bound, so do all of every coarser one. As classes of the coarser recoding are unions of
classes of the finer one, this holds if the number of ``A ∪ B`` is never worse than the worse of the two.

*Suppression.* A class that fails is suppressed whole: its records leave it for one suppressed class, where every
quasi-identifier is its root and which is held against no bound, and the other classes stay what they are. Distributions
of the table are of all its records, the suppressed ones too, and so are the populations. (The records of a suppressed
class released at the root are a class like any other to :class:`~privrisk_spark.kernels.classes.tally.ClassTally`; a
search leaves it out.) With ``monotone_in_suppression`` a coarser recoding never suppresses a record that the finer one
releases, so that the number of suppressed records never rises along generalization: that a node needs no more than the
limit is then true of all above it. This holds if ``A ∪ B`` passes wherever ``A`` does, whether ``B`` passes or not; it
implies the former. Without it, a large class ``B`` that fails can pull a good one down with it.

Two other readings of suppression are of no use to a search. To leave out whole classes makes no criterion worse, as
fewer numbers are held against the bound. To take single records out of a class can make every number worse but that of
the people of a population.

For the criteria of records the number is one of each original or released record, and suppressing a record releases it
with every quasi-identifier at its root, which is consistent with all records.

Proofs. ``n_X`` is the number of records of ``X``, ``q_X`` the shares of the sensitive values in ``X``, so that
``q_{A∪B}`` is a mean of ``q_A`` and ``q_B`` with positive weights, and ``p`` those of the table.

* Sizes (k-anonymity, k-map): ``n_{A∪B} >= max(n_A, n_B)``, of rows, of persons and of the population alike.
* Of the known values alone all this holds too, with ``n_X`` the records of ``X`` with a known value: a class without
  any has the worst number, but for the greatest share and homogeneity, where it has the best and adds nothing.
* Distinct values (p-sensitivity, distinct l-diversity, homogeneity): the values of ``A ∪ B`` are those of both.
* Entropy: it is concave, so ``H(q_{A∪B}) >= min(H(q_A), H(q_B))`` (Machanavajjhala, Kifer, Gehrke and
  Venkitasubramaniam, ACM TKDD 1(1), 2007, who prove this and the next one).
* Recursive (c, l): ``r_1(A∪B) <= r_1(A) + r_1(B)``; and ``r_l + … + r_m`` is what is left without the best ``l - 1``
  values, a minimum over choices of these, so that ``tail(A∪B) >= tail(A) + tail(B)``. The ratio is at most the mediant
  of the two ratios, and that at most the greater. So with the greatest ``l`` for a given ``c``.
* Greatest share, equal, ordered and hierarchical earth mover's distance to ``p``: convex in ``q`` (t-closeness: Li, Li
  and Venkatasubramanian 2007, their generalization property).
* Relative gain and ``|ln(q/p)|``: for every value the shares allowed are an interval, which holds means of its members.
* Consistent rows, matches: generalizing a released record adds edges to the consistency graph and takes none away, and
  a perfect matching stays one; so the number of every record can only rise, whatever becomes of others. For k-confusion
  this is so of the two methods that are the numbers of consistent rows and of matches; a method with a threshold may
  do anything, and no search relies on one.

What is declared false has a counterexample in ``tests/kernels/classes/test_criteria.py``: ``A`` holds two values once
each, ``B`` one of them four times, and together they fail what ``A`` passes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InternalError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.classes.bounds import Direction, fails
from privrisk_spark.kernels.classes.closeness import (
    equal_distance,
    greatest_enhanced_gain,
    greatest_gain,
    greatest_log_ratio,
    hierarchical_distance,
    ordered_distance,
)
from privrisk_spark.kernels.classes.concealment import confusion, matches
from privrisk_spark.kernels.classes.consistency import rows_per_original, rows_per_released
from privrisk_spark.kernels.classes.diversity import (
    SensitiveRuns,
    distinct_values,
    entropy_diversity,
    greatest_l,
    greatest_share,
    homogeneity,
    least_c,
)


@dataclass(frozen=True)
class Criterion:
    """How the number of a class or a record is held against a bound.

    Attributes
    ----------
    name : str
        Of the model, as in :data:`CRITERIA`.
    direction : {"at least", "at most"}
        What the number has to be. The worst class is one of the least k, or at the greatest distance.
    source : str
        Who defined it first.
    monotone_in_generalization, monotone_in_suppression : bool
        See the module's docstring, which has the proofs.
    number : callable or None
        The kernel that computes the numbers, ndarray of int64 or float64, shape (m,): of runs of sensitive values, and
        of what else its parameters name. None where the number is counted with the classes: their rows or persons, or
        the people of the population in them.
    strict : bool
        Whether a number equal to the bound fails.
    whole : bool
        Whether numbers are counts, which are compared exactly.
    of_nothing : float or None
        Number of a class without a known value, where missing values do not count; None where they always count.
    """

    name: str
    direction: Direction
    source: str
    monotone_in_generalization: bool
    monotone_in_suppression: bool
    number: Callable[..., FloatArray | LongArray] | None = None
    strict: bool = False
    whole: bool = False
    of_nothing: float | None = None

    def numbers_of_known(self, runs: SensitiveRuns, missing: int | None, *of: object, **given: object) -> FloatArray:
        """Compute the numbers of the known values; parameters as those of :attr:`number`.

        Parameters
        ----------
        missing : int or None
            Code of the missing value. Where None, or if the criterion compares shares with those of the table, it is a
            value like any other.
        *of, **given
            What else the numbers are computed of.

        Returns
        -------
        ndarray of float64, shape (m,)
            :attr:`of_nothing` for classes that hold no known value.
        """
        if missing is None or self.of_nothing is None:
            return self.numbers(runs, *of, **given).astype(np.float64)
        numbers = self.numbers(runs.without(missing), *of, **given).astype(np.float64)
        return np.where(runs.holds_only(missing), self.of_nothing, numbers)

    def numbers(self, *of: object, **given: object) -> FloatArray | LongArray:
        """Compute the numbers; parameters as those of :attr:`number`.

        Raises
        ------
        InternalError
            If the numbers are counted, not computed.
        """
        if self.number is None:
            raise InternalError(f"{self.name}: the numbers are counted with the classes; there is nothing to compute.")
        return self.number(*of, **given)

    def fails(self, values: FloatArray, asked: float) -> BoolArray:
        """Which numbers are on the wrong side of the bound; see :func:`~privrisk_spark.kernels.classes.bounds.fails`.

        Parameters
        ----------
        values : ndarray of float64
            No NaN; +inf allowed.
        asked : float
            Finite.

        Returns
        -------
        ndarray of bool
        """
        return fails(values, asked, self.direction, strict=self.strict, whole=self.whole)


_SAMARATI = "Samarati and Sweeney 1998"
_DIVERSITY = "Machanavajjhala et al. 2006"
_CLOSENESS = "Li, Li and Venkatasubramanian 2007"
_LIKENESS = "Cao and Karras 2012"
_REVISITED = "Gionis, Mazza and Tassa 2008"

K_ANONYMITY = Criterion("k-anonymity", "at least", _SAMARATI, True, True, whole=True)
"""Rows, or persons, of the class."""
K_MAP = Criterion("k-map", "at least", "Sweeney 2001", True, True, whole=True)
"""Persons of the population in the class."""
P_SENSITIVITY = Criterion(
    "p-sensitivity", "at least", "Truta and Vinay 2006", True, True, distinct_values, whole=True, of_nothing=0
)  # fmt: skip
"""Sensitive values in the class."""
DISTINCT_DIVERSITY = Criterion("distinct l-diversity", "at least", _DIVERSITY, True, True, distinct_values, whole=True,
                               of_nothing=0)  # fmt: skip
"""Sensitive values in the class, the same number."""
HOMOGENEITY = Criterion(
    "homogeneity", "at least", _DIVERSITY, True, True, homogeneity, whole=True, of_nothing=np.inf
)  # fmt: skip
"""The same number, but 1 where all persons hold one value and some hold others too; with 2 asked, the classes that fail
are those open to the homogeneity attack."""
ENTROPY_DIVERSITY = Criterion("entropy l-diversity", "at least", _DIVERSITY, True, False, entropy_diversity,
                              of_nothing=0)  # fmt: skip
"""``exp(H)`` of the class."""
RECURSIVE_C = Criterion(
    "recursive (c,l)-diversity: c", "at most", _DIVERSITY, True, False, least_c, strict=True,
    of_nothing=np.inf,
)  # fmt: skip
"""Least ``c``, not itself allowed, for a given ``l``."""
RECURSIVE_L = Criterion("recursive (c,l)-diversity: l", "at least", _DIVERSITY, True, False, greatest_l, whole=True,
                        of_nothing=0)  # fmt: skip
"""Greatest ``l`` for a given ``c``."""
ALPHA = Criterion("alpha", "at most", "Wong, Li, Fu and Wang 2006", True, False, greatest_share, of_nothing=0)
"""Greatest share of a sensitive value; (alpha,k)-anonymity with :data:`K_ANONYMITY` beside it."""
EQUAL_CLOSENESS = Criterion("t-closeness, equal distance", "at most", _CLOSENESS, True, False, equal_distance)
"""Earth mover's distance between class and table, where all values are 1 apart."""
ORDERED_CLOSENESS = Criterion("t-closeness, ordered distance", "at most", _CLOSENESS, True, False, ordered_distance)
"""The same by ranks."""
HIERARCHICAL_CLOSENESS = Criterion(
    "t-closeness, hierarchical distance", "at most", _CLOSENESS, True, False, hierarchical_distance
)
"""The same by the levels of a hierarchy."""
BETA_LIKENESS = Criterion("beta-likeness", "at most", _LIKENESS, True, False, greatest_gain)
"""Greatest relative gain of a sensitive value."""
ENHANCED_BETA_LIKENESS = Criterion(
    "enhanced beta-likeness", "at most", _LIKENESS, True, False, greatest_enhanced_gain
)  # fmt: skip
"""The same, infinite where a gain is above ``-ln p``."""
DELTA_DISCLOSURE = Criterion(
    "delta-disclosure", "at most", "Brickell and Shmatikov 2008", True, False, greatest_log_ratio, strict=True
)
"""Greatest ``|ln(q/p)|``."""
ONE_K = Criterion("(1,k)-anonymity", "at least", _REVISITED, True, True, rows_per_original, whole=True)
"""Released rows consistent with the original record."""
K_ONE = Criterion("(k,1)-anonymity", "at least", _REVISITED, True, True, rows_per_released, whole=True)
"""Original rows consistent with the released record."""
K_CONCEALMENT = Criterion(
    "k-concealment", "at least", "Tassa, Mazza and Gionis 2012", True, True, matches, whole=True
)  # fmt: skip
"""Released rows that are a match of the original record."""
K_CONFUSION = Criterion("k-confusion", "at least", "Stokes and Torra 2012", False, False, confusion, whole=True)
"""Released rows the original record may be linked to, by a method of reidentification."""

CRITERIA = {
    criterion.name: criterion
    for criterion in (
        K_ANONYMITY,
        K_MAP,
        P_SENSITIVITY,
        DISTINCT_DIVERSITY,
        HOMOGENEITY,
        ENTROPY_DIVERSITY,
        RECURSIVE_C,
        RECURSIVE_L,
        ALPHA,
        EQUAL_CLOSENESS,
        ORDERED_CLOSENESS,
        HIERARCHICAL_CLOSENESS,
        BETA_LIKENESS,
        ENHANCED_BETA_LIKENESS,
        DELTA_DISCLOSURE,
        ONE_K,
        K_ONE,
        K_CONCEALMENT,
        K_CONFUSION,
    )
}
"""By name."""

CLOSENESS = {"equal": EQUAL_CLOSENESS, "ordered": ORDERED_CLOSENESS, "hierarchical": HIERARCHICAL_CLOSENESS}
"""t-closeness by the ground distance between values."""
