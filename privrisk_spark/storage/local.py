"""Small files on a local or mounted file system: exclusive links, and renames under a lock."""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Final

from privrisk_spark.storage.directories import make_missing
from privrisk_spark.storage.documents import sync
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.permissions import PRIVATE_FILE
from privrisk_spark.storage.store import Entry, StorageError, Stored

__all__ = ["LocalStore"]

_DRAFT: Final = ".draft-"
_LOCK: Final = ".swap.lock"


class LocalStore:
    """Files of a directory, for their owner alone.

    Parameters
    ----------
    location : Location
        Of kind ``file``; the directory is made when the first file is written.

    Notes
    -----
    A file is written under a name of its own, synced, and then linked or renamed to its name, and its directory synced:
    after a loss of power it is there whole, as before, or not at all. Replacing holds a lock of the directory, which
    every mounted file system that knows ``flock`` honours.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._root = Path(location.path)

    @property
    def location(self) -> Location:
        """The place."""
        return self._location

    def read(self, name: str) -> Stored:
        """Read a file; its version is a hash of its content."""
        with self._faults(name):
            content = (self._root / name).read_bytes()
        return Stored(content, _version(content))

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that must not be there."""
        path = self._root / name
        with self._faults(name), self._draft(path, content) as draft:
            with suppress(FileExistsError):
                os.link(draft, path)
            sync(path.parent)
        return self.read(name).content == content

    def replace(self, name: str, content: bytes, version: str) -> bool:
        """Write a file if it still has a version."""
        path = self._root / name
        with self._faults(name), self._locked(path.parent):
            try:
                now = path.read_bytes()
            except FileNotFoundError:
                return False
            if now == content:
                return True
            if _version(now) != version:
                return False
            self._replace(path, content)
        return True

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whatever is there."""
        with self._faults(name):
            self._replace(self._root / name, content)

    def upload(self, name: str, source: Path) -> None:
        """Write a file with the content of another."""
        path = self._root / name
        with self._faults(name):
            make_missing(path.parent)
            draft = path.with_name(f"{_DRAFT}{secrets.token_hex(8)}")
            try:
                shutil.copyfile(source, draft)
                draft.chmod(PRIVATE_FILE)
                sync(draft)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            sync(path.parent)

    def download(self, name: str, target: Path) -> None:
        """Copy a file to one that is not there."""
        with self._faults(name), (self._root / name).open("rb") as source, target.open("xb") as copy:
            shutil.copyfileobj(source, copy, 2**20)

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading."""
        with self._faults(name):
            return (self._root / name).open("rb")

    def find(self, name: str) -> Entry | None:
        """Return what a listing says of a file; None if there is none."""
        path = self._root / name
        with self._faults(name), suppress(FileNotFoundError, NotADirectoryError):
            known = path.stat()
            if path.is_file():
                return Entry(name, known.st_size, known.st_mtime)
        return None

    def entries(self, below: str = "") -> Iterator[Entry]:
        """List the files below a name, or all, but drafts and locks; ascending by name."""
        root = self._root / below
        found = []
        with self._faults(below):
            for path in root.rglob("*"):
                if path.name == _LOCK or path.name.startswith(_DRAFT):
                    continue
                with suppress(FileNotFoundError):
                    if path.is_file():
                        known = path.stat()
                        name = path.relative_to(self._root).as_posix()
                        found.append(Entry(name, known.st_size, known.st_mtime))
        yield from sorted(found, key=lambda entry: entry.name)

    def remove(self, *names: str) -> None:
        """Remove files; one that is not there is no error."""
        for name in names:
            with self._faults(name):
                (self._root / name).unlink(missing_ok=True)

    def _replace(self, path: Path, content: bytes) -> None:
        with self._draft(path, content) as draft:
            draft.replace(path)
            sync(path.parent)

    @contextmanager
    def _draft(self, path: Path, content: bytes) -> Iterator[Path]:
        """Write content under a name of its own, beside its place; gone at the end."""
        make_missing(path.parent)
        draft = path.with_name(f"{_DRAFT}{secrets.token_hex(8)}")
        try:
            handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, PRIVATE_FILE)
            with os.fdopen(handle, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, directory: Path) -> Iterator[None]:
        make_missing(directory)
        handle = os.open(directory / _LOCK, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, PRIVATE_FILE)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    @contextmanager
    def _faults(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StorageError(f"'{self._root / name}' cannot be read or written ({error.strerror}).") from error


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
