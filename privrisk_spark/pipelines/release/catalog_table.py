"""The table of Spark's catalog that holds the newest release (``output.catalog``).

As :mod:`lake_output`, it is written after the release was published, from the published files, by the connector of the
session. A property of the table names the release that it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.released import Partitions, read_published
from privrisk_spark.engine.sources import sql_identifier
from privrisk_spark.errors import ConfigError, EngineError, Fault, SchemaError
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.workplace import Workplace

KEY: Final = "output.catalog"
_RELEASE: Final = "privrisk.release"
_RUN: Final = "privrisk.run_id"
_NO_REPLACE: Final = "UNSUPPORTED_FEATURE"
"""How Spark names it that a catalog cannot replace a table at once."""


def check_catalog_table(spark: SparkSession, policy: Policy) -> None:
    """Refuse a table that no release of this program made, before a row is read or anything is charged.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy

    Raises
    ------
    ConfigError
        If the engine has no catalogs.
    SchemaError
        If there is a table or view of the name without the mark of a release.
    """
    name = policy.places.catalog
    if name is None:
        return
    if is_embedded(spark):
        rule = f"the embedded engine has no catalogs. Got '{name}'. Fix: give --engine spark"
        raise ConfigError([Fault(KEY, rule)])
    _held(spark, name)


def write_catalog_table(spark: SparkSession, policy: Policy, place: Workplace, manifest: Mapping[str, Any]) -> None:
    """Make the table hold a release that is published, unless a newer one is or the table holds it already.

    A catalog whose connector replaces tables (Delta, Iceberg, Unity) shows its readers the old release or the new one.
    In another one the table is dropped and made again.

    Parameters
    ----------
    spark : SparkSession
    policy : Policy
    place : Workplace
        Held.
    manifest : mapping
        Of the release.

    Raises
    ------
    SchemaError
        As :func:`check_catalog_table`; the release is published nevertheless.
    EngineError
        If Spark cannot write the table; running the same run id again writes it.
    """
    name = policy.places.catalog
    current = place.output.current()
    if name is None or current is None or current.get("run_id") != place.run_id:
        return
    digest = release_digest(manifest)
    try:
        if _held(spark, name) == digest:
            return
        data, partitions = place.target.below("data"), Partitions.of_manifest(manifest)
        rows = read_published(spark, policy.places, data, key="output.path", partitions=partitions)
        writer = rows.writeTo(name).tableProperty(_RELEASE, digest).tableProperty(_RUN, place.run_id)
        try:
            writer.createOrReplace()
        except PySparkException as error:
            if not str(error.getCondition()).startswith(_NO_REPLACE):
                raise
            if spark.catalog.tableExists(name):
                spark.sql(f"DROP TABLE {sql_identifier(spark, name)}")
            writer.create()
    except PySparkException as error:  # of a catalog; its text may quote credentials
        raise EngineError(
            f"{KEY}: '{name}' cannot be written ({error.getCondition() or type(error).__name__}). The release is "
            f"published at '{place.target}'. Fix: check the catalog and run the same run id again."
        ) from None
    LOGGER.info("output.catalog: run id %s is in the table '%s'", place.run_id, name)


def _held(spark: SparkSession, name: str) -> str | None:
    """Return the digest of the release that a table holds; None if there is no such table."""
    if not spark.catalog.tableExists(name):
        return None
    rows = spark.sql(f"SHOW TBLPROPERTIES {sql_identifier(spark, name)}").toArrow()
    found = dict(zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True)).get(_RELEASE)
    if found is None:
        raise SchemaError(
            f"{KEY}: '{name}' is a table or view that no release made; a release would replace it. Fix: name another "
            "table, or drop it."
        )
    return str(found)
