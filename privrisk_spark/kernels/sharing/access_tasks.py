"""The access-control problems of a whole network, with no entry collected (F12 §7.4; Everett 1963).

The relaxation takes entries in the order of ``b/a``, so all there is to find is the one entry at which the limit is
reached. Its place in the order, a number of 64 bits, is found eight bits at a time: every task adds up, for each of 256
parts of what is still possible, the amounts of its entries; the sums are exact, so they do not depend on the tasks.
Entries of the same ratio are then ordered by keys, such as hashes of (user, friend, attribute), in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from privrisk_spark.kernels.arrays import LevelArray, WordArray
from privrisk_spark.kernels.sharing.access import Entries

Problem = Literal["most-utility", "least-loss"]


def places(entries: Entries) -> WordArray:
    """uint64 (m,): the place of each entry by descending ``b/a``; equal for equal ratios.

    Entries that are never shown (``b = 0``) have the last place of all, 2^64 - 1.
    """
    raise NotImplementedError


@dataclass(frozen=True)
class Amounts:
    """Loss, utility and number of entries in 256 parts; a :mod:`~privrisk_spark.kernels.numeric.fold`.

    Attributes
    ----------
    search : Search
        What was asked.
    loss, utility : tuple of 256 int
        Exact sums over the entries of a part, all levels shown, in units of 2^-1074.
    entries : tuple of 256 int
    """

    search: Search
    loss: tuple[int, ...]
    utility: tuple[int, ...]
    entries: tuple[int, ...]

    @classmethod
    def of(cls, entries: Entries, keys: WordArray, *, search: Search) -> Amounts:
        """Amounts of a task's entries.

        Parameters
        ----------
        entries : Entries
        keys : ndarray of uint64, shape (m,)
            Distinct for entries of equal ratio.
        search : Search
        """
        raise NotImplementedError

    @classmethod
    def empty(cls, search: Search) -> Amounts:
        """Amounts of nothing."""
        raise NotImplementedError

    def plus(self, other: Amounts) -> Amounts:
        """Amounts of both together."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """JSON-safe form."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Amounts:
        """Inverse of :meth:`to_dict`."""
        raise NotImplementedError


@dataclass(frozen=True)
class Search:
    """Where the limit is reached: what is known so far.

    Attributes
    ----------
    problem : {"most-utility", "least-loss"}
    limit : float
        The most loss, or the least utility.
    place, key : int
        Bits known of the place of the entry asked for, and of its key.
    bits : int
        How many are known, of 128.
    loss, utility : int
        Exact sums over the entries before all that are still possible, in units of 2^-1074.
    done : bool
        ``place`` and ``key`` are those of the entry at which the limit is reached; or all entries are shown.
    """

    problem: Problem
    limit: float
    place: int = 0
    key: int = 0
    bits: int = 0
    loss: int = 0
    utility: int = 0
    done: bool = False

    def narrowed(self, amounts: Amounts) -> Search:
        """Know eight bits more.

        Parameters
        ----------
        amounts : Amounts
            Of all tasks.

        Raises
        ------
        InputError
            If the least utility cannot be reached.
        """
        raise NotImplementedError

    def levels(self, entries: Entries, keys: WordArray) -> LevelArray:
        """What is shown of a task's entries, once ``done``: int8 (m,).

        All before the entry found, nothing after it, and of it the levels that the limit allows or asks for.
        """
        raise NotImplementedError

    def bound(self, entries: Entries, keys: WordArray) -> float | None:
        """The relaxation's utility or loss, by the task that holds the entry found; None by the others."""
        raise NotImplementedError
