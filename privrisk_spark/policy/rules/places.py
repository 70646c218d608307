"""Rules of a policy about places: what is read, what is written, and that they are apart."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from privrisk_spark.errors import ConfigError, Fault
from privrisk_spark.policy.dictionaries import DictionaryColumn, DictionaryTable, EstimatedDictionary, Table
from privrisk_spark.policy.overlap import overlapping, places_read
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.apart import impossible_apart
from privrisk_spark.policy.rules.lakes import find_table_faults, impossible_lake
from privrisk_spark.storage.locations import Location, is_remote, locate


def dictionary_tables(policy: Policy) -> list[tuple[str, DictionaryTable]]:
    """Return every external dictionary of the policy, with its key.

    Returns
    -------
    list of (str, DictionaryTable)
    """
    tables = [(one.key, one.table) for one in policy.dictionaries if one.table is not None]
    given = policy.dictionary
    if isinstance(given, EstimatedDictionary) and given.against is not None:
        tables.append(("dictionary.against", given.against))
    return tables


def impossible_scratch(policy: Policy) -> Iterable[Fault]:
    """Yield the faults of ``run.scratch``."""
    scratch = policy.run.scratch
    if scratch is None:
        return
    if not is_remote(scratch):
        yield Fault(
            "run.scratch",
            "must be a directory in HDFS or an object store (hdfs://, s3://, az://, abfss:// or gs://); a "
            "file system that all machines "
            "mount needs none, if output.vault is there",
        )
        return
    try:
        place = locate(scratch, key="run.scratch")
    except ConfigError as error:
        yield from error.faults
        return
    if not place.path:
        yield Fault("run.scratch", "must be a directory of its own in the bucket, such as s3://bucket/scratch")
    yield from impossible_apart(policy, "run.scratch")
    if policy.table.place is not None:
        yield from overlapping({"run.scratch": place}, "table.path", places_read(policy.table.place))
    for key, path in () if policy.output is None else policy.output.published.items():
        with suppress(ConfigError):  # said of the key itself
            if is_remote(path) and place.overlaps(locate(path, key=key)):
                yield Fault("run.scratch", f"must be neither {key}, which is published, nor inside nor around it")
    if policy.output is not None and is_remote(policy.output.vault):
        with suppress(ConfigError):
            if place.overlaps(locate(policy.output.vault, key="output.vault")):
                rule = "must be neither output.vault nor inside nor around it; left out, it is in the vault"
                yield Fault("run.scratch", rule)


def impossible_sources(policy: Policy) -> Iterable[Fault]:
    """Yield the faults of tables that are read."""
    for key, table in dictionary_tables(policy):
        for name, entry in table.columns.items():
            if isinstance(entry, DictionaryColumn) and entry.age_in is not None and entry.level is None:
                yield Fault(
                    f"{key}.columns.{name}.level", "is required with age_in: the level whose labels are birth years"
                )
    for key, source in _find_sources(policy):
        yield from find_table_faults(key, source)


def _find_sources(policy: Policy) -> list[tuple[str, Table]]:
    linked = [] if policy.linkage is None else [("linkage", policy.linkage)]
    return [("table", policy.table), *dictionary_tables(policy), *linked]


def impossible_targets(policy: Policy) -> Iterable[Fault]:
    """Yield the faults of places that are written to, and of those that are not apart."""
    output = policy.output
    targets: dict[str, Location] = {}
    places = {} if output is None else {**output.published, "output.vault": output.vault}
    for key, path in places.items():
        try:
            targets[key] = locate(path, key=key)
        except ConfigError as error:
            yield from error.faults
            continue
        if targets[key].remote and not targets[key].path:
            example = "s3://bucket/vault" if key == "output.vault" else "s3://bucket/releases"
            yield Fault(key, f"must be a directory of its own in the bucket, such as {example}")
    lake = targets.get("output.lake.path")
    for key in ("output.path", "output.vault"):
        if lake is not None and key in targets and lake.overlaps(targets[key]):
            yield Fault("output.lake.path", f"must be neither {key} nor inside nor around it: the table is by itself")
    if {"output.path", "output.vault"} <= targets.keys() and targets["output.path"].overlaps(targets["output.vault"]):
        if targets["output.vault"].lies_in(targets["output.path"]):
            yield Fault("output.vault", "must not be output.path or inside it: the vault is never published")
        else:
            yield Fault("output.path", "must not be inside output.vault: a release is published, the vault never is")
    if output is not None:
        yield from impossible_lake(policy, output)
    for key, source in _find_sources(policy):
        if output is not None and output.catalog is not None and source.catalog == output.catalog:
            rule = f"must not be {key}.catalog: a run never writes onto its input. Got '{output.catalog}'"
            yield Fault("output.catalog", rule)
        if source.place is not None:
            yield from overlapping(targets, f"{key}.path", places_read(source.place))
