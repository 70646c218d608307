"""Directories a command has to itself: what may lie where it writes, and what goes at its end."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.storage import directories, permissions
from privrisk_spark.storage.locks import locked
from privrisk_spark.storage.scratch import SCRATCH, clear, sweep

SPARK_LOG = "spark.log"
"""What Spark said of a run that failed, beside its status; the next run there removes it."""


def local_path(output: str) -> Path:
    """Return ``--output``, resolved.

    Raises
    ------
    ConfigError
        If it is on a remote file system.
    """
    if "://" in output:
        raise ConfigError([Fault("--output", "must be a local or mounted path; remote file systems are not available")])
    return directories.resolved(output)


def check_place(place: Path, *, files: Sequence[str], what: str) -> None:
    """Refuse a directory that holds anything but the files of an earlier run.

    Raises
    ------
    ConfigError
        If it does, or is no directory.
    """
    if not directories.is_there(place):
        return
    known = {*files, SPARK_LOG}
    temporary = (SCRATCH, *(f".{name.split('.')[0]}." for name in files if "." in name[1:]))
    names = directories.names_in(place)
    if not (directories.is_directory(place) and all(name in known or name.startswith(temporary) for name in names)):
        rule = f"has other content than the {what} of an earlier run; name a new directory"
        raise ConfigError([Fault("--output", rule)])


@contextmanager
def held(place: Path, run_id: str) -> Iterator[Path]:
    """Hold the directory, for the owner's eyes only, with a scratch directory that is removed at the end."""
    permissions.make_private(place, "--output")
    with locked(place, "--output"):
        sweep(place)
        directories.remove(place / SPARK_LOG)
        scratch = place / f"{SCRATCH}{run_id}~{uuid.uuid4().hex[:8]}"
        directories.make(scratch)
        try:
            yield scratch
        finally:
            clear(scratch)
            permissions.close(place)
