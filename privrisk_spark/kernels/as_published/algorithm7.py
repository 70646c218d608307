"""Sample-Point, Algorithm 7 of F12, as it was published: a draw by a random walk over layers. For comparison only.

Status: **no guarantee** (:mod:`privrisk_spark.kernels.as_published.algorithm6`), and no bound on the length of the walk
either. What is here is *tested* to draw from the printed law if the walk is long, with these readings where the print
leaves one:

* ``Phi_1`` is Phi; layers start at phi_l; T(X) is the number of records that the element generalizes, as in section
  5.2.3. A layer without a point has no output.
* Step 3 is a Metropolis walk along random chords of the layer's polytope, from a point inside it, which leaves the
  density ``exp(Psi)`` on B invariant; how far it is from it after finitely many steps is not known, as it would have to
  be (6.17).
* Steps 4 and 5 repeat the rounding until it is frequent enough. The law of what comes out is that of one rounding given
  that it is frequent enough, and is drawn so, by one number: no loop whose length depends on the table.

References
----------
F12 (Fouad's thesis, 2012), sections 5.2.2, 5.2.3 and 6.5. R. L. Smith, "Efficient Monte Carlo Procedures for Generating
Points Uniformly Distributed over Bounded Regions", Oper. Res. 1984.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.as_published.algorithm6 import NOTHING
from privrisk_spark.kernels.dp.exponential import draw
from privrisk_spark.kernels.lattice.lattice import Lattice

_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class LayeredLattices:
    """Generalizations of records whose chains have the same heights; enumerated, so for lattices that can be.

    Attributes
    ----------
    heights : tuple of k int
        Of the records' chains; nodes are numbered as by :class:`~privrisk_spark.kernels.lattice.lattice.Lattice`.
    consistent : ndarray of int64, shape (m, n_nodes)
        ``T``: rows of the table that each node generalizes; supermodular, and greatest at the top.
    sensitivity : ndarray of float64, shape (m, n_nodes)
        Phi, modular and non-increasing in the levels, finite.
    numerator : ndarray of float64, shape (m, n_nodes)
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

    @cached_property
    def attribute(self) -> LongArray:
        """int64 (J,): attribute of each join-irreducible element, level by level."""
        return np.repeat(np.arange(len(self.heights)), self.heights)

    @cached_property
    def rank(self) -> LongArray:
        """int64 (J,): level of each join-irreducible element in its chain."""
        return np.array([level + 1 for height in self.heights for level in range(height)], dtype=np.int64)

    @cached_property
    def strides(self) -> LongArray:
        """int64 (J,): what each join-irreducible element adds to a node's number."""
        return Lattice(self.heights).strides[self.attribute]

    @cached_property
    def slope(self) -> FloatArray:
        """float64 (m, J): Phi is modular, so linear in the coordinates, with these coefficients."""
        nodes = self.rank * self.strides
        result: FloatArray = self.sensitivity[:, nodes] - self.sensitivity[:, nodes - self.strides]
        return result

    def layers(self, width: float) -> int:
        """Return ``U + 1``, the number of layers of ratio ``1 + epsilon''``."""
        return math.ceil(round(math.log(self.phi_u / self.phi_l) / math.log1p(width), 9)) + 1

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
        steps = np.column_stack([0 * ends.astype(np.int64), self.strides[order]])
        return weights, np.cumsum(steps, axis=1)

    def phi(self, points: FloatArray, members: LongArray) -> FloatArray:
        """Lovász extension of Phi of the records ``members``; shape (n,)."""
        result: FloatArray = self.sensitivity[members, 0] + _summed(points * self.slope[members])
        return result

    def start(self, members: LongArray, layers: LongArray, width: float, t: float) -> tuple[FloatArray, BoolArray]:
        """Return a point of B of each record and layer, inside it where it has an inside.

        The extension of the supermodular T is its concave closure, so the greatest value of it at one value of Phi is
        that of the upper hull of all nodes' pairs of Phi and T, and is attained by a mixture of two nodes. The point is
        taken in the middle of those values of Phi in the layer at which that is at least t, and then moved towards the
        inside of the chains as far as halves of the slack allow.

        Parameters
        ----------
        members : ndarray of int64, shape (q,)
            Records.
        layers : ndarray of int64, shape (q,)

        Returns
        -------
        points : ndarray of float64, shape (q, J)
        found : ndarray of bool, shape (q,)
            False where B is empty; the point means nothing there.
        """
        low, high = self.bounds(layers, width)
        nodes = _upper_hull(self.sensitivity, self.consistent, t)[members]
        phi, count = self.sensitivity[members[:, None], nodes], self.consistent[members[:, None], nodes]
        q, last = np.arange(len(members)), nodes.shape[1] - 1
        # Padded by the last vertex. Beyond the last vertex that is frequent, T falls below t on the way to the next.
        frequent = (count >= t).sum(axis=1) - 1
        inside, outside = np.maximum(frequent, 0), np.minimum(frequent + 1, last)
        fall = (count[q, inside] - count[q, outside]).astype(np.float64)
        share = np.divide(count[q, inside] - t, fall, out=np.zeros(len(q)), where=fall > 0.0)
        furthest = phi[q, inside] + share * (phi[q, outside] - phi[q, inside])
        least, most = np.maximum(low, phi[:, 0]), np.minimum(high, furthest)
        found: BoolArray = (frequent >= 0) & (least <= most)
        middle = (least + most) / 2.0
        upper = np.minimum((phi < middle[:, None]).sum(axis=1), last)
        lower = np.maximum(upper - 1, 0)
        gap = phi[q, upper] - phi[q, lower]
        beyond = np.divide(middle - phi[q, lower], gap, out=np.zeros(len(q)), where=gap > 0.0)
        beyond = np.minimum(np.maximum(beyond, 0.0), 1.0)
        levels = Lattice(self.heights).levels
        ends = [levels(nodes[q, end])[:, self.attribute] >= self.rank for end in (lower, upper)]
        best = (1.0 - beyond)[:, None] * ends[0] + beyond[:, None] * ends[1]
        inner = 1.0 - self.rank / (np.repeat(self.heights, self.heights) + 1.0)
        step = np.zeros(len(q))
        waiting = np.flatnonzero(found)
        for halvings in range(_HALVINGS):
            of, tried = members[waiting], 2.0**-halvings
            moved = best[waiting] + tried * (inner - best[waiting])
            value = self.phi(moved, of)
            weights, path = self.path(moved)
            enough = _extended(self.consistent, weights, path, of) >= t
            fits = (low[waiting] <= value) & (value <= high[waiting]) & enough
            step[waiting[fits]] = tried / 2.0
            waiting = waiting[~fits]
            if not len(waiting):
                break
        return best + step[:, None] * (inner - best), found

    def bounds(self, layers: LongArray, width: float) -> tuple[FloatArray, FloatArray]:
        """Least and greatest Phi of layers."""
        low: FloatArray = np.asarray(self.phi_l * (1.0 + width) ** layers, dtype=np.float64)
        return low, low * (1.0 + width)


