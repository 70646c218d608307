"""Releases in directories that are named after released values, from the table to who reads them."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
import small_release
import yaml
from azure_server import CONTAINER
from policies import DROP
from product import Privrisk, Ran, production_batches, release
from pyspark.sql import DataFrame, SparkSession
from small_release import write_table
from typer.testing import CliRunner

import privrisk_spark as pr
from benchmarks.s3_server import BUCKET
from privrisk_spark.cli.app import app
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.pipelines.release import written
from privrisk_spark.policy.policy import Output
from privrisk_spark.runs import local_output
from privrisk_spark.stages.publishing import directories
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore
from privrisk_spark.tables.partitions import MISSING
from privrisk_spark.tables.released import Partitions, read_published

KEY = "5e" * 32


ROWS = 60


def table(rows: int = ROWS) -> pa.Table:
    """Kept columns of the types a directory can be named after, and of one it cannot."""
    pick = random.Random(3)
    return pa.table(
        {
            "id": [f"r{i}" for i in range(rows)],
            "age": pa.array([pick.randrange(20, 60) for _ in range(rows)], pa.int64()),
            "city": [pick.choice(["Ulm", "Bonn", "Kiel", None]) for _ in range(rows)],
            "ward.no/1": [pick.choice(["a/b", "..", "50%", "x=1", "Ü:1", "01", None]) for _ in range(rows)],
            "year": pa.array([pick.choice([2025, 2026, None]) for _ in range(rows)], pa.int32()),
            "day": pa.array([pick.choice([0, 20000, None]) for _ in range(rows)], pa.int32()).cast(pa.date32()),
            "alive": [pick.choice([True, False]) for _ in range(rows)],
            "cost": [pick.choice([1.5, -0.0, 0.0, None]) for _ in range(rows)],
            "at": pa.array([10**15 + i for i in range(rows)], pa.timestamp("us", "UTC")),
            "list": [[i % 3] for i in range(rows)],
        }
    )


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """A policy over the table."""
    return write_visits(tmp_path)


def write_visits(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    pq.write_table(table(), tmp_path / "in" / "part-0.parquet", row_group_size=17)
    kept = {name: {"role": "insensitive"} for name in ("ward.no/1", "year", "day", "alive", "cost", "at", "list")}
    document = {
        "version": 1,
        "run": {"name": "visits", "date": "2026-11-21"},
        "table": {"path": str(tmp_path / "in"), "record_id": "id"},
        "columns": {
            "id": {"role": "identifier"},
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [10, 20], "domain": [0, 99]}}},
            "city": {
                "role": "quasi-identifier",
                "nulls": "own-value",
                "hierarchy": {"tree": {"*": {"south": ["Ulm"], "north": ["Bonn", "Kiel"]}}},
            },
            **kept,
        },
        "decision": {"problem": "min-risk", "utility_at_least": 3},
        "output": {"path": "o", "vault": "v", "files": 2},
    }
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(document, sort_keys=False))
    return policy


def partitioned(privrisk: Privrisk, policy: Path, root: Path, *by: str, more: tuple[str, ...] = ()) -> Ran:
    given = [f"--set=output.partition_by={json.dumps(by)}"] if by else []
    return privrisk(str(policy), "--run-id", "r1", *given, *more, root=root)


def files_of(root: Path) -> dict[str, str]:
    data = root / "out" / "releases" / "r1" / "data"
    return {
        path.relative_to(data).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(data.rglob("*.parquet"))
    }


def rows_of(data: Path, types: dict[str, str]) -> Counter[str]:
    """Rows as pyarrow reads them, by names and types of the directories' columns."""
    kinds = {"string": pa.string(), "int": pa.int32(), "date": pa.date32(), "boolean": pa.bool_()}
    (file, *_) = sorted(data.rglob("*.parquet"))
    by = pa.schema([(name, kinds[kind]) for name, kind in types.items()])
    schema = pa.schema([*pq.read_schema(file), *by])
    hive = ds.HivePartitioning(by, null_fallback=MISSING)
    found = ds.dataset(data, schema=schema, partitioning=hive if types else None).to_table()
    return Counter(repr([(name, row[name]) for name in sorted(row)]) for row in found.to_pylist())


def check_same_rows(found: DataFrame, expected: DataFrame) -> None:
    """Compare rows of any order; Sail cannot sort frames with lists."""
    assert found.columns == expected.columns
    assert Counter(map(repr, found.toArrow().to_pylist())) == Counter(map(repr, expected.toArrow().to_pylist()))


