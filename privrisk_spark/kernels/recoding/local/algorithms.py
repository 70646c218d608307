"""The algorithms of local recoding by name, of one signature and one contract.

Each returns a :class:`~privrisk_spark.kernels.recoding.local.partition.Partition`, with that guarantee.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from privrisk_spark.kernels.recoding.local.bang import bang
from privrisk_spark.kernels.recoding.local.hilbert import hilbert
from privrisk_spark.kernels.recoding.local.mondrian import mondrian
from privrisk_spark.kernels.recoding.local.partition import Partition
from privrisk_spark.kernels.recoding.local.relaxed import mondrian_relaxed
from privrisk_spark.kernels.recoding.metrics import Measured
from privrisk_spark.kernels.recoding.problem import Condition

__all__ = ["PARTITIONS", "LocalRecoding"]


class LocalRecoding(Protocol):
    """An algorithm."""

    def __call__(
        self, measured: Measured, k: int, also: Sequence[Condition] = (), *, ordered: Sequence[bool] | None = None
    ) -> Partition:
        """Recode a table.

        Parameters
        ----------
        measured : Measured
        k : int
            Rows of every class, at least 1.
        also : sequence of Condition
            What every class must meet besides.
        ordered : sequence of k bool, optional
            Attributes whose values have an order that means something; an algorithm may make no use of it.
        """
        ...


PARTITIONS: dict[str, LocalRecoding] = {
    "mondrian": mondrian,
    "mondrian_relaxed": mondrian_relaxed,
    "hilbert": hilbert,
    "bang": bang,
}
"""By name."""
