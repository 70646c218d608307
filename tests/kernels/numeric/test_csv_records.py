"""Records in bytes, against a reader of one byte after another."""

from __future__ import annotations

from itertools import product

import pytest

from privrisk_spark.kernels.numeric.csv_records import find_first_line_end, find_last_line_end, find_records

LINES = [bytes(text) for size in range(6) for text in product(b"a\n\r #", repeat=size)]
QUOTED = [bytes(text) for size in range(6) for text in product(b'a,"\n\r\\', repeat=size)]
"""All short ones: random ones hardly ever end in half of an end of a line."""


def lines_of(data: bytes, *, multi_line: bool = False) -> list[bytes]:
    """Lines as Hadoop's reader has them, or as RFC 4180 has them where quotes hold line ends; a literal twin."""
    found, line, place, quoted = [], b"", 0, False
    while place < len(data):
        byte = data[place : place + 1]
        if byte in (b"\r", b"\n") and not quoted:
            found.append(line)
            line = b""
            place += byte == b"\r" and data[place + 1 : place + 2] == b"\n"
        elif quoted and data[place : place + 2] == b'""':
            line += b'""'
            place += 1
        else:
            begins = line == b"" or line.endswith(b",")
            if multi_line and byte == b'"':
                quoted = begins and not quoted
            line += byte
        place += 1
    return [*found, line] if line else found


def values_of(line: bytes, *, escaped: bool = False) -> int | None:
    """Number of values of a record by the grammar of RFC 4180; None if it does not follow it; a literal twin."""
    if escaped and b'"' in line and b"\\" in line:
        return None
    place, values = 0, 1
    while True:
        if line[place : place + 1] == b'"':
            place += 1
            while True:
                if place >= len(line):
                    return None
                if line[place : place + 1] != b'"':
                    place += 1
                elif line[place + 1 : place + 2] == b'"' and not escaped:
                    place += 2
                else:
                    place += 1
                    break
        else:
            while place < len(line) and line[place : place + 1] != b",":
                if line[place : place + 1] == b'"':
                    return None
                place += 1
        if place == len(line):
            return values
        if line[place : place + 1] != b",":
            return None
        place, values = place + 1, values + 1


@pytest.mark.parametrize("comment", [None, ord(b"#")])
def test_find_records_of_lines_returns_those_that_are_neither_blank_nor_comments(comment: int | None) -> None:
    for data in LINES:
        found = find_records(data, ord(","), ord('"'), comment=comment)
        lines = lines_of(data)
        said = [
            line for line in lines if any(byte > 32 for byte in line) and not (comment is not None and line[:1] == b"#")
        ]
        assert [data[a:b] for a, b in zip(found.starts, found.ends, strict=True)] == said, data
        assert found.alone == (len(said) == sum(line != b"" for line in lines)), data
        assert lines_of(data[: found.end]) + lines_of(data[found.end :]) == lines, data


@pytest.mark.parametrize("escape", [None, ord(b"\\")])
@pytest.mark.parametrize("multi_line", [False, True])
def test_find_records_with_quotes_returns_values_of_the_grammar(multi_line: bool, escape: int | None) -> None:
    regular = 0
    for data in QUOTED:
        found = find_records(data, ord(","), ord('"'), escape=escape, multi_line=multi_line)
        records = [line for line in lines_of(data, multi_line=multi_line) if any(byte > 32 for byte in line)]
        assert [data[a:b] for a, b in zip(found.starts, found.ends, strict=True)] == records, data
        counts = [values_of(record, escaped=escape is not None) for record in records]
        assert [count is not None for count in counts] == found.regular.tolist(), data
        for count, value in zip(counts, found.values.tolist(), strict=True):
            assert count is None or count == value, data
        regular += found.regular.sum()
    assert regular > 1000


def test_find_records_without_quotes_counts_separators() -> None:
    found = find_records(b'a,"b\n"",c,d\n', ord(","), None)
    assert found.values.tolist() == [2, 3]
    assert found.regular.all()


def test_find_line_ends_cuts_where_all_before_is_complete() -> None:
    for data in LINES:
        first, last = find_first_line_end(data), find_last_line_end(data)
        if first >= 0:
            assert lines_of(data[:first]) == lines_of(data)[:1], data
        for cut in (max(first, 0), last):
            assert lines_of(data[:cut]) + lines_of(data[cut:]) == lines_of(data), data
        for behind in (b"", b"\n", b"\r\n"):  # whatever follows, an end that was found stays one
            assert first < 0 or find_first_line_end(data + behind) == first, data
            assert lines_of(data[:last]) + lines_of(data[last:] + behind) == lines_of(data + behind), data
