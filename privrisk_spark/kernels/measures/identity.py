"""Identity disclosure from the sizes of equivalence classes: prosecutor, journalist and marketer, k-map, uniqueness.

Records that share their quasi-identifiers form an equivalence class. ``f`` is the size of a class in the data, ``F``
its size in the population the data were drawn from. They count whatever unit the caller counts: rows, or distinct
persons where one person may have several rows. Both must count the same unit; "record" below means one such unit.

* The *prosecutor* knows that the target is in the data. A record is found with probability ``1/f``.
* The *journalist* does not, and needs the population. A record is found with probability ``1/F``.
* The *marketer* links every record and counts the hits: ``(1/n) Σ f/F``.

Source: El Emam and Dankar, "Protecting Privacy Using k-Anonymity", JAMIA 15(5), 2008; Dankar and El Emam, "A method for
evaluating marketer re-identification risk", PAIS 2010; k-map: Sweeney, "Computational Disclosure Control", MIT, 2001.

All that is kept of a table is how many classes there are of each size ``f``, or of each pair ``(f, F)``. ``s``
different sizes add up to at least ``1 + 2 + … + s``, so ``n`` records have at most ``√(2n)`` of them, and pairs are of
the order of ``(n N)^(1/3)``: these histograms stay small however many classes there are. They are integers, so a
histogram put together from parts is the same in any order, and so is every measure computed from it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import FloatArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.moments import Moments, risk_histogram

SIZE_BINS = (1, 2, 3, 4, 5, 10, 20, 50, 100, 1000)
"""Least class size of each bin of :attr:`SampleRisk.by_size`; the last is open."""


@dataclass(frozen=True)
class SizeBin:
    """Classes of ``least`` to ``most`` records, and their records.

    Attributes
    ----------
    least : int
    most : int or None
        None for the last bin, which has no end.
    classes, records : int
    """

    least: int
    most: int | None
    classes: int
    records: int


@dataclass(frozen=True)
class Above:
    """Records whose risk is above a threshold.

    Attributes
    ----------
    threshold : float
        Probability. A risk equal to it is not above; risks are compared as they are rounded to float64, so that ``1/3``
        written in Python is not below the risk in a class of three.
    records : int
    share : float
        Of the records the risk is known of; 0 of none.
    """

    threshold: float
    records: int
    share: float


@dataclass(frozen=True)
class SampleRisk:
    """Measures that need the data alone.

    Attributes
    ----------
    records, classes : int
    uniques : int
        Classes of one record.
    k : int
        ``min f``: the data are k-anonymous for this ``k`` and no greater one. 0 without records.
    prosecutor_max : float
        ``1 / min f``; 0 without records.
    prosecutor_mean : float
        ``(1/n) Σ_records 1/f = classes / n``; 0 without records.
    above : tuple of Above
        By prosecutor risk ``1/f``.
    by_size : tuple of SizeBin
    by_risk : tuple of int
        Records by ``1/f``, in the bins of :func:`~privrisk_spark.kernels.numeric.moments.risk_bins`.
    """

    records: int
    classes: int
    uniques: int
    k: int
    prosecutor_max: float
    prosecutor_mean: float
    above: tuple[Above, ...]
    by_size: tuple[SizeBin, ...]
    by_risk: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        return asdict(self)


@dataclass(frozen=True)
class SizeHistogram:
    """How many classes have each size; an empty one is the neutral element of :meth:`plus`.

    Attributes
    ----------
    sizes : tuple of int
        Different values of ``f``, ascending, at least 1.
    numbers : tuple of int
        Classes of each size, at least 1.
    """

    sizes: tuple[int, ...] = ()
    numbers: tuple[int, ...] = ()

    @classmethod
    def of(cls, sizes: LongArray) -> SizeHistogram:
        """Count the classes of one part of a table.

        Parameters
        ----------
        sizes : ndarray of int64, shape (n_classes,)
            ``f`` of whole classes, at least 1; in any order.

        Raises
        ------
        InputError
            If a size is below 1.
        """
        _refuse_below(sizes, 1, "Sizes of equivalence classes")
        first, member = distinct_rows([sizes])
        return cls(tuple(sizes[first].tolist()), tuple(np.bincount(member, minlength=len(first)).tolist()))

    @classmethod
    def merged(cls, parts: Iterable[SizeHistogram]) -> SizeHistogram:
        """Histogram of all parts together."""
        counter: Counter[int] = Counter()
        for part in parts:
            for size, number in zip(part.sizes, part.numbers, strict=True):
                counter[size] += number
        sizes = sorted(counter)
        return cls(tuple(sizes), tuple(counter[size] for size in sizes))

    def plus(self, other: SizeHistogram) -> SizeHistogram:
        """Histogram of both together."""
        return self.merged((self, other))

    def to_dict(self) -> dict[str, list[int]]:
        """JSON-safe form."""
        return {"sizes": list(self.sizes), "numbers": list(self.numbers)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Sequence[int]]) -> SizeHistogram:
        """Read what :meth:`to_dict` gave."""
        return cls(tuple(values["sizes"]), tuple(values["numbers"]))

    @property
    def records(self) -> int:
        """``n = Σ f``."""
        return sum(size * number for size, number in zip(self.sizes, self.numbers, strict=True))

    @property
    def classes(self) -> int:
        """Number of classes."""
        return sum(self.numbers)

    def classes_of(self, size: int) -> int:
        """Classes of exactly ``size`` records: ``n_1`` for the sample uniques, ``n_2`` for the pairs."""
        return dict(zip(self.sizes, self.numbers, strict=True)).get(size, 0)

    def risk(self, thresholds: Sequence[float] = ()) -> SampleRisk:
        """Compute the measures that need the data alone.

        Parameters
        ----------
        thresholds : sequence of float
            Probabilities in [0, 1].

        Raises
        ------
        InputError
            If a threshold is not a probability.
        """
        _refuse_thresholds(thresholds)
        records, classes = self.records, self.classes
        rows = [size * number for size, number in zip(self.sizes, self.numbers, strict=True)]
        bins = []
        for least, following in zip(SIZE_BINS, (*SIZE_BINS[1:], None), strict=True):
            inside = [i for i, f in enumerate(self.sizes) if f >= least and (following is None or f < following)]
            bins.append(
                SizeBin(
                    least,
                    None if following is None else following - 1,
                    sum(self.numbers[i] for i in inside),
                    sum(rows[i] for i in inside),
                )
            )
        by_risk = risk_histogram(np.array([1 / f for f in self.sizes]), np.array(rows, dtype=np.int64))
        return SampleRisk(
            records=records,
            classes=classes,
            uniques=self.classes_of(1),
            k=self.sizes[0] if self.sizes else 0,
            prosecutor_max=1 / self.sizes[0] if self.sizes else 0.0,
            prosecutor_mean=classes / records if records else 0.0,
            above=tuple(_above(t, zip(self.sizes, rows, strict=True), records) for t in thresholds),
            by_size=tuple(bins),
            by_risk=tuple(by_risk.tolist()),
        )


@dataclass(frozen=True)
class PopulationRisk:
    """Measures that need the size of every class in the population.

    A population table may be incomplete. A class of the data that it lacks (``F = 0``) is *uncovered*: nothing is known
    of its risk, and no measure but those named below takes it into account. A class with ``0 < F < f`` is a
    *contradiction*: the data cannot have been drawn from that table. Its ``F`` is used as it is, except below. Both are
    counted, so that whoever reads a risk sees what it leaves out; a requirement on k-map or on the journalist's risk is
    shown to hold only if no class is uncovered, or if it holds for the ``_contained`` ones.

    Attributes
    ----------
    records, classes : int
        Of the data.
    uncovered_classes, uncovered_records : int
    contradicting_classes, contradicting_records : int
    k_map : int or None
        ``min F`` over covered classes of the data: each is shared by at least so many of the population. None if no
        class is covered.
    journalist_max : float or None
        ``1 / min F`` over covered classes; None if there is none.
    k_map_contained : int
        ``min max(f, F)`` over all classes: what k-map is at least if the data are a part of the population, for which
        the table may lack people. Then a class has at least the members that are in the data. 0 without records.
    journalist_max_contained : float
        ``1 / k_map_contained``; 0 without records.
    marketer : float
        ``(1/n) Σ f/F`` over covered classes, ``n`` all records: a record without counterpart in the table cannot be
        linked to it. 0 without records.
    marketer_covered : float or None
        The same over the number of covered records; None if there is none.
    sample_uniques, sample_uniques_uncovered : int
        Classes with ``f = 1``, and those of them with ``F = 0``.
    population_uniques : int
        Records that are alone in the data and in the population, ``Σ I(F = 1, f = 1)``.
    population_uniques_share : float or None
        ``P(PU|SU) = Σ I(F = 1, f = 1) / Σ I(f = 1)``: that a sample unique is a population unique (Skinner and Elliot,
        JRSS B 64(4), 2002). None without sample uniques. Uncovered ones count as not unique, so what covers them may
        only raise it.
    above : tuple of Above
        By journalist's risk ``1/F``; shares are of the covered records.
    """

    records: int
    classes: int
    uncovered_classes: int
    uncovered_records: int
    contradicting_classes: int
    contradicting_records: int
    k_map: int | None
    journalist_max: float | None
    k_map_contained: int
    journalist_max_contained: float
    marketer: float
    marketer_covered: float | None
    sample_uniques: int
    sample_uniques_uncovered: int
    population_uniques: int
    population_uniques_share: float | None
    above: tuple[Above, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        return asdict(self)


@dataclass(frozen=True)
class PopulationHistogram:
    """How many classes have each pair ``(f, F)``; an empty one is the neutral element of :meth:`plus`.

    Attributes
    ----------
    pairs : tuple of (int, int)
        Different values of ``(f, F)``, ascending; ``f >= 1``, ``F >= 0``.
    numbers : tuple of int
        Classes of each, at least 1.
    """

    pairs: tuple[tuple[int, int], ...] = ()
    numbers: tuple[int, ...] = ()

    @classmethod
    def of(cls, sizes: LongArray, population: LongArray) -> PopulationHistogram:
        """Count the classes of one part of a table.

        Parameters
        ----------
        sizes : ndarray of int64, shape (n_classes,)
            ``f`` of whole classes of the data, at least 1; in any order. Classes of the population alone are left out.
        population : ndarray of int64, shape (n_classes,)
            ``F`` of each; 0 for a class that the population table lacks.

        Raises
        ------
        InputError
            If the shapes differ, a size is below 1 or a population is below 0.
        """
        _refuse_shapes(sizes, population)
        _refuse_below(sizes, 1, "Sizes of equivalence classes")
        _refuse_below(population, 0, "Sizes of classes in the population")
        first, member = distinct_rows([sizes, population])
        numbers = np.bincount(member, minlength=len(first))
        return cls(tuple(zip(sizes[first].tolist(), population[first].tolist(), strict=True)), tuple(numbers.tolist()))

    @classmethod
    def merged(cls, parts: Iterable[PopulationHistogram]) -> PopulationHistogram:
        """Histogram of all parts together."""
        counter: Counter[tuple[int, int]] = Counter()
        for part in parts:
            for pair, number in zip(part.pairs, part.numbers, strict=True):
                counter[pair] += number
        pairs = sorted(counter)
        return cls(tuple(pairs), tuple(counter[pair] for pair in pairs))

    def plus(self, other: PopulationHistogram) -> PopulationHistogram:
        """Histogram of both together."""
        return self.merged((self, other))

    def to_dict(self) -> dict[str, list[int]]:
        """JSON-safe form."""
        return {
            "sizes": [f for f, _ in self.pairs],
            "population": [big for _, big in self.pairs],
            "numbers": list(self.numbers),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Sequence[int]]) -> PopulationHistogram:
        """Read what :meth:`to_dict` gave."""
        return cls(tuple(zip(values["sizes"], values["population"], strict=True)), tuple(values["numbers"]))

    @property
    def sizes(self) -> SizeHistogram:
        """Histogram of ``f`` alone."""
        parts = (SizeHistogram((f,), (n,)) for (f, _), n in zip(self.pairs, self.numbers, strict=True))
        return SizeHistogram.merged(parts)

    def risk(self, thresholds: Sequence[float] = ()) -> PopulationRisk:
        """Compute the measures that need the population.

        Parameters
        ----------
        thresholds : sequence of float
            Probabilities in [0, 1].

        Raises
        ------
        InputError
            If a threshold is not a probability.
        """
        _refuse_thresholds(thresholds)
        entries = [(f, big, number) for (f, big), number in zip(self.pairs, self.numbers, strict=True)]
        covered = [entry for entry in entries if entry[1]]
        contradicting = [entry for entry in covered if entry[1] < entry[0]]
        records = sum(f * number for f, _, number in entries)
        covered_records = sum(f * number for f, _, number in covered)
        least = min((big for _, big, _ in covered), default=None)
        contained = min((max(f, big) for f, big, _ in entries), default=0)
        # Correctly rounded terms, and a correctly rounded sum of them whatever their order.
        hits = math.fsum(f * number / big for f, big, number in covered)
        singles = self._uniques()
        doubly = self._uniques(1)
        by_population = [(big, f * number) for f, big, number in covered]
        return PopulationRisk(
            records=records,
            classes=sum(self.numbers),
            uncovered_classes=sum(self.numbers) - sum(number for _, _, number in covered),
            uncovered_records=records - covered_records,
            contradicting_classes=sum(number for _, _, number in contradicting),
            contradicting_records=sum(f * number for f, _, number in contradicting),
            k_map=least,
            journalist_max=None if least is None else 1 / least,
            k_map_contained=contained,
            journalist_max_contained=1 / contained if contained else 0.0,
            marketer=hits / records if records else 0.0,
            marketer_covered=hits / covered_records if covered_records else None,
            sample_uniques=singles,
            sample_uniques_uncovered=self._uniques(0),
            population_uniques=doubly,
            population_uniques_share=doubly / singles if singles else None,
            above=tuple(_above(t, by_population, covered_records) for t in thresholds),
        )

    def _uniques(self, population: int | None = None) -> int:
        """Sample uniques, or those whose class has ``population`` members in the population."""
        return sum(
            number
            for (f, big), number in zip(self.pairs, self.numbers, strict=True)
            if f == 1 and population in (None, big)
        )


@dataclass(frozen=True)
class WeightTally:
    """Classes with an estimate of their size in the population from sampling weights, ``F̂ = Σ w``.

    It stands beside the histogram of ``f``: requirements on the data are about ``f``, and this says what they mean in
    the population. The data are a part of the population, so a class has at least ``f`` members: the risk of a record
    is taken as ``1 / max(F̂, f)``.

    Attributes
    ----------
    thresholds : tuple of float
        Probabilities; the same in every part.
    estimates : Moments
        ``F̂`` of every class: their sum is the estimated population, the least one is the estimated k-map.
    risks : Moments
        ``1 / max(F̂, f)`` of every record: the mean is the marketer's risk, the greatest the journalist's.
    above : tuple of int
        Records whose risk is above each threshold; compared as in :class:`Above`.
    below_classes, below_records : int
        Classes with ``F̂ < f``, whose weights are below 1 on the average, and their records.
    """

    thresholds: tuple[float, ...] = ()
    estimates: Moments = field(default_factory=Moments)
    risks: Moments = field(default_factory=Moments)
    above: tuple[int, ...] = ()
    below_classes: int = 0
    below_records: int = 0

    @classmethod
    def of(cls, sizes: LongArray, weights: FloatArray, thresholds: Sequence[float] = ()) -> WeightTally:
        """Measure the classes of one part of a table.

        Parameters
        ----------
        sizes : ndarray of int64, shape (n_classes,)
            ``f`` of whole classes, at least 1, in sum at most 2^36.
        weights : ndarray of float64, shape (n_classes,)
            ``Σ w`` of each, not negative; +inf allowed. One number a class, summed by the caller in a way that does not
            depend on partitioning.
        thresholds : sequence of float
            Probabilities in [0, 1].

        Raises
        ------
        InputError
            If the shapes differ, a size is below 1, a weight is negative or NaN, or a threshold is not a probability.
        """
        _refuse_thresholds(thresholds)
        _refuse_shapes(sizes, weights)
        _refuse_below(sizes, 1, "Sizes of equivalence classes")
        refuse_weights(weights)
        risks = 1 / np.maximum(weights, sizes)
        below = weights < sizes
        return cls(
            thresholds=tuple(thresholds),
            estimates=Moments.of(weights, np.ones(len(sizes), dtype=np.int64)),
            risks=Moments.of(risks, sizes),
            above=tuple(int(sizes[risks > threshold].sum()) for threshold in thresholds),
            below_classes=int(np.count_nonzero(below)),
            below_records=int(sizes[below].sum()),
        )

    def plus(self, other: WeightTally) -> WeightTally:
        """Tally of both together; ``of`` no classes at the same thresholds is neutral, and so is ``WeightTally()``.

        Raises
        ------
        InputError
            If the thresholds differ.
        """
        if self == WeightTally() or other == WeightTally():
            return other if self == WeightTally() else self
        if self.thresholds != other.thresholds:
            raise InputError(
                f"Tallies must have the same thresholds. Got {list(self.thresholds)} and {list(other.thresholds)}."
            )
        return WeightTally(
            thresholds=self.thresholds,
            estimates=self.estimates.plus(other.estimates),
            risks=self.risks.plus(other.risks),
            above=tuple(a + b for a, b in zip(self.above, other.above, strict=True)),
            below_classes=self.below_classes + other.below_classes,
            below_records=self.below_records + other.below_records,
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form; the infinities of an empty tally are written as Python's ``json`` writes them."""
        return {
            "thresholds": list(self.thresholds),
            "estimates": list(astuple(self.estimates)),
            "risks": list(astuple(self.risks)),
            "above": list(self.above),
            "below_classes": self.below_classes,
            "below_records": self.below_records,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> WeightTally:
        """Read what :meth:`to_dict` gave."""
        return cls(
            thresholds=tuple(values["thresholds"]),
            estimates=Moments(*values["estimates"]),
            risks=Moments(*values["risks"]),
            above=tuple(values["above"]),
            below_classes=values["below_classes"],
            below_records=values["below_records"],
        )

    @property
    def population(self) -> float:
        """``Σ w`` over the table, correctly rounded."""
        return exact_total(self.estimates)

    @property
    def least_population(self) -> float | None:
        """``min F̂``, the estimated k-map; None without classes."""
        return self.estimates.least if self.estimates.n else None

    @property
    def journalist_max(self) -> float | None:
        """Greatest ``1 / max(F̂, f)``; None without classes."""
        return self.risks.most if self.risks.n else None

    @property
    def marketer(self) -> float:
        """Mean of ``1 / max(F̂, f)`` over records; 0 without records."""
        return self.risks.mean

    @property
    def shares_above(self) -> tuple[Above, ...]:
        """Records above each threshold."""
        return tuple(
            Above(threshold, records, records / self.risks.n if self.risks.n else 0.0)
            for threshold, records in zip(self.thresholds, self.above, strict=True)
        )


def exact_total(moments: Moments) -> float:
    """Sum of the values that were measured, correctly rounded; inf if one of them is, or if it is too large."""
    if moments.infinite:
        return math.inf
    try:
        return moments.total / 2**1074
    except OverflowError:
        return math.inf


def refuse_weights(weights: FloatArray) -> None:
    """Refuse estimated sizes that are NaN or negative."""
    if len(weights) and not (weights >= 0).all():
        raise InputError("Sums of sampling weights must not be negative or NaN.")


def _above(threshold: float, entries: Iterable[tuple[int, int]], records: int) -> Above:
    """Count the records of entries ``(size, records)`` with ``1/size`` above a threshold."""
    found = sum(n for size, n in entries if 1 / size > threshold)
    return Above(threshold, found, found / records if records else 0.0)


def _refuse_shapes(sizes: LongArray, others: npt.NDArray[Any]) -> None:
    if sizes.ndim != 1 or sizes.shape != others.shape:
        raise InputError(f"There must be one value per class. Got shapes {sizes.shape} and {others.shape}.")


def _refuse_below(values: LongArray, least: int, name: str) -> None:
    if len(values) and values.min() < least:
        raise InputError(f"{name} must be at least {least}. Got {values.min()}.")


def _refuse_thresholds(thresholds: Sequence[float]) -> None:
    for threshold in thresholds:
        if not 0 <= threshold <= 1:
            raise InputError(f"A threshold on risk must be a probability between 0 and 1. Got {threshold!r}.")
