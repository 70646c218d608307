"""What an assessment needs, inspected."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.extras import require
from privrisk_spark.pipelines.assess import run as assessing
from privrisk_spark.pipelines.opening import Inspection
from privrisk_spark.pipelines.validation.places import inspect_places
from privrisk_spark.policy.policy import Policy


def inspect_assessment(
    inspection: Inspection, spark: SparkSession, policy: Policy, *, table: DataFrame | None, output: str | None
) -> str | None:
    """Inspect everything an assessment needs, and return what it would measure, if there is no error.

    Parameters
    ----------
    inspection : Inspection
    spark : SparkSession
    policy : Policy
    table : DataFrame or None
        Instead of the policy's table.
    output : str or None
        Where the findings would go.
    """
    pinned = inspect_places(inspection, policy, output, assessing.check_output, assessing.READ, given=table is not None)
    if pinned is None:
        return None
    with inspection.at("assess.classifiers"):
        if pinned.assess.classifiers is not None:
            require("sklearn", "assess.classifiers")
    opened, masked = assessing.open_assessment(spark, pinned, table, inspection)
    return None if inspection.errors else assessing.explain(pinned, opened, masked)
