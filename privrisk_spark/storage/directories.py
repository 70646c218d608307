"""Directories of this machine: what is in them, made, swept, and put in place of each other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from privrisk_spark.errors import EngineError

__all__ = [
    "all_below", "directories_below", "files_below", "is_directory", "is_file", "is_link", "is_there", "make",
    "make_missing", "make_plainly", "move", "names_in", "put_in_place", "remove", "remove_whole", "resolved",
    "set_times", "sweep",
]  # fmt: skip

_OWNER: Final = 0o700


def resolved(path: str | Path) -> Path:
    """Return where a path leads, absolute and with links followed; it need not be there."""
    return Path(path).resolve()


def is_there(path: Path) -> bool:
    """Tell whether there is anything of this name, links followed."""
    return path.exists()


def is_directory(path: Path) -> bool:
    """Tell whether there is a directory, links followed."""
    return path.is_dir()


def is_file(path: Path) -> bool:
    """Tell whether there is a file, links followed."""
    return path.is_file()


def is_link(path: Path) -> bool:
    """Tell whether there is a link, whatever it leads to."""
    return path.is_symlink()


def names_in(directory: Path) -> list[str]:
    """Names of all that lies in a directory, ascending; empty where there is none. Raises OSError if it is closed."""
    try:
        return sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []


def files_below(directory: Path) -> Iterator[Path]:
    """Files in a directory and in those below it, ascending by path; links to files are files."""
    yield from (path for path in sorted(directory.rglob("*")) if path.is_file())


def all_below(directory: Path) -> Iterator[Path]:
    """All that is no directory in a directory and in those below it, ascending by path: links and pipes, too."""
    yield from (path for path in sorted(directory.rglob("*")) if path.is_symlink() or not path.is_dir())


def directories_below(directory: Path) -> Iterator[Path]:
    """Directories in a directory and in those below it, ascending by path."""
    yield from (path for path in sorted(directory.rglob("*")) if path.is_dir())


def make(directory: Path) -> None:
    """Make a directory that is not there, for its owner alone."""
    directory.mkdir(mode=_OWNER)


def make_missing(directory: Path) -> None:
    """Make a directory and those it lies in, as far as they are missing, for their owner alone."""
    missing = []
    while not directory.exists():
        missing.append(directory)
        directory = directory.parent
    for one in reversed(missing):
        one.mkdir(mode=_OWNER, exist_ok=True)


def make_plainly(directory: Path) -> None:
    """Make a directory and those it lies in, as far as they are missing, for whom the umask says."""
    directory.mkdir(parents=True, exist_ok=True)


def move(source: Path, target: Path) -> None:
    """Give a file or a directory another name on its file system; directories of the new name are made."""
    make_plainly(target.parent)
    source.rename(target)


def put_in_place(source: Path, target: Path) -> None:
    """Put a directory in place of another, which goes even if there is nothing to put there."""
    remove(target)
    if source.exists():
        source.rename(target)


def remove(path: Path) -> None:
    """Remove a file, or a directory with all that is in it as far as that is possible; none is no error."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_whole(path: Path, key: str) -> None:
    """Remove a file or a directory of a withdrawn release, and fail if something of it is left.

    Parameters
    ----------
    key : str
        Of the policy, for messages.

    Raises
    ------
    EngineError
    """
    remove(path)
    if is_there(path):
        raise EngineError(
            f"{key}: files of the withdrawn release could not be removed. Got '{path}'. Fix: remove it, and withdraw "
            "the release again."
        )


def sweep(directory: Path, *patterns: str) -> None:
    """Remove the files and directories in a directory whose names match a pattern.

    Parameters
    ----------
    *patterns : str
        As a shell has them.
    """
    for pattern in patterns:
        for path in directory.glob(pattern):
            remove(path)


def set_times(directory: Path, time: float, *, below: bool = False) -> None:
    """Give a directory a time of last change, in seconds since 1970; with ``below`` all in it, and not itself."""
    for path in directory.rglob("*") if below else [directory]:
        os.utime(path, (time, time))
