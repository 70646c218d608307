"""The main job by spark-submit on a real standalone cluster: a master and two workers on loopback."""

from __future__ import annotations

import hashlib
import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
import submitting
import yaml
from kills import failing_package
from product import ROOT, Privrisk, Ran, production_batches
from typer.testing import CliRunner

from benchmarks.s3_server import BUCKET, SECRET
from benchmarks.standalone import Cluster, can_hide, standalone
from privrisk_spark.cli.app import app
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Submit = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def driver_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that the driver sees, and no worker."""
    return tmp_path_factory.mktemp("driver")


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, java_options: str, driver_only: Path, endpoint: str
) -> Iterator[Cluster]:
    assert endpoint
    directory = tmp_path_factory.mktemp("cluster")
    hidden = driver_only if can_hide(driver_only) else None
    with standalone(directory, java_options=java_options, hidden=hidden) as running:
        yield running


@pytest.fixture
def whole(tmp_path: Path) -> str:
    """The package as an archive."""
    return shutil.make_archive(str(tmp_path / "package"), "zip", ROOT, "privrisk_spark")


@pytest.fixture
def submit(cluster: Cluster, whole: str) -> Submit:
    def run(
        policy: Path,
        place: Path,
        *more: str,
        package: str = whole,
        job: str = "release",
        killed_at: str | None = None,
        settings: tuple[str, ...] = (),
    ) -> subprocess.CompletedProcess[str]:
        command = [
            cluster.submit, "--master", cluster.address,
            "--executor-memory", "512m", "--conf", "spark.executor.cores=1", "--conf", "spark.ui.enabled=false",
            "--conf", "spark.task.maxFailures=8", *(part for one in settings for part in ("--conf", one)),
            "--py-files", package, f"jobs/{job}.py", "--config", str(policy), "--run-id", "cluster",
            f"--set=output.path={place / 'out'}", f"--set=output.vault={place / 'vault'}", *more,
        ]  # fmt: skip
        return submitting.submit(command, cluster.environment, ROOT, killed_at=killed_at)

    return run


def digests(data: Path) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(data.iterdir())]


@pytest.mark.thorough("test_workers_that_share_no_disk_with_the_driver submits alike, to a cluster with less")
def test_spark_submit_on_a_cluster(
    cluster: Cluster, submit: Submit, privrisk: Privrisk, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "cluster"
    out.mkdir()
    done = submit(small, out, "--set=counting.plan=sorted")
    assert done.returncode == 0, done.stderr[-3000:]
    assert cluster.master_log().count("Launching executor") >= 2, "both workers took part"
    local = privrisk(str(small), "--run-id", "local")
    assert digests(out / "out" / "releases" / "cluster" / "data") == digests(local.data)


@pytest.fixture
def elsewhere(small: Path, driver_only: Path, tmp_path: Path) -> tuple[ObjectStore, Path]:
    """A store with a table in parts below ``table/``, and the policy over it where the driver alone sees it."""
    if not can_hide(driver_only):
        pytest.skip("this user may not make mount namespaces, which stand for machines of their own")
    store = ObjectStore(Location("s3", BUCKET, uuid4().hex))
    rows = pc.read_csv(
        tmp_path / "table.csv",
        parse_options=pc.ParseOptions(delimiter=";"),
        convert_options=pc.ConvertOptions(column_types={"age": pa.int32()}),
    )
    (tmp_path / "parts").mkdir()
    for number in range(3):
        part = tmp_path / "parts" / f"part-{number}.parquet"
        pq.write_table(rows.slice(number * 20, 20), part)
        store.upload(f"table/{part.name}", part)
    document = yaml.safe_load(small.read_text())
    document["table"] = {"path": f"s3://{BUCKET}/{store.location.path}/table", "record_id": "id"}
    policy = driver_only / "policy.yaml"
    policy.write_text(yaml.safe_dump(document))
    return store, policy


def held_against(local: Ran, store: ObjectStore) -> None:
    """The data in the store is that of a local run, and beside table and release there is nothing."""
    below = "out/releases/cluster/data"
    found = {entry.name: hashlib.sha256(store.read(entry.name).content).hexdigest() for entry in store.entries(below)}
    assert list(found.values()) == digests(local.data)
    left = {entry.name for entry in store.entries()} - {f"table/part-{number}.parquet" for number in range(3)}
    left -= {entry.name for entry in store.entries("vault")}
    documents = {
        f"out/releases/cluster/{name}" for name in ("checks.json", "dictionary.json", "manifest.json", "report.html")
    }
    assert left == {"out/.privrisk.json", "out/manifest.json", *documents, *found}


def test_workers_that_share_no_disk_with_the_driver(
    submit: Submit,
    cluster: Cluster,
    privrisk: Privrisk,
    elsewhere: tuple[ObjectStore, Path],
    driver_only: Path,
    tmp_path: Path,
) -> None:
    """Table, scratch and output lie in a store; the vault where the driver alone sees it; executors come and go.

    The release is CSV, which Spark's own writer would put on the disks of workers; findings go to the store, too.
    """
    store, policy = elsewhere
    base = f"s3://{BUCKET}/{store.location.path}"
    lost = submit(policy, driver_only / "lost")
    assert lost.returncode == 2, lost.stderr[-3000:]
    (said,) = (line for line in lost.stderr.splitlines() if line.startswith("privrisk: "))
    assert "output.vault: is not reached by Spark's workers: set run.scratch to HDFS or an object store" in said
    assert "stage 1 of" not in lost.stderr, "before any work"
    # Beside the exit code that a scheduler sees, the file it reads where it sees none.
    assert json.loads((driver_only / "lost" / "vault" / "status.json").read_text())["code"] == 2

    written = "--set=output.format=csv"
    placed = [f"--set=run.scratch={base}/scratch", f"--set=output.path={base}/out", written]
    come_and_go = (
        "spark.dynamicAllocation.enabled=true", "spark.dynamicAllocation.shuffleTracking.enabled=true",
        "spark.dynamicAllocation.minExecutors=0", "spark.dynamicAllocation.executorIdleTimeout=1s",
        "spark.dynamicAllocation.shuffleTracking.timeout=1s",
    )  # fmt: skip
    executors = cluster.master_log().count("Launching executor")
    done = submit(policy, driver_only / "found", *placed, settings=come_and_go)
    # Whether one is idle for a second, and goes, depends on the load of the machine.
    assert cluster.master_log().count("Launching executor") >= executors + 2, "both workers took part"
    assert done.returncode == 0, done.stderr[-3000:]
    local = privrisk(str(policy), "--run-id", "local", f"--set=table.path={tmp_path / 'parts'}", written)
    held_against(local, store)
    assert SECRET not in done.stderr
    assert not (driver_only / "found" / "out").exists()

    # No scratch is named: what tasks hand to each other lies beside the findings, until the run ends.
    # The table is CSV this time.
    store.upload("lines/table.csv", tmp_path / "table.csv")
    lines = ["--set=table.format=csv", '--set=table.options={sep: ";", header: true}']
    here = [f"--output={tmp_path / 'found'}", f"--set=table.path={tmp_path / 'table.csv'}", *lines]
    beside = CliRunner().invoke(app, ["assess", str(policy), *here])
    assert beside.exit_code == 0, beside.output
    there = [f"--output={base}/found", f"--set=table.path={base}/lines", *lines]
    assessed = submit(policy, driver_only / "assessed", *there, job="assess")
    assert assessed.returncode == 0, assessed.stderr[-3000:]
    assert store.read("found/measures.json").content == (tmp_path / "found" / "measures.json").read_bytes()
    assert list(store.entries("found/records"))
    assert not list(store.entries("found/scratch"))


def test_executors_and_the_driver_are_killed_where_nothing_is_shared(
    submit: Submit,
    cluster: Cluster,
    privrisk: Privrisk,
    elsewhere: tuple[ObjectStore, Path],
    driver_only: Path,
    tmp_path: Path,
) -> None:
    """Two executors are killed and six tasks fail after their work, then the driver is killed before it publishes.

    The vault lies in the store, too, so that nothing else has to be named for workers to reach.
    """
    store, policy = elsewhere
    base = f"s3://{BUCKET}/{store.location.path}"
    marks = tmp_path / "marks"
    package = failing_package(tmp_path, marks)
    executors = cluster.master_log().count("Launching executor")
    placed = [f"--set=output.path={base}/out", f"--set=output.vault={base}/vault"]
    killed = submit(policy, driver_only / "killed", *placed, package=package, killed_at=": validate")
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert cluster.master_log().count("Launching executor") >= executors + 4, "two more than at the start"
    assert {"killed-0", "killed-1"} < {path.name for path in marks.iterdir()}
    assert not list(store.entries("out"))
    assert list(store.entries("vault/scratch")), "what the driver could not clear away"

    done = submit(policy, driver_only / "killed", *placed)
    assert done.returncode == 0, done.stderr[-3000:]
    local = privrisk(str(policy), "--run-id", "local", f"--set=table.path={tmp_path / 'parts'}")
    held_against(local, store)
    assert not list(store.entries("vault/scratch"))
    assert json.loads(store.read("vault/status/cluster.json").content)["code"] == 0
    assert not (driver_only / "killed").exists(), "all that is private is in the store"


def asked_below(
    place: str, disk: Path, columns: dict[str, Any], write: Callable[[str, str], object]
) -> list[list[str]]:
    """Every command but those that other tests submit, one building on the other: tables and findings in a place.

    Policies are written there, too, and the file of a hierarchy.
    """
    table = {"path": f"{place}/table", "record_id": "id"}
    write("city.csv", "Ulm;south;*\nBonn;north;*\nKiel;north;*\n")
    columns = {**columns, "city": {"role": "quasi-identifier", "hierarchy": {"file": f"{place}/city.csv"}}}

    def policy(name: str, **more: Any) -> str:
        output = {"path": f"{place}/out-{name}", "vault": f"{place}/vault-{name}"}
        document = {"version": 1, "run": {"name": name}, "table": table, "columns": columns, "output": output, **more}
        write(f"{name}.yaml", yaml.safe_dump(document))
        return f"{place}/{name}.yaml"

    masks = {"age": {"method": "rank-swapping", "percent": 20}, "sex": {"method": "none"}, "city": {"method": "none"}}
    masked = {name: {"role": "quasi-identifier", "mask": mask} for name, mask in masks.items()}
    friends = {"edges": {"path": f"{place}/friends"}, "pairs": "edges", "model": {"lambda": 2}}
    least = {"problem": "min-risk", "utility_at_least": 3}
    first = policy("first", decision=least, history=[], attack={"methods": ["distance"]})
    second = policy("second", decision=least, history=[f"{place}/vault-first"])
    alike = policy("alike", guarantee={"kind": "k-anonymity", "k": 3, "suppression_limit": 0.1})
    swapped = policy("swapped", columns={**columns, **masked}, guarantee={"kind": "masked", "key": "env:SWAP_KEY"})
    shown = policy("shown", columns=columns, sharing=friends)
    handed = [f"--set=run.scratch={place}/handed"] if "://" in place else []
    return [
        ["release", first, "--run-id=r1", "--date=2026-11-01"],
        ["attack", first, f"--output={place}/attack"],
        ["assess", second, "--history", f"--output={place}/history", "--date=2026-11-02"],
        ["assess", first, f"--output={place}/found"],
        ["curves", first, f"--output={place}/curves", "--shares=2", "--floors=2,3"],
        ["share", shown, f"--output={place}/share"],
        ["fit", alike, f"--output={disk}/scheme", *handed],
        ["approve", f"{disk}/scheme/scheme.json", "--by=A. Officer"],
        ["release", alike, "--run-id=r1", f"--scheme={disk}/scheme/scheme.json"],
        ["mask", swapped, "--run-id=r1"],
        ["fit", alike, f"--output={place}/refused"],
    ]


@pytest.mark.thorough("test_workers_that_share_no_disk_with_the_driver releases and assesses")
def test_every_other_command_where_nothing_is_shared(
    cluster: Cluster,
    spark: SparkSession,
    no_charts: None,
    elsewhere: tuple[ObjectStore, Path],
    whole: str,
    driver_only: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They find what they find on one machine; one driver runs them all, as its start takes longer than they do."""
    store, written = elsewhere
    monkeypatch.setenv("SWAP_KEY", "5d" * 32)
    (tmp_path / "parts").rename(tmp_path / "table")
    (tmp_path / "friends").mkdir()
    friends = tmp_path / "friends" / "part-0.parquet"
    pq.write_table(pa.table({"u": [f"p{i}" for i in range(9)], "v": [f"p{i + 1}" for i in range(9)]}), friends)
    store.upload("friends/part-0.parquet", friends)
    columns = yaml.safe_load(written.read_text())["columns"]
    disk = driver_only / "commands"
    disk.mkdir()
    base = f"s3://{BUCKET}/{store.location.path}"
    asked = asked_below(base, disk, columns, lambda name, text: store.write(name, text.encode()))
    (disk / "asked.json").write_text(json.dumps(asked))
    command = [
        cluster.submit, "--master", cluster.address, "--executor-memory", "512m",
        "--conf", "spark.executor.cores=1", "--conf", "spark.ui.enabled=false",
        "--py-files", whole, "tests/cluster_program.py", str(disk / "asked.json"),
    ]  # fmt: skip
    environment = {**cluster.environment, "SWAP_KEY": "5d" * 32}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    ended = json.loads((disk / "asked.ended").read_text())
    assert [one["code"] for one in ended] == [0] * 11 + [2], [one["said"][-500:] for one in ended if one["code"]]

    (tmp_path / "disk").mkdir()
    beside = asked_below(
        str(tmp_path), tmp_path / "disk", columns, lambda name, text: (tmp_path / name).write_text(text)
    )
    with production_batches(spark):
        for words in beside[:-2]:
            here = CliRunner().invoke(app, words)
            assert here.exit_code == 0, (words, here.output)
    assert "--output: must be a local or mounted path: a scheme is approved in its file" in ended[-1]["said"]
    measured = (f"{name}/measures.json" for name in ("attack", "found", "history", "share"))
    for name in (*measured, "curves/curves.csv"):
        assert store.read(name).content == (tmp_path / name).read_bytes(), name
    for name in ("out-first", "out-alike", "out-swapped"):
        below = f"{name}/releases/r1/data"
        found = [hashlib.sha256(store.read(one.name).content).hexdigest() for one in store.entries(below)]
        assert found == digests(tmp_path / below), name
    fitted = [json.loads((place / "scheme" / "scheme.json").read_text()) for place in (disk, tmp_path / "disk")]
    assert fitted[0]["columns"] == fitted[1]["columns"]
    assert list(store.entries("found/records"))
    assert store.read("recoding/recoding.json").content
    # What tasks hand to each other lies in what is named, else beside the findings, until the run ends.
    assert not [entry.name for entry in store.entries() if "scratch" in entry.name]
    assert not list(store.entries("handed"))
    left = {path.relative_to(disk).as_posix() for path in disk.rglob("*") if path.is_file()}
    scheme = {f"scheme/{name}" for name in (".privrisk.json", "scheme.json", "status.json")}
    assert left == {"asked.json", "asked.ended", *scheme}, "the rest is in the store"
