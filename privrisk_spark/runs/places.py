"""Where a run keeps its files: the places of a release, atomic small files, locks."""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privrisk_spark.errors import BusyError, CheckError, ConfigError, EngineError, Fault
from privrisk_spark.runs import permissions
from privrisk_spark.runs.sealing import verify

HISTORY, REMEMBERED = "history", "release.json"
"""Directory of a vault for what it remembers of its releases, and the document of each."""

SPARK_LOG = "spark.log"
"""What Spark said of a run that failed, beside its status; the next run there removes it."""


def sync(path: Path) -> None:
    """Make what is written of a file, or the names in a directory, survive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(path: Path, text: str, *, published: float | None = None) -> None:
    """Replace a file atomically and durably, for its owner alone.

    Parameters
    ----------
    path : Path
    text : str
    published : float, optional
        The time it is to bear, in seconds since 1970, if everyone may read it.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf-8") as stream:
        os.fchmod(stream.fileno(), permissions.PRIVATE_FILE if published is None else permissions.PUBLIC_FILE)
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    if published is not None:
        os.utime(temporary, (published, published))
    temporary.replace(path)


def write_json(path: Path, document: Any, *, published: float | None = None) -> None:
    """Replace a JSON file as :func:`write_text` does; the document must be JSON-safe, without NaN and infinities."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n", published=published)


@dataclass(frozen=True)
class Workplace:
    """Directories of one run.

    Attributes
    ----------
    root, vault : Path
        Of the policy.
    run_id : str
    attempt : str
        Distinguishes the attempts of one run id: Spark remembers the files it has seen under a path.
    """

    root: Path
    vault: Path
    run_id: str
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def staging(self) -> Path:
        """Where the release is put together."""
        return self.root / f".staging-{self.run_id}~{self.attempt}"

    @property
    def parts(self) -> Path:
        """Directory in which tasks write the release's files before it is known which count; never published."""
        return self.root / f".staging-{self.run_id}~{self.attempt}-parts"

    @property
    def scratch(self) -> Path:
        """Where intermediate results lie; readable by every worker."""
        return self.vault / f".scratch-{self.run_id}~{self.attempt}"

    @property
    def target(self) -> Path:
        """Directory of the release."""
        return self.root / "releases" / self.run_id

    def published(self) -> dict[str, Any] | None:
        """Manifest of this run id's release, or None; the root's manifest is mended if a crash left it behind.

        It is that of the release with the greatest number, of whatever run id.

        Raises
        ------
        CheckError
            If the release is not what its manifest says, or a manifest is damaged.
        """
        current, manifest = _manifest(self.root), _manifest(self.target)
        if manifest is not None:
            verify(manifest, self.target)
        latest = max(self._manifests(), key=_number, default=None)
        if latest is not None and (current is None or _number(current) < _number(latest)):
            write_json(self.root / "manifest.json", latest, published=_business_time(latest))
        return manifest

    def without_manifest(self) -> list[str]:
        """Names of directories beside the releases that are none, as they have no manifest.

        A release gets its manifest before it gets its name, so they are of an earlier version that was stopped in
        between, or somebody else's. As that is not known, they are told of, and never removed.
        """
        return sorted(path.name for path in self._directories() if not (path / "manifest.json").exists())

    def _directories(self) -> list[Path]:
        return [path for path in (self.root / "releases").glob("*") if path.is_dir() and path != self.target]

    def _manifests(self) -> Iterator[dict[str, Any]]:
        """Manifests of all releases; one of another run id that is damaged is none of this run's concern."""
        for directory in [self.target, *self._directories()]:
            with suppress(CheckError):
                found = _manifest(directory)
                if found is not None:
                    yield found

    def recorded_snapshot(self) -> str:
        """Snapshot the vault's summary states for this run, or ``unrecorded`` if a later run replaced it."""
        path = self.vault / "summary.json"
        if path.exists():
            summary = json.loads(path.read_text(encoding="utf-8"))
            if summary.get("run_id") == self.run_id:
                return str(summary["snapshot"])
        return "unrecorded"

    def record_request(self, asked: Mapping[str, str]) -> None:
        """Write to the vault what the run's release was asked for, as digests by name, and where it is."""
        permissions.make_private(self._request.parent, "output.vault")
        write_json(self._request, {"output.path": str(self.root), "asked": dict(asked)})

    def recorded_request(self) -> dict[str, str] | None:
        """Return what :meth:`record_request` wrote; None if the vault knows nothing of this release.

        A vault may serve several outputs, which may have releases of one run id.
        """
        try:
            found = json.loads(self._request.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        asked: dict[str, str] = found["asked"]
        return asked if found["output.path"] == str(self.root) else None

    @property
    def _request(self) -> Path:
        return self.vault / "requests" / f"{self.run_id}.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold output and vault: sweep what dead runs left, make fresh directories, remove them at the end.

        One run at a time works on an output or a vault, so nothing found there can belong to a live one.

        Raises
        ------
        BusyError
            If another process is at work there; running again later helps.
        """
        permissions.make_public(self.root, "output.path")
        permissions.make_private(self.vault, "output.vault")
        with locked(self.root, "output.path"), locked(self.vault, "output.vault"):
            self._sweep()
            self.scratch.mkdir(mode=0o700)
            self.staging.mkdir(mode=0o700)
            self.parts.mkdir(mode=0o700)
            try:
                yield
            finally:
                shutil.rmtree(self.scratch, ignore_errors=True)
                shutil.rmtree(self.staging, ignore_errors=True)
                shutil.rmtree(self.parts, ignore_errors=True)
                permissions.close(self.vault)

    def _sweep(self) -> None:
        for path in [*self.root.glob(".staging-*"), *self.vault.glob(".scratch-*")]:
            shutil.rmtree(path, ignore_errors=True)
        for path in [*self.root.glob(".*.json.*"), *self.vault.glob(".*.json.*"), *self.vault.glob(".report.html.*")]:
            path.unlink(missing_ok=True)
        (self.vault / SPARK_LOG).unlink(missing_ok=True)

    def commit(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make the staged directory the release: its manifest goes in, then it gets its name, then the root's manifest.

        So whatever has the name of a release is one, wherever the run is stopped. Its number is greater than that of
        every release that is there, and than the root's: a run that was stopped may have left the root's behind.

        Everything of it gets the time of the business date: when a file was written, and how long a stage took, depends
        on the table, and no guarantee is about that.
        """
        current = _manifest(self.root)
        numbers = [_number(found) for found in self._manifests()] + ([] if current is None else [_number(current)])
        complete = {"sequence": max(numbers, default=0) + 1, **manifest}
        day = _business_time(manifest)
        if self.target.exists():
            shutil.rmtree(self.target)
        permissions.make_public(self.target.parent, "output.path")
        permissions.open_to_all(self.staging)
        for path in self.staging.rglob("*"):
            os.utime(path, (day, day))
        write_json(self.staging / "manifest.json", complete, published=day)
        for directory in (self.staging / "data", self.staging):
            if directory.is_dir():
                sync(directory)
        self.staging.rename(self.target)
        sync(self.target.parent)
        write_json(self.root / "manifest.json", complete, published=day)
        for directory in (self.target, self.target.parent):
            os.utime(directory, (day, day))
        return complete

    @property
    def remembered(self) -> Path:
        """Where the vault remembers the release; one vault may serve several outputs, with runs of one id."""
        place = hashlib.sha256(str(self.root).encode()).hexdigest()[:8]
        return self.vault / HISTORY / f"{self.run_id}~{place}"

    def remember(self, source: Path, document: Mapping[str, Any]) -> None:
        """Put what later releases must know of this one in the vault, in place of what an earlier attempt left."""
        write_json(source / REMEMBERED, document)
        permissions.make_private(self.remembered.parent, "output.vault")
        if self.remembered.exists():
            shutil.rmtree(self.remembered)
        source.rename(self.remembered)
        sync(self.remembered.parent)

    def swap_into_vault(self, source: Path, name: str) -> None:
        """Put a directory in the vault in place of the one of an earlier run, which goes even if this run has none."""
        target, old = self.vault / name, self.scratch / f"old-{name}"
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.rename(old)
        if source.exists():
            source.rename(target)


def _manifest(directory: Path) -> dict[str, Any] | None:
    path = directory / "manifest.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("sequence"), int):
        raise CheckError(
            f"'{path}' is damaged: it is no manifest of a release. Restore it from a copy; the manifest of the whole "
            "output.path is that of its latest release."
        )
    return found


def _number(manifest: Mapping[str, Any]) -> int:
    return int(manifest["sequence"])


def _business_time(manifest: Mapping[str, Any]) -> float:
    """Start of a release's business date, seconds since 1970."""
    return dt.datetime.combine(dt.date.fromisoformat(manifest["date"]), dt.time(), dt.UTC).timestamp()


@contextmanager
def locked(directory: Path, key: str) -> Iterator[None]:
    """Hold a directory's lock file; a dead process holds none."""
    path = directory / ".lock"
    try:
        lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, permissions.PRIVATE_FILE)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise EngineError(f"{key}: '{directory}' cannot be written ({error.strerror}).") from error
        raise ConfigError([Fault(key, f"must not hold a link named '{path.name}'; remove it")]) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A run that ended meanwhile has unlinked the file; a lock on what is gone keeps nobody out.
            mine = os.path.samestat(os.fstat(lock), path.stat())
        except OSError:
            mine = False
        if not mine:
            raise BusyError(f"{key}: another run is at work on '{directory}'; wait for it, or use another directory.")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(lock)


