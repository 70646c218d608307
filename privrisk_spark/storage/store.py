"""The protocol of small files: whole or not at all, created by one, replaced only if unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from privrisk_spark.errors import EngineError
from privrisk_spark.storage.locations import Location

__all__ = ["Entry", "StorageError", "Store", "Stored"]


class StorageError(EngineError):
    """A store did not answer, or answered with a fault, after all retries."""


@dataclass(frozen=True)
class Stored:
    """A file as it was read.

    Attributes
    ----------
    content : bytes
    version : str
        Of this content under this name: what :meth:`Store.replace` compares.
    """

    content: bytes
    version: str


@dataclass(frozen=True)
class Entry:
    """A file of a listing.

    Attributes
    ----------
    name : str
        Relative to the store, parts divided by slashes.
    size : int
        Bytes.
    modified : float
        When it was last written, seconds since 1970, by the store's clock.
    version : str
        Of its content, where the store's listing tells it: two contents never have the same.
    """

    name: str
    size: int
    modified: float
    version: str = ""


class Store(Protocol):
    """Files below one place, by names whose parts are divided by slashes.

    Every call may raise :class:`StorageError`; a reader sees a file as it was before a write or after it.
    """

    @property
    def location(self) -> Location:
        """The place."""

    def read(self, name: str) -> Stored:
        """Read a file; FileNotFoundError if there is none."""

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that must not be there.

        Returns
        -------
        bool
            True if the file has this content now, by whom ever it was written: an answer that was lost makes no
            difference. False if it has another.
        """

    def replace(self, name: str, content: bytes, version: str) -> bool:
        """Write a file if it still has a version.

        Returns
        -------
        bool
            True if the file has this content now; False if somebody else replaced or removed it meanwhile.
        """

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whatever is there."""

    def upload(self, name: str, source: Path) -> None:
        """Write a file with the content of a local one, of any size."""

    def download(self, name: str, target: Path) -> None:
        """Write the content of a file to a local one that is not there; FileNotFoundError if there is none."""

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading at any place of it; FileNotFoundError if there is none."""

    def find(self, name: str) -> Entry | None:
        """Return what a listing says of a file; None if there is none."""

    def entries(self, below: str = "") -> Iterator[Entry]:
        """List the files below a name, or all; ascending by name. Nothing below a name is no error."""

    def remove(self, *names: str) -> None:
        """Remove files; one that is not there is no error."""
