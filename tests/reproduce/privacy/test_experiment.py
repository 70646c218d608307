"""Experiments on privacy end to end: files, a policy's parameters, refusals, and nothing that leaks or is charged."""

from __future__ import annotations

import csv
import json
import re
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from product import Privrisk
from reproducing import Ended, reproduce
from shared import drawing

from reproduce.deciding.subject import Subject
from reproduce.privacy.releases import Public, public_schemes
from reproduce.privacy.results import PrivacySizes, run_on

pytestmark = pytest.mark.usefixtures("no_charts")

FEW = ("--rows=1500", "--large=3000", "--attributes=3", "--records=3", "--runs=1", "--seed=9", "--date=2026-01-02")
KINDS = ["unsampled", "sampling", "epsilon", "sizes"]
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def experiments(output: Path, *arguments: str) -> Ended:
    return reproduce("privacy", *FEW, *arguments, f"--output={output}")


def test_generated_data_need_no_policy(tmp_path: Path) -> None:
    output = tmp_path / "experiments"
    with drawing():
        made = experiments(output)
    assert made.exit_code == 0, made.stderr
    assert "never publish" not in made.stdout
    assert {path.name for path in output.iterdir()} == {
        ".privrisk.json",
        "privacy.json",
        "privacy.csv",
        "privacy.html",
        "status.json",
    }
    assert stat.S_IMODE(output.stat().st_mode) == 0o700
    document = json.loads((output / "privacy.json").read_text())
    assert document["sizes"] == {"rows": 1500, "large": 3000, "attributes": 3, "records": 3, "runs": 1, "seed": 9}
    assert [one["data"] for one in document["experiments"]] == ["generated, 1,500 rows", "generated, 3,000 rows"]
    subject = Subject.generated(9, 3000, 3)
    expected = run_on(subject, Public(public_schemes(subject, 3000)), PrivacySizes(1500, 3000, 3, 3, 1, 9))
    assert document["experiments"][1]["epsilon"]["share"][0][0] == expected.epsilon.share[0, 0]
    assert document["experiments"][1]["schemes"] == [list(scheme) for scheme in expected.schemes]
    assert [plot["key"] for plot in document["plots"]] == [*[key for key in KINDS for _ in range(2)], "worst-case"]
    lines = list(csv.DictReader((output / "privacy.csv").read_text().splitlines()))
    assert {line["experiment"] for line in lines} == {*KINDS, "worst-case"}
    page = (output / "privacy.html").read_text()
    assert page.count("<svg") == page.count("The chart as a table") == 9
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert "<script" not in page
    assert not re.search(r'(src|href)="(?!#)', page)
    if BROWSER is not None:
        picture = tmp_path / "page.png"
        command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=2000",
                   f"--screenshot={picture}", "--window-size=1000,2000", str(output / "privacy.html")]  # fmt: skip
        subprocess.run(command, capture_output=True, timeout=120, check=True)
        assert picture.stat().st_size > 50_000, "a blank page is smaller"


def test_a_risk_policy_adds_its_table(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    del privrisk  # its session is this test's
    output = tmp_path / "experiments"
    made = experiments(output, str(small))
    assert made.exit_code == 0, made.stderr
    assert "never publish" in made.stdout
    document = json.loads((output / "privacy.json").read_text())
    assert document["experiments"][2]["data"] == "small"
    assert "60 rows" in document["experiments"][2]["basis"]
    assert "chosen from the hierarchies" in " ".join(document["notes"])
    assert "Keep inside the trusted zone" in (output / "privacy.html").read_text()
    # No value of a record is anywhere.
    for path in output.iterdir():
        assert not re.search(r"Ulm|Bonn|Kiel|p17\b", path.read_text())


def test_a_private_policy_lends_its_parameters_and_is_not_charged(
    privrisk: Privrisk, small: Path, tmp_path: Path
) -> None:
    del privrisk
    document = yaml.safe_load(small.read_text())
    for column in document["columns"].values():
        if column["role"] in {"sensitive", "insensitive"}:
            column.clear()
            column["role"] = "identifier"
    document.pop("decision", None)
    document.pop("checks", None)
    ledger = tmp_path / "ledger.db"
    document["ledger"] = {"url": f"sqlite:///{ledger}", "lineage": "small", "cap": {"epsilon": 2, "delta": 1e-6}}
    document["guarantee"] = {
        "kind": "dp", "epsilon": {"admit": 0.25, "keep": 0.75}, "delta": "1e-7", "public_rows": 100,
        "schemes": [[0, 1, 1], [1, 0, 1]], "objective": {"phi_min": 0.5, "lambda": 0.5, "kappa": 1, "tau": 3},
    }  # fmt: skip
    small.write_text(yaml.safe_dump(document, sort_keys=False))
    output = tmp_path / "experiments"
    made = experiments(output, str(small))
    assert made.exit_code == 0, made.stderr
    found = json.loads((output / "privacy.json").read_text())
    assert found["delta"] == 1e-7
    one = found["experiments"][2]
    assert one["schemes"] == [[0, 1, 1], [1, 0, 1]]
    assert "0.25 of ε" in one["parameters"]
    assert "λ = 1, κ = 1, τ = 3" in one["parameters"]
    assert "makes the parameters depend on the table" in " ".join(found["notes"])
    assert not ledger.exists()
    assert not (tmp_path / "out").exists()


def test_what_is_refused(small: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    for option in ("--rows=0", "--large=0", "--attributes=1", "--records=0", "--runs=0", "--seed=-1"):
        assert experiments(output, option).exit_code == 2, option
    made = experiments(output, "--set=a.b=1")
    assert (made.exit_code, "--set: changes a policy" in made.stderr) == (2, True)
    made = experiments(tmp_path / "table.csv", str(small))
    assert (made.exit_code, "--output" in made.stderr) == (2, True)
    made = experiments(output, str(small), "--set=table.entity_id=id")
    assert made.exit_code == 2
    assert "entity_id" in made.stderr
