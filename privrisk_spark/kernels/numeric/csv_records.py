"""Records of CSV files (RFC 4180) in bytes: their first and last bytes, and how many values each has.

A line feed, a carriage return, or both end a line. Two quotes within quotes stand for one. A quote inside a value that
does not begin with a quote is a character of the value, but such records are not regular.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, ByteArray, LongArray

__all__ = ["Records", "find_first_line_end", "find_last_line_end", "find_records"]

_FEED: Final = ord(b"\n")
_RETURN: Final = ord(b"\r")


@dataclass(frozen=True, eq=False)
class Records:
    """Where records are in a block of bytes, ascending. Blank lines and comments are no records.

    Attributes
    ----------
    starts : ndarray of int64, shape (records,)
        Place of the first byte.
    ends : ndarray of int64, shape (records,)
        Place behind the last byte, before the end of the line.
    values : ndarray of int64, shape (records,)
        How many values a regular record has.
    regular : ndarray of bool, shape (records,)
        Whether quotes only surround whole values, and every parser of RFC 4180 finds the same values.
    alone : bool
        Whether the block holds nothing but records and empty lines.
    end : int
        Place behind the last record that is complete, with the end of its line.
    """

    starts: LongArray
    ends: LongArray
    values: LongArray
    regular: BoolArray
    alone: bool
    end: int


def find_records(
    data: bytes,
    separator: int,
    quote: int | None,
    *,
    escape: int | None = None,
    comment: int | None = None,
    multi_line: bool = False,
) -> Records:
    """Find the records of a block that begins with one.

    Parameters
    ----------
    data : bytes
        In an encoding that writes ASCII as ASCII. The last line may lack its end.
    separator : int
        Byte between two values.
    quote : int, optional
        Byte around a value.
    escape : int, optional
        Byte before a quote within quotes, if quotes are not doubled. Records with quotes and this byte are not regular.
    comment : int, optional
        Byte that a comment begins with.
    multi_line : bool
        Whether a line that ends within quotes goes on in the next one.
    """
    array = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(array == quote) if quote is not None and quote in data else np.array([], dtype=np.int64)
    places = np.flatnonzero(array == _FEED)
    if _RETURN in data:
        places = np.flatnonzero((array == _FEED) | (array == _RETURN))
    if multi_line and len(quotes):
        places = places[~_find_quoted(array, quotes, places, separator)]
    # The line feed behind a carriage return belongs to the same end.
    second = (array[places] == _FEED) & (places > 0) & (array[places - 1] == _RETURN)
    ends, behind = places[~second], places[np.append(~second[1:], True)] + 1 if len(places) else places
    complete = int(behind[-1]) if len(behind) else 0
    starts = np.concatenate([[0], behind])[: len(ends) + (complete < len(array))]
    ends = ends if complete == len(array) else np.append(ends, len(array))
    said = _find_said(array, starts, ends, separator, comment)
    alone = bool((said | (starts == ends)).all())
    starts, ends = starts[said], ends[said]
    separators = np.flatnonzero(array == separator)
    regular = np.ones(len(starts), dtype=np.bool_)
    if len(quotes):
        first = np.searchsorted(quotes, starts)
        regular = _find_regular(array, quotes, first, starts, ends, separator, doubled=escape is None)
        if escape is not None and escape in data:
            marks = np.flatnonzero(array == escape)
            quoted = np.searchsorted(quotes, ends) > first
            regular &= ~(quoted & (np.searchsorted(marks, ends) > np.searchsorted(marks, starts)))
        record = np.minimum(np.searchsorted(ends, separators), max(len(ends) - 1, 0))
        inside = (np.searchsorted(quotes, separators) - first[record]) % 2 == 1 if len(first) else separators < 0
        separators = separators[~inside]
    values = np.searchsorted(separators, ends) - np.searchsorted(separators, starts) + 1
    return Records(starts, ends, values, regular, alone, complete)


def _find_quoted(array: ByteArray, quotes: LongArray, places: LongArray, separator: int) -> BoolArray:
    """Find the places within quoted values, which only a quote at the beginning of a value opens.

    Two adjacent quotes change nothing. An odd number opens or closes a quoted value if a value may begin there, and
    only closes it elsewhere, because such quotes are part of a value without quotes.
    """
    begins = np.flatnonzero(np.diff(quotes, prepend=-2) > 1)
    odd = quotes[begins[np.diff(begins, append=len(quotes)) % 2 == 1]]
    before = array[odd - 1]
    toggles = (odd == 0) | (before == separator) | (before == _FEED) | (before == _RETURN)
    count = np.cumsum(toggles)
    inside = (count - np.maximum.accumulate(np.where(toggles, 0, count))) % 2 == 1
    found: BoolArray = np.append(False, inside)[np.searchsorted(odd, places)]
    return found


def _find_said(array: ByteArray, starts: LongArray, ends: LongArray, separator: int, comment: int | None) -> BoolArray:
    """Find the lines that are neither blank nor comments; every byte up to that of a space is a blank.

    A line of separators only is a record without values, also if a separator is a tab.
    """
    said: BoolArray = ends > starts
    said[said] = array[starts[said]] > ord(b" ")
    doubtful = np.flatnonzero(~said & (ends > starts))
    if len(doubtful):
        seen = np.concatenate([[0], np.cumsum((array > ord(b" ")) | (array == separator))])
        said[doubtful] = seen[ends[doubtful]] > seen[starts[doubtful]]
    if comment is not None:
        said[said] = array[starts[said]] != comment
    return said


def _find_regular(
    array: ByteArray,
    quotes: LongArray,
    first: LongArray,
    starts: LongArray,
    ends: LongArray,
    separator: int,
    *,
    doubled: bool,
) -> BoolArray:
    """Find the records whose quotes begin and end whole values, or are doubled; ``first``: the first quote of each."""
    record = np.searchsorted(ends, quotes)
    held = record < len(ends)
    held[held] = quotes[held] >= starts[record[held]]  # others are in comments
    quotes, record, order = quotes[held], record[held], np.flatnonzero(held)
    closing = (order - first[record]) % 2 == 1
    before, after = array[quotes - 1], array[np.minimum(quotes + 1, len(array) - 1)]
    begins = (quotes == starts[record]) | (before == separator)
    finishes = (quotes + 1 == ends[record]) | (after == separator)
    if doubled:
        begins |= before == array[quotes]
        finishes |= after == array[quotes]
    right = np.where(closing, finishes, begins)
    count = np.bincount(record, minlength=len(ends))
    wrong = np.bincount(record[~right], minlength=len(ends))
    found: BoolArray = (count % 2 == 0) & (wrong == 0)
    return found


def find_first_line_end(data: bytes) -> int:
    """Return the place behind the first end of a line, or -1 if there is none or one more byte would decide.

    Returns
    -------
    int
        A carriage return that is the last byte may be half of an end, and is none here.
    """
    found = [place for place in (data.find(b"\n"), data.find(b"\r")) if place >= 0]
    if not found:
        return -1
    place = min(found)
    if data[place] == _FEED:
        return place + 1
    if place + 1 == len(data):
        return -1
    return place + 2 if data[place + 1] == _FEED else place + 1


def find_last_line_end(data: bytes) -> int:
    """Return the place behind the last end of a line of which all bytes are in the block, or 0."""
    whole = data[:-1] if data.endswith(b"\r") else data
    return max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1
