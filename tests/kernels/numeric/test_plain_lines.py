"""Lines whose bytes tell how they are read, against a reader of one letter after another."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plain_texts import NOT_PLAIN, PLAIN

from privrisk_spark.kernels.numeric.plain_lines import is_separator, plain


@pytest.mark.parametrize("text", PLAIN)
def test_lines_of_values_are_plain(text: str) -> None:
    assert plain(text.encode(), b",", 1)
    assert not plain(text.encode(), b",", 2)
    assert plain(text.replace(",", ";").encode(), b";", 1)


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_may_be_damaged_is_not_plain(text: str) -> None:
    assert not plain(text.encode(), b",", 1)


def test_bytes_that_are_no_text_are_not_plain() -> None:
    assert not plain("a,ü\n".encode("latin-1"), b",", 1)
    assert not plain(b"a,\xed\xa0\x80\n", b",", 1)


def test_one_column_has_no_separators() -> None:
    assert plain(b"a\n1\n\n", b",", 0)
    assert not plain(b"a\n1,2\n", b",", 0)


@given(st.text(alphabet=[",", "\n", '"', " ", "a", "ü", "\\"], max_size=12))
def test_plain_lines_are_rows_to_a_parser_and_to_who_only_splits_them(text: str) -> None:
    if not text or not plain(text.encode(), b",", 1):
        return
    by_hand = [line.split(",") for line in text.removesuffix("\n").split("\n")]
    assert list(csv.reader(io.StringIO(text, newline=""), strict=True)) == [
        [value[1:-1] if value.startswith('"') else value for value in row] for row in by_hand
    ]


def test_a_separator_is_one_byte_that_means_nothing_else() -> None:
    assert all(is_separator(one) for one in (b",", b";", b"\t", b"|", b"a"))
    assert not any(is_separator(one) for one in (b"", b"::", b"\n", b"\r", b'"', b"\\", b"\0", "ü".encode(), b"\xfc"))