@pytest.fixture(scope="module")
def on_disk(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ran]:
    """``on_disk(*by)``: release r1 of the policy, parted so; made once each, and changed by no test."""

    @cache
    def made(*by: str) -> Ran:
        root = tmp_path_factory.mktemp("on-disk")
        with production_batches(spark):
            ran = partitioned(release, write_visits(root), root, *by)
        assert ran.code == 0, ran.err
        return ran

    return made


BY = (["city"], ["ward.no/1", "year"], ["day", "alive", "age"])


@pytest.mark.parametrize("by", BY)
def test_the_rows_are_those_of_the_release_in_plain_files(
    on_disk: Callable[..., Ran], spark: SparkSession, by: list[str]
) -> None:
    plain, ran = on_disk(), on_disk(*by)
    data = ran.manifest["data"]
    assert data["partition_by"] == by
    assert "partition_by" not in plain.manifest["data"]
    assert files_of(ran.root) == {entry["name"]: entry["sha256"] for entry in data["files"]}
    assert all(entry["name"].count("/") == len(by) for entry in data["files"])
    assert {entry["name"].rpartition("/")[2] for entry in data["files"]} <= {"part-00000.parquet", "part-00001.parquet"}
    assert ran.manifest["rows"] == plain.manifest["rows"] == ROWS
    assert ran.manifest["tuples"] == plain.manifest["tuples"]
    assert ran.summary["risk_after"] == plain.summary["risk_after"]
    assert ran.summary["kept_columns"] == plain.summary["kept_columns"]
    (check,) = [one for one in ran.manifest["checks"] if one["name"] == "rows in other directories"]
    assert (check["passed"], check["observed"]) == (True, 0)
    # By pyarrow, and by the engine with a schema.
    assert rows_of(ran.data, data["partition_types"]) == rows_of(plain.data, {})
    expected = spark.read.parquet(str(plain.data))
    place, partitions = Location("file", "", str(ran.data)), Partitions.of_manifest(ran.manifest)
    found = read_published(spark, Output(path="o", vault="v"), place, key="k", partitions=partitions)
    check_same_rows(found, expected)
    # Everybody reads it, directories too, and all bears the business date.
    for path in ran.data.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)
        assert path.stat().st_mtime == 1795219200


def test_bytes_do_not_depend_on_how_rows_come(
    privrisk: Privrisk, on_disk: Callable[..., Ran], visits: Path, tmp_path: Path
) -> None:
    by = ("day", "alive", "age")
    first = on_disk(*by)
    order = list(range(ROWS))
    random.Random(3).shuffle(order)
    place = tmp_path / "in11"
    place.mkdir()
    for number in range(11):
        pq.write_table(table().take(pa.array(order[number::11])), place / f"part-{number}.parquet")
    again = partitioned(privrisk, visits, tmp_path / "again", *by, more=(f"--set=table.path={place}",))
    assert again.code == 0, again.err
    assert files_of(again.root) == files_of(first.root)


def test_tasks_that_see_no_staging_write_the_same_bytes(
    privrisk: Privrisk, visits: Path, tmp_path: Path, endpoint: str
) -> None:
    """A missing value, texts that are escaped, a date and a label are in the names; the check reads them there."""
    scratch = f"--set=run.scratch=s3://{BUCKET}/{uuid4().hex}"
    by = ("ward.no/1", "day", "age")
    pq.write_table(table(30), tmp_path / "in" / "part-0.parquet")
    seen = partitioned(privrisk, visits, tmp_path / "disk", *by)
    apart = partitioned(privrisk, visits, tmp_path / "apart", *by, more=(scratch,))
    assert (seen.code, apart.code) == (0, 0), seen.err + apart.err
    assert files_of(tmp_path / "apart") == files_of(seen.root)
    assert apart.manifest["checks"] == seen.manifest["checks"]
    assert apart.manifest["data"] == seen.manifest["data"]
    assert apart.summary["risk_after"] == seen.summary["risk_after"]
    assert "rows in other directories" in {check["name"] for check in apart.manifest["checks"]}


