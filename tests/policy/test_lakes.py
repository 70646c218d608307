"""What a policy says of a lake table: which keys go together, and what says which table and version is meant."""

from __future__ import annotations

import datetime as dt
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from policies import DP, RISK, Document, changed, faults

from privrisk_spark.ledger.identity import table_identity
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.policy.reading import load, parse

DAY = dt.date(2026, 11, 21)


def with_table(**table: Any) -> Document:
    return changed(RISK, ("table", {"path": "in/t", **table}))


@pytest.mark.parametrize(
    ("table", "key", "rule"),
    [
        ({"version": 3}, "table.version", "is only used with table.format: delta. Got 'parquet'"),
        ({"format": "iceberg", "version": 3}, "table.version", "is only used with table.format: delta. Got 'iceberg'"),
        ({"format": "delta", "snapshot": 3}, "table.snapshot", "is only used with table.format: iceberg. Got 'delta'"),
        ({"timestamp": "2026-11-21T06:00:00Z"}, "table.timestamp", "is only used with table.format: delta or iceberg"),
        (
            {"format": "delta", "version": 0, "timestamp": "2026-11-21T06:00:00Z"},
            "table.timestamp",
            "says which version is read, and so does table.version; give one of them",
        ),
        ({"format": "delta", "options": {"versionAsOf": 3}}, "table.options", "is not used by the format 'delta'"),
        ({"format": "delta", "version": -1}, "table.version", "must be at least 0"),
        ({"format": "delta", "timestamp": "2026-11-21T06:00:00"}, "table.timestamp", "with an offset from UTC"),
        ({"format": "delta", "timestamp": "yesterday"}, "table.timestamp", "with an offset from UTC"),
        ({"format": "delta", "path": None, "catalog": "a.b"}, "table.catalog", "goes without table.format"),
        ({"format": "iceberg", "path": None, "catalog": "b"}, "table.catalog", "must be catalog.namespace.table"),
    ],
)
def test_keys_that_do_not_go_together_are_named(table: dict[str, Any], key: str, rule: str) -> None:
    found = faults(with_table(**table))
    assert list(found) == [key]
    assert rule in found[key]


def test_every_table_of_a_policy_is_held_against_the_rules() -> None:
    document = changed(RISK, ("dictionary.version", 1), ("assess.release", {"path": "r", "snapshot": 2}))
    assert {"dictionary.version", "assess.release.snapshot"} <= set(faults(document))


