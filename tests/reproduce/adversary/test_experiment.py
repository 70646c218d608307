"""The case study of a planned attack end to end: files, a policy's table by Spark, refusals, and nothing that leaks."""

from __future__ import annotations

import csv
import json
import re
import shutil
import stat
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from product import Privrisk
from pyspark.sql import SparkSession
from reproducing import Ended, reproduce

from reproduce.adversary.results import AdversarySizes, run_on
from reproduce.adversary.tables import collect_groups, collect_persons
from reproduce.generated import registry
from reproduce.generated.registry import RACES, SEXES, Persons, Registry

pytestmark = pytest.mark.usefixtures("no_charts")

FEW = ("--rows=30000", "--records=300", "--seed=9", "--date=2026-01-02")
KINDS = ["groups", "runtime", "risk", "payoff", "exploits", "unknown", "costs", "deterrence"]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def experiments(output: Path, *arguments: str) -> Ended:
    return reproduce("adversary", *FEW, *arguments, f"--output={output}")


@pytest.fixture(scope="module")
def on_generated_data(tmp_path_factory: pytest.TempPathFactory) -> tuple[Ended, Path]:
    """A run without a policy, and where its files are."""
    output = tmp_path_factory.mktemp("generated") / "experiments"
    return experiments(output), output


@pytest.fixture
def people(tmp_path: Path) -> Path:
    """A policy over a small table with age, race and sex; returns the policy file."""
    rows = ["age;race;sex;job"]
    for i in range(200):
        rows.append(f"{(17, 35, 40, 90, 12)[i % 5]};{RACES[i % 3]};{SEXES[i % 2]};{'xy'[i % 2]}clerk")
    rows += [
        "41;Martian;f;xclerk",
        "42;white ;M;xclerk",
        ";White;Male;xclerk",
        "43;;Male;xclerk",
        "44;White;none;xclerk",
    ]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(rows) + "\n")
    policy = tmp_path / "people.yaml"
    policy.write_text(
        f"""
version: 1
run: {{name: people}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}, record_id: null}}
columns:
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 10, 20], domain: [0, 99]}}}}}}
  race: {{role: quasi-identifier, hierarchy: {{flat: {{values: [White, Black, Asian-Pac-Islander]}}}}}}
  sex: {{role: quasi-identifier, hierarchy: {{flat: {{values: [Female, Male]}}}}}}
  job: {{role: sensitive}}
decision: {{problem: min-risk, utility_at_least: 1}}
output: {{path: {tmp_path / "out"}, vault: {tmp_path / "vault"}}}
"""
    )
    return policy


def test_generated_data_need_no_policy(on_generated_data: tuple[Ended, Path], tmp_path: Path) -> None:
    made, output = on_generated_data
    assert made.exit_code == 0, made.stderr
    assert "never publish" not in made.stdout
    names = {".privrisk.json", "adversary.json", "adversary.csv", "adversary.html", "status.json"}
    assert {path.name for path in output.iterdir()} == names
    assert stat.S_IMODE(output.stat().st_mode) == 0o700
    document = json.loads((output / "adversary.json").read_text())
    assert document["sizes"] == {"rows": 30000, "records": 300, "seed": 9}
    (one,) = document["experiments"]
    persons, made_registry = Persons.generated(9, 300), Registry(30_000, 9)
    cells, records = persons.placed(made_registry.law, 9)
    expected = run_on("generated", persons, (*made_registry.counted(cells), records), AdversarySizes(30_000, 300, 9))
    np.testing.assert_allclose(one["table"]["mean_risk"], expected.table.mean_risk)
    np.testing.assert_allclose(one["changed"]["lower"], expected.changed.lower)
    assert [plot["key"] for plot in document["plots"]] == KINDS
    assert all(plot["found"].endswith(".") for plot in document["plots"])
    assert [claim["verdict"] for claim in document["claims"]][:3] == ["holds", "holds", "in 1 of 2 cases"]
    assert sum(claim["source"] == "Xia et al. (2015)" for claim in document["claims"]) == 9
    lines = list(csv.DictReader((output / "adversary.csv").read_text().splitlines()))
    assert {line["experiment"] for line in lines} == set(KINDS)
    assert {line["measured"] for line in lines if line["experiment"] == "runtime"} == {"yes"}
    page = (output / "adversary.html").read_text()
    assert page.count("<svg") == page.count("The chart as a table") == len(KINDS)
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    if BROWSER is not None:
        picture = tmp_path / "page.png"
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000",
                   f"--screenshot={picture}", "--window-size=1000,2000", str(output / "adversary.html")]  # fmt: skip
        subprocess.run(command, capture_output=True, timeout=120, check=True)
        assert picture.stat().st_size > 50_000, "a blank page is smaller"