def test_a_run_id_that_is_released_is_held_against_its_files(privrisk: Privrisk, visits: Path, tmp_path: Path) -> None:
    first = partitioned(privrisk, visits, tmp_path, "city", "year")
    assert first.code == 0, first.err
    before = files_of(tmp_path)
    again = partitioned(privrisk, visits, tmp_path, "city", "year")
    assert again.code == 0, again.err
    assert files_of(tmp_path) == before
    other = partitioned(privrisk, visits, tmp_path, "year", "city")
    assert other.code == 1
    assert "asked for with another content of: " in other.err
    (moved, *_) = sorted(first.data.rglob("part-00000.parquet"))
    moved.rename(moved.with_name("part-00007.parquet"))
    damaged = partitioned(privrisk, visits, tmp_path, "city", "year")
    assert damaged.code == 1
    assert "was changed after publication" in damaged.err


@pytest.mark.parametrize(("by", "apart"), [("city", False), ("year", False), ("year", True)])
def test_a_file_in_another_directory_is_not_published(
    privrisk: Privrisk,
    visits: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    endpoint: str,
    by: str,
    apart: bool,
) -> None:
    """The values of names are read back from the names: who puts files of two directories about is found out."""
    name_files = written.name_files

    def exchanged(*arguments: Any) -> Any:
        *others, places = arguments
        ends = {places[0]: places[-1], places[-1]: places[0]}
        return name_files(*others, [ends.get(place, place) for place in places])

    monkeypatch.setattr(written, "name_files", exchanged)
    scratch = [f"--set=run.scratch=s3://{BUCKET}/{uuid4().hex}"] if apart else []
    ran = partitioned(privrisk, visits, tmp_path, by, more=tuple(scratch))
    assert ran.code == 1, ran.err
    assert "every row, with the values its directory is named after, is released as often as was decided" in ran.err
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert not list((tmp_path / "out" / "releases").glob("*"))


