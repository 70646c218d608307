"""The main job by spark-submit on a real standalone cluster: a master and two workers on loopback."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from .conftest import ROOT, Privrisk


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Address of the master and the environment of spark-submit."""
    home = Path(pyspark.__file__).parent
    environment = {
        **{k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))},
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOG_DIR": str(tmp_path / "logs"),
    }
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    started = []

    def start(name: str, *arguments: str) -> None:
        log = (tmp_path / f"{name}.log").open("w")
        command = [str(home / "bin" / "spark-class"), *arguments]
        started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))
        log.close()

    web = ["--webui-port", str(free_port())]
    start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port), *web)
    for number in (1, 2):
        start(
            f"worker{number}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--cores", "1",
            "--memory", "1g", "--webui-port", str(free_port()), "--work-dir", str(tmp_path / f"work{number}"), address,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while (tmp_path / "master.log").read_text().count("Registering worker") < 2:
            assert time.monotonic() < deadline, (tmp_path / "master.log").read_text()[-2000:]
            time.sleep(0.5)
        yield address, environment
    finally:
        for process in reversed(started):
            process.terminate()
        for process in started:
            process.wait(30)


def test_spark_submit_on_a_cluster(
    cluster: tuple[str, dict[str, str]], privrisk: Privrisk, small: Path, tmp_path: Path
) -> None:
    address, environment = cluster
    package = Path(shutil.make_archive(str(tmp_path / "package"), "zip", ROOT, "privrisk_spark"))
    out = tmp_path / "cluster"
    out.mkdir()

    def submit(*more: str) -> subprocess.CompletedProcess[str]:
        command = [
            str(Path(environment["SPARK_HOME"]) / "bin" / "spark-submit"), "--master", address,
            "--executor-memory", "512m", "--conf", "spark.executor.cores=1", "--conf", "spark.ui.enabled=false",
            "--py-files", str(package), "jobs/release.py", "--config", str(small), "--run-id", "cluster",
            f"--set=output.path={out / 'out'}", f"--set=output.vault={out / 'vault'}", *more,
        ]  # fmt: skip
        return subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    done = submit("--set=counting.plan=sorted")
    assert done.returncode == 0, done.stderr[-3000:]
    master = (tmp_path / "master.log").read_text()
    assert master.count("Launching executor") >= 2, "both workers took part"
    local = privrisk(str(small), "--run-id", "local")

    def digests(data: Path) -> list[str]:
        return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(data.iterdir())]

    assert digests(out / "out" / "releases" / "cluster" / "data") == digests(local.data)
    # The exit codes a scheduler sees, and the file it reads where it sees none.
    refused = submit("--run-id", "refused", "--set=checks.max_risk=0")
    assert refused.returncode == 1, refused.stderr[-3000:]
    assert json.loads((out / "vault" / "status.json").read_text())["code"] == 1
