"""Generalization lattice of a record: a product of chains of levels (F12 Lemma 4.3.2).

A node is a level vector ``x`` with ``0 <= x_i <= h_i``: 0 releases the value as it is, ``h_i`` suppresses it. Nodes are
numbered in lexicographic order of their level vectors, so "smallest index" and "lexicographically smallest vector" are
the same tie rule.

The feasible nodes ``D = {x : u(x) >= c}`` of a utility that is non-increasing in every level form a down-set. Its
*frontier* are the feasible nodes with at least one infeasible immediate generalization; its *maximal* nodes are those
whose immediate generalizations are all infeasible or outside the lattice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray

Neighbourhood = Literal["swap", "cube"]

TOLERANCE = 1e-12
"""Relative slack under which two risks, two utilities, or a utility and its floor, count as equal.

Sums of weights differ in the last bits with the order of summation; without slack a tie would be decided by rounding.
"""


@dataclass(frozen=True)
class Lattice:
    """Level vectors of a record.

    Parameters
    ----------
    heights : tuple of int
        ``h_i >= 0`` for each of the ``k`` attributes; a value that is suppressed from the start has height 0.
    """

    heights: tuple[int, ...]

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Number of levels ``h_i + 1`` per attribute."""
        return tuple(h + 1 for h in self.heights)

    @cached_property
    def n_nodes(self) -> int:
        """Number of nodes ``Π (h_i + 1)``; an exact integer of any size."""
        product = 1
        for size in self.shape:
            product *= size
        return product

    @cached_property
    def strides(self) -> LongArray:
        """int64 (k,): what one level of each attribute adds to a node's number."""
        strides = np.ones(len(self.shape), dtype=np.int64)
        for i in range(len(self.shape) - 2, -1, -1):
            strides[i] = strides[i + 1] * self.shape[i + 1]
        return strides

    def levels(self, nodes: LongArray) -> LongArray:
        """Level vectors of node numbers.

        Parameters
        ----------
        nodes : ndarray of int64, shape (n,)

        Returns
        -------
        ndarray of int64, shape (n, k)
        """
        if not self.shape:
            return np.empty((len(nodes), 0), dtype=np.int64)
        return (nodes[:, None] // self.strides) % np.array(self.shape, dtype=np.int64)

    def utility(self, chains: Sequence[FloatArray]) -> FloatArray:
        """Modular utility ``u(x) = Σ d_i(x_i)`` of every node.

        Parameters
        ----------
        chains : sequence of k ndarrays of float64, shape (h_i + 1,)
            ``d_i`` at each level.

        Returns
        -------
        ndarray of float64, shape (n_nodes,)
            Summed from the first attribute to the last.
        """
        total = np.zeros(1)
        for chain in chains:
            total = (total[:, None] + chain[None, :]).ravel()
        return total


def reaches(utility: FloatArray, floor: float) -> BoolArray:
    """Whether a utility satisfies ``u >= c``, up to the relative slack :data:`TOLERANCE` of ``c``."""
    result: BoolArray = utility >= floor - TOLERANCE * max(1.0, abs(floor))
    return result


def feasible_nodes(lattice: Lattice, chains: Sequence[FloatArray], floor: float) -> BoolArray:
    """Feasibility ``u(x) >= c`` of every node.

    Returns
    -------
    ndarray of bool, shape (n_nodes,)
    """
    return reaches(lattice.utility(chains), floor)


def maximal_nodes(lattice: Lattice, feasible: BoolArray) -> LongArray:
    """Feasible nodes none of whose immediate generalizations is feasible.

    For a risk that is non-increasing in every level some optimum of "min risk s.t. u >= c" is among them, so only they
    need a risk evaluation. When all nodes are feasible the answer is the top alone.

    Parameters
    ----------
    feasible : ndarray of bool, shape (n_nodes,)
        A down-set.

    Returns
    -------
    ndarray of int64, shape (n_maximal,)
        Ascending.
    """
    grid = feasible.reshape(lattice.shape)
    maximal = grid.copy()
    for axis, size in enumerate(lattice.shape):
        if size > 1:
            lower = [slice(None)] * grid.ndim
            upper = [slice(None)] * grid.ndim
            lower[axis], upper[axis] = slice(0, size - 1), slice(1, size)
            maximal[tuple(lower)] &= ~grid[tuple(upper)]
    return np.flatnonzero(maximal)


def walk_frontier(
    lattice: Lattice, chains: Sequence[FloatArray], floor: float, neighbourhood: Neighbourhood = "swap"
) -> LongArray:
    """Visit the frontier from one of its nodes (ARUBA, F12 Algorithm 3), without looking at the rest of the lattice.

    Parameters
    ----------
    lattice : Lattice
        With fewer than 2**63 nodes.
    chains : sequence of k ndarrays of float64, shape (h_i + 1,)
        Utility of each level, non-increasing.
    floor : float
        ``c``, in units of the utility.
    neighbourhood : {"swap", "cube"}
        Moves tried from a frontier node: ``swap`` are ``+e_i``, ``-e_i`` and ``e_i - e_j`` (at most ``k² + k``);
        ``cube`` are all ``3**k - 1`` of F12. Both reach the same nodes.

    Returns
    -------
    ndarray of int64, shape (n_frontier,)
        Frontier nodes, ascending. Just the top when every node is feasible (the frontier is then empty and the top is
        the answer); empty when no node is feasible.

    Notes
    -----
    Every maximal chain from the bottom to the top leaves a down-set by exactly one edge, whose lower end is a frontier
    node, and every frontier node arises so. Two maximal chains are linked by transpositions of adjacent steps; one
    transposition changes one unit square, so the lower ends before and after are equal or differ by ``±e_i`` or
    ``e_i - e_j``. Hence the swap moves connect the frontier (F12 Theorem 4.5.4 claims it for the cube only).
    """
    k = len(lattice.shape)
    tops = np.array(lattice.heights, dtype=np.int64)

    def is_feasible(levels: LongArray) -> BoolArray:
        total = np.zeros(len(levels))
        for i, chain in enumerate(chains):
            total = total + chain[levels[:, i]]
        return reaches(total, floor)

    def on_frontier(levels: LongArray) -> BoolArray:
        leaves = np.zeros(len(levels), dtype=np.bool_)
        for i in range(k):
            up = levels.copy()
            up[:, i] += 1
            inside = up[:, i] <= tops[i]
            up[:, i] = np.minimum(up[:, i], tops[i])
            leaves |= inside & ~is_feasible(up)
        return leaves & is_feasible(levels)

    bottom = np.zeros((1, k), dtype=np.int64)
    if not is_feasible(bottom)[0]:
        return np.empty(0, dtype=np.int64)
    if is_feasible(tops[None, :])[0]:
        return np.array([lattice.n_nodes - 1], dtype=np.int64)
    start = last_feasible_on_a_chain(tops, is_feasible)
    moves = frontier_moves(k, neighbourhood)
    seen = np.array([start @ lattice.strides])
    wave = start[None, :]
    while len(wave):
        tried = (wave[:, None, :] + moves[None, :, :]).reshape(-1, k)
        tried = tried[((tried >= 0) & (tried <= tops)).all(axis=1)]
        numbers = np.unique(tried @ lattice.strides)
        fresh = numbers[~np.isin(numbers, seen, assume_unique=True)]
        levels = lattice.levels(fresh)
        keep = on_frontier(levels)
        wave = levels[keep]
        seen = np.union1d(seen, fresh[keep])
    return seen


def last_feasible_on_a_chain(tops: LongArray, is_feasible: Callable[[LongArray], BoolArray]) -> LongArray:
    """Binary search of the chain that raises attribute after attribute; feasibility is monotone along it."""
    cumulative = np.concatenate([[0], np.cumsum(tops)])
    low, high = 0, int(cumulative[-1])

    def vector(steps: int) -> LongArray:
        taken: LongArray = np.clip(steps - cumulative[:-1], 0, tops)
        return taken

    while high - low > 1:
        middle = (low + high) // 2
        if is_feasible(vector(middle)[None, :])[0]:
            low = middle
        else:
            high = middle
    return vector(low)


def frontier_moves(k: int, neighbourhood: Neighbourhood) -> LongArray:
    """Moves tried from a frontier node, shape (n_moves, k): see :func:`walk_frontier`."""
    unit = np.eye(k, dtype=np.int64)
    if neighbourhood == "cube":
        cube: LongArray = np.stack(np.meshgrid(*[np.array([-1, 0, 1])] * k, indexing="ij"), axis=-1).reshape(-1, k)
        moving: LongArray = cube[(cube != 0).any(axis=1)]
        return moving
    swaps = [unit[i] - unit[j] for i in range(k) for j in range(k) if i != j]
    return np.concatenate([unit, -unit, np.array(swaps, dtype=np.int64).reshape(-1, k)])
