"""What a usual run leaves out is covered by what it has: the tests that a mark names are there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent


@cache
def functions(file: Path) -> frozenset[str]:
    return frozenset(re.findall(r"(?m)^def (test_\w+)\(", file.read_text()))


def unknown(said: str, file: Path) -> Iterator[str]:
    """Names of tests, files and directories in a text that are not there; a bare name is of the file itself."""
    beside = file
    for word in re.findall(r"tests/[\w/]+(?:\.py)?|test_\w+(?:\.py)?", said):
        place = ROOT / word if word.startswith("tests/") else file.with_name(word)
        if word.endswith(".py") or "/" in word:
            beside = place
            if not place.exists():
                yield word
        elif word not in functions(beside if beside.is_file() else file):
            yield word


MARKS = [
    (file, said)
    for file in sorted(TESTS.rglob("test_*.py"))
    if file != Path(__file__)
    for said in re.findall(r'mark\.thorough\(\s*"([^"]*)"', file.read_text())
]


@pytest.mark.parametrize(("file", "said"), MARKS, ids=[f"{file.stem}-{at}" for at, (file, _) in enumerate(MARKS)])
def test_what_covers_a_case_is_there(file: Path, said: str) -> None:
    assert not list(unknown(said, file))


@pytest.mark.parametrize("said", ["test_nothing", "tests/nowhere/", "test_nowhere.py", "tests/test_shared.py::test_no"])
def test_what_is_not_there_is_found(said: str) -> None:
    assert list(unknown(said, Path(__file__)))
