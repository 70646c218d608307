"""The access-control problems of a whole network, with no entry collected (F12 §7.4; Everett 1963).

The relaxation takes entries in the order of ``b/a``, so all there is to find is the one entry at which the limit is
reached: its ratio is the Lagrange multiplier. Its place in the order, a number of 64 bits, is found 16 bits at a time:
every task adds up the amounts of its entries in each part of what is still possible. Entries of the same ratio are then
ordered by keys, such as hashes of (user, friend, attribute), in the same way.

Amounts are integers in units of 2^-62 of the limit, so that their sums do not depend on the tasks; losses are rounded
up and utilities down, so that the limit is kept. Status: *proved* to be within one entry of the relaxation, but for a
relative 2^-50 of each amount and 2^-62 of the limit for each level.

A search is a loop, each turn of it one pass over the entries::

    search = Search("most-utility", 1000.0)
    while not search.done:
        search = search.narrowed(add(Amounts.of(entries, keys, search=search) for entries, keys in tasks))
    levels = [search.levels(entries, keys) for entries, keys in tasks]
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from privrisk_spark.errors import InputError, InternalError
from privrisk_spark.extensions.network.kernels.access import LAST, Entries, Problem, unreachable
from privrisk_spark.kernels.arrays import BoolArray, FloatArray, LevelArray, LongArray, WordArray

LIMIT = 1 << 62
"""The limit, in units."""

_TINY = 5e-324
_DIGIT = 16
_WORD = 64
_HALF = 31

Part = tuple[int, int, int, int, int, int]
"""Of the entries whose next bits are the same: these bits, amount, number, least and greatest place, least key."""


@dataclass(frozen=True)
class Search:
    """Where the limit is reached: what is known so far.

    Attributes
    ----------
    problem : {"most-utility", "least-loss"}
    limit : float
        The most loss, or the least utility; positive and finite.
    place, key : int
        Place of the entry asked for, and its key, as far as they are known: the upper bits.
    bits : int
        How many bits are known, of 64 of the place and then 64 of the key.
    before : int
        Amount, in units, of the entries before all that are still possible.
    done : bool
        All is known; or, with a ``place`` of 2^64 - 1, all entries are shown.
    """

    problem: Problem
    limit: float
    place: int = 0
    key: int = 0
    bits: int = 0
    before: int = 0
    done: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.limit < np.inf:
            raise InputError(f"sharing.limit: must be positive and finite, not {self.limit:g}.")

    def narrowed(self, amounts: Amounts) -> Search:
        """Know sixteen bits more, or as many as tell the entries apart.

        Parameters
        ----------
        amounts : Amounts
            Of all tasks.

        Raises
        ------
        InputError
            If the least utility cannot be reached, or is all there is but for a relative 2^-50.
        """
        if amounts.search != self:
            raise InternalError("the amounts are of another search")
        before = self.before
        for digit, amount, entries, least, greatest, key in amounts.parts:
            reached = before + amount > LIMIT if self.problem == "most-utility" else before + amount >= LIMIT
            if reached:
                if entries == 1:
                    return replace(self, place=least, key=key, bits=2 * _WORD, before=before, done=True)
                if self.bits < _WORD and least == greatest:
                    return replace(self, place=least, bits=_WORD, before=before)
                bits = self.bits + _DIGIT
                if bits <= _WORD:
                    return replace(self, place=self.place | digit << (_WORD - bits), bits=bits, before=before)
                known = self.key | digit << (2 * _WORD - bits)
                return replace(self, key=known, bits=bits, before=before, done=bits == 2 * _WORD)
            before += amount
        if self.bits:
            raise InternalError("the amounts are not those of the pass before")
        if self.problem == "least-loss":
            raise unreachable(self.limit)
        return replace(self, place=int(LAST), bits=2 * _WORD, before=before, done=True)

    def possible(self, places: WordArray, keys: WordArray) -> BoolArray:
        """Which entries may still be the one asked for."""
        here: BoolArray = places != LAST
        if self.bits:
            shift = np.uint64(max(_WORD - self.bits, 0))
            here &= places >> shift == np.uint64(self.place) >> shift
        if self.bits > _WORD:
            shift = np.uint64(2 * _WORD - self.bits)
            here &= keys >> shift == np.uint64(self.key) >> shift
        return here

    def levels(self, entries: Entries, keys: WordArray) -> LevelArray:
        """What is shown of a task's entries, once ``done``: int8 (m,).

        All before the entry found, nothing after it, and of it the levels that the limit allows or asks for.
        """
        if not self.done:
            raise InternalError("the search has not ended")
        places = entries.places()
        place, key = np.uint64(self.place), np.uint64(self.key)
        shown = (places < place) | ((places == place) & (keys < key))
        levels = np.where(shown, entries.tops, 0).astype(np.int8)
        here = self._here(places, keys)
        units = self.units(entries.part(here))
        levels[here] = [self._whole(int(unit), int(top)) for unit, top in zip(units, entries.tops[here], strict=True)]
        return levels

    def relaxed(self, entries: Entries, keys: WordArray) -> FloatArray:
        """How many levels of the entry found the relaxation shows, where ``levels`` has a whole number.

        Returns
        -------
        ndarray of float64, shape (m,)
            0 for all other entries. With it in place of that entry's level the sums are the relaxation's, but for what
            the module's docstring says: the bound.
        """
        here = self._here(entries.places(), keys)
        found = np.zeros(len(entries.tops))
        values = (entries.loss if self.problem == "most-utility" else entries.utility)[here]
        left = self.limit * ((LIMIT - self.before) / LIMIT)
        found[here] = np.where(values * entries.tops[here] > left, left / np.maximum(values, _TINY), entries.tops[here])
        return found

    def gap(self, entries: Entries, keys: WordArray) -> float:
        """Return what the relaxation of the entry found is better by; 0 if the task does not have it."""
        part, levels = self.relaxed(entries, keys), self.levels(entries, keys)
        values = entries.utility if self.problem == "most-utility" else entries.loss
        return float(np.where(part > 0, np.abs(part - levels) * values, 0.0).sum())

    def units(self, entries: Entries) -> LongArray:
        """int64 (m,): amount of one level in units, at most ``2^62 + 1``."""
        up = self.problem == "most-utility"
        values = entries.loss if up else entries.utility
        # The quotient is rounded by half a unit in the last place, the product by a power of two not at all.
        with np.errstate(over="ignore"):
            scaled = np.nextafter(values / self.limit, np.inf if up else 0.0) * float(LIMIT)
        scaled = np.where(values == 0, 0.0, scaled)
        found = np.ceil(scaled) if up else np.floor(scaled)
        return np.where(found > LIMIT, LIMIT + 1, np.minimum(found, float(LIMIT)).astype(np.int64))

    def _here(self, places: WordArray, keys: WordArray) -> LongArray:
        return np.flatnonzero((places == np.uint64(self.place)) & (keys == np.uint64(self.key)) & (places != LAST))

    def _whole(self, unit: int, top: int) -> int:
        left = LIMIT - self.before
        if self.problem == "most-utility":
            return min(left // unit, top) if unit else top
        return min(-(-left // unit), top) if unit else top


@dataclass(frozen=True)
class Amounts:
    """What the entries that are still possible amount to; a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    search : Search
        What was asked.
    parts : tuple of Part
        For each value of the next sixteen bits that occurs, ascending.
    """

    search: Search
    parts: tuple[Part, ...]

    @classmethod
    def of(cls, entries: Entries, keys: WordArray, *, search: Search) -> Amounts:
        """Amounts of a task's entries.

        Parameters
        ----------
        keys : ndarray of uint64, shape (m,)
            Distinct for entries of equal ratio.
        """
        places = entries.places()
        rows = np.flatnonzero(search.possible(places, keys))
        places, keys = places[rows], keys[rows]
        units, tops = search.units(entries.part(rows)), entries.tops[rows].astype(np.int64)
        shift = np.uint64((_WORD - _DIGIT - search.bits) % _WORD)
        digits = (places if search.bits < _WORD else keys) >> shift & np.uint64(2**_DIGIT - 1)
        found, at = np.unique(digits, return_inverse=True)
        high, low, number = (np.zeros(len(found), dtype=np.int64) for _ in range(3))
        np.add.at(high, at, (units >> _HALF) * tops)
        np.add.at(low, at, (units & ((1 << _HALF) - 1)) * tops)
        np.add.at(number, at, 1)
        least, key = np.full(len(found), LAST), np.full(len(found), LAST)
        greatest = np.zeros(len(found), dtype=np.uint64)
        np.minimum.at(least, at, places)
        np.maximum.at(greatest, at, places)
        np.minimum.at(key, at, keys)
        amount = [(h << _HALF) + part for h, part in zip(high.tolist(), low.tolist(), strict=True)]
        columns = (found.tolist(), amount, number.tolist(), least.tolist(), greatest.tolist(), key.tolist())
        return cls(search, tuple(zip(*columns, strict=True)))

    @classmethod
    def empty(cls, search: Search) -> Amounts:
        """Amounts of nothing."""
        return cls(search, ())

    def plus(self, other: Amounts) -> Amounts:
        """Amounts of both together."""
        if self.search != other.search:
            raise InternalError("the amounts are of different searches")
        parts = {part[0]: part for part in self.parts}
        for digit, amount, entries, least, greatest, key in other.parts:
            _, *mine = parts.get(digit, (digit, 0, 0, int(LAST), 0, int(LAST)))
            parts[digit] = (
                digit, mine[0] + amount, mine[1] + entries, min(mine[2], least), max(mine[3], greatest),
                min(mine[4], key),
            )  # fmt: skip
        return Amounts(self.search, tuple(parts[digit] for digit in sorted(parts)))
