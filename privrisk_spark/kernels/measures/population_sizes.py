"""Identity disclosure in a known population: k-map, journalist's and marketer's risk, uniques that are unique there.

Names and sources are those of :mod:`privrisk_spark.kernels.measures.identity`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privrisk_spark.kernels.arrays import LongArray
from privrisk_spark.kernels.measures.identity import SizeHistogram
from privrisk_spark.kernels.measures.thresholds import Above, refuse_below, refuse_shapes, refuse_thresholds
from privrisk_spark.kernels.numeric.distinct import distinct_rows


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


@dataclass(frozen=True)
class PopulationHistogram:
    """How many classes have each pair ``(f, F)``, a :mod:`~privrisk_spark.kernels.numeric.fold`.

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
        refuse_shapes(sizes, population)
        refuse_below(sizes, 1, "Sizes of equivalence classes")
        refuse_below(population, 0, "Sizes of classes in the population")
        first, member = distinct_rows([sizes, population])
        numbers = np.bincount(member, minlength=len(first))
        return cls(tuple(zip(sizes[first].tolist(), population[first].tolist(), strict=True)), tuple(numbers.tolist()))

    @classmethod
    def empty(cls) -> PopulationHistogram:
        """Histogram of no class."""
        return cls()

    def plus(self, other: PopulationHistogram) -> PopulationHistogram:
        """Histogram of both together."""
        counts = Counter(dict(zip(self.pairs, self.numbers, strict=True)))
        counts.update(dict(zip(other.pairs, other.numbers, strict=True)))
        pairs = sorted(counts)
        return PopulationHistogram(tuple(pairs), tuple(counts[pair] for pair in pairs))

    @property
    def sizes(self) -> SizeHistogram:
        """Histogram of ``f`` alone."""
        counts: Counter[int] = Counter()
        for (f, _), number in zip(self.pairs, self.numbers, strict=True):
            counts[f] += number
        return SizeHistogram.of_counts(counts)

    @property
    def candidates(self) -> tuple[LongArray, LongArray]:
        """Different ``F``, ascending, and the records of the data with each."""
        counts: Counter[int] = Counter()
        for (f, big), number in zip(self.pairs, self.numbers, strict=True):
            counts[big] += f * number
        sizes = sorted(counts)
        return np.array(sizes, dtype=np.int64), np.array([counts[size] for size in sizes], dtype=np.int64)

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
        refuse_thresholds(thresholds)
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
            above=tuple(Above.of_sizes(t, by_population, covered_records) for t in thresholds),
        )

    @property
    def presence(self) -> tuple[float, float] | None:
        """Least and greatest ``f / F`` over the classes the population covers; None if it covers none.

        Of the people who share the values of a class, so many are in the data: ``delta_min`` and ``delta_max`` of
        delta-presence (Nergiz, Atzori and Clifton, SIGMOD 2007) over the combinations that occur. Of the others the
        share is 0. At most 1: a class of more records than people contradicts the population, and is counted as
        such.
        """
        shares = [min(f / big, 1.0) for f, big in self.pairs if big]
        return (min(shares), max(shares)) if shares else None

    def _uniques(self, population: int | None = None) -> int:
        """Sample uniques, or those whose class has ``population`` members in the population."""
        return sum(
            number
            for (f, big), number in zip(self.pairs, self.numbers, strict=True)
            if f == 1 and population in (None, big)
        )
