"""Releases by the oldest version of Spark that is supported."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import connector_packages
import connectors
import pytest
from product import ROOT, Privrisk
from small_release import CHARGED, KINDS, charged, digests, policy, write_table

KEY = "5b" * 32


PROGRAM = """
import runpy, sys
import pyspark
assert pyspark.__version__ == sys.argv.pop(1), pyspark.__version__
runpy.run_path("jobs/release.py", run_name="__main__")
"""


@pytest.mark.parametrize("kind", KINDS)
def test_the_oldest_makes_the_same_release(
    privrisk: Privrisk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, java_options: str, kind: str
) -> None:
    spark = connectors.PLACE / "spark-4.0"
    package = connector_packages.SPARKS["spark-4.0"].split()[0]
    if not (spark / "pyspark").is_dir():
        reason = f"{package} is not in {spark} (make .venv/connectors)"
        if "connectors" in os.environ.get("PRIVRISK_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    monkeypatch.setenv("RELEASE_KEY", KEY)
    table, roots = write_table(tmp_path), (tmp_path / "here", tmp_path / "there")
    more = [("guarantee.key", "env:RELEASE_KEY")] if kind == "dp" else []
    here, there = (policy(kind, table, root, *more) for root in roots)
    ran = privrisk(here, "--run-id", "r1", root=roots[0])
    assert ran.code == 0, ran.err
    places = ["--set", f"output.path={roots[1]}/out", "--set", f"output.vault={roots[1]}/vault"]
    asked = ["--config", there, "--run-id", "r1", *places]
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, package.partition("==")[2], *asked],
        check=False,
        cwd=ROOT,
        env={
            **usual,
            "PYTHONPATH": f"{spark}:{ROOT}",
            "SPARK_HOME": str(spark / "pyspark"),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "JAVA_TOOL_OPTIONS": java_options,
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert digests(roots[1]) == digests(roots[0])
    assert [charged(root) for root in roots] == [CHARGED if kind == "dp" else []] * 2
