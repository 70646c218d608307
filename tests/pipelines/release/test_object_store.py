"""Releases whose table and scratch lie in an object store: the same bytes as from a disk, and nothing left behind."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import deltalake
import numpy as np
import object_store
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import small_release
from azure_server import CONTAINER
from product import Privrisk, Ran, production_batches, release
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from typer.testing import CliRunner

from benchmarks.s3_server import BUCKET, SECRET
from privrisk_spark.cli.app import app
from privrisk_spark.engine.batches import Batches
from privrisk_spark.engine.settings import input_files
from privrisk_spark.policy.policy import Output
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.storage.opening import open_remote
from privrisk_spark.storage.ownership import MARKER
from privrisk_spark.storage.parts import ObjectParts
from privrisk_spark.tables import csv_rows
from privrisk_spark.tables.released import Partitions, read_published

KEY = "3c" * 32


@pytest.fixture
def store(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    monkeypatch.setenv("RELEASE_KEY", KEY)
    return ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=5)


def table() -> pa.Table:
    lines = [line.split(";") for line in small_release.rows()]
    names = {"age": [int(age) for age, _ in lines], "city": [city for _, city in lines]}
    return pa.table({"id": [f"r{i}" for i in range(len(lines))], **names, "cost": np.arange(len(lines)) % 7 / 4})


def upload(store: ObjectStore, tmp_path: Path, name: str = "table", parts: int = 3) -> str:
    rows = table()
    for number in range(parts):
        file = tmp_path / "part.parquet"
        pq.write_table(rows.slice(number * 1500, 1500 if number < parts - 1 else None), file, row_group_size=400)
        store.upload(f"{name}/part-{number}.parquet", file)
    store.write(f"{name}/_SUCCESS", b"")
    return f"s3a://{BUCKET}/{store.location.path}/{name}"


def changes(kind: str, path: str) -> list[tuple[str, Any]]:
    return [
        ("table", {"path": path, "format": "parquet", "record_id": "id"}),
        ("columns.id", {"role": "identifier"}),
        *([("guarantee.key", "env:RELEASE_KEY")] if kind == "dp" else [("columns.cost", {"role": "insensitive"})]),
        *([("columns.cost", {"role": "insensitive", "action": "drop"})] if kind == "dp" else []),
        ("output.files", 2),
    ]


def released(
    privrisk: Privrisk,
    root: Path,
    kind: str,
    path: str,
    *more: tuple[str, Any],
    run_id: str = "r1",
    output: str | None = None,
) -> Ran:
    file = small_release.policy(kind, Path("unused"), root, *changes(kind, path), *more)
    return privrisk(file, "--run-id", run_id, root=root, output=output)


@pytest.fixture(scope="module")
def on_disk(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ran]:
    """``on_disk(kind, *changes)``: release r1 of the table in a file, whose output is a directory; made once each."""
    made: dict[str, Ran] = {}

    def ran(kind: str, *more: tuple[str, Any]) -> Ran:
        name = repr((kind, more))
        if name not in made:
            root = tmp_path_factory.mktemp("disk")
            pq.write_table(table(), root / "table.parquet")
            with pytest.MonkeyPatch.context() as patch, production_batches(spark):
                patch.setenv("RELEASE_KEY", KEY)
                made[name] = released(release, root / "x", kind, str(root / "table.parquet"), *more)
            assert made[name].code == 0, made[name].err
        return made[name]

    return ran


@pytest.mark.parametrize(
    ("kind", "counting"),
    [
        pytest.param("risk", "dense", marks=pytest.mark.thorough("tests/jobs/test_cluster.py")),
        ("risk", "shuffle"),
        ("dp", "dense"),
    ],
)
def test_the_bytes_are_those_of_a_disk(
    privrisk: Privrisk,
    on_disk: Callable[..., Ran],
    store: ObjectStore,
    tmp_path: Path,
    kind: str,
    counting: str,
) -> None:
    """Where counts are looked up, and where they are joined."""
    plan = [("counting.plan", counting)] if counting != "dense" else []
    wanted = on_disk(kind)
    path = upload(store, tmp_path)
    scratch = f"s3://{BUCKET}/{store.location.path}/scratch"
    ran = released(privrisk, tmp_path / "objects", kind, path, ("run.scratch", scratch), *plan)
    assert ran.code == 0, ran.err
    assert small_release.digests(ran.root) == small_release.digests(wanted.root)
    assert ran.manifest["rows"] > 0
    names = sorted(entry.name for entry in store.entries())
    assert names == ["table/_SUCCESS", *(f"table/part-{i}.parquet" for i in range(3))], "scratch is gone"
    for file in ran.root.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes()
    if kind == "risk" and not plan:
        there = [pq.read_table(run.root / "vault" / "decisions").sort_by("id") for run in (ran, wanted)]
        assert there[0].equals(there[1])
    if kind == "risk":
        assert ran.manifest["input"]["files"] == {"expected": 3, "processed": 3}


def test_csv_in_a_store_is_released_as_on_a_disk(
    privrisk: Privrisk, store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Table and dictionary are CSV files, of which tasks read parts; and what is damaged is refused alike."""
    monkeypatch.setattr(csv_rows, "PART", 10_000)
    here = small_release.write_table(tmp_path)
    there = f"s3://{BUCKET}/{store.location.path}/csv/table.csv"
    store.upload("csv/table.csv", here)
    register = {"kind": "table", "format": "csv", "options": {"sep": ";", "header": True}}
    columns = {"age": "age", "city": "city"}
    found = []
    for name, path in (("disk", str(here)), ("store", there)):
        known = {**register, "path": path, "columns": columns}
        file = small_release.policy("risk", Path(path), tmp_path / name, ("table.path", path), ("dictionary", known))
        ran = privrisk(file, "--run-id", "r1", root=tmp_path / name)
        assert ran.code == 0, ran.err
        assert ran.manifest["input"]["files"] == {"expected": 1, "processed": 1}
        found.append(small_release.digests(ran.root))
    assert found[0] == found[1]

    store.write("csv/table.csv", here.read_bytes() + b"PLANTED;Ulm;cut\n")
    file = small_release.policy("risk", Path(there), tmp_path / "damaged", ("table.path", there))
    refused = privrisk(file, "--run-id", "r2", root=tmp_path / "damaged")
    assert refused.code == 2
    assert f"table.path: '{there}': 1 lines are cut" in refused.err
    assert "PLANTED" not in refused.err


