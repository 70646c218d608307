"""Releases in a directory: put together beside their place, and published by renaming, one run at a time."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from privrisk_spark.errors import CheckError, Fault, PlaceError
from privrisk_spark.runs.outputs import (
    KIND,
    MANIFEST,
    RELEASES,
    WITHDRAWN,
    business_time,
    number_of,
    parsed_manifest,
    tombstone,
)  # fmt: skip
from privrisk_spark.runs.sealing import verify
from privrisk_spark.storage import directories, ownership, permissions
from privrisk_spark.storage.documents import read, sync, write_json
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.locks import locked

__all__ = ["LocalOutput"]

_KEY: Final = "output.path"


@dataclass(frozen=True)
class LocalOutput:
    """A directory on a file system that is local or mounted.

    Attributes
    ----------
    root : Path
        Resolved.
    """

    root: Path

    def __str__(self) -> str:
        """Return the path."""
        return str(self.root)

    @property
    def location(self) -> Location:
        """The place."""
        return Location("file", "", str(self.root))

    @property
    def kept_in(self) -> Path | None:
        """The directory itself: what is put together there is renamed."""
        return self.root

    def of(self, run_id: str) -> Location:
        """Return the place of a release."""
        return self.location.below(f"{RELEASES}/{run_id}")

    def check(self, run_id: str) -> None:
        """Look at the names in the directory and its marker; no run of ours leaves a release without its manifest."""
        ownership.refuse_foreign(self.location, _KEY, KIND)
        target = self._target(run_id)
        if directories.names_in(target) and not directories.is_there(target / MANIFEST):
            rule = (
                f"holds '{RELEASES}/{run_id}' without a manifest, so it is no release. Got '{self.root}'. "
                "Fix: move that directory away, or use another run id"
            )
            raise PlaceError([Fault(_KEY, rule)])

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the directory's lock, and sweep what dead runs left."""
        ownership.claim(self.location, _KEY, KIND, public=True)
        with locked(self.root, _KEY):
            directories.sweep(self.root, ".staging-*", ".*.json.*")
            for buried in self.tombstones():
                self._bury(buried["run_id"])
            yield

    def published(self, run_id: str) -> dict[str, Any] | None:
        """Return the manifest of a release, or None; that of the whole place is mended if a crash left it behind."""
        target = self._target(run_id)
        current, manifest = self.current(), _manifest(target)
        if manifest is not None:
            verify(manifest, target)
        latest = max(self._sound(run_id), key=number_of, default=None)
        if latest is not None and (current is None or number_of(current) < number_of(latest)):
            write_json(self.root / MANIFEST, latest, published=business_time(latest))
        return manifest

    def current(self) -> dict[str, Any] | None:
        """Return the manifest of the whole place, or None."""
        return _manifest(self.root)

    def manifests(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give run id and manifest of all releases, ascending by run id."""
        for name in directories.names_in(self.root / RELEASES):
            found = _manifest(self._target(name))
            if found is not None:
                yield name, found

    def without_manifest(self, run_id: str) -> list[str]:
        """Names of directories beside the release that are none."""
        return sorted(path.name for path in self._others(run_id) if not directories.is_there(path / MANIFEST))

    def commit(self, run_id: str, staging: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Give the staged directory its manifest, then its name, then the whole place its manifest.

        So whatever has the name of a release is one, wherever the run is stopped. Everything of it gets the time of the
        business date: when a file was written, and how long a stage took, depends on the table, and no guarantee is
        about that.
        """
        current, target = self.current(), self._target(run_id)
        numbers = [number_of(found) for found in self._sound(run_id)]
        numbers += [number_of(found) for found in (*([] if current is None else [current]), *self.tombstones())]
        complete = {"sequence": max(numbers, default=0) + 1, **manifest}
        day = business_time(manifest)
        permissions.make_public(target.parent, _KEY)
        permissions.open_to_all(staging)
        directories.set_times(staging, day, below=True)
        write_json(staging / MANIFEST, complete, published=day)
        for directory in (*directories.directories_below(staging), staging):
            sync(directory)
        directories.move(staging, target)
        sync(target.parent)
        write_json(self.root / MANIFEST, complete, published=day)
        for directory in (target, target.parent):
            directories.set_times(directory, day)
        return complete

    def read(self, run_id: str, name: str) -> bytes | None:
        """Return a small file of a release, or None."""
        return read(self._target(run_id) / name)

    def withdraw(self, run_id: str, today: dt.date) -> dict[str, Any] | None:
        """Write the tombstone, and remove the release."""
        manifest = _manifest(self._target(run_id))
        if manifest is not None:
            stone = self.root / WITHDRAWN / f"{run_id}.json"
            permissions.make_public(stone.parent, "output.path")
            write_json(stone, tombstone(run_id, manifest, today), published=business_time({"date": today.isoformat()}))
            sync(stone.parent)
            self._bury(run_id)
        directories.remove_whole(self._unseen(run_id), _KEY)
        return self.withdrawn(run_id)

    def _unseen(self, run_id: str) -> Path:
        """Return the directory in which a withdrawn release is removed."""
        return self.root / f".staging-{run_id}~withdrawn"

    def withdrawn(self, run_id: str) -> dict[str, Any] | None:
        """Return the tombstone, or None."""
        stone = self.root / WITHDRAWN / f"{run_id}.json"
        content = read(stone)
        return None if content is None else parsed_manifest(content, Location("file", "", str(stone)))

    def tombstones(self) -> list[dict[str, Any]]:
        """Return the tombstones of all releases that were withdrawn."""
        names = [name.removesuffix(".json") for name in directories.names_in(self.root / WITHDRAWN)]
        found = [self.withdrawn(name) for name in names if not name.startswith(".")]
        return [one for one in found if one is not None]

    def _bury(self, run_id: str) -> None:
        """Remove what is left of a release that has a tombstone: it vanishes from the place as a whole."""
        target, current = self._target(run_id), self.current()
        if current is not None and current.get("run_id") == run_id:
            others = [found for found in self._sound(run_id) if found.get("run_id") != run_id]
            latest = max(others, key=number_of, default=None)
            if latest is None:
                directories.remove(self.root / MANIFEST)
            else:
                write_json(self.root / MANIFEST, latest, published=business_time(latest))
        if directories.is_there(target):
            unseen = self._unseen(run_id)
            directories.move(target, unseen)
            sync(target.parent)
            directories.remove(unseen)

    def _target(self, run_id: str) -> Path:
        return self.root / RELEASES / run_id

    def _others(self, run_id: str) -> list[Path]:
        target = self._target(run_id)
        places = [self._target(name) for name in directories.names_in(self.root / RELEASES)]
        return [path for path in places if directories.is_directory(path) and path != target]

    def _sound(self, run_id: str) -> Iterator[dict[str, Any]]:
        """Manifests of all releases; one of another run id that is damaged is none of this run's concern."""
        for directory in [self._target(run_id), *self._others(run_id)]:
            with suppress(CheckError):
                found = _manifest(directory)
                if found is not None:
                    yield found


def _manifest(directory: Path) -> dict[str, Any] | None:
    path = directory / MANIFEST
    content = read(path)
    return None if content is None else parsed_manifest(content, Location("file", "", str(path)))
