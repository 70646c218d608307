"""Releases in an object store: nobody can lock it, so that one object decides, which is replaced only if unchanged.

The steps of a commit, each of which another attempt or another run may come between:

1. A claim under the run id names the digest of the release that is being published. Who finds another digest there is
   refused before he writes anything; attempts that make the same release go on beside each other.
2. The files go up under their names. As all who write them write the same bytes, it does not matter who does.
3. The manifest of the whole place is replaced if it is what was read, with the next number in it. From here on the
   release is published.
4. The release gets its own manifest, and the claim goes.

A run that was stopped after step 3 has left a claim; whoever comes next does step 4 for it. One that was stopped before
has published nothing.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from privrisk_spark.errors import CheckError, EngineError
from privrisk_spark.runs.outputs import KIND, MANIFEST, RELEASES, WITHDRAWN, number_of, parsed_manifest, tombstone
from privrisk_spark.runs.sealing import release_digest, verify_files
from privrisk_spark.storage import ownership
from privrisk_spark.storage.directories import files_below
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.store import Store

__all__ = ["ObjectOutput"]

_CLAIMS: Final = ".publishing"
_KEY: Final = "output.path"
_CHUNK: Final = 8 * 2**20
_AT_ONCE: Final = 16
"""Manifests that are read at once."""

_ATTEMPTS: Final = 100
"""Runs that may publish between two looks at the manifest of the whole place; more of them is no race."""


@dataclass(frozen=True)
class ObjectOutput:
    """A prefix of an object store.

    Attributes
    ----------
    location : Location
        Not of kind ``file``.

    Notes
    -----
    The store says when an object was written: when the release was published, and nothing of how long a stage took.
    """

    location: Location

    def __str__(self) -> str:
        """Return the URI."""
        return str(self.location)

    @property
    def kept_in(self) -> Path | None:
        """None: what lies in a store may be seen."""
        return None

    def of(self, run_id: str) -> Location:
        """Return the place of a release."""
        return self.location.below(_of(run_id))

    def check(self, run_id: str) -> None:  # noqa: ARG002 - files of a stopped attempt have no manifest yet
        """Look at the marker, or at the names if there is none."""
        ownership.refuse_foreign(self.location, _KEY, KIND)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Find out that the store can be written, and end a stopped commit; other runs are not kept from it."""
        probe = ownership.probe_name(secrets.token_hex(8))
        self._store.write(probe, b"")
        self._store.remove(probe)
        self._settle(self.current())
        yield

    def published(self, run_id: str) -> dict[str, Any] | None:
        """Return the manifest of a release, or None; a commit that was stopped is brought to its end."""
        self._settle(self.current())
        for buried in self.tombstones():
            self._bury(buried["run_id"])
        manifest = self._manifest(_of(run_id))
        if manifest is not None:
            self._verify(run_id, manifest)
        latest = max(self._sound(), key=number_of, default=None)
        if latest is not None:
            self._raise_to(latest)
        return manifest

    def current(self) -> dict[str, Any] | None:
        """Return the manifest of the whole place, or None."""
        return self._manifest("")

    def manifests(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Give run id and manifest of all releases, ascending by run id."""
        for run_id in sorted(run_id for run_id, names in self._releases().items() if MANIFEST in names):
            found = self._manifest(_of(run_id))
            if found is not None:
                yield run_id, found

    def without_manifest(self, run_id: str) -> list[str]:
        """Names beside that of the release that are no releases; one that is being published is among them."""
        return sorted(name for name, files in self._releases().items() if name != run_id and MANIFEST not in files)

    def commit(self, run_id: str, staging: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Publish as the module says; of attempts that make the same release, the first one's number stands."""
        store, digest = self._store, release_digest(manifest)
        # Not before: the time of the marker would tell how long the first run took.
        if not store.create(ownership.MARKER, ownership.marker_text(KIND).encode()):
            self.check(run_id)
        if not store.create(_claim(run_id), json.dumps({"run_id": run_id, "release": digest}).encode()):
            raise CheckError(
                f"another attempt of run id {run_id}, which makes another release, publishes at '{self.of(run_id)}', "
                f"or was stopped while it did. If none is at work, remove '{self.location.below(_claim(run_id))}' and "
                "run again; else use a new run id."
            )
        complete = self._standing(run_id, digest)
        if complete is None:
            files = {path.relative_to(staging).as_posix(): path for path in files_below(staging)}
            for name, path in files.items():
                store.upload(f"{_of(run_id)}/{name}", path)
            left = [name for name in self._releases().get(run_id, ()) if name not in (*files, MANIFEST)]
            if left:
                store.remove(*(f"{_of(run_id)}/{name}" for name in left))
            complete = self._lead(run_id, digest, manifest)
        self._settle(complete)
        # A withdrawal that saw no other release may have removed it.
        self._raise_to(complete)
        return complete

    def read(self, run_id: str, name: str) -> bytes | None:
        """Return a small file of a release, or None."""
        with suppress(FileNotFoundError):
            return self._store.read(f"{_of(run_id)}/{name}").content
        return None

    def withdraw(self, run_id: str, today: dt.date) -> dict[str, Any] | None:
        """Write the tombstone, and remove the release."""
        self._settle(self.current())
        manifest = self._manifest(_of(run_id))
        if manifest is not None:
            self._store.write(_stone(run_id), _text(tombstone(run_id, manifest, today)))
        if self.withdrawn(run_id) is not None:
            self._bury(run_id)
        return self.withdrawn(run_id)

    def withdrawn(self, run_id: str) -> dict[str, Any] | None:
        """Return the tombstone, or None."""
        try:
            content = self._store.read(_stone(run_id)).content
        except FileNotFoundError:
            return None
        return parsed_manifest(content, self.location.below(_stone(run_id)))

    def tombstones(self) -> list[dict[str, Any]]:
        """Return the tombstones of all releases that were withdrawn."""
        names = [entry.name for entry in self._store.entries(WITHDRAWN)]
        found = [self.withdrawn(name.removeprefix(f"{WITHDRAWN}/").removesuffix(".json")) for name in names]
        return [one for one in found if one is not None]

    def _bury(self, run_id: str) -> None:
        """Remove what is left of a release that has a tombstone: the manifest first, which makes it a release."""
        for _ in range(_ATTEMPTS):
            try:
                read = self._store.read(MANIFEST)
            except FileNotFoundError:
                break
            if parsed_manifest(read.content, self.location.below(MANIFEST)).get("run_id") != run_id:
                break
            others = [found for found in self._sound() if found.get("run_id") != run_id]
            latest = max(others, key=number_of, default=None)
            if latest is None:
                self._store.remove(MANIFEST)
                # Another run may have replaced it since it was read.
                others = [found for found in self._sound() if found.get("run_id") != run_id]
                if others:
                    self._raise_to(max(others, key=number_of))
            elif self._store.replace(MANIFEST, _text(latest), read.version):
                break
        left = self._releases().get(run_id, set())
        for names in ([MANIFEST], sorted(left - {MANIFEST})):
            if left.intersection(names):
                self._store.remove(*(f"{_of(run_id)}/{name}" for name in names))

    @property
    def _store(self) -> Store:
        return open_store(self.location)

    def _manifest(self, below: str) -> dict[str, Any] | None:
        name = f"{below}/{MANIFEST}" if below else MANIFEST
        try:
            content = self._store.read(name).content
        except FileNotFoundError:
            return None
        return parsed_manifest(content, self.location.below(name))

    def _releases(self) -> dict[str, set[str]]:
        """Names of the files below each run id."""
        found: dict[str, set[str]] = {}
        for entry in self._store.entries(RELEASES):
            run_id, _, name = entry.name.removeprefix(f"{RELEASES}/").partition("/")
            if name:
                found.setdefault(run_id, set()).add(name)
        return found

    def _sound(self) -> list[dict[str, Any]]:
        """Manifests of all releases but those that are damaged."""

        def read(run_id: str) -> dict[str, Any] | None:
            with suppress(CheckError):
                return self._manifest(_of(run_id))
            return None

        names = [run_id for run_id, files in self._releases().items() if MANIFEST in files]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return [found for found in pool.map(read, names) if found is not None]

    def _standing(self, run_id: str, digest: str) -> dict[str, Any] | None:
        """The manifest of the run id's release, if another attempt has brought its commit to its end."""
        if self.withdrawn(run_id) is not None:
            self._store.remove(_claim(run_id))
            raise CheckError(f"the release of run id {run_id} was withdrawn meanwhile. Use a new run id.")
        own = self._manifest(_of(run_id))
        if own is not None and release_digest(own) != digest:
            self._store.remove(_claim(run_id))
            raise CheckError(
                f"another attempt of run id {run_id} has published another release at '{self.of(run_id)}' meanwhile, "
                "and that one stands. Use a new run id."
            )
        return own

    def _lead(self, run_id: str, digest: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make a manifest that of the whole place, under the next number; its files are there."""
        for _ in range(_ATTEMPTS):
            try:
                read = self._store.read(MANIFEST)
            except FileNotFoundError:
                read = None
            # Looked for after that was read: an attempt that ends between the two replaces it.
            standing = self._standing(run_id, digest)
            if standing is not None:
                return standing
            current = None if read is None else parsed_manifest(read.content, self.location.below(MANIFEST))
            if current is not None and current.get("run_id") == run_id and release_digest(current) == digest:
                return current
            # Once it is replaced, nobody would know that its release has no manifest of its own yet.
            self._settle(current)
            # A run looks at all releases when it begins, so that a manifest which is there has the greatest number.
            numbers = [number_of(found) for found in (self._sound() if current is None else [current])]
            numbers += [number_of(found) for found in self.tombstones()]
            complete = {"sequence": max(numbers, default=0) + 1, **manifest}
            content = _text(complete)
            if read is None:
                done = self._store.create(MANIFEST, content)
            else:
                done = self._store.replace(MANIFEST, content, read.version)
            if done:
                return complete
        raise EngineError(f"output.path: '{self.location}' is published to by too many runs at once; run again later.")

    def _settle(self, current: Mapping[str, Any] | None) -> None:
        """Give a release its own manifest, if the whole place has it already and its commit has not come to its end."""
        if current is None or not isinstance(current.get("run_id"), str):
            return
        run_id = current["run_id"]
        try:
            claim = json.loads(self._store.read(_claim(run_id)).content)
        except FileNotFoundError:
            return  # ended; if it has no manifest now, somebody withdrew it
        except ValueError:
            claim = None
        if isinstance(claim, dict) and claim.get("release") == release_digest(current):
            self._store.create(f"{_of(run_id)}/{MANIFEST}", _text(current))
            self._store.remove(_claim(run_id))

    def _raise_to(self, latest: Mapping[str, Any]) -> None:
        """Mend the manifest of the whole place if it is lost or an old copy; who publishes now does so himself."""
        try:
            read = self._store.read(MANIFEST)
        except FileNotFoundError:
            done = self._store.create(MANIFEST, _text(latest))
        else:
            current = parsed_manifest(read.content, self.location.below(MANIFEST))
            if number_of(current) >= number_of(latest):
                return
            done = self._store.replace(MANIFEST, _text(latest), read.version)
        # It may have been withdrawn since it was read.
        if done and self.withdrawn(latest["run_id"]) is not None:
            self._bury(latest["run_id"])

    def _verify(self, run_id: str, manifest: Mapping[str, Any]) -> None:
        there = self._releases().get(run_id, set())

        def entry(name: str) -> dict[str, Any]:
            digest, size = hashlib.sha256(), 0
            with self._store.open(f"{_of(run_id)}/{name}") as stream:
                while piece := stream.read(_CHUNK):
                    digest.update(piece)
                    size += len(piece)
            return {"name": name, "bytes": size, "sha256": digest.hexdigest()}

        verify_files(manifest, str(self.of(run_id)), there, entry)


def _of(run_id: str) -> str:
    return f"{RELEASES}/{run_id}"


def _stone(run_id: str) -> str:
    return f"{WITHDRAWN}/{run_id}.json"


def _claim(run_id: str) -> str:
    return f"{_CLAIMS}/{run_id}.json"


def _text(manifest: Mapping[str, Any]) -> bytes:
    return (json.dumps(manifest, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
