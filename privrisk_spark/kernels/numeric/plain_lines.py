"""Lines of CSV of which the bytes alone tell that every parser reads each as one row, and the same values in it.

Quotes only surround whole values without separators and line feeds, there is no escape and no other end of line than a
line feed, everything is UTF-8, and every line has as many separators as it should.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from privrisk_spark.kernels.arrays import ByteArray, LongArray

_ODD: Final = (b"\\", b"\r", b"\0", "\ufffd".encode())


def is_separator(given: bytes) -> bool:
    """Tell whether lines with such a separator can be plain: one byte of ASCII that means nothing else."""
    return len(given) == 1 and given.isascii() and given not in (*_ODD, b"\n", b'"')


def plain(lines: bytes, separator: bytes, count: int) -> bool:
    """Tell whether whole lines have so many separators each, and nothing that a CSV parser reads otherwise.

    Parameters
    ----------
    lines : bytes
        The last one may lack its line feed.
    separator : bytes
        As :func:`is_separator` has it.
    count : int
        At least 0.

    Returns
    -------
    bool
        False says nothing: a parser may read such lines alike.
    """
    if any(odd in lines for odd in _ODD):
        return False
    if not lines.isascii():
        try:
            lines.decode()
        except UnicodeDecodeError:
            return False
    if not lines.endswith(b"\n"):
        lines += b"\n"
    array = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(array == ord(b"\n"))
    places = np.flatnonzero(array == ord(separator))
    if len(places) != count * len(ends):
        return False
    of_line = places.reshape(len(ends), count)
    if count and not ((of_line[:, -1] < ends).all() and (of_line[1:, 0] > ends[:-1]).all()):
        return False
    return b'"' not in lines or _quotes_surround_values(array, np.column_stack([of_line, ends]).ravel())


def _quotes_surround_values(array: ByteArray, borders: LongArray) -> bool:
    """Whether every value that begins with a quote ends with its second one, and no other has any.

    ``borders`` are the places where values end, in order.
    """
    quotes = np.flatnonzero(array == ord('"'))
    first, last = quotes[::2], quotes[1::2]
    if len(first) != len(last):
        return False
    value = np.searchsorted(borders, first)
    begins = np.concatenate([[0], borders[:-1] + 1])
    return bool((begins[value] == first).all() and (borders[value] == last + 1).all())
