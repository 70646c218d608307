"""Modified-Aggregate (F12 §7.5): what a user shows another, ``max f(x) = λ ξ(x)/Φ(x) + u(x)^κ``.

Levels ``x`` count as everywhere in the kernels: 0 shows the value as it is, the height ``h_i`` shows nothing of it.
Rejecting an invitation is the level vector of all heights. ``ξ(x)`` is the number of common friends whose profile is
consistent with what is shown. Of a friend only the *agreement* matters: the least level of each attribute at which the
user's value covers the friend's.

* ``consistency="all"``: of all attributes, ``g_f <= x``. ξ is supermodular, and so is ``λξ + Φu^κ - αΦ``: the maximum is
  found exactly, by bounds where they suffice and by minimum cuts where not.
* ``consistency="any"``: of at least one attribute, as F12 §7.5.1 says in words. ξ is then submodular, not supermodular:
  Proposition 7.5.1 is false of it, as one friend with the agreement (1, 1) shows, and its proof is one of ``all``. The
  maximum is found by enumeration or by branch and bound, which proves it or leaves a gap. An attribute that is not
  shown is consistent with everyone, so one such attribute makes every friend count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LevelArray, LongArray

Consistency = Literal["all", "any"]
ZeroPhi = Literal["exclude", "floor"]
ZeroCount = Literal["owner", "infinite"]

ENUMERATED = 2**20
"""Largest lattice that is enumerated under ``any`` by default, in nodes."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of users of which the first decides what to show the second.

    Attributes
    ----------
    heights : ndarray of int8, shape (n, k)
        ``h_i`` of each pair's owner, at most ``H``; 0 where the owner has nothing to show, an attribute that counts
        nowhere.
    weights : ndarray of float64, shape (n, k, H + 1)
        ``w_i`` of each level: finite, non-negative, non-increasing up to ``h_i``; what is beyond is not read.
    utilities : ndarray of float64, shape (n, k, H + 1)
        ``d_i``, likewise.
    first : ndarray of int64, shape (n + 1,)
        Common friends of pair p are the rows ``first[p]:first[p + 1]`` of the agreements.
    agreements : ndarray of int8, shape (n_friends, k)
        ``g_f``, in ``[0, h_i]``; ``h_i`` where the friend has no value.
    """

    heights: LevelArray
    weights: FloatArray
    utilities: FloatArray
    first: LongArray
    agreements: LevelArray

    @property
    def n(self) -> int:
        """Number of pairs."""
        return len(self.heights)


@dataclass(frozen=True, eq=False)
class Shown:
    """What is shown in each pair, and what is proved about it.

    Attributes
    ----------
    levels : ndarray of int8, shape (n, k)
    objective : ndarray of float64, shape (n,)
        ``f``.
    bound : ndarray of float64, shape (n,)
        No candidate has a larger ``f``, but for rounding; equal to ``objective`` where that is proved.
    proved : ndarray of bool, shape (n,)
    sensitivity, utility : ndarray of float64, shape (n,)
        ``Φ(x)`` and ``u(x)``.
    consistent : ndarray of int64, shape (n,)
        ``ξ(x)``, without the owner.
    visited : ndarray of int64, shape (n,)
        Nodes enumerated, or boxes and minimum cuts of the search.
    """

    levels: LevelArray
    objective: FloatArray
    bound: FloatArray
    proved: BoolArray
    sensitivity: FloatArray
    utility: FloatArray
    consistent: LongArray
    visited: LongArray

    @property
    def gap(self) -> FloatArray:
        """float64 (n,): by how much a better level vector may be better; 0 where proved."""
        raise NotImplementedError


def modified_aggregate(
    pairs: Pairs,
    *,
    trade_off: float,
    kappa: float = 1.0,
    consistency: Consistency = "all",
    zero_phi: ZeroPhi = "exclude",
    zero_count: ZeroCount = "owner",
    most_nodes: int = ENUMERATED,
    most_boxes: int | None = None,
) -> Shown:
    """Maximize ``f(x) = λ ξ(x)/Φ(x) + u(x)^κ`` for every pair.

    Parameters
    ----------
    pairs : Pairs
    trade_off : float
        ``λ >= 0``, finite.
    kappa : float
        ``κ``: 0, or at least 1; ``0^0`` is 1. Minimum cuts are for 0, 1 and 2; for others ``all`` may leave a gap.
    consistency : {"all", "any"}
    zero_phi : {"exclude", "floor"}
        What a level vector of ``Φ = 0`` is, rejecting most of all. ``exclude``: no candidate, as in F12, whose layers
        begin at the smallest positive Φ; if all are such, everything is shown. ``floor``: one of ``Φ = φ``, with ``φ``
        that smallest one.
    zero_count : {"owner", "infinite"}
        What ``ξ = 0`` is. ``owner``: the owner is consistent with himself and counts where no friend is consistent
        with his profile as it is, as a record that no row of the dictionary equals does in chapter 4. ``infinite``: the
        risk is infinite, ``f = u^κ``, as the formula says; pairs without common friends then show everything.
    most_nodes : int
        Largest lattice to be enumerated under ``any``.
    most_boxes : int, optional
        Boxes after which a search gives up: under ``all`` it goes on by minimum cuts.

    Returns
    -------
    Shown
        Of level vectors with equal ``f`` the one with the highest utility, of those the lexicographically smallest;
        numbers within :data:`privrisk_spark.kernels.lattice.lattice.TOLERANCE` of each other count as equal.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    raise NotImplementedError


def rejected(pairs: Pairs, levels: LevelArray) -> BoolArray:
    """Whether nothing is shown: all attributes are at their heights.

    Parameters
    ----------
    pairs : Pairs
    levels : ndarray of int8, shape (n, k)

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    raise NotImplementedError
