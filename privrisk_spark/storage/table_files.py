"""What a path of a policy names on this machine: the places, the files of a table in them, and where links lead."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote, urlparse

__all__ = ["PATTERN", "files_of", "links_in", "named_here", "opened"]

PATTERN: Final = re.compile(r"[*?\[{]")
"""What makes a path of a policy a pattern, as Spark takes it."""


def named_here(path: str) -> list[Path]:
    """Return what a path of a policy names on this machine.

    Parameters
    ----------
    path : str
        As Spark takes it: a path, a ``file:`` URI, or a pattern of either, which stands for what it matches now; of one
        with alternatives in braces the directory counts that holds all it may match.

    Returns
    -------
    list of Path
        In order; empty for another file system's, and for a pattern that matches nothing.
    """
    parsed = urlparse(path)
    if parsed.scheme == "file":
        path = unquote(parsed.path)
    elif "://" in path:
        return []
    if os.path.lexists(path) or not PATTERN.search(path):
        return [Path(path)]
    before = path.partition("{")[0]
    fixed = path if before == path else before[: before.rfind("/") + 1] or "."
    return [Path(place) for place in sorted(glob.glob(fixed))]


def files_of(place: Path) -> Iterator[Path]:
    """Data files of a table, ascending, as Spark finds them: all that is not hidden in a directory, or the one file.

    Parameters
    ----------
    place : Path
        Links count, whatever they lead to; nothing where there is not even one.
    """
    if not os.path.lexists(place):
        return
    if not place.is_dir():
        yield place
        return
    for entry in sorted(place.iterdir()):
        hidden = entry.name.startswith(".") or (entry.name.startswith("_") and "=" not in entry.name)
        if not hidden and not entry.name.endswith("._COPYING_"):
            yield from files_of(entry)


def links_in(directory: Path) -> Iterator[Path]:
    """Where links in a directory and in those below it lead to."""
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(parent, name)
            if path.is_symlink():
                yield path.resolve()


def opened(file: Path) -> IO[bytes]:
    """Open a file for reading at any place of it."""
    return file.open("rb")
