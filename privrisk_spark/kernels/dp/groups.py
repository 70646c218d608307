"""What a guarantee for one row says about several: groups of rows, and substitution of a row.

Status: *proved*, rational arithmetic with exponentials bounded from above.

If a mechanism is (epsilon, delta)-differentially private for tables that differ by one row, then for tables that
differ by c rows, ``Pr[M(D_0) in S] <= e^epsilon Pr[M(D_1) in S] + delta`` applied c times along a chain of tables
gives

    Pr[M(D_0) in S] <= e^(c epsilon) Pr[M(D_c) in S] + delta (1 + e^epsilon + ... + e^((c-1) epsilon)).

To replace a row is to remove one and to add one: a chain of two.

References
----------
C. Dwork, A. Roth, "The Algorithmic Foundations of Differential Privacy", 2014, Theorem 2.2 (there for delta 0). S.
Vadhan, "The Complexity of Differential Privacy", 2017, Lemma 2.2.
"""

from __future__ import annotations

from fractions import Fraction

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.numeric.rational import exp_bounds


def group_delta(epsilon: Fraction, delta: Fraction, rows: int) -> Fraction:
    """Bound the delta of a group of rows from above; its epsilon is ``rows * epsilon``.

    Parameters
    ----------
    epsilon : Fraction
        Of one row, at least 0.
    delta : Fraction
        Of one row, in [0, 1].
    rows : int
        In the group, at least 1.

    Returns
    -------
    Fraction
        ``delta * sum_{i < rows} e^(i epsilon)``, above it by a factor of less than 1 + 2^-200 in practice; at most 1,
        which is no guarantee.

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    if epsilon < 0 or not 0 <= delta <= 1:
        raise InputError("epsilon must be at least 0, and delta between 0 and 1.")
    if rows < 1:
        raise InputError(f"A group must have at least one row. Got {rows}.")
    total = Fraction(0)
    for i in range(rows):
        total += delta * exp_bounds(i * epsilon)[1]
        if total >= 1:
            return Fraction(1)
    return total
