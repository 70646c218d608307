"""Where one run keeps its files: the output it publishes to, and the vault."""

from __future__ import annotations

import hashlib
import json
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privrisk_spark.runs import permissions
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.object_output import ObjectOutput
from privrisk_spark.runs.outputs import MANIFEST, Output
from privrisk_spark.runs.places import SPARK_LOG, locked, sync, write_json
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.scratch import SCRATCH, clear, sweep

HISTORY, REMEMBERED = "history", "release.json"
"""Directory of a vault for what it remembers of its releases, and the document of each."""


def output_at(path: str, *, key: str = "output.path") -> Output:
    """Return the output that a policy's ``output.path``, or a command, names.

    Parameters
    ----------
    path : str
        A path, or a URI of an object store.
    key : str
        For messages.
    """
    place = locate(path, key=key)
    return ObjectOutput(place) if place.remote else LocalOutput(Path(place.path))


@dataclass(frozen=True)
class Workplace:
    """Places of one run.

    Attributes
    ----------
    output : Output
    vault : Path
        Of the policy, resolved.
    run_id : str
    attempt : str
        Distinguishes the attempts of one run id: Spark remembers the files it has seen under a path.
    """

    output: Output
    vault: Path
    run_id: str
    attempt: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def staging(self) -> Path:
        """Where the release is put together."""
        return self._unseen / f".staging-{self.run_id}~{self.attempt}"

    @property
    def parts(self) -> Path:
        """Directory in which tasks write the release's files before it is known which count; never published."""
        return self._unseen / f".staging-{self.run_id}~{self.attempt}-parts"

    @property
    def _unseen(self) -> Path:
        return self.output.kept_in or self.vault

    @property
    def scratch(self) -> Path:
        """Where intermediate results lie; readable by every worker."""
        return self.vault / f"{SCRATCH}{self.run_id}~{self.attempt}"

    @property
    def target(self) -> Location:
        """Place of the release."""
        return self.output.of(self.run_id)

    def recorded_snapshot(self) -> str:
        """Snapshot the vault's summary states for this run, or ``unrecorded`` if a later run replaced it."""
        path = self.vault / "summary.json"
        if path.exists():
            summary = json.loads(path.read_text(encoding="utf-8"))
            if summary.get("run_id") == self.run_id:
                return str(summary["snapshot"])
        return "unrecorded"

    def record_request(self, asked: Mapping[str, str]) -> None:
        """Write to the vault what the run's release was asked for, as digests by name, and where it is."""
        permissions.make_private(self._request.parent, "output.vault")
        write_json(self._request, {"output.path": str(self.output), "asked": dict(asked)})

    def recorded_request(self) -> dict[str, str] | None:
        """Return what :meth:`record_request` wrote; None if the vault knows nothing of this release.

        A vault may serve several outputs, which may have releases of one run id.
        """
        try:
            found = json.loads(self._request.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        asked: dict[str, str] = found["asked"]
        return asked if found["output.path"] == str(self.output) else None

    @property
    def _request(self) -> Path:
        return self.vault / "requests" / f"{self.run_id}.json"

    def record_pins(self, pins: Mapping[str, Any]) -> None:
        """Keep in the vault which versions of lake tables the run reads, before it reads them."""
        permissions.make_private(self._pins.parent, "output.vault")
        write_json(self._pins, {"output.path": str(self.output), "pins": dict(pins)})

    def recorded_pins(self) -> dict[str, Any]:
        """Return what an earlier attempt of the run recorded by :meth:`record_pins`; nothing if there was none."""
        try:
            found = json.loads(self._pins.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return {}
        pins: dict[str, Any] = found["pins"]
        return pins if found["output.path"] == str(self.output) else {}

    @property
    def _pins(self) -> Path:
        return self.vault / "pins" / f"{self.run_id}.json"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold output and vault: sweep what dead runs left, make fresh directories, remove them at the end.

        One run at a time works on a vault, and on an output that can be locked, so nothing found there can belong to a
        live one.

        Raises
        ------
        BusyError
            If another process is at work there; running again later helps.
        """
        with self.output.held(), self._vault_held():
            self._sweep()
            self.scratch.mkdir(mode=0o700)
            self.staging.mkdir(mode=0o700)
            self.parts.mkdir(mode=0o700)
            try:
                yield
            finally:
                clear(self.scratch)
                shutil.rmtree(self.staging, ignore_errors=True)
                shutil.rmtree(self.parts, ignore_errors=True)
                permissions.close(self.vault)

    @contextmanager
    def _vault_held(self) -> Iterator[None]:
        permissions.make_private(self.vault, "output.vault")
        with locked(self.vault, "output.vault"):
            yield

    def _sweep(self) -> None:
        sweep(self.vault)
        for path in self.vault.glob(".staging-*"):
            shutil.rmtree(path, ignore_errors=True)
        for path in [*self.vault.glob(".*.json.*"), *self.vault.glob(".report.html.*")]:
            path.unlink(missing_ok=True)
        (self.vault / SPARK_LOG).unlink(missing_ok=True)

    @property
    def released(self) -> bool:
        """Whether there is a release of this run id."""
        return self.output.read(self.run_id, MANIFEST) is not None

    def published(self) -> dict[str, Any] | None:
        """Manifest of this run id's release, or None; see :meth:`~privrisk_spark.runs.outputs.Output.published`."""
        return self.output.published(self.run_id)

    def commit(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Make what is staged the release; see :meth:`~privrisk_spark.runs.outputs.Output.commit`."""
        return self.output.commit(self.run_id, self.staging, manifest)

    @property
    def remembered(self) -> Path:
        """Where the vault remembers the release; one vault may serve several outputs, with runs of one id."""
        place = hashlib.sha256(str(self.output).encode()).hexdigest()[:8]
        return self.vault / HISTORY / f"{self.run_id}~{place}"

    def remember(self, source: Path, document: Mapping[str, Any]) -> None:
        """Put what later releases must know of this one in the vault, in place of what an earlier attempt left."""
        write_json(source / REMEMBERED, document)
        permissions.make_private(self.remembered.parent, "output.vault")
        if self.remembered.exists():
            shutil.rmtree(self.remembered)
        source.rename(self.remembered)
        sync(self.remembered.parent)

    def swap_into_vault(self, source: Path, name: str) -> None:
        """Put a directory in the vault in place of the one of an earlier run, which goes even if this run has none."""
        target, old = self.vault / name, self.scratch / f"old-{name}"
        shutil.rmtree(old, ignore_errors=True)
        if target.exists():
            target.rename(old)
        if source.exists():
            source.rename(target)
