"""Vaults: what must not be published of runs, in a directory or in an object store.

A directory holds what its last run left. Nobody can be kept out of a store, so that there no two runs write one name::

    runs/<run>~<output>/<attempt>/
                              what an attempt left: decisions/, report.html, summary.json, checks.json, contracts/ …,
                              and kept.json, which names the release it was about to publish
    status/<run>.json         how a run stands
    requests/, pins/          what a run was asked for, and which versions of tables it reads
    keys/                     keys that were drawn, until their release is published; created by one, read by all
    charges/                  what the ledger ended in
    history/<run>~<output>/   what later releases must know: release-<digest>.json, the records it names, and
                              published.json, which names the one of them that was published
    metrics/                  what each stage of each run took
    scratch/                  intermediate results, of machines that share no disk
    scratch-elsewhere/        where else a run keeps such
"""

from __future__ import annotations

import hashlib
import json
import logging
import secrets
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from privrisk_spark.errors import EngineError, InputError
from privrisk_spark.runs.places import SPARK_LOG, slug_of
from privrisk_spark.storage import directories, ownership, permissions
from privrisk_spark.storage.documents import read, state_of, sync, write_json
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.locks import locked
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.scratch import SCRATCH, sweep
from privrisk_spark.storage.store import Entry, RemoteStore
from privrisk_spark.storage.temporary import held_directory, of_this_user

__all__ = [
    "HISTORY", "IN_STORE", "PARTS", "PUBLISHED", "REMEMBERED", "STAGING", "DirectoryVault", "StoreVault", "Vault",
    "vault_at",
]  # fmt: skip

HISTORY: Final = "history"
"""Directory of a vault for what it remembers of its releases."""

REMEMBERED, PARTS = "release.json", "records"
"""Of each release: a document, and the directory of its records' parts, where the document names no other."""

PUBLISHED: Final = "published.json"
"""Of each run in a store: which of what its attempts were about to publish was published."""

STAGING: Final = ".staging-"
"""What the names of directories begin with in which a release is put together."""

IN_STORE: Final = "scratch"
"""Directory of a vault in a store for intermediate results."""

_KEY: Final = "output.vault"
_KIND: Final = "vault"
_RUNS, _STATUS, _KEPT, _ELSEWHERE = "runs", "status", "kept.json", "scratch-elsewhere"
_LEFT: Final = (
    "decisions", "classes", "contracts", "unknown_values", "report.html", "checks.json", SPARK_LOG, "summary.json",
)  # fmt: skip
"""What a run leaves in a directory in place of what the one before it left; the last one names the run."""
_OF_ALL: Final = ("metrics",)
"""Directories that runs share: every file has a name of its own."""

_AT_ONCE: Final = 16
_DEAD: Final = 24 * 3600.0
"""Seconds without a new file after which nobody writes to a directory of a run any more."""

_LOG = logging.getLogger(__name__)


class Vault(Protocol):
    """A place of what must not be published, by names whose parts are divided by slashes."""

    @property
    def location(self) -> Location:
        """The place; equal for all its spellings."""

    @property
    def path(self) -> Path:
        """Directory of this machine in which a run that holds the vault puts what is private."""

    @property
    def keys(self) -> Path | RemoteStore:
        """What :mod:`privrisk_spark.runs.keystore` keeps keys in."""

    @property
    def status(self) -> Path | Location:
        """Where runs say how they stand; see :func:`privrisk_spark.runs.progress.write_status`."""

    def check(self) -> None:
        """Refuse a place that other programs or the user filled; change nothing.

        Raises
        ------
        PlaceError
            Naming the place.
        """

    def claim(self, *, make: bool = True) -> None:
        """Make and mark the place; without ``make`` only mark a directory that exists."""

    def held(self, of: str, attempt: str) -> Any:
        """Hold it while an attempt of a run puts its files there.

        Parameters
        ----------
        of : str
            Names the run, and where it publishes.
        """

    def read(self, name: str) -> bytes | None:
        """Return a small document that all runs know, or None."""

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Write such a document; it is there for whoever comes next when this returns."""

    def attempt_at(self, of: str, attempt: str) -> Location:
        """Return where an attempt's files are to be found."""

    def left_at(self, of: str, release: str | None) -> Location | None:
        """Return where the attempt that published a release, by its digest, left its files; None if nobody knows."""

    def keep(self, of: str, attempt: str, release: str) -> None:
        """See to it that all the attempt has put into the directory survives this machine: it is about to publish."""

    def settle(self, of: str, release: str) -> None:
        """Know which release of a run is published."""

    def remember(self, of: str, source: Path, document: Mapping[str, Any]) -> None:
        """Have the vault know what later releases must know of this one, in place of what an earlier attempt said.

        Parameters
        ----------
        of : str
            Of the run.
        source : Path
            Holds :data:`PARTS`.
        document : mapping
            With ``manifest``, the digest of the release.
        """

    def forget(self, of: str) -> None:
        """Remove what a run left, whose release was withdrawn.

        What later releases must know of it stays: what was published may have been read.
        """

    def note_scratch(self, name: str, place: Location) -> None:
        """Know where an attempt keeps intermediate results, should the machine that knows it be lost."""

    def forget_scratch(self, name: str) -> None:
        """Know that there are none any more."""


