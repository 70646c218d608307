"""Without the extras ``embedded`` and ``spark``, a command that needs an engine names the package to install."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from product import ROOT

HIDDEN = """
from importlib.machinery import PathFinder
found = PathFinder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in ("pyspark", "py4j", "pysail") else found(name, path, target)
PathFinder.find_spec = find_spec
"""
"""As ``sitecustomize`` it keeps an interpreter from finding Spark, as if it were not installed."""

SAID = "No engine is installed here: pip install 'privrisk-spark[embedded]'"


def ran(directory: Path, *command: str) -> subprocess.CompletedProcess[str]:
    (directory / "hidden").mkdir(exist_ok=True)
    (directory / "hidden" / "sitecustomize.py").write_text(HIDDEN)
    # Not the settings of this session's Spark; what is compiled is shared with it.
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    path = os.pathsep.join([str(directory / "hidden"), str(ROOT)])
    return subprocess.run(
        [sys.executable, *command],
        cwd=directory, env={**kept, "PYTHONPATH": path}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


POLICY = str(ROOT / "conf" / "adult.yaml")
PRIVATE = str(ROOT / "conf" / "adult-dp.yaml")
PRIVRISK = ("-m", "privrisk_spark.cli")
NEED_IT = {
    "init": (*PRIVRISK, "init", str(ROOT / "tests/data/other_programs/clean.csv")),
    "release": (*PRIVRISK, "release", POLICY),
    "dry run": (*PRIVRISK, "release", "--dry-run", POLICY),
    "explain": (*PRIVRISK, "release", "--explain", POLICY),
    "private release": (*PRIVRISK, "release", PRIVATE),
    "assess": (*PRIVRISK, "assess", POLICY, "--output", "found"),
    "attack": (*PRIVRISK, "attack", POLICY, "--output", "found"),
    "share": (*PRIVRISK, "share", str(ROOT / "conf" / "sharing-demo.yaml"), "--output", "found"),
    "curves": (*PRIVRISK, "curves", POLICY, "--output", "found"),
    "audit": (*PRIVRISK, "audit", PRIVATE, "--output", "found"),
    "job": (str(ROOT / "jobs" / "assess.py"), POLICY, "--output", "found"),
}


@pytest.mark.parametrize("name", NEED_IT)
def test_what_needs_spark_says_what_to_install_and_ends_with_two(tmp_path: Path, name: str) -> None:
    ended = ran(tmp_path, *NEED_IT[name])
    assert ended.returncode == 2, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert line.startswith("privrisk: ")
    assert SAID in line
    assert "Traceback" not in ended.stdout
    assert not (tmp_path / "ledger.db").exists(), "nothing is charged"


NEED_IT_NOT = {
    "synthesize": (*PRIVRISK, "synthesize", "made", "--rows", "100"),
    "schema": (*PRIVRISK, "config", "schema"),
    "ledger": (*PRIVRISK, "ledger", "show", PRIVATE),
    "guide": (*PRIVRISK, "guide"),
    "version": (*PRIVRISK, "--version"),
}


@pytest.mark.parametrize("name", NEED_IT_NOT)
def test_what_needs_no_spark_goes_on_without_it(tmp_path: Path, name: str) -> None:
    ended = ran(tmp_path, *NEED_IT_NOT[name])
    assert (ended.returncode, ended.stderr) == (0, "")


def test_functions_say_it_as_an_error_of_ours(tmp_path: Path) -> None:
    code = f"""
import privrisk_spark as pr
from privrisk_spark.errors import InputError
policy, private = pr.load({POLICY!r}), pr.load({PRIVATE!r})
for asked in (
    lambda: pr.plan(None, policy), lambda: pr.release(None, policy), lambda: pr.assess(None, policy),
    lambda: pr.audit(private),
):
    try:
        asked()
    except InputError as error:
        print(error)
"""
    ended = ran(tmp_path, "-c", code)
    assert ended.returncode == 0, ended.stderr
    assert [line.startswith(SAID) for line in ended.stdout.splitlines()] == [True] * 4
