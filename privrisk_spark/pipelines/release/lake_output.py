"""The table in a lake that holds the newest release, or that of each date, where a policy names one (``output.lake``).

A release is committed to it after it was published, from its published files. So who is stopped between the two leaves
a release the table lacks, and whoever runs the run id again finds it published and commits it; who is stopped after the
commit leaves one that is found in the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from privrisk_spark.errors import CheckError, ConfigError, EngineError, Fault
from privrisk_spark.planning.places import refuse_input
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.overlap import places_read
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.outputs import Output, number_of
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.storage import permissions
from privrisk_spark.storage.directories import files_below
from privrisk_spark.storage.documents import size_and_digest
from privrisk_spark.storage.lakes.snapshot import Asked
from privrisk_spark.storage.locations import Location, locate
from privrisk_spark.storage.opening import open_store

if TYPE_CHECKING:
    from privrisk_spark.storage.lakes.release_table import ReleaseTable

KEY = "output.lake"


def lake_of(policy: Policy) -> ReleaseTable[Any, Any] | None:
    """Return the table a policy's releases are committed to; None if it names none."""
    asked = policy.places.lake
    if asked is None:
        return None
    from privrisk_spark.storage.lakes.opening import release_table

    return release_table(Asked(KEY, asked.format, asked.path, asked.catalog), asked.date_column)


def lake_place(policy: Policy, place: Workplace, read: Mapping[str, Table]) -> dict[str, Location]:
    """Return where that table is, by its key; empty if there is none.

    Parameters
    ----------
    place : Workplace
        Where else is written.
    read : mapping of key to Table
        What is read.

    Raises
    ------
    ConfigError
        If it is not by itself: of a table in a catalog the policy does not tell where it lies.
    SchemaError, InputError, EngineError
        If there can be no such table.
    """
    table = lake_of(policy)
    if table is None:
        return {}
    here = table.location
    places = {"output.path": place.output.location, "output.vault": place.vault.location}
    if policy.run.scratch is not None:
        places["run.scratch"] = locate(policy.run.scratch, key="run.scratch")
    for key, other in places.items():
        if here.overlaps(other):
            rule = f"must be neither {key} nor inside nor around it: the table is by itself"
            raise ConfigError([Fault(table.key, rule)])
    named = {key: places_read(of.place) for key, of in read.items() if of.place is not None}
    refuse_input({table.key: here}, {f"{key}.path": there for key, there in named.items()})
    return {table.key: here}


def check_lake(policy: Policy, output: Output) -> None:
    """Refuse a place no release can be committed to, before a row is read or anything is charged.

    Quasi-identifiers are released as texts, unless they are masked; of other columns only the names are known yet.

    Raises
    ------
    SchemaError, InputError, EngineError
        As `ReleaseTable.check`.
    """
    table = lake_of(policy)
    if table is not None:
        kept = dict.fromkeys(policy.kept_columns)
        table.check(lambda: list_releases(output), {**dict.fromkeys(policy.quasi_identifiers, pa.string()), **kept})


def check_staged(policy: Policy, place: Workplace) -> None:
    """Refuse a table of other columns than the staged release has, before anybody can see the release.

    Raises
    ------
    SchemaError, InputError, EngineError
        As `ReleaseTable.check`.
    """
    table = lake_of(policy)
    if table is not None:
        from privrisk_spark.storage.lakes.release_table import schema_of

        schema = schema_of(next(files_below(place.staging / "data")))
        table.check(lambda: list_releases(place.output), dict(zip(schema.names, schema.types, strict=True)))


def commit_to_lake(policy: Policy, place: Workplace, manifest: Mapping[str, Any]) -> None:
    """Make the table hold a release that is published, unless a newer one is, or the table held it already.

    Parameters
    ----------
    place : Workplace
        Held.
    manifest : mapping
        Of the release.

    Raises
    ------
    SchemaError, InputError, EngineError
        As `ReleaseTable.commit`; the release is published nevertheless.
    """
    table = lake_of(policy)
    if table is None:
        return

    def newest() -> bool:
        current = place.output.current()
        if current is not None and current.get("run_id") == place.run_id:
            return True
        # A release of another date does not take this one's place where each date has its own.
        return table.date_column is not None and not any(
            other["date"] == manifest["date"] and number_of(other) > number_of(manifest)
            for _, other in place.output.manifests()
        )

    digest = release_digest(manifest)
    from privrisk_spark.storage.lakes.release_table import TableRelease

    try:
        if table.holds(digest) or not newest():
            return
        release = TableRelease(place.run_id, digest, _files(place, manifest), manifest["date"])
        location = table.location
        if not location.remote:
            permissions.make_public(Path(location.path), table.key)
        others = table.others(release.date)
        if others:
            LOGGER.warning(
                "output.lake: the table holds %d data files that no release wrote, such as rows that another program "
                "added. This release replaces them. If they are needed, restore them from the table's version before "
                "run id %s",
                others,
                place.run_id,
            )
        version = table.commit(release, newest=newest, releases=lambda: list_releases(place.output))
    except Exception:
        LOGGER.warning(
            "output.lake: the release is published at '%s', and the table lacks it; run the same run id again to "
            "commit it",
            place.target,
        )
        raise
    if version is not None:
        LOGGER.info("output.lake: run id %s is in the table, as its version or snapshot %d", place.run_id, version)


def list_releases(output: Output) -> Iterator[str]:
    """Yield the digests of all releases of an output, the current one first, and those that were withdrawn."""
    current = output.current()
    if current is not None:
        yield release_digest(current)
    with suppress(CheckError):
        for _, manifest in output.manifests():
            yield release_digest(manifest)
    # A table holds the rows of a withdrawn release until the next release replaces them.
    for stone in output.tombstones():
        yield stone["release_digest"]


def _files(place: Workplace, manifest: Mapping[str, Any]) -> tuple[Path, ...]:
    """The published data files on this machine, held against the manifest."""
    target, found = place.target, []
    for entry in manifest["data"]["files"]:
        path = Path(target.path, "data", entry["name"])
        if target.remote:
            path = place.scratch / entry["name"]
            open_store(target).download(f"data/{entry['name']}", path)
        if size_and_digest(path)[1] != entry["sha256"]:
            raise EngineError(f"'{target}' was changed while it was committed to {KEY}; run again.")
        found.append(path)
    return tuple(found)
