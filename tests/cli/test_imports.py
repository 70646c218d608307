"""Imports on demand: modules that a command does not import, and errors that name a missing extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from product import ROOT

from privrisk_spark.cli import app

SITE = """
import atexit, json, os, sys
from importlib.machinery import PathFinder
found, hidden = PathFinder.find_spec, set(os.environ["HIDDEN"].split())
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in hidden else found(name, path, target)
PathFinder.find_spec = find_spec
atexit.register(lambda: open(os.environ["IMPORTED"], "w").write(json.dumps(sorted(sys.modules))))
"""

OF_SOME = {
    "great_expectations", "dp_accounting", "sqlalchemy", "deltalake", "pyiceberg", "obstore", "sklearn", "splink",
    "duckdb", "scipy.optimize", "scipy.stats", "rapidfuzz", "reproduce", "privrisk_spark.audit.trials",
    "privrisk_spark.extensions.network.pipeline",
}  # fmt: skip
"""Modules that no usual run needs."""

COMMANDS = {
    "release": (["release", "{policy}"], {"numba", "privrisk_spark.pipelines.release.private"}),
    "validate": (["validate", "{policy}"], {"numba", "privrisk_spark.extensions.attack.pipeline.run", "matplotlib"}),
    "assess": (
        ["assess", "{policy}", "--output", "{root}/found"],
        {"numba", "privrisk_spark.extensions.attack.pipeline.run"},
    ),
    "attack": (["attack", "{policy}", "--output", "{root}/found"], {"privrisk_spark.pipelines.release.private"}),
    "init": (["init", "{root}/table.csv", "--out", "{root}/first"], {"numba", "privrisk_spark.pipelines.release.run"}),
    "config": (["config", "schema"], {"pyspark", "pyarrow", "pandas", "scipy", "matplotlib", "numba"}),
    "help": (["--help"], {"pyspark", "pyarrow", "pandas", "numpy", "scipy", "matplotlib", "pydantic"}),
}
"""Arguments, and further modules that the command does not import."""


def run(root: Path, arguments: list[str], *, hidden: str = "") -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Run a command on the embedded engine, without some packages; return how it ended, and what it has imported."""
    (root / "site").mkdir(exist_ok=True)
    (root / "site" / "sitecustomize.py").write_text(SITE)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment = kept | {
        "PYTHONPATH": os.pathsep.join([str(root / "site"), str(ROOT)]),
        "PRIVRISK_ENGINE": "embedded", "HIDDEN": hidden, "IMPORTED": str(root / "imported"),
    }  # fmt: skip
    filled = [one.format(policy=root / "policy.yaml", root=root) for one in arguments]
    command = [sys.executable, "-m", "privrisk_spark.cli", *filled]
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=120, check=False, input=""
    )
    return done, set(json.loads((root / "imported").read_text()))


MODULES_OF_COMMANDS = set(app.COMMANDS.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_command_imports_only_what_its_policy_needs(small: Path, tmp_path: Path, name: str) -> None:
    arguments, unused = COMMANDS[name]
    if name == "attack":
        run(tmp_path, ["release", "{policy}"], hidden="matplotlib")
    done, imported = run(tmp_path, arguments)
    assert done.returncode == 0, done.stderr
    assert "privrisk_spark.cli.app" in imported
    assert not imported & (OF_SOME | unused)
    own = {app.COMMANDS[name]} if name != "help" else MODULES_OF_COMMANDS
    assert imported & MODULES_OF_COMMANDS == own


def test_report_without_charts_has_the_numbers(small: Path, tmp_path: Path) -> None:
    done, imported = run(tmp_path, ["release", "{policy}"], hidden="matplotlib sqlalchemy dp_accounting")
    assert done.returncode == 0, done.stderr
    assert "matplotlib" not in imported
    page = (tmp_path / "vault" / "report.html").read_text()
    assert "<svg" not in page
    assert page.count("pip install 'privrisk-spark[charts]'") == page.count("not drawn.") > 2
    assert "Table: distribution of risk" in page


def test_missing_package_error_names_its_extra(small: Path, tmp_path: Path) -> None:
    policy = yaml.safe_load(small.read_text())
    policy["guarantee"] = {"kind": "dp", "epsilon": "1", "delta": "1e-6", "keys": "K"}
    lake = policy | {"table": {"path": str(tmp_path / "lake"), "format": "delta", "record_id": "id"}}
    lake.pop("guarantee")
    (tmp_path / "lake" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lake.yaml").write_text(yaml.safe_dump(lake))
    commands = {
        "private": ("sqlalchemy", ["ledger", "show", "--url", "sqlite:///{root}/ledger.db"]),
        "charts": ("matplotlib", ["hierarchy", "draw", "{policy}", "--column", "age", "--output", "{root}/age.svg"]),
        "delta": ("deltalake", ["release", "{root}/lake.yaml"]),
    }
    for extra, (package, arguments) in commands.items():
        done, _ = run(tmp_path, arguments, hidden=package)
        assert done.returncode == 2, done.stderr
        assert f"needs the package '{package}', which is not installed" in done.stderr
        assert f"pip install 'privrisk-spark[{extra}]'" in done.stderr
