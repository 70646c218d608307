"""Releases by the oldest version of Spark that is supported."""

from __future__ import annotations

import json
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
import json, runpy, sys
import pyspark
expected, *runs = sys.argv[1:]
assert pyspark.__version__ == expected, pyspark.__version__
for asked in runs:
    sys.argv[1:] = json.loads(asked)
    try:
        runpy.run_path("jobs/release.py", run_name="__main__")
    except SystemExit as end:
        assert not end.code, asked
"""


def test_the_oldest_makes_the_same_releases(
    privrisk: Privrisk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, java_options: str
) -> None:
    """One by risk and a private one, in one process."""
    spark = connectors.PLACE / "spark-4.0"
    package = connector_packages.SPARKS["spark-4.0"].split()[0]
    if not (spark / "pyspark").is_dir():
        reason = f"{package} is not in {spark} (make .venv/connectors)"
        if "connectors" in os.environ.get("PRIVRISK_REQUIRE", "").split(","):
            pytest.fail(reason)
        pytest.skip(reason)
    monkeypatch.setenv("RELEASE_KEY", KEY)
    table = write_table(tmp_path)
    roots = {kind: (tmp_path / f"{kind}-here", tmp_path / f"{kind}-there") for kind in KINDS}
    runs = []
    for kind, (here, there) in roots.items():
        more = [("guarantee.key", "env:RELEASE_KEY")] if kind == "dp" else []
        ran = privrisk(policy(kind, table, here, *more), "--run-id", "r1", root=here)
        assert ran.code == 0, ran.err
        places = ["--set", f"output.path={there}/out", "--set", f"output.vault={there}/vault"]
        runs.append(json.dumps(["--config", policy(kind, table, there, *more), "--run-id", "r1", *places]))
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, package.partition("==")[2], *runs],
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
    for kind, (here, there) in roots.items():
        assert digests(there) == digests(here)
        assert [charged(root) for root in (here, there)] == [CHARGED if kind == "dp" else []] * 2
