"""Trust ``T_ij`` and what a loss weighs under it, ``f(T_ij)`` (F12 §7.4).

Trust is positive, mistrust negative, 0 is lack of information. ``f`` must not rise with T.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from privrisk_spark.kernels.arrays import FloatArray, IntArray

Form = Literal["reciprocal", "exponential", "step", "table"]


@dataclass(frozen=True)
class Exposure:
    """``f(T)``: what a unit of shown sensitivity weighs at a trust.

    Attributes
    ----------
    form : {"reciprocal", "exponential", "step", "table"}
        ``reciprocal``: ``1/(1 + T)`` for ``T >= 0`` and ``1 - T`` below, so that ``f(-T) = 1/f(T)``. ``exponential``:
        ``exp(-T/scale)``. ``step``: ``above`` from the threshold on, ``below`` before. ``table``: the value of the
        greatest of the table's trusts that is at most T; the first one's value below all.
    scale : float
        Of ``exponential``, positive.
    threshold, below, above : float
        Of ``step``; ``below >= above >= 0``.
    table : tuple of (float, float)
        Trust, ascending, and value, non-negative and non-increasing.

    Raises
    ------
    InputError
        If f rises, is negative, or is not given.
    """

    form: Form = "reciprocal"
    scale: float = 1.0
    threshold: float = 0.0
    below: float = 1.0
    above: float = 0.0
    table: tuple[tuple[float, float], ...] = field(default=())

    def of(self, trust: FloatArray) -> FloatArray:
        """``f(T)`` of finite trusts, of any shape."""
        raise NotImplementedError


@dataclass(frozen=True)
class Rule:
    """If both profiles have the same known codes in all these columns, the trust is this.

    Attributes
    ----------
    same : tuple of str
    trust : float
    """

    same: tuple[str, ...]
    trust: float


def trust_by_rules(
    rules: Sequence[Rule], otherwise: float, left: Mapping[str, IntArray], right: Mapping[str, IntArray], n: int
) -> FloatArray:
    """Trust of pairs by the first rule that holds.

    Parameters
    ----------
    rules : sequence of Rule
    otherwise : float
    left, right : mapping of str to ndarray of int32, shape (n,)
        Codes of each column; negative where unknown, which equals nothing.
    n : int
        Pairs.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    raise NotImplementedError
