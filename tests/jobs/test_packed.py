"""The main job on machines that do not have the package: YARN, from HDFS to HDFS, and a standalone cluster."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import hadoop_cluster
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pyspark
import pytest
import yaml
from hadoop_cluster import Hadoop
from kills import failing_package
from product import Privrisk
from submitting import PackedEnvironment, pack, submit

from benchmarks.standalone import standalone, submit_environment
from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.store import RemoteStore

SPARK = Path(pyspark.__file__).parent
Submitted = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def hadoop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    with (
        hadoop_cluster.cluster(tmp_path_factory.mktemp("hadoop"), yarn=True) as found,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in found.environment.items():
            patch.setenv(name, value)
        yield found


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> PackedEnvironment:
    return pack(tmp_path_factory.mktemp("packed"))


@pytest.fixture(scope="module")
def archive(hadoop: Hadoop, packed: PackedEnvironment) -> str:
    """URI of the archive in HDFS, from which each machine fetches it once."""
    place = open_remote(locate(f"{hadoop.uri}/packages", key="x"))
    place.upload(packed.archive.name, packed.archive)
    return f"{place.location}/{packed.archive.name}#environment"


@pytest.fixture
def store(hadoop: Hadoop, small: Path, tmp_path: Path) -> RemoteStore:
    """A directory of HDFS with a table in parts, a dictionary, and the policy over them."""
    found = open_remote(locate(f"{hadoop.uri}/{uuid4().hex}", key="x"))
    rows = pc.read_csv(
        tmp_path / "table.csv",
        parse_options=pc.ParseOptions(delimiter=";"),
        convert_options=pc.ConvertOptions(column_types={"age": pa.int32()}),
    )
    for name, size in (("table", 20), ("dictionary", 60)):
        (tmp_path / name).mkdir()
        for number in range(60 // size):
            part = tmp_path / name / f"part-{number}.parquet"
            pq.write_table(rows.slice(number * size, size), part)
            found.upload(f"{name}/{part.name}", part)
    found.write("policy.yaml", policy(small, str(found.location)))
    return found


def policy(small: Path, place: str) -> bytes:
    document = yaml.safe_load(small.read_text())
    document["table"] = {"path": f"{place}/table", "record_id": "id"}
    columns = {name: name for name, of in document["columns"].items() if of["role"] == "quasi-identifier"}
    document["dictionary"] = {"kind": "table", "path": f"{place}/dictionary", "columns": columns}
    document["output"] = {"path": f"{place}/out", "vault": f"{place}/vault"}
    return yaml.safe_dump(document).encode()


@pytest.fixture
def submitted(hadoop: Hadoop, packed: PackedEnvironment, archive: str, store: RemoteStore) -> Submitted:
    def run(mode: str, *more: str, killed_at: str | None = None) -> subprocess.CompletedProcess[str]:
        user = hadoop.environment["HADOOP_USER_NAME"]
        there = {"PYSPARK_PYTHON": "./environment/bin/python", "HADOOP_USER_NAME": user}
        settings = [f"spark.yarn.appMasterEnv.{name}={value}" for name, value in there.items()]
        settings += [f"spark.executorEnv.HADOOP_USER_NAME={user}", "spark.ui.enabled=false", "spark.task.maxFailures=8"]
        # Spark's own jars are on every machine, as on a cluster that has Spark.
        settings.append(f"spark.yarn.jars=local:{SPARK}/jars/*")
        command = [
            str(SPARK / "bin" / "spark-submit"), "--master", "yarn", "--deploy-mode", mode, "--archives", archive,
            "--num-executors", "2", "--executor-memory", "512m", "--driver-memory", "640m",
            *(part for one in settings for part in ("--conf", one)), *more,
            packed.job, "--config", f"{store.location}/policy.yaml", "--run-id", "yarn",
        ]  # fmt: skip
        variables = submit_environment(packed.environment) | hadoop.environment | there
        variables["PYSPARK_DRIVER_PYTHON"] = str(packed.environment / "bin/python")
        if mode == "cluster":
            del variables["PYSPARK_DRIVER_PYTHON"]
        return submit(command, variables, packed.environment, killed_at=killed_at)

    return run


def test_release_on_yarn_after_kills_has_the_bytes_of_a_local_run(
    submitted: Submitted, store: RemoteStore, small: Path, privrisk: Privrisk, tmp_path: Path
) -> None:
    """In client mode executors are killed, then the driver; in cluster mode the same run is made again."""
    marks = tmp_path / "marks"
    killed = submitted("client", "--py-files", failing_package(tmp_path, marks), killed_at=": validate")
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert {"killed-0", "killed-1"} < {path.name for path in marks.iterdir()}
    assert not list(store.entries("out"))

    done = submitted("cluster")
    assert done.returncode == 0, done.stderr[-3000:]
    (tmp_path / "local.yaml").write_bytes(policy(small, str(tmp_path)))
    local = privrisk(str(tmp_path / "local.yaml"), "--run-id", "yarn")
    below = "out/releases/yarn/data"
    found = [hashlib.sha256(store.read(entry.name).content).hexdigest() for entry in store.entries(below)]
    assert found == [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(local.data.iterdir())]
    assert json.loads(store.read("vault/status/yarn.json").content)["code"] == 0
    assert not list(store.entries("vault/scratch"))


def test_release_on_workers_without_the_package_has_the_bytes_of_a_local_run(
    hadoop: Hadoop,
    packed: PackedEnvironment,
    small: Path,
    privrisk: Privrisk,
    tmp_path_factory: pytest.TempPathFactory,
    java_options: str,
) -> None:
    """A standalone cluster whose workers have no copy of the package and none of the packages that it needs.

    The default file system of the cluster is HDFS, and the table is on a disk that all machines mount.
    """
    assert "HADOOP_CONF_DIR" in hadoop.environment.keys() & os.environ
    with standalone(tmp_path_factory.mktemp("cluster"), java_options=java_options) as cluster:
        variables = cluster.environment | {
            "PYSPARK_PYTHON": "./environment/bin/python",
            "PYSPARK_DRIVER_PYTHON": str(packed.environment / "bin/python"),
        }
        command = [
            cluster.submit, "--master", cluster.address, "--executor-memory", "512m",
            "--conf", "spark.ui.enabled=false", "--archives", f"{packed.archive}#environment",
            packed.job, "--config", str(small), "--run-id", "far",
        ]  # fmt: skip
        done = submit(command, variables, packed.environment)
    assert done.returncode == 0, done.stderr[-3000:]
    far = {path.name: path.read_bytes() for path in small.parent.glob("out/releases/far/data/*")}
    local = privrisk(str(small), "--run-id", "local")
    assert far == {path.name: path.read_bytes() for path in local.data.iterdir()}
