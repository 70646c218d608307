"""What vaults and outputs know of a ledger, beside the ledger: the hash it ended in when a run used it, and releases.

A ledger that was deleted, rolled back or cut still follows from itself. What it has forgotten is known here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from privrisk_spark.errors import CheckError
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.outputs import Output
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.vaults import DirectoryVault, StoreVault, Vault
from privrisk_spark.storage.directories import is_directory, names_in, resolved
from privrisk_spark.storage.documents import read
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_store

if TYPE_CHECKING:
    from privrisk_spark.runs.object_output import ObjectOutput

__all__ = ["Looked", "PrivateRelease", "Seen", "Witness", "look", "record_witness"]

_DIRECTORY: Final = "charges"
_AT_ONCE: Final = 16


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
    epsilon, delta : str or None
        What the run was charged; earlier versions did not keep it.
    """

    lineage: str
    run_id: str
    place: str
    events: int
    head: str
    epsilon: str | None = None
    delta: str | None = None


@dataclass(frozen=True)
class PrivateRelease:
    """A differentially private release, as it lies in an output.

    Attributes
    ----------
    place : str
        The output, resolved.
    digest : str
        Of the release (`privrisk_spark.runs.sealing.release_digest`).
    lineage : str or None
        What its manifest says, if it does.
    epsilon, delta : str or None
        What its manifest says it costs, if it does.
    withdrawn : bool
        Whether it was taken away, and its tombstone says the rest.
    """

    run_id: str
    place: str
    digest: str
    lineage: str | None
    epsilon: str | None = None
    delta: str | None = None
    withdrawn: bool = False


@dataclass(frozen=True)
class Looked:
    """How much a place knows.

    Attributes
    ----------
    place : str
        Resolved.
    there : bool
        Whether there is such a directory.
    """

    place: str
    there: bool
    witnesses: int
    releases: int


@dataclass(frozen=True)
class Seen:
    """What places know.

    Attributes
    ----------
    witnesses : tuple of Witness
        Of vaults.
    releases : tuple of PrivateRelease
        Of outputs.
    looked : tuple of Looked
        What was looked at.
    """

    witnesses: tuple[Witness, ...] = ()
    releases: tuple[PrivateRelease, ...] = ()
    looked: tuple[Looked, ...] = ()


def record_witness(vault: Vault, witness: Witness) -> None:
    """Keep in the vault what the ledger ended in; never in what is published, as it tells of other runs."""
    # One vault may serve several lineages, which may have runs of one id.
    of = hashlib.sha256(witness.lineage.encode()).hexdigest()[:8]
    vault.write(f"{_DIRECTORY}/{witness.run_id}~{of}.json", asdict(witness))


def look(*places: Path | Output | Vault) -> Seen:
    """Return what vaults and outputs know.

    Parameters
    ----------
    *places : Path, Output or Vault
        Each an output, a vault, or neither, which knows nothing; one that is not there, too. In a place that is given
        as one of the two, the other is looked for, too.

    Raises
    ------
    CheckError
        If a file there is damaged, or something there may not be read: what it knows is not nothing.
    """
    from privrisk_spark.runs.object_output import ObjectOutput

    witnesses: list[Witness] = []
    releases: list[PrivateRelease] = []
    looked = []
    for one in places:
        place = _opened(one)
        if isinstance(place, ObjectOutput):
            there = place.current() is not None
            list_releases = ((run_id, str(place), manifest) for run_id, manifest in place.manifests())
            found = [known for one_of in list_releases for known in _private(*one_of)]
            found += [known for stone in place.tombstones() for known in _private(stone["run_id"], str(place), stone)]
            kept = _in_store(place.location)
            looked.append(Looked(str(place), there or bool(kept), len(kept), len(found)))
            witnesses += kept
            releases += found
            continue
        files = [file for file in _listed(place / _DIRECTORY) if file.suffix == ".json" and file.name[0] != "."]
        kept = [_witness(file) for file in files]
        found = [known for directory in _listed(place / "releases") for known in _of_directory(directory)]
        found += [known for file in _listed(place / "withdrawn") for known in _of_tombstone(file)]
        looked.append(Looked(str(resolved(place)), is_directory(place), len(kept), len(found)))
        witnesses += kept
        releases += found
    return Seen(tuple(witnesses), tuple(releases), tuple(looked))


