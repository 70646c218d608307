"""Special uniques: records that are alone in the table already on a few of their attributes, and their SUDA scores.

A record is *unique on* a set of attributes if no other record has its values there. The set is a *minimal sample
unique* (MSU) of the record if the record is unique on no proper subset of it. A record that is unique on few
attributes, or on many sets of them, is unlike others for a reason, and more likely to be unique in the population, than
one that is unique only on all of them (Elliot, Manning and Ford, "A computational algorithm for handling the special
uniques problem", IJUFKS 10(5), 2002; Manning, Haglin and Keane, "A recursive search algorithm for statistical
disclosure assessment", DMKD 16, 2008).

*Score.* With ``k`` attributes and MSUs of up to ``M`` of them, an MSU of ``s`` attributes is worth

    w(s) = Π_(i=s)^(min(M, k-1)) (k - i),        which is (k - s)! for M = k or M = k - 1,

and a record has the sum over its MSUs (Elliot, Manning, Mayes, Gurd and Bane, "SUDA: a program for detecting special
uniques", UNECE 2005; sdcMicro's ``suda2`` takes M = k). ``(k - s)!`` is the number of ways to go on from the MSU to all
attributes, one at a time.

*DIS* is the probability that a unique match of a record of the table to a member of the population is correct. From
the table and the sampling fraction ``p`` it is estimated as ``n_1 p / (n_1 p + 2 n_2 (1 - p))``, with ``n_1`` sample
uniques and ``n_2`` classes of two (Skinner and Elliot, "A measure of disclosure risk for microdata", JRSS B 64(4),
2002). *DIS-SUDA* spreads it over the records by their scores; see :meth:`ScoreTally.disclosure`.

Method. Sets of attributes are gone through by size. A distinct record that agrees with no other on a proper subset of
``S`` agrees with none on ``S``: it is neither a candidate nor in the way of one, and is left out when the records are
grouped by ``S``. Which these are follows from the sets of one attribute less, of which one bit per record is kept. The
others are grouped, by counting where the values are few and by sorting where they are many. A distinct record that
occurs several times is never unique.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, ByteArray, FloatArray, IntArray, LongArray
from privrisk_spark.kernels.numeric.distinct import distinct_rows
from privrisk_spark.kernels.numeric.fold import refuse_other
from privrisk_spark.kernels.numeric.moments import Moments

_WORD = 63
"""Bits of a sort key with its payload."""

_DENSE = 4
"""Keys below this times the records are counted in an array, others sorted."""

SCORE_BINS = tuple(2**i for i in range(63))
"""Least score of each bin of :attr:`ScoreTally.by_score` but the first, which is of records without score."""


def weights_of_sizes(attributes: int, most: int) -> tuple[int, ...]:
    """``w(s)`` of an MSU of ``s = 1 … M`` attributes.

    Parameters
    ----------
    attributes : int
        ``k``, at least 1.
    most : int
        ``M``, in ``1 … k``.

    Returns
    -------
    tuple of M int
        Non-increasing, at least 1.

    Raises
    ------
    InputError
        If ``M`` is out of range, or a score could pass 2^63.
    """
    if not 1 <= most <= attributes:
        raise InputError(f"The most attributes of a minimal sample unique must be 1 to {attributes}. Got {most}.")
    last = min(most, attributes - 1)
    weights = tuple(math.prod(attributes - i for i in range(size, last + 1)) for size in range(1, most + 1))
    # Every set of at most M attributes could be an MSU, and counts once for each of its attributes.
    if sum(math.comb(attributes, s) * w * s for s, w in enumerate(weights, start=1)) >= 2**63:
        raise InputError(
            f"Scores of minimal sample uniques of up to {most} of {attributes} attributes pass 2^63. "
            "Take fewer attributes, or a lower maximum."
        )
    return weights


@dataclass(frozen=True, eq=False)
class SpecialUniques:
    """Minimal sample uniques of the distinct records of a table.

    Make one with :meth:`of`. Arrays are by distinct record, in the order they were given.

    Attributes
    ----------
    counts : ndarray of int64, shape (m,)
        Records of each.
    numbers : ndarray of int32, shape (m, M)
        MSUs of 1 … M attributes. All 0 for what occurs twice.
    contributions : ndarray of int64, shape (m, k)
        Sum of ``w(s)`` over the MSUs that hold the attribute.
    """

    counts: LongArray
    numbers: IntArray
    contributions: LongArray

    @classmethod
    def of(cls, codes: IntArray, counts: LongArray, most: int) -> SpecialUniques:
        """Find all minimal sample uniques of up to ``most`` attributes.

        Parameters
        ----------
        codes : ndarray of int32, shape (m, k)
            Codes of the distinct records of the *whole* table, at least 0: uniqueness cannot be seen in a part. A code
            is what it is: one for missing values makes these equal to each other and to nothing else.
        counts : ndarray of int64, shape (m,)
            Records of each, at least 1.
        most : int
            ``M``, in ``1 … k``.

        Raises
        ------
        InputError
            If the shapes do not fit, a code is negative, a count is below 1, ``M`` is out of range, or a score could
            pass 2^63.

        Notes
        -----
        ``C(k, 1) + … + C(k, M)`` groupings of the records that are not unique on less. Memory: one bit per record and
        set of ``M - 1`` attributes, and as much again. The order of the records does not matter.
        """
        if codes.ndim != 2 or counts.shape != (len(codes),):
            raise InputError(
                "There must be one row of codes and one count per distinct record. "
                f"Got shapes {codes.shape} and {counts.shape}."
            )
        m, k = codes.shape
        weights = weights_of_sizes(k, most)
        if m and codes.min() < 0:
            raise InputError(f"Codes must be at least 0. Got {codes.min()}.")
        if m and counts.min() < 1:
            raise InputError(f"Counts of distinct records must be at least 1. Got {counts.min()}.")
        columns, radices = _dense_columns(codes)
        once = counts == 1
        numbers = np.zeros((m, most), dtype=np.int32)
        contributions = np.zeros((m, k), dtype=np.int64)
        # Records that agree with no other on each set of one attribute less, a bit each.
        below: dict[tuple[int, ...], ByteArray] = {(): np.packbits(np.zeros(m, dtype=np.bool_))}
        for size, weight in enumerate(weights, start=1):
            here: dict[tuple[int, ...], ByteArray] = {}
            for attributes in combinations(range(k), size):
                known = np.bitwise_or.reduce([below[attributes[:i] + attributes[i + 1 :]] for i in range(size)])
                open_ = np.flatnonzero(~np.unpackbits(known, count=m).view(np.bool_))
                alone = _alone([columns[i] for i in attributes], [radices[i] for i in attributes], open_)
                found = alone[once[alone]]
                numbers[found, size - 1] += 1
                for i in attributes:
                    contributions[found, i] += weight
                if size < most:
                    new = np.zeros(m, dtype=np.bool_)
                    new[alone] = True
                    here[attributes] = known | np.packbits(new)
            below = here
        return cls(counts, numbers, contributions)

    @property
    def scores(self) -> LongArray:
        """SUDA score, ndarray of int64, shape (m,): 0 for records without MSU of up to M attributes."""
        _, k = self.contributions.shape
        weights = np.array(weights_of_sizes(k, self.numbers.shape[1]), dtype=np.int64)
        total: LongArray = self.numbers @ weights
        return total


def _dense_columns(codes: IntArray) -> tuple[list[LongArray], list[int]]:
    """Codes of each attribute numbered from 0 without gaps, and how many there are."""
    columns, radices = [], []
    for i in range(codes.shape[1]):
        first, column = distinct_rows([codes[:, i]])
        columns.append(column)
        radices.append(max(len(first), 1))
    return columns, radices


def _alone(columns: Sequence[LongArray], radices: Sequence[int], rows: LongArray) -> LongArray:
    """Those of the rows that agree with none of the others on all columns."""
    if not len(rows):
        return rows
    row_bits = max(len(rows) - 1, 1).bit_length()
    key = columns[0][rows]
    cells = radices[0]
    for column, radix in zip(columns[1:], radices[1:], strict=True):
        if (cells * radix - 1).bit_length() + row_bits > _WORD:
            # There are at most as many different prefixes as rows.
            different, key = np.unique(key, return_inverse=True)
            cells = len(different)
        key = key * radix + column[rows]
        cells *= radix
    if cells <= _DENSE * len(rows):
        single: BoolArray = np.bincount(key, minlength=cells) == 1
        return rows[single[key]]
    packed = np.sort((key << row_bits) | np.arange(len(rows)))
    new = np.ones(len(rows) + 1, dtype=np.bool_)
    np.not_equal(packed[1:] >> row_bits, packed[:-1] >> row_bits, out=new[1:-1])
    place: LongArray = packed[new[1:] & new[:-1]] & ((1 << row_bits) - 1)
    return rows[place]


@dataclass(frozen=True)
class ScoreTally:
    """What is reported of special uniques; the empty tally is the neutral element of :meth:`plus`.

    Attributes
    ----------
    attributes : int
        ``k``; the same in every part.
    records : int
        Of the table.
    uniques, pairs : int
        Distinct records that occur once, ``n_1``, and twice, ``n_2``.
    special : int
        Records with an MSU.
    by_size : tuple of int
        MSUs of 1 … M attributes.
    by_score : tuple of int
        Records without score, and by score in the bins that begin at :data:`SCORE_BINS`.
    total : int
        Sum of the scores.
    most : int
        Greatest score.
    contributions : tuple of k int
        Sum over records of what the MSUs with the attribute are worth. Over ``total``, the attribute's share in the
        scores; these shares add up to more than 1, as an MSU counts for each of its attributes.
    inverse : Moments
        ``score^-Q`` of the records with one, ``Q = 1 + (8 - k) / 20``.
    """

    attributes: int
    records: int
    uniques: int
    pairs: int
    special: int
    by_size: tuple[int, ...]
    by_score: tuple[int, ...]
    total: int
    most: int
    contributions: tuple[int, ...]
    inverse: Moments

    @classmethod
    def of(cls, found: SpecialUniques) -> ScoreTally:
        """Tally records, all of a table or a part: the search needs the whole table, adding up does not."""
        scores = found.scores
        k = found.contributions.shape[1]
        with_score = scores[scores > 0]
        bins = np.searchsorted(np.array(SCORE_BINS, dtype=np.int64), scores, side="right")
        by_score = np.zeros(len(SCORE_BINS) + 1, dtype=np.int64)
        np.add.at(by_score, bins, found.counts)
        return cls(
            attributes=k,
            records=int(found.counts.sum()),
            uniques=int(np.count_nonzero(found.counts == 1)),
            pairs=int(np.count_nonzero(found.counts == 2)),
            special=len(with_score),
            by_size=tuple(found.numbers.sum(axis=0, dtype=np.int64).tolist()),
            by_score=tuple(by_score.tolist()),
            total=_exact(scores),
            most=int(scores.max(initial=0)),
            contributions=tuple(_exact(found.contributions[:, i]) for i in range(k)),
            inverse=Moments.of(_inverse_powers(with_score, k), np.ones(len(with_score), dtype=np.int64)),
        )

    @classmethod
    def empty(cls, attributes: int, most: int) -> ScoreTally:
        """Tally of no record.

        Parameters
        ----------
        attributes : int
            ``k``.
        most : int
            Greatest size of the MSUs looked for.
        """
        return cls(
            attributes=attributes,
            records=0,
            uniques=0,
            pairs=0,
            special=0,
            by_size=(0,) * most,
            by_score=(0,) * (len(SCORE_BINS) + 1),
            total=0,
            most=0,
            contributions=(0,) * attributes,
            inverse=Moments.empty(),
        )

    @property
    def question(self) -> tuple[int, int]:
        """What a tally this one can be added to shares: attributes, and the greatest size of MSUs."""
        return self.attributes, len(self.by_size)

    def plus(self, other: ScoreTally) -> ScoreTally:
        """Tally of both together.

        Raises
        ------
        InternalError
            If the parts have different numbers of attributes, or looked for MSUs of different sizes.
        """
        refuse_other(self.question, other.question, "Tallies of so many attributes and sizes of minimal sample uniques")
        return ScoreTally(
            attributes=self.attributes,
            records=self.records + other.records,
            uniques=self.uniques + other.uniques,
            pairs=self.pairs + other.pairs,
            special=self.special + other.special,
            by_size=_added(self.by_size, other.by_size),
            by_score=_added(self.by_score, other.by_score),
            total=self.total + other.total,
            most=max(self.most, other.most),
            contributions=_added(self.contributions, other.contributions),
            inverse=self.inverse.plus(other.inverse),
        )

    @property
    def shares(self) -> tuple[float, ...]:
        """Contribution of each attribute over the sum of the scores; 0 without scores."""
        return tuple(part / self.total if self.total else 0.0 for part in self.contributions)

    def match_probability(self, fraction: float) -> float | None:
        """DIS of the table, ``n_1 p / (n_1 p + 2 n_2 (1 - p))``: that a unique match is correct.

        Parameters
        ----------
        fraction : float
            Sampling fraction ``p`` in (0, 1].

        Returns
        -------
        float or None
            Probability; None without sample uniques, where there is no match to speak of. 1 without pairs, which is
            an estimate from no evidence when there are few records.

        Raises
        ------
        InputError
            If the fraction is out of range.
        """
        if not 0 < fraction <= 1:
            raise InputError(f"A sampling fraction must be above 0 and at most 1. Got {fraction!r}.")
        if not self.uniques:
            return None
        matched = self.uniques * fraction
        return matched / (matched + 2 * self.pairs * (1 - fraction))

    def disclosure(self, scores: LongArray, fraction: float) -> FloatArray:
        """DIS-SUDA of records: the DIS of the table spread by score.

            1 / (1 + n_1 (1/DIS - 1) / (score^Q A)),    A = Σ_records score^-Q,    Q = 1 + (8 - k) / 20,

        the scaling of SUDA as sdcMicro has it, which fits ``Q`` to the number of attributes. With equal scores every
        record gets DIS. It is an ordering with plausible values, not a probability with a proof.

        Parameters
        ----------
        scores : ndarray of int64, shape (m,)
            Of any records of the table that was tallied.
        fraction : float
            Sampling fraction ``p`` in (0, 1].

        Returns
        -------
        ndarray of float64, shape (m,)
            In [0, 1]; 0 for records without score.

        Raises
        ------
        InputError
            If the fraction is out of range.
        """
        match = self.match_probability(fraction)
        if match is None or not self.special:
            return np.zeros(len(scores))
        total = self.inverse.sum
        against = self.uniques * (1 / match - 1)
        return np.where(scores > 0, 1 / (1 + against * _inverse_powers(scores, self.attributes) / total), 0.0)


_COUNTS = ("attributes", "records", "uniques", "pairs", "special", "total", "most")


def _inverse_powers(scores: LongArray, attributes: int) -> FloatArray:
    """``score^-Q``, 1 for no score; one call per different score, so that no value depends on its neighbours."""
    exponent = -(1 + (8 - attributes) / 20)
    first, place = distinct_rows([scores])
    powers = np.array([float(max(score, 1)) ** exponent for score in scores[first].tolist()], dtype=np.float64)
    return powers[place]


def _exact(values: LongArray) -> int:
    """Sum of non-negative values as a Python integer, which cannot overflow."""
    return (int((values >> 32).sum()) << 32) + int((values & (2**32 - 1)).sum())


def _added(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(first, second, strict=True))
