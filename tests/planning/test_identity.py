"""A table is one table under all names of its place, on every day; two tables are two."""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import Path

import pytest
from policies import DP, changed

from privrisk_spark.planning.identity import TableIdentity, table_identity
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse

DAY = dt.date(2026, 11, 21)


def identity(path: str | None = None, *, catalog: str | None = None, day: dt.date = DAY) -> TableIdentity:
    table = {"catalog": catalog} if catalog else {"path": path}
    return table_identity(parse(changed(DP, ("table", table))), day)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://bucket/census", "s3a://bucket/census"),
        ("S3N://Bucket/census/", "s3a://bucket//census"),
        ("abfs://c@account.dfs.core.windows.net/t", "abfss://c@Account.dfs.core.windows.net/t"),
        ("hdfs:///data/census", "hdfs:///data/./old/../census"),
        ("dbfs:/mnt/census", "dbfs:///mnt/census"),
        ("/data/census.csv", "file:///data/census.csv"),
        ("/data/census-2026-11-20.csv", "/data/census-2026-11-22.csv"),
        ("/data/census_20261120", "/data/census_20250228"),
        ("/data/2026/11/20/part.csv", "/data/2026/11/21/part.csv"),
        ("s3://b/census/dt=2026-11-20", "s3a://b/census/dt=2026-11-22/"),
        ("s3://b/census/year=2026/month=1/day=2", "s3://b/census/year=2026/month=11/day=30"),
        ("/data/2026.11.20", "/data/2026_11_21"),
    ],
)
def test_one_place_is_one_table(one: str, other: str):
    assert identity(one).table == identity(other).table


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://bucket/census", "s3://bucket/Census"),
        ("s3://bucket/census", "s3://other/census"),
        ("s3://bucket/census", "gs://bucket/census"),
        ("/data/census-20261301", "/data/census-20261201"),
        ("/data/123202611201", "/data/123202611211"),
        ("/data/census", "/data/Census"),
    ],
)
def test_two_places_are_two_tables(one: str, other: str):
    assert identity(one).table != identity(other).table


def test_a_place_is_the_same_on_every_day():
    """The name of a file kept its date on all days but one."""
    for path in ("/data/census-2026-11-21.csv", "s3://b/dt=2026-11-21"):
        assert identity(path).table == identity(path, day=DAY + dt.timedelta(1)).table


def test_spark_does_not_tell_case_in_a_catalog():
    named = {identity(catalog=name).table for name in ("Main.Census", "main.census", "`main`.`census`")}
    assert len(named) == 1
    assert identity(catalog="main.births").table not in named
    assert identity(catalog="main.census").table != identity("main.census").table


def test_a_link_is_what_it_points_to(tmp_path: Path):
    for name in ("2026-11-20", "2026-11-21", "elsewhere"):
        (tmp_path / name).mkdir()
    link, found = tmp_path / "current", {}
    for name in ("2026-11-20", "2026-11-21", "elsewhere"):
        link.symlink_to(tmp_path / name)
        found[name] = identity(str(link)).table
        assert found[name] == identity(str(tmp_path / name)).table
        link.unlink()
    assert found["2026-11-20"] == found["2026-11-21"] != found["elsewhere"]


def former(policy: Policy, day: dt.date) -> str:
    """What the versions before called a table: the business date alone counted as any; a spelling was a place."""
    table = policy.table
    name = f"catalog {table.catalog}" if table.catalog else str(table.path)
    for form in ("%Y-%m-%d", "%Y/%m/%d", "%Y%m%d"):
        name = name.replace(day.strftime(form), "{ds}")
    return hashlib.sha256(name.encode()).hexdigest()[:32]


@pytest.mark.parametrize("path", ["s3://Bucket/census/", "/data/2026-11-20/x", "/data/2026-11-21/x", "/data/census"])
def test_a_lineage_of_an_earlier_version_is_still_of_its_table(path: str):
    found = identity(path)
    assert former(parse(changed(DP, ("table.path", path))), DAY) in (found.table, *found.formerly)


def test_nobody_knows_where_a_frame_lies():
    found = identity(catalog="a given frame")
    assert found.table is None
    assert len(found.formerly) == 1


def test_a_unit_is_a_row_or_a_person_by_name():
    def unit(column: str | None) -> str:
        columns = DP["columns"] | {column: {"role": "identifier"}}
        of = [] if column is None else [("table.entity_id", column), ("columns", columns)]
        return table_identity(parse(changed(DP, *of)), DAY).unit

    assert unit(None) == "row"
    assert unit("pid") == "person pid" != unit("household")
    for strange in ("p" * 300, "p\u200bid"):
        assert len(unit(strange)) <= 200
        assert unit(strange).isprintable()
