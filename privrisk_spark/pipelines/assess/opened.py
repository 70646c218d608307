"""What an assessment reads, as Spark opens it: the table, a release of it, a population."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from privrisk_spark.errors import Fault, InputError, SchemaError, listing, nearest
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.pipelines.opening import Inspection, Sources
from privrisk_spark.planning.assessment import POPULATION
from privrisk_spark.policy.assessment import Masked, MaskedTable
from privrisk_spark.policy.dictionaries import OneDictionary, Table
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.workplace import output_at
from privrisk_spark.stages.assessing.sources import Release
from privrisk_spark.tables.completeness import collect_files_read
from privrisk_spark.tables.opening import read
from privrisk_spark.tables.released import Partitions, read_published


@dataclass(frozen=True, eq=False)
class Opened:
    """The table to assess, and what it is held against.

    Attributes
    ----------
    policy : Policy
        Narrowed to what is read.
    sources : Sources
        The table and the population.
    release : Release or None
        Of labels; one of masked values is opened separately.
    hierarchies : dict of attribute to Hierarchy
    sets : mapping of name to list of attributes
        Sets of quasi-identifiers, each measured by itself.
    """

    policy: Policy
    sources: Sources
    release: Release | None
    hierarchies: dict[str, Hierarchy]
    sets: Mapping[str, list[str]]

    def positions(self, columns: list[str]) -> list[int]:
        """Positions of attributes among all quasi-identifiers."""
        names = list(self.hierarchies)
        return [names.index(column) for column in columns]


def population_of(policy: Policy) -> OneDictionary:
    """Return the dictionary that holds the population; without a table if the policy names none.

    Parameters
    ----------
    policy : Policy
        Narrowed to what is read.
    """
    (one,) = policy.dictionaries
    return replace(one, name="population", key=POPULATION)


def open_release(
    spark: SparkSession, policy: Policy, given: Masked, needed: Sequence[str], *, key: str, used: Collection[str]
) -> Release:
    """Open the release the policy names.

    Parameters
    ----------
    given : Masked
        How it is named there.
    needed : sequence of str
        Columns of the table it must have, by whatever names.
    key : str
        Where, for messages.
    used : collection of str
        Columns of the table that are read: those that the release has must be readable.

    Raises
    ------
    InputError, SchemaError
        If there is none, or it lacks a column.
    """
    if given == "published":
        output = output_at(policy.places.path)
        manifest = output.current()
        if manifest is None:
            raise InputError(
                f"{key}: 'published', and there is no release at output.path '{policy.places.path}'. Fix: make one "
                "with privrisk release, or name a path."
            )
        data = manifest["data"]
        how = {"format": data["format"], "quote_formulas": data.get("quote_formulas", False)}
        place = output.location.below(data["path"])
        frame = read_published(
            spark, policy.places.model_copy(update=how), place, key=key, partitions=Partitions.of_manifest(manifest)
        )
        opened = Release(
            frame,
            Table(path=str(place), format=data["format"]),
            MaskedTable(path=str(place)),
            f"release {manifest['run_id']}",
            manifest,
        )
    else:
        columns = {given.columns.get(name, name) for name in {*used, *needed}}
        columns |= {interval.masked for interval in policy.assess.intervals.values() if interval.masked}
        columns |= {name for name in (given.record_id, getattr(given, "entity_id", None)) if name}
        frame = read(spark, given, key=key, used=columns)
        collect_files_read(spark, given, frame, key=key)
        opened = Release(frame, given, given, f"release {given.title}")
    there = opened.frame.columns
    faults = [
        Fault(
            f"{key}.columns.{name}",
            f"the release has no column '{opened.column(name)}'{nearest(opened.column(name), there)}; it has "
            f"{listing(there)}",
        )
        for name in needed
        if opened.column(name) not in there
    ]
    identity = opened.given.record_id
    if identity is not None and identity not in there:
        faults.append(Fault(f"{key}.record_id", f"the release has no column '{identity}'{nearest(identity, there)}"))
    if faults:
        raise SchemaError(faults)
    return opened


def note_release(release: Release | None, key: str, inspection: Inspection) -> None:
    """Note a release that was opened without an error."""
    if release is not None:
        inspection.note(key, f"{release.title}, of {len(release.frame.columns)} columns")
