"""Who is whose friend: an undirected graph as sorted lists of friends, and what two users have in common."""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.kernels.arrays import IntArray, LongArray


@dataclass(frozen=True, eq=False)
class Graph:
    """An undirected graph without loops and parallel edges.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n + 1,)
        Friends of user i are ``indices[indptr[i]:indptr[i + 1]]``.
    indices : ndarray of int32, shape (2 n_edges,)
        Users in ``[0, n)``, ascending within each list; j is in the list of i where i is in that of j.
    """

    indptr: LongArray
    indices: IntArray

    @classmethod
    def of_edges(cls, n: int, u: IntArray, v: IntArray) -> Graph:
        """From edges, each named once or more, in any order and direction; loops are dropped.

        Parameters
        ----------
        n : int
            Users, below 2^31.
        u, v : ndarray of int32, shape (m,)
            Ends, in ``[0, n)``.

        Raises
        ------
        InputError
            If an end is no user.
        """
        raise NotImplementedError

    @property
    def n(self) -> int:
        """Number of users."""
        return len(self.indptr) - 1

    @property
    def degree(self) -> LongArray:
        """int64 (n,): number of friends."""
        raise NotImplementedError

    def ball(self, user: int, radius: int) -> IntArray:
        """Users at most ``radius`` steps away from a user; int32, ascending."""
        raise NotImplementedError

    def common_friends(self, left: IntArray, right: IntArray) -> LongArray:
        """Count common friends ``n_ij``.

        Parameters
        ----------
        left, right : ndarray of int32, shape (n_pairs,)

        Returns
        -------
        ndarray of int64, shape (n_pairs,)
        """
        raise NotImplementedError

    def common_friend_lists(self, left: IntArray, right: IntArray) -> tuple[LongArray, IntArray]:
        """List common friends.

        Parameters
        ----------
        left, right : ndarray of int32, shape (n_pairs,)

        Returns
        -------
        first : ndarray of int64, shape (n_pairs + 1,)
        friends : ndarray of int32, shape (total,)
            Those of pair p are ``friends[first[p]:first[p + 1]]``, ascending.
        """
        raise NotImplementedError


def common_of_lists(
    left_first: LongArray, left_friends: IntArray, right_first: LongArray, right_friends: IntArray
) -> tuple[LongArray, IntArray]:
    """List what two ascending lists have in common, for pairs of lists; for tasks that hold no whole graph.

    Parameters
    ----------
    left_first, right_first : ndarray of int64, shape (n_pairs + 1,)
    left_friends, right_friends : ndarray of int32
        Ascending within each list.

    Returns
    -------
    first : ndarray of int64, shape (n_pairs + 1,)
    friends : ndarray of int32, shape (total,)
    """
    raise NotImplementedError
