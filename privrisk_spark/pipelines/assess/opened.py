"""A run of an assessment, and what it reads as Spark opens it: the table, a release of it, a population."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.planning.assessment import POPULATION, narrowed, sets_of
from privrisk_spark.policy.dictionaries import TableDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.explanation import assessment_explanation
from privrisk_spark.runs.progress import Progress
from privrisk_spark.stages.assessing.sources import Release, open_release
from privrisk_spark.stages.tables.opening import collect_hierarchies, open_dictionary, open_table


@dataclass(frozen=True, eq=False)
class Run:
    """What every stage of an assessment needs.

    Attributes
    ----------
    spark : SparkSession
    policy : Policy
        As it is given.
    place : Path
        Where the assessment goes.
    scratch : Scratch
    progress : Progress
        Records the stages as they end.
    """

    spark: SparkSession
    policy: Policy
    place: Path
    scratch: Scratch
    progress: Progress


@dataclass(frozen=True, eq=False)
class Opened:
    """The table to assess, and what it is held against.

    Attributes
    ----------
    policy : Policy
        Narrowed to what is read.
    table : DataFrame
    given : bool
        Whether the caller gave it, so that it is read by Spark alone.
    release : Release or None
    population : DataFrame or None
    hierarchies : dict of attribute to Hierarchy
    sets : mapping of name to list of attributes
        Sets of quasi-identifiers, each measured by itself.
    """

    policy: Policy
    table: DataFrame
    given: bool
    release: Release | None
    population: DataFrame | None
    hierarchies: dict[str, Hierarchy]
    sets: Mapping[str, list[str]]

    def positions(self, columns: list[str]) -> list[int]:
        """Positions of attributes among all quasi-identifiers."""
        names = list(self.hierarchies)
        return [names.index(column) for column in columns]


def open_assessment(spark: SparkSession, policy: Policy, table: DataFrame | None) -> Opened:
    """Open the sources, and collect the leaves of hierarchies that come from the data.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
        As it is given.
    table : DataFrame or None
        Read instead of the policy's table.

    Raises
    ------
    InputError
        If a source cannot be opened, or lacks a column.
    """
    reading = narrowed(policy)
    opened = open_table(spark, reading, table)
    population, known = None, []
    if isinstance(reading.dictionary, TableDictionary):
        population = open_dictionary(spark, reading.dictionary, key=POPULATION)
        known = [(reading.dictionary, population)]
    hierarchies = collect_hierarchies(reading, opened, known)
    release = open_release(spark, policy)
    sets = sets_of(policy)
    return Opened(reading, opened, table is not None, release, population, hierarchies, sets)


def explained(policy: Policy, opened: Opened) -> str:
    """What will be measured, as text."""
    return assessment_explanation(
        policy,
        opened.hierarchies,
        opened.sets,
        release=None if opened.release is None else opened.release.title,
    )
