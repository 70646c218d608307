"""Trust ``T_ij`` and what a loss weighs under it, ``f(T_ij)`` (F12 §7.4).

Trust is positive, mistrust negative, 0 is lack of information. ``f`` must not rise with T.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.extensions.network.kernels.diffusion import Series, Spread, spread
from privrisk_spark.extensions.network.kernels.graph import Graph
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray

Form = Literal["reciprocal", "exponential", "step", "table"]

_LARGEST_EXPONENT = 700.0

_BORDER = 1e-7


@dataclass(frozen=True)
class Exposure:
    """``f(T)``: what a unit of shown sensitivity weighs at a trust.

    Attributes
    ----------
    form : {"reciprocal", "exponential", "step", "table"}
        ``reciprocal``: ``1/(1 + T)`` for ``T >= 0`` and ``1 - T`` below, so that ``f(-T) = 1/f(T)``. ``exponential``:
        ``exp(-T/scale)``, at most ``e^700``. ``step``: ``above`` from the threshold on, ``below`` before. ``table``:
        the value of the greatest of the table's trusts that is at most T; the first one's value below all.
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

    def __post_init__(self) -> None:
        if self.form == "exponential" and not 0 < self.scale < np.inf:
            raise InputError(f"sharing.exposure.scale: must be positive and finite, not {self.scale:g}.")
        if self.form == "step" and not (np.inf > self.below >= self.above >= 0 and np.isfinite(self.threshold)):
            raise InputError(
                "sharing.exposure: 'step' must not rise with trust, so 'below' is at least 'above', and 'above' at "
                f"least 0. Got {self.below:g} and {self.above:g}."
            )
        if self.form == "table":
            trusts, values = self._columns()
            if not len(trusts) or not np.isfinite(self.table).all() or (np.diff(trusts) <= 0).any():
                raise InputError("sharing.exposure.table: must name one or more finite trusts, in ascending order.")
            if (np.diff(values) > 0).any() or values[-1] < 0:
                raise InputError("sharing.exposure.table: values must not rise with trust, and be at least 0.")

    def _columns(self) -> tuple[FloatArray, FloatArray]:
        whole = np.array(self.table, dtype=np.float64).reshape(-1, 2)
        return whole[:, 0], whole[:, 1]

    def of(self, trust: FloatArray) -> FloatArray:
        """``f(T)`` of finite trusts, of any shape."""
        found: FloatArray
        if self.form == "reciprocal":
            found = np.where(trust >= 0, 1.0 / (1.0 + np.maximum(trust, 0.0)), 1.0 - np.minimum(trust, 0.0))
        elif self.form == "exponential":
            found = np.exp(np.minimum(-trust / self.scale, _LARGEST_EXPONENT))
        elif self.form == "step":
            found = np.where(trust >= self.threshold, self.above, self.below)
        else:
            trusts, values = self._columns()
            found = values[np.maximum(np.searchsorted(trusts, trust, side="right") - 1, 0)]
        return found

    @property
    def of_strangers(self) -> float:
        """``f(0)``: of whom nothing is said."""
        return float(self.of(np.zeros(1))[0])

    def surplus(self, trust: FloatArray) -> FloatArray:
        """``f(T) - f(0)``."""
        found: FloatArray = self.of(trust) - self.of_strangers
        return found


@dataclass(frozen=True)
class Rule:
    """If both profiles have the same known codes in all these columns, the trust is this."""

    same: tuple[str, ...]
    trust: float


def trust_by_rules(
    rules: Sequence[Rule], otherwise: float, left: Mapping[str, IntArray], right: Mapping[str, IntArray], n: int
) -> FloatArray:
    """Trust of pairs by the first rule that holds.

    Parameters
    ----------
    left, right : mapping of str to ndarray of int32, shape (n,)
        Codes of each column; negative where unknown, which equals nothing.
    n : int
        Pairs.

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    trust = np.full(n, otherwise)
    open_still = np.ones(n, dtype=np.bool_)
    for rule in rules:
        holds: BoolArray = open_still.copy()
        for column in rule.same:
            holds &= (left[column] == right[column]) & (left[column] >= 0)
        trust[holds] = rule.trust
        open_still &= ~holds
    return trust


def propagated_trust(graph: Graph, stated: FloatArray, series: Series) -> Spread:
    """Trust that walks on from those who are trusted: ``Σ_k weights[k]`` times what was stated after k steps.

    Each step leads to a friend drawn evenly, the row-stochastic walk. By :meth:`.Series.geometric` it is personalized
    PageRank, of which a restart of 1 leaves what was stated; by :meth:`.Series.poisson` diffusion over its mean.

    Parameters
    ----------
    stated : ndarray of float64, shape (n, b)
        Column c holds ``T_i·`` of one user i: trust and mistrust he stated, 0 elsewhere.

    Returns
    -------
    Spread
        Its error is per unit of stated trust.
    """
    return spread(graph, "stochastic", series, stated)


def trust_by_likeness(known: FloatArray, asked: FloatArray, outliers: float) -> FloatArray:
    """Trust of those who are like the people a user has listed: a one-class support vector machine (F12 §7.4.1).

    Parameters
    ----------
    known : ndarray of float64, shape (m, m)
        A kernel of the listed people, positive semidefinite; m at least 1.
    asked : ndarray of float64, shape (n, m)
        The same of those asked about and the listed.
    outliers : float
        ``ν`` in (0, 1]: the greatest share of the listed who may be taken for others (Schölkopf et al. 2001).

    Returns
    -------
    ndarray of float64, shape (n,)
        1, on the border too, or -1.
    """
    # Imported where it is asked for: it takes longer than most of what is computed here.
    from sklearn.svm import OneClassSVM

    machine = OneClassSVM(kernel="precomputed", nu=outliers, tol=_BORDER / 10)
    # Who lies on the border is on it but for what the solver leaves: by its own default that would be many.
    return np.where(machine.fit(known).decision_function(asked) >= -_BORDER, 1.0, -1.0)
