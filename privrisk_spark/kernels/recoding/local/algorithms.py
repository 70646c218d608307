"""The algorithms of local recoding by name, of one signature and one contract.

Each returns a :class:`~privrisk_spark.kernels.recoding.local.partition.Partition`, with that guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from privrisk_spark.kernels.classes.criteria import DISTINCT_DIVERSITY
from privrisk_spark.kernels.recoding.local.bang import bang
from privrisk_spark.kernels.recoding.local.hilbert import hilbert
from privrisk_spark.kernels.recoding.local.mondrian import mondrian
from privrisk_spark.kernels.recoding.local.partition import Partition
from privrisk_spark.kernels.recoding.local.relaxed import mondrian_relaxed
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition, held_to

__all__ = ["PARTITIONS", "LocalRecoding", "counting_persons"]


class LocalRecoding(Protocol):
    """An algorithm."""

    def __call__(self, measured: Measured, k: int, also: Sequence[Condition] = ()) -> Partition:
        """Recode a table.

        Parameters
        ----------
        k : int
            Rows of every class, at least 1.
        also : sequence of Condition
            What every class must meet besides.
        """
        ...


PARTITIONS: dict[str, LocalRecoding] = {
    "mondrian": mondrian,
    "mondrian_relaxed": mondrian_relaxed,
    "hilbert": hilbert,
    "bang": bang,
}
"""By name."""


def counting_persons(
    measured: Measured, k: int, also: Sequence[Condition] = ()
) -> tuple[Measured, tuple[Condition, ...]]:
    """Return a table whose persons are values, and what asks for ``k`` of them in every class.

    A class has ``k`` persons if it has ``k`` values of an attribute that says whose each row is. This is distinct
    diversity, which is monotone in generalization, so that every algorithm can promise it that knows which values the
    rows of its regions have: all but relaxed Mondrian.

    Parameters
    ----------
    measured : Measured
        Of a table with persons.
    k : int
        Persons of every class, at least 1.
    also : sequence of Condition
        What every class must meet besides; of the table's own sensitive attributes.

    Returns
    -------
    measured : Measured
        Without persons, and with one more sensitive attribute, the last.
    also : tuple of Condition
        With one more, the first.

    Raises
    ------
    InputError
        If a distinct record is nobody's.
    """
    table = measured.table
    assert table.persons is not None, "the table has persons"
    whose = table.persons.as_values(table.counts)
    asked = held_to(DISTINCT_DIVERSITY, k, attribute=len(table.held))
    return replace(measured, table=replace(table, held=(*table.held, whose), persons=None)), (asked, *also)
