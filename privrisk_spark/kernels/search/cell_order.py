"""The order of all cells of a table by exposure, and the k-th of them, without moving or sorting a cell.

LSFB06's rules Δ1 and Δ3 disclose the least exposed cells of the whole table or of an attribute
(:mod:`privrisk_spark.kernels.search.rules`), and a table is in many parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from privrisk_spark.errors import InputError
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LongArray, WordArray

DIGITS = 9
"""Digits of 16 bits of a cell's place in the order: four of its exposure, its attribute, four of its record."""

_ATTRIBUTE = 4
_RADIX = 2**16


@dataclass(frozen=True)
class CellOrder:
    """The least exposed cells of a table in many parts, found by counting, digit by digit.

    Cells are ordered by exposure, then attribute, then a fingerprint of the record: numbers of 144 bits. The k-th
    smallest is found from the most significant digit to the least: of the cells that share the digits found so far,
    count those of each next digit; the k-th lies where the sum over the digits reaches k. Counts of parts add up, so no
    cell is moved or sorted, and the result does not depend on how rows lie.

    Attributes
    ----------
    scope : {"table", "attribute"}
        One order over all cells, or one for each attribute.
    found : tuple of int
        Digits found so far of each order, as one number.
    left : tuple of int
        Cells still to be taken among those with these digits.
    last : tuple of int or None
        Place of the last cell to disclose, once it is known; -1 for none.
    step : int
        How many digits were found.
    """

    scope: Literal["table", "attribute"]
    found: tuple[int, ...]
    left: tuple[int, ...]
    last: tuple[int | None, ...]
    step: int = 0

    @classmethod
    def wanted(cls, scope: Literal["table", "attribute"], k: int, disclosed: int) -> CellOrder:
        """Begin with ``disclosed`` cells in all, or of each of ``k`` attributes."""
        orders = 1 if scope == "table" else k
        return cls(scope, (0,) * orders, (disclosed,) * orders, (None if disclosed else -1,) * orders)

    @property
    def done(self) -> bool:
        """Whether the last cell of every order is known."""
        return None not in self.last

    def tally(self, exposure: FloatArray, records: WordArray) -> tuple[LongArray, LongArray, LongArray]:
        """Count the next digit of the cells that share the digits found so far.

        Parameters
        ----------
        exposure : ndarray of float64, shape (n, k)
            Not negative; NaN where there is nothing to disclose.
        records : ndarray of uint64, shape (n,)
            A fingerprint of each record's id.

        Returns
        -------
        order, digit, cells : ndarrays of int64, shape (m,)
            Cells of each digit that occurs.
        """
        found: list[LongArray] = [np.zeros((3, 0), dtype=np.int64)]
        for j in range(exposure.shape[1]):
            order = 0 if self.scope == "table" else j
            if self.last[order] is not None:
                continue
            here = np.flatnonzero(~np.isnan(exposure[:, j]))
            words, of_record = _words(exposure[here, j]), records[here]
            alike = self._begin_alike(words, j, of_record, self.found[order])
            cells = np.bincount(self._digit(words[alike], j, of_record[alike]))
            digits = np.flatnonzero(cells)
            found.append(np.stack([np.full(len(digits), order), digits, cells[digits]]))
        order_of, digit, cells_of = np.concatenate(found, axis=1)
        return order_of, digit, cells_of

    def _begin_alike(self, words: WordArray, j: int, records: WordArray, found: int) -> BoolArray:
        """Cells of attribute ``j`` whose place begins with the digits found."""
        first = min(self.step, _ATTRIBUTE)
        rest = self.step - _ATTRIBUTE - 1
        alike = _begins(words, found // _RADIX ** (self.step - first), first)
        if rest >= 0:
            alike &= found // _RADIX**rest % _RADIX == j
            alike &= _begins(records, found % _RADIX**rest, rest)
        return alike

    def _digit(self, words: WordArray, j: int, records: WordArray) -> LongArray:
        if self.step == _ATTRIBUTE:
            return np.full(len(words), j, dtype=np.int64)
        word, place = (words, self.step) if self.step < _ATTRIBUTE else (records, self.step - _ATTRIBUTE - 1)
        return (word >> np.uint64(48 - 16 * place) & np.uint64(_RADIX - 1)).astype(np.int64)

    def next(self, order: LongArray, digit: LongArray, cells: LongArray) -> CellOrder:
        """Find one digit more, from the counts of all parts.

        Parameters
        ----------
        order, digit, cells : ndarrays of int64, shape (m,)
            As :meth:`tally` gives them, summed or one part after the other.

        Returns
        -------
        CellOrder
            Records with one fingerprint, should there be such, are not told apart: rather fewer cells are disclosed.

        Raises
        ------
        InputError
            If there are fewer cells than asked for; known with the first digit.
        """
        found, left, last = list(self.found), list(self.left), list(self.last)
        step = self.step + 1
        for o in range(len(found)):
            if last[o] is not None:
                continue
            tally = np.zeros(_RADIX, dtype=np.int64)
            np.add.at(tally, digit[order == o], cells[order == o])
            sums = np.cumsum(tally)
            if left[o] > sums[-1]:
                raise InputError(f"disclosed: there are {int(sums[-1])} cells to disclose. Got {left[o]}.")
            here = int(np.searchsorted(sums, left[o]))
            found[o] = found[o] * _RADIX + here
            left[o] -= int(sums[here] - tally[here])
            below = _RADIX ** (DIGITS - step)
            if left[o] == tally[here]:
                last[o] = (found[o] + 1) * below - 1
            elif step == DIGITS:
                last[o] = found[o] - 1
        if self.scope == "attribute" and step == _ATTRIBUTE:
            found = [digits * _RADIX + attribute for attribute, digits in enumerate(found)]
            step += 1
        return CellOrder(self.scope, tuple(found), tuple(left), tuple(last), step)

    def disclosed(self, exposure: FloatArray, records: WordArray) -> BoolArray:
        """Cells to disclose, once :attr:`done`; arguments are those of :meth:`tally`.

        Returns
        -------
        ndarray of bool, shape (n, k)
        """
        result = np.zeros(exposure.shape, dtype=np.bool_)
        for j in range(exposure.shape[1]):
            last = self.last[0 if self.scope == "table" else j]
            if last is None or last < 0:
                continue
            word, record = np.uint64(last >> 80), np.uint64(last % 2**64)
            attribute = last // 2**64 % _RADIX
            words = _words(exposure[:, j])
            tied = records <= record if j == attribute else np.full(len(words), j < attribute)
            result[:, j] = ~np.isnan(exposure[:, j]) & ((words < word) | ((words == word) & tied))
        return result


def _words(exposure: FloatArray) -> WordArray:
    """Numbers in the order of values that are not negative."""
    return np.ascontiguousarray(exposure + 0.0).view(np.uint64)


def _begins(words: WordArray, prefix: int, digits: int) -> BoolArray:
    """Which words begin with so many digits of a number."""
    if not digits:
        return np.ones(len(words), dtype=np.bool_)
    result: BoolArray = words >> np.uint64(64 - 16 * digits) == np.uint64(prefix)
    return result
