"""A run, and its sources as Spark opens them: table, dictionaries, linkage table, hierarchies; the counting plans."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.engine.fingerprints import collect_frame_digest
from privrisk_spark.errors import SchemaError
from privrisk_spark.hierarchies.builders import is_public
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.planning.as_published import AsPublished
from privrisk_spark.planning.counting import PlanChoice, plan_of
from privrisk_spark.planning.dictionaries import axes, true_dictionary
from privrisk_spark.planning.mechanism import Mechanism
from privrisk_spark.policy.dictionaries import DictionaryTable
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.explanation import explanation
from privrisk_spark.results.facts import FilesRead, ValuesRead
from privrisk_spark.runs.progress import Progress
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.stages.publishing.directories import check_partitions
from privrisk_spark.storage.parts import LocalParts, PartDirectory
from privrisk_spark.tables.completeness import collect_enough_rows, collect_files_read
from privrisk_spark.tables.links import OpenLinks, open_links
from privrisk_spark.tables.opening import collect_hierarchies, open_dictionary, open_table
from privrisk_spark.tables.sources import files_read
from privrisk_spark.tables.tidying import OpenTable, collect_values_read, recoded

Announce = Callable[[str], object]

TABLES = ("table", "dictionary", "linkage")
"""Parts of a policy that name the tables a release reads."""


@dataclass(frozen=True, eq=False)
class Run:
    """What every stage of a run needs.

    Attributes
    ----------
    spark : SparkSession
    policy : Policy
    place : Workplace
    date : date
        Business date.
    announce : callable or None
        Called with the text of the plan once it is chosen.
    table : DataFrame or None
        Read instead of the policy's table, where the caller gave one.
    scratch : Scratch
    progress : Progress
        Records the stages as they end.
    again : bool
        Whether the run id can be asked for again.
    """

    spark: SparkSession
    policy: Policy
    place: Workplace
    date: dt.date
    announce: Announce | None
    table: DataFrame | None
    scratch: Scratch
    progress: Progress
    again: bool = True

    @cached_property
    def frame_digest(self) -> str | None:
        """Digest of the given frame, by which a repeated run is known; None if no frame is given or none can come."""
        return collect_frame_digest(self.table) if self.table is not None and self.again else None

    def parts_of_files(self) -> PartDirectory:
        """Make the directory in which tasks write the release's files, whence they are taken to staging."""
        shared = self.scratch.shared
        return (LocalParts(str(self.place.parts)) if shared is None else shared).below("files")


@dataclass(frozen=True, eq=False)
class Sources:
    """Tables of a policy as Spark opened them, their columns checked, their values tidied; only schemas are read.

    Attributes
    ----------
    table : DataFrame
        Kept columns recoded.
    given : bool
        Whether the caller gave it, so that it is read by Spark alone.
    dictionaries : dict of name to DataFrame
        The external ones the decisions are made against.
    links : OpenLinks or None
        The linkage table.
    true : DataFrame or None
        The true dictionary of an estimate.
    known : tuple of (DictionaryTable, DataFrame)
        Every dictionary above, for the hierarchies it may hold leaves of.
    opened : dict of key to OpenTable
        The table, ``table``, and every dictionary above, as their files have them.
    """

    table: DataFrame
    given: bool
    dictionaries: dict[str, DataFrame]
    links: OpenLinks | None
    true: DataFrame | None
    known: tuple[tuple[DictionaryTable, DataFrame], ...]
    opened: dict[str, OpenTable]


def open_sources(spark: SparkSession, policy: Policy, table: DataFrame | None) -> Sources:
    """Open the tables of a policy, or what is given instead of the first.

    Raises
    ------
    SchemaError
        If one cannot be opened, or its columns are not those of the policy.
    """
    opened = {"table": open_table(spark, policy, table)}
    dictionaries, known = {}, []
    for dictionary in policy.dictionaries:
        if dictionary.table is not None:
            opened[dictionary.key] = open_dictionary(spark, dictionary.table, key=dictionary.key)
            frame = opened[dictionary.key].rows
            dictionaries[dictionary.name] = frame
            known.append((dictionary.table, frame))
    links = open_links(spark, policy, dictionaries)
    true = None
    of_estimate = true_dictionary(policy)
    if of_estimate is not None and of_estimate.table is not None:
        opened[of_estimate.key] = open_dictionary(spark, of_estimate.table, key=of_estimate.key)
        true = opened[of_estimate.key].rows
        known.append((of_estimate.table, true))
    rows = recoded(opened["table"].rows, policy)
    return Sources(rows, table is not None, dictionaries, links, true, tuple(known), opened)


