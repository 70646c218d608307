"""The files of a table: what a path of a policy names on this machine, and what lies at an address of a store."""

from __future__ import annotations

import bz2
import ctypes
import glob
import gzip
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final
from urllib.parse import unquote, urlparse

from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.store import StorageError

__all__ = [
    "PATTERN",
    "LineFile",
    "LocalFile",
    "ObjectFile",
    "files_below",
    "files_of",
    "identity_of",
    "links_in",
    "named_here",
]

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
        if not _is_hidden(entry.name) and not entry.name.endswith("._COPYING_"):
            yield from files_of(entry)


def _is_hidden(part: str) -> bool:
    return part.startswith(".") or (part.startswith("_") and "=" not in part)


def links_in(directory: Path) -> Iterator[Path]:
    """Where links in a directory and in those below it lead to."""
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(parent, name)
            if path.is_symlink():
                yield path.resolve()


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


@dataclass(frozen=True)
class ObjectFile:
    """One file.

    Attributes
    ----------
    root : Location
        Of the table.
    key : str
        Below it; of a table that is one file, its name, and ``root`` is where that lies.
    size : int
        Bytes.
    modified : float
        When it was written, seconds since 1970, by the store's clock; 0 where a table's own log names the file.
    version : str
        Of its content, as the listing told it; empty where nothing tells it.
    """

    root: Location
    key: str
    size: int
    modified: float = 0.0
    version: str = ""

    @property
    def path(self) -> PurePosixPath:
        """Place of the file as a path below its container."""
        return PurePosixPath("/", self.root.below(self.key).path)

    @property
    def name(self) -> str:
        """The last part of its place."""
        return self.path.name

    def reader(self) -> IO[bytes]:
        """Open it for reading at any place of it.

        Raises
        ------
        StorageError
            Now or when it is read: if it is another file than the listing told of, so that no task reads rows of one
            file where another read those of its successor.
        """
        try:
            return open_remote(self.root).open(self.key, self.version)
        except FileNotFoundError:
            if not self.version:
                raise
            raise StorageError(f"'{self.root.below(self.key)}' was removed while its table was read.") from None

    @property
    def compressed(self) -> bool:
        """Whether its name says that it is compressed as a whole, so that it can be read from the start alone."""
        return self.name.lower().endswith(tuple(_DECOMPRESSED))

    def content(self) -> IO[bytes]:
        """Open it as :meth:`reader` does; of a compressed one what was compressed is read.

        Raises
        ------
        StorageError
            As :meth:`reader`.
        OSError, EOFError, zlib.error
            When it is read: if it is compressed, and damaged or cut.
        """
        opened = self.reader()
        for ending, decompressed in _DECOMPRESSED.items():
            if self.name.lower().endswith(ending):
                found: IO[bytes] = decompressed(opened)
                return found
        return opened


_DECOMPRESSED: Final[Mapping[str, Callable[[Any], Any]]] = {".gz": gzip.open, ".bz2": bz2.open}


@dataclass(frozen=True)
class LocalFile:
    """One file of a table on this machine, as :class:`ObjectFile` is one in a store.

    Attributes
    ----------
    root : str
        Of the table, as the policy names it.
    place : str
        Absolute path.
    key : str
        Below the root; of a table that is one file, its name.
    size : int
        Bytes.
    modified : float
        When it was written, seconds since 1970.
    """

    root: str
    place: str
    key: str
    size: int
    modified: float = 0.0

    @property
    def name(self) -> str:
        """The last part of its place."""
        return PurePosixPath(self.place).name

    def reader(self) -> IO[bytes]:
        """Open it for reading at any place of it."""
        return Path(self.place).open("rb")

    @property
    def compressed(self) -> bool:
        """Whether its name ends as that of a compressed file."""
        return self.name.lower().endswith(tuple(_DECOMPRESSED))

    def content(self) -> IO[bytes]:
        """Open it for reading. A compressed file is decompressed."""
        ending = next((one for one in _DECOMPRESSED if self.name.lower().endswith(one)), None)
        found: IO[bytes] = self.reader() if ending is None else _DECOMPRESSED[ending](self.place)
        return found


LineFile = ObjectFile | LocalFile
"""A file that tasks read."""


def files_below(table: Location) -> list[ObjectFile]:
    """List the data files of a table, ascending by name: what Spark would read of a directory, or the one file.

    Parameters
    ----------
    table : Location
        In an object store.
    """
    store = open_remote(table)
    listed = list(store.entries())
    directories = {name for entry in listed for name in _above(entry.name)}
    found = [
        ObjectFile(table, entry.name, entry.size, entry.modified, entry.version)
        for entry in listed
        if not any(_is_hidden(part) for part in entry.name.split("/"))
        and not entry.name.endswith(_NO_FILES)
        # Consoles and other programs mark a directory by an object without content; its name may end with a slash.
        and (entry.size or (entry.name not in directories and store.find(entry.name) is not None))
    ]
    if found or not table.path:
        return found
    root, name = table.above
    alone = open_remote(root).find(name)
    return [] if alone is None else [ObjectFile(root, name, alone.size, alone.modified, alone.version)]


_NO_FILES: Final = ("._COPYING_", "_$folder$")


def _above(name: str) -> Iterator[str]:
    """Names of the directories that an object lies in."""
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name
