"""What runs left of their intermediate results, killed or unable to remove it: in a directory, and a store it names."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path
from typing import Final

from privrisk_spark.errors import InputError
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.store import StorageError

__all__ = ["SCRATCH", "clear", "forget_store", "note_store", "sweep"]

SCRATCH: Final = ".scratch-"
"""What the names of such directories begin with."""

_LOG = logging.getLogger(__name__)
_NOTE: Final = ".in-store"
_PATIENCE: Final = 10.0
"""Seconds in which a store must answer a run that only clears away after another."""


def note_store(directory: Path, location: Location) -> None:
    """Note in a run's directory where in a store the run keeps intermediate results, before it puts any there.

    Parameters
    ----------
    location : Location
        No other run's.
    """
    draft = directory / f"{_NOTE}.draft"
    draft.write_text(str(location), encoding="utf-8")
    os.replace(draft, directory / _NOTE)


def forget_store(directory: Path) -> None:
    """Take back what :func:`note_store` noted, as nothing is there any more."""
    (directory / _NOTE).unlink(missing_ok=True)


def clear(directory: Path) -> None:
    """Remove a run's directory at its end; of one that noted a store that holds something yet, the note stays.

    Parameters
    ----------
    directory : Path
        Of this run.
    """
    if not (directory / _NOTE).exists():
        shutil.rmtree(directory, ignore_errors=True)
        return
    for path in directory.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _NOTE:
            path.unlink(missing_ok=True)


def sweep(place: Path) -> None:
    """Remove the directories of dead runs in a place, and what they noted of a store.

    What a store does not remove is warned of, and tried again by the next run in the place.

    Parameters
    ----------
    place : Path
        Held, so that no directory there is a live run's.
    """
    for path in place.glob(f"{SCRATCH}*"):
        if path.is_symlink():
            continue  # nothing of a run, and what it leads to may be a live one's
        try:
            noted = (path / _NOTE).read_text(encoding="utf-8", errors="replace")
        except OSError:
            noted = ""
        if noted:
            try:
                location = locate(noted, key="run.scratch")
                if not location.remote or location.path.rpartition("/")[2] != path.name.lstrip("."):
                    raise InputError("It is not named as that run's, so nothing of it was removed.")
                store = open_remote(location, retry_seconds=_PATIENCE)
                store.clear()
            except (StorageError, OSError, InputError) as error:
                _LOG.warning(
                    "'%s', which an earlier run left, could not be removed and holds values of the table: "
                    "remove it. %s",
                    noted,
                    error,
                )
                continue
        shutil.rmtree(path, ignore_errors=True)
