"""Which versions of lake tables a run reads: opened once, and the same whenever the run id is run again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.types import Part
from privrisk_spark.storage.lakes.snapshot import Asked, Pin, Snapshot
from privrisk_spark.storage.locations import Location

__all__ = ["Pinned", "pin_tables", "versions_of"]


@dataclass(frozen=True)
class Pinned:
    """A policy of whose lake tables it is known which versions are read.

    Attributes
    ----------
    policy : Policy
        Means what it meant, and has the same digest.
    snapshots : dict of key to Snapshot
    record : dict
        What to keep under the run id for :func:`pin_tables`, JSON-safe.
    """

    policy: Policy
    snapshots: dict[str, Snapshot]
    record: dict[str, Any]

    @property
    def places(self) -> dict[str, list[Location]]:
        """What is read on local and mounted paths, by key, links followed."""
        return {
            key: [Location("file", "", str(place)) for place in snapshot.places]
            for key, snapshot in self.snapshots.items()
        }


def pin_tables(
    policy: Policy, parts: Collection[str], *, given: bool = False, recorded: Mapping[str, Any] | None = None
) -> Pinned:
    """Open the lake tables of a policy, each once: two keys that ask for the same read the same version.

    Parameters
    ----------
    parts : collection of str
        Of the policy, whose tables are read, such as ``table``.
    given : bool
        Whether the caller gave the table; the policy's is not opened then.
    recorded : mapping, optional
        What an earlier attempt of the run recorded: what it read is read again.

    Raises
    ------
    SchemaError
        If there is no such table or version, or it cannot be read rightly.
    """
    pins = {digest: Pin(**pin) for digest, pin in (recorded or {}).items()}
    opened: dict[str, Snapshot] = {}
    snapshots: dict[str, Snapshot] = {}
    found: dict[int, Table] = {}
    for key, table in _tables(policy, ()):
        read = key.partition(".")[0] in parts and not (given and key == "table")
        asked = table.asked(key) if read else None
        if asked is not None:
            from privrisk_spark.storage.lakes.opening import open_snapshot

            digest = _digest(asked)
            if digest not in opened:
                opened[digest] = open_snapshot(asked, pins.get(digest))
            snapshots[key] = opened[digest]
            found[id(table)] = table.at(opened[digest])
    record = {digest: asdict(snapshot.pin) for digest, snapshot in opened.items()}
    return Pinned(cast(Policy, _with(policy, found)), snapshots, record)


def versions_of(policy: Policy) -> dict[str, Any]:
    """Return which version of each lake table of a policy is read, by key; of those that are opened."""
    return {key: table.pinned.described() for key, table in _tables(policy, ()) if table.pinned is not None}


def _digest(asked: Asked) -> str:
    text = json.dumps(asked.identity(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _tables(part: Part, keys: tuple[str, ...]) -> Iterator[tuple[str, Table]]:
    if isinstance(part, Table):
        yield ".".join(keys), part
        return
    for name in type(part).model_fields:
        value = getattr(part, name)
        for i, one in enumerate(value if isinstance(value, list) else ()):
            if isinstance(one, Part):
                yield from _tables(one, (*keys, name, str(i)))
        if isinstance(value, Part):
            yield from _tables(value, (*keys, name))


def _with(part: Part, found: Mapping[int, Table]) -> Part:
    """The same with other tables in it; what holds none is not copied."""
    if isinstance(part, Table):
        return found.get(id(part), part)
    changed: dict[str, Any] = {}
    for name in type(part).model_fields:
        value = getattr(part, name)
        if isinstance(value, Part):
            other: Any = _with(value, found)
        elif isinstance(value, list):
            members = [_with(one, found) if isinstance(one, Part) else one for one in value]
            other = value if all(a is b for a, b in zip(value, members, strict=True)) else members
        else:
            continue
        if other is not value:
            changed[name] = other
    return part.model_copy(update=changed) if changed else part
