"""A table that has not arrived whole is waited for: marker, age of its newest file, rows; on a disk and in a store."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from benchmarks.s3_server import BUCKET
from privrisk_spark.errors import ConfigError, IncompleteError
from privrisk_spark.policy.checks import Complete
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.opening import open_store
from privrisk_spark.storage.store import Store
from privrisk_spark.tables.completeness import check_arrived, collect_enough_rows

DAY = dt.date(2026, 3, 1)


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "local":
        return open_store(Location("file", "", str(tmp_path / "table")))
    request.getfixturevalue("endpoint")
    return open_store(Location("s3", BUCKET, f"{uuid4().hex}/table"))


def check(place: Store, date: dt.date = DAY, **what: Any) -> None:
    check_arrived(Table(path=str(place.location)), Complete(**what), date=date)


def put(place: Store, name: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "part")
    place.upload(name, tmp_path / "part")


def day_written(place: Store, name: str) -> dt.date:
    """By the store's clock, which may have passed midnight since this run began."""
    entry = place.find(name)
    assert entry is not None
    return dt.datetime.fromtimestamp(entry.modified, dt.UTC).date()


def test_a_table_without_its_marker_is_waited_for(place: Store, tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match=r"table.path: '.*table' has no files yet"):
        check(place, marker="_SUCCESS")
    put(place, "part-0.parquet", tmp_path)
    with pytest.raises(IncompleteError, match=r"has no file _SUCCESS yet") as caught:
        check(place, marker="_SUCCESS")
    assert caught.value.exit_code == 3
    place.write("_SUCCESS", b"")
    check(place, marker="_SUCCESS")
    place.remove("part-0.parquet")
    with pytest.raises(IncompleteError, match="has no files yet"):
        check(place, marker="_SUCCESS")


def test_a_table_of_an_earlier_day_is_waited_for(place: Store, tmp_path: Path) -> None:
    put(place, "part-0.parquet", tmp_path)
    written = day_written(place, "part-0.parquet")
    later = written + dt.timedelta(days=2)
    check(place, written, written_within_days=0)
    check(place, written - dt.timedelta(days=30), written_within_days=0)  # a backfill: it is younger than its day
    check(place, later, written_within_days=2)
    with pytest.raises(IncompleteError, match=rf"was written on {written}, and the table of {later}"):
        check(place, later, written_within_days=1)


def test_the_newest_file_counts_and_every_directory_of_a_pattern_has_its_marker(tmp_path: Path) -> None:
    long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC).timestamp()
    on_its_day = dt.datetime(2026, 3, 1, 23, 59, tzinfo=dt.UTC).timestamp()
    for region in ("north", "south"):
        put(open_store(Location("file", "", str(tmp_path / region))), "part.parquet", tmp_path)
    os.utime(tmp_path / "north/part.parquet", (long_ago, long_ago))
    os.utime(tmp_path / "south/part.parquet", (on_its_day, on_its_day))
    table = Table(path=f"{tmp_path}/*th")
    check_arrived(table, Complete(written_within_days=0), date=DAY)
    (tmp_path / "north/_SUCCESS").touch()
    with pytest.raises(IncompleteError, match=r"/south' has no file _SUCCESS yet"):
        check_arrived(table, Complete(marker="_SUCCESS"), date=DAY)
    os.utime(tmp_path / "south/part.parquet", (long_ago, long_ago))
    with pytest.raises(IncompleteError, match="was written on 2020-01-01"):
        check_arrived(table, Complete(written_within_days=0), date=DAY)


def test_files_that_nobody_here_sees_are_said() -> None:
    table = Table(path="dbfs://name/table")
    with pytest.raises(ConfigError, match=r"checks.complete.marker: needs files that are looked at here"):
        check_arrived(table, Complete(marker="_SUCCESS"), date=DAY)
    check_arrived(table, Complete(rows_at_least=3), date=DAY)


@pytest.mark.parametrize("said", [None, 7])
def test_too_few_rows_are_a_part_of_the_table(spark: SparkSession, said: int | None) -> None:
    frame = spark.range(7).toDF("a")
    collect_enough_rows(frame, Complete(rows_at_least=7), said=said)
    collect_enough_rows(frame, Complete(marker="x"), said=said)
    with pytest.raises(IncompleteError, match=r"table: it has 7 rows, and 8 are expected"):
        collect_enough_rows(frame, Complete(rows_at_least=8), said=said)