@pytest.mark.parametrize(
    ("kind", "shared", "written"),
    [
        ("risk", False, "parquet"),
        ("risk", True, "csv"),
        pytest.param("dp", True, "parquet", marks=pytest.mark.thorough("the same steps as by risk")),
    ],
)
def test_a_release_in_a_store_is_that_of_a_disk_but_for_its_place(
    privrisk: Privrisk,
    on_disk: Callable[..., Ran],
    store: ObjectStore,
    spark: SparkSession,
    tmp_path: Path,
    kind: str,
    shared: bool,
    written: str,
) -> None:
    """CSV, too: lines that tasks put together have no disk to lie on either."""
    pq.write_table(table(), tmp_path / "table.parquet")
    path, base = str(tmp_path / "table.parquet"), f"s3://{BUCKET}/{store.location.path}"
    form = [("output.format", written)] if written != "parquet" else []
    output, scratch = f"{base}/out", [("run.scratch", f"{base}/scratch"), *form] if shared else form
    wanted = on_disk(kind, *form)
    ran = released(privrisk, tmp_path / "x", kind, path, *scratch, output=output)
    assert ran.code == 0, ran.err
    assert ran.status["message"] == f"release at {output}/releases/r1"
    names = {entry.name for entry in store.entries()}
    there = {file.relative_to(wanted.root).as_posix() for file in (wanted.root / "out").rglob("*") if file.is_file()}
    assert names == there, "nothing else is there, and nothing stays of the commit"
    for name in names - {"out/manifest.json", "out/releases/r1/manifest.json", "out/releases/r1/report.html"}:
        assert store.read(name).content == (wanted.root / name).read_bytes(), name
    manifest = json.loads(store.read("out/manifest.json").content)
    same = {"sequence", "run_id", "date", "rows", "guarantee", "data", "checks"}
    assert {name: manifest[name] for name in same & manifest.keys()} == {
        name: wanted.manifest[name] for name in same & manifest.keys()
    }
    assert [path.name for path in (ran.root / "vault").rglob(".*")] == [MARKER], "nothing else is left in the vault"
    places = Output(path=output, vault="v", format=written)
    at, parts = store.location.below("out/releases/r1/data"), Partitions.of_manifest(manifest)
    frame = read_published(spark, places, at, key="output.path", partitions=parts)
    assert input_files(frame), "a run must not write onto what it reads"
    assert all(one.startswith(str(at)) for one in input_files(frame))
    rows = frame.toArrow()
    assert rows.column_names == [one["name"] for one in manifest["columns"]]
    assert rows.num_rows == manifest["rows"]
    # A ledger compares what is asked for by the letter.
    again = released(
        privrisk,
        tmp_path / "x",
        kind,
        path,
        *scratch,
        output=output if kind == "dp" else f"{output}/".replace("s3", "s3a"),
    )
    assert again.code == 0, again.err
    assert {entry.name for entry in store.entries()} == names
    change = ("decision.utility_at_least", 0.5) if kind == "risk" else ("guarantee.public_rows", 4500)
    other = released(privrisk, tmp_path / "x", kind, path, *scratch, change, output=output)
    assert other.code == 1, other.err
    assert small_release.charged(ran.root) == (small_release.CHARGED if kind == "dp" else [])


