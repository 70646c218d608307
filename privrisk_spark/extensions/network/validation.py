"""What sharing in a network needs, looked at."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.extensions.network.page import explain_sharing
from privrisk_spark.extensions.network.pipeline import READ, check_output
from privrisk_spark.extensions.network.planning import read_policy
from privrisk_spark.extensions.network.policy import sharing_of
from privrisk_spark.extensions.network.rules import tables_of
from privrisk_spark.extensions.network.stages.user_pairs import check_columns, columns_of
from privrisk_spark.pipelines.validation.looks import (
    Looks,
    look_at_hierarchies,
    look_at_output,
    look_at_source,
    look_at_table,
)
from privrisk_spark.planning.lakes import pin_tables
from privrisk_spark.policy.policy import Policy


def look(
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
        As :func:`~privrisk_spark.pipelines.validation.assess.look_at_assessment` takes them.
    """
    asked = None
    with looks.at("sharing"):
        asked = sharing_of(policy)
    if asked is None:
        return None
    given, pinned = table is not None, None
    look_at_output(looks, policy, output, check_output)
    with looks.at("table"):
        pinned = pin_tables(policy, READ, given=given)
    if pinned is None:
        return None
    policy, asked = pinned.policy, sharing_of(pinned.policy)
    reading = read_policy(policy)
    opened = look_at_table(looks, spark, reading, table)
    hierarchies = look_at_hierarchies(looks, reading, opened, given=given)
    for key, of in tables_of(asked).items():
        named = columns_of(of)
        frame = look_at_source(looks, spark, of, key=key, used=named.values())
        if frame is not None:
            with looks.at(key):
                check_columns(frame, named, key=key)
    return None if looks.errors else explain_sharing(policy, hierarchies)
