"""Places that privrisk writes to: new, empty, or marked by an earlier run. All other places belong to the user."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from privrisk_spark.errors import Fault, PlaceError
from privrisk_spark.storage.documents import sync, write_text
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.locks import LOCK, locked
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.permissions import make_private, make_public
from privrisk_spark.storage.store import RemoteStore

__all__ = ["MARKER", "claim", "is_marked", "marker_text", "probe_name", "refuse_foreign"]

MARKER: Final = ".privrisk.json"
"""File that marks a place of ours. It is written before anything else."""

_PROBE: Final = ".reach-"
_EMPTY: Final = ("lost+found", LOCK)
"""Names in the root of an empty file system, and in a directory that another process marks now."""

_NOTE: Final = "privrisk replaces and removes files here. Keep no other files in this place."


def refuse_foreign(place: Location, key: str, kind: str) -> None:
    """Refuse a place that holds other files than those of earlier runs; change nothing.

    Parameters
    ----------
    place : Location
        A directory or a prefix of an object store. It need not exist.
    key : str
        Of the policy or the command, for messages.
    kind : str
        What earlier runs keep there, such as "vault".

    Raises
    ------
    PlaceError
        If it exists, is not empty and has no marker of this kind.
    InputError, StorageError
        If a store denies access, or does not answer.
    """
    found = _kind_in_store(open_remote(place)) if place.remote else _kind_of_directory(Path(place.path), key)
    if found in (None, kind):
        return
    there = f"it holds the {found} of one" if found else f"it has no file '{MARKER}'"
    rule = f"has other content than the {kind} of an earlier run: {there}. Got '{place}'. Fix: name a new directory"
    raise PlaceError([Fault(key, rule)])


def claim(place: Location, key: str, kind: str, *, public: bool = False, make: bool = True) -> None:
    """Make a place, mark it, and close a private directory to other users.

    Parameters
    ----------
    place, key, kind
        As :func:`refuse_foreign` has them.
    public : bool
        Whether everyone may read the place. The marker then bears no time: the first run's start is nobody's business.
    make : bool
        Whether to make a directory that does not exist, or to mark an empty place in a store.

    Raises
    ------
    PlaceError, ConfigError
        If it is not ours, or cannot be a directory.
    BusyError
        If another process marks it or is at work on it.
    InputError, EngineError
        If it cannot be written.
    """
    refuse_foreign(place, key, kind)
    if place.remote:
        store = open_remote(place)
        if make or next(store.names(), None) is not None:
            store.make(public=public)
            store.create(MARKER, marker_text(kind).encode())
        return
    directory = Path(place.path)
    if not make and not directory.is_dir():
        return
    (make_public if public else make_private)(directory, key)
    if not (directory / MARKER).exists():
        # A run that holds the directory removes the drafts that it finds.
        with locked(directory, key):
            write_text(directory / MARKER, marker_text(kind), published=0.0 if public else None)
            sync(directory)


def is_marked(directory: Path) -> bool:
    """Return True if an earlier run, or this one, marked a directory."""
    return (directory / MARKER).is_file()


def marker_text(kind: str) -> str:
    """Return the content of the marker of a place."""
    return json.dumps({"made_by": "privrisk-spark", "kind": kind, "note": _NOTE}, indent=2) + "\n"


def probe_name(unique: str) -> str:
    """Return the name of an object that tests whether a store can be written; one that stays makes no place foreign."""
    return f"{_PROBE}{unique}"


def _kind_of_directory(directory: Path, key: str) -> str | None:
    """Return the kind of a marked directory, None for one that is new or empty, and "" for a foreign one."""
    try:
        names = os.listdir(directory)
        # The marker's draft, of a run that was stopped before it had written anything else.
        if all(name in _EMPTY or name.startswith(f".{MARKER}.") for name in names):
            return None
        return _kind((directory / MARKER).read_bytes() if is_marked(directory) else None)
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise PlaceError([Fault(key, f"must be a directory; there is a file in the way of '{directory}'")]) from None
    except PermissionError:
        rule = f"must be a directory of the user who runs this: '{directory}' cannot be read. Name another one"
        raise PlaceError([Fault(key, rule)]) from None


def _kind_in_store(store: RemoteStore) -> str | None:
    try:
        return _kind(store.read(MARKER).content)
    except FileNotFoundError:
        return None if all(_is_probe(name) for name in store.names()) else ""


def _is_probe(name: str) -> bool:
    return name.rpartition("/")[2].startswith(_PROBE)


def _kind(content: bytes | None) -> str:
    try:
        found: Any = json.loads(content or b"{}")
    except ValueError:
        return ""
    return str(found.get("kind", "")) if isinstance(found, dict) else ""
