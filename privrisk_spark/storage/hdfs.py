"""Files in HDFS, read and written by ``hdfs-native``, which needs no Java in the driver or in tasks."""

from __future__ import annotations

import hashlib
import math
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from privrisk_spark.errors import ConfigError, Fault, InputError
from privrisk_spark.extras import require
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.store import RETRY_SECONDS, Entry, StorageError, Stored, open_ranges

if TYPE_CHECKING:
    from hdfs_native import Client, FileStatus

__all__ = ["HdfsStore"]

_CHUNK: Final = 8 * 2**20
_DRAFTS: Final = ".drafts"
_ABANDONED: Final = 600.0
"""Seconds after which no process writes a draft any more."""

_NEXT: Final = ".next-"
_PRIVATE: Final = 0o700
_PUBLIC: Final = 0o755


class HdfsStore:
    """Files below a directory of HDFS.

    Parameters
    ----------
    location : Location
        Of kind ``hdfs``.
    retry_seconds : float
        For about how long a name node that does not answer is asked again.

    Raises
    ------
    InputError
        If the package ``hdfs-native`` is not installed, or no name node is known for the place.

    Notes
    -----
    ``HADOOP_CONF_DIR`` names the directory of the cluster's configuration, which lists the name nodes of a name
    service. The user is that of the Kerberos ticket, of the tokens in ``HADOOP_TOKEN_FILE_LOCATION``, or
    ``HADOOP_USER_NAME``.

    A file is written below ``.drafts``, which only its owner can read, and then renamed, which the name node does at
    once. It cannot compare and swap. So :meth:`replace` first links the new content to the version that it follows, by
    a file that only one process can create: ``.next-<version>.<name>``. Then it copies it to the name. :meth:`read`
    follows the links, so that a process that stops between the two steps loses nothing. The links stay; each is as
    large as the file.
    """

    def __init__(self, location: Location, *, retry_seconds: float = RETRY_SECONDS) -> None:
        require("hdfs_native", f"'{location}'")
        from hdfs_native import Client

        self._location = location
        self._has_drafts = False
        # The pauses are half a second at first, and double.
        attempts = max(1, round(math.log2(2 * retry_seconds)))
        # A client has threads of its own, which do not survive a fork.
        key = (os.getpid(), location.container, attempts, os.environ.get("HADOOP_USER_NAME"))
        if key not in _CLIENTS:
            with self._errors(""):
                config = {"dfs.client.failover.max.attempts": str(attempts)}
                _CLIENTS[key] = Client(f"hdfs://{location.container}", config)
        self._client = _CLIENTS[key]

    @property
    def location(self) -> Location:
        """The place."""
        return self._location

    def make(self, *, public: bool) -> None:
        """Make the directory, with access for its owner only or for all users."""
        path, permission = self._path(""), _PUBLIC if public else _PRIVATE
        with self._errors("", "write"):
            self._client.mkdirs(path, permission, create_parent=True)
            if not public:
                self._client.set_permission(path, permission)

    def read(self, name: str) -> Stored:
        """Read the latest content of a file; its version is its time of writing and its SHA-256."""
        found = self._read(name)
        while True:
            try:
                found = self._read(_link(name, found.version))
            except FileNotFoundError:
                return found

    def create(self, name: str, content: bytes) -> bool:
        """Write a file that must not exist."""
        # The draft is gone if an earlier request whose answer was lost was carried out.
        gone = suppress(FileExistsError, FileNotFoundError)
        with self._errors(name, "write"), self._draft(content) as draft, gone:
            self._rename(draft, name, overwrite=False)
        return self.read(name).content == content

    def replace(self, name: str, content: bytes, version: str) -> bool:
        """Write a file if it still has a version."""
        try:
            now = self.read(name)
        except FileNotFoundError:
            return False
        if now.content == content:
            return True
        if now.version != version:
            return False
        won = self.create(_link(name, version), content)
        try:
            self._publish(name)
        except FileNotFoundError:
            return False  # another process removed it
        return won

    def write(self, name: str, content: bytes) -> None:
        """Write a file, whether or not it exists."""
        with self._errors(name, "write"), self._draft(content) as draft:
            self._rename(draft, name)

    def upload(self, name: str, source: Path) -> None:
        """Write a file with the content of a local one."""
        with self._errors(name, "write"), self._draft(source) as draft:
            self._rename(draft, name)

    def download(self, name: str, target: Path) -> None:
        """Write the content of a file to a local one that does not exist."""
        with self._errors(name):
            found = self._client.read(self._path(name))
            with target.open("xb") as stream:
                for piece in found.read_range_stream(0, len(found)):
                    stream.write(piece)
                size = stream.tell()
        if size != len(found):
            target.unlink()
            raise StorageError(f"'{self._location.below(name)}' arrived with other bytes than were stored.")

    def open(self, name: str, version: str = "") -> IO[bytes]:
        """Open a file for reading at any place of it; StorageError if it was replaced since it was listed."""
        with self._errors(name):
            listed = _version(self._client.get_file_info(self._path(name)))
            found = self._client.read(self._path(name))
            after = _version(self._client.get_file_info(self._path(name)))
        if version not in ("", listed) or listed != after:
            raise StorageError(f"'{self._location.below(name)}' was replaced or removed while it was read; run again.")

        def fetch(begin: int, end: int) -> bytes:
            with self._errors(name):
                return found.read_range(begin, end - begin)

        return open_ranges(fetch, len(found))

    def find(self, name: str) -> Entry | None:
        """Return the listing's entry of a file; None if it does not exist."""
        try:
            with self._errors(name):
                found = self._client.get_file_info(self._path(name))
        except FileNotFoundError:
            return None
        return None if found.isdir else self._entry(found)

    def entries(self, below: str = "") -> Iterator[Entry]:
        """List the files below a name, or all, except drafts and links, in the order of their names."""
        yield from sorted(self._listed(below), key=lambda entry: entry.name)

    def names(self) -> Iterator[str]:
        """Yield the names of all files in the order of the listing."""
        for entry in self._listed(""):
            yield entry.name

    def remove(self, *names: str) -> None:
        """Remove files and directories that are empty then; a file that does not exist is no error."""
        for name in names:
            with self._errors(name, "remove"):
                self._client.delete(self._path(name))
        for above in sorted({name.rpartition("/")[0] for name in names} - {""}, key=len, reverse=True):
            left = above
            while left and self._remove_empty(left):
                left = left.rpartition("/")[0]

    def clear(self) -> None:
        """Remove the directory with all that is in it, also what processes that were killed left."""
        with self._errors("", "remove"):
            self._client.delete(self._path(""), recursive=True)

    def _remove_empty(self, name: str) -> bool:
        """Remove a directory that holds nothing but abandoned drafts; return True if it is gone."""
        try:
            left = list(self._client.list_status(self._path(name)))
            drafts = all(found.path.rpartition("/")[2] == _DRAFTS for found in left)
            if drafts and all(found.modification_time / 1000 < time.time() - _ABANDONED for found in left):
                self._client.delete(self._path(name), recursive=bool(left))
                return True
        except (RuntimeError, OSError):
            pass  # gone, or another process writes there
        return False

    def keeps_versions(self) -> bool:
        """Return False: whether an administrator takes snapshots of a directory cannot be asked."""
        return False

    def _path(self, name: str) -> str:
        return f"/{self._location.below(name).path if name else self._location.path}"

    def _read(self, name: str) -> Stored:
        """Read a file as it is under its name."""
        path, listed = self._path(name), None
        with self._errors(name):
            # Until no other file takes the name between listing and reading it.
            while listed is None or _version(self._client.get_file_info(path)) != _version(listed):
                listed = self._client.get_file_info(path)
                content = self._client.read(path).read()
        return Stored(content, f"{listed.modification_time}-{hashlib.sha256(content).hexdigest()}")

    def _publish(self, name: str) -> None:
        """Copy the latest content to the name, until no later one is linked to it."""
        while True:
            latest = self.read(name)
            with self._errors(name, "write"), self._draft(latest.content) as draft:
                # The copy has the version of what it is a copy of.
                written = int(latest.version.partition("-")[0])
                self._client.set_times(draft, written, written)
                self._rename(draft, name)
            if self._read(name).version == self.read(name).version:
                return

    @contextmanager
    def _draft(self, content: bytes | Path) -> Iterator[str]:
        """Write content under a name of its own, and remove it at the end."""
        from hdfs_native import WriteOptions

        drafts = self._path(_DRAFTS)
        if not self._has_drafts:
            self._client.mkdirs(drafts, _PRIVATE, create_parent=True)
            self._has_drafts = True
        draft = f"{drafts}/{secrets.token_hex(8)}"
        try:
            with self._client.create(draft, WriteOptions(create_parent=True)) as target:
                if isinstance(content, bytes):
                    target.write(content)
                else:
                    with content.open("rb") as source:
                        while piece := source.read(_CHUNK):
                            target.write(piece)
            yield draft
        finally:
            with suppress(RuntimeError, OSError):
                self._client.delete(draft)

    def _rename(self, draft: str, name: str, *, overwrite: bool = True) -> None:
        """Give a draft its name, in a directory that another process may have removed as it was empty."""
        path = self._path(name)
        with suppress(FileNotFoundError):
            return self._client.rename(draft, path, overwrite)
        self._client.mkdirs(path.rpartition("/")[0], create_parent=True)
        return self._client.rename(draft, path, overwrite)

    def _listed(self, below: str) -> Iterator[Entry]:
        try:
            with self._errors(below, "list"):
                for found in self._client.list_status(self._path(below), recursive=True):
                    *above, last = found.path.split("/")
                    hidden = last.startswith(_NEXT) or _DRAFTS in above
                    if not found.isdir and not hidden and found.path != self._path(below):
                        yield self._entry(found)
        except FileNotFoundError:
            return

    def _entry(self, found: FileStatus) -> Entry:
        name = found.path.removeprefix(self._path("")).removeprefix("/")
        return Entry(name, found.length, found.modification_time / 1000, _version(found))

    @contextmanager
    def _errors(self, name: str, doing: str = "read") -> Iterator[None]:
        place = self._location.below(name) if name else self._location
        try:
            yield
        except FileNotFoundError:
            raise FileNotFoundError(str(place)) from None
        # The library repeats Java's stack; the first line of it may quote a path, and nothing else of a table.
        except (RuntimeError, OSError) as error:
            said = str(error)
            for mark, rule in _REFUSED:
                if mark in said:
                    raise self._refused(f"'{place}': {rule.format(doing=doing)}") from None
            reason = next((reason for mark, reason in _REASONS if mark in said), "the name node answered with an error")
            raise StorageError(f"'{place}' cannot be read or written ({reason}).") from None

    def _refused(self, rule: str) -> InputError:
        key = self._location.key
        return ConfigError([Fault(key, rule)]) if key else InputError(f"{rule}.")


