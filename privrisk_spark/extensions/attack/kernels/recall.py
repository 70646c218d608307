"""Recall of a search in blocks: how often it finds what comparing with every record would find; people who are drawn.

Of some people it is proved that nothing is lost. Of the others some are drawn, each as likely and with replacement, and
are compared with every record: a person counts if the candidates of the block are all of those at the least distance.

Status: the limits are *proved* for people who are drawn at random (Clopper and Pearson 1934).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.attack.kernels.evidence import CONFIDENCE
from privrisk_spark.extensions.attack.kernels.nearest import Linked, tie
from privrisk_spark.kernels.arrays import BoolArray, LongArray
from privrisk_spark.kernels.numeric.binomial_limits import lower_limit, upper_limit
from privrisk_spark.kernels.random.keyed import KEY_BYTES, derive_key, prf, uniforms

__all__ = ["Recall", "drawn_people", "drawn_tuples", "kept", "recall"]


@dataclass(frozen=True)
class Recall:
    """How many people are linked to all of the candidates that comparing with every record finds.

    Attributes
    ----------
    people : int
        Who are linked.
    proved : int
        Of whom it is proved.
    drawn, kept : int
        Of the others: those drawn, and those of them who lose nothing.
    share : float
        Estimated, of all.
    low, high : float
        Limits of the share with 95 % confidence.
    """

    people: int
    proved: int
    drawn: int
    kept: int
    share: float
    low: float
    high: float


def recall(people: int, proved: int, *, drawn: int, kept: int) -> Recall:
    """Estimate a recall.

    Parameters
    ----------
    people, proved, drawn, kept : int
        As :class:`Recall` has them; someone must be drawn where not everybody is proved.

    Raises
    ------
    InputError
        If there are more of a part than of the whole, or nobody is drawn of some.
    """
    if not 0 <= proved <= people or not 0 <= kept <= drawn or not people or (proved < people and not drawn):
        raise InputError("Record linkage: a recall must be of people, those of whom it is not proved being drawn from.")
    if proved == people:
        return Recall(people, proved, drawn, kept, 1.0, 1.0, 1.0)
    alpha, hits, open_share = (1 - CONFIDENCE) / 2, np.array([kept]), (people - proved) / people
    low, high = (float(limit(hits, drawn, alpha)[0]) for limit in (lower_limit, upper_limit))
    share, least, most = (1 - open_share * (1 - part) for part in (kept / drawn, low, high))
    return Recall(people, proved, drawn, kept, share, least, most)


def drawn_people(people: int, size: int, *, seed: int, purpose: str = "recall of blocks") -> LongArray:
    """Draw people by their numbers, each as likely, with replacement.

    Parameters
    ----------
    people : int
        At least 1.
    purpose : str
        What they are drawn for; draws for two purposes are independent.

    Returns
    -------
    ndarray of int64, shape (size,)
        In [0, people), ascending; a function of the arguments.
    """
    key = derive_key(seed.to_bytes(KEY_BYTES, "little"), purpose, str(people))
    messages = np.zeros((size, 4), dtype=np.uint32)
    messages[:, 0] = np.arange(size, dtype=np.uint32)
    unit = uniforms(prf(key, messages)[:, 0])
    return np.sort(np.minimum((unit * people).astype(np.int64), people - 1))


def drawn_tuples(rows: LongArray, size: int, *, seed: int, purpose: str) -> tuple[LongArray, LongArray]:
    """Draw people of whom some are alike, each as likely, with replacement.

    Parameters
    ----------
    rows : ndarray of int64, shape (m,)
        People of each distinct tuple; one at least in all.
    size : int
        At least 1.
    purpose : str
        As :func:`drawn_people` takes it.

    Returns
    -------
    places, times : ndarray of int64, shape (d,)
        Tuples that were drawn, ascending, and how often each was.
    """
    drawn = drawn_people(int(rows.sum()), size, seed=seed, purpose=purpose)
    places, times = np.unique(np.searchsorted(np.cumsum(rows), drawn, side="right"), return_counts=True)
    return places.astype(np.int64), times.astype(np.int64)


def kept(found: Linked, every: Linked) -> BoolArray:
    """Whether the candidates found in blocks are all of those that comparing with every record finds.

    Parameters
    ----------
    found, every : Linked
        Of the same known records.

    Returns
    -------
    ndarray of bool, shape (m,)
    """
    return np.asarray((found.distance <= tie(every.distance)) & (found.rows == every.rows))
