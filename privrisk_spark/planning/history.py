"""Earlier releases of the same records, as vaults remember them: what a release composes with.

A release of a policy with ``history`` leaves in its vault, for each record, a keyed digest of its id, the level of
every value, and a fingerprint of the value with its path to the root. Levels of one value of one hierarchy compose; so
what differs is refused, and a value that is another by now is told by its fingerprint.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.policy import Lineage, Policy
from privrisk_spark.runs.keystore import history_key
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.vaults import HISTORY, PARTS, PUBLISHED, vault_at
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.opening import open_store


@dataclass(frozen=True)
class EarlierRelease:
    """A release that is out, as a vault remembers it.

    Attributes
    ----------
    lineage : str
        ``run.name`` of its policy.
    manifest : str
        SHA-256 of its sealed manifest, hex.
    place : Location
        Where the vault remembers it.
    parts : Location
        Directory of the parts: ``record_digest``, and of quasi-identifier i ``l<i>`` its level and ``p<i>`` its
        fingerprint.
    record_id : str
        Column that identifies records.
    hierarchies : mapping of quasi-identifier to str
        Digest of each hierarchy, in the order of the parts' columns.
    secret : bytes
        Key of the digests of the ids.
    """

    run_id: str
    date: str
    lineage: str
    manifest: str
    place: Location
    parts: Location
    record_id: str
    hierarchies: Mapping[str, str]
    secret: bytes = field(repr=False)

    @property
    def public(self) -> dict[str, str]:
        """What everybody may know of it: no place of a vault."""
        return {"run_id": self.run_id, "date": self.date, "manifest": self.manifest}

    @classmethod
    def read(cls, place: Location, name: str, *, key: str, secret: bytes) -> EarlierRelease:
        """Read what a vault remembers of a release, in a document of that name.

        Raises
        ------
        ConfigError
            If it is damaged.
        StorageError
            If a store does not answer.
        """
        try:
            said = json.loads(_content(place, name))
            return cls(
                str(said["run_id"]),
                str(said["date"]),
                str(said["lineage"]),
                str(said["manifest"]),
                place,
                place.below(str(said.get(PARTS, PARTS))),
                str(said["record_id"]),
                {str(name): str(digest) for name, digest in said["hierarchies"]},
                secret,
            )
        except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
            raise ConfigError([Fault(key, f"'{place}' is damaged: restore it from a copy")]) from None


def earlier_releases(policy: Policy, *, own: Location | None) -> tuple[EarlierRelease, ...]:
    """Return the releases a policy composes with, by date and run id; each once.

    Parameters
    ----------
    own : Location or None
        Where the vault is to remember this run itself: an earlier attempt of it is no release.

    Raises
    ------
    ConfigError
        If an entry of ``history`` is neither a vault that remembers releases nor the manifest of one that is
        remembered.
    """
    vault = None if policy.output is None else locate(policy.output.vault, key="output.vault")
    found: dict[tuple[Location, str], EarlierRelease] = {}
    if isinstance(policy.history, Lineage):
        if vault is None:
            raise ConfigError([Fault("output.vault", "is required with history.lineage: the vault that remembers it")])
        remembered = [one for one in _remembered(vault, key="output.vault") if one.place != own]
        return _in_order(one for one in remembered if one.lineage == policy.history.lineage)
    for i, entry in enumerate(policy.history or ()):
        key = f"history.{i}"
        place = locate(entry, key=key)
        if _is_file(place):
            named = [locate(other, key=key) for other in policy.history or ()]
            others = [other for other in named if not _is_file(other)]
            one = _of_manifest(place, [*([vault] if vault is not None else []), *others], key=key)
            found[one.place, one.manifest] = one
            continue
        remembered = _remembered(place, key=key)
        # A schedule names its own vault before the first run.
        if not remembered and place != vault:
            raise ConfigError(
                [
                    Fault(
                        key,
                        f"'{entry}' is no vault that remembers a release; the policy of a release that others are to "
                        "compose with says history: []",
                    )
                ]
            )
        found |= {(one.place, one.manifest): one for one in remembered if one.place != own}
    return _in_order(found.values())


def key_to_remember(vault: Location) -> bytes:
    """Return the key under which a vault keeps digests of record ids; it is drawn before the first release.

    Raises
    ------
    ConfigError
        If the vault remembers releases and has lost their key: a new one would find no record of theirs again.
    EngineError
        If the key is damaged.
    """
    return _key_of(vault, key="output.vault", draw=not any(True for _ in open_store(vault).entries(HISTORY)))


def _key_of(vault: Location, *, key: str, draw: bool) -> bytes:
    try:
        return history_key(vault_at(str(vault)).keys, draw=draw)
    except FileNotFoundError:
        rule = f"'{vault}' has lost the key of its history (keys/~history.key): restore it from a copy"
        raise ConfigError([Fault(key, rule)]) from None


def _in_order(releases: Iterable[EarlierRelease]) -> tuple[EarlierRelease, ...]:
    return tuple(sorted(releases, key=lambda one: (one.date, one.run_id, one.manifest)))


def _content(place: Location, name: str) -> bytes:
    return open_store(place).read(name).content


def _is_file(place: Location) -> bool:
    above, name = place.above
    return bool(name) and open_store(above).find(name) is not None


def _remembered(vault: Location, *, key: str) -> list[EarlierRelease]:
    """What a vault remembers; of attempts of one run, each of which made another release, what was published.

    Where nobody knows which that is, all count: what may be out is not forgotten.
    """
    runs: dict[str, list[str]] = {}
    for parts in (entry.name.split("/") for entry in open_store(vault).entries(HISTORY)):
        if len(parts) == 3 and parts[2].endswith(".json"):
            runs.setdefault(parts[1], []).append(parts[2])
    if not runs:
        return []
    secret = _key_of(vault, key=key, draw=False)
    found = []
    for of, names in sorted(runs.items()):
        place = vault.below(f"{HISTORY}/{of}")
        every = [EarlierRelease.read(place, name, key=key, secret=secret) for name in names if name != PUBLISHED]
        if PUBLISHED in names and len(every) > 1:
            published = json.loads(_content(place, PUBLISHED))["release"]
            every = [one for one in every if one.manifest == published] or every
        found += every
    return found


def _of_manifest(manifest: Location, vaults: Sequence[Location], *, key: str) -> EarlierRelease:
    above, name = manifest.above
    try:
        digest = release_digest(json.loads(_content(above, name)))
    except (FileNotFoundError, ValueError, AttributeError):
        raise ConfigError([Fault(key, f"'{manifest}' is not the manifest of a release")]) from None
    for vault in vaults:
        for one in _remembered(vault, key=key):
            if one.manifest == digest:
                return one
    raise ConfigError(
        [
            Fault(
                key,
                f"no vault remembers the release of '{manifest}': neither output.vault nor a vault that history names; "
                "name its vault, too",
            )
        ]
    )


def refuse_disks(earlier: Sequence[EarlierRelease]) -> None:
    """Refuse releases that a disk remembers, where workers see none of the driver's.

    Raises
    ------
    ConfigError
        Naming the first.
    """
    here = next((one for one in earlier if not one.parts.remote), None)
    if here is not None:
        rule = (
            f"must name vaults in an object store where intermediate results lie in one, as workers read what they "
            f"hold; the release '{here.run_id}' is remembered in '{here.place}'"
        )
        raise ConfigError([Fault("history", rule)])


def refuse_differences(policy: Policy, hierarchies: Mapping[str, Hierarchy], earlier: Sequence[EarlierRelease]) -> None:
    """Refuse to compose with releases whose levels mean something else.

    Raises
    ------
    ConfigError
        Naming each key, and the first release that differs.
    """
    faults: dict[str, Fault] = {}
    now = hierarchy_digests(policy, hierarchies)
    for one in earlier:
        for fault in _differences(policy, now, one):
            faults.setdefault(fault.path, fault)
    if faults:
        raise ConfigError(list(faults.values()))


def _differences(policy: Policy, now: Mapping[str, str], one: EarlierRelease) -> Iterator[Fault]:
    of = f"the release '{one.run_id}' of its history"
    if policy.table.record_id != one.record_id:
        yield Fault("table.record_id", f"must be '{one.record_id}', as in {of}. Got '{policy.table.record_id}'")
    for name, digest in one.hierarchies.items():
        if name not in now:
            yield Fault(f"columns.{name}.role", f"must be 'quasi-identifier', as in {of}")
        elif now[name] != digest:
            yield Fault(f"columns.{name}.hierarchy", f"must be the same hierarchy as in {of}; it is another")


def hierarchy_digests(policy: Policy, hierarchies: Mapping[str, Hierarchy]) -> dict[str, str]:
    """Return what a level of each quasi-identifier means, as digests.

    Of a hierarchy whose leaves come from the data, how it is built: its leaves may be others another day, and what a
    value's own nodes are is told value by value.

    Parameters
    ----------
    hierarchies : mapping of quasi-identifier to Hierarchy
    """
    return {
        name: hierarchy.fingerprint
        if hierarchy.public
        else hashlib.sha256(policy.quasi_identifiers[name].hierarchy.model_dump_json().encode()).hexdigest()
        for name, hierarchy in hierarchies.items()
    }


def remembered_as(policy: Policy, hierarchies: Mapping[str, Hierarchy], *, run_id: str, date: str) -> dict[str, Any]:
    """Return what a vault is to remember of a release, but for the digest of its manifest.

    Parameters
    ----------
    hierarchies : mapping of quasi-identifier to Hierarchy
    """
    return {
        "run_id": run_id,
        "date": date,
        "lineage": policy.run.name,
        "record_id": policy.table.record_id,
        "hierarchies": [list(pair) for pair in hierarchy_digests(policy, hierarchies).items()],
    }
