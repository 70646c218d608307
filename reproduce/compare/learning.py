"""An intruder who has learned from some true pairs by which weights people are found (T20), tried on all others."""

from __future__ import annotations

import numpy as np

from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.extensions.attack.kernels.learned.fitting import Limits, fit
from privrisk_spark.extensions.attack.kernels.learned.training import KnownRecords, found_by
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.kernels.arrays import IntArray, LongArray
from reproduce.generated.clustered import keyed_uniforms

TRAINING = 100
"""People learned from."""

_LIMITS = Limits(rounds=3, ramps=1, constraints=0)
"""The relaxation alone: a map has too many tables to prove what no weights do better."""


def others_found(
    file: SearchedFile, known: IntArray, own: LongArray, people: LongArray, *, seed: int, training: int = TRAINING
) -> Found:
    """Learn weights from some people, and find the others by them.

    Parameters
    ----------
    file : SearchedFile
        Its weights are the standard ones.
    known : ndarray of int32, shape (m, k)
        Nodes of what is known of each kind of people.
    own : ndarray of int64, shape (m,)
        Its own record in the file, -1 if it has none: nobody learns from it.
    people : ndarray of int64, shape (m,)
        Of each kind, at least 1.
    seed : int
        Draws the people learned from, without replacement.
    training : int
        As many, but at most half of all.
    """
    there = np.where(own >= 0, people, 0)
    total = int(there.sum())
    size = min(training, total // 2)
    if size < 1:
        return found(np.zeros(0), np.zeros(0, dtype=np.int64))
    drawn = np.argsort(keyed_uniforms(seed, "learned from", (total,)), kind="stable")[:size]
    kind = np.searchsorted(np.cumsum(there), drawn, side="right")
    learned_from = np.bincount(kind, minlength=len(people)).astype(np.int64)
    present = np.ones(len(people))
    learned = fit(
        "weighted_mean", file, KnownRecords(known, own, learned_from, present).only(learned_from > 0), _LIMITS
    )
    left = people - learned_from
    others = KnownRecords(known, own, left, present).only(left > 0)
    return found(found_by(learned.aggregate, file, others), others.people)
