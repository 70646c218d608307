"""What README and docs say is there, is there; and the first screen of the README does what it says."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from product import ROOT, Privrisk

DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text()
    headings = {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in re.findall(r"(?m)^#+ (.*)$", text)
    }
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("#"):
            assert link[1:] in headings, link
        elif "://" not in link:
            assert (document.parent / link.partition("#")[0]).exists(), link


def find_leftovers(text: str) -> list[str]:
    """Return what a careless merge leaves behind: long sentences and headings given twice, and lone words."""
    prose = re.sub(r"(?ms)^( *)```.*?^\1```$", "\n", text)
    parts = re.split(r"\n\s*\n|\n(?=\s*[-*] )|\n#|\|", prose)
    sentences = [one for part in parts for one in re.split(r"(?<=[.;:?]) ", " ".join(part.split())) if len(one) > 60]
    counts = Counter([*sentences, *re.findall(r"(?m)^#+ .*$", prose)])
    return [one for one, count in counts.items() if count > 1] + re.findall(r"(?m)^ *\w+$(?=\n *\S)", prose)


@pytest.mark.parametrize("document", [*DOCUMENTS, ROOT / "CHANGELOG.md"], ids=lambda path: path.name)
def test_document_after_merges_has_no_leftovers(document: Path) -> None:
    if document.stem not in ("api", "command-line", "measures", "policy-keys"):  # written from the code
        assert not find_leftovers(document.read_text())


@pytest.mark.parametrize(
    "text",
    [
        "- One sentence that is considerably longer than sixty characters.\n" * 2,
        "| a | a cell that has somewhat more than sixty characters, as it must |\n" * 2,
        "## Once\n\nText.\n\n## Once\n",
        "Begins.\n  With\n  a rest.",
    ],
)
def test_find_leftovers_with_a_planted_one_finds_it(text: str) -> None:
    assert find_leftovers(text)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_modules_that_are_named_exist(document: Path) -> None:
    """A module moves, its page does not: names such as ``kernels/dp/crowd.py``, and dotted ones."""
    text = document.read_text()
    modules = {str(path.relative_to(ROOT / "privrisk_spark")) for path in (ROOT / "privrisk_spark").rglob("*.py")}
    named = set(re.findall(r"`([a-z_0-9]+(?:/[a-z_0-9]+)*\.py)`", text))
    elsewhere = {str(path.relative_to(ROOT)) for path in ROOT.glob("[bdjrt]*/**/*.py")}
    missing = named - modules - elsewhere
    assert not missing
    for dotted in re.findall(r"`privrisk_spark((?:\.\w+)+)", text):
        parts = dotted.strip(".").split(".")
        places = [ROOT.joinpath("privrisk_spark", *parts[:i]) for i in range(len(parts) + 1)]
        assert any(path.with_suffix(".py").exists() or path.is_dir() for path in places[1:]), dotted


@pytest.mark.parametrize("lock", ["requirements.lock", "dags/requirements.lock"])
def test_what_is_installed_is_known_by_its_hash(lock: str) -> None:
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", (ROOT / lock).read_text().replace("\\\n", " "))[1:]
    assert len(entries) > 20
    assert not [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry or "==" not in entry]


def test_wheel_includes_the_jobs_and_the_dags() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    dags = {f"dags/{path.name}" for path in (ROOT / "dags").glob("*.py")}
    assert wheel["force-include"] == {name: f"privrisk_spark/{name}" for name in ("jobs", *dags)}


def block(text: str, start: str) -> str:
    """Return what a shell block of the README writes to a file."""
    return text.split(start, 1)[1].split("\nEND\n", 1)[0].lstrip("\n") + "\n"


def test_seven_rows_come_out_as_the_readme_says(privrisk: Privrisk, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    (tmp_path / "patients.csv").write_text(block(text, "cat > patients.csv <<'END'"))
    policy = block(text, "cat > policy.yaml <<'END'")
    # Java, which is at work already, reads relative paths from where it was started.
    (tmp_path / "policy.yaml").write_text(policy.replace("path: patients.csv", f"path: {tmp_path / 'patients.csv'}"))
    ran = privrisk(str(tmp_path / "policy.yaml"))
    assert ran.code == 0, ran.err
    table = text.split("| age | postcode | diagnosis |\n|---|---|---|\n", 1)[1].split("\n\n", 1)[0]
    said = [tuple(cell.strip().replace("\\", "") for cell in row.strip("|").split("|")) for row in table.split("\n")]
    released = pq.read_table(ran.data).to_pylist()
    assert [tuple(row.values()) for row in released] == said
    decisions = pq.read_table(tmp_path / "vault" / "decisions").to_pylist()
    assert {row["consistent"] for row in decisions} == {3, 4}, "three or four patients"
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["guarantee"]["status"] == "proved"
    warning = text.split("```text\n", 1)[1].split("\n```", 1)[0].replace("\n", " ")
    assert re.findall(r"WARNING (.*)", ran.err) == [warning]
    fix = re.findall(r"(?m)^privrisk release policy.yaml --set '(.*)'$", text)
    fixed = privrisk(str(tmp_path / "policy.yaml"), "--set", *fix, "--run-id", "fixed")
    assert "WARNING" not in fixed.err
    assert {row["diagnosis"] for row in pq.read_table(fixed.data).to_pylist()} == {"*"}
