"""What an attack needs, inspected."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.extensions.attack.page import explain_attack
from privrisk_spark.extensions.attack.pipeline import run as attacking
from privrisk_spark.extensions.attack.pipeline.opened import open_attack
from privrisk_spark.extensions.attack.planning.attacks import ENGINE, by_splink
from privrisk_spark.extensions.attack.policy import attack_of
from privrisk_spark.extras import require
from privrisk_spark.pipelines.opening import Inspection
from privrisk_spark.pipelines.validation.places import inspect_places
from privrisk_spark.policy.policy import Policy


def inspect(
    inspection: Inspection, spark: SparkSession, policy: Policy, *, table: DataFrame | None, output: str | None
) -> str | None:
    """Inspect everything an attack needs, and return what it would try, if there is no error.

    Parameters
    ----------
    inspection, spark, policy, table, output
        As :func:`~privrisk_spark.pipelines.validation.assess.inspect_assessment` takes them.
    """
    pinned = inspect_places(inspection, policy, output, attacking.check_output, attacking.READ, given=table is not None)
    if pinned is None:
        return None
    with inspection.at(ENGINE):
        if by_splink(attack_of(pinned)):
            require("splink", ENGINE)
    opened = open_attack(spark, pinned, table, inspection)
    return None if opened is None else explain_attack(pinned, opened.known, release=opened.release.title)
