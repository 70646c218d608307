"""What an assessment needs, looked at."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.extras import require
from privrisk_spark.hierarchies.hierarchy import Hierarchy
from privrisk_spark.pipelines.assess import run as assessing
from privrisk_spark.pipelines.assess.masked import open_masked
from privrisk_spark.pipelines.assess.opened import open_release
from privrisk_spark.pipelines.validation.looks import (
    Looks,
    look_at_dictionary,
    look_at_hierarchies,
    look_at_nodes,
    look_at_output,
    look_at_table,
)
from privrisk_spark.planning.assessment import POPULATION, RELEASE, narrowed, refuse_other_kind, sets_of
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.policy.assessment import Masked
from privrisk_spark.policy.dictionaries import TableDictionary
from privrisk_spark.policy.policy import Policy
from privrisk_spark.reporting.explanation import (
    assessment_explanation,
)
from privrisk_spark.stages.assessing.sources import Release, collect_strangers


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
        needed, used = list(policy.quasi_identifiers), reading.used_columns
        named = policy.assess.release
        release = look_at_release(looks, spark, policy, named, hierarchies, key=RELEASE, needed=needed, used=used)
    if looks.errors:
        return None
    title = None if release is None else release.title
    return assessment_explanation(policy, hierarchies, sets_of(policy), release=title)


def look_at_release(
    looks: Looks,
    spark: SparkSession,
    policy: Policy,
    named: Masked,
    hierarchies: dict[str, Hierarchy],
    *,
    key: str,
    needed: Sequence[str],
    used: Collection[str],
) -> Release | None:
    """Look at a release that is read: it exists, has the columns, and its labels are nodes of the hierarchies.

    Parameters
    ----------
    looks, spark, policy
        As :func:`look_at_assessment` takes them.
    named : MaskedTable or "published"
    hierarchies : dict of quasi-identifier to Hierarchy
    key : str
        Of the policy.
    needed : sequence of str
        Columns it must have.
    used : collection of str
        Columns whose values are read.
    """
    release = None
    with looks.at(key):
        if key == RELEASE and not policy.guarantee.generalizes:
            release = open_masked(spark, policy, named).release
        else:
            release = open_release(spark, policy, named, needed, key=key, used=used)
            if key == RELEASE:
                refuse_other_kind(policy, release.manifest)
            collect_strangers(release, hierarchies, key=key)
        looks.saw(key, f"{release.title}, of {len(release.frame.columns)} columns")
    return release
