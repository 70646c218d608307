"""What a release reads, as Spark opens it, and the counting plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.kernels.counting.consistent import Axis
from privrisk_spark.pipelines.opening import FIRST_ERROR, Inspection, Sources, open_hierarchies, open_sources
from privrisk_spark.pipelines.run import ReleaseRun
from privrisk_spark.planning.counting import PlanChoice, plan_of
from privrisk_spark.planning.dictionaries import axes
from privrisk_spark.planning.places import all_dictionaries
from privrisk_spark.policy.policy import Policy
from privrisk_spark.stages.publishing.directories import check_partitions
from privrisk_spark.tables.sources import files_read

TABLES = ("table", "dictionary", "linkage")
"""Parts of a policy that name the tables a release reads."""


@dataclass(frozen=True, eq=False)
class Opened:
    """The sources, and what is planned with them.

    Attributes
    ----------
    hierarchies : dict of quasi-identifier to Hierarchy
    axes : tuple of Axis
        Quasi-identifiers as the first dictionary counts them; empty in an inspection.
    choices : mapping of name to PlanChoice
        Counting plan of each dictionary; empty before they are chosen, and where nothing is counted.
    """

    sources: Sources
    hierarchies: dict[str, Hierarchy]
    axes: tuple[Axis, ...]
    choices: Mapping[str, PlanChoice]

    @property
    def k(self) -> int:
        """Number of quasi-identifiers."""
        return len(self.hierarchies)


def open_run(
    spark: SparkSession, policy: Policy, table: DataFrame | None, inspection: Inspection = FIRST_ERROR
) -> Opened:
    """Open the sources and build the hierarchies, which reads the table only where leaves come from the data.

    Parameters
    ----------
    table : DataFrame or None
        Read instead of the policy's table.
    inspection : Inspection, optional
        Collects errors.
    """
    sources = open_sources(
        spark, policy, table, all_dictionaries(policy), release=True, recode=True, inspection=inspection
    )
    # Masked values are values: no hierarchy is looked at.
    masked = not policy.guarantee.generalizes
    hierarchies = {} if masked else open_hierarchies(policy, sources, inspection=inspection)
    with inspection.at("output.partition_by"):
        if not inspection.errors:
            check_partitions(policy, hierarchies, sources.table.schema)
    return Opened(sources, hierarchies, () if inspection.collects else axes(policy, hierarchies), {})


def list_files(policy: Policy, sources: Sources) -> list[str]:
    """Return the files of the table that is released, which its lineage holds from now on."""
    assert sources.opened is not None
    return files_read(None if sources.given else policy.table, sources.opened.as_read)


def choose_plans(run: ReleaseRun, opened: Opened) -> Opened:
    """Choose the plan of each dictionary; its rows are counted only if somebody wants to read the plan."""
    sources, choices = opened.sources, {}
    for dictionary in run.policy.dictionaries:
        choice = plan_of(run.policy, opened.hierarchies, dictionary)
        if choice.plan != "dense" and run.announce is not None:
            frame = sources.table if dictionary.table is None else sources.dictionaries[dictionary.name]
            choice = plan_of(run.policy, opened.hierarchies, dictionary, rows=frame.count())
        choices[dictionary.name] = choice
    return replace(opened, choices=choices)


def announce_plan(run: ReleaseRun, opened: Opened, plan: Any = None) -> None:
    """Tell who asked what the run will do."""
    if run.announce is not None:
        from privrisk_spark.reporting.explanation import explanation

        run.announce(explanation(run.policy, opened.hierarchies, opened.choices, plan))
