"""Values tidied on reading: the same release as of a tidy table, counted in the vault, declared in the manifest."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

READ = {
    "sex": {"trim": True, "case": "upper", "map": {"W": "F"}},
    "city": {"trim": True, "null_if": ["?"]},
    "diagnosis": {"case": "lower"},
}


def with_reading(policy: Path, reading: dict[str, object], **more: object) -> Path:
    document = yaml.safe_load(policy.read_text())
    for name, read in reading.items():
        document["columns"][name]["read"] = read
    return written(policy, document | more)


def written(policy: Path, document: dict[str, object]) -> Path:
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    return policy


def messy(table: Path) -> int:
    """Write the table as people do; returns how many sexes are not as in the tidy one."""
    head, *lines = table.read_text().splitlines()
    for i, line in enumerate(lines):
        one, age, sex, city, diagnosis = line.split(";")
        sex = [sex, f" {sex}", sex.lower(), sex if sex == "M" else "w "][i // 2 % 4]
        lines[i] = ";".join([one, age, sex, f"{city} " if i % 7 == 0 else city, diagnosis.upper()])
    table.write_text("\n".join([head, *lines]) + "\n")
    return sum(line.split(";")[2] not in "FM" for line in lines)


def test_a_messy_table_is_released_as_a_tidy_one(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    tidy = privrisk(str(small), root=tmp_path / "tidy")
    assert tidy.code == 0, tidy.err
    assert "read" not in tidy.manifest
    changed = messy(tmp_path / "table.csv")
    refused = privrisk(str(small), root=tmp_path / "refused")
    assert (refused.code, "columns.sex.hierarchy" in refused.err) == (2, True)
    ran = privrisk(str(with_reading(small, READ)), root=tmp_path / "messy")
    assert ran.code == 0, ran.err
    data = [file["sha256"] for file in ran.manifest["data"]["files"]]
    assert data == [file["sha256"] for file in tidy.manifest["data"]["files"]]
    assert ran.manifest["read"] == {f"columns.{name}.read": read for name, read in READ.items()}
    facts = ran.summary["facts"]
    assert facts["values changed by columns.sex.read.trim"] < changed
    assert facts["values changed by columns.diagnosis.read.case"] == 60
    assert facts["values changed by columns.city.read.null_if"] == 0
    assert "values changed by" in (tmp_path / "messy" / "vault" / "report.html").read_text()
    for file in (tmp_path / "messy" / "out").rglob("*.*"):
        if file.suffix in (".json", ".html"):
            assert "values changed" not in file.read_text()
    # The same of Parquet, which tasks read themselves.
    text = pa.csv.ConvertOptions(column_types={name: pa.string() for name in ("id", "age", "sex", "city", "diagnosis")})
    options = pa.csv.ParseOptions(delimiter=";")
    rows = pa.csv.read_csv(tmp_path / "table.csv", parse_options=options, convert_options=text)
    pq.write_table(rows, tmp_path / "table.parquet")
    document = yaml.safe_load(small.read_text())
    document["table"] = {"path": str(tmp_path / "table.parquet"), "record_id": "id"}
    of_parquet = privrisk(str(written(small, document)), root=tmp_path / "of_parquet")
    assert of_parquet.code == 0, of_parquet.err
    assert of_parquet.manifest["data"]["files"] == ran.manifest["data"]["files"]
    assert of_parquet.summary["facts"] == facts


def test_timestamps_are_quasi_identifiers_by_their_day(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    """Of the table and of a register alike."""
    born = [dt.datetime(1980 + i % 3, 1, 1 + i % 2, 23, 59, tzinfo=dt.UTC) for i in range(60)]
    table = pa.table({"id": [f"p{i}" for i in range(60)], "born": pa.array(born, pa.timestamp("us", "UTC"))})
    pq.write_table(table, tmp_path / "born.parquet")
    pq.write_table(table.rename_columns(["who", "birth"]), tmp_path / "register.parquet")
    document = yaml.safe_load(small.read_text())
    document["table"] = {"path": str(tmp_path / "born.parquet"), "record_id": "id"}
    steps = {"dates": {"steps": ["day", "year"]}}
    document["columns"] = {
        "id": {"role": "identifier"},
        "born": {"role": "quasi-identifier", "hierarchy": steps, "read": {"cast": "date"}},
    }
    birth = {"column": "birth", "read": {"cast": "date"}}
    document["dictionary"] = {"kind": "table", "path": str(tmp_path / "register.parquet"), "columns": {"born": birth}}
    document["decision"] = {"utility_at_least": 2}
    ran = privrisk(str(written(small, document)))
    assert ran.code == 0, ran.err
    rows_out = pq.read_table(ran.data).to_pylist()
    assert {row["born"] for row in rows_out} == {day.date().isoformat() for day in born}
    assert ran.summary["risk_after"]["max"] == pytest.approx(0.1)
    assert list(ran.manifest["read"]) == ["columns.born.read", "dictionary.columns.born.read"]


def test_values_that_are_no_dates_are_refused_with_what_would_do(
    privrisk: Privrisk, small: Path, tmp_path: Path
) -> None:
    ran = privrisk(str(with_reading(small, {"diagnosis": {"cast": "date"}})))
    assert ran.code == 2
    assert "columns.diagnosis.read.cast: 60 values are no dates (YYYY-MM-DD). Fix: correct them, or set" in ran.err


@pytest.mark.thorough("test_a_messy_table_is_released_as_a_tidy_one; tests/tables/test_tidying.py")
def test_an_assessment_sees_the_tidied_values(spark: SparkSession, small: Path, tmp_path: Path) -> None:
    measured = []
    for _ in range(2):
        place = tmp_path / f"assessed-{len(measured)}"
        result = CliRunner().invoke(app, ["assess", str(small), "--output", str(place)])
        assert result.exit_code == 0, result.output
        (file,) = place.rglob("measures.json")
        measured.append(json.loads(file.read_text()))
        messy(tmp_path / "table.csv")
        with_reading(small, READ)
    assert measured[0] == measured[1]


def persons(tmp_path: Path, read: dict[str, object] | None) -> Path:
    """Write a table of ten individuals whose ids are written in three ways, and a policy that counts individuals."""
    rows = [f"r{i};{(f'p{i % 10}', f'P{i % 10}', f'p{i % 10} ')[i // 10]};{30 + i % 2}" for i in range(30)]
    (tmp_path / "people.csv").write_text("\n".join(["id;who;age", *rows]) + "\n")
    document = {
        "version": 1,
        "run": {"name": "people"},
        "table": {
            "path": str(tmp_path / "people.csv"),
            "format": "csv",
            "options": {"sep": ";", "header": True},
            "record_id": "id",
            "entity_id": "who",
        },
        "columns": {
            "id": {"role": "identifier"},
            "who": {"role": "identifier", **({} if read is None else {"read": read})},
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [10], "domain": [0, 99]}}},
        },
        "decision": {"utility_at_least": 1},
        "checks": {"min_class_size": 20},
        "output": {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")},
    }
    return written(tmp_path / "people.yaml", document)


def test_entity_id_with_reading_counts_tidied_ids(privrisk: Privrisk, tmp_path: Path) -> None:
    raw = privrisk(str(persons(tmp_path, None)), root=tmp_path / "raw")
    assert raw.code == 0, raw.err
    assert "at least 20 ids in 'who' differ from another id only by case or by blanks" in raw.err
    assert "P3" not in raw.err
    tidy = privrisk(str(persons(tmp_path, {"trim": True, "case": "upper"})), root=tmp_path / "tidy")
    assert tidy.code == 1, "ten individuals are fewer than twenty"
    assert "min_class_size" in tidy.err or "class" in tidy.err
    assert "differ from another id" not in tidy.err
