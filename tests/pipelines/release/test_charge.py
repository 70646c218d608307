"""One charge, one draw, from the outside (docs/charge.md): what a release does in which order, and what it refuses."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import small_release
import yaml
from interleavings import Attempt, Checker, Going, World, release
from kills import started
from product import Privrisk, Ran
from pyspark.sql import SparkSession
from small_release import write_table
from typer.testing import CliRunner

import privrisk_spark as pr
from privrisk_spark.cli.app import app
from privrisk_spark.errors import BudgetError
from privrisk_spark.hierarchies.builders import build
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.pipelines.release import encoded
from privrisk_spark.policy.reading import load, parse
from privrisk_spark.runs.keystore import VaultKey
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.stages.private import sampling


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "city.csv").write_text("Ulm;south;*\nBonn;north;*\nKiel;north;*\n")
    in_file = ("columns.city.hierarchy", {"file": str(tmp_path / "city.csv")})
    return Path(small_release.policy("dp", write_table(tmp_path), tmp_path, in_file))


@contextmanager
def noted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The effects of a release, in the order in which they begin."""
    found: list[str] = []
    places: list[tuple[Any, str, tuple[str, ...]]] = [
        (Workplace, "published", ("look",)),
        (Ledger, "reserve", ("reserve",)),
        (VaultKey, "obtain", ("obtain",)),
        (Ledger, "bind", ("bind",)),
        (encoded, "collect_materialized", ("read",)),
        (Ledger, "pin", ("pin",)),
        (sampling, "drawing", ("draw",)),
        (Ledger, "commit", ("commit",)),
        (Workplace, "commit", ("rename", "manifest")),
        (VaultKey, "destroy", ("destroy",)),
        (Ledger, "confirm", ("confirm",)),
    ]
    with monkeypatch.context() as patch:
        for owner, name, effects in places:
            original = getattr(owner, name)

            def noting(*arguments: Any, _original: Any = original, _effects: Any = effects, **options: Any) -> Any:
                found.extend(_effects)
                return _original(*arguments, **options)

            patch.setattr(owner, name, noting)
        yield found


def effects_of_the_model() -> tuple[list[str], list[str]]:
    """What an attempt does that nothing disturbs in `interleavings`, and what the one after it does."""
    checker = Checker([Attempt(), Attempt()], [release] * 2)
    world, ways = World((Going(), Going())), []
    for who in range(2):
        names = []
        while world.going[who].ended is None:
            name, world = checker.step(world, who)
            names.append(name.split()[1])
        ways.append(names)
    return ways[0], ways[1]


def test_a_release_takes_the_steps_that_were_checked_and_is_found_again_only_as_it_is(
    privrisk: Privrisk, policy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = (str(policy), "--run-id", "r1")
    first, second = effects_of_the_model()
    with noted(monkeypatch) as found:
        ran = privrisk(*run)
    assert ran.code == 0, ran.err
    assert found == first
    with noted(monkeypatch) as found:
        again = privrisk(*run)
    assert again.code == 0, again.err
    assert "Already released" in again.out
    assert found == second
    (known,) = Ledger(f"sqlite:///{tmp_path}/ledger.db").balance("small").runs
    assert known.place == str(tmp_path / "out")
    assert ran.manifest["lineage"] == "small", "whose budget it spent, for a ledger that is lost"

    # Another request under the same run id is told what differs.
    other = privrisk(*run, "--set=guarantee.epsilon.keep=0.5")
    assert (other.code, other.status["code"]) == (1, 0), "the release that is published stays"
    assert "What differs: epsilon, guarantee.epsilon, mechanism." in other.err
    moved = privrisk(*run, f"--set=table.path={tmp_path}/other.csv")
    assert moved.code == 1
    assert "What differs: table." in moved.err
    hierarchy = tmp_path / "city.csv"
    usual = hierarchy.read_text()
    hierarchy.write_text(usual.replace("Kiel;north", "Kiel;south"))
    recoded = privrisk(*run)
    assert recoded.code == 1
    assert "What differs: contents of columns.city.hierarchy.file, mechanism.digest." in recoded.err
    hierarchy.write_text(usual)

    # What was altered by hand is not believed; a manifest that was made to fit neither.
    (part,) = ran.data.iterdir()
    content = part.read_bytes()
    part.write_bytes(content[:-1])
    cut = privrisk(*run)
    assert cut.code == 1
    assert "was changed after publication: 'data/part-00000.parquet' is not the file" in cut.err
    part.write_bytes(content)
    manifest = ran.data.parent / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace(f'"rows": {ran.manifest["rows"]}', '"rows": 1'))
    assert manifest.read_text() != text
    told = privrisk(*run)
    assert told.code == 1
    assert "is not the one the ledger knows" in told.err
    manifest.write_text(text)

    # Another output finds nothing there, and may not draw; void looks where the ledger says.
    elsewhere = privrisk(*run, root=tmp_path / "elsewhere")
    assert elsewhere.code == 1
    assert "What differs: output." in elsewhere.err
    void = ["ledger", "void", str(policy), "--run-id", "r1", "--reason", "x", "--nothing-left-the-zone"]
    refused = CliRunner().invoke(app, [*void, f"--set=output.path={tmp_path}/elsewhere/out"])
    assert refused.exit_code == 1
    # A copy of the release at another place is not the release either.
    shutil.copytree(tmp_path / "out", tmp_path / "copy" / "out")
    assert privrisk(*run, root=tmp_path / "copy").code == 1
    assert privrisk(*run).code == 0
    balance = Ledger(f"sqlite:///{tmp_path}/ledger.db").balance("small")
    assert (len(balance.runs), balance.spent_epsilon) == (1, 2)