def local_path(output: str) -> Path:
    """Return ``--output``, resolved.

    Raises
    ------
    ConfigError
        If it is on a remote file system.
    """
    if "://" in output:
        raise ConfigError([Fault("--output", "must be a local or mounted path; remote file systems are not available")])
    return Path(output).resolve()


def check_place(place: Path, *, files: Sequence[str], what: str) -> None:
    """Refuse a directory that holds anything but the files of an earlier run.

    Raises
    ------
    ConfigError
        If it does, or is no directory.
    """
    if not place.exists():
        return
    known = {*files, SPARK_LOG}
    temporary = (".scratch-", *(f".{name.split('.')[0]}." for name in files if "." in name[1:]))
    if not (place.is_dir() and all(path.name in known or path.name.startswith(temporary) for path in place.iterdir())):
        rule = f"has other content than the {what} of an earlier run; name a new directory"
        raise ConfigError([Fault("--output", rule)])


@contextmanager
def held(place: Path, run_id: str) -> Iterator[Path]:
    """Hold the directory, for the owner's eyes only, with a scratch directory that is removed at the end."""
    permissions.make_private(place, "--output")
    with locked(place, "--output"):
        for path in place.glob(".scratch-*"):
            shutil.rmtree(path, ignore_errors=True)
        (place / SPARK_LOG).unlink(missing_ok=True)
        scratch = place / f".scratch-{run_id}~{uuid.uuid4().hex[:8]}"
        scratch.mkdir(mode=0o700)
        try:
            yield scratch
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            permissions.close(place)
