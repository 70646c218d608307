"""Opening what an assessment reads: the table, its hierarchies, a release and a population."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.policy.dictionaries import TableDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.stages.assessing import sources
from privrisk_spark.stages.assessing.sources import Release
from privrisk_spark.stages.tables.opening import check_columns, check_dictionary, collect_hierarchies, read

ALL = "all"
"""Name of the set of all quasi-identifiers."""


@dataclass(frozen=True, eq=False)
class Opened:
    """The table to assess, and what it is held against, opened.

    Attributes
    ----------
    asked : Policy
    policy : Policy
        Narrowed to what is read.
    table : DataFrame
    release : Release or None
    population : DataFrame or None
    hierarchies : dict of attribute to Hierarchy
    """

    asked: Policy
    policy: Policy
    table: DataFrame
    release: Release | None
    population: DataFrame | None
    hierarchies: dict[str, Hierarchy]

    @classmethod
    def collect_of(cls, spark: SparkSession, asked: Policy, given: DataFrame | None = None) -> Opened:
        """Open them, and collect the leaves of hierarchies that come from the data.

        Raises
        ------
        InputError
            If a source cannot be opened, or lacks a column.
        """
        policy = sources.narrowed(asked)
        table = read(spark, policy.table, key="table") if given is None else given
        check_columns(table, policy)
        population, known = None, []
        if isinstance(policy.dictionary, TableDictionary):
            population = read(spark, policy.dictionary, key=sources.POPULATION)
            check_dictionary(population, policy.dictionary, key=sources.POPULATION)
            known = [(policy.dictionary, population)]
        hierarchies = collect_hierarchies(policy, table, known)
        release = sources.open_release(spark, asked)
        return cls(asked, policy, table, release, population, hierarchies)

    @property
    def sets(self) -> dict[str, list[str]]:
        """Sets of quasi-identifiers, each measured by itself."""
        return self.asked.assess.sets or {ALL: list(self.hierarchies)}

    def explanation(self) -> str:
        """What will be measured, as text."""
        lines = [f"{name}: {h.n_leaves:,} leaves, {h.height + 1} levels" for name, h in self.hierarchies.items()]
        lines += [f"set '{name}': {', '.join(columns)}" for name, columns in self.sets.items()]
        lines.append("sensitive: " + (", ".join(sources.carried(self.asked)) or "none"))
        lines.append("release: " + ("none, the table alone" if self.release is None else self.release.title))
        fraction = self.asked.assess.sampling_fraction
        people = "none" if fraction is None else f"estimated, sampling fraction {fraction:g}"
        lines.append("population: " + (people if self.population is None else "a table"))
        lines.append("adversary: " + ("none" if self.asked.assess.adversary is None else "as the policy assumes"))
        wanted = ", ".join(f"{name} {bound:g}" for name, bound in self.asked.assess.thresholds.items())
        lines.append("thresholds: " + (wanted or "none"))
        return "\n".join(lines)
