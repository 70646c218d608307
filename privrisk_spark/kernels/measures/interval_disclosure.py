"""Interval disclosure of a numeric attribute: whether the masked value gives the original one away, up to an interval.

``V`` is the original attribute, ``V'`` the masked one, ``p`` a percentage (V. Torra, "Data Privacy: Foundations, New
Developments and the Big Data Challenge", Springer 2017; lecture notes "Privacy models and disclosure risk", Umeå 2020).

* Rank-based, ``rid``. ``R`` is ``V'`` sorted, ``i`` the position of ``V'(x)`` in it and ``w = p |X| / 200``. The
  interval is ``I(x) = [R[max(i - w, 0)], R[min(i + w, |X| - 1)]]``, and the record is disclosed iff ``V(x)`` lies in
  it. The lecture notes print ``min(i - w, 0)`` and ``max(i + w, |X| - 1)``, which leave the array: the clamps are
  swapped there.
* By standard deviation, ``sdid``: disclosed iff ``|V(x) - V'(x)| <= p · sd(V) / 100``.

Choices the source leaves open. Positions start at 0. Equal values share the middle one of their positions, which may be
a half. Positions between two ranks are rounded inwards, ``R[⌈i - w⌉]`` and ``R[⌊i + w⌋]``: these are the ranks within
``w`` of ``i``. The interval always holds ``V'(x)`` itself, as ``⌈i - w⌉`` is at most the last position of its ties and
``⌊i + w⌋`` at least the first. ``p`` is the decimal number it prints as, so that 0.6 percent of 1000 is 6. ``V`` is
the whole attribute of the file, not a sample of another one, so ``sd`` is that of a population (divided by n).

A record that lacks ``V`` or ``V'`` (NaN) is not compared: it is counted apart and never disclosed. ``R`` and ``|X|``
are of the records that have ``V'``, ``sd(V)`` of those that have ``V``.

All positions are integers and all sums exact, so that no partitioning and no order of the records changes a result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray
from privrisk_spark.kernels.numeric.exact_sums import UNIT_BITS, exact_total, weighted_square_total, weighted_total


@dataclass(frozen=True)
class IntervalTally:
    """Records compared, disclosed and not compared.

    Attributes
    ----------
    compared, disclosed, missing : int
        Rows, or sampling weights in millionths, of the records that have both values, of the disclosed ones among
        them, and of the records that lack one.
    """

    compared: int = 0
    disclosed: int = 0
    missing: int = 0

    @classmethod
    def of(
        cls, original: FloatArray, masked: FloatArray, disclosed: BoolArray, times: LongArray | None = None
    ) -> IntervalTally:
        """Tally records.

        Parameters
        ----------
        original, masked : ndarrays of float64, shape (n,)
            NaN where missing.
        disclosed : ndarray of bool, shape (n,)
        times : ndarray of int64, shape (n,), optional
            Rows or weights of each record, at least 0; 1 if not given.
        """
        weight = np.ones(len(disclosed), dtype=np.int64) if times is None else times
        known = both_known(original, masked)
        return cls(exact_total(weight[known]), exact_total(weight[known & disclosed]), exact_total(weight[~known]))

    @classmethod
    def empty(cls) -> IntervalTally:
        """Tally of no record."""
        return cls()

    def plus(self, other: IntervalTally) -> IntervalTally:
        """Tally of both together."""
        return IntervalTally(
            self.compared + other.compared, self.disclosed + other.disclosed, self.missing + other.missing
        )

    @property
    def share(self) -> float:
        """Disclosed among the compared, in [0, 1]; 0 if none is compared."""
        return float(Fraction(self.disclosed, self.compared)) if self.compared else 0.0


def both_known(original: FloatArray, masked: FloatArray) -> BoolArray:
    """Whether a record has both values."""
    result: BoolArray = ~(np.isnan(original) | np.isnan(masked))
    return result


# ----------------------------------------------------------------------------------------------------- ranks


@dataclass(frozen=True, eq=False)
class RankBlock:
    """Consecutive distinct values in ascending order, with where they stand among all.

    Attributes
    ----------
    values : ndarray of float64, shape (d,)
        Strictly ascending, no NaN. May be empty.
    rows : ndarray of int64, shape (d,)
        At least 1.
    first : ndarray of int64, shape (d,)
        First position of each value within the block.
    offset : int
        Rows of the blocks before.
    """

    values: FloatArray
    rows: LongArray
    first: LongArray
    offset: int

    @classmethod
    def of(cls, values: FloatArray, rows: LongArray, offset: int = 0) -> RankBlock:
        """Block of values that come after ``offset`` rows, checked.

        Raises
        ------
        InputError
            If the values do not ascend, one is NaN, or one has no row.
        """
        if values.shape != rows.shape or np.isnan(values).any() or not np.all(values[1:] > values[:-1]):
            raise InputError("Values to rank must ascend, each once, with one number of rows each and none missing.")
        if len(rows) and int(rows.min()) < 1:
            raise InputError("A value to rank must have at least one row.")
        return cls(values, rows, np.cumsum(rows) - rows, offset)


class Ranks:
    """Sorted values in consecutive blocks.

    Only what is looked up is read, and the ends of each block: blocks may lie in mapped files.

    Parameters
    ----------
    blocks : sequence of RankBlock
        In ascending order of their values, each with the rows of those before it as offset. Empty ones are dropped.

    Raises
    ------
    InputError
        If blocks overlap, or an offset is not the rows before.

    Attributes
    ----------
    n : int
        Rows of all.
    """

    def __init__(self, blocks: Sequence[RankBlock]) -> None:
        self.blocks = tuple(block for block in blocks if len(block.values))
        self._least = np.array([block.values[0] for block in self.blocks], dtype=np.float64)
        self._start = np.array([block.offset for block in self.blocks], dtype=np.int64)
        ends = [block.offset + int(block.first[-1] + block.rows[-1]) for block in self.blocks]
        most = [float(block.values[-1]) for block in self.blocks]
        self.n = ends[-1] if ends else 0
        if self._start.tolist() != [0, *ends][: len(ends)] or any(
            above >= least for above, least in zip(most, self._least.tolist()[1:], strict=False)
        ):
            raise InputError("Blocks of ranks must follow each other in values and in positions.")

    @classmethod
    def plain(cls, values: FloatArray, times: LongArray | None = None) -> Ranks:
        """One block of all values of an attribute, in any order; NaN are left out.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)
        times : ndarray of int64, shape (n,), optional
            Rows of each value, at least 1; 1 if not given.
        """
        rows = np.ones(len(values), dtype=np.int64) if times is None else times
        known = ~np.isnan(values)
        distinct, member = np.unique(values[known] + 0.0, return_inverse=True)  # -0.0 is 0.0
        total = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(total, member, rows[known])
        return cls([RankBlock.of(distinct, total)])

    def of_values(self, values: FloatArray) -> LongArray:
        """Doubled middle position of values, each of which is among the ranked ones.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)

        Returns
        -------
        ndarray of int64, shape (n,)

        Raises
        ------
        InputError
            If a value is not ranked.
        """
        result = np.empty(len(values), dtype=np.int64)
        block_of = np.searchsorted(self._least, values, side="right") - 1
        if len(values) and int(block_of.min()) < 0:
            raise InputError("Every masked value must be among the ranked ones, and some are not.")
        for number, here in _by_block(block_of):
            block = self.blocks[number]
            index = np.searchsorted(block.values, values[here])
            if np.any(index == len(block.values)) or np.any(block.values[index] != values[here]):
                raise InputError("Every masked value must be among the ranked ones, and some are not.")
            result[here] = 2 * (block.offset + block.first[index]) + block.rows[index] - 1
        return result

    def locate(self, positions: LongArray) -> tuple[LongArray, LongArray]:
        """Block of each position, and index of its value in the block.

        Parameters
        ----------
        positions : ndarray of int64, shape (n,)
            In ``0 … n - 1``.
        """
        block_of = np.searchsorted(self._start, positions, side="right") - 1
        index = np.empty(len(positions), dtype=np.int64)
        for number, here in _by_block(block_of):
            block = self.blocks[number]
            index[here] = np.searchsorted(block.first, positions[here] - block.offset, side="right") - 1
        return block_of, index

    def at(self, positions: LongArray) -> FloatArray:
        """Sorted value ``R[position]``; positions in ``0 … n - 1``."""
        block_of, index = self.locate(positions)
        result = np.empty(len(positions))
        for number, here in _by_block(block_of):
            result[here] = self.blocks[number].values[index[here]]
        return result


def _by_block(block_of: LongArray) -> list[tuple[int, LongArray]]:
    """Positions of the records of each block."""
    if not len(block_of):
        return []
    order = np.argsort(block_of, kind="stable")
    numbers, start = np.unique(block_of[order], return_index=True)
    return [(int(number), here) for number, here in zip(numbers, np.split(order, start[1:]), strict=True)]


# ----------------------------------------------------------------------------------------------- disclosure


def rid(original: FloatArray, masked: FloatArray, p: float, *, ranks: Ranks | None = None) -> BoolArray:
    """Rank-based interval disclosure of each record.

    Parameters
    ----------
    original, masked : ndarrays of float64, shape (n,)
        ``V`` and ``V'``; NaN where missing.
    p : float
        Percentage in [0, 100]: the interval takes in about that share of the ranks.
    ranks : Ranks, optional
        Of ``V'`` of the whole file, if these are not all records. Any blocks give the same result.

    Returns
    -------
    ndarray of bool, shape (n,)
        False for a record that lacks a value; see :func:`both_known`.

    Raises
    ------
    InputError
        If ``p`` is out of range, the shapes differ, or a masked value is not ranked.

    Notes
    -----
    With the doubled position ``d = 2 i`` and ``g = ⌊2 w⌋``, both whole, ``⌊i + w⌋ = ⌊(d + g)/2⌋`` and
    ``⌈i - w⌉ = ⌈(d - g)/2⌉``: rounding ``2 w`` down first changes neither, as ``d`` is whole.
    """
    _refuse_shapes(original, masked)
    ranks = Ranks.plain(masked) if ranks is None else ranks
    width = rank_width(p, ranks.n)
    known = np.flatnonzero(both_known(original, masked))
    doubled = ranks.of_values(masked[known] + 0.0)
    low = np.maximum((doubled - width + 1) // 2, 0)
    high = np.minimum((doubled + width) // 2, ranks.n - 1)
    value = original[known]
    result = np.zeros(len(original), dtype=np.bool_)
    result[known] = (ranks.at(low) <= value) & (value <= ranks.at(high))
    return result


def rank_width(p: float, n: int) -> int:
    """Width of the interval in ranks, ``⌊2 w⌋ = ⌊p n / 100⌋``.

    Parameters
    ----------
    p : float
        Percentage in [0, 100].
    n : int
        Ranks.

    Raises
    ------
    InputError
        If ``p`` is out of range.
    """
    if not 0 <= p <= 100:
        raise InputError(f"p must be a percentage between 0 and 100. Got {p:g}.")
    return math.floor(_decimal(p) * n / 100)


@dataclass(frozen=True)
class Deviation:
    """Exact first two moments of an attribute, a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    weight : int
        Rows, or sampling weights in millionths, of the records that have a value.
    total : int
        Sum of the values, in units of 2^-1074.
    squares : int
        Sum of their squares, in units of 2^-2148.
    """

    weight: int = 0
    total: int = 0
    squares: int = 0

    @classmethod
    def of(cls, values: FloatArray, times: LongArray | None = None) -> Deviation:
        """Moments of values; NaN are left out.

        Parameters
        ----------
        values : ndarray of float64, shape (n,)
            Not infinite.
        times : ndarray of int64, shape (n,), optional
            Rows or weights of each, at least 0; 1 if not given.

        Raises
        ------
        InputError
            If a value is infinite, which leaves no deviation, or a weight negative.
        """
        weight = np.ones(len(values), dtype=np.int64) if times is None else times
        known = ~np.isnan(values)
        value, weight = values[known], weight[known]
        return cls(exact_total(weight), weighted_total(value, weight), weighted_square_total(value, weight))

    @classmethod
    def empty(cls) -> Deviation:
        """Moments of no value."""
        return cls()

    def plus(self, other: Deviation) -> Deviation:
        """Moments of both together."""
        return Deviation(self.weight + other.weight, self.total + other.total, self.squares + other.squares)

    @property
    def variance(self) -> Fraction:
        """Variance of a population, exactly; 0 of nothing."""
        if not self.weight:
            return Fraction()
        return Fraction(self.squares * self.weight - self.total**2, self.weight**2 << (2 * UNIT_BITS))

    @property
    def mean(self) -> float | None:
        """Correctly rounded mean; None of nothing."""
        return float(Fraction(self.total, self.weight << UNIT_BITS)) if self.weight else None

    @property
    def sample_variance(self) -> float | None:
        """Correctly rounded variance over the weight less 1; None of fewer than two values."""
        return float(self.variance * self.weight / (self.weight - 1)) if self.weight > 1 else None

    def width(self, p: float) -> float:
        """Largest float64 that is at most ``p · sd / 100``.

        Parameters
        ----------
        p : float
            Percentage, finite and at least 0.

        Raises
        ------
        InputError
            If ``p`` is out of range.
        """
        if not (math.isfinite(p) and p >= 0):
            raise InputError(f"p must be a percentage of at least 0. Got {p:g}.")
        return _root_below((_decimal(p) / 100) ** 2 * self.variance)


def within(original: FloatArray, masked: FloatArray, width: float) -> BoolArray:
    """Compare each record's two values; True if they differ by at most a width."""
    _refuse_shapes(original, masked)
    known = both_known(original, masked)
    result = np.zeros(len(original), dtype=np.bool_)
    with np.errstate(over="ignore"):
        result[known] = np.abs(original[known] - masked[known]) <= width
    return result


def _decimal(p: float) -> Fraction:
    """The number as it prints."""
    return Fraction(repr(float(p)))


def _root_below(square: Fraction) -> float:
    """Largest finite float64 whose square is at most ``square``, which is not negative."""
    if square == 0:
        return 0.0
    # At least 64 bits of the root, so that cutting them to 53 rounds the root itself down.
    shift = max(0, 64 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    root = math.isqrt((square.numerator << (2 * shift)) // square.denominator)
    cut = max(root.bit_length() - 53, shift - UNIT_BITS, 0)
    whole, exponent = root >> cut, cut - shift
    if whole.bit_length() + exponent > 1024:
        return float(np.finfo(np.float64).max)
    return math.ldexp(whole, exponent)


def _refuse_shapes(original: FloatArray, masked: FloatArray) -> None:
    if original.ndim != 1 or original.shape != masked.shape:
        raise InputError(
            f"There must be one original and one masked value per record. Got shapes {original.shape} "
            f"and {masked.shape}."
        )
