"""How many records of a masked table of numbers are found, and what the table has lost.

The intruder knows all original numbers. He takes the nearest row, in each file's own standard deviations (T20) or in
units of what the columns tell beyond each other (Mahalanobis); by weights he has learned from some true pairs; or, if
he knows how the table was masked, one of the rows that his own may have become.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privrisk_spark.extensions.attack.kernels.differences import NumberDifference
from privrisk_spark.extensions.attack.kernels.evidence import Found, found
from privrisk_spark.extensions.attack.kernels.nearest import SearchedFile
from privrisk_spark.extensions.attack.kernels.points import Points, tie
from privrisk_spark.kernels.arrays import FloatArray, IntArray
from reproduce.compare.learning import others_found
from reproduce.compare.masking import Masked

_FLAT = 1e-10
"""Of the largest eigenvalue of the correlations: directions of less say nothing but rounding."""


def lost(values: FloatArray, shown: FloatArray) -> float:
    """IL1s: mean of ``|x - x'| / (√2 S)`` over all cells, S the deviation of the column."""
    return float((np.abs(values - shown) / (np.sqrt(2) * values.std(axis=0))).mean())


def standard(table: FloatArray) -> FloatArray:
    """Return a table in its own standard deviations about its own means."""
    deviation = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))


def records_found(
    values: FloatArray, shown: FloatArray, *, whitened: bool = False, own: bool = True, turned: bool = False
) -> Found:
    """Records whose own masked row is nearest; ties are fractional.

    Parameters
    ----------
    values, shown : ndarray of float64, shape (n, q)
        Row by row each other's.
    whitened : bool
        By Mahalanobis' distance, with the correlations of the masked table, which the intruder sees.
    own : bool
        In each file's own mean and deviations; else both in those of the originals.
    turned : bool
        Masked rows whose own record is nearest.
    """
    mine = standard(values)
    theirs = standard(shown) if own else (shown - values.mean(axis=0)) / values.std(axis=0)
    if whitened:
        spread, axes = np.linalg.eigh(theirs.T @ theirs / len(theirs))
        told = spread > _FLAT * spread.max()
        units = axes[:, told] / np.sqrt(spread[told])
        mine, theirs = mine @ units, theirs @ units
    if turned:
        mine, theirs = theirs, mine
    file = Points(theirs / np.sqrt(theirs.shape[1]), np.ones(len(theirs), dtype=np.int64))
    mine = mine / np.sqrt(mine.shape[1])
    least, tied, _ = file.linked(mine)
    apart = file.distances(mine, np.arange(len(mine)))
    return found(np.where(apart <= tie(least), 1.0 / tied, 0.0), np.ones(len(mine), dtype=np.int64))


def searched(values: FloatArray, shown: FloatArray) -> tuple[SearchedFile, IntArray]:
    """Return the masked table as it is searched column by column, and the known records' nodes."""
    mine, theirs = standard(values), standard(shown)
    n, q = mine.shape
    known, cells = np.empty((n, q), dtype=np.int32), np.empty((n, q), dtype=np.int32)
    differences = []
    for j in range(q):
        numbers, node = np.unique(np.concatenate([mine[:, j], theirs[:, j]]), return_inverse=True)
        known[:, j] = node[:n]
        there, cells[:, j] = np.unique(node[n:], return_inverse=True)
        differences.append(NumberDifference(numbers, numbers, there.astype(np.int32)))
    return SearchedFile(tuple(differences), np.full(q, 1 / q), cells, np.ones(n, dtype=np.int64)), known


def attacked(values: FloatArray, one: Masked, *, seed: int, training: int) -> Mapping[str, Found]:
    """Attack a masked table by every method.

    Parameters
    ----------
    values : ndarray of float64, shape (n, q)
    seed : int
        Draws whom the intruder learns from.
    training : int
        Of them, at least 1.

    Returns
    -------
    mapping of method to Found
        Learned distances are tried on all others.
    """
    by = {
        "distance": records_found(values, one.values),
        "distance, people's units": records_found(values, one.values, own=False),
        "Mahalanobis distance": records_found(values, one.values, whitened=True),
    }
    file, known = searched(values, one.values)
    each = np.ones(len(values), dtype=np.int64)
    by["learned weights"] = others_found(file, known, np.arange(len(values)), each, seed=seed, training=training)
    if one.told is not None:
        by["the method is known"] = found(one.told, each)
    return by


def rows_attacked(values: FloatArray, one: Masked) -> Mapping[str, Found]:
    """Link masked rows to the records they are of.

    Parameters
    ----------
    values : ndarray of float64, shape (n, q)

    Returns
    -------
    mapping of method to Found
    """
    return {
        "distance": records_found(values, one.values, turned=True),
        "distance, people's units": records_found(values, one.values, own=False, turned=True),
        "Mahalanobis distance": records_found(values, one.values, whitened=True, turned=True),
    }
