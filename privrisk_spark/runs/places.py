"""Where a command puts findings that must never be published: a directory it has to itself, or a place in a store."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

from privrisk_spark.storage import directories, ownership, permissions
from privrisk_spark.storage.documents import read, write_json, write_text
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.locks import locked
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.scratch import SCRATCH, clear, sweep
from privrisk_spark.storage.store import RemoteStore
from privrisk_spark.storage.temporary import held_directory, of_this_user

__all__ = ["SPARK_LOG", "DirectoryPlace", "ResultPlace", "StorePlace", "result_place", "slug_of"]

SPARK_LOG: Final = "spark.log"
"""What Spark said of a run that failed, beside its status; the next run there removes it."""

_KEY: Final = "--output"
_STATUS, _IN_STORE = "status", "scratch"
"""Directories of a place in a store: how runs stand, and intermediate results of machines that share no disk."""


def slug_of(run_id: str, output: str) -> str:
    """Return the name of what a run leaves in a vault that may serve several outputs, with runs of one id."""
    return f"{run_id}~{hashlib.sha256(output.encode()).hexdigest()[:8]}"


class ResultPlace(Protocol):
    """A place for the findings of one run after another."""

    @property
    def location(self) -> Location:
        """The place."""

    @property
    def address(self) -> Path | str:
        """The directory, or the URI."""

    @property
    def status(self) -> Path | Location:
        """Where a run says how it stands; see :func:`privrisk_spark.runs.progress.write_status`."""

    @property
    def shared(self) -> Location | None:
        """Where intermediate results lie if workers see none of the driver's disks; None if that is not the place."""

    def below(self, name: str) -> ResultPlace:
        """Return a place in this one."""

    def called(self, name: str) -> str:
        """Return where something in it is to be found, for messages."""

    def check(self) -> None:
        """Refuse a place that other programs or the user filled; change nothing.

        Raises
        ------
        PlaceError
            Naming the place.
        """

    def claim(self, *, make: bool = True) -> None:
        """Make and mark the place; without ``make`` only mark a directory that exists."""

    def check_writable(self) -> None:
        """Refuse a place that this user may not write to; nothing stays of it.

        Raises
        ------
        ConfigError, InputError
            If he may not.
        """

    def held(self, run_id: str) -> AbstractContextManager[Path]:
        """Hold the place, and a new directory of this machine for intermediate results, removed at the end.

        Raises
        ------
        BusyError
            If another run is at work there on this machine.
        """

    def read(self, name: str) -> bytes | None:
        """Return a document, or None."""

    def holds(self, name: str) -> bool:
        """Tell whether there is a directory of this name."""

    def put_text(self, name: str, text: str) -> None:
        """Replace a document, for the owner's eyes only."""

    def put_json(self, name: str, document: Any) -> None:
        """Replace a JSON document; it must be JSON-safe, without NaN and infinities."""

    def put_directory(self, source: Path, name: str) -> None:
        """Put a directory in place of that of an earlier run, which goes even if there is nothing to put there."""


def result_place(output: str, kind: str) -> ResultPlace:
    """Return the place that ``--output`` names; nothing is looked at or made.

    Parameters
    ----------
    kind : str
        What runs keep there, such as "assessments".

    Raises
    ------
    ConfigError
        If it is on a file system that is not available, or holds credentials.
    """
    place = locate(output, key=_KEY)
    return StorePlace(place, kind) if place.remote else DirectoryPlace(Path(place.path), kind)