@pytest.mark.parametrize("kind", ["az", "gs", "hdfs"])
def test_release_of_other_stores_has_the_bytes_of_a_disk(
    privrisk: Privrisk,
    on_disk: Callable[..., Ran],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    kind: Literal["az", "gs", "hdfs"],
) -> None:
    """Table, intermediate results and two releases, the second of which takes the place of the first."""
    found = request.getfixturevalue({"az": "azure", "gs": "google"}.get(kind, kind))
    container = {"az": CONTAINER, "gs": BUCKET}.get(kind) or found.partition("://")[2]
    there = open_remote(Location(kind, container, uuid4().hex), retry_seconds=5)
    base = str(there.location)
    upload(there, tmp_path)
    places = ("run.scratch", f"{base}/scratch")
    for number in (1, 2):
        ran = released(
            privrisk, tmp_path / "x", "risk", f"{base}/table", places, run_id=f"r{number}", output=f"{base}/out"
        )
        assert ran.code == 0, ran.err
        assert json.loads(there.read("out/manifest.json").content)["sequence"] == number
        for name, digest in small_release.digests(on_disk("risk").root).items():
            content = there.read(f"out/releases/r{number}/data/{name}").content
            assert hashlib.sha256(content).hexdigest() == digest
    names = {entry.name.partition("/")[0] for entry in there.entries()}
    assert names == {"table", "out"}, "scratch is gone"
    again = released(privrisk, tmp_path / "x", "risk", f"{base}/table", places, run_id="r2", output=f"{base}/out")
    assert "Already released" in again.out
    keys = [os.environ[name] for name in ("AZURE_STORAGE_ACCOUNT_KEY", "GOOGLE_SERVICE_ACCOUNT_KEY")]
    for content in (file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()):
        assert not any(key.encode() in content for key in keys)


def test_what_was_changed_in_a_store_is_not_believed(privrisk: Privrisk, store: ObjectStore, tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "table.parquet")
    output = f"s3://{BUCKET}/{store.location.path}/out"

    def ran(run_id: str) -> Ran:
        return released(privrisk, tmp_path / "x", "risk", str(tmp_path / "table.parquet"), run_id=run_id, output=output)

    assert [ran(run_id).code for run_id in ("r1", "r2")] == [0, 0]
    assert json.loads(store.read("out/manifest.json").content)["sequence"] == 2
    store.write("out/releases/r1/data/part-00000.parquet", b"other")
    changed = ran("r1")
    assert changed.code == 1
    assert f"the release at '{output}/releases/r1' was changed after publication" in " ".join(changed.err.split())
    store.remove("out/manifest.json")
    assert ran("r2").code == 0
    assert json.loads(store.read("out/manifest.json").content)["run_id"] == "r2"


def test_a_store_that_cannot_be_written_is_said_before_any_work(
    privrisk: Privrisk, store: ObjectStore, tmp_path: Path
) -> None:
    pq.write_table(table(), tmp_path / "table.parquet")
    ran = released(privrisk, tmp_path / "x", "risk", str(tmp_path / "table.parquet"), output="s3://no-such-bucket/out")
    assert ran.code == 2, ran.err
    assert "there is no such bucket" in ran.err
    assert "stage 1" not in ran.err
    path = upload(store, tmp_path)
    ran = released(privrisk, tmp_path / "x", "risk", path, output=f"{path.replace('s3a', 's3')}/out")
    assert ran.code == 2
    assert "output.path: must be neither table.path nor inside nor around it" in ran.err


