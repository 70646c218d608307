"""A table is one table under all names of its place, on every day; two tables are two."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from policies import DP, changed

from privrisk_spark.ledger.identity import TableIdentity, table_identity
from privrisk_spark.policy.reading import parse
from privrisk_spark.storage.table_files import identity_of


def identity(path: str | None = None, *, catalog: str | None = None) -> TableIdentity:
    table = {"catalog": catalog} if catalog else {"path": path}
    return table_identity(parse(changed(DP, ("table", table))))


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
        assert identity(path).table == identity(path.replace("21", "22")).table


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


def files_of(path: Path | str) -> set[str]:
    return set(identity(str(path)).files)


def test_files_of_one_file_by_several_paths_are_shared(tmp_path: Path):
    (tmp_path / "in").mkdir()
    table = tmp_path / "in" / "x.csv"
    table.write_text("a\n1\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "y.csv").hardlink_to(table)
    (tmp_path / "soft.csv").symlink_to(table)
    paths = [
        tmp_path / "in",
        tmp_path / "linked",
        tmp_path / "linked" / "y.csv",
        tmp_path / "soft.csv",
        f"file://{table}",
    ]
    for path in paths:
        assert files_of(path) & files_of(table), path
    (tmp_path / "other.csv").write_text("a\n1\n")
    assert not files_of(tmp_path / "other.csv") & files_of(table), "a copy is another table"


def test_files_of_a_table_written_anew_share_its_name_only(tmp_path: Path):
    table, new = tmp_path / "table.csv", tmp_path / "new.csv"
    table.write_text("a\n1\n")
    before = identity(str(table))
    new.write_text("a\n2\n")
    new.rename(table)
    after = identity(str(table))
    assert before.table == after.table
    assert len(set(before.files) & set(after.files)) == 1


def test_files_that_get_an_inode_of_a_deleted_file_are_new(tmp_path: Path):
    """File systems give a number of a deleted file to the next one, often within the second."""
    seen: dict[str, int] = {}
    for number in range(50):
        file = tmp_path / f"{number}.csv"
        file.write_text("a\n")
        told = identity_of(file)
        assert told is not None
        assert told not in seen
        seen[told] = file.stat().st_ino
        time.sleep(0.006)  # longer than a tick of the file system's clock
        file.unlink()
    assert identity_of(tmp_path / "none.csv") is None


def test_table_of_a_frame_is_that_of_its_lineage():
    def of_frame(lineage: str, *files: str) -> TableIdentity:
        changes = (("table", {"catalog": "a given frame"}), ("ledger.lineage", lineage))
        return table_identity(parse(changed(DP, *changes)), files)

    assert of_frame("census") == of_frame(" Census")
    assert of_frame("census").table != of_frame("births").table
    assert set(of_frame("census", "s3a://b/x.parquet").files) == set(of_frame("births", "s3://b/x.parquet").files)


def test_a_unit_is_a_row_or_a_person_by_name():
    def unit(column: str | None) -> str:
        columns = DP["columns"] | {column: {"role": "identifier"}}
        of = [] if column is None else [("table.entity_id", column), ("columns", columns)]
        return table_identity(parse(changed(DP, *of))).unit

    assert unit(None) == "row"
    assert unit("pid") == "person pid" != unit("household")
    for strange in ("p" * 300, "p\u200bid"):
        assert len(unit(strange)) <= 200
        assert unit(strange).isprintable()
