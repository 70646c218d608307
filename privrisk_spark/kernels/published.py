"""Exponential sampling of F12 chapter 6 as it was published: Algorithms 6 and 7. For comparison only.

Status: **no guarantee**. Theorem 6.4.1 claims (epsilon, delta + O(h^k / |D|^2))-differential privacy for Algorithm 6;
its true delta is of order h^k / |D| in the worst case, and the proof is wrong at the constants it states
(:mod:`privrisk_spark.kernels.counterexamples` computes both). A release uses :mod:`privrisk_spark.kernels.crowd`
instead. What is here is *tested* to draw from the laws that are printed, with these readings where the print leaves
one:

* beta is the probability that a row is *not* sampled. ``beta = e^-epsilon``, which is allowed, makes epsilon' zero, so
  it must be above; "beta set to 1" (section 6.6) divides by zero and is refused.
* ``eta(k) = 2 (lambda / phi(k) + 1)`` is read with the lower bound phi_l, as in Lemma 6.4.2, which must be positive:
  with suppressed values of sensitivity 0 the theorem has no instance. For the threshold version ``eta(k) = phi_u``, as
  in the algorithm's text; Lemma 6.4.2 derives another one. Both bounds are constants here, not extremes over the data.
* Eq 6.2 normalizes over all of a^+, step 6 draws from a^+ within L_t: either the draw is renormalized over the frequent
  elements (reading ``renormalized``), or the mass of the others is lost (``lost``: such a record has no output).
* The size condition of the proof is ``t >= beta h^k e^(epsilon' t_f) / ((1 - tau_1) (1 - beta))`` (from the printed t'
  and Claim 6.4.2), with ``h^k exp(-tau_1^2 beta t / 2) <= delta / 2`` (Claim 6.4.3); the algorithm itself never
  checks it. ``h^k`` is the number of generalizations of a record.
* Algorithm 7: ``Phi_1`` is Phi; layers start at phi_l; T(X) is the number of records that the element generalizes, as
  in section 5.2.3; a layer without a point has no output. Step 3 is a Metropolis walk along random chords of the
  layer's polytope, which leaves the density ``exp(Psi)`` on B invariant; how far it is from it after finitely many
  steps is not bounded here, as it would have to be (6.17).

References
----------
F12 (Fouad's thesis, 2012), sections 5.2.2, 5.2.3 and 6.3 to 6.5. F. McSherry, K. Talwar, FOCS 2007. R. L. Smith,
"Efficient Monte Carlo Procedures for Generating Points Uniformly Distributed over Bounded Regions", Oper. Res. 1984.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.exponential import draw
from privrisk_spark.kernels.lattice import Lattice

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int32]
LongArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

Reading = Literal["renormalized", "lost"]

NOTHING = -1
"""Stands for a record without an output."""


def eta_of_aggregate(lam: float, phi_l: float) -> float:
    """Return ``eta(k) = 2 (lambda / phi_l + 1)`` of the aggregate objective.

    Raises
    ------
    InputError
        If lambda is negative or phi_l not positive.
    """
    if not (lam >= 0.0 and phi_l > 0.0):
        raise InputError(f"eta needs lambda of at least 0 and a positive phi_l. Got {lam!r} and {phi_l!r}.")
    return 2.0 * (lam / phi_l + 1.0)


def drawing_epsilon(epsilon: float, beta: float, eta: float) -> float:
    """Return epsilon' of Algorithm 6, step 1: ``(epsilon + ln beta) / (3 eta (1 - beta))``.

    Parameters
    ----------
    epsilon : float
        Claimed epsilon, positive.
    beta : float
        Probability that a row is not sampled, in (e^-epsilon, 1).
    eta : float
        eta(k), positive: :func:`eta_of_aggregate`, or phi_u for the threshold version.

    Raises
    ------
    InputError
        If an argument is out of range.
    """
    if not (epsilon > 0.0 and eta > 0.0):
        raise InputError(f"epsilon and eta must be positive. Got {epsilon!r} and {eta!r}.")
    if not math.exp(-epsilon) < beta < 1.0:
        raise InputError(f"beta must be above e^-epsilon = {math.exp(-epsilon):.6g} and below 1. Got {beta!r}.")
    return (epsilon + math.log(beta)) / (3.0 * eta * (1.0 - beta))


def least_size(beta: float, epsilon_drawing: float, *, generalizations: int, t_f: float, delta: float = 1.0) -> int:
    """Return the smallest t that the proof of Theorem 6.4.1 admits.

    Parameters
    ----------
    beta : float
        In (0, 1).
    epsilon_drawing : float
        epsilon' of :func:`drawing_epsilon`.
    generalizations : int
        ``h^k``, generalizations of a record.
    t_f : float
        Bound of ``f_max / |D|``: ``lambda / phi_l + 1``.
    delta : float
        Of the theorem; 1 leaves the condition on the expectation alone (tau_1 = 0).

    Returns
    -------
    int
        The least t for which some tau_1 in [0, 1) satisfies both conditions of the module docstring.
    """
    size = beta * generalizations * math.exp(epsilon_drawing * t_f) / (1.0 - beta)
    if delta >= 1.0:
        return math.ceil(size)

    def enough(t: int) -> bool:
        slack = 1.0 - size / t
        return slack > 0.0 and generalizations * math.exp(-(slack**2) * beta * t / 2.0) <= delta / 2.0

    low, high = 0, max(1, math.ceil(size))
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def random_threshold(uniforms: FloatArray, *, theta0: float, rows: int) -> FloatArray:
    """Return ``t = theta |D|`` with theta uniform in (theta0, 1) (step 2), one for each uniform number.

    Raises
    ------
    InputError
        If theta0 is not in (0, 1).
    """
    if not 0.0 < theta0 < 1.0:
        raise InputError(f"theta0 must be between 0 and 1, both excluded. Got {theta0!r}.")
    result: FloatArray = (theta0 + (1.0 - theta0) * uniforms) * rows
    return result


def element_law(
    scores: FloatArray,
    above: BoolArray,
    frequent: BoolArray,
    *,
    epsilon_drawing: float,
    rows: int,
    reading: Reading = "renormalized",
) -> FloatArray:
    """Return the law of step 6: ``q(x)`` proportional to ``exp(epsilon' score(x) / |D|)`` (eq 6.2).

    Parameters
    ----------
    scores : ndarray of float64, shape (n, c)
        ``f^a`` of each element for each record; ``-r^a`` in the threshold version.
    above : ndarray of bool, shape (n, c)
        Elements of a^+.
    frequent : ndarray of bool, shape (n, c)
        Elements of L_t, in the threshold version those of utility at least c; read within ``above`` only.
    epsilon_drawing : float
        epsilon'.
    rows : int
        ``|D|``.
    reading : {"renormalized", "lost"}
        What becomes of the mass of elements that are not frequent.

    Returns
    -------
    ndarray of float64, shape (n, c)
        Rows sum to 1, or to less under ``lost``; to 0 where no element may be drawn.
    """
    with np.errstate(invalid="ignore"):
        exponent = np.where(above, epsilon_drawing * scores / rows, -np.inf)
    drawn = above & frequent
    shown = exponent if reading == "lost" else np.where(drawn, exponent, -np.inf)
    highest = np.max(shown, axis=1, keepdims=True, initial=-np.inf)
    highest = np.where(np.isfinite(highest), highest, 0.0)
    weights = np.exp(shown - highest)
    total = np.cumsum(weights, axis=1)[:, -1:] if weights.shape[1] else np.zeros((len(weights), 1))
    result: FloatArray = np.where(drawn, weights, 0.0) / np.where(total > 0.0, total, 1.0)
    return result


def algorithm_6(
    law: FloatArray, sampled: FloatArray, drawn: FloatArray, *, beta: float, members: LongArray | None = None
) -> IntArray:
    """Sample the rows and draw an element for each (steps 4 to 8).

    Parameters
    ----------
    law : ndarray of float64, shape (m, c)
        As :func:`element_law` returns it.
    sampled, drawn : ndarrays of float64, shape (n,)
        Uniform numbers in (0, 1), independent: a row is sampled where the first is below ``1 - beta``; the second
        inverts the law's cumulative distribution.
    beta : float
    members : ndarray of int64, shape (n,), optional
        Row of ``law`` of each row of the table, so that equal records share one.

    Returns
    -------
    ndarray of int32, shape (n,)
        Column of each row's output, :data:`NOTHING` where it has none. The copy of the root that is always in the
        output is not counted.
    """
    n, c = law.shape
    of_row = np.arange(n, dtype=np.int64) if members is None else members
    # What is missing of the mass is an element of its own, which stands for no output.
    missing = np.maximum(1.0 - law.sum(axis=1), 0.0)
    missing[missing < 1e-12] = 0.0
    chosen = draw(np.column_stack([law, missing]), drawn, of_row)
    result: IntArray = np.where((sampled < 1.0 - beta) & (chosen < c), chosen, NOTHING).astype(np.int32)
    return result


@dataclass(frozen=True, eq=False)
class LayeredLattice:
    """One record's generalizations as Algorithm 7 needs them; enumerated, so for lattices that can be.

    Attributes
    ----------
    heights : tuple of k int
        Of the record's chains; nodes are numbered as by :class:`~privrisk_spark.kernels.lattice.Lattice`.
    consistent : ndarray of int64, shape (n_nodes,)
        ``T``: records of the table that each node generalizes.
    sensitivity : ndarray of float64, shape (n_nodes,)
        Phi, modular in the levels and at least ``phi_l``.
    numerator : ndarray of float64, shape (n_nodes,)
        ``xi^a = f^a Phi^a``, supermodular.
    phi_l, phi_u : float
        Public bounds of Phi.
    """

    heights: tuple[int, ...]
    consistent: LongArray
    sensitivity: FloatArray
    numerator: FloatArray
    phi_l: float
    phi_u: float

    @property
    def attribute(self) -> LongArray:
        """int64 (J,): attribute of each join-irreducible element, level by level."""
        return np.repeat(np.arange(len(self.heights)), self.heights)

    def layers(self, width: float) -> int:
        """Return ``U + 1``, the number of layers of ratio ``1 + epsilon''``."""
        return math.ceil(round(math.log(self.phi_u / self.phi_l) / math.log1p(width), 9)) + 1

    @cached_property
    def _strides(self) -> LongArray:
        return Lattice(self.heights).strides[self.attribute]

    def path(self, points: FloatArray) -> tuple[FloatArray, LongArray]:
        """Weights and nodes of the nested sets whose mixture a point of P(F) is.

        Parameters
        ----------
        points : ndarray of float64, shape (n, J)

        Returns
        -------
        weights : ndarray of float64, shape (n, J + 1)
            Probability with which randomized rounding returns each.
        nodes : ndarray of int64, shape (n, J + 1)
            From the bottom to the top.
        """
        # Stable: of equal coordinates of one chain the lower level comes first.
        order = np.argsort(-points, axis=1, kind="stable")
        ordered = np.take_along_axis(points, order, axis=1)
        ends = np.ones((len(points), 1))
        weights = np.column_stack([ends, ordered]) - np.column_stack([ordered, 0.0 * ends])
        steps = np.column_stack([0 * ends.astype(np.int64), self._strides[order]])
        return weights, np.cumsum(steps, axis=1)

    def extension(self, values: FloatArray, points: FloatArray) -> FloatArray:
        """Lovász extension of a function of the nodes; shape (n,)."""
        weights, nodes = self.path(points)
        result: FloatArray = (weights * values[nodes]).sum(axis=1)
        return result

    def start(self, layer: int, width: float, t: float) -> FloatArray | None:
        """Return a point of B, inside it where it has an inside, or None if B is empty; shape (J,).

        The extension of a supermodular T is its concave closure, so the greatest value of it under bounds on Phi is
        attained by a mixture of two nodes.
        """
        low, high = self.bounds(layer, width)
        best = _steepest(self.sensitivity, self.consistent, low, high)
        if best is None or best[2] < t:
            return None
        levels = Lattice(self.heights).levels(np.array(best[:2]))
        rank = _ranks(self.heights)
        of_level = (levels[:, self.attribute] >= rank).astype(np.float64)
        top = best[3] * of_level[0] + (1.0 - best[3]) * of_level[1]
        inner = 1.0 - rank / (np.repeat(self.heights, self.heights) + 1.0)
        # Towards the inside of the chains, as far as halves of the layer's slack and of T's allow.
        phi, count = self.sensitivity, self.consistent.astype(np.float64)
        step = 1.0
        for _ in range(60):
            found = top + step * (inner - top)
            value = self.extension(phi, found[None])[0]
            if low <= value <= high and self.extension(count, found[None])[0] >= t:
                break
            step /= 2
        else:
            step = 0.0
        inside: FloatArray = top + step / 2 * (inner - top)
        return inside

    def bounds(self, layer: int, width: float) -> tuple[float, float]:
        """Least and greatest Phi of a layer."""
        low = self.phi_l * (1.0 + width) ** layer
        return low, low * (1.0 + width)


def sample_point(
    lattice: LayeredLattice,
    *,
    epsilon_drawing: float,
    width: float,
    rows: int,
    t: float,
    sigma: float,
    layers: FloatArray,
    walk: FloatArray,
    rounding: FloatArray,
) -> LongArray:
    """Draw generalizations of one record by Algorithm 7, each by a walk of its own.

    Parameters
    ----------
    lattice : LayeredLattice
    epsilon_drawing : float
        epsilon'.
    width : float
        epsilon'' of the layers, in (0, 1).
    rows : int
        ``|D|``.
    t : float
        ``theta |D|``.
    sigma : float
        In (0, 1): a rounded element is returned if it generalizes at least ``sigma t`` records.
    layers : ndarray of float64, shape (n,)
        Uniform numbers in (0, 1): the layer of each draw.
    walk : ndarray of float64, shape (s, n, J + 2)
        Uniform numbers in (0, 1) of the s steps: J for the direction, one for the place on the chord, one to accept.
    rounding : ndarray of float64, shape (a, n)
        Uniform numbers in (0, 1) of at most ``a`` roundings.

    Returns
    -------
    ndarray of int64, shape (n,)
        Node of each draw; :data:`NOTHING` if its layer holds no point of B or no rounding was frequent enough.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    if not (0.0 < width < 1.0 and 0.0 < sigma < 1.0 and lattice.phi_l > 0.0):
        raise InputError(
            f"epsilon'' and sigma must be between 0 and 1 and phi_l positive. Got {width!r}, {sigma!r} and "
            f"{lattice.phi_l!r}."
        )
    of_draw = np.minimum((layers * lattice.layers(width)).astype(np.int64), lattice.layers(width) - 1)
    result = np.full(len(layers), NOTHING, dtype=np.int64)
    for layer in np.unique(of_draw).tolist():
        chosen = np.flatnonzero(of_draw == layer)
        start = lattice.start(layer, width, t)
        if start is None:
            continue
        scale = epsilon_drawing / (rows * (1.0 + width) ** layer * lattice.phi_l)
        points = np.tile(start, (len(chosen), 1))
        points = _walked(lattice, points, scale, lattice.bounds(layer, width), t, walk[:, chosen])
        weights, nodes = lattice.path(points)
        reached = np.cumsum(weights[:, ::-1], axis=1)
        open_draws = np.ones(len(chosen), dtype=np.bool_)
        for threshold in rounding[:, chosen]:
            # The set {v : x_v >= threshold}: nested sets from the largest down.
            position = (reached <= threshold[:, None]).sum(axis=1).clip(max=weights.shape[1] - 1)
            rounded = nodes[np.arange(len(chosen)), weights.shape[1] - 1 - position]
            frequent = open_draws & (lattice.consistent[rounded] >= sigma * t)
            result[chosen[frequent]] = rounded[frequent]
            open_draws &= ~frequent
    return result


def _walked(
    lattice: LayeredLattice,
    points: FloatArray,
    scale: float,
    bounds: tuple[float, float],
    t: float,
    walk: FloatArray,
) -> FloatArray:
    """Metropolis walk along chords of the layer's polytope; its target is ``exp(scale numerator)`` where T >= t."""
    j = points.shape[1]
    if not j:
        return points
    attribute, count = lattice.attribute, lattice.consistent.astype(np.float64)
    bottom = lattice.sensitivity[0]
    # Phi is modular: linear in the coordinates.
    slope = lattice.sensitivity[_chains(lattice)] - lattice.sensitivity[_chains(lattice) - lattice._strides]
    height = scale * lattice.extension(lattice.numerator, points)
    for uniforms in walk:
        direction = ndtri(uniforms[:, :j])
        # x <= 1, x >= 0, non-increasing along each chain, low <= Phi <= high, as "at <= limit".
        first = np.concatenate([[True], attribute[1:] != attribute[:-1]])
        last = np.concatenate([attribute[1:] != attribute[:-1], [True]])
        before, along = np.roll(points, 1, axis=1), np.roll(direction, 1, axis=1)
        phi, rate = bottom + points @ slope, direction @ slope
        at = np.column_stack(
            [
                np.where(first, points - 1.0, points - before),
                np.where(last, -points, -1.0),
                phi - bounds[1],
                bounds[0] - phi,
            ]
        )
        speed = np.column_stack(
            [np.where(first, direction, direction - along), np.where(last, -direction, 0.0), rate, -rate]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.maximum(-at, 0.0) / speed
        upper = np.where(speed > 0.0, reach, np.inf).min(axis=1)
        lower = np.where(speed < 0.0, reach, -np.inf).max(axis=1)
        there = points + (lower + (upper - lower) * uniforms[:, j])[:, None] * direction
        proposed = scale * lattice.extension(lattice.numerator, there)
        accepted = (np.log(uniforms[:, j + 1]) < proposed - height) & (lattice.extension(count, there) >= t)
        points = np.where(accepted[:, None], there, points)
        height = np.where(accepted, proposed, height)
    return points


def _chains(lattice: LayeredLattice) -> LongArray:
    """Node of each join-irreducible element."""
    return _ranks(lattice.heights) * lattice._strides


def _ranks(heights: tuple[int, ...]) -> LongArray:
    """Level of each join-irreducible element in its chain."""
    return np.array([level + 1 for height in heights for level in range(height)], dtype=np.int64)


def _steepest(phi: FloatArray, count: LongArray, low: float, high: float) -> tuple[int, int, float, float] | None:
    """Two nodes, the greatest T of their mixtures with Phi in [low, high], and the weight of the first."""
    best: tuple[int, int, float, float] | None = None
    inside = np.flatnonzero((phi >= low) & (phi <= high))
    if len(inside):
        node = int(inside[count[inside].argmax()])
        best = (node, node, float(count[node]), 1.0)
    for bound in (low, high):
        below, beyond = np.flatnonzero(phi <= bound), np.flatnonzero(phi > bound)
        if not len(below) or not len(beyond):
            continue
        # One node a value of Phi is enough.
        below, beyond = _most_counted(phi, count, below), _most_counted(phi, count, beyond)
        share = (phi[beyond][None, :] - bound) / (phi[beyond][None, :] - phi[below][:, None])
        value = share * count[below][:, None] + (1.0 - share) * count[beyond][None, :]
        i, j = np.unravel_index(int(value.argmax()), value.shape)
        if best is None or value[i, j] > best[2]:
            best = (int(below[i]), int(beyond[j]), float(value[i, j]), float(share[i, j]))
    return best


def _most_counted(phi: FloatArray, count: LongArray, nodes: LongArray) -> LongArray:
    order = nodes[np.lexsort((-count[nodes], phi[nodes]))]
    first = np.concatenate([[True], np.diff(phi[order]) > 0.0])
    result: LongArray = order[first]
    return result
