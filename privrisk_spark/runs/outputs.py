"""Where releases are published: what a directory and an object store have in common.

Layout of an output::

    manifest.json                      the current release, replaced whole
    releases/<run id>/manifest.json    a release exists if and only if this file does
    releases/<run id>/data/part-00000.parquet …
    releases/<run id>/checks.json, dictionary.json, report.html
    withdrawn/<run id>.json            in place of a release that was withdrawn

A run that is stopped leaves the old release or the new one, never a mixture.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from privrisk_spark.errors import CheckError
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.storage.locations import Location

__all__ = [
    "KIND", "MANIFEST", "RELEASES", "WITHDRAWN", "Output", "business_time", "number_of", "parsed_manifest", "tombstone",
]  # fmt: skip

MANIFEST = "manifest.json"
RELEASES = "releases"
WITHDRAWN = "withdrawn"
KIND = "releases"
"""What an output keeps, for its marker."""


class Output(Protocol):
    """A place of published releases, by their run ids."""

    @property
    def location(self) -> Location:
        """The place; equal for all its spellings."""

    @property
    def kept_in(self) -> Path | None:
        """Directory in which a release may be put together, unseen; None where there is none."""

    def of(self, run_id: str) -> Location:
        """Return the place of a release."""

    def check(self, run_id: str) -> None:
        """Refuse a place, or a release directory, that other programs or the user filled; change nothing.

        Raises
        ------
        PlaceError
            Naming the place.
        """

    def held(self) -> AbstractContextManager[None]:
        """Find out that it can be written, and keep others from it if that is possible.

        Raises
        ------
        BusyError
            If another process is at work there.
        ConfigError, EngineError
            If it cannot be written.
        """

    def published(self, run_id: str) -> dict[str, Any] | None:
        """Return the manifest of a release, or None; what a stopped run left undone of a commit is done.

        The manifest of the whole place is then that of the release with the greatest number, of whatever run id.

        Raises
        ------
        CheckError
            If the release is not what its manifest says, or a manifest is damaged.
        """

    def current(self) -> dict[str, Any] | None:
        """Return the manifest of the whole place, or None."""

    def manifests(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give run id and manifest of all releases, ascending by run id.

        Raises
        ------
        CheckError
            If one is damaged.
        """

    def without_manifest(self, run_id: str) -> list[str]:
        """Names beside that of a run's release that are no releases, as they have no manifest.

        A release has its files before it has its manifest, so what made them was stopped, or they are somebody else's.
        As that is not known, they are told of, and never removed.
        """

    def commit(self, run_id: str, staging: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make a directory of this machine a release, and its manifest that of the whole place.

        Its number is greater than that of every release that is there, and than that of the whole place.

        Parameters
        ----------
        staging : Path
            Directory with all its files but the manifest.
        manifest : mapping
            Sealed, without its number.

        Returns
        -------
        dict
            The manifest with its number.

        Raises
        ------
        CheckError
            If another attempt of the run id publishes, or has published, another release.
        """

    def read(self, run_id: str, name: str) -> bytes | None:
        """Return a small file of a release, or None."""

    def withdraw(self, run_id: str, today: dt.date) -> dict[str, Any] | None:
        """Take a release away, and leave a tombstone; held. The manifest of the whole place is then the one before.

        The tombstone comes first. Whoever holds the place next ends what a stopped withdrawal left undone.

        Returns
        -------
        dict or None
            The tombstone, also of an earlier withdrawal; None if there is no release.
        """

    def withdrawn(self, run_id: str) -> dict[str, Any] | None:
        """Return the tombstone of a release that was withdrawn, or None."""

    def tombstones(self) -> list[dict[str, Any]]:
        """Return the tombstones of all releases that were withdrawn."""


def parsed_manifest(content: bytes, place: Location) -> dict[str, Any]:
    """Return a manifest.

    Parameters
    ----------
    place : Location
        Of the file, for messages.

    Raises
    ------
    CheckError
        If it is damaged.
    """
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("sequence"), int):
        raise CheckError(
            f"'{place}' is damaged: it is no manifest of a release. Restore it from a copy; the manifest of the whole "
            "output.path is that of its latest release."
        )
    return found


def tombstone(run_id: str, manifest: Mapping[str, Any], today: dt.date) -> dict[str, Any]:
    """Return what is left of a release that is withdrawn.

    Parameters
    ----------
    run_id : str
        Of the release, by its place: the manifest of a copy names another one.
    today : date
        When it is withdrawn.

    Returns
    -------
    dict
        Its number among the releases of the place, which no other release gets; its run id, date and digest; and what a
        ledger charged for it.
    """
    kept = {name: manifest[name] for name in ("sequence", "run_id", "date", "lineage") if name in manifest}
    guarantee = manifest.get("guarantee")
    if isinstance(guarantee, dict):
        accounting = (guarantee.get("parameters") or {}).get("accounting")
        kept["guarantee"] = {"kind": guarantee.get("kind"), "parameters": {"accounting": accounting}}
    return {**kept, "run_id": run_id, "release_digest": release_digest(manifest), "withdrawn": today.isoformat()}


def number_of(manifest: Mapping[str, Any]) -> int:
    """Return the number of a release among those of its place."""
    return int(manifest["sequence"])


def business_time(manifest: Mapping[str, Any]) -> float:
    """Return the start of a release's business date, seconds since 1970."""
    return dt.datetime.combine(dt.date.fromisoformat(manifest["date"]), dt.time(), dt.UTC).timestamp()
