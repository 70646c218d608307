"""Delta's connector for Spark, both ways: it reads what is committed here, and what it writes is read here.

At every version the rows are the same on both sides, or the table is refused here by name.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import connectors
import pyarrow.parquet as pq
import pytest
import small_release
from connectors import Connector, ordered, published
from product import Privrisk, Ran
from pyspark.sql import SparkSession

from privrisk_spark.errors import SchemaError
from privrisk_spark.storage.lakes.delta import open_delta
from privrisk_spark.storage.lakes.snapshot import Asked


@pytest.fixture(scope="module")
def connector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connector]:
    with connectors.delta(tmp_path_factory.mktemp("delta")) as found:
        yield found


def history(connector: Connector, table: Path) -> list[dict[str, Any]]:
    return sorted(connector(f"DESCRIBE HISTORY delta.`{table}`"), key=lambda one: one["version"])


def by_connector(connector: Connector, table: Path, version: int, *order: str) -> list[dict[str, Any]]:
    return connector(f"SELECT * FROM delta.`{table}` VERSION AS OF {version} ORDER BY {', '.join(order)}")


def by_tasks(spark: SparkSession, table: Path, version: int | None = None) -> list[dict[str, Any]]:
    return connectors.by_tasks(spark, Asked("table", "delta", str(table), version=version))


def refused(table: Path, version: int | None = None) -> str:
    with pytest.raises(SchemaError, match="cannot be read as delta") as caught:
        open_delta(Asked("table", "delta", str(table), version=version))
    return str(caught.value)


@pytest.mark.parametrize(
    "date_column",
    [None, pytest.param("day", marks=pytest.mark.thorough("the same of Iceberg, in test_iceberg_connector.py"))],
)
def test_each_release_is_a_version_that_the_connector_reads(
    privrisk: Privrisk, connector: Connector, tmp_path: Path, date_column: str | None
) -> None:
    root, lake = tmp_path / "x", tmp_path / "x" / "lake"
    table, rows = tmp_path / "table.csv", small_release.rows()[:500]
    table.write_text("\n".join(["age;city", *rows]) + "\n")
    dates = (20, 21, 22) if date_column else (20, 21)
    place = {"format": "delta", "path": str(lake), **({"date_column": date_column} if date_column else {})}

    def released(day: int) -> Ran:
        dated = ("run.date", f"2026-11-{day}")
        ran = privrisk(
            small_release.policy("risk", table, root, ("output.lake", place), ("output.files", 2), dated),
            *("--run-id", f"r{day}"),
            root=root,
        )
        assert ran.code == 0, ran.err
        return ran

    def expected(*days: int) -> list[list[Any]]:
        """Of the newest release alone, or of all dates."""
        if date_column is None:
            return ordered(published(root, f"r{days[-1]}"))
        return ordered([row for day in days for row in published(root, f"r{day}", day=dt.date(2026, 11, day))])

    for day in dates:
        released(day)
        with table.open("a") as more:
            more.write("20;Ulm\n" * 50)
    table.write_text("\n".join(["age;city", *rows, *(["20;Ulm"] * 50 * (len(dates) - 1))]) + "\n")
    assert "Already released" in released(dates[-1]).out
    for version in range(len(dates)):
        found = by_connector(connector, lake, version, "city", "age")
        assert ordered(found) == expected(*dates[: version + 1])
        assert len(found) == (sum(500 + 50 * i for i in range(version + 1)) if date_column else 500 + 50 * version)
    told = history(connector, lake)
    assert [(one["version"], json.loads(one["userMetadata"])["privrisk.run_id"]) for one in told] == [
        (i, f"r{day}") for i, day in enumerate(dates)
    ]
    assert json.loads(told[-1]["userMetadata"]).keys() == {"privrisk.run_id", "privrisk.release"}
    # What its readers do to the table with their means is no hindrance to the next release.
    connector(f"OPTIMIZE delta.`{lake}`")
    connector(f"RESTORE TABLE delta.`{lake}` TO VERSION AS OF {len(dates) - 2}")
    connector(f"ALTER TABLE delta.`{lake}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    if date_column is None:
        connector(f"DELETE FROM delta.`{lake}` WHERE city = 'south'")
    with table.open("a") as more:
        more.write("20;Ulm\n" * 50)
    released(23)
    versions = history(connector, lake)
    assert json.loads(versions[-1]["userMetadata"])["privrisk.run_id"] == "r23"
    assert ordered(by_connector(connector, lake, len(versions) - 1, "city")) == expected(*dates[:-1], 23)


def test_every_version_that_the_connector_writes_is_read(
    spark: SparkSession, connector: Connector, tmp_path: Path
) -> None:
    """Partitions of several types, many commits with a checkpoint between them, a column more, deletes, compaction."""
    table = tmp_path / "t"
    at = f"delta.`{table}`"
    connector(
        f"CREATE TABLE {at} (id INT, age SMALLINT, city STRING, day DATE, price DECIMAL(9,2)) USING delta "
        "PARTITIONED BY (city, day, price) TBLPROPERTIES ('delta.checkpointInterval' = '4')"
    )
    connector(
        f"INSERT INTO {at} VALUES (0, 30, 'Ulm', DATE'2026-11-01', -0.25), (1, NULL, 'x y%/=ü', NULL, 1.50), "
        "(2, 32, NULL, DATE'1500-02-03', NULL), (3, 33, '', DATE'2026-11-01', 7)"
    )
    for i in range(4, 8):
        connector(f"INSERT INTO {at} VALUES ({i}, {30 + i}, 'Ulm', DATE'2026-11-01', -0.25)")
    connector(f"ALTER TABLE {at} ADD COLUMNS (note STRING)")
    connector(f"INSERT INTO {at} VALUES (8, 38, 'Bonn', DATE'2026-11-02', 2, 'new'), (9, 39, 'Ulm', NULL, 1, '')")
    connector(f"DELETE FROM {at} WHERE id IN (1, 4)")
    connector(f"UPDATE {at} SET age = 99 WHERE id = 5")
    connector(f"OPTIMIZE {at}")
    connector(f"DELETE FROM {at} WHERE city = 'Bonn'")
    told = history(connector, table)
    assert len(told) == 12
    assert [one["operation"] for one in told[-4:]] == ["DELETE", "UPDATE", "OPTIMIZE", "DELETE"]
    assert len(list((table / "_delta_log").glob("*.checkpoint*.parquet"))) >= 2
    for version in range(1, len(told)):
        assert by_tasks(spark, table, version) == by_connector(connector, table, version, "id"), version
    assert [row["id"] for row in by_tasks(spark, table)] == [0, 2, 3, 5, 6, 7, 9]
    # Once the log before a checkpoint is gone, the checkpoint alone tells.
    for commit in range(8):
        (table / "_delta_log" / f"{commit:020}.json").unlink()
    for version in (9, 11):
        assert by_tasks(spark, table, version) == by_connector(connector, table, version, "id")


def test_values_of_every_type_are_those_of_the_connector(
    spark: SparkSession, connector: Connector, tmp_path: Path
) -> None:
    """In a table with features of writers, a checkpoint of the second kind and times in its commits."""
    table = tmp_path / "t"
    connector(
        f"CREATE TABLE delta.`{table}` (id INT, tiny TINYINT, big BIGINT, part TIMESTAMP, flag BOOLEAN, real FLOAT, "
        "double DOUBLE, long DECIMAL(38, 10), bytes BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, "
        "list ARRAY<STRING>, map MAP<STRING, INT>, who STRUCT<x: INT, y: ARRAY<DATE>>) USING delta "
        "PARTITIONED BY (flag, part) TBLPROPERTIES ('delta.checkpointPolicy' = 'v2', 'delta.checkpointInterval' = '2', "
        "'delta.enableInCommitTimestamps' = 'true', 'delta.enableRowTracking' = 'true', "
        "'delta.enableChangeDataFeed' = 'true')"
    )
    for i in range(3):
        connector(
            f"INSERT INTO delta.`{table}` VALUES ({2 * i}, -128, {2**63 - 1}, TIMESTAMP'2026-01-01 12:30:01.000005', "
            "true, 0.1, 1e-300, -1.0000000001, X'00FF', DATE'0001-01-01', TIMESTAMP'9999-12-31 23:59:59.999999', "
            "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', array('a', null, ''), map('k', 1, 'n', null), "
            f"named_struct('x', 1, 'y', array(DATE'1582-10-15'))), ({2 * i + 1}, {', '.join(['NULL'] * 14)})"
        )
    connector(f"DELETE FROM delta.`{table}` WHERE id = 2")
    columns = [pq.read_metadata(file).schema.column for file in table.glob("flag=true/*/*.parquet")]
    assert {of(i).physical_type for of in columns for i in range(11) if of(i).path == "at"} == {"INT96"}
    assert list((table / "_delta_log").glob("*.checkpoint.*.json")) or (table / "_delta_log" / "_sidecars").exists()
    for version in (1, 3, 4):
        found = by_tasks(spark, table, version)
        assert found == by_connector(connector, table, version, "id"), version
    assert [row["id"] for row in found] == [0, 1, 3, 4, 5]
    told = history(connector, table)[4]["timestamp"]
    committed = open_delta(Asked("table", "delta", str(table))).committed
    assert committed is not None
    assert dt.datetime.fromisoformat(committed) == told


def test_a_release_of_a_connectors_table_is_that_of_its_rows(
    privrisk: Privrisk, connector: Connector, tmp_path: Path
) -> None:
    table = tmp_path / "t"
    said = connectors.released_alike(privrisk, connector, tmp_path, "delta", f"delta.`{table}`", table)
    assert said["version"] == 1


def test_source_of_a_catalog_has_its_version_files_and_place(connector: Connector, tmp_path: Path) -> None:
    connector("CREATE TABLE plain USING parquet AS SELECT 1 AS id")
    connector("CREATE VIEW seen AS SELECT * FROM plain")
    connector(
        f"CREATE TABLE cities USING delta PARTITIONED BY (city) LOCATION '{tmp_path}/c' "
        "AS SELECT 1 AS id, 'Ulm' AS city"
    )
    connector("INSERT INTO cities VALUES (2, 'Bonn'), (3, 'Ulm')")
    (history,) = connector("DESCRIBE HISTORY cities LIMIT 1")
    (found,) = connector("SOURCE spark_catalog.default.cities")
    committed = dt.datetime.fromisoformat(found["manifest"].pop("committed")).replace(tzinfo=dt.UTC)
    assert committed == history["timestamp"]
    assert found["manifest"] == {"catalog": "spark_catalog.default.cities", "format": "delta", "version": 1, "files": 3}
    assert f"{tmp_path}/c" in found["account"]
    assert f"{tmp_path}/c" in found["output"]
    connector("RESTORE TABLE cities TO VERSION AS OF 0")
    (found,) = connector("SOURCE cities")
    assert (found["manifest"]["version"], found["manifest"]["files"]) == (2, 1)
    assert connector("SOURCE plain")[0]["manifest"] == {"catalog": "plain", "format": "parquet", "files": 1}
    assert connector("SOURCE seen")[0]["manifest"] == {"catalog": "seen", "files": 1}


@pytest.mark.thorough("tests/storage/lakes/ reads absolute paths of a log")
def test_a_clone_reads_the_files_of_the_table_it_is_of(
    spark: SparkSession, connector: Connector, tmp_path: Path
) -> None:
    original, clone = tmp_path / "a b", tmp_path / "clone"
    connector(f"CREATE TABLE delta.`{original}` USING delta PARTITIONED BY (p) AS SELECT 1 AS id, 'x/y %' AS p")
    connector(f"CREATE TABLE delta.`{clone}` SHALLOW CLONE delta.`{original}`")
    connector(f"INSERT INTO delta.`{clone}` VALUES (2, 'z')")
    found = by_tasks(spark, clone)
    assert found == by_connector(connector, clone, 1, "id")
    assert [row["p"] for row in found] == ["x/y %", "z"]


@pytest.mark.parametrize(
    ("properties", "changes"),
    [
        pytest.param(
            "'delta.enableDeletionVectors' = 'true'",
            ("DELETE FROM {at} WHERE id % 7 = 3", "DELETE FROM {at} WHERE id < 3 OR (part = 'odd one' AND id > 2500)"),
            id="deletion-vectors",
        ),
        pytest.param(
            "'delta.columnMapping.mode' = 'name', 'delta.enableDeletionVectors' = 'true'",
            (
                "ALTER TABLE {at} RENAME COLUMN n TO `two words`",
                "ALTER TABLE {at} RENAME COLUMN part TO p",
                "ALTER TABLE {at} ADD COLUMN n STRING",
                "INSERT INTO {at} VALUES (9001, 1, 2, 3, 'odd one', 'new')",
                "ALTER TABLE {at} DROP COLUMN f",
                "DELETE FROM {at} WHERE id % 7 = 3",
            ),
            id="column-mapping",
        ),
        pytest.param(
            "'delta.columnMapping.mode' = 'id'", ("DELETE FROM {at} WHERE id < 9",), id="column-mapping-by-id"
        ),
        pytest.param(
            "'delta.enableTypeWidening' = 'true', 'delta.feature.timestampNtz' = 'supported'",
            (
                "ALTER TABLE {at} ALTER COLUMN n TYPE BIGINT",
                "ALTER TABLE {at} ALTER COLUMN f TYPE DOUBLE",
                "ALTER TABLE {at} ALTER COLUMN d TYPE DECIMAL(12, 3)",
                "INSERT INTO {at} VALUES (9001, 5000000000, 1.5, 123456789.125, 'even')",
                "ALTER TABLE {at} ADD COLUMNS (i INT, j INT, day DATE)",
                "INSERT INTO {at} VALUES (9002, 1, 1, 1, 'even', 7, 8, DATE '1970-01-03')",
                "ALTER TABLE {at} ALTER COLUMN i TYPE DOUBLE",
                "ALTER TABLE {at} ALTER COLUMN j TYPE DECIMAL(12, 2)",
                "ALTER TABLE {at} ALTER COLUMN day TYPE TIMESTAMP_NTZ",
            ),
            id="type-widening",
        ),
    ],
)
def test_open_delta_features_of_today_have_the_rows_of_the_connector(
    spark: SparkSession, connector: Connector, tmp_path: Path, properties: str, changes: tuple[str, ...]
) -> None:
    """Every version of a table that is partitioned by a column with a blank in its values."""
    table = tmp_path / "t"
    at = f"delta.`{table}`"
    columns = "id INT, n INT, f FLOAT, d DECIMAL(5, 2), part STRING"
    connector(f"CREATE TABLE {at} ({columns}) USING delta PARTITIONED BY (part) TBLPROPERTIES ({properties})")
    values = "CAST(id AS INT), CAST(id AS INT), 0.5, 1.25, if(id % 2 = 0, 'even', 'odd one')"
    connector(f"INSERT INTO {at} SELECT {values} FROM range(3000)")
    for change in changes:
        connector(change.format(at=at))
    for version in range(1, len(changes) + 2):
        assert by_tasks(spark, table, version) == by_connector(connector, table, version, "id"), version


@pytest.mark.parametrize(
    ("properties", "change", "said"),
    [
        ("'delta.appendOnly' = 'true'", "ALTER TABLE {at} ADD COLUMN fixed CHAR(5)", "'fixed' is of type char(5)"),
        (
            "'delta.columnMapping.mode' = 'name'",
            "ALTER TABLE {at} ADD COLUMN s STRUCT<a: INT>",
            "it has column mapping and the column 's' of type struct<a: int32>",
        ),
    ],
)
def test_open_delta_what_plain_files_would_misread_is_refused(
    connector: Connector, tmp_path: Path, properties: str, change: str, said: str
) -> None:
    table = tmp_path / "t"
    at = f"delta.`{table}`"
    connector(f"CREATE TABLE {at} (id INT, n INT) USING delta TBLPROPERTIES ({properties})")
    connector(change.format(at=at))
    assert said in refused(table)


@pytest.mark.thorough("the same of Iceberg in test_iceberg_connector.py")
def test_a_first_policy_releases_what_the_connector_wrote(
    privrisk: Privrisk, connector: Connector, tmp_path: Path
) -> None:
    table = tmp_path / "people"
    connectors.first_release(privrisk, connector, tmp_path, "delta", f"delta.`{table}`", table)
