"""Iceberg's connector for Spark, both ways: it reads what is committed here, and what it writes is read here.

At every snapshot the rows are the same on both sides, or the table is refused here by name.
"""

from __future__ import annotations

import datetime as dt
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import connectors
import lakes
import pytest
import small_release
from connectors import Connector, ordered, published
from product import Privrisk, Ran
from pyiceberg.table.puffin import PuffinFile
from pyspark.sql import SparkSession

from privrisk_spark.errors import SchemaError
from privrisk_spark.storage.lakes.iceberg import open_iceberg
from privrisk_spark.storage.lakes.snapshot import Asked


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("iceberg")


@pytest.fixture(scope="module")
def connector(place: Path) -> Iterator[Connector]:
    with connectors.iceberg(place) as found:
        yield found


@pytest.fixture
def at(place: Path, request: pytest.FixtureRequest) -> str:
    """A table's name in Spark; it lies in a directory of this name."""
    return f"lake.db.{re.sub(r'[^a-z0-9]+', '_', request.node.name)}"


def directory(place: Path, at: str) -> Path:
    return place.joinpath(*at.split("."))


def snapshots(connector: Connector, at: str) -> list[int]:
    return [one["snapshot_id"] for one in connector(f"SELECT * FROM {at}.snapshots ORDER BY committed_at")]


def by_connector(connector: Connector, at: str, snapshot: int | None = None) -> list[dict[str, Any]]:
    version = "" if snapshot is None else f"VERSION AS OF {snapshot}"
    return connector(f"SELECT * FROM {at} {version} ORDER BY id")


def asked(table: Path, snapshot: int | None = None) -> Asked:
    return Asked("table", "iceberg", str(table), snapshot=snapshot)


def by_tasks(spark: SparkSession, table: Path, snapshot: int | None = None) -> list[dict[str, Any]]:
    return connectors.by_tasks(spark, asked(table, snapshot))


def refused(table: Path) -> str:
    with pytest.raises(SchemaError, match="cannot be read as iceberg") as caught:
        open_iceberg(asked(table))
    return str(caught.value)


@pytest.mark.parametrize("date_column", [None, "day"])
def test_each_release_is_a_snapshot_that_the_connector_reads(
    privrisk: Privrisk,
    connector: Connector,
    place: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    date_column: str | None,
) -> None:
    root, name = tmp_path / "x", f"of_{date_column}".lower()
    lakes.configure(monkeypatch, place / "lake")
    table, rows = tmp_path / "table.csv", small_release.rows()[:500]
    table.write_text("\n".join(["age;city", *rows]) + "\n")
    days = (20, 21, 22) if date_column else (20, 21)
    lake = {
        "format": "iceberg",
        "catalog": f"tests.lake.{name}",
        **({"date_column": date_column} if date_column else {}),
    }

    def released(day: int) -> Ran:
        changes = [("output.lake", lake), ("output.files", 2), ("run.date", f"2026-11-{day}")]
        ran = privrisk(small_release.policy("risk", table, root, *changes), "--run-id", f"r{day}", root=root)
        assert ran.code == 0, ran.err
        return ran

    def of(day: int) -> list[dict[str, Any]]:
        return published(root, f"r{day}", **({date_column: dt.date(2026, 11, day)} if date_column else {}))

    for day in days:
        released(day)
        with table.open("a") as more:
            more.write("20;Ulm\n" * 50)
    table.write_text("\n".join(["age;city", *rows, *(["20;Ulm"] * 50 * (len(days) - 1))]) + "\n")
    assert "Already released" in released(days[-1]).out
    # The connector's catalog is one of directories; it finds the table by the name that such a catalog gives metadata.
    found = lakes.catalog(place / "lake").load_table(f"lake.{name}")
    metadata = Path(lakes.metadata_of(found))
    shutil.copy(metadata, metadata.with_name("v1.metadata.json"))
    metadata.with_name("version-hint.text").write_text("1")
    there = connector(f"SELECT * FROM lake.lake.{name}.snapshots ORDER BY committed_at")
    assert [dict(one["summary"])["privrisk.run_id"] for one in there] == [f"r{day}" for day in days]
    for i, one in enumerate(there):
        shown = days[: i + 1] if date_column else days[i : i + 1]
        found_rows = connector(f"SELECT * FROM lake.lake.{name} VERSION AS OF {one['snapshot_id']}")
        assert ordered(found_rows) == ordered([row for day in shown for row in of(day)])
        assert len(found_rows) == (sum(500 + 50 * j for j in range(i + 1)) if date_column else 500 + 50 * i)
    if date_column:
        of_day = connector(f"SELECT * FROM lake.lake.{name} WHERE day = DATE '2026-11-21'")
        assert ordered(of_day) == ordered(of(21))


