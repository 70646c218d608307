"""Risk of some records as the attacker's dictionary grows, by how much of each record is disclosed.

A generated table stands for the people there are. Its rows are taken in a keyed order; the first tenth is the table
that is released, and the first tenth, two tenths and so on are dictionaries of growing size, each a part of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from privrisk_spark.kernels.arrays import FloatArray, IntArray, LongArray
from privrisk_spark.kernels.counting.consistent import SortedCounts
from privrisk_spark.kernels.disclosure.disclosure import Disclosure
from privrisk_spark.kernels.disclosure.estimated import risk_of
from privrisk_spark.kernels.disclosure.sensitivity import Sensitivity
from privrisk_spark.kernels.search.dictionary_curves import DictionaryCurves, dictionary_curves
from reproduce.deciding.subject import Subject, counted
from reproduce.generated.clustered import keyed_uniforms

Form = Literal["linear", "multiplicative"]
FORMS: tuple[Form, ...] = ("linear", "multiplicative")


@dataclass(frozen=True, eq=False)
class Nested:
    """A table that is released, and dictionaries of growing size that contain it.

    Attributes
    ----------
    subject : Subject
        All people there are.
    codes : ndarray of int32, shape (n, k)
        Distinct records of the released table.
    times : ndarray of int64, shape (n,)
        Rows of each.
    sizes : tuple of int
        Rows of the dictionaries, ascending.
    """

    subject: Subject
    codes: IntArray
    times: LongArray
    sizes: tuple[int, ...]
    dictionaries: tuple[SortedCounts, ...]

    @classmethod
    def of(cls, subject: Subject, seed: int, shares: Sequence[float]) -> Nested:
        """Cut a table into nested dictionaries.

        Parameters
        ----------
        seed : int
            Of the order of the rows.
        shares : sequence of float
            Sizes as shares of the rows, ascending, in (0, 1]; the first is the released table's.
        """
        row = np.repeat(np.arange(len(subject.counts)), subject.counts)
        row = row[np.argsort(keyed_uniforms(seed, "order of rows", (len(row),)), kind="stable")]
        sizes = tuple(max(1, round(share * len(row))) for share in shares)
        nodes = subject.nodes
        dictionaries = []
        for size in sizes:
            counts = np.bincount(row[:size], minlength=len(subject.counts)).astype(np.int64)
            there = counts > 0
            dictionaries.append(SortedCounts.group(subject.axes, nodes[there], counts[there]))
        codes, times = counted(subject.vectors[row[: sizes[0]]])
        return cls(subject, codes, times, sizes, tuple(dictionaries))

    def disclosure(self, form: Form) -> Disclosure:
        """The problem of a record, by risk model I."""
        axes = self.subject.axes
        return Disclosure(
            tuple(axis.ancestor for axis in axes),
            tuple(axis.code_depth for axis in axes),
            self.subject.utilities,
            Sensitivity(form, self.subject.weights),
            "I",
        )

    def mean(self, risk: FloatArray) -> float:
        """Mean over the rows of the released table."""
        return float((risk * self.times).sum() / self.times.sum())


@dataclass(frozen=True, eq=False)
class Growth:
    """Mean risk by what is disclosed and by the size of the dictionary (Lebanon et al. 2006, Fig. 1).

    Attributes
    ----------
    rows : ndarray of int64, shape (S,)
        Rows of the dictionaries.
    attributes : ndarray of int64, shape (A,)
        How many attributes of a record are disclosed as they are; the others are suppressed.
    linear, multiplicative : ndarray of float64, shape (A, S)
        Mean risk under either form of the sensitivity.
    curves : DictionaryCurves
        Disclosures decided anew for each dictionary, and those of the smallest one held against the others (Fouad
        2012, Figs 3.1 and 3.3), under additive sensitivity.
    """

    rows: LongArray
    attributes: LongArray
    linear: FloatArray
    multiplicative: FloatArray
    curves: DictionaryCurves

    @property
    def risk(self) -> dict[Form, FloatArray]:
        """Mean risk by form of the sensitivity."""
        return {"linear": self.linear, "multiplicative": self.multiplicative}


def grow(nested: Nested, few: Nested, floors: Sequence[float]) -> Growth:
    """Measure risk against every dictionary.

    Parameters
    ----------
    few : Nested
        The same with few attributes, whose lattices are searched.
    floors : sequence of float
        Least utilities as shares of the greatest one of few attributes.
    """
    subject = nested.subject
    shares = (0.25, 0.5, 0.75, 1.0)
    disclosed = sorted({max(1, round(share * subject.k)) for share in shares})
    heights = np.array(subject.heights, dtype=np.int64)
    risk: dict[Form, FloatArray] = {}
    for form in FORMS:
        problem = nested.disclosure(form)
        found = np.empty((len(disclosed), len(nested.sizes)))
        for a, k in enumerate(disclosed):
            levels = np.where(np.arange(subject.k) < k, 0, heights)
            levels = np.broadcast_to(levels, nested.codes.shape)
            for s, counts in enumerate(nested.dictionaries):
                found[a, s] = nested.mean(risk_of(problem, counts, nested.codes, levels).risk)
        risk[form] = found
    curves = dictionary_curves(
        few.disclosure("linear"),
        [share * few.subject.greatest_utility for share in floors],
        few.dictionaries,
        few.codes,
        few.times,
    )
    return Growth(np.array(nested.sizes), np.array(disclosed), risk["linear"], risk["multiplicative"], curves)
