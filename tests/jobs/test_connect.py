"""The product as a client of Spark Connect: the package pyspark-client alone, which has neither Java nor py4j."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from product import ROOT, Privrisk
from pyspark.sql import SparkSession
from small_release import CHARGED, charged, digests, policy, write_table
from typer.testing import CliRunner

import privrisk_spark as pr
from benchmarks.standalone import free_port, submit_environment
from privrisk_spark.cli.app import app
from privrisk_spark.engine.fingerprints import collect_frame_digest

CLIENT = Path(os.environ.get("PRIVRISK_CONNECT_CLIENT", Path(sys.prefix, "client")))
"""Directory of the package pyspark-client (``make .venv/client``)."""

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SECONDS = 120

Client = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, java_options: str) -> Iterator[str]:
    """Address of a server of Spark Connect on loopback, whose workers have what the tests have."""
    directory = tmp_path_factory.mktemp("connect")
    environment = submit_environment(directory / "logs")
    environment |= {"JAVA_TOOL_OPTIONS": java_options, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.io.encryption.enabled": "true",
        # As in the session of the tests: each client's workers are forked from a process that has all imported.
        "spark.ui.enabled": "false",
        "spark.driver.memory": "1g",
        "spark.local.dir": directory / "local",
        "spark.sql.warehouse.dir": directory / "warehouse",
    }
    told = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    program = str(Path(environment["SPARK_HOME"], "bin", "spark-submit"))
    command = [program, "--class", _SERVER, "--master", "local[2]", *told, "spark-internal"]
    log = directory / "server.log"
    with log.open("wb") as file:
        running = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=directory)
    try:
        deadline = time.monotonic() + _SECONDS
        while f"started at: 127.0.0.1:{port}" not in log.read_text():
            assert running.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        running.terminate()
        running.wait(timeout=60)


@pytest.fixture
def client(server: str, tmp_path: Path) -> Client:
    """``client(*arguments)``: a Python program with pyspark-client in place of pyspark."""
    if not (CLIENT / "pyspark").is_dir():
        pytest.skip(f"pyspark-client is not in {CLIENT} (make .venv/client)")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    environment |= {"PYTHONPATH": f"{CLIENT}:{ROOT}", "SPARK_REMOTE": server, "PATH": "/nowhere"}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return run


@pytest.mark.thorough("test_an_assessment_of_a_frame_and_a_private_release_in_python, by the same client")
def test_a_release_by_command(client: Client, privrisk: Privrisk, tmp_path: Path) -> None:
    table = write_table(tmp_path)
    file = policy("risk", table, tmp_path / "local")
    local = privrisk(file, "--run-id", "r1", root=tmp_path / "local")
    assert local.code == 0, local.err
    remote = tmp_path / "remote"
    places = [f"--set=output.path={remote / 'out'}", f"--set=output.vault={remote / 'vault'}"]
    done = client(str(ROOT / "jobs" / "release.py"), "--config", file, "--run-id", "r1", *places)
    assert done.returncode == 0, done.stderr[-3000:]
    assert digests(remote) == digests(tmp_path / "local")


PROGRAM = """
import json, os, pathlib, sys

sys.modules["py4j"] = None  # where the client alone is installed there is none

import privrisk_spark as pr
import pyspark
from privrisk_spark.engine.fingerprints import collect_frame_digest
from pyspark.sql import SparkSession

assert not (pathlib.Path(pyspark.__file__).parent / "jars").exists(), "it is the client"
spark = SparkSession.builder.remote(os.environ["SPARK_REMOTE"]).getOrCreate()
table, policy, root = sys.argv[1:]
frame = spark.read.csv(table, sep=";", header=True, schema="age int, city string")
before = spark.conf.get("spark.sql.session.timeZone")
found = pr.assess(frame, quasi_identifiers={"age": pr.intervals(10, 50), "city": pr.flat()})
done = pr.release(None, pr.load(policy), output=f"{root}/out", vault=f"{root}/vault", run_id="r1")
assert spark.conf.get("spark.sql.session.timeZone") == before
print(json.dumps([collect_frame_digest(frame), done.data.count(), found.to_pandas()["value"].astype(str).tolist()]))
"""


def test_an_assessment_of_a_frame_and_a_private_release_in_python(
    client: Client, privrisk: Privrisk, spark: SparkSession, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("3c" * 32)
    key.chmod(0o600)
    table = write_table(tmp_path)
    local, remote = tmp_path / "local", tmp_path / "remote"
    ran = privrisk(policy("dp", table, local, ("guarantee.key", f"file:{key}")), "--run-id", "r1", root=local)
    assert ran.code == 0, ran.err
    file = policy("dp", table, remote, ("guarantee.key", f"file:{key}"))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = client(str(program), str(table), file, str(remote))
    assert done.returncode == 0, done.stderr[-3000:]
    assert digests(remote) == digests(local)
    assert charged(remote) == CHARGED
    frame = spark.read.csv(str(table), sep=";", header=True, schema="age int, city string")
    found = pr.assess(frame, quasi_identifiers={"age": pr.intervals(10, 50), "city": pr.flat()})
    digest, rows, values = json.loads(done.stdout.splitlines()[-1])
    assert digest == collect_frame_digest(frame)
    assert rows == ran.manifest["rows"]
    assert values == found.to_pandas()["value"].astype(str).tolist()
    assert "3c" * 8 not in done.stdout + done.stderr


@pytest.mark.thorough(
    "the other jobs run by the same client; tests/extensions/network/test_pipeline.py shares by joins"
)
def test_sharing_by_joins(client: Client, privrisk: Privrisk, tmp_path: Path) -> None:
    """Diffusion in a graph that no machine may hold: the same bytes as by this process."""
    del privrisk
    people = [f"u{i}" for i in range(30)]
    (tmp_path / "people.csv").write_text("who,age\n" + "".join(f"{u},{20 + i}\n" for i, u in enumerate(people)))
    edges = [(u, people[(7 * i + j) % 30]) for i, u in enumerate(people) for j in (1, 2)]
    (tmp_path / "edges.csv").write_text("u,v\n" + "".join(f"{u},{v}\n" for u, v in edges))
    (tmp_path / "trust.csv").write_text("u,v,trust\nu1,u4,1\nu2,u9,-1\n")
    table = {"format": "csv", "options": {"header": True}}
    document = {
        "version": 1,
        "run": {"name": "sharing"},
        "table": {"path": str(tmp_path / "people.csv"), "record_id": "who", **table},
        "columns": {
            "who": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [10], "domain": [20, 59]}}},
        },
        "sharing": {
            "edges": {"path": str(tmp_path / "edges.csv"), **table},
            "trust": {"kind": "table", "path": str(tmp_path / "trust.csv"), **table},
            "model": {"kind": "diffusion", "time": 0.2, "risk_at_most": 1.5, "error": 1e-4, "computation": "series"},
        },
    }
    file = tmp_path / "sharing.yaml"
    file.write_text(yaml.safe_dump(document))
    local = CliRunner().invoke(app, ["share", str(file), f"--output={tmp_path / 'local'}"])
    assert local.exit_code == 0, local.output
    done = client(str(ROOT / "jobs" / "share.py"), "--config", str(file), f"--output={tmp_path / 'remote'}")
    assert done.returncode == 0, done.stderr[-3000:]
    for part in (tmp_path / "local" / "decisions").iterdir():
        assert part.read_bytes() == (tmp_path / "remote" / "decisions" / part.name).read_bytes()
