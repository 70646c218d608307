"""Findings in an object store: those of a directory, their frames too, and nothing left on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
import yaml
from product import Privrisk
from typer.testing import CliRunner

import privrisk_spark as pr
from benchmarks.s3_server import BUCKET, SECRET
from privrisk_spark.cli.app import app
from privrisk_spark.engine.session import own_directory
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.usefixtures("no_charts")

ROWS = [(f"p{i}", 20 + i % 30, "abc"[i % 3]) for i in range(60)]
COLUMNS = {
    "id": pr.identifier(),
    "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
    "diagnosis": pr.sensitive(),
}


@pytest.fixture
def store(endpoint: str) -> ObjectStore:
    return ObjectStore(Location("s3", BUCKET, uuid4().hex))


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What a run leaves among the machine's temporary files: an empty directory of the place, for the owner."""
    made = tmp_path / "temporary"
    made.mkdir()
    own_directory()  # of the process, and of no run
    monkeypatch.setattr("tempfile.tempdir", str(made))
    yield made
    assert not [file for file in made.rglob("*") if file.is_file()]


def document(store: ObjectStore, name: str) -> Any:
    return json.loads(store.read(name).content)


def test_an_assessment_is_that_of_a_directory(spark: SparkSession, store: ObjectStore, tmp_path: Path) -> None:
    table = spark.createDataFrame(ROWS, "id string, age int, diagnosis string")
    policy = pr.Policy(columns=COLUMNS, table={"record_id": "id"}, assess={"thresholds": {"k": 2}})
    beside = pr.assess(table, policy, output=tmp_path / "place", run_id="r1")
    found = pr.assess(table, policy, output=str(store.location), run_id="r1")
    assert found.place == str(store.location)
    assert found.records is not None
    assert beside.records is not None
    assert sorted(found.records.collect()) == sorted(beside.records.collect())
    assert store.read("measures.json").content == (tmp_path / "place" / "measures.json").read_bytes()
    assert "<html" in found.report.html
    there = {file.relative_to(tmp_path / "place").parts[0] for file in (tmp_path / "place").rglob("*")}
    names = {entry.name for entry in store.entries()}
    assert {name.split("/")[0] for name in names} == {*there - {"status.json"}, "status"}
    assert document(store, "status/r1.json")["message"].startswith(f"assessment in {store.location}")
    without = pr.Policy(columns=COLUMNS, table={"record_id": "id"}, assess={"records": False})
    again = pr.assess(table, without, output=str(store.location), run_id="r2")
    assert again.records is None
    assert not list(store.entries("records")), "they were of the assessment before"
    with pytest.raises(pr.errors.ConfigError, match="has other content than the audit of an earlier run"):
        pr.audit(private_policy(tmp_path), output=str(store.location))


def private_policy(root: Path) -> pr.Policy:
    return pr.Policy(
        columns={"id": pr.identifier(), "age": COLUMNS["age"]},
        guarantee={"kind": "dp", "epsilon": {"admit": 1, "keep": 1}, "delta": 1e-6, "public_rows": 60,
                   "objective": {"phi_min": 0.1}},
        ledger={"url": f"sqlite:///{root}/ledger.db", "lineage": "x", "cap": {"epsilon": 4, "delta": 1e-5}},
        output={"path": str(root / "out"), "vault": str(root / "vault")},
    )  # fmt: skip


@pytest.mark.thorough("test_an_assessment_is_that_of_a_directory")
def test_the_pairs_of_attacks_and_the_decisions_of_sharing_are_read_from_it(
    spark: SparkSession, store: ObjectStore, tmp_path: Path
) -> None:
    masked = str(tmp_path / "masked")
    rows = [("a", "[30,40)"), ("b", "[30,40)"), ("c", "61"), ("d", "*")]
    spark.createDataFrame(rows, "id string, age string").coalesce(1).write.parquet(masked)
    own = spark.createDataFrame([("a", 34), ("b", 36), ("c", 61), ("d", 67)], "id string, age int")
    policy = pr.Policy(
        columns={"id": pr.identifier(), "age": COLUMNS["age"]},
        table={"record_id": "id"},
        attack={"protected": {"path": masked, "record_id": "id"}, "methods": ["distance"]},
    )
    attacks = f"{store.location}/attacks"
    with pr.attack(own, policy, output=attacks, run_id="r1") as attacked:
        assert document(store, "attacks/attack.json") == json.loads(json.dumps(attacked.to_dict()))
        assert attacked.pairs
        for name, pairs in attacked.pairs.items():
            assert pairs.count() == 4, name
    people = spark.createDataFrame([("ann", 34), ("bob", 36), ("cid", 33), ("dee", 61)], "who string, age int")
    friends = [("ann", "bob"), ("bob", "cid"), ("ann", "cid"), ("cid", "dee")]
    sharing = pr.Policy(
        table={"record_id": "who"},
        columns={"who": pr.identifier(), "age": COLUMNS["age"]},
        sharing={"edges": {}, "model": {"lambda": 3}},
    )
    edges = spark.createDataFrame(friends, "u string, v string")
    with pr.share(edges, people, sharing, output=f"{store.location}/shared", run_id="r1") as shared:
        assert document(store, "shared/sharing.json") == json.loads(json.dumps(shared.to_dict()))
        assert {row.u for row in shared.decisions.collect()} == {"ann", "bob", "cid", "dee"}


def test_a_command_says_where_they_are_and_lists_unknown_values_there(
    privrisk: Privrisk, store: ObjectStore, tmp_path: Path
) -> None:
    (tmp_path / "table.csv").write_text("age\n" + "".join(f"{20 + i}\n" for i in range(30)))
    policy = {
        "version": 1,
        "run": {"name": "small"},
        "table": {"path": str(tmp_path / "table.csv"), "format": "csv", "options": {"header": True}},
        "columns": {
            "age": {"role": "quasi-identifier", "hierarchy": {"intervals": {"widths": [10], "domain": [0, 99]}}}
        },
        "decision": {"utility_at_least": 1},
        "output": {"path": str(tmp_path / "out"), "vault": str(tmp_path / "vault")},
    }
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy))
    command = ["curves", str(tmp_path / "policy.yaml"), f"--output={store.location}/curves", "--run-id=r1"]
    ended = CliRunner().invoke(app, command)
    assert ended.exit_code == 0, ended.stderr
    for name in ("curves.html", "curves.csv", "curves.json"):
        assert f"  {store.location}/curves/{name}" in ended.stdout
        assert SECRET.encode() not in store.read(f"curves/{name}").content
    assert document(store, "curves/status/r1.json")["message"] == f"curves in {store.location}/curves"
    (tmp_path / "table.csv").write_text("age\n20\n999\n")
    ended = CliRunner().invoke(app, command)
    assert ended.exit_code == 2
    assert f"they are listed in {store.location}/curves/unknown_values" in ended.stderr
    assert list(store.entries("curves/unknown_values"))
    assert document(store, "curves/status/r1.json")["code"] == 2
    inside = [*command[:2], f"--output={store.location}/curves", f"--set=table.path={store.location}"]
    refused = CliRunner().invoke(app, [*inside, "--set=table.format=parquet", "--set=table.options={}"])
    assert refused.exit_code == 2
    assert "--output" in refused.stderr
    assert "a run never writes onto its input" in refused.stderr
