"""Microaggregation: records in groups of at least k, each published as the mean of its group.

Sources: MDAV (Domingo-Ferrer and Mateo-Sanz 2002; Domingo-Ferrer and Torra 2005, MDAV-generic), V-MDAV (Solanas and
Martínez-Ballesté 2006), optimal groups on one attribute (Hansen and Mukherjee 2003).

Points are compared by Euclidean distance: attributes of different units are standardized first. Ties go to the record
that comes first.

Status: sizes of groups are *proved*; that MDAV and V-MDAV do what the papers say, and that the groups of one attribute
are optimal up to rounding of their sums of squares, is *tested* against literal twins. MDAV and V-MDAV are *heuristic*
as to the loss of information: the least is hard to find on two attributes or more.

Nearest and farthest points are looked up in a :mod:`~.point_tree`, which changes no
result; the loops are compiled on first use (:mod:`privrisk_spark.machine_code`).
"""

from __future__ import annotations

import math

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray

_LARGEST = 1e150
"""Squares of differences stay finite."""


def mdav(points: FloatArray, k: int) -> LongArray:
    """Group points by MDAV-generic.

    Parameters
    ----------
    points : ndarray of float64, shape (n, p)
        Finite, standardized by the caller.
    k : int
        Least size of a group, in [1, n].

    Returns
    -------
    ndarray of int64, shape (n,)
        Number of each point's group, counted from 0 as groups are formed; each has k to 2k - 1 members.

    Raises
    ------
    InputError
        If the points are not finite or k is out of range.
    """
    _refuse_points(points, k)
    # Imported here, as it takes Numba a second, which plans and centroids do without.
    from privrisk_spark.extensions.perturb.kernels.grouping import mdav_groups

    return mdav_groups(np.ascontiguousarray(points, dtype=np.float64), k)


def v_mdav(points: FloatArray, k: int, gamma: float) -> LongArray:
    """Group points by V-MDAV, whose groups grow while a point is nearer to them than to those that are left.

    Parameters
    ----------
    points : ndarray of float64, shape (n, p)
        Finite, standardized by the caller.
    k : int
        Least size of a group, in [1, n].
    gamma : float
        At least 0: a point joins if its distance to the group is below ``gamma`` times that to the nearest other point
        that is left. 0 gives groups of k.

    Returns
    -------
    ndarray of int64, shape (n,)
        Number of each point's group. Groups are of k to 2k - 1 members, before fewer than k points that are left at
        the end join the groups with the nearest centroids.

    Raises
    ------
    InputError
        If the points are not finite, k is out of range, or gamma is negative.
    """
    _refuse_points(points, k)
    if not 0 <= gamma < math.inf:
        raise InputError(f"V-MDAV: gamma must be finite and at least 0. Got {gamma}.")
    from privrisk_spark.extensions.perturb.kernels.grouping import variable_groups

    points = np.ascontiguousarray(points, dtype=np.float64)
    groups = variable_groups(points, k, gamma, _outermost_first(points))
    apart = np.flatnonzero(groups < 0)
    means = centroids(points[groups >= 0], groups[groups >= 0])
    for record in apart.tolist():
        groups[record] = int(np.argmin(((means - points[record]) ** 2).sum(axis=1)))
    return groups


def univariate_optimal(values: FloatArray, k: int) -> LongArray:
    """Group the values of one attribute with the least sum of squares within groups (Hansen and Mukherjee 2003).

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Finite, in any order.
    k : int
        Least size of a group, in [1, n].

    Returns
    -------
    ndarray of int64, shape (n,)
        Number of each value's group, ascending with the values; each has k to 2k - 1 members. Equal values are
        ordered as they come. Of equally good ways the one with the smaller last group is taken, and so on downwards.

    Raises
    ------
    InputError
        If the values are not finite or k is out of range.
    """
    _refuse_points(values[:, None], k)
    from privrisk_spark.extensions.perturb.kernels.grouping import optimal_starts

    order = np.argsort(values, kind="stable")
    starts = optimal_starts(np.ascontiguousarray(values[order], dtype=np.float64), k)
    groups = np.empty(len(values), dtype=np.int64)
    groups[order] = np.cumsum(starts) - 1
    return groups