def test_killed_while_it_publishes_the_next_run_ends_the_commit_or_begins_anew(
    privrisk: Privrisk,
    on_disk: Callable[..., Ran],
    store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each attempt goes on with what the one before it left there, and is killed one step later."""

    class Killed(BaseException):
        pass

    path = str(tmp_path / "table.parquet")
    pq.write_table(table(), path)
    output, root = f"s3://{BUCKET}/{store.location.path}/out", tmp_path / "x"
    first = released(privrisk, tmp_path / "other", "risk", path, output=output, run_id="r0")
    assert first.code == 0, first.err

    def kill(*_: Any, **__: Any) -> None:
        raise Killed

    for name in ("create", "upload", "replace", "remove"):
        with monkeypatch.context() as patch:
            patch.setattr("privrisk_spark.runs.object_output.ObjectOutput.held", lambda self: nullcontext())
            patch.setattr(ObjectStore, name, kill)
            with pytest.raises(Killed):
                released(privrisk, root, "dp", path, output=output)
        current = json.loads(store.read("out/manifest.json").content)
        assert current["run_id"] == ("r1" if name == "remove" else "r0"), name
    ran = released(privrisk, root, "dp", path, output=output)
    assert ran.code == 0, ran.err
    assert small_release.charged(root) == small_release.CHARGED
    below = "out/releases/r1/data/"
    found = {
        entry.name.removeprefix(below): hashlib.sha256(store.read(entry.name).content).hexdigest()
        for entry in store.entries(below)
    }
    assert found == small_release.digests(on_disk("dp").root)
    assert not [entry.name for entry in store.entries("out/.publishing")]


def test_the_python_interface_opens_what_lies_in_a_store(
    store: ObjectStore, spark: SparkSession, tmp_path: Path
) -> None:
    import privrisk_spark as pr

    frame = spark.createDataFrame(table().to_pandas())
    policy = pr.Policy(
        columns={
            "id": {"role": "identifier"},
            "age": pr.quasi_identifier(pr.intervals(10, 50, domain=(0, 99))),
            "city": pr.quasi_identifier(pr.flat("Bonn", "Kiel", "Ulm")),
            "cost": {"role": "insensitive"},
        },
        table={"record_id": "id"},
        decision={"problem": "min-risk", "utility_at_least": 1},
    )
    output = f"s3://{BUCKET}/{store.location.path}/out"
    with pr.release(frame, policy, output=output, vault=tmp_path / "vault", run_id="r1") as done:
        assert done.place == f"{output}/releases/r1"
        assert done.data.count() == done.manifest["rows"]
        assert done.data.columns == ["age", "city", "cost"]
        assert "<html" in done.report.html
        assert all(check["passed"] for check in done.checks)


def test_tables_that_cannot_be_read_are_named(privrisk: Privrisk, store: ObjectStore, tmp_path: Path) -> None:
    def refused(path: str, *more: tuple[str, Any]) -> str:
        root = tmp_path / uuid4().hex
        ran = released(privrisk, root, "risk", path, *more)
        assert ran.code == 2, ran.err
        assert not (root / "out" / "manifest.json").exists()
        return " ".join(ran.err.split())

    base = f"s3://{BUCKET}/{store.location.path}"
    said = refused(f"{base}/nothing")
    assert "table.path" in said
    assert "there is nothing there" in said
    upload(store, tmp_path)
    store.write("table/part-9.parquet", b"PAR1 no more")
    assert "file part-9.parquet cannot be read as parquet" in refused(f"{base}/table")
    store.remove("table/part-9.parquet")
    pq.write_table(table().drop_columns(["city"]), tmp_path / "lacking.parquet")
    store.upload("table/part-9.parquet", tmp_path / "lacking.parquet")
    assert "file part-9.parquet has no column 'city'" in refused(f"{base}/table")
    other = table().set_column(1, "age", table().column("age").cast(pa.string()))
    pq.write_table(other, tmp_path / "other.parquet")
    store.upload("table/part-9.parquet", tmp_path / "other.parquet")
    assert "file part-9.parquet has column 'age' of type string" in refused(f"{base}/table")


@pytest.mark.parametrize(
    ("scratch", "more", "rule"),
    [
        ("/tmp/shared", [], "run.scratch: must be a directory in HDFS or an object store"),
        ("dbfs://name/shared", [], "run.scratch: must be a directory in HDFS or an object store"),
        (f"s3://{BUCKET}", [], "run.scratch: must be a directory of its own"),
        (f"s3://user:{SECRET}@{BUCKET}/x", [], "run.scratch: must hold no credentials"),
        (f"s3://{BUCKET}/x", [("history", ["/srv/vault"])], "run.scratch: with history it needs output.vault"),
    ],
)
def test_a_scratch_that_will_not_do_is_named(
    privrisk: Privrisk, tmp_path: Path, scratch: str, more: list[tuple[str, Any]], rule: str
) -> None:
    ran = released(privrisk, tmp_path / "x", "risk", str(tmp_path / "none"), ("run.scratch", scratch), *more)
    assert ran.code == 2
    assert rule in " ".join(ran.err.split())
    assert SECRET not in ran.err


def test_a_store_that_fails_half_way_publishes_nothing(
    privrisk: Privrisk, store: ObjectStore, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(table(), tmp_path / "table.parquet")
    with object_store.front(endpoint) as (front, address):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setattr("privrisk_spark.storage.objects.RETRY_SECONDS", 1.0)
        scratch = f"s3://{BUCKET}/{store.location.path}/scratch"
        root = tmp_path / "x"
        done = 0

        def plan(method: str, path: str) -> object_store.Fault | None:
            nonlocal done
            done += method == "PUT"
            return "throttle" if method == "PUT" and done > 1 else None

        front.plan = plan
        ran = released(privrisk, root, "risk", str(tmp_path / "table.parquet"), ("run.scratch", scratch))
        assert done > 1
        assert ran.code == 3, ran.err
        assert "cannot be read or written" in ran.err
        assert not (root / "out" / "manifest.json").exists()
        front.plan = lambda method, path: None
        again = released(privrisk, root, "risk", str(tmp_path / "table.parquet"), ("run.scratch", scratch))
        assert again.code == 0, again.err
    assert again.status["code"] == 0
    assert not list(store.entries())


def test_a_scratch_that_cannot_be_removed_is_named_and_the_release_stands(
    privrisk: Privrisk, store: ObjectStore, endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(table(), tmp_path / "table.parquet")
    with object_store.front(endpoint) as (front, address):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        monkeypatch.setattr("privrisk_spark.storage.parts._AT_THE_END", 1.0)
        scratch = f"s3://{BUCKET}/{store.location.path}/scratch"
        front.plan = lambda method, path: "throttle" if method == "POST" and path.endswith("?delete") else None
        ran = released(privrisk, tmp_path / "x", "risk", str(tmp_path / "table.parquet"), ("run.scratch", scratch))
        assert ran.code == 0, ran.err
        assert ran.manifest["rows"] > 0
        assert f"The run's scratch '{scratch}/" in ran.err
        assert "could not be removed" in ran.err
        (left,) = (tmp_path / "x" / "vault").glob(".scratch-*")
        assert [path.name for path in left.iterdir()] == [".in-store"], "so that the next run there removes it"
        refused = released(
            privrisk,
            tmp_path / "y",
            "risk",
            str(tmp_path / "table.parquet"),
            ("run.scratch", scratch),
            ("decision.utility_at_least", 1e6),
        )
        assert refused.code == 2, "the removal that fails hides no other end"


@pytest.mark.on_spark("only workers of Spark are told of a local directory")
def test_copies_of_tasks_lie_in_sparks_local_directory(store: ObjectStore, spark: SparkSession) -> None:
    directory = ObjectParts(store.location.below("parts"))
    with directory.writing("a") as path:
        Path(path).write_bytes(b"1")

    def look(_: int) -> Iterator[pa.Table]:
        copy = Path(directory.path("a"))
        modes = [place.stat().st_mode & 0o777 for place in (copy.parent, copy.parent.parent)]
        local = [place for place in os.environ["SPARK_LOCAL_DIRS"].split(",") if copy.is_relative_to(place)]
        yield pa.table({"local": [len(local)], "private": [modes == [0o700] * 2]})

    schema = T.StructType([T.StructField("local", T.LongType()), T.StructField("private", T.BooleanType())])
    rows = Batches.of_parts(spark, range(2), look, schema).frame().toArrow().to_pylist()
    assert rows == [{"local": 1, "private": True}] * 2
    directory.remove()


def test_what_lies_in_a_store_is_a_witness_of_its_ledger(
    privrisk: Privrisk, store: ObjectStore, tmp_path: Path
) -> None:
    pq.write_table(table(), tmp_path / "table.parquet")
    root, output = tmp_path / "x", f"s3://{BUCKET}/{store.location.path}/out"
    ran = released(privrisk, root, "dp", str(tmp_path / "table.parquet"), output=output)
    assert ran.code == 0, ran.err

    def reconcile(*places: str) -> tuple[int, str]:
        ended = CliRunner().invoke(app, ["ledger", "reconcile", *places, "--ledger", f"sqlite:///{root}/ledger.db"])
        return ended.exit_code, " ".join(ended.output.split())

    code, said = reconcile(f"{output}/", str(root / "vault"))
    assert code == 0, said
    assert output in said
    (root / "ledger.db").unlink()
    code, said = reconcile(output)
    assert code == 1, said
    assert "r1" in said
    assert output in said
    # Who begins anew, with a vault that knows nothing, is told by the output.
    policy = small_release.policy("dp", Path("unused"), root, *changes("dp", str(tmp_path / "table.parquet")))
    again = privrisk(policy, "--run-id", "r2", root=tmp_path / "y", output=output)
    assert again.code == 1, again.err
    assert "r1" in again.err
    assert reconcile("s3://key:secret@bucket/out")[0] == 2


def test_a_table_whose_directories_are_named_for_a_column_is_released_as_from_a_disk(
    privrisk: Privrisk, store: ObjectStore, tmp_path: Path
) -> None:
    """A quasi-identifier and a kept column in the names of directories, one value of it missing."""
    rows = table()
    parts = {"Ulm": "visit=1", "Bonn": "visit=__HIVE_DEFAULT_PARTITION__", "Kiel": "visit=01"}
    for city, visit in parts.items():
        file = tmp_path / "table" / f"city={city}" / visit / "part.parquet"
        file.parent.mkdir(parents=True)
        pq.write_table(rows.filter(pc.equal(rows["city"], city)).drop_columns("city"), file, row_group_size=400)
        store.upload(file.relative_to(tmp_path).as_posix(), file)
    kept = [("columns.visit", {"role": "insensitive"})]
    on_disk = released(privrisk, tmp_path / "disk", "risk", str(tmp_path / "table"), *kept)
    assert on_disk.code == 0, on_disk.err
    ran = released(privrisk, tmp_path / "objects", "risk", f"{store.location}/table", *kept)
    assert ran.code == 0, ran.err
    assert small_release.digests(ran.root) == small_release.digests(on_disk.root)
    assert ran.manifest["input"]["files"] == {"expected": 3, "processed": 3}
    published = pq.read_table(ran.root / "out" / "releases" / "r1" / "data")
    assert set(published["visit"].to_pylist()) == {"1", "01", None}
    store.write("table/city=Ulm/_SUCCESS", b"")
    store.upload("table/city=Rom/other/part.parquet", file)
    refused = released(privrisk, tmp_path / "objects", "risk", f"{store.location}/table", *kept, run_id="r2")
    assert refused.code == 2
    assert "not named column=value" in refused.err


def test_release_of_a_delta_table_in_hdfs_is_a_version_of_another(
    privrisk: Privrisk, hdfs: str, tmp_path: Path
) -> None:
    base = f"{hdfs}/{uuid4().hex}"
    deltalake.write_deltalake(f"{base}/table", table())
    lake = ("output.lake", {"format": "delta", "path": f"{base}/lake"})
    of = ("table", {"path": f"{base}/table", "format": "delta", "record_id": "id"})
    ran = released(privrisk, tmp_path / "x", "risk", f"{base}/table", of, lake, output=f"{base}/out")
    assert ran.code == 0, ran.err
    written = deltalake.DeltaTable(f"{base}/lake")
    assert written.version() == 0
    assert written.to_pyarrow_table().num_rows == table().num_rows