@pytest.mark.parametrize("version", [pytest.param(1, marks=pytest.mark.thorough("the newer format has all of it")), 2])
def test_every_snapshot_that_the_connector_writes_is_read(
    spark: SparkSession, connector: Connector, place: Path, at: str, version: int
) -> None:
    """Partitioning that changes, columns added, renamed, widened, swapped and made anew, rows deleted by copying."""
    table = directory(place, at)
    connector(
        f"CREATE TABLE {at} (id INT, age INT, city STRING, price DECIMAL(9,2), a STRING, b STRING) USING iceberg "
        f"PARTITIONED BY (city) TBLPROPERTIES ('format-version' = '{version}')"
    )
    connector(
        f"INSERT INTO {at} VALUES (0, 30, 'Ulm', -0.25, 'a', 'b'), (1, NULL, 'x y%/=ü', 1.50, 'a', 'b'), "
        "(2, 32, NULL, NULL, NULL, 'b'), (3, 33, '', 7, 'a', NULL)"
    )
    for change in ("ADD PARTITION FIELD bucket(2, id)", "DROP PARTITION FIELD city", "ADD COLUMN note STRING FIRST"):
        connector(f"ALTER TABLE {at} {change}")
    connector(f"INSERT INTO {at} VALUES ('new', 4, 34, 'Ulm', 1, 'a', 'b'), (NULL, 5, 35, 'Bonn', 2, 'a', 'b')")
    for change in (
        "RENAME COLUMN age TO years",
        "ALTER COLUMN years TYPE BIGINT",
        "ALTER COLUMN price TYPE DECIMAL(20,2)",
        "RENAME COLUMN a TO c",
        "RENAME COLUMN b TO a",
        "RENAME COLUMN c TO b",
        "DROP COLUMN note",
        "ADD COLUMN note STRING",
    ):
        connector(f"ALTER TABLE {at} {change}")
    assert by_tasks(spark, table) == by_connector(connector, at)
    connector(f"INSERT INTO {at} VALUES (6, {2**40}, 'Ulm', {10**12}, 'is b', 'is a', 'anew')")
    connector(f"DELETE FROM {at} WHERE id IN (1, 4)")
    connector(f"UPDATE {at} SET years = 99 WHERE id = 5")
    connector(f"CALL lake.system.rewrite_data_files(table => '{at}', options => map('rewrite-all', 'true'))")
    found = snapshots(connector, at)
    assert len(found) == 6
    for snapshot in found:
        assert by_tasks(spark, table, snapshot) == by_connector(connector, at, snapshot)
    newest = by_tasks(spark, table)
    assert newest == by_connector(connector, at)
    assert [(row["id"], row["years"], row["a"], row["note"]) for row in newest] == [
        *((0, 30, "b", None), (2, 32, "b", None), (3, 33, None, None)),
        *((5, 99, "b", None), (6, 2**40, "is a", "anew")),
    ]
    # The newest is the one the table stands at, not the one that was written last.
    connector(f"CALL lake.system.rollback_to_snapshot('{at}', {found[1]})")
    assert open_iceberg(asked(table)).pin.version == found[1]
    assert by_tasks(spark, table) == by_connector(connector, at)


def test_values_of_every_type_are_those_of_the_connector(
    spark: SparkSession, connector: Connector, place: Path, at: str
) -> None:
    connector(
        f"CREATE TABLE {at} (id INT, big BIGINT, part TIMESTAMP, flag BOOLEAN, real FLOAT, double DOUBLE, "
        "long DECIMAL(38, 10), bytes BINARY, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ, list ARRAY<STRING>, "
        "map MAP<STRING, INT>, who STRUCT<x: INT, y: ARRAY<DATE>>) USING iceberg "
        "PARTITIONED BY (flag, part, days(at), truncate(2, long))"
    )
    connector(
        f"INSERT INTO {at} VALUES (0, {2**63 - 1}, TIMESTAMP'2026-01-01 12:30:01.000005', true, 0.1, 1e-300, "
        "-1.0000000001, X'00FF', DATE'0001-01-01', TIMESTAMP'1969-12-31 23:59:59.999999', "
        "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', array('a', null, ''), map('k', 1, 'n', null), "
        f"named_struct('x', 1, 'y', array(DATE'1582-10-15'))), (1, {', '.join(['NULL'] * 13)})"
    )
    found = by_tasks(spark, directory(place, at))
    assert found == by_connector(connector, at)
    assert [row["flag"] for row in found] == [True, None]


def test_files_of_spark_that_were_added_have_their_partitions_values(
    spark: SparkSession, connector: Connector, place: Path, at: str, tmp_path: Path
) -> None:
    spark.sql("SELECT id, concat('v', id) AS name, id % 2 AS half FROM range(6)").selectExpr(
        "CAST(id AS INT) AS id", "name", "CAST(half AS INT) AS half"
    ).write.partitionBy("half").parquet(str(tmp_path / "plain"))
    connector(f"CREATE TABLE {at} (id INT, name STRING, half INT) USING iceberg PARTITIONED BY (half)")
    connector(f"CALL lake.system.add_files(table => '{at}', source_table => '`parquet`.`{tmp_path}/plain`')")
    connector(f"ALTER TABLE {at} RENAME COLUMN name TO called")
    found = by_tasks(spark, directory(place, at))
    assert found == by_connector(connector, at)
    assert [row["half"] for row in found] == [0, 1] * 3


