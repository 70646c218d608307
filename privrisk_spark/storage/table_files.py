"""What a path of a policy names on this machine: the places, the files of a table in them, and where links lead."""

from __future__ import annotations

import ctypes
import glob
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import IO, Final
from urllib.parse import unquote, urlparse

__all__ = ["PATTERN", "files_of", "identity_of", "links_in", "named_here", "opened"]

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


def identity_of(file: Path) -> str | None:
    """Return what tells a file from all others, whatever its names; None if there is none.

    Parameters
    ----------
    file : Path
        Links are followed.

    Returns
    -------
    str or None
        Its inode and when that was created. Unlike the number of a device, both stay the same when the machine starts
        again, and a file that gets the inode of a deleted one was created later. Where the file system does not know
        when a file was created: its inode and device.
    """
    try:
        known = file.stat()
    except OSError:
        return None
    born = getattr(known, "st_birthtime_ns", None) or getattr(known, "st_birthtime", None) or _born(file)
    return f"inode {known.st_ino} " + (f"born {born}" if born else f"on {known.st_dev}")


_BORN = 0x800
"""Bit of the mask of Linux' statx by which a file's time of birth is asked for, and answered."""


def _born(file: Path) -> str | None:
    """Return when a file was created, by Linux' statx; Python's stat does not tell."""
    statx = _statx()
    answer = ctypes.create_string_buffer(256)
    if statx is None or statx(-100, os.fsencode(file), 0, _BORN, answer) != 0:
        return None
    seconds, nanoseconds = struct.unpack_from("=qI", answer, 80)
    return f"{seconds}.{nanoseconds:09}" if struct.unpack_from("=I", answer)[0] & _BORN else None


@cache
def _statx() -> Callable[..., int] | None:
    found: Callable[..., int] | None = None
    if sys.platform == "linux":
        found = getattr(ctypes.CDLL(None), "statx", None)
    return found