def _opened(place: Path | Output | Vault) -> Path | ObjectOutput:
    if isinstance(place, LocalOutput):
        return place.root
    if isinstance(place, DirectoryVault):
        return place.path
    from privrisk_spark.runs.object_output import ObjectOutput

    if isinstance(place, StoreVault):
        return ObjectOutput(place.location)
    assert isinstance(place, Path | ObjectOutput)
    return place


def _in_store(vault: Location) -> list[Witness]:
    store = open_store(vault)
    names = [entry.name for entry in store.entries(_DIRECTORY) if entry.name.endswith(".json")]

    def read(name: str) -> Witness:
        return _parsed(store.read(name).content, str(vault.below(name)))

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(read, names))


def _listed(directory: Path) -> list[Path]:
    try:
        return [directory / name for name in names_in(directory)]
    except OSError as error:
        raise _unreadable(directory, error) from None


def _of_directory(directory: Path) -> list[PrivateRelease]:
    manifest = _manifest(directory / "manifest.json")
    if manifest is None:
        return []
    return _private(directory.name, str(resolved(directory.parent.parent)), manifest)


def _of_tombstone(file: Path) -> list[PrivateRelease]:
    stone = None if file.suffix != ".json" or file.name[0] == "." else _manifest(file)
    return [] if stone is None else _private(file.stem, str(resolved(file.parent.parent)), stone)


def _private(run_id: str, place: str, manifest: Mapping[str, Any]) -> list[PrivateRelease]:
    """The release of a manifest or a tombstone, if it is private."""
    withdrawn = "release_digest" in manifest
    guarantee = manifest.get("guarantee")
    if not isinstance(guarantee, dict) or guarantee.get("kind") != "dp":
        return []
    # Before every manifest named its lineage, those did that have admitted cells.
    lineage = manifest.get("lineage", _at(manifest, "admitted", "lineage"))
    told = [_at(guarantee, "parameters", "accounting", "basic", name) for name in ("epsilon", "delta")]
    epsilon, delta = (str(amount) if isinstance(amount, str | int | float) else None for amount in told)
    return [
        PrivateRelease(
            run_id,
            place,
            str(manifest["release_digest"]) if withdrawn else release_digest(manifest),
            lineage if isinstance(lineage, str) else None,
            epsilon,
            delta,
            withdrawn=withdrawn,
        )
    ]


def _at(document: object, *keys: str) -> object:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document


def _witness(file: Path) -> Witness:
    return _parsed(_content(file) or b"", str(file))  # it was listed


def _content(file: Path) -> bytes | None:
    try:
        return read(file)
    except OSError as error:
        raise _unreadable(file, error) from None


def _parsed(content: bytes, file: str) -> Witness:
    try:
        found = json.loads(content)
        amounts = [None if found.get(name) is None else str(found[name]) for name in ("epsilon", "delta")]
        return Witness(
            str(found["lineage"]),
            str(found["run_id"]),
            str(found["place"]),
            int(found["events"]),
            str(found["head"]),
            *amounts,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise _damaged(file) from None


def _manifest(file: Path) -> dict[str, Any] | None:
    content = _content(file)
    if content is None:
        return None
    try:
        found = json.loads(content)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise _damaged(file)
    return found


def _damaged(file: Path | str) -> CheckError:
    return CheckError(f"'{file}' is damaged; restore it from a copy.")


def _unreadable(path: Path, error: OSError) -> CheckError:
    return CheckError(
        f"'{path}' cannot be read ({error.strerror}), so that nobody can tell whether the ledger has forgotten what it "
        "knows; give the right to read it, or name the place that is meant."
    )
