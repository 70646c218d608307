"""Files of a table in an object store, read where they are by ranges."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import opened

__all__ = ["ObjectFile", "files_below"]


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
    """

    root: Location
    key: str
    size: int
    modified: float = 0.0

    @property
    def path(self) -> PurePosixPath:
        """Place of the file as a path below its container."""
        return PurePosixPath("/", self.root.below(self.key).path)

    @property
    def name(self) -> str:
        """The last part of its place."""
        return self.path.name

    def reader(self) -> IO[bytes]:
        """Open it for reading at any place of it."""
        return opened(self.root).open(self.key)


def files_below(table: Location) -> list[ObjectFile]:
    """List the data files of a table, ascending by name: what Spark would read of a directory, or the one file.

    Parameters
    ----------
    table : Location
        In an object store.
    """
    found = [
        ObjectFile(table, entry.name, entry.size, entry.modified)
        for entry in opened(table).entries()
        if not any(_hidden(part) for part in entry.name.split("/")) and not entry.name.endswith("._COPYING_")
    ]
    if found or not table.path:
        return found
    above, _, name = table.path.rpartition("/")
    root = Location(table.kind, table.container, above, table.account)
    alone = opened(root).find(name)
    return [] if alone is None else [ObjectFile(root, name, alone.size, alone.modified)]


def _hidden(part: str) -> bool:
    return part.startswith(".") or (part.startswith("_") and "=" not in part)