def test_a_file_that_is_another_than_the_part_is_not_published(
    privrisk: Privrisk, visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    """Tasks that see no staging hold their parts against what was put in the directories."""
    name_files = written.name_files

    def exchanged(*arguments: Any) -> Any:
        parts, order, *others = arguments
        return name_files(parts, [order[-1], *order[1:-1], order[0]], *others)

    monkeypatch.setattr(written, "name_files", exchanged)
    scratch = f"--set=run.scratch=s3://{BUCKET}/{uuid4().hex}"
    ran = partitioned(privrisk, visits, tmp_path, "year", more=(scratch,))
    assert ran.code == 3, ran.err
    assert "a file of the release was changed while it was put in its directory" in ran.err
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_value_that_is_missing_is_missing_to_readers(on_disk: Callable[..., Ran]) -> None:
    ran = on_disk("ward.no/1", "year")
    names = {path.name: path for path in ran.data.iterdir()}
    assert set(names) == {"ward.no%2F1=" + value for value in ("a%2Fb", "..", "50%25", "x%3D1", "Ü%3A1", "01", MISSING)}
    missing = names[f"ward.no%2F1={MISSING}"]
    rows = sum(pq.read_metadata(file).num_rows for file in missing.rglob("*.parquet"))
    assert rows == table().column("ward.no/1").null_count


@pytest.mark.parametrize(
    ("more", "by", "said"),
    [
        ((), "cost", "output.partition_by: column 'cost' is of type double"),
        ((), "at", "output.partition_by: column 'at' is of type timestamp"),
        ((), "list", "output.partition_by: column 'list' is of type array<bigint>"),
        (
            (f"--set=columns.city.hierarchy.tree={{'*': {{north: [Bonn, Kiel, {MISSING}]}}}}",),
            "city",
            f"output.partition_by: column 'city' has the text {MISSING}",
        ),
    ],
)
def test_what_is_no_name_is_refused_before_rows_are_decided(
    privrisk: Privrisk, visits: Path, tmp_path: Path, more: tuple[str, ...], by: str, said: str
) -> None:
    ran = partitioned(privrisk, visits, tmp_path, by, more=more)
    assert ran.code == 2
    assert said in ran.err
    dry = partitioned(privrisk, visits, tmp_path, by, more=(*more, "--dry-run"))
    assert (dry.code, said in dry.err) == (2, True)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_an_empty_text_of_a_kept_column_is_refused_without_a_value(
    privrisk: Privrisk, visits: Path, tmp_path: Path
) -> None:
    rows = table()
    at = rows.column_names.index("ward.no/1")
    wards = pa.array(["", *rows.column("ward.no/1").to_pylist()[1:]])
    pq.write_table(rows.set_column(at, "ward.no/1", wards), tmp_path / "in" / "part-0.parquet")
    ran = partitioned(privrisk, visits, tmp_path, "ward.no/1")
    assert ran.code == 2, ran.err
    assert "output.partition_by: column 'ward.no/1' has an empty text" in ran.err
    assert "50%" not in ran.err
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_too_many_directories_are_refused_and_nothing_is_published(
    privrisk: Privrisk, visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "MOST", 3)
    ran = partitioned(privrisk, visits, tmp_path, "ward.no/1", "year")
    assert ran.code == 2, ran.err
    assert "output.partition_by: the release has more than" in ran.err
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_release_without_rows_has_its_columns(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A private release may be empty: then there are no directories, and the file has all columns."""
    monkeypatch.setenv("RELEASE_KEY", KEY)
    changes: list[tuple[str, Any]] = [("guarantee.key", "env:RELEASE_KEY"), ("output.partition_by", ["city"])]
    (tmp_path / "table.csv").write_text("age;city\n30;Ulm\n")
    policy = small_release.policy("dp", tmp_path / "table.csv", tmp_path, *changes)
    Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").create()
    ran = privrisk(policy, "--run-id", "r1")
    assert ran.code == 0, ran.err
    assert ran.manifest["rows"] == 0
    assert files_of(tmp_path).keys() == {"part-00000.parquet"}
    assert pq.read_schema(ran.data / "part-00000.parquet").names == ["age", "city"]


def test_nested_directories_are_durable_before_the_release_has_its_name(
    privrisk: Privrisk, visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []

    def sync(path: Path) -> None:
        synced.append(path.name if path.exists() else "gone")

    monkeypatch.setattr(local_output, "sync", sync)
    ran = partitioned(privrisk, visits, tmp_path, "city", "year")
    assert ran.code == 0, ran.err
    there = {path.name for path in ran.data.rglob("*") if path.is_dir()}
    assert len(there) > 3
    renamed = synced.index("releases")
    assert there | {"data"} <= set(synced[:renamed])


def test_guarantees_without_kept_columns_are_partitioned_too(
    privrisk: Privrisk, undisturbed: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEASE_KEY", small_release.KEY)
    plain = undisturbed("dp")
    changes: list[tuple[str, Any]] = [("guarantee.key", "env:RELEASE_KEY"), ("output.partition_by", ["city"])]
    policy = small_release.policy("dp", write_table(tmp_path), tmp_path, *changes)
    Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").create()
    ran = privrisk(policy, "--run-id", "r1", root=tmp_path)
    assert ran.code == 0, ran.err
    assert small_release.charged(tmp_path) == small_release.CHARGED
    found = rows_of(ran.data, ran.manifest["data"]["partition_types"])
    assert found == rows_of(plain.data, {})
    assert found.total() > 1000


def test_under_dp_too_many_directories_are_refused_before_anything_is_charged(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directories, "MOST", 3)
    policy = small_release.policy("dp", write_table(tmp_path), tmp_path, ("output.partition_by", ["city"]))
    Ledger(f"sqlite:///{tmp_path / 'ledger.db'}").create()
    ran = privrisk(policy, "--run-id", "r1")
    assert ran.code == 2, ran.err
    assert "the hierarchies allow for 6 directories, and at most 3 can be made: under dp" in ran.err
    assert small_release.charged(tmp_path) == []


def test_what_is_released_is_read_assessed_and_released_again(
    privrisk: Privrisk, spark: SparkSession, visits: Path, tmp_path: Path
) -> None:
    ran = partitioned(privrisk, visits, tmp_path, "city", "year")
    assert ran.code == 0, ran.err
    places = [f"--set=output.path={tmp_path / 'out'}", f"--set=output.vault={tmp_path / 'vault'}"]
    assessed = CliRunner().invoke(
        app, ["assess", str(visits), "--output", str(tmp_path / "assessed"), "--set=assess.release=published", *places]
    )
    assert assessed.exit_code == 0, assessed.stderr
    # Columns of directories are columns of a table, texts where nobody says otherwise.
    document = yaml.safe_load(visits.read_text())
    document["table"] = {"path": str(ran.data)}
    del document["columns"]["id"]
    again = tmp_path / "again.yaml"
    document["columns"]["age"]["hierarchy"] = {"mask": {"steps": 5}}
    document["columns"]["city"]["hierarchy"] = {"tree": {"?": ["Ulm", "Bonn", "Kiel", "south", "north"]}}
    document["columns"]["city"]["unknown"] = "suppress"
    document["decision"] = {"problem": "min-risk", "utility_at_least": 0}
    again.write_text(yaml.safe_dump(document, sort_keys=False))
    second = privrisk(str(again), "--run-id", "r2", "--set=output.partition_by=[year]", root=tmp_path / "second")
    assert second.code == 0, second.err
    assert second.manifest["rows"] == ROWS
    assert second.manifest["data"]["partition_types"] == {"year": "string"}
    assert {path.name for path in second.data.iterdir()} == {"year=2025", "year=2026", f"year={MISSING}"}


def test_a_notebook_reads_columns_of_directories_by_their_types(
    privrisk: Privrisk, spark: SparkSession, visits: Path, tmp_path: Path
) -> None:
    policy = pr.load(visits)
    by = policy.places.model_copy(update={"partition_by": ("year", "city")})
    rows = spark.read.parquet(str(tmp_path / "in"))
    with pr.release(rows, policy, run_id="r1", output=tmp_path / "p", vault=tmp_path / "v") as plain:
        expected = plain.data
        again = policy.model_copy(update={"output": by})
        with pr.release(rows, again, run_id="r1", output=tmp_path / "q", vault=tmp_path / "w") as done:
            assert done.data.schema == expected.schema
            check_same_rows(done.data, expected)


def test_a_release_as_published_is_partitioned_too(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELEASE_KEY", KEY)
    guarantee = {
        "kind": "as-published",
        "algorithm": 6,
        "accept_unproven": True,
        "epsilon": 60,
        "beta": 0.4,
        "theta0": 0.05,
        "kappa": 5,
        "phi_l": 4,
        "key": "env:RELEASE_KEY",
    }
    found = []
    for by in ([], ["city"]):
        root = tmp_path / f"by{len(by)}"
        root.mkdir()
        changes: list[tuple[str, Any]] = [
            ("decision", DROP),
            ("guarantee", guarantee),
            ("risk", {"sensitivity": {"form": "constant", "constant": 2}}),
            ("output.partition_by", by),
        ]
        ran = privrisk(small_release.policy("risk", write_table(root), root, *changes), "--run-id", "r1", root=root)
        assert ran.code == 0, ran.err
        found.append(rows_of(ran.data, ran.manifest["data"].get("partition_types", {})))
        assert {path.is_dir() for path in ran.data.iterdir()} == {bool(by)}
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "kind",
    [
        "s3",
        *(
            pytest.param(kind, marks=pytest.mark.thorough("tests/pipelines/release/test_object_store.py"))
            for kind in ("az", "gs")
        ),
    ],
)
def test_an_object_store_has_the_same_files(
    privrisk: Privrisk,
    on_disk: Callable[..., Ran],
    spark: SparkSession,
    request: pytest.FixtureRequest,
    visits: Path,
    tmp_path: Path,
    kind: Literal["s3", "az", "gs"],
) -> None:
    request.getfixturevalue({"s3": "endpoint", "az": "azure", "gs": "google"}[kind])
    store = ObjectStore(Location(kind, CONTAINER if kind == "az" else BUCKET, uuid4().hex), retry_seconds=5)
    by = ("ward.no/1", "year")
    local = on_disk(*by)
    arguments = (str(visits), "--run-id", "r1", f"--set=output.partition_by={json.dumps(by)}")
    output = f"{store.location}/out"
    ran = privrisk(*arguments, root=tmp_path / "s3", output=output)
    assert ran.code == 0, ran.err
    names = {entry.name for entry in store.entries("out/releases/r1/data")}
    assert {name.removeprefix("out/releases/r1/data/") for name in names} == set(files_of(local.root))
    for name, digest in files_of(local.root).items():
        assert hashlib.sha256(store.read(f"out/releases/r1/data/{name}").content).hexdigest() == digest
    again = privrisk(*arguments, root=tmp_path / "s3", output=output)
    assert again.code == 0, again.err
    assert "Already released" in again.out
    # Read there: by types of the manifest, and for an assessment.
    manifest = json.loads(store.read("out/manifest.json").content)
    data = store.location.below(f"out/{manifest['data']['path']}")
    places = pr.load(visits).places
    of_store = read_published(spark, places, data, key="k", partitions=Partitions.of_manifest(manifest))
    of_disk = read_published(
        spark, places, Location("file", "", str(local.data)), key="k", partitions=Partitions.of_manifest(manifest)
    )
    check_same_rows(of_store, of_disk)
    if kind != "s3":
        return
    asked = ["--set=assess.release=published", f"--set=output.path={output}"]
    assessed = CliRunner().invoke(app, ["assess", str(visits), "--output", str(tmp_path / "assessed"), *asked])
    assert assessed.exit_code == 0, assessed.stderr
