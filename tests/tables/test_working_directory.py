"""A table is read where Python looks for it, though Java keeps the directory in which it was started."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
import yaml
from product import ROOT, Privrisk
from pyspark.sql import SparkSession

from privrisk_spark.errors import SchemaError
from privrisk_spark.policy.dictionaries import Table
from privrisk_spark.tables.opening import read
from privrisk_spark.tables.source_files import check_files, refuse_others

pytestmark = pytest.mark.spark


def write(path: Path, form: str, value: str) -> None:
    """Write a table of one text."""
    table = pa.table({"value": [value]})
    path.mkdir(parents=True)
    if form == "parquet":
        pq.write_table(table, path / "part.parquet")
    elif form == "csv":
        pyarrow.csv.write_csv(table, path / "part.csv")
    elif form == "orc":
        pyarrow.orc.write_table(table, path / "part.orc")
    else:
        (path / "part.json").write_text(json.dumps({"value": value}) + "\n")


@pytest.fixture
def directories(tmp_path: Path) -> tuple[Path, Path, str]:
    """Java's place of a relative path, another directory, and the path, which there is another place."""
    java = tmp_path / "java"
    path = os.path.relpath(java, ROOT)
    ups = path.split(os.sep).count("..")
    here = tmp_path.joinpath("here", *(["down"] * ups))
    here.mkdir(parents=True)
    return java, here, path


ON_SPARK = pytest.mark.on_spark("the embedded engine refuses this format")


@pytest.mark.parametrize("form", ["parquet", "csv", *(pytest.param(form, marks=ON_SPARK) for form in ("orc", "json"))])
@pytest.mark.parametrize("name", ["plain", "with [brackets] and {braces}"])
def test_read_relative_path_after_a_change_of_directory_is_the_one_of_python(
    spark: SparkSession,
    directories: tuple[Path, Path, str],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    name: str,
) -> None:
    java, here, path = directories
    path = f"{path}/{name}"
    write(java / name, form, "of Java")
    write(here / path, form, "of Python")
    monkeypatch.chdir(here)
    options = {"header": True} if form == "csv" else {}
    table = Table(path=path, format=form, options=options)
    monkeypatch.chdir(ROOT)
    assert read(spark, table, key="table").toPandas()["value"].tolist() == ["of Python"]


@pytest.mark.parametrize("path", ["", "/*.csv"])
def test_read_relative_path_that_only_java_finds_raises(
    spark: SparkSession, directories: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    java, here, relative = directories
    write(java, "csv", "of Java")
    monkeypatch.chdir(here)
    table = Table(path=relative + path, format="csv", options={"header": True})
    with pytest.raises(SchemaError, match=rf"table\.path: '{here}/.*' cannot be read as csv: there is nothing there"):
        read(spark, table, key="table")


def test_read_relative_pattern_is_the_one_of_python(
    spark: SparkSession, directories: tuple[Path, Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    java, here, path = directories
    write(java, "csv", "of Java")
    write(here / path, "csv", "of Python")
    monkeypatch.chdir(here)
    table = Table(path=f"{path}/*.csv", format="csv", options={"header": True})
    assert read(spark, table, key="table").toPandas()["value"].tolist() == ["of Python"]


def test_refuse_others_as_many_files_of_another_directory_raises(tmp_path: Path) -> None:
    write(tmp_path / "table", "parquet", "a")
    write(tmp_path / "other", "parquet", "b")
    table = Table(path=str(tmp_path / "table"))
    found = check_files(table, key="table")
    assert found is not None
    refuse_others(found, [f"file://{tmp_path}/table/part.parquet"], table=table, key="table")
    with pytest.raises(SchemaError, match=rf"Spark reads '{tmp_path}/other/part\.parquet', which is no file of the"):
        refuse_others(found, [f"file://{tmp_path}/other/part.parquet"], table=table, key="table")


def test_release_with_relative_paths_reads_and_writes_below_the_directory_of_its_policy(
    spark: SparkSession,
    privrisk: Privrisk,
    small: Path,
    directories: tuple[Path, Path, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert spark is not None
    java, here, path = directories
    lines = (small.parent / "table.csv").read_text().splitlines()
    for directory, value in ((java, "of Java"), (here / path, "of Python")):
        directory.mkdir(parents=True)
        rows = [f"{line.rpartition(';')[0]};{value}" for line in lines[1:]]
        (directory / "table.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    (here / "city.csv").write_text("Ulm;south;*\nBonn;north;*\nKiel;north;*\n")
    document = yaml.safe_load(small.read_text())
    document["table"]["path"] = f"{path}/table.csv"
    document["columns"]["city"]["hierarchy"] = {"file": "city.csv"}
    (here / "policy.yaml").write_text(yaml.safe_dump(document))
    monkeypatch.chdir(here)
    ran = privrisk("policy.yaml", "--run-id", "r1", output="out", vault="vault", root=here)
    assert ran.code == 0, ran.err
    assert set(pq.read_table(ran.data).to_pandas()["diagnosis"]) == {"of Python"}
    assert (here / "vault" / "decisions").is_dir()
    assert str(here) not in json.dumps(ran.manifest)
