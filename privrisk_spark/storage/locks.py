"""Locks of directories of this machine: held by a process, given up by the system when it ends."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from privrisk_spark.errors import BusyError, ConfigError, EngineError, Fault
from privrisk_spark.storage.permissions import PRIVATE_FILE

__all__ = ["LOCK", "is_locked", "locked", "taken"]

LOCK: Final = ".lock"


@contextmanager
def locked(directory: Path, key: str) -> Iterator[None]:
    """Hold a directory's lock file; a dead process holds none.

    Parameters
    ----------
    directory : Path
        It is there.
    key : str
        Of the policy or the command, for messages.

    Raises
    ------
    BusyError
        If another process holds it; running again later helps.
    ConfigError, EngineError
        If there is a link in its place, or it cannot be made.
    """
    path = directory / LOCK
    try:
        lock = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, PRIVATE_FILE)
    except OSError as error:
        if error.errno == errno.ENOENT:  # a run that has ended removed the directory meanwhile
            raise BusyError(f"{key}: another run was at work on '{directory}'; run again.") from None
        if error.errno != errno.ELOOP:
            raise EngineError(f"{key}: '{directory}' cannot be written ({error.strerror}).") from error
        raise ConfigError([Fault(key, f"must not hold a link named '{path.name}'; remove it")]) from None
    try:
        try:
            # A run that ended meanwhile has unlinked the file; a lock on what is gone keeps nobody out.
            mine = taken(lock) and os.path.samestat(os.fstat(lock), path.stat())
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


def is_locked(directory: Path) -> bool:
    """Tell whether a process holds the directory by :func:`locked`."""
    try:
        with (directory / LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def taken(handle: int) -> bool:
    """Lock an open file for this process, and tell whether nobody else had."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
