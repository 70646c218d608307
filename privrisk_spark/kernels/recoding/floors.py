"""What all nodes between two cost at least, without the lattice: for searches that leave out whole parts of it.

A *box* are the nodes ``x`` with ``low <= x <= high``. Its floor is a bound of the metric's key from below over all its
nodes that keep the limit. Status: *proved*, for any conditions:

* ``loss``, ``ncp``, ``precision``, ``height``, ``entropy`` are sums (``loss``: a product, so a sum of logarithms) over
  the attributes of what the rows cost there; that does not fall with the level, and a suppressed row costs no less than
  a released one. So a node costs at least what it would with nothing suppressed, and that at least what ``low`` would.
* Classes of ``x`` are unions of classes of ``low``, of ``f`` rows each; a released one has at least ``k`` rows
  (``least_rows`` of a condition; 1 if none says more). It has a class of ``low`` with ``f >= k`` in it, or at least
  ``k`` of the ``r`` rows in smaller ones: ``k' <= #{f >= k} + floor(r / k)``, and ``k'`` is no more than the classes of
  ``low``. This bounds ``classes`` and ``aecs``; where rows are suppressed they make one more class, of rows that are in
  no released one, so that with it there are still no more than classes of ``low``.
* ``dm`` counts for every row the rows of its class, or all ``n`` if it is suppressed (as ``s n >= f²`` of a suppressed
  class): at least ``max(f, k)``, or ``n`` if that is less. This is the bound of Bayardo and Agrawal (ICDE 2005).

*Lost* rows are those that ``high`` suppresses. Where the problem is monotone, every node of the box suppresses them,
too, and they cost what a suppressed row does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.recoding.full_domain import NodeClasses
from privrisk_spark.kernels.recoding.metrics import Facts
from privrisk_spark.kernels.recoding.problem import Problem

__all__ = ["SLACK", "Floors", "Look", "exceeds", "look"]

SLACK = 1e-9
"""By which a floor may be rounded up, relatively."""

_OF_CLASSES = ("aecs", "dm", "classes")


class Floors:
    """Floors of a problem's boxes.

    Attributes
    ----------
    of_classes : bool
        Whether the metric is bounded by the classes of ``low``; by levels alone otherwise.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem, self.measured = problem, problem.measured
        self.table = problem.measured.table
        self.name = problem.metric.name
        self.of_classes = self.name in _OF_CLASSES
        self._shape = (len(self.table.ancestors), max(self.table.lattice.heights, default=0) + 1)

    def chains(self, base: NodeClasses, lost: BoolArray | None = None) -> FloatArray:
        """Return what every attribute adds at each level from that of the base on.

        Parameters
        ----------
        base : NodeClasses
            Classes of a node that is nowhere above ``low``.
        lost : ndarray of bool, shape (n_classes,), optional
            Those that every node of the box suppresses.

        Returns
        -------
        ndarray of float64, shape (k, greatest height + 1)
            Non-decreasing; infinite above the height of an attribute.
        """
        table, n = self.table, self.table.rows
        found = np.full(self._shape, np.inf)
        left = base.rows if lost is None else np.where(lost, 0, base.rows)
        suppressed = n - int(left.sum())
        for i, height in enumerate(table.lattice.heights):
            levels = np.arange(height + 1)
            chain: FloatArray = np.zeros(height + 1)
            if self.name == "height":
                chain = levels.astype(np.float64)
            elif self.name == "precision" and n and height:
                cells = height * n * self._shape[0]
                chain = np.array(
                    [(level * (n - suppressed) + height * suppressed) / cells for level in range(height + 1)]
                )
            elif self.name in ("loss", "ncp", "entropy") and n:
                chain = self._of_values(i, base, left, suppressed)
            # What it is at a level, or at any above it, should it fall.
            found[i, : height + 1] = np.minimum.accumulate(chain[::-1])[::-1]
        return found

    def _of_values(self, i: int, base: NodeClasses, left: LongArray, suppressed: int) -> FloatArray:
        """What the values of an attribute cost at each level; ``left`` are the rows that are not lost."""
        n, domain = self.table.rows, self.measured.domains[i]
        code = self.table.vectors[base.member, i]
        rows = np.bincount(code, weights=left, minlength=len(self.table.ancestors[i])).astype(np.float64)
        if self.name == "entropy":
            root, of_values = self.measured.root_bits, self.measured.bits_of_values
            most = sum(n * root - least for least in of_values)
            if not most:
                return np.zeros(self.table.lattice.heights[i] + 1)
            # All that could be lost, less what is said: no difference of sums that are much greater than it.
            said = rows @ (root - self.measured.logarithms[i])
            found: FloatArray = (n * root - of_values[i] - said) / most
            return found
        leaves = self.measured.leaves[i]
        if self.name == "ncp":
            inner = rows @ np.where(leaves == 1, 0, leaves) + suppressed * (domain if domain > 1 else 0)
            mean: FloatArray = inner / (n * domain * self._shape[0])
            return mean
        if domain <= 1:
            return np.zeros(leaves.shape[1])
        lost_share = (rows @ leaves + suppressed * domain - n) / (n * (domain - 1.0))
        logarithm: FloatArray = np.log1p(np.maximum(lost_share, 0.0))
        return logarithm

    def of_low(self, base: NodeClasses, lost: BoolArray | None = None) -> float:
        """Return the floor by classes, for metrics of classes; parameters as for ``chains``."""
        n, k = self.table.rows, self.problem.least_rows
        rows = base.rows if lost is None else base.rows[~lost]
        gone = n - int(rows.sum())
        if self.name == "dm":
            of_row = np.minimum(np.maximum(rows, k), n).astype(np.float64)
            return float(rows.astype(np.float64) @ of_row) + float(gone) * n
        small = rows[rows < k]
        released = min(len(rows), len(rows) - len(small) + int(small.sum()) // k)
        if self.name == "classes":
            return -float(released)
        shown = min(released + (1 if gone or self.problem.limit else 0), len(rows) + (1 if gone else 0))
        return n / max(shown, 1)

    def total(self, value: float) -> float:
        """Return a key in the units in which the attributes' parts are added up."""
        return self._shape[0] * math.log1p(value) if self.name == "loss" else value

    def key(self, total: float) -> float:
        """Return the key of what was added up."""
        return math.expm1(total / max(self._shape[0], 1)) if self.name == "loss" else total

    def least(self, base: NodeClasses, low: tuple[int, ...], lost: BoolArray | None = None) -> float:
        """Return the floor of all nodes from ``low`` on; parameters as for ``chains``."""
        if self.of_classes:
            return self.of_low(base, lost)
        chains = self.chains(base, lost)
        return self.key(float(chains[np.arange(len(low)), list(low)].sum()))

    def of_lattice(self) -> float:
        """Return the floor of all nodes."""
        heights = self.table.lattice.heights
        bottom = self.table.classes([0] * len(heights))
        top = look(self.problem, heights, bottom)
        lost = top.lost if self.problem.monotone else None
        return self.least(bottom, (0,) * len(heights), lost)


def exceeds(floor: float, key: float) -> bool:
    """Whether a floor is above a key by more than it may be rounded up."""
    return floor > key + SLACK * (1.0 + abs(key))


@dataclass(frozen=True, eq=False)
class Look:
    """What a look at a node says.

    Attributes
    ----------
    facts : Facts or None
        None if the node does not keep the limit.
    lost : ndarray of bool, shape (n_classes,)
        Classes of the finer node it was counted from whose rows it suppresses.
    """

    facts: Facts | None
    lost: BoolArray


def look(problem: Problem, levels: tuple[int, ...], base: NodeClasses) -> Look:
    """Look at a node, by the classes of a finer one; it is measured if it keeps the limit."""
    classes, of = problem.measured.table.grouped(levels, base)
    released = problem.released(classes)
    if problem.measured.table.rows - int(classes.rows[released].sum()) > problem.limit:
        return Look(None, ~released[of])
    return Look(problem.measured.facts(levels, classes, released), ~released[of])
