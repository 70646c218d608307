"""Directories of this machine for a while: for their owner alone, and gone when nobody needs them."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.storage.locks import locked
from privrisk_spark.storage.permissions import make_private

__all__ = ["PrivateDirectory", "held_directory", "of_this_user", "temporary_root"]


class PrivateDirectory:
    """A temporary directory only its owner can enter (mode 0700), removed with the last object that refers to this one.

    Attributes
    ----------
    path : Path
    """

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="privrisk-")).resolve()
        self._remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def close(self) -> None:
        """Remove the directory, now and not again."""
        self._remove()


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked process has no say in it
        shutil.rmtree(path, ignore_errors=True)


def temporary_root() -> Path:
    """Return the system's directory for what does not stay."""
    return Path(tempfile.gettempdir())


def of_this_user(kind: str, name: str) -> Path:
    """Return a place among what does not stay that every process of this user finds again; nothing is made.

    Parameters
    ----------
    kind : str
        What it is for.
    name : str
        Which one.
    """
    return temporary_root().resolve() / f"{kind}-{os.geteuid()}-{name}"


@contextmanager
def held_directory(path: Path, key: str) -> Iterator[None]:
    """Make and lock a private directory; it is removed at the end if nothing is left in it.

    Parameters
    ----------
    path : Path
        As :func:`of_this_user` returns it.
    key : str
        Of the policy or the command, for messages.

    Raises
    ------
    ConfigError
        If there is a link in its place, or it belongs to another user.
    BusyError
        If another process holds it.
    """
    if path.is_symlink():
        raise ConfigError([Fault(key, f"works in '{path}' on this machine, where a link is; remove it")])
    make_private(path, key)
    try:
        with locked(path, key):
            yield
    finally:
        with suppress(OSError):  # not empty: another process holds it now, or notes are left in it
            path.rmdir()
