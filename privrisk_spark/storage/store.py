"""The protocol of small files: whole or not at all, created by one, replaced only if unchanged."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Protocol

from privrisk_spark.errors import EngineError
from privrisk_spark.storage.locations import Location

__all__ = ["RETRY_SECONDS", "Entry", "RemoteStore", "StorageError", "Store", "Stored", "open_ranges"]

RETRY_SECONDS: Final = 180.0
"""For how long a request to a remote store is tried again."""


class StorageError(EngineError):
    """A store did not answer, or answered with a fault, after all retries."""


@dataclass(frozen=True)
class Stored:
    """A file as it was read.

    Attributes
    ----------
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


_RANGE: Final = 8 * 2**20


class RemoteStore(Store, Protocol):
    """A store that every machine of a cluster reaches."""

    def open(self, name: str, version: str = "") -> IO[bytes]:
        """Open a file for reading at any place of it.

        Parameters
        ----------
        version : str
            Of the listing: another version is not read. Empty for the present one.

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        StorageError
            Now or when it is read: if the file was replaced.
        """

    def names(self) -> Iterator[str]:
        """Yield the names of all files in the order of the store's listing, of which a caller may read the first."""

    def make(self, *, public: bool) -> None:
        """Make the place, with access for its owner only or for all users, if the store has such rights."""

    def clear(self) -> None:
        """Remove all files, also those that no listing shows."""

    def keeps_versions(self) -> bool:
        """Return True if the store reports that it keeps what is replaced or removed."""


def open_ranges(fetch: Callable[[int, int], bytes], size: int) -> IO[bytes]:
    """Return a file for reading that is fetched by ranges.

    Parameters
    ----------
    fetch : callable
        Returns the bytes from one place up to another.
    size : int
        Bytes of the file.
    """
    return io.BufferedReader(_Ranges(fetch, size), 2**16)


class _Ranges(io.RawIOBase):
    """An object as a file, fetched by ranges."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        self._fetch, self._size = fetch, size
        self._at = self._begin = 0
        self._held = b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        wanted = max(0, min(len(buffer), self._size - self._at))
        if wanted and not self._begin <= self._at <= self._at + wanted <= self._begin + len(self._held):
            self._held = self._fetch(self._at, min(self._size, self._at + max(wanted, _RANGE)))
            self._begin = self._at
        start = self._at - self._begin
        buffer[:wanted] = self._held[start : start + wanted]
        self._at += wanted
        return wanted

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at
