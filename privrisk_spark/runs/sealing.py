"""What a release consists of, to the byte: its files in the manifest, one digest of all, and whether it is still so."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from privrisk_spark.errors import CheckError, EngineError
from privrisk_spark.storage.directories import all_below
from privrisk_spark.storage.documents import size_and_digest

__all__ = ["release_digest", "sealed", "verify", "verify_files"]

_MANIFEST: Final = "manifest.json"
_DATA: Final = "data"
_DOCUMENTS: Final = "documents"
_NUMBER: Final = "sequence"


def sealed(manifest: Mapping[str, Any], staging: Path) -> dict[str, Any]:
    """Return a manifest that names every file beside the data, too.

    Parameters
    ----------
    manifest : mapping
        Which names the data files.
    staging : Path
        Where the release is put together.

    Returns
    -------
    dict
        With ``documents``: ``name``, ``bytes`` and ``sha256`` of each.
    """
    found = sorted(set(_files(staging)) - {_MANIFEST})
    documents = [_entry(staging, name) for name in found if not name.startswith(f"{_DATA}/")]
    return {**manifest, _DOCUMENTS: documents}


def release_digest(manifest: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a sealed manifest, hex: by the hashes in it, of all that is published.

    The number it has among the releases of its place is left out: it says nothing of what is released.
    """
    # As it will be read: a number as a key is a text then.
    document = json.loads(json.dumps({name: value for name, value in manifest.items() if name != _NUMBER}))
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def verify(manifest: Mapping[str, Any], target: Path) -> None:
    """Hold a published release against its manifest: names, sizes and SHA-256 of its files.

    Parameters
    ----------
    manifest : mapping
        One that is not sealed, of an earlier version, says nothing of the documents, which are then not looked at.
    target : Path
        Directory of the release.

    Raises
    ------
    CheckError
        If a file is missing, is another, or was added.
    EngineError
        If one cannot be read.
    """
    try:
        verify_files(manifest, str(target), _files(target), lambda name: _entry(target, name))
    except OSError as error:
        raise EngineError(f"the release at '{target}' cannot be read ({error.strerror}).") from error


def verify_files(
    manifest: Mapping[str, Any], place: str, there: Iterable[str], entry: Callable[[str], Mapping[str, Any]]
) -> None:
    """Hold the files of a release, wherever it lies, against its manifest.

    Parameters
    ----------
    place : str
        Of the release, for messages.
    there : iterable of str
        Names of the files that are there.
    entry : callable
        Gives ``name``, ``bytes`` and ``sha256`` of one of them.

    Raises
    ------
    CheckError
        If a file is missing, is another, or was added.
    """
    listed = {f"{_DATA}/{one['name']}": one for one in manifest.get(_DATA, {}).get("files", ())}
    listed |= {one["name"]: one for one in manifest.get(_DOCUMENTS, ())}
    if not listed:
        return
    whole = _DOCUMENTS in manifest
    found = {name for name in there if name != _MANIFEST and (whole or name.startswith(f"{_DATA}/"))}
    for name in sorted(listed.keys() | found):
        if name not in found:
            raise _changed(place, name, "is missing")
        if name not in listed:
            raise _changed(place, name, "was added")
        if any(listed[name].get(what) != is_now for what, is_now in entry(name).items() if what != "name"):
            raise _changed(place, name, "is not the file that was published: its size or SHA-256 is another")


def _changed(place: str, name: str, how: str) -> CheckError:
    return CheckError(
        f"the release at '{place}' was changed after publication: '{name}' {how}. Restore it from a copy, or withdraw "
        "it and use a new run id."
    )


def _files(directory: Path) -> Iterator[str]:
    return (path.relative_to(directory).as_posix() for path in all_below(directory))


def _entry(directory: Path, name: str) -> dict[str, Any]:
    size, digest = size_and_digest(directory / name)
    return {"name": name, "bytes": size, "sha256": digest}
