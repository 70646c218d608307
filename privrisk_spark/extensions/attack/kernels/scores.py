"""What can be said of links whose truth is not known: how many candidates tie, and how good the best ones are.

Where nobody tells whose each row is, no link can be called right. But of a link to ``t`` tied candidates, one of which
is drawn, at most ``1/t`` is right on average, whoever the record is of. So no more than the sum of ``1/t`` links are
expected to be right, and that many if each record's own is among its ties.

Status: the bound is *proved*: a record has one own candidate, which is drawn with probability ``1/t`` if it is among
the ties and not at all if it is not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray

__all__ = ["QUANTILES", "Scores", "scores"]

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Of the scores that are told."""


@dataclass(frozen=True)
class Scores:
    """Links that are not known to be right or wrong.

    Attributes
    ----------
    linked : int
        Records with a link.
    single : int
        Those whose best candidate ties with no other.
    right_at_most : float
        Links that can be expected to be right at most.
    quantiles : tuple of float
        Of the scores of the best candidates, at :data:`QUANTILES`; each is the least score that so large a share of the
        records does not exceed.
    """

    linked: int
    single: int
    right_at_most: float
    quantiles: tuple[float, ...]


def scores(score: FloatArray, tied: LongArray, records: LongArray) -> Scores:
    """Sum up links.

    Parameters
    ----------
    score : ndarray of float64, shape (n,)
        Of the best candidates: a distance, or a match weight in bits.
    tied : ndarray of int64, shape (n,)
        Candidates with it, at least 1.
    records : ndarray of int64, shape (n,)
        Records that are linked so, at least 0; one in all.

    Raises
    ------
    InputError
        If there is no record, or a link to no candidate.
    """
    linked = int(records.sum())
    if not linked or (tied < 1).any():
        raise InputError("Record linkage: there must be a record, and every link must have a candidate.")
    order = np.argsort(score, kind="stable")
    below = np.cumsum(records[order])
    at = [np.searchsorted(below, max(math.ceil(q * linked), 1)) for q in QUANTILES]
    return Scores(
        linked,
        int(records[tied == 1].sum()),
        math.fsum((records / tied).tolist()),
        tuple(score[order][at].tolist()),
    )
