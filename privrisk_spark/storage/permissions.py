"""Who may read what a run leaves: everyone what is published, its owner alone all else, whatever the umask says."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from privrisk_spark.errors import ConfigError, EngineError, Fault

PRIVATE_FILE = 0o600
PUBLIC_FILE = 0o644
_PRIVATE_DIRECTORY = 0o700
_PUBLIC_DIRECTORY = 0o755


def make_private(directory: Path, key: str) -> None:
    """Make a directory that its owner alone may enter, or take that right from others.

    Parameters
    ----------
    key : str
        Of the policy or the command, for messages.

    Raises
    ------
    ConfigError
        If it belongs to somebody else, or there is a file in its place.
    EngineError
        If it cannot be made.
    """
    with _usable(directory, key):
        directory.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_DIRECTORY)
    rule = f"must be a directory of the user who runs this: others can read '{directory}'. Name another one"
    try:
        # As root, chmod succeeds in a directory whose owner can give the right back.
        if directory.stat().st_uid != os.geteuid():
            raise ConfigError([Fault(key, f"{rule}, or change its owner")])
        directory.chmod(_PRIVATE_DIRECTORY)
    except PermissionError:
        raise ConfigError([Fault(key, rule)]) from None


def make_public(directory: Path, key: str) -> None:
    """Make a directory that everyone may read, and those it lies in; one that is there keeps its rights.

    Parameters
    ----------
    key : str
        Of the policy, for messages.

    Raises
    ------
    ConfigError
        If there is a file in its place.
    EngineError
        If it cannot be made.
    """
    if directory.is_dir():
        return
    make_public(directory.parent, key)
    with _usable(directory, key):
        directory.mkdir(exist_ok=True)
        directory.chmod(_PUBLIC_DIRECTORY)


def check_usable(directory: Path, key: str) -> None:
    """Refuse a place where no directory can be made, or written to; nothing is made.

    Parameters
    ----------
    key : str
        Of the policy or the command, for messages.

    Raises
    ------
    ConfigError
        If there is a file in its place, or nobody may write there.
    """
    there = directory
    while not os.path.lexists(there):
        there = there.parent
    if not there.is_dir():
        raise ConfigError([Fault(key, f"must be a directory; there is a file in the way of '{directory}'")])
    if not os.access(there, os.W_OK | os.X_OK):
        rule = f"must be where this user may write, and '{there}' is not; name another directory, or change its rights"
        raise ConfigError([Fault(key, rule)])


@contextmanager
def _usable(directory: Path, key: str) -> Iterator[None]:
    try:
        yield
    except (FileExistsError, NotADirectoryError):
        raise ConfigError([Fault(key, f"must be a directory; there is a file in the way of '{directory}'")]) from None
    except OSError as error:
        raise EngineError(f"{key}: '{directory}' cannot be made ({error.strerror}).") from error


def close(directory: Path) -> None:
    """Take from others what they may do with a directory and all in it."""
    _set(directory, of_directories=_PRIVATE_DIRECTORY, of_files=PRIVATE_FILE)


def open_to_all(directory: Path) -> None:
    """Let everyone read a directory and all in it."""
    _set(directory, of_directories=_PUBLIC_DIRECTORY, of_files=PUBLIC_FILE)


def _set(directory: Path, *, of_directories: int, of_files: int) -> None:
    for path in _tree(directory):
        # What a link points to is not ours; what vanishes needs no rights.
        if not path.is_symlink():
            with suppress(FileNotFoundError):
                path.chmod(of_directories if path.is_dir() else of_files)


def _tree(directory: Path) -> Iterator[Path]:
    """All in a directory, itself last: who opens it to others finds all in it open then."""
    yield from directory.rglob("*")
    yield directory
