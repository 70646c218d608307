"""What sharing in a network needs, inspected."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.extensions.network.page import explain_sharing
from privrisk_spark.extensions.network.pipeline import READ, check_output, open_network
from privrisk_spark.extensions.network.policy import sharing_of
from privrisk_spark.pipelines.opening import Inspection
from privrisk_spark.pipelines.validation.places import inspect_places
from privrisk_spark.policy.policy import Policy


def inspect(
    inspection: Inspection, spark: SparkSession, policy: Policy, *, table: DataFrame | None, output: str | None
) -> str | None:
    """Inspect everything that sharing in a network needs, and return what it would decide, if there is no error.

    Parameters
    ----------
    inspection, spark, policy, table, output
        As :func:`~privrisk_spark.pipelines.validation.assess.inspect_assessment` takes them.
    """
    asked = None
    with inspection.at("sharing"):
        asked = sharing_of(policy)
    if asked is None:
        return None
    pinned = inspect_places(inspection, policy, output, check_output, READ, given=table is not None)
    if pinned is None:
        return None
    opened = open_network(spark, pinned, table, None, inspection)
    return None if inspection.errors else explain_sharing(pinned, opened.hierarchies)