@dataclass(frozen=True, eq=False)
class Opened:
    """The sources, and what is planned with them.

    Attributes
    ----------
    sources : Sources
    hierarchies : dict of quasi-identifier to Hierarchy
    axes : tuple of Axis
        Quasi-identifiers as the first dictionary counts them.
    choices : mapping of name to PlanChoice
        Counting plan of each dictionary; empty before they are chosen, and where nothing is counted.
    files : FilesRead or None
        Of the table; None where the caller gave it, and on other file systems.
    values : tuple of ValuesRead
        What reading changed, in the table (not under dp) and in the dictionaries.
    """

    sources: Sources
    hierarchies: dict[str, Hierarchy]
    axes: tuple[Axis, ...]
    choices: Mapping[str, PlanChoice]
    files: FilesRead | None
    values: tuple[ValuesRead, ...] = ()

    @property
    def k(self) -> int:
        """Number of quasi-identifiers."""
        return len(self.hierarchies)


def open_hierarchies(policy: Policy, sources: Sources, files: FilesRead | None = None) -> dict[str, Hierarchy]:
    """Build the hierarchies, which reads the table only where leaves come from the data.

    Parameters
    ----------
    policy : Policy
    sources : Sources
    files : FilesRead, optional
        Of the table, which may say how many rows there are.

    Raises
    ------
    SchemaError
        If leaves come from the data, and there are no rows.
    """
    from_data = not all(is_public(column.hierarchy) for column in policy.quasi_identifiers.values())
    said = None if files is None else files.rows
    if from_data and (sources.table.isEmpty() if said is None else not said):
        raise SchemaError("table: it has no rows, and hierarchies whose leaves come from the data have none then.")
    return collect_hierarchies(policy, sources.table, sources.known, given=sources.given)


def open_run(run: Run) -> Opened:
    """Open the sources and build the hierarchies, which reads the table only where leaves come from the data."""
    policy = run.policy
    sources = open_sources(run.spark, policy, run.table)
    files = _collect_files_read(run, sources)
    if policy.checks.complete is not None:
        said = None if files is None else files.rows
        collect_enough_rows(sources.opened["table"].as_read, policy.checks.complete, said=said)
    values = _collect_values_read(policy, sources)
    # Masked values are values: no hierarchy is looked at.
    hierarchies = {}
    if policy.guarantee.kind != "masked":
        hierarchies = open_hierarchies(policy, sources, files)
    check_partitions(policy, hierarchies, sources.table.schema)
    return Opened(sources, hierarchies, axes(policy, hierarchies), {}, files, values)


def files_of_table(run: Run, opened: Opened) -> list[str]:
    """Return the files of the table that is released, which its lineage holds from now on."""
    if run.table is not None:
        return files_read(None, run.table)
    return files_read(run.policy.table, opened.sources.opened["table"].as_read)


def _collect_files_read(run: Run, sources: Sources) -> FilesRead | None:
    """Refuse tables of which not all is read; of one that is released privately nothing but its files is looked at."""
    policy, private = run.policy, run.policy.guarantee.kind == "dp"
    for dictionary in policy.dictionaries:
        if dictionary.table is not None:
            frame = sources.opened[dictionary.key].as_read
            collect_files_read(run.spark, dictionary.table, frame, key=dictionary.key)
    of_estimate = true_dictionary(policy)
    if sources.true is not None and of_estimate is not None and of_estimate.table is not None:
        true = sources.opened[of_estimate.key].as_read
        collect_files_read(run.spark, of_estimate.table, true, key=of_estimate.key)
    if sources.links is not None:
        collect_files_read(run.spark, sources.links.given, sources.links.links, key="linkage")
    if sources.given:
        return None
    files = collect_files_read(run.spark, policy.table, sources.opened["table"].as_read, key="table", private=private)
    if files is None:
        return None
    return replace(files, rounded=tuple(name for name in files.rounded if name in policy.used_columns))


def _collect_values_read(policy: Policy, sources: Sources) -> tuple[ValuesRead, ...]:
    """Count what reading changed; of a table that is released privately nothing is counted, and nothing refused."""
    private = policy.guarantee.kind == "dp"
    counted = [one for key, one in sources.opened.items() if not (private and key == "table")]
    return tuple(values for one in counted for values in collect_values_read(one))


def choose_plans(run: Run, opened: Opened) -> Opened:
    """Choose the plan of each dictionary; its rows are counted only if somebody wants to read the plan."""
    sources, choices = opened.sources, {}
    for dictionary in run.policy.dictionaries:
        choice = plan_of(run.policy, opened.hierarchies, dictionary)
        if choice.plan != "dense" and run.announce is not None:
            frame = sources.table if dictionary.table is None else sources.dictionaries[dictionary.name]
            choice = plan_of(run.policy, opened.hierarchies, dictionary, rows=frame.count())
        choices[dictionary.name] = choice
    return replace(opened, choices=choices)


def announce_plan(run: Run, opened: Opened, plan: Mechanism | AsPublished | None = None) -> None:
    """Tell who asked what the run will do."""
    if run.announce is not None:
        run.announce(explanation(run.policy, opened.hierarchies, opened.choices, plan))