def test_a_moment_is_one_however_it_is_written(tmp_path: Path) -> None:
    written = ["2026-11-21T06:00:00Z", "2026-11-21T07:00:00+01:00", dt.datetime(2026, 11, 21, 6, tzinfo=dt.UTC)]
    policies = [parse(with_table(format="delta", timestamp=one)) for one in written]
    assert len({policy.digest() for policy in policies}) == 1
    document = with_table(format="delta", timestamp="{ds}T06:00:00Z")
    (tmp_path / "daily.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    daily = load([tmp_path / "daily.yaml"], environment={}, date=DAY)
    assert daily.table.timestamp == written[2]
    assert daily.digest() == policies[0].digest()


def test_policies_that_are_older_than_the_keys_keep_their_digest() -> None:
    assert not {"version", "snapshot", "timestamp"} & set(parse(RISK).table.model_dump(mode="json"))
    numbers = {parse(with_table(format="delta", version=number)).digest() for number in (0, 1)}
    assert len(numbers) == 2, "version 0 is a version"


@pytest.mark.parametrize("form", ["delta", "iceberg", "Delta"])
def test_lakes_may_be_released_privately(form: str) -> None:
    """Their schema comes from their log, and their files are Parquet: a row is a row."""
    assert parse(changed(DP, ("table", {"path": "in/t", "format": form}))).table.lake == form.lower()
    found = faults(changed(DP, ("table", {"path": "in/t", "format": "avro"})))
    assert "table.format" in found


def test_every_version_is_of_one_table() -> None:
    """A ledger knows the table of a lineage by its place; each version of Iceberg has a metadata file of its own."""

    def identity(path: str, form: str = "iceberg") -> str:
        return table_identity(parse(with_table(path=path, format=form)))

    files = ["/lake/t/metadata/00001-a.metadata.json", "/lake/t/metadata/00002-b.metadata.json", "/lake/t"]
    assert len({identity(file) for file in files}) == 1
    assert identity("/lake/u") != identity("/lake/t")
    remote = {identity(f"s3://bucket{file}") for file in files}
    assert len(remote) == 1


@pytest.mark.parametrize(
    ("path", "form", "place"),
    [
        ("/lake/t/metadata/1.metadata.json", "iceberg", "/lake/t"),
        ("metadata/1.metadata.json", "iceberg", os.getcwd()),
        ("/lake/t", "iceberg", "/lake/t"),
        ("/lake/t/metadata/1.metadata.json", "json", "/lake/t/metadata/1.metadata.json"),
    ],
)
def test_the_place_of_a_table_is_its_directory(path: str, form: str, place: str) -> None:
    assert Table(path=path, format=form).place == place


def test_output_in_a_table_known_by_its_metadata_is_refused() -> None:
    document = with_table(format="iceberg", path="in/t/metadata/1.metadata.json")
    found = faults(changed(document, ("output.path", "in/t/data/out")))
    assert "must be neither table.path nor inside" in found["output.path"]


LAKE = ("output.lake", {"format": "delta", "path": "lake/t"})


def iceberg(catalog: str | None = "c.lake.t", **more: str) -> tuple[str, Any]:
    return "output.lake", {"format": "iceberg", "catalog": catalog, **more}


@pytest.mark.parametrize("base", [RISK, DP])
@pytest.mark.parametrize(
    ("changes", "key", "rule"),
    [
        (
            [("output.format", "csv")],
            "output.lake",
            "takes Parquet files only; write output.format: parquet. Got 'csv'",
        ),
        ([("output.lake.format", "orc")], "output.lake.format", "delta"),
        ([("output.lake.format", "iceberg")], "output.lake.path", "is not used by the format 'iceberg'"),
        ([("output.lake.path", None)], "output.lake.path", "is required with output.lake.format: delta"),
        ([("output.lake.catalog", "a.b.c")], "output.lake.catalog", "is only used with output.lake.format: iceberg"),
        ([iceberg(None)], "output.lake.catalog", "must be catalog.namespace.table"),
        ([iceberg("a.b")], "output.lake.catalog", "Got 'a.b'"),
        ([iceberg("a..b")], "output.lake.catalog", "Got 'a..b'"),
        ([iceberg(), ("output.format", "csv")], "output.lake", "takes Parquet files only"),
        (
            [iceberg(), ("table", {"catalog": "c.lake.t", "format": "iceberg"})],
            "output.lake.catalog",
            "must not be table.catalog: a run never writes onto its input",
        ),
        ([iceberg(date_column="AGE")], "output.lake.date_column", "is the name of columns.age to an"),
        ([iceberg(date_column="a.b")], "output.lake.date_column", "no dots"),
        ([("output.lake.path", "./out/../out/t")], "output.lake.path", "must be neither output.path nor inside nor"),
        ([("output.lake.path", "out/t/lake")], "output.lake.path", "must be neither output.path nor inside nor"),
        ([("output.lake.path", "out")], "output.lake.path", "must be neither output.path nor inside nor around it"),
        ([("output.lake.path", "vault/t/lake")], "output.lake.path", "must be neither output.vault nor inside nor"),
        ([("output.lake.path", "in")], "output.lake.path", "must be neither table.path nor inside nor around it"),
        (
            [("table", {"path": "s3a://bk/in/t", "format": "delta"}), ("output.lake.path", "s3://bk/in/t/")],
            "output.lake.path",
            "must be neither table.path nor inside nor around it",
        ),
        (
            [("output.path", "s3://bk/out"), ("output.lake.path", "s3a://bk/out/lake")],
            "output.lake.path",
            "must be neither output.path nor inside nor around it",
        ),
        (
            [("output.lake.date_column", "AGE")],
            "output.lake.date_column",
            "is the name of columns.age to a Delta table",
        ),
        ([("output.lake.date_column", "the day")], "output.lake.date_column", "is no name of a Delta table's column"),
        ([("output.lake.path", "s3://bk")], "output.lake.path", "must be a directory of its own in the bucket"),
        (
            [("output.lake.path", "dbfs://b/t")],
            "output.lake.path",
            "is on a file system ('dbfs') that is not available",
        ),
        (
            [("run.scratch", "s3://bk/x"), ("output.lake.path", "s3://bk/x/t")],
            "run.scratch",
            "must be neither output.lake.path, which is published, nor inside nor around it",
        ),
        (
            [("run.scratch", "s3://bucket/v/s"), ("output.vault", "s3a://bucket/v")],
            "run.scratch",
            "must be neither output.vault nor inside nor around it; left out, it is in the vault",
        ),
        (
            [("output.vault", "s3a://bk/v"), ("output.lake.path", "s3://bk/v/t")],
            "output.lake.path",
            "must be neither output.vault nor inside nor around it",
        ),
    ],
)
def test_a_table_for_releases_lies_by_itself(
    base: Document, changes: list[tuple[str, Any]], key: str, rule: str
) -> None:
    plain = changed(base, ("output.format", "parquet"), LAKE)
    parse(plain)
    found = faults(changed(plain, *changes))
    assert rule in found[key]


@pytest.mark.parametrize("name", ["zip code", "a,b", "a;b", "{a", "(a", "a\nb", "a\tb", "a=b", "AGE"])
def test_columns_that_a_table_cannot_have_are_named(name: str) -> None:
    document = changed(RISK, ("output.format", "parquet"), LAKE)
    document["columns"][name] = {"role": "sensitive"}
    assert list(faults(document)) == [f"columns.{name}"]
    del document["output"]["lake"]
    parse(document)


def test_a_policy_without_a_table_for_releases_keeps_its_digest() -> None:
    assert "lake" not in parse(RISK).canonical()
    assert parse(changed(RISK, ("output.format", "parquet"), LAKE)).digest() != parse(RISK).digest()


def test_a_table_in_a_catalog_is_named_by_the_catalog_alone() -> None:
    document = changed(RISK, ("output.format", "parquet"), iceberg())
    document["columns"]["zip code"] = {"role": "sensitive"}
    policy = parse(document)
    assert json.loads(policy.canonical())["output"]["lake"] == {"format": "iceberg", "catalog": "c.lake.t"}
    assert list(policy.places.published) == ["output.path"]
