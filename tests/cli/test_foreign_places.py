"""Every command leaves a directory as it is that holds other files than its own, and names the key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from policies import changed
from product import ROOT
from small_release import document
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.runs.progress import LOGGER

NAMES = (
    "report.html", "spark.log", "status.json", "classes/part-0.parquet", "decisions/letter.txt", ".staging-mine/a",
    "releases/r1/thesis.txt", "policy.yaml", "city.csv", "table/part-0.parquet", "scheme.json", "audit.json",
)  # fmt: skip
"""Files of a user, named as the files of runs are."""


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file that the user's directory holds a hard link to."""
    file = tmp_path / "outside.txt"
    file.write_text("mine")
    file.chmod(0o644)
    return file


@pytest.fixture
def foreign(tmp_path: Path, outside: Path) -> Path:
    """A directory of the user."""
    directory = tmp_path / "thesis"
    for name in NAMES:
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("mine")
    os.link(outside, directory / "summary.json")
    for path in (directory, *directory.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return directory


@pytest.fixture(autouse=True)
def at_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(ROOT)
    yield
    LOGGER.handlers.clear()


def state(directory: Path) -> dict[str, tuple[int, int, bytes]]:
    """Rights, time and content of everything in a directory."""
    return {
        str(path): (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in (directory, *directory.rglob("*"))
    }


OUTPUTS: dict[str, list[str]] = {
    "assess": ["assess", "POLICY"],
    "attack": ["attack", "ATTACKED"],
    "share": ["share", "conf/sharing-demo.yaml"],
    "fit": ["fit", "ANONYMOUS"],
    "curves": ["curves", "POLICY"],
    "audit": ["audit", "PRIVATE"],
}
ARGUMENTS = {
    **{name: ([*words, "--output", "PLACE"], "--output") for name, words in OUTPUTS.items()},
    "release to output.path": (["release", "POLICY", "--set=output.path=PLACE"], "output.path"),
    "release to output.vault": (["release", "POLICY", "--set=output.vault=PLACE"], "output.vault"),
    "a private release": (["release", "PRIVATE", "--set=output.vault=PLACE"], "output.vault"),
    "a planned release": (["release", "POLICY", "--dry-run", "--set=output.vault=PLACE"], "output.vault"),
    "a release of many days": (
        ["release", "POLICY", "--date=2026-01-01", "--until=2026-01-02", "--set=output.vault=PLACE"],
        "output.vault",
    ),
    "init": (["init", "TABLE", "--out", "PLACE", "--overwrite"], "--out"),
    "synthesize": (["synthesize", "PLACE", "--rows=50"], "directory"),
}


@pytest.fixture
def words(small: Path, tmp_path: Path, foreign: Path) -> dict[str, str]:
    """What stands for what in the arguments."""
    text = small.read_text()
    decision = next(line for line in text.splitlines() if line.startswith("decision"))
    of = f"{{path: {tmp_path}/table.csv, format: csv, options: {{sep: ';', header: true}}, record_id: id}}"
    policies = {
        "ANONYMOUS": text.replace(decision, "guarantee: {kind: k-anonymity, k: 2}"),
        "ATTACKED": text + f"attack: {{protected: {of}}}\n",
        "PRIVATE": yaml.safe_dump(
            changed(
                document("dp", tmp_path / "table.csv", tmp_path),
                ("output.path", str(tmp_path / "out")),
                ("output.vault", str(tmp_path / "vault")),
            ),
            sort_keys=False,
        ),
    }
    for name, content in policies.items():
        (tmp_path / f"{name}.yaml").write_text(content)
    files = {name: str(tmp_path / f"{name}.yaml") for name in policies}
    return {**files, "POLICY": str(small), "TABLE": str(tmp_path / "table.csv"), "PLACE": str(foreign)}


@pytest.mark.spark
@pytest.mark.parametrize("command", list(ARGUMENTS))
def test_command_directory_of_the_user_is_refused_and_unchanged(
    command: str, words: dict[str, str], foreign: Path, outside: Path, tmp_path: Path
) -> None:
    arguments, key = ARGUMENTS[command]
    for name, meaning in words.items():
        arguments = [argument.replace(name, meaning) for argument in arguments]
    before, link = state(foreign), outside.stat()
    ran = CliRunner().invoke(app, arguments)
    assert ran.exit_code == 2, ran.output
    assert f"{key}: has other content than the " in ran.stderr
    assert str(foreign) in ran.stderr
    assert state(foreign) == before
    assert (outside.stat().st_mode, outside.stat().st_mtime_ns) == (link.st_mode, link.st_mtime_ns)
    assert not [name for name in ("out", "vault", "ledger.db") if (tmp_path / name).exists()], "nothing is made"


@pytest.mark.spark
def test_release_files_of_the_user_under_its_run_id_are_refused_and_unchanged(small: Path, tmp_path: Path) -> None:
    """The output is ours, and the user put files where the release would be."""
    first = CliRunner().invoke(app, ["release", str(small), "--run-id", "r0"])
    assert first.exit_code == 0, first.output
    mine = tmp_path / "out" / "releases" / "r1" / "thesis.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    before = state(tmp_path / "out"), state(tmp_path / "vault")
    ran = CliRunner().invoke(app, ["release", str(small), "--run-id", "r1"])
    assert ran.exit_code == 2, ran.output
    assert "output.path: holds 'releases/r1' without a manifest" in ran.stderr
    assert (state(tmp_path / "out"), state(tmp_path / "vault")) == before


@pytest.mark.spark
def test_release_again_leaves_rights_of_files_it_did_not_write(small: Path, tmp_path: Path, outside: Path) -> None:
    for run_id in ("r1", "r2"):
        ran = CliRunner().invoke(app, ["release", str(small), "--run-id", run_id])
        assert ran.exit_code == 0, ran.output
        if run_id == "r1":
            os.link(outside, tmp_path / "vault" / "link.txt")
    assert outside.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("command", ["release", "hierarchy draw"])
def test_command_that_writes_one_file_leaves_a_file_of_the_user_unchanged(
    command: str, small: Path, outside: Path
) -> None:
    arguments = {
        "release": (["release", str(small), "--status-file", str(outside)], "--status-file"),
        "hierarchy draw": (["hierarchy", "draw", str(small), "--column=sex", "--output", str(outside)], "--output"),
    }
    words, key = arguments[command]
    ran = CliRunner().invoke(app, words)
    assert ran.exit_code == 2, ran.output
    assert f"{key}: must be a new file, or" in ran.stderr
    assert outside.read_text() == "mine"


def test_hierarchy_draw_replaces_its_own_picture(small: Path, tmp_path: Path) -> None:
    for _ in range(2):
        ran = CliRunner().invoke(
            app, ["hierarchy", "draw", str(small), "--column=sex", "--output", str(tmp_path / "sex.svg")]
        )
        assert ran.exit_code == 0, ran.output
