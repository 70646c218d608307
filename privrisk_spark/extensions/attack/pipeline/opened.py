"""What an attack reads, as Spark opens it: the original table, the protected one, the intruder's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.errors import SchemaError, listing, nearest
from privrisk_spark.extensions.attack.page import explain_attack
from privrisk_spark.extensions.attack.planning.attacks import (
    HIS_TABLE,
    OTHERS,
    PROTECTED,
    is_masked,
    known_as_they_are,
    known_columns,
    leaves_of,
    read_policy,
    refuse_levels,
)
from privrisk_spark.extensions.attack.policy import ProtectedTable, attack_of
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.pipelines.assess.opened import note_release, open_release
from privrisk_spark.pipelines.assess.vault import open_decisions, with_ids
from privrisk_spark.pipelines.opening import FIRST_ERROR, Inspection, Sources, open_hierarchies, open_sources
from privrisk_spark.pipelines.run import ResultRun
from privrisk_spark.policy.assessment import Masked
from privrisk_spark.policy.policy import Policy
from privrisk_spark.stages.assessing.sources import Release, collect_strangers, numeric_ids


@dataclass(frozen=True, eq=False)
class Opened:
    """The tables of an attack, as Spark opened them.

    Attributes
    ----------
    sources : Sources
        The original table.
    hierarchies : dict of quasi-identifier to Hierarchy
    known : dict of quasi-identifier to Hierarchy
        Those the intruder knows.
    release : Release
        The protected table.
    decisions : DataFrame or None
        Of the vault, where the release is our own.
    his : Release or None
        The table the intruder has, where it is not the original one.
    others : tuple of Release
        Other releases of the same people.
    sensitive : list of str
        Sensitive columns that are read besides.
    levels : dict of quasi-identifier to int, or None
        By which all rows of the protected table were recoded, where it is one scheme and known.
    numeric : list of str
        Ids of the table that are numbers.
    """

    sources: Sources
    hierarchies: dict[str, Hierarchy]
    known: dict[str, Hierarchy]
    release: Release
    decisions: DataFrame | None
    his: Release | None
    others: tuple[Release, ...]
    sensitive: list[str]
    levels: Mapping[str, int] | None
    numeric: list[str]

    @property
    def positions(self) -> list[int]:
        """Of the known columns among all quasi-identifiers."""
        return [list(self.hierarchies).index(name) for name in self.known]


def read(run: ResultRun) -> Opened:
    """Stage: open the original table, the protected one, the intruder's own, and what tells whose the rows are."""
    with run.progress.stage("read") as stage:
        opened = open_attack(run.spark, run.policy, run.table)
        assert opened is not None
        if run.announce is not None:
            run.announce(explain_attack(run.policy, opened.known, release=opened.release.title))
        stage.sentence = f"Opened the table and {opened.release.title}; the intruder knows {len(opened.known)} columns."
    return opened


def open_attack(
    spark: SparkSession, policy: Policy, table: DataFrame | None, inspection: Inspection = FIRST_ERROR
) -> Opened | None:
    """Open the tables of an attack, and build the hierarchies; None if an inspection finds an error.

    Parameters
    ----------
    table : DataFrame or None
        Read instead of the policy's table.
    inspection : Inspection, optional
        Collects errors.
    """
    asked, reading = attack_of(policy), read_policy(policy)
    sources = open_sources(spark, reading, table, inspection=inspection)
    names, used = known_columns(policy), reading.used_columns
    named: dict[str, Masked] = {PROTECTED: asked.protected}
    if asked.intruder.table is not None:
        named[HIS_TABLE] = asked.intruder.table
    if "composition" in asked.tried:
        named |= {f"{OTHERS}.{i}": given for i, given in enumerate(asked.also)}
    tables: dict[str, Release] = {}
    for key, of in named.items():
        with inspection.at(key):
            tables[key] = open_release(spark, policy, of, names, key=key, used=used)
    release, decisions, levels = tables.get(PROTECTED), None, asked.levels or None
    with inspection.at(PROTECTED):
        if release is not None and release.manifest is not None:
            decisions, summary, place = open_decisions(spark, policy, release.manifest["run_id"], key=PROTECTED)
            levels = levels or (summary.get("recoding") or {}).get("levels")
            if is_masked(release.manifest):
                tables[PROTECTED], decisions = with_ids(release, decisions, place), None
    # Masked values, and those of columns without a hierarchy, are in none that is made of the original ones.
    open_names = names if not policy.guarantee.generalizes else known_as_they_are(policy)
    leaves = [
        (leaves_of(one.source, {name: one.column(name) for name in open_names}), one.frame)
        for one in (tables.values() if open_names else ())
    ]
    hierarchies = open_hierarchies(reading, sources, leaves, inspection=inspection)
    known = {name: hierarchies[name] for name in names if name in hierarchies}
    with inspection.at("attack.levels"):
        refuse_levels(asked, {name: tree.height for name, tree in known.items()})
    for key, one in tables.items():
        with inspection.at(key):
            refuse_no_persons(one, key=key)
            collect_strangers(one, known, key=key)
            note_release(one, key, inspection)
    if inspection.errors:
        return None
    return Opened(
        sources,
        hierarchies,
        known,
        tables[PROTECTED],
        decisions,
        tables.get(HIS_TABLE),
        tuple(one for key, one in tables.items() if key not in (PROTECTED, HIS_TABLE)),
        reading.kept_columns,
        levels,
        numeric_ids(sources.table, policy.table),
    )


def refuse_no_persons(release: Release, *, key: str) -> None:
    """Refuse a table that lacks the column that is said to name its persons.

    Raises
    ------
    SchemaError
        Naming it.
    """
    person, there = persons_of(release), release.frame.columns
    if person is not None and person not in there:
        raise SchemaError(
            f"{key}.entity_id: the release has no column '{person}'{nearest(person, there)}; it has {listing(there)}."
        )


def persons_of(release: Release) -> str | None:
    """Column of a table that names its persons."""
    return release.given.entity_id if isinstance(release.given, ProtectedTable) else None
