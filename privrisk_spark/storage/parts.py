"""Directories of parts: files that tasks write once under names nobody else has, and other tasks or the driver read.

A part counts if the task that wrote it succeeded and said so, through Spark; what else lies in a directory is never
read. Hence nothing must be locked, and a directory may be anything that all tasks reach: one on a mounted file system,
whose files are mapped where they are, or one in an object store, whose files each machine fetches once.
"""

from __future__ import annotations

import atexit
import fcntl
import hashlib
import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_remote

__all__ = ["LocalParts", "ObjectParts", "PartDirectory", "keep_under"]


@dataclass(frozen=True)
class LocalParts:
    """A directory on a file system that driver and tasks mount at the same path."""

    root: str

    def __str__(self) -> str:
        """Return the path."""
        return self.root

    def below(self, name: str) -> LocalParts:
        """Return a new, empty directory in this one."""
        path = os.path.join(self.root, name)
        os.mkdir(path)
        return LocalParts(path)

    @contextmanager
    def writing(self, name: str) -> Iterator[str]:
        """Give the path to write a part to."""
        yield os.path.join(self.root, name)

    def path(self, name: str) -> str:
        """Return the path to read a part from."""
        return os.path.join(self.root, name)

    def take(self, names: Iterable[str], target: Path) -> None:
        """Move parts to a local directory made for them."""
        target.mkdir()
        for name in names:
            Path(self.root, name).rename(target / name)

    def reached(self, name: str) -> bytes:
        """Read a small part, or fail soon."""
        return Path(self.root, name).read_bytes()

    def there(self) -> bool:
        """Tell whether it has not been removed."""
        return os.path.exists(self.root)

    def remove(self) -> None:
        """Remove it with all that is in it, as far as that is possible."""
        shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True)
class ObjectParts:
    """A directory in an object store, with a copy on each machine of what was written or read there.

    Notes
    -----
    Copies lie in Spark's local directory, which goes when the application ends; a process that is none of Spark's has
    one of its own, removed when it ends. They are for their owner alone, and held against the SHA-256 of the part.
    """

    location: Location

    def __str__(self) -> str:
        """Return the URI."""
        return str(self.location)

    def below(self, name: str) -> ObjectParts:
        """Return a directory in this one; a store needs none to be made."""
        return ObjectParts(self.location.below(name))

    @contextmanager
    def writing(self, name: str) -> Iterator[str]:
        """Give a path to write a part to, which is stored once the block ends without an error."""
        held = self._held()
        draft = os.path.join(held, f".{secrets.token_hex(8)}")
        try:
            yield draft
            open_remote(self.location).upload(name, Path(draft))
            os.replace(draft, os.path.join(held, name))
        finally:
            if os.path.exists(draft):
                os.unlink(draft)

    def path(self, name: str) -> str:
        """Return the path of this machine's copy, fetched if there is none."""
        held = self._held()
        path = os.path.join(held, name)
        if os.path.exists(path):
            return path
        # Of several tasks that want it, one fetches it.
        lock = os.open(os.path.join(held, f".{name}.lock"), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(path):
                draft = Path(held, f".{secrets.token_hex(8)}")
                try:
                    open_remote(self.location).download(name, draft)
                    draft.rename(path)
                finally:
                    draft.unlink(missing_ok=True)
        finally:
            os.close(lock)
        return path

    def take(self, names: Iterable[str], target: Path) -> None:
        """Fetch parts into a local directory made for them."""
        target.mkdir()
        for name in names:
            open_remote(self.location).download(name, target / name)

    def reached(self, name: str) -> bytes:
        """Read a small part from the store, or fail soon."""
        return open_remote(self.location, retry_seconds=_SOON).read(name).content

    def there(self) -> bool:
        """Tell whether it has not been removed, as far as this machine knows."""
        return os.path.exists(os.path.join(_root(), self._name()))

    def remove(self) -> None:
        """Remove it with all that is in it, and this machine's copies.

        Raises
        ------
        StorageError or InputError
            If the store does not remove, though asked for a minute; the copies are gone then too.
        """
        removed = str(self.location)
        for held in os.listdir(_root()):
            marked = os.path.join(_root(), held, _NAME)
            if os.path.exists(marked) and f"{Path(marked).read_text(encoding='utf-8')}/".startswith(f"{removed}/"):
                shutil.rmtree(os.path.join(_root(), held), ignore_errors=True)
        store = open_remote(self.location, retry_seconds=_AT_THE_END)
        store.clear()

    def _name(self) -> str:
        return hashlib.sha256(str(self.location).encode()).hexdigest()[:32]

    def _held(self) -> str:
        path = os.path.join(_root(), self._name())
        if not os.path.isdir(path):
            os.makedirs(path, mode=0o700, exist_ok=True)
            Path(path, _NAME).write_text(str(self.location), encoding="utf-8")
        return path


PartDirectory = LocalParts | ObjectParts
"""What stages hand on as the place of parts."""

_SOON = 5.0
"""Seconds in which a store must answer a process that has never reached it."""

_AT_THE_END = 60.0
"""Seconds in which a store must answer who wants nothing of it but to remove."""

_NAME = ".of"
"""File of a copy that says of which directory it is."""


def keep_under(directory: Path) -> None:
    """Let this process keep its copies in a directory, which the caller removes."""
    _KEPT[os.getpid()] = str(directory)


_KEPT: dict[int, str] = {}


def _root() -> str:
    """Directory of this process's copies, made for it."""
    with _MAKING:  # tasks of the embedded engine are threads of one process
        return _made_root()


def _made_root() -> str:
    if os.getpid() not in _ROOTS:
        # All of Spark's workers of an application on this machine are told the same directory.
        place = _KEPT.get(os.getpid()) or os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0].strip()
        if place and os.path.isdir(place):
            path = os.path.join(place, f"privrisk-parts-{os.geteuid()}")
            os.makedirs(path, mode=0o700, exist_ok=True)
        else:
            path = tempfile.mkdtemp(prefix="privrisk-parts-")
            atexit.register(shutil.rmtree, path, ignore_errors=True)
        _ROOTS[os.getpid()] = path
    return _ROOTS[os.getpid()]


_ROOTS: dict[int, str] = {}
_MAKING = threading.Lock()
