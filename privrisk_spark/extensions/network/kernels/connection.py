"""How the members of a network are connected by what they see of each other (F12 §7.4.2).

Two users are linked if one of them sees enough of the other. The diameter of the largest connected part is bounded from
below by two searches in breadth: from some user to one farthest away, and from there to one farthest away again.

Status: the parts are exact, and no two users of the part are nearer than the bound says (*proved*).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from privrisk_spark.kernels.arrays import LongArray

__all__ = ["Parts", "parts_of"]


@dataclass(frozen=True)
class Parts:
    """The graph of who sees enough of whom.

    Attributes
    ----------
    connected : int
        Users with a link.
    largest : int
        Users of the largest connected part, links taken in both directions; 0 if there is none.
    diameter : int
        At least so many steps are between some two users of it.
    """

    connected: int
    largest: int
    diameter: int


def parts_of(n: int, u: LongArray, v: LongArray) -> Parts:
    """Find the connected parts of users.

    Parameters
    ----------
    n : int
        Users.
    u, v : ndarray of int64, shape (m,)
        Of each link, below ``n``, and not equal.
    """
    if not len(u):
        return Parts(0, 0, 0)
    links = scipy.sparse.csr_array((np.ones(len(u), dtype=np.int8), (u, v)), shape=(n, n))
    _, part = scipy.sparse.csgraph.connected_components(links, directed=False)
    users = np.bincount(part)
    largest = int(np.argmax(users))
    begin = int(np.flatnonzero(part == largest)[0])
    diameter = 0
    for _ in range(2):
        steps = scipy.sparse.csgraph.shortest_path(links, directed=False, unweighted=True, indices=begin)
        reached = np.where(np.isfinite(steps), steps, -1.0)
        begin, diameter = int(np.argmax(reached)), int(reached.max())
    return Parts(len(np.unique(np.concatenate([u, v]))), int(users[largest]), diameter)
