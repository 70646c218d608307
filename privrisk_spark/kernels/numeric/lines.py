"""Lines of text in bytes, as Hadoop and Spark tell them apart: a line feed ends one, a carriage return, or both."""

from __future__ import annotations

from typing import Final

import numpy as np

from privrisk_spark.kernels.arrays import BoolArray, ByteArray, LongArray

_FEED: Final = ord(b"\n")
_RETURN: Final = ord(b"\r")


def first_end(data: bytes) -> int:
    """Return the place behind the first end of a line, or -1 if there is none or one more byte would tell.

    Parameters
    ----------
    data : bytes

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


def last_end(data: bytes) -> int:
    """Return the place behind the last end of a line of which all bytes are there for sure, or 0."""
    whole = data[:-1] if data.endswith(b"\r") else data
    return max(whole.rfind(b"\n"), whole.rfind(b"\r")) + 1


def split_lines(data: bytes) -> tuple[ByteArray, LongArray]:
    """Take the ends of lines out of whole lines.

    Parameters
    ----------
    data : bytes
        The last line may lack its end.

    Returns
    -------
    letters : ndarray of uint8, shape (n,)
        All other bytes, in order.
    offsets : ndarray of int64, shape (lines + 1,)
        Line ``i`` is ``letters[offsets[i]:offsets[i + 1]]``.
    """
    array = np.frombuffer(data, dtype=np.uint8)
    is_end = (array == _FEED) | (array == _RETURN)
    places = np.flatnonzero(is_end)
    # The line feed behind a carriage return ends nothing that had not ended.
    second = (array[places] == _FEED) & (places > 0) & (array[places - 1] == _RETURN)
    ends = (places - np.arange(len(places)))[~second]
    letters = array[~is_end]
    if len(array) and not is_end[-1]:
        ends = np.append(ends, len(letters))
    return letters, np.concatenate([[0], ends]).astype(np.int64)


def said_something(letters: ByteArray, offsets: LongArray, comment: int | None = None) -> BoolArray:
    """Tell which lines a CSV reader takes for rows: not those of blanks alone, nor comments.

    Parameters
    ----------
    letters : ndarray of uint8
    offsets : ndarray of int64, shape (lines + 1,)
    comment : int, optional
        Byte that a comment begins with.

    Returns
    -------
    ndarray of bool, shape (lines,)

    Notes
    -----
    A blank is what Java trims: every byte up to that of a space.
    """
    said: BoolArray = offsets[1:] > offsets[:-1]
    said[said] = letters[offsets[:-1][said]] > ord(b" ")
    doubtful = np.flatnonzero(~said)
    if (offsets[doubtful + 1] > offsets[doubtful]).any():
        # Most tables have no line that begins with a blank, and their letters need not be counted.
        seen = np.concatenate([[0], np.cumsum(letters > ord(b" "))])
        said[doubtful] = seen[offsets[doubtful + 1]] > seen[offsets[doubtful]]
    if comment is not None:
        begins = offsets[:-1][said]
        said[said] = letters[begins] != comment
    return said


__all__ = ["first_end", "last_end", "said_something", "split_lines"]