def centroids(points: FloatArray, groups: LongArray) -> FloatArray:
    """Mean of each group; ``centroids(points, groups)[groups]`` is what is published.

    Parameters
    ----------
    points : ndarray of float64, shape (n, p) or (n,)
        In the units they are published in.
    groups : ndarray of int64, shape (n,)
        From 0 on, none empty.

    Returns
    -------
    ndarray of float64, shape (g, p) or (g,)

    Raises
    ------
    InputError
        If the shapes do not fit or a group is empty.
    """
    if groups.ndim != 1 or len(points) != len(groups) or not len(groups) or int(groups.min()) < 0:
        raise InputError(
            "Microaggregation: there must be one group, from 0 on, per point. "
            f"Got points of shape {points.shape} and groups of {groups.shape}."
        )
    sizes = np.bincount(groups)
    if not sizes.all():
        raise InputError("Microaggregation: groups must be numbered from 0 on, and some number has no member.")
    columns = points.reshape(len(points), -1)
    means = np.empty((len(sizes), columns.shape[1]))
    for i in range(columns.shape[1]):
        means[:, i] = np.bincount(groups, columns[:, i]) / sizes
        # Again of what is left: the mean of equal values is that value.
        means[:, i] += np.bincount(groups, columns[:, i] - means[groups, i]) / sizes
    return means.reshape(len(sizes), *points.shape[1:])


def within_sum_of_squares(points: FloatArray, groups: LongArray) -> float:
    """SSE: sum of squared distances of points from the centroids of their groups; parameters as :func:`centroids`."""
    rest = points - centroids(points, groups)[groups]
    return math.fsum((rest * rest).ravel().tolist())


def information_loss(points: FloatArray, groups: LongArray) -> float:
    """SSE / SST, in [0, 1]: share of the sum of squares about the mean that is lost; 0 if all points are equal."""
    total = within_sum_of_squares(points, np.zeros(len(points), dtype=np.int64))
    return within_sum_of_squares(points, groups) / total if total > 0 else 0.0


def first_axis(correlation: FloatArray) -> FloatArray:
    """Direction in which standardized points spread most: the first eigenvector of their correlations.

    Parameters
    ----------
    correlation : ndarray of float64, shape (p, p)

    Returns
    -------
    ndarray of float64, shape (p,)
        Of length 1; its largest entry by amount (the first of equal ones) is positive.
    """
    if correlation.ndim != 2 or correlation.shape[0] != correlation.shape[1] or not np.isfinite(correlation).all():
        raise InputError("Microaggregation: correlations must be a square matrix of finite numbers.")
    axis: FloatArray = np.linalg.eigh(correlation)[1][:, -1]
    largest = int(np.argmax(np.abs(axis)))
    return axis if axis[largest] > 0 else -axis


def block_of_rank(ranks: LongArray, n: int, size: int) -> LongArray:
    """Block of each rank, if n ranks are cut into consecutive blocks of ``size`` to ``2 size - 1`` and alike.

    Parameters
    ----------
    ranks : ndarray of int64, shape (m,)
        In [0, n).
    size : int
        At least 1; with at least ``2 k`` every block has at least two groups. All is one block if n is below it.

    Returns
    -------
    ndarray of int64, shape (m,)
        In [0, max(1, n // size)). Sizes of blocks differ by at most 1.
    """
    if size < 1 or (len(ranks) and not 0 <= int(ranks.min()) <= int(ranks.max()) < n):
        raise InputError(
            f"Microaggregation: ranks must be in [0, {n}), and blocks of at least 1. Got blocks of {size}."
        )
    blocks = max(1, n // size)
    return np.asarray(ranks * blocks // n, dtype=np.int64)


def blocks_along_first_axis(scores: FloatArray, size: int) -> LongArray:
    """Block of each record by the rank of its score on the first axis, equal scores in the order they come.

    Parameters
    ----------
    scores : ndarray of float64, shape (n,)
        Standardized points times :func:`first_axis`.
    size : int
        As of :func:`block_of_rank`.

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    if not np.isfinite(scores).all():
        raise InputError("Microaggregation: scores must be finite, and some are NaN or infinite.")
    blocks = np.empty(len(scores), dtype=np.int64)
    ranks = np.arange(len(scores), dtype=np.int64)
    blocks[np.argsort(scores, kind="stable")] = block_of_rank(ranks, len(scores), size)
    return blocks


def _refuse_points(points: FloatArray, k: int) -> None:
    if points.ndim != 2 or not points.shape[1]:
        raise InputError(f"Microaggregation: points must have at least one attribute. Got shape {points.shape}.")
    if not 1 <= k <= len(points):
        raise InputError(f"Microaggregation: k must be at least 1 and at most the number of records. Got {k}.")
    if not np.isfinite(points).all():
        raise InputError("Microaggregation: values must be finite, and some are missing or infinite.")
    if (np.abs(points) > _LARGEST).any():
        raise InputError(f"Microaggregation: values must be at most {_LARGEST:g} in amount, and some are not.")


def _outermost_first(points: FloatArray) -> LongArray:
    """Order of points by their distance from the mean of all, the farthest first and equally far ones as they come."""
    mean = centroids(points, np.zeros(len(points), dtype=np.int64))[0]
    squares = np.zeros(len(points))
    for i in range(points.shape[1]):
        squares += (points[:, i] - mean[i]) ** 2
    return np.argsort(-squares, kind="stable").astype(np.int64)