def sample_point(
    lattices: LayeredLattices,
    *,
    epsilon_drawing: float,
    width: float,
    rows: int,
    t: float,
    sigma: float,
    members: LongArray,
    layers: FloatArray,
    walk: Iterable[FloatArray],
    rounding: FloatArray,
) -> LongArray:
    """Draw generalizations of records by Algorithm 7, each by a walk of its own; all walk together.

    Parameters
    ----------
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
    members : ndarray of int64, shape (n,)
        Record of each draw.
    layers : ndarray of float64, shape (n,)
        Uniform numbers in (0, 1): the layer of each draw.
    walk : iterable of s ndarrays of float64, shape (n, J + 2)
        Uniform numbers in (0, 1) of each step: J for the direction, one for the place on the chord, one to accept.
    rounding : ndarray of float64, shape (n,)
        Uniform numbers in (0, 1).

    Returns
    -------
    ndarray of int64, shape (n,)
        Node of each draw; :data:`NOTHING` if its layer holds no point of B.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    if not (0.0 < width < 1.0 and 0.0 < sigma < 1.0 and 0.0 < lattices.phi_l <= lattices.phi_u):
        raise InputError(
            "epsilon'' and sigma must be between 0 and 1, and phi_l positive and at most phi_u. Got "
            f"{width!r}, {sigma!r}, {lattices.phi_l!r} and {lattices.phi_u!r}."
        )
    n_layers = lattices.layers(width)
    layer = np.minimum((layers * n_layers).astype(np.int64), n_layers - 1)
    pairs, pair = np.unique(members * n_layers + layer, return_inverse=True)
    starts, found = lattices.start(pairs // n_layers, pairs % n_layers, width, t)
    rows_walking = np.flatnonzero(found[pair])
    result = np.full(len(layers), NOTHING, dtype=np.int64)
    if not len(rows_walking):
        return result
    of, low_high = members[rows_walking], lattices.bounds(layer[rows_walking], width)
    steps = (np.ascontiguousarray(uniforms[rows_walking]) for uniforms in walk)
    scale = epsilon_drawing / (rows * low_high[0])
    points = _walked(lattices, of, starts[pair[rows_walking]], scale, low_high, t, steps)
    weights, nodes = lattices.path(points)
    frequent = lattices.consistent[of[:, None], nodes] >= sigma * t
    law = np.where(frequent, np.maximum(weights, 0.0), 0.0)
    some = np.flatnonzero(law.sum(axis=1) > 0.0)
    chosen = draw(law[some], rounding[rows_walking[some]])
    result[rows_walking[some]] = nodes[some, chosen]
    return result


def _walked(
    lattices: LayeredLattices,
    members: LongArray,
    points: FloatArray,
    scale: FloatArray,
    bounds: tuple[FloatArray, FloatArray],
    t: float,
    walk: Iterable[FloatArray],
) -> FloatArray:
    """Metropolis walk along chords of the layers' polytopes; its target is ``exp(scale numerator)`` where T >= t."""
    j = points.shape[1]
    if not j:
        return points
    attribute, slope = lattices.attribute, lattices.slope[members]
    low, high = bounds
    # x <= 1, x >= 0, non-increasing along each chain, low <= Phi <= high, as "at <= limit".
    first = np.concatenate([[True], attribute[1:] != attribute[:-1]])
    last = np.concatenate([attribute[1:] != attribute[:-1], [True]])
    weights, nodes = lattices.path(points)
    height = scale * _extended(lattices.numerator, weights, nodes, members)
    for uniforms in walk:
        direction = scipy.special.ndtri(uniforms[:, :j])
        before, along = np.roll(points, 1, axis=1), np.roll(direction, 1, axis=1)
        phi, rate = lattices.phi(points, members), _summed(direction * slope)
        at = np.column_stack(
            [np.where(first, points - 1.0, points - before), np.where(last, -points, -1.0), phi - high, low - phi]
        )
        speed = np.column_stack(
            [np.where(first, direction, direction - along), np.where(last, -direction, 0.0), rate, -rate]
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.maximum(-at, 0.0) / speed
        upper = np.where(speed > 0.0, reach, np.inf).min(axis=1)
        lower = np.where(speed < 0.0, reach, -np.inf).max(axis=1)
        there = points + (lower + (upper - lower) * uniforms[:, j])[:, None] * direction
        weights, nodes = lattices.path(there)
        proposed = scale * _extended(lattices.numerator, weights, nodes, members)
        accepted = np.log(np.ascontiguousarray(uniforms[:, j + 1])) < proposed - height
        accepted &= _extended(lattices.consistent, weights, nodes, members) >= t
        points = np.where(accepted[:, None], there, points)
        height = np.where(accepted, proposed, height)
    return points


def _extended(values: FloatArray | LongArray, weights: FloatArray, nodes: LongArray, members: LongArray) -> FloatArray:
    """Lovász extension of a function of the nodes, shape (m, n_nodes), at points given by their paths; shape (n,)."""
    return _summed(weights * values.take(nodes + (members * values.shape[1])[:, None]))


def _summed(terms: FloatArray) -> FloatArray:
    """Sum of each row in the order of its columns, whatever the batch; 0 without columns."""
    if not terms.shape[1]:
        return np.zeros(len(terms))
    result: FloatArray = np.cumsum(terms, axis=1)[:, -1]
    return result


def _upper_hull(phi: FloatArray, count: LongArray, t: float) -> LongArray:
    """Vertices of the upper hull of each record's pairs of Phi and T, from the top to the first that is not frequent.

    Returns
    -------
    ndarray of int64, shape (m, v)
        Nodes by Phi; padded by the last one.
    """
    m, n_nodes = phi.shape
    at = np.full(m, n_nodes - 1, dtype=np.int64)
    vertices = [at]
    going = np.arange(m)
    while True:
        here = at[going]
        own_phi, own = phi[going, here], count[going, here]
        going = going[(own >= t) & (phi[going].max(axis=1) > own_phi)]
        if not len(going):
            return np.column_stack(vertices)
        here = at[going]
        ahead = phi[going] - phi[going, here][:, None]
        fall = (count[going, here][:, None] - count[going]).astype(np.float64)
        rate = np.divide(fall, ahead, out=np.full(ahead.shape, np.inf), where=ahead > 0.0)
        # Of nodes on one line the furthest.
        level = rate.min(axis=1, keepdims=True)
        at = at.copy()
        at[going] = np.where((rate <= level) & (ahead > 0.0), ahead, -np.inf).argmax(axis=1)
        vertices.append(at)
