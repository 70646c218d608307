"""Vaults: what must not be published of runs, in a directory or in an object store.

A directory holds what its last run left. Nobody can be kept out of a store, so that there no two runs write one name::

    runs/<run>~<output>/      what a run left: decisions/, report.html, summary.json, checks.json, contracts/ …
    status/<run>.json         how a run stands
    requests/, pins/          what a run was asked for, and which versions of tables it reads
    keys/                     keys that were drawn, until their release is published; created by one, read by all
    charges/                  what the ledger ended in
    history/<run>~<output>/   what later releases must know: release.json, and the records it names
    metrics/                  what each stage of each run took
    scratch/                  intermediate results, of machines that share no disk
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from privrisk_spark.errors import ConfigError, EngineError, Fault, InputError
from privrisk_spark.runs import permissions
from privrisk_spark.runs.places import SPARK_LOG, locked, sync, write_json
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.objects import ObjectStore, opened
from privrisk_spark.storage.scratch import SCRATCH, sweep

__all__ = [
    "HISTORY", "IN_STORE", "PARTS", "REMEMBERED", "STAGING", "DirectoryVault", "StoreVault", "Vault", "vault_at",
]  # fmt: skip

HISTORY: Final = "history"
"""Directory of a vault for what it remembers of its releases."""

REMEMBERED, PARTS = "release.json", "records"
"""Of each release: a document, and the directory of its records' parts, where the document names no other."""

STAGING: Final = ".staging-"
"""What the names of directories begin with in which a release is put together."""

IN_STORE: Final = "scratch"
"""Directory of a vault in a store for intermediate results."""