@pytest.mark.parametrize("version", [2, 3])
def test_open_iceberg_rows_deleted_by_files_are_not_read(
    spark: SparkSession, connector: Connector, place: Path, at: str, version: int
) -> None:
    """Of the format 2 by files of places, of the format 3 by deletion vectors; a structure gets a field, too."""
    connector(
        f"CREATE TABLE {at} (id INT, part INT, s STRUCT<a: INT>, l ARRAY<STRUCT<b: INT>>) USING iceberg "
        f"PARTITIONED BY (part) TBLPROPERTIES ('write.delete.mode' = 'merge-on-read', 'format-version' = '{version}', "
        "'write.metadata.compression-codec' = 'gzip', 'write.parquet.row-group-size-bytes' = '4096')"
    )
    rows = (
        "SELECT CAST(id AS INT), CAST(id % 2 AS INT), named_struct('a', CAST(id AS INT)), array(named_struct('b', 1))"
    )
    connector(f"INSERT INTO {at} {rows} FROM range(3000)")
    connector(f"DELETE FROM {at} WHERE id % 7 = 3")
    connector(f"ALTER TABLE {at} ADD COLUMN s.more STRING")
    connector(f"ALTER TABLE {at} ADD COLUMN l.element.more STRING")
    connector(f"ALTER TABLE {at} ALTER COLUMN s.a TYPE BIGINT")
    connector(f"DELETE FROM {at} WHERE id < 30 OR (id % 2 = 0 AND id > 2000)")
    found = by_tasks(spark, directory(place, at))
    assert found == by_connector(connector, at)
    assert len(found) < 2200
    for snapshot in snapshots(connector, at):
        assert by_tasks(spark, directory(place, at), snapshot) == by_connector(connector, at, snapshot)
    if version == 3:
        file = max(directory(place, at).rglob("*.puffin"), key=lambda one: one.stat().st_mtime_ns)
        whole = file.read_bytes()
        # The last position of a vector, which four bytes of a checksum follow; and the name of its data file.
        blob = PuffinFile(whole).footer.blobs[0]
        last = blob.offset + blob.length - 6
        for changed in (
            whole[:last] + bytes([whole[last] ^ 1]) + whole[last + 1 :],
            whole.replace(b".parquet", b".parquex"),
        ):
            file.write_bytes(changed)
            assert "a delete file is damaged or gone" in refused(directory(place, at))
        file.write_bytes(whole)


@pytest.mark.parametrize(
    ("properties", "said"),
    [("'write.format.default' = 'orc'", "of the format ORC")],
)
def test_what_is_not_read_is_refused(connector: Connector, place: Path, at: str, properties: str, said: str) -> None:
    connector(f"CREATE TABLE {at} (id INT) USING iceberg TBLPROPERTIES ({properties})")
    connector(f"INSERT INTO {at} VALUES (1)")
    assert said in refused(directory(place, at))


def test_a_release_of_a_connectors_table_is_that_of_its_rows(
    privrisk: Privrisk, connector: Connector, place: Path, at: str, tmp_path: Path
) -> None:
    said = connectors.released_alike(privrisk, connector, tmp_path, "iceberg", at, directory(place, at))
    assert said["snapshot"] == snapshots(connector, at)[1]


def test_source_of_a_catalog_has_its_snapshot_files_and_place(connector: Connector, place: Path, at: str) -> None:
    connector(f"CREATE TABLE {at} (id INT, city STRING) USING iceberg PARTITIONED BY (city)")
    connector(f"INSERT INTO {at} VALUES (1, 'Ulm'), (2, 'Bonn')")
    connector(f"INSERT INTO {at} VALUES (3, 'Ulm')")
    first, second = snapshots(connector, at)
    (found,) = connector(f"SOURCE {at}")
    assert found["manifest"].pop("committed")
    assert found["manifest"] == {"catalog": at, "format": "iceberg", "snapshot": second, "files": 3}
    assert str(directory(place, at)) in found["account"]
    assert str(directory(place, at)) in found["output"]
    connector(f"CALL lake.system.rollback_to_snapshot('{at}', {first})")
    (found,) = connector(f"SOURCE {at}")
    assert (found["manifest"]["snapshot"], found["manifest"]["files"]) == (first, 2)


def test_a_first_policy_releases_what_the_connector_wrote(
    privrisk: Privrisk, connector: Connector, place: Path, at: str, tmp_path: Path
) -> None:
    connectors.first_release(privrisk, connector, tmp_path, "iceberg", at, directory(place, at))
