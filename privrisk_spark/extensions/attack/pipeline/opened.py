"""What an attack reads, as Spark opens it: the original table, the protected one, the intruder's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

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
from privrisk_spark.pipelines.assess.opened import open_release
from privrisk_spark.pipelines.assess.vault import open_decisions, with_ids
from privrisk_spark.pipelines.run import ResultRun
from privrisk_spark.stages.assessing.sources import Release, collect_strangers, numeric_ids
from privrisk_spark.tables.completeness import collect_files_read
from privrisk_spark.tables.opening import collect_hierarchies, open_table
from privrisk_spark.tables.tidying import collect_values_read


@dataclass(frozen=True, eq=False)
class Opened:
    """The tables of an attack, as Spark opened them.

    Attributes
    ----------
    table : DataFrame
        The original one.
    given : bool
        Whether the caller gave it, so that it is read by Spark alone.
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

    table: DataFrame
    given: bool
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
        spark, policy, asked = run.spark, run.policy, attack_of(run.policy)
        reading = read_policy(policy)
        opened = open_table(spark, reading, run.table)
        if run.table is None:
            collect_files_read(spark, reading.table, opened.as_read, key="table")
        collect_values_read(opened)
        names, used = known_columns(policy), reading.used_columns
        release = open_release(spark, policy, asked.protected, names, key=PROTECTED, used=used)
        his = None
        if asked.intruder.table is not None:
            his = open_release(spark, policy, asked.intruder.table, names, key=HIS_TABLE, used=used)
        others = [
            open_release(spark, policy, given, names, key=f"{OTHERS}.{i}", used=used)
            for i, given in enumerate(asked.also if "composition" in asked.tried else ())
        ]
        decisions, levels = None, asked.levels or None
        if release.manifest is not None:
            decisions, summary, place = open_decisions(spark, policy, release.manifest["run_id"], key=PROTECTED)
            levels = levels or (summary.get("recoding") or {}).get("levels")
            if is_masked(release.manifest):
                release, decisions = with_ids(release, decisions, place), None
        tables = {PROTECTED: release, **({} if his is None else {HIS_TABLE: his})}
        tables |= {f"{OTHERS}.{i}": other for i, other in enumerate(others)}
        # Masked values, and those of columns without a hierarchy, are in none that is made of the original ones.
        open_names = names if policy.guarantee.kind == "masked" else known_as_they_are(policy)
        leaves = [
            (leaves_of(one.source, {name: one.column(name) for name in open_names}), one.frame)
            for one in (tables.values() if open_names else ())
        ]
        hierarchies = collect_hierarchies(reading, opened.rows, leaves, given=run.table is not None)
        known = {name: hierarchies[name] for name in names}
        refuse_levels(asked, {name: tree.height for name, tree in known.items()})
        for key, one in tables.items():
            refuse_no_persons(one, key=key)
            collect_strangers(one, known, key=key)
        if run.announce is not None:
            run.announce(explain_attack(policy, known, release=release.title))
        stage.sentence = f"Opened the table and {release.title}; the intruder knows {len(known)} columns."
    return Opened(
        opened.rows,
        run.table is not None,
        hierarchies,
        known,
        release,
        decisions,
        his,
        tuple(others),
        reading.kept_columns,
        levels,
        numeric_ids(opened.rows, policy.table),
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