def vault_at(text: str) -> Vault:
    """Return the vault that a policy's ``output.vault`` names.

    Parameters
    ----------
    text : str
        A path, or a URI of an object store.
    """
    place = locate(text, key=_KEY)
    return StoreVault(place) if place.remote else DirectoryVault(Path(place.path))


@dataclass(frozen=True)
class DirectoryVault:
    """A directory for its owner alone, one run at a time.

    Attributes
    ----------
    path : Path
        Resolved.
    """

    path: Path

    def __str__(self) -> str:
        """Return the path."""
        return str(self.path)

    @property
    def location(self) -> Location:
        """The place."""
        return Location("file", "", str(self.path))

    @property
    def keys(self) -> Path | RemoteStore:
        """The directory."""
        return self.path

    @property
    def status(self) -> Path | Location:
        """The directory itself."""
        return self.path

    def check(self) -> None:
        """Look at its names and its marker."""
        ownership.refuse_foreign(self.location, _KEY, _KIND)

    def claim(self, *, make: bool = True) -> None:
        """Write its marker."""
        ownership.claim(self.location, _KEY, _KIND, make=make)

    @contextmanager
    def held(self, of: str, attempt: str) -> Iterator[None]:  # noqa: ARG002 - as the protocol has it
        """Hold the directory's lock, and sweep what dead runs left."""
        self.claim()
        with locked(self.path, _KEY):
            _sweep(self.path)
            yield

    def read(self, name: str) -> bytes | None:
        """Return a document, or None."""
        return read(self.path / name)

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Replace a document atomically and durably."""
        path = self.path / name
        self.claim()
        permissions.make_private(path.parent, _KEY)
        write_json(path, document)

    def attempt_at(self, of: str, attempt: str) -> Location:  # noqa: ARG002
        """Return the directory."""
        return self.location

    def left_at(self, of: str, release: str | None) -> Location | None:  # noqa: ARG002
        """Return the directory, if the last run was this one."""
        return self.location if self._is_of(of, "summary.json") else None

    def keep(self, of: str, attempt: str, release: str) -> None:
        """Do nothing: what is in the directory is kept."""

    def settle(self, of: str, release: str) -> None:
        """Do nothing: one attempt at a time is at work."""

    def forget(self, of: str) -> None:
        """Remove what the last run left, if that was this one; its name last, so that another call can go on."""
        if self.left_at(of, None) is not None:
            for name in _LEFT:
                directories.remove_whole(self.path / name, _KEY)
        request = f"requests/{of.rpartition('~')[0]}.json"
        if self._is_of(of, request):
            directories.remove(self.path / request)

    def _is_of(self, of: str, name: str) -> bool:
        """Tell whether a document is of a run: several outputs may share the vault, and have runs of one id."""
        run_id, found = of.rpartition("~")[0], json.loads(self.read(name) or b"{}")
        return found.get("run_id", run_id) == run_id and slug_of(run_id, found.get("output.path", "")) == of

    def note_scratch(self, name: str, place: Location) -> None:
        """Do nothing: the attempt's own directory, which stays, has a note."""

    def forget_scratch(self, name: str) -> None:
        """Do nothing."""

    def remember(self, of: str, source: Path, document: Mapping[str, Any]) -> None:
        """Give what is remembered its name once it is whole."""
        target = self.path / HISTORY / of
        write_json(source / REMEMBERED, document)
        permissions.make_private(target.parent, _KEY)
        permissions.close(source)
        directories.put_in_place(source, target)
        sync(target.parent)


