"""The table of Spark's catalog that holds the newest release (``output.catalog``).

As :mod:`lake_output`, it is written after the release was published, from the published files, by the connector of the
session. A property of the table names the release that it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.engine.failures import list_spark_errors
from privrisk_spark.errors import ConfigError, EngineError, Fault, SchemaError
from privrisk_spark.pipelines.release.lake_output import list_releases
from privrisk_spark.policy.policy import Policy
from privrisk_spark.runs.outputs import Output
from privrisk_spark.runs.progress import LOGGER
from privrisk_spark.runs.sealing import release_digest
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.tables.released import Partitions, read_published
from privrisk_spark.tables.sources import quote_identifier

__all__ = ["check_catalog_table", "write_catalog_table"]

KEY: Final = "output.catalog"
_RELEASE: Final = "privrisk.catalog_release"
_RUN: Final = "privrisk.run_id"
_NO_REPLACE: Final = "UNSUPPORTED_FEATURE.TABLE_OPERATION"
"""How Spark names it that a catalog cannot replace a table at once."""


def check_catalog_table(spark: SparkSession, policy: Policy, output: Output) -> None:
    """Refuse a table that no release of an output made, before a row is read or anything is charged.

    Parameters
    ----------
    output : Output
        Of the policy.

    Raises
    ------
    ConfigError
        If the engine has no catalogs, or the catalog or schema does not exist.
    SchemaError
        If there is a table or view of the name that no release of the output made.
    """
    name = policy.places.catalog
    if name is None:
        return
    if is_embedded(spark):
        rule = f"the embedded engine has no catalogs. Got '{name}'. Fix: give --engine spark"
        raise ConfigError([Fault(KEY, rule)])
    schema = name.rpartition(".")[0]
    try:
        if schema and not spark.catalog.databaseExists(schema):
            rule = f"there is no schema '{schema}'. Got '{name}'. Fix: create it (CREATE SCHEMA), or name another one"
            raise ConfigError([Fault(KEY, rule)])
        _find_release(spark, name, output)
    except list_spark_errors() as error:  # its text may quote credentials
        rule = f"is no table that this session can reach ({_condition(error)}). Got '{name}'. Fix: check the catalog"
        raise ConfigError([Fault(KEY, rule)]) from None


def write_catalog_table(spark: SparkSession, policy: Policy, place: Workplace, manifest: Mapping[str, Any]) -> None:
    """Make the table hold a release that is published, unless a newer one is or the table holds it already.

    A catalog whose connector replaces tables (Delta, Iceberg, Unity) shows its readers the old release or the new one.
    In another one the table is dropped and made again.

    Parameters
    ----------
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
    if name is None or not _is_newest(place):
        return
    digest = release_digest(manifest)
    try:
        if _find_release(spark, name, place.output) == digest:
            return
        data, partitions = place.target.below("data"), Partitions.of_manifest(manifest)
        rows = read_published(spark, policy.places, data, key="output.path", partitions=partitions)
        _replace(rows, name, {_RELEASE: digest, _RUN: place.run_id})
    except list_spark_errors() as error:  # its text may quote credentials
        raise EngineError(
            f"{KEY}: '{name}' cannot be written ({_condition(error)}). The release is published at '{place.target}'. "
            "Fix: check the catalog and run the same run id again."
        ) from None
    LOGGER.info("output.catalog: run id %s is in the table '%s'", place.run_id, name)
    if not _is_newest(place):
        LOGGER.warning(
            "output.catalog: a newer release was published meanwhile, and '%s' may hold this one; run the newer run id "
            "again to write it",
            name,
        )


def _is_newest(place: Workplace) -> bool:
    current = place.output.current()
    return current is not None and current.get("run_id") == place.run_id


def _replace(rows: DataFrame, name: str, properties: Mapping[str, str]) -> None:
    """Replace a table by rows; in a catalog that cannot, drop it first."""
    spark, writer = rows.sparkSession, rows.writeTo(name)
    for key, value in properties.items():
        writer = writer.tableProperty(key, value)
    try:
        writer.createOrReplace()
    except PySparkException as error:
        if error.getCondition() != _NO_REPLACE:
            raise
        if spark.catalog.tableExists(name):
            spark.sql(f"DROP TABLE {quote_identifier(spark, name)}")
        writer.create()


def _find_release(spark: SparkSession, name: str, output: Output) -> str | None:
    """Return the digest of the release that a table holds; None if there is no such table."""
    if not spark.catalog.tableExists(name):
        return None
    rows = spark.sql(f"SHOW TBLPROPERTIES {quote_identifier(spark, name)}").toArrow()
    found = dict(zip(rows.column("key").to_pylist(), rows.column("value").to_pylist(), strict=True)).get(_RELEASE)
    if found is None or found not in list_releases(output):
        raise SchemaError(
            f"{KEY}: '{name}' is a table or view that no release of this output.path made; a release would replace it. "
            "Fix: name another table, or drop it."
        )
    return str(found)


def _condition(error: Exception) -> str:
    found = error.getCondition() if isinstance(error, PySparkException) else None
    return found or type(error).__name__
