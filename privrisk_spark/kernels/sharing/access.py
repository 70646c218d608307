"""Access control (F12 §7.4): which level ``A_ijk`` of user i's attribute k user j sees.

Here levels count the other way round, as in §7.4: 0 shows nothing, ``g_k`` everything. Loss and utility are sums over
entries e = (i, j, k): ``L(A) = Σ a_e A_e`` with ``a_e = f(T_ij) Φ_ik``, and ``U(A) = Σ b_e A_e`` with ``b_e = Ψ_ik``.
Levels enter as numbers, so both are linear in every entry and neither concave nor convex in any narrower sense: an
entry's worth per level is the same from its first level to its last.

* ``min L - λU`` separates: an entry is shown whole where ``λb > a`` and not at all elsewhere. Exact.
* ``max U s.t. L <= c`` and ``min L s.t. U >= c`` are bounded integer knapsacks. Their linear relaxations take entries
  in the order of ``b/a``, and at most one is not whole (Dantzig 1957). Rounded to a whole level, that entry alone can
  be worth less than in the relaxation, by less than its last level: the gap.
"""

from __future__ import annotations

from dataclasses import dataclass

from privrisk_spark.kernels.arrays import FloatArray, LevelArray, LongArray


@dataclass(frozen=True, eq=False)
class Entries:
    """What may be shown.

    Attributes
    ----------
    loss : ndarray of float64, shape (m,)
        ``a_e``, per level; non-negative, finite.
    utility : ndarray of float64, shape (m,)
        ``b_e``, per level; likewise.
    tops : ndarray of int8, shape (m,)
        ``g_e >= 0``.
    """

    loss: FloatArray
    utility: FloatArray
    tops: LevelArray


@dataclass(frozen=True, eq=False)
class Access:
    """What is shown, and what is proved about it.

    Attributes
    ----------
    levels : ndarray of int8, shape (m,)
    loss, utility : float
        ``L(A)`` and ``U(A)``.
    bound : float
        No admissible A does better: at most this utility, or at least this loss.
    gap : float
        Of the figure that is optimized to the bound; 0 where the answer is proved.
    """

    levels: LevelArray
    loss: float
    utility: float
    bound: float
    gap: float


def lagrangian(entries: Entries, trade_off: float) -> LevelArray:
    """Minimize ``L - λU``; exact, and of equals the one that shows less.

    Parameters
    ----------
    entries : Entries
    trade_off : float
        ``λ >= 0``.

    Returns
    -------
    ndarray of int8, shape (m,)
    """
    raise NotImplementedError


def most_utility(entries: Entries, most_loss: float) -> Access:
    """Maximize U subject to ``L <= c``: the relaxation, rounded down.

    Parameters
    ----------
    entries : Entries
        Entries of equal ``b/a`` are taken in the order given.
    most_loss : float
        ``c >= 0``.
    """
    raise NotImplementedError


def least_loss(entries: Entries, least_utility: float) -> Access:
    """Minimize L subject to ``U >= c``: the relaxation, rounded up.

    Parameters
    ----------
    entries : Entries
        Entries of equal ``b/a`` are taken in the order given.
    least_utility : float
        ``c``.

    Raises
    ------
    InputError
        If showing everything has less utility.
    """
    raise NotImplementedError


def exact_most_utility(entries: Entries, most_loss: float) -> Access:
    """Maximize U subject to ``L <= c`` by branch and cut (HiGHS); for small instances."""
    raise NotImplementedError


def exact_least_loss(entries: Entries, least_utility: float) -> Access:
    """Minimize L subject to ``U >= c`` by branch and cut (HiGHS); for small instances."""
    raise NotImplementedError


def grouped(entries: Entries, first: LongArray, limit: FloatArray, problem: str) -> list[Access]:
    """Solve one problem per user.

    Parameters
    ----------
    entries : Entries
        Those of user i are ``first[i]:first[i + 1]``.
    first : ndarray of int64, shape (n + 1,)
    limit : ndarray of float64, shape (n,)
    problem : {"most-utility", "least-loss"}
    """
    raise NotImplementedError
