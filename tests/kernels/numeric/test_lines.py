"""Lines in bytes, against a reader of one byte after another."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from privrisk_spark.kernels.numeric.lines import first_end, last_end, said_something, split_lines

TEXTS = [bytes(text) for size in range(6) for text in product(b"a\n\r #", repeat=size)]
"""All short ones: random ones hardly ever end in half of an end of a line."""


def lines_of(data: bytes) -> list[bytes]:
    """Lines as Hadoop's reader has them; a literal twin."""
    found, line, place = [], b"", 0
    while place < len(data):
        byte = data[place : place + 1]
        if byte in (b"\r", b"\n"):
            found.append(line)
            line = b""
            place += byte == b"\r" and data[place + 1 : place + 2] == b"\n"
        else:
            line += byte
        place += 1
    return [*found, line] if line else found


def taken(data: bytes) -> list[bytes]:
    letters, offsets = split_lines(data)
    assert offsets[-1] == len(letters), "no letter is lost"
    return [letters[a:b].tobytes() for a, b in pairwise(offsets)]


def test_lines_are_those_of_a_reader_of_bytes() -> None:
    for data in TEXTS:
        assert taken(data) == lines_of(data), data


def test_lines_are_cut_where_all_before_is_whole() -> None:
    for data in TEXTS:
        first, last = first_end(data), last_end(data)
        if first >= 0:
            assert taken(data[:first]) == lines_of(data)[:1], data
        for cut in (max(first, 0), last):
            assert lines_of(data[:cut]) + lines_of(data[cut:]) == lines_of(data), data
        for behind in (b"", b"\n", b"\r\n"):  # whatever follows, an end that was found stays one
            assert first < 0 or first_end(data + behind) == first, data
            assert lines_of(data[:last]) + lines_of(data[last:] + behind) == lines_of(data + behind), data


@pytest.mark.parametrize("comment", [None, ord(b"#")])
def test_blank_lines_and_comments_say_nothing(comment: int | None) -> None:
    for data in TEXTS:
        expected = [
            any(byte > 32 for byte in line) and not (comment is not None and line[:1] == b"#")
            for line in lines_of(data)
        ]
        np.testing.assert_array_equal(said_something(*split_lines(data), comment), expected, err_msg=str(data))
