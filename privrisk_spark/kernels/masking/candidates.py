"""What an intruder who knows how a file was masked is left with: candidates of each attribute, intersected.

Sources: rank swapping (Nin, Herranz and Torra 2008), microaggregation of single attributes (Nin and Torra 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.kernels.arrays import FloatArray, LongArray


@dataclass(frozen=True, eq=False)
class Candidates:
    """Masked records that known ones may be.

    Attributes
    ----------
    rows : ndarray of int64, shape (m,)
        Candidates of each known record.
    only : ndarray of int64, shape (m,)
        The candidate where there is just one, else -1.
    holds : ndarray of bool or None, shape (m,)
        Whether its own masked record is among the candidates; None if it was not given.
    """

    rows: LongArray
    only: LongArray
    holds: FloatArray | None


def rank_candidates(
    known: FloatArray, masked: FloatArray, widths: LongArray, own: LongArray | None = None
) -> Candidates:
    """Candidates after rank swapping (Nin, Herranz and Torra 2008).

    Parameters
    ----------
    known : ndarray of float64, shape (m, a)
        Original values the intruder knows, of rank-swapped attributes.
    masked : ndarray of float64, shape (n, a)
        Published values.
    widths : ndarray of int64, shape (a,)
        Ranks a value may move, :func:`~privrisk_spark.kernels.masking.rank_swapping.swap_width` of each attribute.
    own : ndarray of int64, shape (m,), optional
        Masked record of each known one.
    """
    raise NotImplementedError
