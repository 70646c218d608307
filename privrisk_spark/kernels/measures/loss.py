"""Utility of a release from its equivalence classes: class sizes, generalization steps, cell sizes.

Every measure is a tally: ``of`` the whole classes a task holds, ``plus`` to put tasks together, and figures from the
sum. Sums are integers or exact, so that figures are the same bits however classes are dealt to tasks. Tallies count
rows. Means over cells and records take sampling weights (in millionths) in place of rows as well. Persons with several
rows are not told apart: these measures say what a reader of the released rows has lost.

======================  ==================================  ========================================================
measure                 here                                source
======================  ==================================  ========================================================
C_avg                   :attr:`SizeTally.average_size`      LeFevre, DeWitt and Ramakrishnan, ICDE 2006
C_dsc (C_DM)            :attr:`SizeTally.discernibility`    Bayardo and Agrawal, ICDE 2005
C_prc (Prec)            :func:`step_loss`, ``retained``     Sweeney, IJUFKS 10(5), 2002
C_gil                   :func:`share_loss`, ``mean``        general loss of Iyengar, KDD 2002, as ``|cell|/|dom|``
NCP, GCP                :func:`leaf_ncp`, ``mean``          Xu et al., KDD 2006; Ghinita et al., VLDB 2007
penalty of a record     :func:`record_penalty`              ``1 - 1/Π leaves``
======================  ==================================  ========================================================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.exact_sums import ExactMean, exact_dot, exact_total
from privrisk_spark.kernels.numeric.fold import refuse_other

NcpForm = Literal["ghinita", "iyengar"]


def fully_suppressed(nodes: IntArray, roots: Sequence[int]) -> BoolArray:
    """Whether a class has the root in every attribute.

    Parameters
    ----------
    nodes : ndarray of int32, shape (m, k)
    roots : sequence of int, length k

    Returns
    -------
    ndarray of bool, shape (m,)
    """
    result: BoolArray = (nodes == np.array(roots, dtype=np.int32)).all(axis=1)
    return result


@dataclass(frozen=True)
class SizeTally:
    """Sizes of equivalence classes against a wanted ``k``.

    Attributes
    ----------
    k : int
        At least 1.
    records, classes : int
        Rows, and classes with at least one row.
    squares : int
        ``Σ f²`` over the classes whose rows are charged their class.
    charged : int
        Rows charged the whole table: those of classes below ``k``, and suppressed ones.
    """

    k: int
    records: int = 0
    classes: int = 0
    squares: int = 0
    charged: int = 0

    @classmethod
    def of(cls, rows: LongArray, *, k: int, suppressed: BoolArray | None = None) -> SizeTally:
        """Tally whole classes.

        Parameters
        ----------
        rows : ndarray of int64, shape (m,)
            Rows of each class; one without rows is no class.
        k : int
            At least 1.
        suppressed : ndarray of bool, shape (m,), optional
            Classes whose rows carry nothing any more, see :func:`fully_suppressed`. They are charged the whole table,
            whatever their size, as Bayardo and Agrawal do. Without it they are classes like any other, to the letter
            of the formula. In ``C_avg`` they are one class in both cases.

        Raises
        ------
        InputError
            If shapes differ, ``k`` is below 1 or rows are negative.
        """
        if k < 1:
            raise InputError(f"k must be at least 1. Got {k}.")
        lost = np.zeros(len(rows), dtype=np.bool_) if suppressed is None else suppressed
        if lost.shape != rows.shape:
            raise InputError(f"There must be one mark per class. Got shapes {lost.shape} and {rows.shape}.")
        whole = (rows < k) | lost
        kept = rows[~whole]
        return cls(k, exact_total(rows), int(np.count_nonzero(rows)), exact_dot(kept, kept), exact_total(rows[whole]))

    @classmethod
    def empty(cls, *, k: int) -> SizeTally:
        """Tally of no class; parameters and errors as for :meth:`of`."""
        return cls.of(np.zeros(0, dtype=np.int64), k=k)

    def plus(self, other: SizeTally) -> SizeTally:
        """Tally of both together.

        Raises
        ------
        InternalError
            If the two are for different ``k``.
        """
        refuse_other(self.k, other.k, "Tallies of one k")
        return SizeTally(
            self.k,
            self.records + other.records,
            self.classes + other.classes,
            self.squares + other.squares,
            self.charged + other.charged,
        )

    @property
    def average_size(self) -> float:
        """``C_avg = |D| / (classes · k)``, correctly rounded; 0 without rows. 1 is the best of a k-anonymous table."""
        return float(Fraction(self.records, self.classes * self.k)) if self.classes else 0.0

    @property
    def discernibility(self) -> int:
        """``C_dsc = Σ_{f >= k} f² + Σ_{f < k} f · |D|``, exactly; in [records, records²]."""
        return self.squares + self.charged * self.records


def node_levels(parent: IntArray) -> IntArray:
    """Generalization steps a node stands for: the longest path down to a leaf.

    0 for a leaf and the height of the hierarchy for the root, whatever the leaf's depth: with leaves of different
    depths, one that is suppressed counts all levels, and one that is released as it is none.

    Parameters
    ----------
    parent : ndarray of int32, shape (n_nodes,)
        Children come before their parents; the root is its own parent.

    Returns
    -------
    ndarray of int32, shape (n_nodes,)
    """
    level = np.zeros(len(parent), dtype=np.int32)
    below = np.arange(len(parent) - 1)
    while True:  # once per level of the hierarchy
        raised = level.copy()
        np.maximum.at(raised, parent[:-1], level[below] + 1)
        if np.array_equal(raised, level):
            return level
        level = raised


def step_loss(level: IntArray) -> FloatArray:
    """``level / height``, the loss of Sweeney's precision; 0 everywhere if the height is 0.

    Parameters
    ----------
    level : ndarray of int32, shape (n_nodes,)
        See :func:`node_levels`; the greatest is the height.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
        In [0, 1].
    """
    height = int(level.max())
    return level / np.float64(max(height, 1))


def share_loss(size: npt.NDArray[np.number[Any]], domain: float | None = None) -> FloatArray:
    """``|cell| / |dom|``, the loss of ``C_gil``.

    Parameters
    ----------
    size : ndarray, shape (n_nodes,)
        Leaves below each node, or the width of its interval. A leaf is not free: it has the share of one value.
    domain : float, optional
        Leaves, or width, of the domain. The greatest size if not given.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
        In [0, 1].

    Raises
    ------
    InputError
        If a size is negative or NaN, or larger than the domain.
    """
    whole = float(size.max()) if domain is None else float(domain)
    if not (np.all(size >= 0) and np.all(size <= whole) and np.isfinite(whole)):
        raise InputError(f"Sizes of nodes must be between 0 and that of the domain, {whole:g}.")
    result: FloatArray = np.divide(size, whole or 1.0, dtype=np.float64)
    return result


def leaf_ncp(leaves: LongArray, form: NcpForm = "ghinita") -> FloatArray:
    """Normalized certainty penalty of the nodes of a categorical attribute.

    Parameters
    ----------
    leaves : ndarray of int64, shape (n_nodes,)
        Leaves below each node, at least 1; the greatest is the domain ``m``.
    form : {"ghinita", "iyengar"}
        ``ghinita``: ``n / m``, and 0 for one leaf (Xu et al., KDD 2006, as Ghinita et al., VLDB 2007, state it).
        ``iyengar``: ``(n - 1) / (m - 1)`` (the LM of Iyengar, KDD 2002), which has no jump at a leaf; 0 if ``m = 1``.

    Returns
    -------
    ndarray of float64, shape (n_nodes,)
        In [0, 1]; 0 for a leaf and every node that has only one.
    """
    most = int(leaves.max())
    if form == "iyengar":
        return (leaves - 1) / np.float64(max(most - 1, 1))
    return np.where(leaves == 1, 0.0, leaves / np.float64(most))


@dataclass(frozen=True)
class CellTally:
    """Mean loss of the cells of each attribute, and of all.

    One tally holds one measure: ``C_prc`` is :attr:`retained` of :func:`step_loss`, ``C_gil`` is :attr:`mean` of
    :func:`share_loss`, ``GCP`` is :attr:`mean` of :func:`leaf_ncp`, and ``NCP`` of an attribute
    is its entry of :attr:`means`.

    Attributes
    ----------
    attributes : tuple of ExactMean
        One per attribute.
    """

    attributes: tuple[ExactMean, ...]

    @classmethod
    def of(cls, nodes: IntArray, times: LongArray, losses: Sequence[FloatArray]) -> CellTally:
        """Tally cells.

        Parameters
        ----------
        nodes : ndarray of int32, shape (m, k)
            Released nodes of each class, or record.
        times : ndarray of int64, shape (m,)
            Rows, or sampling weights in millionths; at least 0.
        losses : sequence of k ndarrays of float64, shape (n_nodes_i,)
            Loss of each node, finite.

        Raises
        ------
        InputError
            If the shapes do not fit or a node is not in its hierarchy.
        """
        if nodes.ndim != 2 or nodes.shape != (len(times), len(losses)):
            raise InputError(
                "There must be one column of nodes per attribute and one weight per class. "
                f"Got {len(losses)} attributes, nodes of shape {nodes.shape}, weights of shape {times.shape}."
            )
        for i, loss in enumerate(losses):
            refuse_nodes(nodes[:, i], len(loss), i)
        return cls(tuple(ExactMean.of(loss[nodes[:, i]], times) for i, loss in enumerate(losses)))

    @classmethod
    def empty(cls, attributes: int) -> CellTally:
        """Tally of no cell of so many attributes."""
        return cls((ExactMean.empty(),) * attributes)

    def plus(self, other: CellTally) -> CellTally:
        """Tally of both together.

        Raises
        ------
        InternalError
            If the two have different numbers of attributes.
        """
        refuse_other(len(self.attributes), len(other.attributes), "Tallies of so many attributes")
        return CellTally(tuple(a.plus(b) for a, b in zip(self.attributes, other.attributes, strict=True)))

    @property
    def means(self) -> tuple[float, ...]:
        """Mean loss of each attribute; 0 of nothing."""
        return tuple(attribute.mean for attribute in self.attributes)

    @property
    def mean(self) -> float:
        """Mean loss of all cells, correctly rounded; 0 of nothing."""
        return float(self._exact())

    @property
    def retained(self) -> float:
        """``1 - mean``, correctly rounded; 1 of nothing."""
        return float(1 - self._exact())

    @property
    def retained_by_attribute(self) -> tuple[float, ...]:
        """``1 - mean`` of each attribute."""
        return tuple(float(1 - attribute.exact) for attribute in self.attributes)

    @property
    def geometric(self) -> float:
        """``(Π_i (1 + mean_i))^(1/k) - 1``, with the loss of Iyengar what ARX calls loss; 0 without attributes."""
        means = self.means
        return math.exp(math.fsum(math.log1p(mean) for mean in means) / len(means)) - 1 if means else 0.0

    def weighted_mean(self, weights: Sequence[float]) -> float:
        """Mean loss with a weight per attribute, ``Σ w_i mean_i / Σ w_i`` (the weighted penalty of Xu et al.).

        Parameters
        ----------
        weights : sequence of float, length k
            Non-negative, not all 0.

        Raises
        ------
        InputError
            If the weights do not fit.
        """
        exact = [Fraction(weight) for weight in weights]
        if len(exact) != len(self.attributes) or min(exact, default=Fraction()) < 0 or not sum(exact):
            raise InputError("There must be one weight per attribute, none negative and not all 0.")
        weighed = sum((w * a.exact for w, a in zip(exact, self.attributes, strict=True)), Fraction())
        return float(weighed / sum(exact))

    def _exact(self) -> Fraction:
        k = len(self.attributes)
        return sum((attribute.exact for attribute in self.attributes), Fraction()) / k if k else Fraction()


def refuse_nodes(nodes: IntArray, n_nodes: int, attribute: int) -> None:
    """Refuse node numbers outside ``0 … n_nodes - 1``.

    Raises
    ------
    InputError
    """
    if len(nodes) and (int(nodes.min()) < 0 or int(nodes.max()) >= n_nodes):
        raise InputError(f"Nodes of attribute {attribute} must be between 0 and {n_nodes - 1}, and some are not.")


def cell_volumes(nodes: IntArray, leaves: Sequence[LongArray]) -> FloatArray:
    """Leaf vectors that generalize to each record, ``Π_i leaves_i(node_i)``.

    Parameters
    ----------
    nodes : ndarray of int32, shape (m, k)
    leaves : sequence of k ndarrays of int64, shape (n_nodes_i,)
        Leaves below each node, at least 1.

    Returns
    -------
    ndarray of float64, shape (m,)
        Exact up to 2^53; inf from 2^1024 on.

    Raises
    ------
    InputError
        If the shapes do not fit or a node is not in its hierarchy.
    """
    if nodes.ndim != 2 or nodes.shape[1] != len(leaves):
        raise InputError(f"There must be one column of nodes per attribute. Got shape {nodes.shape}.")
    volume = np.ones(len(nodes))
    with np.errstate(over="ignore"):
        for i, below in enumerate(leaves):  # in the order of the attributes: products round
            refuse_nodes(nodes[:, i], len(below), i)
            volume *= below[nodes[:, i]]
    return volume


def record_penalty(nodes: IntArray, leaves: Sequence[LongArray]) -> FloatArray:
    """Penalty ``1 - 1/Π leaves`` of each record; parameters and errors as for :func:`cell_volumes`.

    Put it into an :class:`~privrisk_spark.kernels.numeric.exact_sums.ExactMean` with rows or weights for the mean.

    Returns
    -------
    ndarray of float64, shape (m,)
        In [0, 1]; 0 for a record released as it is.
    """
    result: FloatArray = 1.0 - 1.0 / cell_volumes(nodes, leaves)
    return result
