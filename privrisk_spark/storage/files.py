"""Files of a table in an object store, read where they are by ranges."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final

from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.store import StorageError
from privrisk_spark.storage.table_files import opened as open_local

__all__ = ["LineFile", "LocalFile", "ObjectFile", "files_below"]


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
    """

    root: str
    place: str
    key: str
    size: int

    @property
    def name(self) -> str:
        """The last part of its place."""
        return PurePosixPath(self.place).name

    def reader(self) -> IO[bytes]:
        """Open it for reading at any place of it."""
        return open_local(Path(self.place))

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
        if not any(_hidden(part) for part in entry.name.split("/"))
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


def _hidden(part: str) -> bool:
    return part.startswith(".") or (part.startswith("_") and "=" not in part)