_CLIENTS: Final[dict[tuple[int, str, int, str | None], Client]] = {}

_REFUSED: Final = (
    ("AccessControlException", "access is denied to {doing} files. Fix: check who owns the directory, and the user"),
    ("No NameNode hosts found", "no such name node. Fix: set HADOOP_CONF_DIR, or write hdfs://HOST:PORT/…"),
    ("failed to lookup address", "no such name node. Fix: set HADOOP_CONF_DIR, or write hdfs://HOST:PORT/…"),
    ("ParentNotDirectory", "a file is in the way of a directory. Fix: remove it, or name another directory"),
    ("not a directory", "a file is in the way of a directory. Fix: remove it, or name another directory"),
    ("GSSAPI", "no Kerberos credentials to {doing} files. Fix: run kinit"),
    ("SASL", "no Kerberos credentials to {doing} files. Fix: run kinit"),
)
"""Texts of the library's errors, and what is wrong with the input then."""

_REASONS: Final = (
    ("SafeMode", "the name node is in safe mode"),
    ("Connection refused", "the name node cannot be reached"),
    ("timed out", "no answer in time"),
)


def _link(name: str, version: str) -> str:
    """Return the name of the file that follows a version of a file."""
    directory, slash, last = name.rpartition("/")
    return f"{directory}{slash}{_NEXT}{version}.{last}"


def _version(found: FileStatus) -> str:
    return f"{found.modification_time}-{found.length}"