@dataclass(frozen=True)
class StoreVault:
    """A prefix of an object store; runs put their files into a directory of this machine first.

    Attributes
    ----------
    location : Location
        Not of kind ``file``.

    Notes
    -----
    Nobody is kept from the store, not even from a run of the same id: attempts have names of their own, and the release
    that is published says which of them counts. On one machine one run at a time works on a vault, as they share a
    directory, in which nothing stays.
    """

    location: Location
    _kept: dict[str, tuple[int, int]] = field(default_factory=dict, repr=False, compare=False)

    def __str__(self) -> str:
        """Return the URI."""
        return str(self.location)

    @property
    def path(self) -> Path:
        """A directory among this machine's temporary ones, for its owner alone."""
        name = hashlib.sha256(str(self.location).encode()).hexdigest()[:16]
        return of_this_user("privrisk-vault", name)

    @property
    def keys(self) -> Path | RemoteStore:
        """The store."""
        return self._store

    @property
    def _store(self) -> RemoteStore:
        return open_remote(self.location)

    @property
    def status(self) -> Path | Location:
        """Directory of the states of all runs."""
        return self.location.below(_STATUS)

    def check(self) -> None:
        """Look at its names and its marker."""
        ownership.refuse_foreign(self.location, _KEY, _KIND)

    def claim(self, *, make: bool = True) -> None:
        """Write its marker."""
        ownership.claim(self.location, _KEY, _KIND, make=make)

    @contextmanager
    def held(self, of: str, attempt: str) -> Iterator[None]:
        """Find out that the store can be written, sweep what dead runs left, and keep what this one puts there."""
        path = self.path
        with held_directory(path, _KEY):
            self.claim()
            _sweep(path)
            self._wipe(path)
            self._sweep_store()
            try:
                yield
            finally:
                # All that a release needs is there already when it is published.
                try:
                    self._put(of, attempt)
                except (EngineError, InputError, OSError) as error:
                    _LOG.warning("output.vault: not all that the run leaves could be kept. %s", error)
                self._wipe(path)

    def read(self, name: str) -> bytes | None:
        """Return a document, or None."""
        with suppress(FileNotFoundError):
            return self._store.read(name).content
        return None

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Replace a document."""
        self._store.write(name, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode())

    def attempt_at(self, of: str, attempt: str) -> Location:
        """Return the attempt's directory."""
        return self.location.below(f"{_RUNS}/{of}/{attempt}")

    def left_at(self, of: str, release: str | None) -> Location | None:
        """Return the directory of an attempt that was about to publish what was published."""
        for attempt, entries in sorted(self._attempts(of).items()):
            if release is not None and _KEPT in entries:
                said = json.loads(self.read(f"{_RUNS}/{of}/{attempt}/{_KEPT}") or b"{}")
                if said.get("release") == release:
                    return self.attempt_at(of, attempt)
        return None

    def keep(self, of: str, attempt: str, release: str) -> None:
        """Put the directory's files into the store, and last of all what release they are of."""
        self._put(of, attempt)
        self.write(f"{_RUNS}/{of}/{attempt}/{_KEPT}", {"release": release})

    def settle(self, of: str, release: str) -> None:
        """Say which of what attempts remembered is published, and remove what attempts that died left."""
        if any(True for _ in self._store.entries(f"{HISTORY}/{of}")):
            self.write(f"{HISTORY}/{of}/{PUBLISHED}", {"release": release})
        now = self._now()
        for attempt, entries in self._attempts(of).items():
            if _KEPT not in entries and now - max(entries.values()) > _DEAD:
                self._store.remove(*(f"{_RUNS}/{of}/{attempt}/{name}" for name in entries))

    def remember(self, of: str, source: Path, document: Mapping[str, Any]) -> None:
        """Put the records up, and then the document that names them: attempts never mix theirs."""
        parts = f"{PARTS}-{secrets.token_hex(8)}"
        files = directories.files_below(source / PARTS)
        self._upload({f"{HISTORY}/{of}/{parts}/{path.name}": path for path in files})
        name = REMEMBERED.replace(".", f"-{document['manifest'][:16]}.")
        self.write(f"{HISTORY}/{of}/{name}", {**document, PARTS: parts})

    def forget(self, of: str) -> None:
        """Remove what all attempts of the run left."""
        log = f"{_STATUS}/{of.rpartition('~')[0]}.{SPARK_LOG}"
        self._store.remove(log, *(entry.name for entry in self._store.entries(f"{_RUNS}/{of}")))

    def note_scratch(self, name: str, place: Location) -> None:
        """Write it down, if it is not in the vault itself."""
        if not place.lies_in(self.location):
            self.write(f"{_ELSEWHERE}/{name}.json", {"scratch": str(place)})

    def forget_scratch(self, name: str) -> None:
        """Remove the note."""
        self._store.remove(f"{_ELSEWHERE}/{name}.json")

    def _attempts(self, of: str) -> dict[str, dict[str, float]]:
        """Of each attempt of a run, its files with the times they were written."""
        found: dict[str, dict[str, float]] = {}
        for entry in self._store.entries(f"{_RUNS}/{of}"):
            attempt, _, name = entry.name.removeprefix(f"{_RUNS}/{of}/").partition("/")
            found.setdefault(attempt, {})[name] = entry.modified
        return found

    def _put(self, of: str, attempt: str) -> None:
        """Upload what is new or other than before."""
        files: dict[str, Path] = {}
        for path in directories.files_below(self.path):
            name = path.relative_to(self.path).as_posix()
            if not name.startswith(".") and not directories.is_link(path):
                first = name.partition("/")[0]
                files[name if first in _OF_ALL else f"{_RUNS}/{of}/{attempt}/{name}"] = path
        states = {name: state_of(path) for name, path in files.items()}
        known = {name: (state.size, state.modified_ns) for name, state in states.items() if state is not None}
        self._upload({name: path for name, path in sorted(files.items()) if self._kept.get(name) != known[name]})
        self._kept.update(known)

    def _upload(self, files: Mapping[str, Path]) -> None:
        store = self._store
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done in [pool.submit(store.upload, name, path) for name, path in files.items()]:
                done.result()

    def _now(self) -> float:
        """The time by the store's clock, which is that of its entries; the store can be written."""
        probe = ownership.probe_name(secrets.token_hex(8))
        self._store.write(probe, b"")
        found = self._store.find(probe)
        self._store.remove(probe)
        return time.time() if found is None else found.modified

    def _sweep_store(self) -> None:
        """Remove what nobody wrote to for a day: intermediate results, records no document names, logs of Spark."""
        now = self._now()
        held: dict[str, list[Entry]] = {}
        for entry in [*self._store.entries(IN_STORE), *self._store.entries(HISTORY), *self._store.entries(_STATUS)]:
            parts = entry.name.split("/")
            if parts[0] == HISTORY and (len(parts) < 4 or not parts[2].startswith(f"{PARTS}-")):
                continue
            if parts[0] == _STATUS and not entry.name.endswith(SPARK_LOG):
                continue
            held.setdefault("/".join(parts[: 3 if parts[0] == HISTORY else 2]), []).append(entry)
        for directory, entries in held.items():
            if now - max(entry.modified for entry in entries) > _DEAD and not self._named(directory):
                self._store.remove(*(entry.name for entry in entries))
        for note in self._store.entries(_ELSEWHERE):
            if now - note.modified > _DEAD:
                self._sweep_elsewhere(note.name)

    def _sweep_elsewhere(self, note: str) -> None:
        """Remove what a dead run left in another store, which is told again by the next run if that fails."""
        try:
            place = locate(json.loads(self.read(note) or b"{}")["scratch"], key="run.scratch")
            if not place.remote or f"{place.path.rpartition('/')[2]}.json" != note.rpartition("/")[2].lstrip("."):
                raise InputError(f"'{note}' names something else than the run's own directory; remove it.")
            entries = list(open_remote(place).entries())
            if entries and StoreVault(place)._now() - max(entry.modified for entry in entries) <= _DEAD:
                return
            open_remote(place).clear()
            self._store.remove(note)
        except (EngineError, InputError, OSError, ValueError, KeyError, TypeError) as error:
            _LOG.warning("output.vault: what a run that died left in run.scratch could not be removed. %s", error)

    def _named(self, directory: str) -> bool:
        """Whether a document names a directory of records; one that is damaged may."""
        above, _, name = directory.rpartition("/")
        if not directory.startswith(f"{HISTORY}/"):
            return False
        documents = [entry.name for entry in self._store.entries(above) if entry.name.endswith(".json")]
        try:
            return any(json.loads(self.read(one) or b"{}").get(PARTS) == name for one in documents)
        except (ValueError, AttributeError):
            return True

    @staticmethod
    def _wipe(path: Path) -> None:
        """Remove all but notes of what a store did not remove yet, and the lock."""
        for name in directories.names_in(path):
            one = path / name
            of_a_run = name.startswith(SCRATCH) and directories.is_directory(one) and not directories.is_link(one)
            if name != ".lock" and not of_a_run:
                directories.remove(one)


def _sweep(path: Path) -> None:
    sweep(path)
    directories.sweep(path, f"{STAGING}*", ".*.json.*", ".report.html.*", SPARK_LOG)