def test_two_schedulers_that_start_one_run_publish_one_release(
    spark: SparkSession, privrisk: Privrisk, policy: Path, tmp_path: Path
) -> None:
    """Two drivers of one command in two directories: by relative paths, outputs and vaults are others."""
    drivers = {}
    for name in "ab":
        (tmp_path / name).mkdir()
        drivers[name] = started(spark, "release", str(policy), "--run-id", "r1", place=tmp_path / name)
    codes = {name: driver.wait() for name, driver in drivers.items()}
    said = {name: (tmp_path / name / "said").read_text() for name in drivers}
    assert sorted(codes.values()) == [0, 1], said
    (refused,) = (name for name, code in codes.items() if code == 1)
    (released,) = (name for name, code in codes.items() if code == 0)
    assert "begun for output.path" in said[refused]
    assert not list((tmp_path / refused / "out").rglob("*.parquet"))
    (run,) = Ledger(f"sqlite:///{tmp_path}/ledger.db").balance("small").runs
    assert (run.state, run.place) == ("committed", str(tmp_path / released / "out"))


def test_release_of_files_of_another_lineage_is_refused_before_it_is_charged(
    spark: SparkSession, privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files of a path, of a table in a catalog, and of a frame are one table, whatever it is called."""
    monkeypatch.setenv("SMALL_KEY", small_release.KEY)
    rows = spark.read.csv(str(write_table(tmp_path)), sep=";", header=True)
    rows.write.parquet(str(tmp_path / "files"))
    options = ("table.options", {}), ("table.format", "parquet"), ("guarantee.key", "env:SMALL_KEY")
    path = small_release.document("dp", tmp_path / "files", tmp_path, *options, ("ledger.cap.epsilon", 8))
    policy = tmp_path / "policy.yaml"
    policy.write_text(yaml.safe_dump(path, sort_keys=False))
    ran = privrisk(str(policy), "--run-id", "r1")
    assert ran.code == 0, ran.err
    second = ("--set=ledger.lineage=second", "--run-id", "r2")
    (part,) = (tmp_path / "files").glob("*.parquet")
    spark.sql(f"CREATE TABLE twice USING parquet LOCATION '{tmp_path}/files'")
    try:
        in_catalog = path | {"table": {"catalog": "twice"}}
        policy.write_text(yaml.safe_dump(in_catalog, sort_keys=False))
        places = (f"--set=output.path={tmp_path}/out", f"--set=output.vault={tmp_path}/vault")
        reserved = CliRunner().invoke(app, ["ledger", "reserve", str(policy), *second, *places])
        assert reserved.exit_code == 0, "without Spark nobody knows the files of a table in a catalog"
        for more in (second, (second[0], "--run-id", "r3"), (second[0], "--run-id", "r3", "--dry-run")):
            refused = privrisk(str(policy), *more)
            assert refused.code == 1, refused.out
            assert "or a file of it, is that of the lineage 'small'" in " ".join(refused.err.split())
    finally:
        spark.sql("DROP TABLE twice")
    frame = spark.read.parquet(str(part)).where("age > 0")
    with pytest.raises(BudgetError, match="or a file of it, is that of the lineage 'small'"):
        pr.release(frame, parse(in_catalog | {"ledger": path["ledger"] | {"lineage": "third"}}), run_id="r4")
    ledger = Ledger(f"sqlite:///{tmp_path}/ledger.db")
    assert {name: [run.run_id for run in ledger.balance(name).runs] for name in ("small", "second", "third")} == {
        "small": ["r1"], "second": ["r2"], "third": [],
    }  # fmt: skip


def test_release_that_reuses_cells_takes_only_those_the_ledger_knows(
    privrisk: Privrisk, policy: Path, tmp_path: Path
) -> None:
    cap = "--set=ledger.cap.epsilon=8"
    first = privrisk(str(policy), "--run-id", "r1", cap)
    assert first.code == 0, first.err
    admitted = first.data.parent / "admitted.parquet"
    assert_proved(first, policy, admitted)

    def reusing(run_id: str, directory: Path) -> Ran:
        cells = ("--set=guarantee.schemes=null", "--set=guarantee.epsilon.admit=0")
        manifest = f"--set=guarantee.reuse={directory}/manifest.json"
        return privrisk(str(policy), "--run-id", run_id, cap, *cells, manifest)

    # Cells that were admitted by no noise, under a manifest that was made to fit.
    forged = tmp_path / "forged"
    shutil.copytree(first.data.parent, forged)
    cells = pq.read_table(forged / "admitted.parquet")
    pq.write_table(cells.slice(0, 1), forged / "admitted.parquet")
    content = (forged / "admitted.parquet").read_bytes()
    manifest = json.loads((forged / "manifest.json").read_text())
    digest = hashlib.sha256(content).hexdigest()
    entry = {"bytes": len(content), "sha256": digest}
    manifest["admitted"] |= entry
    (document,) = (one for one in manifest["documents"] if one["name"] == "admitted.parquet")
    document.update(entry)
    (forged / "manifest.json").write_text(json.dumps(manifest))
    refused = reusing("r2", forged)
    assert refused.code == 1, refused.out
    told = " ".join(refused.err.split())
    assert (
        "guarantee.reuse: the manifest is not that of the release the ledger has as committed for run id 'r1'" in told
    )

    # A copy is as good as the release.
    shutil.copytree(first.data.parent, tmp_path / "copy")
    again = reusing("r3", tmp_path / "copy")
    assert again.code == 0, again.err
    assert again.manifest["run_id"] == "r3"
    assert_proved(again, policy, admitted)
    runs = Ledger(f"sqlite:///{tmp_path}/ledger.db").balance("small").runs
    assert [run.run_id for run in runs] == ["r1", "r3"]


def assert_proved(ran: Ran, policy: Path, admitted: Path) -> None:
    """Check what a private release states as proved on its files: only admitted cells, each of enough rows."""
    guarantee = ran.manifest["guarantee"]
    assert guarantee["status"] == "proved"
    asked = load([policy], date=dt.date(2026, 11, 20))
    labels = [
        build(spec.hierarchy, name, values=None, null_leaf=False).labels
        for name, spec in asked.quasi_identifiers.items()
    ]
    nodes = pq.read_table(admitted).select(["n0", "n1"]).to_pydict()
    cells = {(labels[0][age], labels[1][city]) for age, city in zip(nodes["n0"], nodes["n1"], strict=True)}
    rows = pq.read_table(ran.data).to_pydict()
    released = Counter(zip(rows["age"], rows["city"], strict=True))
    assert released, "an empty release would prove nothing"
    assert released.keys() <= cells | {("*", "*")}, "what is suppressed as a whole needs no cell"
    assert len(released) > 1
    assert min(released.values()) >= guarantee["parameters"]["k"]
