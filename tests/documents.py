"""Blocks of the documents, and the commands and programs in them."""

from __future__ import annotations

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import typer.main

from privrisk_spark.cli.app import app

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]

_HERE = re.compile(r"cat > (\S+) <<'END'\n(.*?)^END$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """A block of a document.

    Attributes
    ----------
    document : str
        Name of the file, without its ending.
    place : str
        The document, and which of its blocks it is, from 1.
    language : str
        What stands after the fence.
    """

    document: str
    place: str
    language: str
    text: str

    @property
    def first(self) -> str:
        """What a reader tells it by: its first line, blanks at the end taken away."""
        return self.text.splitlines()[0].rstrip()


def blocks(text: str, document: str) -> Iterator[Block]:
    """Blocks of a document in their order, those that are indented in a list as well."""
    for at, found in enumerate(re.finditer(r"(?ms)^( *)```(\w*)\n(.*?)^\1```$", text), start=1):
        yield Block(document, f"{document}-{at}", found[2], textwrap.dedent(found[3]))


BLOCKS = [block for path in DOCUMENTS for block in blocks(path.read_text(), path.stem)]


def here_documents(text: str) -> list[tuple[str, str]]:
    """Files that a shell block writes: name and content."""
    return _HERE.findall(text)


def commands(text: str) -> list[str]:
    """Commands of a shell block, one a line, without comments and without what writes files."""
    lines = _HERE.sub("", text).replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    return [shlex.join(found) for found in words if found]


def understood(words: list[str]) -> str:
    """Return the words that name a command of ``privrisk``, or fail at an option it does not take."""
    command, name, left = typer.main.get_command(app), "privrisk", list(words)
    while hasattr(command, "commands"):
        word = left.pop(0)
        assert word in command.commands, f"{name} has no command {word}"
        command, name = command.commands[word], f"{name} {word}"
    command.make_context(name, left).close()
    return name
