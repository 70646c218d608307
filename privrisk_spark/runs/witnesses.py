"""What vaults and outputs know of a ledger, beside the ledger: the hash it ended in when a run used it, and releases.

A ledger that was deleted, rolled back or cut still follows from itself. What it has forgotten is known here.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from privrisk_spark.errors import CheckError
from privrisk_spark.runs import permissions
from privrisk_spark.runs.places import write_json
from privrisk_spark.runs.sealing import release_digest

__all__ = ["PrivateRelease", "Seen", "Witness", "look", "record_witness"]

_DIRECTORY: Final = "charges"


@dataclass(frozen=True)
class Witness:
    """What a vault keeps of a run's charge.

    Attributes
    ----------
    lineage, run_id : str
        As the ledger has them.
    place : str
        Where the run publishes, resolved.
    events : int
        How many events the lineage had.
    head : str
        Hash of the last of them.
    """

    lineage: str
    run_id: str
    place: str
    events: int
    head: str


@dataclass(frozen=True)
class PrivateRelease:
    """A differentially private release, as it lies in an output.

    Attributes
    ----------
    run_id : str
    place : str
        The output, resolved.
    digest : str
        Of the release (`privrisk_spark.runs.sealing.release_digest`).
    lineage : str or None
        What its manifest says, if it does.
    """

    run_id: str
    place: str
    digest: str
    lineage: str | None


@dataclass(frozen=True)
class Seen:
    """What places know.

    Attributes
    ----------
    witnesses : tuple of Witness
        Of vaults.
    releases : tuple of PrivateRelease
        Of outputs.
    """

    witnesses: tuple[Witness, ...] = ()
    releases: tuple[PrivateRelease, ...] = ()


def record_witness(vault: Path, witness: Witness) -> None:
    """Keep in the vault what the ledger ended in; never in what is published, as it tells of other runs."""
    permissions.make_private(vault / _DIRECTORY, "output.vault")
    # One vault may serve several lineages, which may have runs of one id.
    of = hashlib.sha256(witness.lineage.encode()).hexdigest()[:8]
    write_json(vault / _DIRECTORY / f"{witness.run_id}~{of}.json", asdict(witness))


def look(*places: Path) -> Seen:
    """Return what vaults and outputs know.

    Parameters
    ----------
    *places : Path
        Each a vault, an output, or neither, which knows nothing; one that is not there, too.

    Raises
    ------
    CheckError
        If a file there is damaged.
    """
    witnesses = [_witness(file) for place in places for file in sorted((place / _DIRECTORY).glob("[!.]*.json"))]
    releases = []
    for place in places:
        for file in sorted(place.glob("releases/*/manifest.json")):
            manifest = _read(file)
            guarantee = manifest.get("guarantee")
            if isinstance(guarantee, dict) and guarantee.get("kind") == "dp":
                admitted = manifest.get("admitted")
                lineage = admitted.get("lineage") if isinstance(admitted, dict) else None
                digest = release_digest(manifest)
                releases.append(PrivateRelease(file.parent.name, str(place.resolve()), digest, lineage))
    return Seen(tuple(witnesses), tuple(releases))


def _witness(file: Path) -> Witness:
    found = _read(file)
    try:
        return Witness(
            lineage=str(found["lineage"]),
            run_id=str(found["run_id"]),
            place=str(found["place"]),
            events=int(found["events"]),
            head=str(found["head"]),
        )
    except (KeyError, TypeError, ValueError):
        raise _damaged(file) from None


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _damaged(file)
    return found


def _damaged(file: Path) -> CheckError:
    return CheckError(f"'{file}' is damaged; restore it from a copy.")