_KEY: Final = "output.vault"
_RUNS, _STATUS = "runs", "status"
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
    def keys(self) -> Path | ObjectStore:
        """What :mod:`privrisk_spark.runs.keystore` keeps keys in."""

    @property
    def status(self) -> Path | Location:
        """Where runs say how they stand; see :func:`privrisk_spark.runs.progress.write_status`."""

    def held(self, of: str) -> Any:
        """Hold it while a run puts its files there; ``of`` names what the run leaves, as :meth:`left` is asked."""

    def read(self, name: str) -> bytes | None:
        """Return a small document that all runs know, or None."""

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Write such a document; it is there for whoever comes next when this returns."""

    def left_at(self, of: str) -> Location:
        """Return where a run left its files."""

    def left(self, of: str, name: str) -> bytes | None:
        """Return a small file that a run left, or None."""

    def keep(self, of: str) -> None:
        """See to it that all the run has put into the directory survives this machine; nothing else it left stays."""

    def remember(self, of: str, source: Path, document: Mapping[str, Any]) -> None:
        """Have the vault know what later releases must know of this one, in place of what an earlier attempt said.

        Parameters
        ----------
        of : str
            Of the run.
        source : Path
            Holds :data:`PARTS`.
        document : mapping
        """


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
    def keys(self) -> Path | ObjectStore:
        """The directory."""
        return self.path

    @property
    def status(self) -> Path | Location:
        """The directory itself."""
        return self.path

    @contextmanager
    def held(self, of: str) -> Iterator[None]:  # noqa: ARG002 - as the protocol has it
        """Hold the directory's lock, and sweep what dead runs left."""
        permissions.make_private(self.path, _KEY)
        with locked(self.path, _KEY):
            _sweep(self.path)
            try:
                yield
            finally:
                permissions.close(self.path)

    def read(self, name: str) -> bytes | None:
        """Return a document, or None."""
        try:
            return (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Replace a document atomically and durably."""
        path = self.path / name
        permissions.make_private(path.parent, _KEY)
        write_json(path, document)

    def left_at(self, of: str) -> Location:  # noqa: ARG002
        """Return the directory: it holds what the last run left."""
        return self.location

    def left(self, of: str, name: str) -> bytes | None:  # noqa: ARG002
        """Return a file the last run left, or None."""
        return self.read(name)

    def keep(self, of: str) -> None:
        """Do nothing: what is in the directory is kept."""

    def remember(self, of: str, source: Path, document: Mapping[str, Any]) -> None:
        """Give what is remembered its name once it is whole."""
        target = self.path / HISTORY / of
        write_json(source / REMEMBERED, document)
        permissions.make_private(target.parent, _KEY)
        if target.exists():
            shutil.rmtree(target)
        source.rename(target)
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
    Nobody is kept from the store. Runs of one id make the same files; others have other names. On one machine one run
    at a time works on a vault, as they share a directory, in which nothing stays.
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
        return Path(tempfile.gettempdir()).resolve() / f"privrisk-vault-{os.geteuid()}-{name}"

    @property
    def keys(self) -> Path | ObjectStore:
        """The store."""
        return self._store

    @property
    def _store(self) -> ObjectStore:
        return opened(self.location)

    @property
    def status(self) -> Path | Location:
        """Directory of the states of all runs."""
        return self.location.below(_STATUS)

    @contextmanager
    def held(self, of: str) -> Iterator[None]:
        """Find out that the store can be written, sweep what dead runs left, and keep what this one puts there."""
        path = self.path
        if path.is_symlink():
            raise ConfigError([Fault(_KEY, f"works in '{path}' on this machine, where a link is; remove it")])
        permissions.make_private(path, _KEY)
        with locked(path, _KEY):
            _sweep(path)
            self._wipe(path)
            self._store.write(".reach", b"")
            self._store.remove(".reach")
            self._sweep_store()
            try:
                yield
                self._put(of)
            except BaseException:
                try:
                    self._put(of)
                except (EngineError, InputError, OSError) as error:
                    _LOG.warning("output.vault: not all that the run leaves could be kept. %s", error)
                raise
            finally:
                self._wipe(path)

    def read(self, name: str) -> bytes | None:
        """Return a document, or None."""
        with suppress(FileNotFoundError):
            return self._store.read(name).content
        return None

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Replace a document."""
        self._store.write(name, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False).encode())

    def left_at(self, of: str) -> Location:
        """Return the directory of the run."""
        return self.location.below(f"{_RUNS}/{of}")

    def left(self, of: str, name: str) -> bytes | None:
        """Return a file of the run, or None."""
        return self.read(f"{_RUNS}/{of}/{name}")

    def keep(self, of: str) -> None:
        """Put the directory's files into the store; what an earlier attempt left of others goes."""
        names = self._put(of)
        stale = [one.name for one in self._store.entries(f"{_RUNS}/{of}") if one.name not in names]
        if stale:
            self._store.remove(*stale)

    def remember(self, of: str, source: Path, document: Mapping[str, Any]) -> None:
        """Put the records up, and then the document that names them: attempts never mix theirs."""
        parts = f"{PARTS}-{secrets.token_hex(8)}"
        files = sorted(path for path in (source / PARTS).iterdir() if path.is_file())
        self._upload({f"{HISTORY}/{of}/{parts}/{path.name}": path for path in files})
        self.write(f"{HISTORY}/{of}/{REMEMBERED}", {**document, PARTS: parts})

    def _put(self, of: str) -> set[str]:
        """Upload what is new or other than before; returns the names of all."""
        files: dict[str, Path] = {}
        for path in self.path.rglob("*"):
            name = path.relative_to(self.path).as_posix()
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                first = name.partition("/")[0]
                files[name if first in _OF_ALL else f"{_RUNS}/{of}/{name}"] = path
        known = {name: (path.stat().st_size, path.stat().st_mtime_ns) for name, path in files.items()}
        self._upload({name: path for name, path in sorted(files.items()) if self._kept.get(name) != known[name]})
        self._kept.update(known)
        return set(files)

    def _upload(self, files: Mapping[str, Path]) -> None:
        store = self._store
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done in [pool.submit(store.upload, name, path) for name, path in files.items()]:
                done.result()

    def _sweep_store(self) -> None:
        """Remove intermediate results, and records that no document names, to which nothing was added for a day."""
        newest: dict[str, float] = {}
        held: dict[str, list[str]] = {}
        for entry in [*self._store.entries(IN_STORE), *self._store.entries(HISTORY)]:
            first, *inner = entry.name.split("/")
            if first == HISTORY and (len(inner) < 3 or not inner[1].startswith(f"{PARTS}-")):
                continue
            directory = "/".join(entry.name.split("/")[: 2 if first == IN_STORE else 3])
            newest[directory] = max(newest.get(directory, 0.0), entry.modified)
            held.setdefault(directory, []).append(entry.name)
        for directory, modified in newest.items():
            if time.time() - modified > _DEAD and not self._named(directory):
                self._store.remove(*held[directory])

    def _named(self, directory: str) -> bool:
        """Whether a document names a directory of records; one that is damaged may."""
        above, _, name = directory.rpartition("/")
        if not directory.startswith(f"{HISTORY}/"):
            return False
        content = self.read(f"{above}/{REMEMBERED}")
        try:
            return content is not None and json.loads(content).get(PARTS) == name
        except (ValueError, AttributeError):
            return True

    @staticmethod
    def _wipe(path: Path) -> None:
        """Remove all but notes of what a store did not remove yet, and the lock."""
        for one in path.iterdir():
            if one.is_dir() and not one.is_symlink():
                if not one.name.startswith(SCRATCH):
                    shutil.rmtree(one, ignore_errors=True)
            elif one.name != ".lock":
                one.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    sweep(path)
    for one in path.glob(f"{STAGING}*"):
        shutil.rmtree(one, ignore_errors=True)
    for one in [*path.glob(".*.json.*"), *path.glob(".report.html.*")]:
        one.unlink(missing_ok=True)
    (path / SPARK_LOG).unlink(missing_ok=True)