@dataclass(frozen=True)
class DirectoryPlace:
    """A directory that is local or mounted, and one run's at a time.

    Attributes
    ----------
    path : Path
        Resolved.
    kind : str
        What runs keep there.
    """

    path: Path
    kind: str

    def __str__(self) -> str:
        """Return the path."""
        return str(self.path)

    @property
    def location(self) -> Location:
        """The place."""
        return Location("file", "", str(self.path))

    @property
    def address(self) -> Path:
        """The directory."""
        return self.path

    @property
    def status(self) -> Path:
        """The directory itself."""
        return self.path

    @property
    def shared(self) -> None:
        """None: what workers see of it is found out."""

    def below(self, name: str) -> DirectoryPlace:
        """Return a directory in this one."""
        return DirectoryPlace(self.path / name, self.kind)

    def called(self, name: str) -> str:
        """Return its path."""
        return str(self.path / name)

    def check(self) -> None:
        """Look at its names and its marker."""
        ownership.refuse_foreign(self.location, _KEY, self.kind)

    def claim(self, *, make: bool = True) -> None:
        """Write its marker."""
        ownership.claim(self.location, _KEY, self.kind, make=make)

    def check_writable(self) -> None:
        """Look at the rights of the directory, or of that which it would be made in."""
        permissions.check_usable(self.path, _KEY)

    @contextmanager
    def held(self, run_id: str) -> Iterator[Path]:
        """Hold the directory's lock."""
        self.claim()
        with locked(self.path, _KEY):
            directories.remove(self.path / SPARK_LOG)
            with _scratch(self.path, run_id) as scratch:
                yield scratch

    def read(self, name: str) -> bytes | None:
        """Return a document, or None."""
        return read(self.path / name)

    def holds(self, name: str) -> bool:
        """Tell whether there is a directory of this name."""
        return directories.is_directory(self.path / name)

    def put_text(self, name: str, text: str) -> None:
        """Replace it atomically and durably."""
        write_text(self.path / name, text)

    def put_json(self, name: str, document: Any) -> None:
        """Replace it atomically and durably."""
        write_json(self.path / name, document)

    def put_directory(self, source: Path, name: str) -> None:
        """Close it to others, and rename it."""
        permissions.close(source)
        directories.put_in_place(source, self.path / name)


@dataclass(frozen=True)
class StorePlace:
    """A prefix of an object store. Nobody is kept out of it: of runs at one time each needs a place of its own.

    Attributes
    ----------
    location : Location
        Not of kind ``file``.
    kind : str
        What runs keep there.
    """

    location: Location
    kind: str

    def __str__(self) -> str:
        """Return the URI."""
        return str(self.location)

    @property
    def _store(self) -> RemoteStore:
        return open_remote(self.location)

    @property
    def address(self) -> str:
        """The URI."""
        return str(self.location)

    @property
    def status(self) -> Location:
        """Directory of the states of all runs."""
        return self.location.below(_STATUS)

    @property
    def shared(self) -> Location:
        """A directory beside the findings."""
        return self.location.below(_IN_STORE)

    def below(self, name: str) -> StorePlace:
        """Return a prefix that begins with this one."""
        return StorePlace(self.location.below(name), self.kind)

    def called(self, name: str) -> str:
        """Return its URI."""
        return str(self.location.below(name))

    def check(self) -> None:
        """Look at its names and its marker."""
        ownership.refuse_foreign(self.location, _KEY, self.kind)

    def claim(self, *, make: bool = True) -> None:
        """Write its marker."""
        ownership.claim(self.location, _KEY, self.kind, make=make)

    def check_writable(self) -> None:
        """Write an object, and remove it."""
        probe = f"{_STATUS}/{ownership.probe_name(uuid.uuid4().hex[:16])}"
        self._store.write(probe, b"")
        self._store.remove(probe)

    @contextmanager
    def held(self, run_id: str) -> Iterator[Path]:
        """Hold a directory among this machine's temporary ones, in which nothing stays."""
        path = of_this_user("privrisk-results", hashlib.sha256(str(self).encode()).hexdigest()[:16])
        with held_directory(path, _KEY):
            self.claim()
            with _scratch(path, run_id) as scratch:
                yield scratch

    def read(self, name: str) -> bytes | None:
        """Return a document, or None."""
        try:
            return self._store.read(name).content
        except FileNotFoundError:
            return None

    def holds(self, name: str) -> bool:
        """Tell whether there is anything below the name."""
        return any(True for _ in self._store.entries(name))

    def put_text(self, name: str, text: str) -> None:
        """Replace it."""
        self._store.write(name, text.encode())

    def put_json(self, name: str, document: Any) -> None:
        """Replace it."""
        self.put_text(name, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")

    def put_directory(self, source: Path, name: str) -> None:
        """Remove the objects of an earlier run, so that a reader never takes two runs' for one's, and upload."""
        earlier = [entry.name for entry in self._store.entries(name)]
        if earlier:
            self._store.remove(*earlier)
        for file in directories.files_below(source):
            self._store.upload(f"{name}/{file.relative_to(source).as_posix()}", file)


@contextmanager
def _scratch(directory: Path, run_id: str) -> Iterator[Path]:
    """Make a run's scratch directory in one that is held, remove those of dead runs, and its own at the end."""
    sweep(directory)
    scratch = directory / f"{SCRATCH}{run_id}~{uuid.uuid4().hex[:8]}"
    directories.make(scratch)
    try:
        yield scratch
    finally:
        clear(scratch)
