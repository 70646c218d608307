"""Microaggregation: records in groups of at least k, each published as the mean of its group.

Sources: MDAV (Domingo-Ferrer and Mateo-Sanz 2002; Domingo-Ferrer and Torra 2005, MDAV-generic), V-MDAV (Solanas and
Martínez-Ballesté 2006), optimal groups on one attribute (Hansen and Mukherjee 2003).

Points are compared by Euclidean distance: attributes of different units are standardized first. Ties go to the record
that comes first.
"""

from __future__ import annotations

from privrisk_spark.kernels.arrays import FloatArray, LongArray


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
    raise NotImplementedError


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
    raise NotImplementedError


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
    raise NotImplementedError


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
    raise NotImplementedError


def within_sum_of_squares(points: FloatArray, groups: LongArray) -> float:
    """SSE: sum of squared distances of points from the centroids of their groups; parameters as :func:`centroids`."""
    raise NotImplementedError


def information_loss(points: FloatArray, groups: LongArray) -> float:
    """SSE / SST, in [0, 1]: share of the sum of squares about the mean that is lost; 0 if all points are equal."""
    raise NotImplementedError


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
    raise NotImplementedError


def block_of_rank(ranks: LongArray, n: int, size: int) -> LongArray:
    """Block of each rank, if n ranks are cut into consecutive blocks of ``size`` to ``2 size - 1`` and alike.

    Parameters
    ----------
    ranks : ndarray of int64, shape (m,)
        In [0, n).
    n : int
    size : int
        At least 1; with at least ``2 k`` every block has at least two groups. All is one block if n is below it.

    Returns
    -------
    ndarray of int64, shape (m,)
        In [0, max(1, n // size)). Sizes of blocks differ by at most 1.
    """
    raise NotImplementedError


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
    raise NotImplementedError
