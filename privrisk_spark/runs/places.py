"""Directories a run has to itself: atomic small files, locks, and what may lie where a command writes."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privrisk_spark.errors import BusyError, ConfigError, EngineError, Fault
from privrisk_spark.runs import permissions
from privrisk_spark.storage.scratch import SCRATCH, clear, sweep

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
    temporary = (SCRATCH, *(f".{name.split('.')[0]}." for name in files if "." in name[1:]))
    if not (place.is_dir() and all(path.name in known or path.name.startswith(temporary) for path in place.iterdir())):
        rule = f"has other content than the {what} of an earlier run; name a new directory"
        raise ConfigError([Fault("--output", rule)])


@contextmanager
def held(place: Path, run_id: str) -> Iterator[Path]:
    """Hold the directory, for the owner's eyes only, with a scratch directory that is removed at the end."""
    permissions.make_private(place, "--output")
    with locked(place, "--output"):
        sweep(place)
        (place / SPARK_LOG).unlink(missing_ok=True)
        scratch = place / f"{SCRATCH}{run_id}~{uuid.uuid4().hex[:8]}"
        scratch.mkdir(mode=0o700)
        try:
            yield scratch
        finally:
            clear(scratch)
            permissions.close(place)
