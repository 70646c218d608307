"""``privrisk hierarchy``: files of ARX, trees and policies, shown, drawn, and held against a table by Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

pytestmark = pytest.mark.spark


def hierarchy(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["hierarchy", *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout + result.stderr


def found(*arguments: str) -> list[dict[str, Any]]:
    return list(json.JSONDecoder().raw_decode(hierarchy(*arguments, "--json")[1])[0])


@pytest.fixture(autouse=True)
def _in_session(spark: SparkSession) -> None:
    """The commands find the session of the tests."""


@pytest.fixture
def cities(tmp_path: Path) -> Path:
    path = tmp_path / "city.csv"
    path.write_text("Ulm;south;*\nBonn;north;*\nKoln;north;*\n")
    return path


def test_levels_of_a_file_of_a_tree_and_of_every_builder_of_a_policy(cities: Path, tmp_path: Path, small: Path) -> None:
    code, out = hierarchy("show", str(cities))
    assert code == 0
    assert "city: 3 values, declared; 3 levels" in out
    assert "south, north" in out
    (tmp_path / "tree.yaml").write_text('"*": {north: [Bonn], south: [Ulm]}')
    (one,) = found("show", str(tmp_path / "tree.yaml"), "--column", "city")
    assert (one["attribute"], one["leaves"]) == ("city", 2)
    assert [one["attribute"] for one in found("show", str(small))] == ["age", "sex", "city"]
    names = [level["name"] for level in found("show", str(small), "--column=age")[0]["levels"]]
    assert names == ["as it is", "width 5", "width 10", "width 20", "suppressed"]
    (tmp_path / "comma.csv").write_text("a,x,*\nb,x,*\n")
    assert hierarchy("show", str(tmp_path / "comma.csv"))[0] == 2
    assert hierarchy("show", str(tmp_path / "comma.csv"), "--separator=,")[0] == 0


def test_show_of_a_file_with_its_own_root_names_that_root(tmp_path: Path) -> None:
    file = tmp_path / "zip.csv"
    file.write_text("81667;8166*;816**;*****\n81675;8167*;816**;*****\n02134;0213*;021**;*****\n")
    (one,) = found("show", str(file))
    assert (one["leaves"], len(one["levels"])) == (3, 4)
    code, out = hierarchy("show", str(file))
    assert code == 0
    assert "*****" in out
    picture = tmp_path / "zip.svg"
    assert hierarchy("draw", str(file), "--output", str(picture))[0] == 0
    assert "*****" in picture.read_text()


def test_leaves_from_the_table_are_values_of_records_and_shown_on_request(small: Path, tmp_path: Path) -> None:
    small.write_text(small.read_text().replace('tree: {"*": {south: [Ulm], north: [Bonn, Kiel]}}', "mask: {steps: 2}"))
    code, out = hierarchy("show", str(small), "--column=city")
    assert code == 0, out
    assert "taken from the table" in out
    assert "--values shows them" in out
    assert "Kiel" not in out
    assert "Kiel" in hierarchy("show", str(small), "--column=city", "--values")[1]
    picture = tmp_path / "city.svg"
    code, out = hierarchy("draw", str(small), "--column=city", "--output", str(picture))
    assert code == 2
    assert "--values" in out
    assert not picture.exists()
    assert hierarchy("draw", str(small), "--column=city", "--values", "--output", str(picture))[0] == 0
    assert "Kiel" in picture.read_text()


def test_values_a_hierarchy_lacks_are_counted_and_shown_on_request(cities: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    code, out = hierarchy("check", str(cities), str(table), "--option", "sep=;")
    assert code == 2, "the fixture's policy was not asked for: no table yet"
    table.write_text("city;age\nUlm;1\nKiel;2\nKiel;3\n;4\nBonn;5\nRom;6\n")
    code, out = hierarchy("check", str(cities), str(table), "--option", "sep=;")
    assert code == 2
    assert "table: 6 rows, 1 without a value" in out
    assert "2 values in 3 rows are NOT in the hierarchy" in out
    assert "values of records" in out
    assert "Kiel" not in out
    code, out = hierarchy("check", str(cities), str(table), "--option", "sep=;", "--values")
    assert "'Kiel' in 2 rows" in out
    (one,) = found("check", str(cities), str(table), "--option", "sep=;")
    assert one["table"] == {
        "passed": False, "rows": 6, "missing": 1, "outside_rows": 3, "outside_values": 2, "values": [],
    }  # fmt: skip
    code, out = hierarchy("check", str(cities), str(table), "--option", "sep=;", "--column=town")
    assert code == 2
    assert "columns.town: the table has no such column" in out
    assert hierarchy("check", str(cities))[0] == 2
    assert hierarchy("check", str(cities), str(table), "--option", "sep")[0] == 2


def test_a_policy_is_checked_against_its_own_table_as_it_reads_it(small: Path) -> None:
    assert hierarchy("check", str(small))[0] == 0
    text = small.read_text()
    small.write_text(text.replace("[F, M]}}", "[f, m]}}"))
    assert hierarchy("check", str(small), "--column=sex")[0] == 2
    small.write_text(text.replace("[F, M]}}", "[f, m]}}, read: {case: lower}"))
    assert hierarchy("check", str(small), "--column=sex")[0] == 0
    small.write_text(text.replace("[F, M]}}", "[F]}}, unknown: suppress"))
    code, out = hierarchy("check", str(small), "--column=sex")
    assert code == 0
    assert "1 values in 30 rows are suppressed, as the policy says" in out
    code, out = hierarchy("check", str(small), "--column=sexx")
    assert code == 2
    assert "did you mean 'sex'" in out
