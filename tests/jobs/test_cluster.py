"""The main job by spark-submit on a real standalone cluster: a master and two workers on loopback."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from product import ROOT, Privrisk

from benchmarks.standalone import Cluster, standalone


@pytest.fixture
def cluster(tmp_path: Path, java_options: str) -> Iterator[Cluster]:
    with standalone(tmp_path, java_options=java_options) as running:
        yield running


def test_spark_submit_on_a_cluster(cluster: Cluster, privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    package = Path(shutil.make_archive(str(tmp_path / "package"), "zip", ROOT, "privrisk_spark"))
    out = tmp_path / "cluster"
    out.mkdir()

    def submit(*more: str) -> subprocess.CompletedProcess[str]:
        command = [
            cluster.submit, "--master", cluster.address,
            "--executor-memory", "512m", "--conf", "spark.executor.cores=1", "--conf", "spark.ui.enabled=false",
            "--py-files", str(package), "jobs/release.py", "--config", str(small), "--run-id", "cluster",
            f"--set=output.path={out / 'out'}", f"--set=output.vault={out / 'vault'}", *more,
        ]  # fmt: skip
        return subprocess.run(
            command, cwd=ROOT, env=cluster.environment, capture_output=True, text=True, timeout=300, check=False
        )

    done = submit("--set=counting.plan=sorted")
    assert done.returncode == 0, done.stderr[-3000:]
    assert cluster.master_log().count("Launching executor") >= 2, "both workers took part"
    local = privrisk(str(small), "--run-id", "local")

    def digests(data: Path) -> list[str]:
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(data.iterdir())]

    assert digests(out / "out" / "releases" / "cluster" / "data") == digests(local.data)
    # The exit codes a scheduler sees, and the file it reads where it sees none.
    refused = submit("--run-id", "refused", "--set=checks.max_risk=0")
    assert refused.returncode == 1, refused.stderr[-3000:]
    assert json.loads((out / "vault" / "status.json").read_text())["code"] == 1
