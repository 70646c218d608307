"""Releases whose table and scratch lie in an object store: the same bytes as from a disk, and nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import object_store
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_release
from object_store import BUCKET, SECRET
from product import Privrisk, Ran

from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore

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


def released(privrisk: Privrisk, root: Path, kind: str, path: str, *more: tuple[str, Any]) -> Ran:
    return privrisk(
        small_release.policy(kind, Path("unused"), root, *changes(kind, path), *more), "--run-id", "r1", root=root
    )


@pytest.mark.parametrize("kind", small_release.KINDS)
@pytest.mark.parametrize("counting", ["dense", "sorted", "shuffle"])
def test_the_bytes_are_those_of_a_disk(
    privrisk: Privrisk, store: ObjectStore, tmp_path: Path, kind: str, counting: str
) -> None:
    if kind == "dp" and counting != "dense":
        pytest.skip("a private release counts otherwise")
    plan = [("counting.plan", counting)] if kind == "risk" else []
    pq.write_table(table(), tmp_path / "table.parquet")
    on_disk = released(privrisk, tmp_path / "disk", kind, str(tmp_path / "table.parquet"), *plan)
    assert on_disk.code == 0, on_disk.err
    path = upload(store, tmp_path)
    scratch = f"s3://{BUCKET}/{store.location.path}/scratch"
    ran = released(privrisk, tmp_path / "objects", kind, path, ("run.scratch", scratch), *plan)
    assert ran.code == 0, ran.err
    assert small_release.digests(ran.root) == small_release.digests(on_disk.root)
    assert ran.manifest["rows"] > 0
    names = sorted(entry.name for entry in store.entries())
    assert names == ["table/_SUCCESS", *(f"table/part-{i}.parquet" for i in range(3))], "scratch is gone"
    for file in ran.root.rglob("*"):
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes()
    if kind == "risk":
        there = [pq.read_table(run.root / "vault" / "decisions").sort_by("id") for run in (ran, on_disk)]
        assert there[0].equals(there[1])
        assert ran.manifest["input"]["files"] == {"expected": 3, "processed": 3}


def test_tables_that_cannot_be_read_are_named(privrisk: Privrisk, store: ObjectStore, tmp_path: Path) -> None:
    def refused(path: str, *more: tuple[str, Any]) -> str:
        root = tmp_path / uuid4().hex
        ran = released(privrisk, root, "risk", path, *more)
        assert ran.code == 2, ran.err
        assert not (root / "out" / "manifest.json").exists()
        return " ".join(ran.err.split())

    base = f"s3://{BUCKET}/{store.location.path}"
    assert "table.path" in refused(f"{base}/nothing")
    assert "there is nothing there" in refused(f"{base}/nothing")
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
        ("/tmp/shared", [], "run.scratch: must be a directory in an object store"),
        ("hdfs://name/shared", [], "run.scratch: must be a directory in an object store"),
        (f"s3://{BUCKET}", [], "run.scratch: must be a directory of its own"),
        (f"s3://user:{SECRET}@{BUCKET}/x", [], "run.scratch: must hold no credentials"),
        (f"s3://{BUCKET}/x", [("output.format", "csv")], "run.scratch: needs output.format: parquet"),
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
