"""What assessments, attacks and sharing need, looked at."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.extras import require
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.pipelines import share as sharing
from privrisk_spark.pipelines.assess import run as assessing
from privrisk_spark.pipelines.assess.masked import open_masked
from privrisk_spark.pipelines.assess.opened import open_release
from privrisk_spark.pipelines.assess.vault import open_decisions
from privrisk_spark.pipelines.attack import run as attacking
from privrisk_spark.pipelines.validation.looks import (
    Looks,
    look_at_dictionary,
    look_at_hierarchies,
    look_at_nodes,
    look_at_source,
    look_at_table,
)
from privrisk_spark.planning import attacks as attack_planning
from privrisk_spark.planning import sharing as sharing_planning
from privrisk_spark.planning.assessment import POPULATION, RELEASE, narrowed, refuse_other_kind, sets_of
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.policy.assessment import Masked
from privrisk_spark.policy.dictionaries import TableDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.rules.sharing import tables_of
from privrisk_spark.reporting.explanation import (
    assessment_explanation,
    attack_explanation,
    sharing_explanation,
)
from privrisk_spark.runs.places import ResultPlace
from privrisk_spark.stages.assessing.sources import Release, collect_strangers
from privrisk_spark.stages.sharing.user_pairs import check_columns, columns_of


def look_at_output(
    looks: Looks, policy: Policy, output: str | None, check: Callable[[Policy, str], ResultPlace]
) -> None:
    """Look at where findings would be written, if somebody says where."""
    if output is not None:
        with looks.at("--output"):
            check(policy, output).check_writable()
            looks.saw("--output", "can be written")


def look_at_assessment(
    looks: Looks, spark: SparkSession, policy: Policy, *, table: DataFrame | None, output: str | None
) -> str | None:
    """Look at everything an assessment needs, and return what it would measure, if nothing is wrong.

    Parameters
    ----------
    looks : Looks
    spark : SparkSession
    policy : Policy
    table : DataFrame or None
        Instead of the policy's table.
    output : str or None
        Where the findings would go.
    """
    given, pinned = table is not None, None
    look_at_output(looks, policy, output, assessing.check_output)
    with looks.at("table"):
        pinned = pin_tables(policy, assessing.READ, given=given)
    if pinned is None:
        return None
    policy = pinned.policy
    with looks.at("assess.classifiers"):
        if policy.assess.classifiers is not None:
            require("sklearn", "assess.classifiers")
    reading = narrowed(policy)
    opened = look_at_table(looks, spark, reading, table)
    people = None
    if isinstance(reading.dictionary, TableDictionary):
        people = look_at_dictionary(looks, spark, reading.dictionary, key=POPULATION)
    known = [] if people is None else [(people[0], people[1].rows)]
    hierarchies = look_at_hierarchies(looks, reading, opened, known, given=given)
    if people is not None:
        look_at_nodes(looks, *people, hierarchies, key=POPULATION)
    release = None
    if policy.assess.release is not None:
        release = _look_at_release(looks, spark, policy, policy.assess.release, hierarchies, key=RELEASE)
    if looks.errors:
        return None
    title = None if release is None else release.title
    return assessment_explanation(policy, hierarchies, sets_of(policy), release=title)


def look_at_attack(
    looks: Looks, spark: SparkSession, policy: Policy, *, table: DataFrame | None, output: str | None
) -> str | None:
    """Look at everything an attack needs, and return what it would try, if nothing is wrong.

    Parameters
    ----------
    looks, spark, policy, table, output
        As :func:`look_at_assessment` takes them.
    """
    given, pinned = table is not None, None
    look_at_output(looks, policy, output, attacking.check_output)
    with looks.at("table"):
        pinned = pin_tables(policy, attacking.READ, given=given)
    if pinned is None:
        return None
    policy, asked = pinned.policy, attack_planning.attack_of(pinned.policy)
    with looks.at(attack_planning.ENGINE):
        if attack_planning.by_splink(asked):
            require("splink", attack_planning.ENGINE)
    opened = look_at_table(looks, spark, attack_planning.read_policy(policy), table)
    named: dict[str, Masked] = {attack_planning.PROTECTED: asked.protected}
    if asked.intruder.table is not None:
        named[attack_planning.HIS_TABLE] = asked.intruder.table
    if "composition" in asked.tried:
        named |= {f"{attack_planning.OTHERS}.{i}": one for i, one in enumerate(asked.also)}
    hierarchies: dict[str, Hierarchy] = {}
    if policy.guarantee.generalizes:  # masked values are in no hierarchy that is made of the original ones
        found = look_at_hierarchies(looks, attack_planning.read_policy(policy), opened, given=given)
        hierarchies = {name: found[name] for name in attack_planning.known_columns(policy) if name in found}
        with looks.at("attack.levels"):
            attack_planning.refuse_levels(asked, {name: tree.height for name, tree in hierarchies.items()})
    title = ""
    for key, of in named.items():
        release = _look_at_release(looks, spark, policy, of, hierarchies, key=key)
        if key == attack_planning.PROTECTED and release is not None:
            title = release.title
            with looks.at(key):
                if release.manifest is not None:
                    open_decisions(spark, policy, release.manifest["run_id"], key=key)
    return None if looks.errors else attack_explanation(policy, hierarchies, release=title)


def _look_at_release(
    looks: Looks, spark: SparkSession, policy: Policy, named: Masked, hierarchies: dict[str, Hierarchy], *, key: str
) -> Release | None:
    """Look at a release that is read: that it is there, has the columns, and holds nodes of the hierarchies alone."""
    needed, release, reading = list(policy.quasi_identifiers), None, narrowed(policy)
    if key != RELEASE:
        needed, reading = attack_planning.known_columns(policy), attack_planning.read_policy(policy)
    masked = key == RELEASE and not policy.guarantee.generalizes
    with looks.at(key):
        if masked:
            release = open_masked(spark, policy, named).release
        else:
            release = open_release(spark, policy, named, needed, key=key, used=reading.used_columns)
            if key == RELEASE:
                refuse_other_kind(policy, release.manifest)
    if release is not None and masked:
        looks.saw(key, f"{release.title}, of {len(release.frame.columns)} columns")
    elif release is not None:
        with looks.at(key):
            collect_strangers(release, hierarchies, key=key)
            looks.saw(key, f"{release.title}, of {len(release.frame.columns)} columns")
    return release


def look_at_sharing(
    looks: Looks,
    spark: SparkSession,
    policy: Policy,
    *,
    table: DataFrame | None,
    output: str | None,
) -> str | None:
    """Look at everything that sharing in a network needs, and return what it would decide, if nothing is wrong.

    Parameters
    ----------
    looks, spark, policy, table, output
        As :func:`look_at_assessment` takes them.
    """
    asked = None
    with looks.at("sharing"):
        asked = sharing_planning.sharing_of(policy)
    if asked is None:
        return None
    given, pinned = table is not None, None
    look_at_output(looks, policy, output, sharing.check_output)
    with looks.at("table"):
        pinned = pin_tables(policy, sharing.READ, given=given)
    if pinned is None:
        return None
    policy, asked = pinned.policy, sharing_planning.sharing_of(pinned.policy)
    reading = sharing_planning.read_policy(policy)
    opened = look_at_table(looks, spark, reading, table)
    hierarchies = look_at_hierarchies(looks, reading, opened, given=given)
    for key, of in tables_of(asked).items():
        named = columns_of(of)
        frame = look_at_source(looks, spark, of, key=key, used=named.values())
        if frame is not None:
            with looks.at(key):
                check_columns(frame, named, key=key)
    return None if looks.errors else sharing_explanation(policy, hierarchies)
