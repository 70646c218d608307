"""Where one run keeps its files: the output it publishes to, and the vault."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.outputs import MANIFEST, Output
from privrisk_spark.runs.places import slug_of
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.vaults import HISTORY, STAGING, Vault
from privrisk_spark.storage import directories, permissions
from privrisk_spark.storage.documents import write_json
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.scratch import SCRATCH, clear

_REQUEST = "request.json"


def output_at(path: str, *, key: str = "output.path") -> Output:
    """Return the output that a policy's ``output.path``, or a command, names.

    Parameters
    ----------
    path : str
        A path, or a URI of an object store.
    key : str
        For messages.
    """
    from privrisk_spark.runs.object_output import ObjectOutput

    place = locate(path, key=key)
    return ObjectOutput(place) if place.remote else LocalOutput(Path(place.path))


@dataclass(frozen=True)
class Workplace:
    """Places of one run.

    Attributes
    ----------
    vault : Vault
        Of the policy.
    attempt : str
        Distinguishes the attempts of one run id: Spark remembers the files it has seen under a path.
    """

    output: Output
    vault: Vault
    run_id: str
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def private(self) -> Path:
        """Directory of this machine for what must not be published; the vault keeps what is put there."""
        return self.vault.path

    @property
    def staging(self) -> Path:
        """Where the release is put together."""
        return self._unseen / f"{STAGING}{self.run_id}~{self.attempt}"

    @property
    def parts(self) -> Path:
        """Directory in which tasks write the release's files before it is known which count; never published."""
        return self._unseen / f"{STAGING}{self.run_id}~{self.attempt}-parts"

    @property
    def _unseen(self) -> Path:
        return self.output.kept_in or self.private

    @property
    def scratch(self) -> Path:
        """Where intermediate results lie; readable by every worker."""
        return self.private / f"{SCRATCH}{self.run_id}~{self.attempt}"

    @property
    def slug(self) -> str:
        """Name of what the run leaves in the vault; one vault may serve several outputs, with runs of one id."""
        return slug_of(self.run_id, str(self.output))

    @property
    def target(self) -> Location:
        """Place of the release."""
        return self.output.of(self.run_id)

    @property
    def left_at(self) -> Location | None:
        """Where the run left what must not be published; None if a later run has replaced it, or nobody knows."""
        return self.vault.left_at(self.slug, self._release)

    def left(self, name: str) -> bytes | None:
        """Return a small file that the run left there, or None."""
        place = self.left_at
        if place is None:
            return None
        with suppress(FileNotFoundError):
            return open_store(place).read(name).content
        return None

    @property
    def _release(self) -> str | None:
        """Digest of what is published under the run id."""
        content = self.output.read(self.run_id, MANIFEST)
        return None if content is None else release_digest(json.loads(content))

    def private_at(self, name: str) -> str:
        """Return where something that the run puts into the private directory is to be found, for messages."""
        return str(self.vault.attempt_at(self.slug, self.attempt).below(name))

    def record_request(self, asked: Mapping[str, str]) -> None:
        """Write to the vault what the run's release was asked for, as digests by name, and where it is.

        Of attempts that ask for different releases each has its own, and what is published says which one counts.
        """
        document = {"output.path": str(self.output), "asked": dict(asked)}
        if self.vault.location.remote:
            write_json(self.private / _REQUEST, document)
        else:
            self.vault.write(f"requests/{self.run_id}.json", document)

    def recorded_request(self) -> dict[str, str] | None:
        """Return what :meth:`record_request` wrote; None if the vault knows nothing of this release.

        A vault may serve several outputs, which may have releases of one run id.
        """
        remote = self.vault.location.remote
        asked: dict[str, str] | None = self._of_this(
            self.left(_REQUEST) if remote else self.vault.read(f"requests/{self.run_id}.json"), "asked"
        )
        return asked

    def record_pins(self, pins: Mapping[str, Any]) -> None:
        """Keep in the vault which versions of lake tables the run reads, before it reads them."""
        self.vault.write(f"pins/{self.run_id}.json", {"output.path": str(self.output), "pins": dict(pins)})

    def recorded_pins(self) -> dict[str, Any]:
        """Return what an earlier attempt of the run recorded by :meth:`record_pins`; nothing if there was none."""
        return self._of_this(self.vault.read(f"pins/{self.run_id}.json"), "pins") or {}

    def _of_this(self, content: bytes | None, what: str) -> Any:
        found = {} if content is None else json.loads(content)
        return found[what] if found.get("output.path") == str(self.output) else None

    def check(self) -> None:
        """Refuse an output or a vault that other programs or the user filled; change nothing.

        Raises
        ------
        PlaceError
            Naming the key and the place.
        """
        self.output.check(self.run_id)
        self.vault.check()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold output and vault: sweep what dead runs left, make fresh directories, remove them at the end.

        One run at a time works on a vault of this machine, and on an output that can be locked, so nothing found there
        can belong to a live one.

        Raises
        ------
        BusyError
            If another process is at work there; running again later helps.
        """
        with self.output.held(), self.vault.held(self.slug, self.attempt):
            for directory in (self.scratch, self.staging, self.parts):
                directories.make(directory)
            try:
                yield
            finally:
                clear(self.scratch)
                directories.remove(self.staging)
                directories.remove(self.parts)

    @property
    def released(self) -> bool:
        """Whether there is a release of this run id."""
        return self.output.read(self.run_id, MANIFEST) is not None

    def published(self) -> dict[str, Any] | None:
        """Manifest of this run id's release, or None; see :meth:`~privrisk_spark.runs.outputs.Output.published`."""
        return self.output.published(self.run_id)

    def commit(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make what is staged the release; see :meth:`~privrisk_spark.runs.outputs.Output.commit`.

        What the run has put into the private directory is kept before.
        """
        release = release_digest(manifest)
        self.vault.keep(self.slug, self.attempt, release)
        done = self.output.commit(self.run_id, self.staging, manifest)
        self.vault.settle(self.slug, release)
        return done

    def settle(self, manifest: Mapping[str, Any]) -> None:
        """Have the vault know that a release is published, should the run that published it have died before."""
        self.vault.settle(self.slug, release_digest(manifest))

    @property
    def remembered(self) -> Location:
        """Where the vault remembers the release."""
        return self.vault.location.below(f"{HISTORY}/{self.slug}")

    def remember(self, source: Path, document: Mapping[str, Any]) -> None:
        """Put what later releases must know of this one in the vault, in place of what an earlier attempt left."""
        self.vault.remember(self.slug, source, document)

    def swap_into_vault(self, source: Path, name: str) -> None:
        """Put a directory in the vault in place of the one of an earlier run, which goes even if this run has none."""
        permissions.close(source)
        target, old = self.private / name, self.scratch / f"old-{name}"
        directories.put_in_place(target, old)
        directories.put_in_place(source, target)
