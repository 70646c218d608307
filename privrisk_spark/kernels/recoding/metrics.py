"""What a scheme costs: the metrics a search minimises, from whole numbers that are the same however a node is reached.

``n`` rows, of which ``s`` are suppressed with every quasi-identifier at its root; ``k'`` released classes of ``f_i``
rows; ``m`` attributes. The share of a node is its leaves over all leaves of the attribute.

===========  ============================================================================  ======================
metric       value                                                                         source
===========  ============================================================================  ======================
loss         ``(Π_i (1 + x_i))^(1/m) - 1`` with ``x_i = (mean share - 1/|dom|) / (1 -      general loss of Iyengar,
             1/|dom|)``, over all rows, 1 for a suppressed one                             KDD 2002
aecs         ``n / (k' + [s > 0])``, rows of an average class; not divided by k             LeFevre et al. 2006
dm           ``Σ f_i² + s n``, discernibility                                              Bayardo, Agrawal 2005
precision    mean of ``level / height`` over all cells, 1 for a suppressed one             Sweeney 2002, ``1 - Prec``
height       ``Σ levels``; what is suppressed does not count                               Samarati 2001
ncp          mean over all cells of the share, 0 for a leaf and 1 for a suppressed one      Xu et al. 2006 (GCP)
entropy      mean over all cells of ``log2(N(node) / N(value))``, of a suppressed one        Gionis, Tassa 2008
             ``log2(n / N(value))``, over what it is if all are suppressed (non-uniform);
             ``N`` are the rows of the table as it came
classes      ``k'``; more are better                                                       -
===========  ============================================================================  ======================

Ties between nodes are settled by :func:`order`: the better metric, then fewer suppressed rows, then the
lexicographically smallest level vector. Metrics are functions of integers of a node alone, so that two searches give a
node the same bits, and the optimum is one. For ``entropy`` logarithms are whole numbers of ``2^-46`` bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.numeric.exact_sums import exact_dot
from privrisk_spark.kernels.recoding.full_domain import FullDomain, NodeClasses

__all__ = ["METRICS", "Facts", "Measured", "Metric", "order"]


@dataclass(frozen=True)
class Facts:
    """What is known of a node once it is known which of its classes are released.

    Attributes
    ----------
    rows, suppressed : int
        Of the table, and of them those that are not released as they are.
    classes : int
        Released ones.
    squares : int
        ``Σ f²`` over these.
    levels : tuple of k int
    heights : tuple of k int
    leaves : tuple of k int
        Over all rows, leaves of the node of each attribute; of a suppressed one all.
    inner : tuple of k int
        The same, and 0 for a node that has one leaf.
    domains : tuple of k int
        Leaves of each attribute.
    bits, most_bits : tuple of k int
        Over all rows, what is not said of the value of each attribute, in ``2^-46`` bits, and if all are suppressed.
    """

    rows: int
    suppressed: int
    classes: int
    squares: int
    levels: tuple[int, ...]
    heights: tuple[int, ...]
    leaves: tuple[int, ...]
    inner: tuple[int, ...]
    domains: tuple[int, ...]
    bits: tuple[int, ...] = ()
    most_bits: tuple[int, ...] = ()


@dataclass(frozen=True)
class Metric:
    """A cost.

    Attributes
    ----------
    exact : callable
        Of :class:`Facts`; a ratio of whole numbers where that is what the metric is.
    """

    name: str
    exact: Callable[[Facts], Fraction | float]
    greater_is_better: bool = False

    def value(self, facts: Facts) -> float:
        """Return the metric, correctly rounded where it is a ratio."""
        return float(self.exact(facts))

    def key(self, facts: Facts) -> Fraction | float:
        """Return what is minimised."""
        return -self.exact(facts) if self.greater_is_better else self.exact(facts)


def order(metric: Metric, facts: Facts) -> tuple[Fraction | float, int, tuple[int, ...]]:
    """Return what nodes are compared by; the least is the optimum."""
    return metric.key(facts), facts.suppressed, facts.levels


@dataclass(frozen=True, eq=False)
class Measured:
    """A table whose nodes are measured.

    Attributes
    ----------
    leaves : tuple of k ndarrays of int64, shape (n_codes_i, h_i + 1)
        Leaves below the node of each code at each level.
    domains : tuple of k int
        Leaves of each hierarchy.
    """

    table: FullDomain
    leaves: tuple[LongArray, ...]
    domains: tuple[int, ...]

    @classmethod
    def of(cls, table: FullDomain, leaves: Sequence[LongArray] | None = None) -> Measured:
        """Count the leaves of nodes, or take what is given where codes are not leaves.

        Parameters
        ----------
        leaves : sequence of k ndarrays of int64, shape (n_codes_i, h_i + 1), optional
            At least 1; the greatest of an attribute is its domain. By default every code is a leaf.

        Raises
        ------
        InputError
            If shapes do not fit or a node has no leaf.
        """
        every_code = leaves is None
        if leaves is None:
            leaves = [
                np.column_stack([np.bincount(column)[column] for column in ancestor.T]).astype(np.int64)
                for ancestor in table.ancestors
            ]
        if [of.shape for of in leaves] != [of.shape for of in table.ancestors] or any((of < 1).any() for of in leaves):
            raise InputError("There must be a number of leaves, at least 1, for every code at every level.")
        # Where the highest level is not one node, no node has all leaves.
        return cls(table, tuple(leaves), tuple(len(of) if every_code else int(of.max()) for of in leaves))

    @cached_property
    def logarithms(self) -> tuple[LongArray, ...]:
        """Of each attribute, of each code at each level: ``log2`` of the rows of its node, in ``2^-46`` bits."""
        found = []
        for ancestor, rows in zip(self.table.ancestors, self.rows_of_codes, strict=True):
            levels = []
            for column in ancestor.T:
                _, node = np.unique(column, return_inverse=True)
                of_node = np.bincount(node.reshape(-1), weights=rows)[node.reshape(-1)]
                levels.append(_in_bits(of_node))
            found.append(np.column_stack(levels))
        return tuple(found)

    @cached_property
    def rows_of_codes(self) -> tuple[LongArray, ...]:
        """Of each attribute, the rows of each code."""
        vectors, counts = self.table.vectors, self.table.counts
        return tuple(
            np.bincount(vectors[:, i], weights=counts, minlength=len(ancestor)).astype(np.int64)
            for i, ancestor in enumerate(self.table.ancestors)
        )

    @cached_property
    def root_bits(self) -> int:
        """``log2`` of all rows, in ``2^-46`` bits."""
        return int(_in_bits(np.array([self.table.rows]))[0])

    @cached_property
    def bits_of_values(self) -> tuple[int, ...]:
        """Of each attribute, over all rows, ``log2`` of the rows that have its value, in ``2^-46`` bits."""
        return tuple(exact_dot(_in_bits(rows), rows) for rows in self.rows_of_codes)

    def facts(self, levels: Sequence[int], classes: NodeClasses, released: BoolArray) -> Facts:
        """Measure a node.

        Parameters
        ----------
        levels : sequence of k int
        classes : NodeClasses
            Of the node.
        released : ndarray of bool, shape (n_classes,)
            Which of them are released; the others are suppressed whole.
        """
        rows, member = classes.rows[released], classes.member[released]
        suppressed = self.table.rows - int(rows.sum())
        of_each, inner, bits = [], [], []
        for i, (leaves, domain) in enumerate(zip(self.leaves, self.domains, strict=True)):
            code, of_code, level = self.table.vectors[member, i], rows, levels[i]
            if len(leaves) < len(code):
                of_code = np.bincount(code, weights=rows, minlength=len(leaves)).astype(np.int64)
                code = np.flatnonzero(of_code)
                of_code = of_code[code]
            below = leaves[code, level]
            of_each.append(exact_dot(below, of_code) + suppressed * domain)
            some = below > 1
            inner.append(exact_dot(below[some], of_code[some]) + suppressed * (domain if domain > 1 else 0))
            bits.append(exact_dot(self.logarithms[i][code, level], of_code) + suppressed * self.root_bits)
        return Facts(
            rows=self.table.rows,
            suppressed=suppressed,
            classes=len(rows),
            squares=exact_dot(rows, rows),
            levels=tuple(int(level) for level in levels),
            heights=self.table.lattice.heights,
            leaves=tuple(of_each),
            inner=tuple(inner),
            domains=self.domains,
            bits=tuple(of - least for of, least in zip(bits, self.bits_of_values, strict=True)),
            most_bits=tuple(self.table.rows * self.root_bits - least for least in self.bits_of_values),
        )


_BITS = 2**46


def _in_bits(rows: LongArray | FloatArray) -> LongArray:
    """``log2`` of numbers of rows, in ``2^-46`` bits; 0 of none."""
    found: LongArray = np.rint(np.log2(np.maximum(rows, 1)) * _BITS).astype(np.int64)
    return found


def _loss(facts: Facts) -> float:
    product = 1.0
    for leaves, domain in zip(facts.leaves, facts.domains, strict=True):
        # (leaves / (n |dom|) - 1/|dom|) / (1 - 1/|dom|), where a domain of one leaf has nothing to lose
        given = Fraction(leaves - facts.rows, facts.rows * (domain - 1)) if domain > 1 and facts.rows else Fraction()
        product *= 1.0 + float(given)
    return float(product ** (1.0 / len(facts.domains)) - 1.0) if facts.domains else 0.0


def _average_size(facts: Facts) -> Fraction:
    classes = facts.classes + (facts.suppressed > 0)
    return Fraction(facts.rows, classes) if classes else Fraction()


def _precision(facts: Facts) -> Fraction:
    lost = sum(
        (
            Fraction(level * (facts.rows - facts.suppressed) + height * facts.suppressed, height)
            for level, height in zip(facts.levels, facts.heights, strict=True)
            if height
        ),
        Fraction(),
    )
    cells = facts.rows * len(facts.levels)
    return lost / cells if cells else Fraction()


def _ncp(facts: Facts) -> Fraction:
    lost = sum((Fraction(inner, domain) for inner, domain in zip(facts.inner, facts.domains, strict=True)), Fraction())
    cells = facts.rows * len(facts.domains)
    return lost / cells if cells else Fraction()


def _entropy(facts: Facts) -> Fraction:
    most = sum(facts.most_bits)
    return Fraction(sum(facts.bits), most) if most else Fraction()


METRICS = {
    metric.name: metric
    for metric in (
        Metric("loss", _loss),
        Metric("aecs", _average_size),
        Metric("dm", lambda facts: facts.squares + facts.suppressed * facts.rows),
        Metric("precision", _precision),
        Metric("height", lambda facts: sum(facts.levels)),
        Metric("ncp", _ncp),
        Metric("entropy", _entropy),
        Metric("classes", lambda facts: facts.classes, greater_is_better=True),
    )
}
"""By name."""