def test_a_policy_adds_its_table(
    privrisk: Privrisk, people: Path, tmp_path: Path, on_generated_data: tuple[Ended, Path]
) -> None:
    del privrisk  # its session is this test's
    alone, output = on_generated_data[1], tmp_path / "experiments"
    made = experiments(output, str(people))
    assert made.exit_code == 0, made.stderr
    assert "never publish" in made.stdout
    document = json.loads((output / "adversary.json").read_text())
    generated, one = document["experiments"]
    # Spark counts the same registry as one process does, and all that is found of it is the same.
    (by_itself,) = json.loads((alone / "adversary.json").read_text())["experiments"]
    for found in (generated, by_itself):
        found["runtime"]["seconds"] = None
    assert generated == by_itself
    assert one["data"] == "people"
    assert one["table"]["records"] == 202
    assert "202 records with age, race and sex" in one["basis"]
    # The 40 of 12 years are in no cell of the registry.
    assert one["table"]["with_size"][0] >= 40
    notes = " ".join(document["notes"])
    assert "3 records without a whole age" in notes
    assert "40 records of an age outside 17 to 120" in notes
    assert "40 records top-coded at 90" in notes
    page = (output / "adversary.html").read_text()
    assert "Keep inside the trusted zone" in page
    assert page.count(": not drawn.") == len(KINDS) + 4
    # No value of a record is anywhere.
    for path in output.iterdir():
        assert not re.search(r"Martian|Asian|clerk", path.read_text())


def test_records_are_counted_by_what_the_registry_knows(spark: SparkSession) -> None:
    rows = [("39", " White", "MALE"), ("39", "white", "m"), ("90", "Klingon", "F"), ("300", "Black", "f"),
            ("-5", "Black", "f"), (None, "Black", "f"), ("old", "Black", "f"), ("39", None, "f"),
            ("39", "Black", "x")]  # fmt: skip
    frame = spark.createDataFrame(rows, "age string, race string, sex string").repartition(3)
    persons, left_out = collect_persons(frame)
    found = list(zip(*(a.tolist() for a in (persons.age, persons.race, persons.sex, persons.records)), strict=True))
    assert found == [(16, 1, 1, 1), (39, 0, 0, 2), (90, 4, 1, 1), (121, 1, 1, 1)]
    assert left_out == 4


def test_spark_counts_the_registry(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "PEOPLE_OF_A_PART", 1_000)
    made = Registry(2_500, 3)
    drawn = [cell for part, people, _ in made.parts for cell in made.law.drawn(3, part, people).tolist()]
    assert len(made.parts) == 4
    everyone = Counter(drawn)
    cells = np.array([-1, *sorted(everyone)[::2]])
    registered, people = collect_groups(spark, made, cells)
    assert people.tolist() == [everyone[cell] for cell in cells.tolist()]
    assert registered.tolist() == [Counter(drawn[:2_500])[cell] for cell in cells.tolist()]


def test_what_is_refused(small: Path, people: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    for option in ("--rows=0", "--records=0", "--seed=-1"):
        assert experiments(output, option).exit_code == 2, option
    made = experiments(output, "--set=a.b=1")
    assert (made.exit_code, "--set: changes a policy" in made.stderr) == (2, True)
    made = experiments(output, str(small))
    assert (made.exit_code, "columns.race: must be a quasi-identifier" in made.stderr) == (2, True)
    assert "columns.age" not in made.stderr
    made = experiments(tmp_path / "table.csv", str(people))
    assert (made.exit_code, "--output" in made.stderr) == (2, True)
    assert not output.exists()
