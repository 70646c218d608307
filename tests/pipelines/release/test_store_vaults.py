"""Releases whose vault is in an object store: what they are with a directory, and what a machine that dies leaves."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
import small_release
from naive_releases import tables, writer
from product import Privrisk, Ran
from pyspark.sql import SparkSession
from small_release import CHARGED, KEY, charged, digests
from typer.testing import CliRunner

import privrisk_spark as pr
from benchmarks.s3_server import BUCKET, SECRET
from privrisk_spark.cli.app import app
from privrisk_spark.engine.session import _local_directory
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.pipelines.release import encoded
from privrisk_spark.runs import keystore
from privrisk_spark.runs.keystore import VaultKey
from privrisk_spark.runs.vaults import StoreVault
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.objects import ObjectStore


@pytest.fixture
def store(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    assert endpoint
    _local_directory()  # of this process, which its first run would make on the machine
    at_machine(monkeypatch, tmp_path / "machine")
    return ObjectStore(Location("s3", BUCKET, uuid4().hex), retry_seconds=5)


def at_machine(patch: pytest.MonkeyPatch, temporary: Path) -> None:
    """From now on be another machine: with temporary files of its own."""
    temporary.mkdir()
    patch.setattr(tempfile, "tempdir", str(temporary))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return small_release.write_table(tmp_path)


def vault_of(store: ObjectStore) -> str:
    return f"{store.location}/vault"


def names(store: ObjectStore) -> list[str]:
    return [entry.name for entry in store.entries()]


def left(store: ObjectStore, run_id: str) -> dict[str, bytes]:
    """What the attempt left that published, by name."""
    found = [name for name in names(store) if name.startswith(f"vault/runs/{run_id}~")]
    kept = [name.split("/")[3] for name in found if name.endswith("/kept.json")] or [found[0].split("/")[3]]
    of = [name for name in found if name.split("/")[3] == kept[-1]]
    return {name.split("/", 4)[4]: store.read(name).content for name in of}


@pytest.mark.parametrize("kind", small_release.KINDS)
def test_the_release_is_that_with_a_directory_and_so_is_what_the_run_leaves(
    privrisk: Privrisk,
    undisturbed: Callable[..., Ran],
    store: ObjectStore,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setenv("RELEASE_KEY", small_release.KEY)
    key = [("guarantee.key", "env:RELEASE_KEY")] if kind == "dp" else []
    disk, there = undisturbed(kind).root, tmp_path / "there"
    file = small_release.policy(kind, table, there, *key)
    ran = privrisk(file, "--run-id", "r1", root=there, vault=vault_of(store))
    assert ran.code == 0, ran.err
    assert digests(there) == digests(disk)
    found = left(store, "r1")
    of_all = {"requests", "charges", "history", "metrics", "keys", "pins"}
    kept = {path.relative_to(disk / "vault").as_posix() for path in (disk / "vault").rglob("*") if path.is_file()}
    of_run = {name for name in kept if name.partition("/")[0] not in of_all} - {".privrisk.json", "status.json"}
    of_run |= {"kept.json"}
    of_run |= {"request.json"} if kind == "risk" else set()
    assert {name.rpartition("part-")[0] or name for name in found} == {
        name.rpartition("part-")[0] or name for name in of_run
    }
    assert json.loads(found["checks.json"]) == json.loads((disk / "vault" / "checks.json").read_bytes())
    first = {name.split("/")[1] for name in names(store)}
    shared = {path.name for path in (disk / "vault").iterdir() if path.name in of_all - {"requests"}}
    assert first == shared | {".privrisk.json", "runs", "status"}
    status = json.loads(store.read("vault/status/r1.json").content)
    assert (status["phase"], status["code"]) == ("published", 0)
    assert f"vault     {vault_of(store)}/runs/r1~" in ran.out
    assert not (there / "vault").exists()
    for path in (tmp_path / "machine").rglob("*"):
        assert path.is_dir(), "nothing stays on the machine"
    for name in names(store):
        assert SECRET.encode() not in store.read(name).content
    # Asked again nothing is done; asked for another release it is refused, and the status is that of the release.
    before = names(store)
    assert "Already released" in privrisk(file, "--run-id", "r1", root=there, vault=vault_of(store)).out
    assert names(store) == before
    change = ("decision.utility_at_least", 0.5) if kind == "risk" else ("guarantee.public_rows", 4500)
    other = small_release.policy(kind, table, there, *key, change)
    assert privrisk(other, "--run-id", "r1", root=there, vault=vault_of(store)).code == 1
    assert json.loads(store.read("vault/status/r1.json").content)["code"] == 0


POINTS: dict[str, tuple[Any, str, bool]] = {
    "before a key": (VaultKey, "obtain", False),
    "after the key, before the ledger knows of it": (Ledger, "bind", False),
    "before anything is read": (encoded, "collect_materialized", False),
    "before the ledger knows the release": (Ledger, "commit", False),
    "before anything is kept or published": (Workplace, "commit", False),
    "after all is kept, before publication": (StoreVault, "keep", True),
    "before the key is destroyed": (VaultKey, "destroy", False),
}
"""In the order of a run."""


def test_another_machine_makes_the_release_that_was_begun(
    privrisk: Privrisk,
    undisturbed: Callable[..., Ran],
    store: ObjectStore,
    table: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each machine is lost with all that only its disk had, one step later than the last; of the ledger nothing is.

    The first key that is drawn is `KEY`, and any other would be another.
    """

    class Lost(BaseException):
        pass

    root = tmp_path / "r"
    file = small_release.policy("dp", table, root)
    drawn = iter([bytes.fromhex(KEY)])
    monkeypatch.setattr(keystore, "secrets", SimpleNamespace(token_bytes=lambda size: next(drawn, os.urandom(size))))
    for number, (point, (owner, name, afterwards)) in enumerate(POINTS.items()):
        original: Callable[..., Any] = getattr(owner, name)
        at_machine(monkeypatch, tmp_path / f"machine-{number}")
        with monkeypatch.context() as patch:

            def stopping(
                *arguments: Any,
                original: Callable[..., Any] = original,
                afterwards: bool = afterwards,
                patch: pytest.MonkeyPatch = patch,
                **options: Any,
            ) -> None:
                if afterwards:
                    original(*arguments, **options)
                patch.setattr(StoreVault, "_put", lambda *_: set())
                raise Lost

            patch.setattr(owner, name, stopping)
            with pytest.raises(Lost):
                privrisk(file, "--run-id", "r1", root=root, vault=vault_of(store))
        keys = [one for one in names(store) if one.startswith("vault/keys/") and one.endswith(".key")]
        assert [store.read(one).content.hex() for one in keys] == ([KEY] if number else []), point
        published = (root / "out" / "manifest.json").exists()
        assert published == (point == "before the key is destroyed"), point
    at_machine(monkeypatch, tmp_path / "last")
    ran = privrisk(file, "--run-id", "r1", root=root, vault=vault_of(store))
    assert ran.code == 0, ran.err
    assert charged(root) == CHARGED, "spent once"
    assert not [one for one in names(store) if one.startswith("vault/keys/")]
    # One that was published before it was lost is not made again, and its vault has what was kept until then.
    assert "report.html" in left(store, "r1")
    assert digests(root) == digests(undisturbed("dp").root)


def test_a_failed_run_says_so_and_leaves_what_explains_it(
    privrisk: Privrisk, store: ObjectStore, table: Path, tmp_path: Path
) -> None:
    root = tmp_path / "r"
    asked = small_release.policy("risk", table, root, ("checks.max_risk", 1e-9))
    ran = privrisk(asked, "--run-id", "r1", root=root, vault=vault_of(store))
    assert ran.code == 1, ran.err
    said = json.loads(store.read("vault/status/r1.json").content)
    assert (said["phase"], said["code"], said["run_id"]) == ("failed", 1, "r1")
    checks = json.loads(left(store, "r1")["checks.json"])
    assert any(not check["passed"] for check in checks)
    assert any(name.startswith("vault/metrics/r1~") for name in names(store))


@pytest.mark.parametrize(
    "shared",
    [
        pytest.param(False, id="one-disk", marks=pytest.mark.thorough("the same steps with less shared")),
        pytest.param(True, id="no-disk"),
    ],
)
def test_releases_compose_with_what_a_vault_in_a_store_remembers(
    privrisk: Privrisk, store: ObjectStore, tmp_path: Path, shared: bool
) -> None:
    write = writer(tmp_path)
    on_disk, there = tmp_path / "disk", tmp_path / "there"

    def shown(ran: Ran) -> list[str]:
        assert ran.code == 0, ran.err
        return [entry["sha256"] for entry in ran.manifest["data"]["files"]]

    scratch = [f"--set=run.scratch={store.location}/scratch"] if shared else []
    for day, rows in enumerate(tables(), 1):
        wanted = privrisk(str(write(rows, day, history=[str(on_disk / "vault")])), root=on_disk)
        asked = str(write(rows, day, history=[vault_of(store).replace("s3", "s3a")]))
        ran = privrisk(asked, *scratch, root=there, vault=vault_of(store))
        assert shown(ran) == shown(wanted), ran.err
        ids = [[one["run_id"].split("-")[0] for one in run.manifest["history"]] for run in (ran, wanted)]
        assert ids[0] == ids[1]
        assert len(ids[0]) == day - 1
        found = json.loads(left(store, ran.manifest["run_id"])["summary.json"])
        sections = [one.get("history", {}) for one in (found, wanted.summary)]
        assert [{**one, "releases": []} for one in sections[:1]] == [{**one, "releases": []} for one in sections[1:]]
        assert day == 1 or sections[0]["records"] > 0
    lineage = str(write(tables()[2], 4, history={"lineage": "composed"}))
    fourth = privrisk(lineage, *scratch, root=there, vault=vault_of(store))
    assert fourth.code == 0, fourth.err
    assert len(fourth.manifest["history"]) == 3
    assert not [name for name in names(store) if name.startswith(("scratch/", "vault/scratch/"))]
    if shared:
        # What they disclose together is found without a disk, too.
        asked, documents = write(tables()[2], 6, history=[vault_of(store)]), []
        for name, more in (("disk", []), ("no-disk", scratch)):
            composed = [
                "assess",
                str(asked),
                "--history",
                f"--output={tmp_path / f'composed-{name}'}",
                "--run-id=c",
                *more,
            ]
            composed.append(f"--set=output.vault={vault_of(store)}")
            ended = CliRunner().invoke(app, composed)
            assert ended.exit_code == 0, ended.output
            documents.append(json.loads((tmp_path / f"composed-{name}" / "composition.json").read_text()))
        assert documents[0] == documents[1]
        assert documents[0]["together"]["records"] > 0
        assert not [name for name in names(store) if name.startswith("scratch/")]
    # A manifest names one release, which the vault remembers.
    manifest = str(there / "out" / "releases" / fourth.manifest["history"][0]["run_id"] / "manifest.json")
    named = privrisk(str(write(tables()[1], 5, history=[manifest])), *scratch, root=there, vault=vault_of(store))
    assert named.code == 0, named.err
    assert [one["run_id"] for one in named.manifest["history"]] == [fourth.manifest["history"][0]["run_id"]]


def test_what_a_vault_in_a_store_remembers_must_be_whole(
    privrisk: Privrisk, store: ObjectStore, tmp_path: Path
) -> None:
    write, root = writer(tmp_path), tmp_path / "r"
    ran = privrisk(str(write(tables()[0], 1, history=[])), root=root, vault=vault_of(store))
    assert ran.code == 0, ran.err
    (name,) = (name for name in names(store) if name.startswith("vault/history/") and "/release-" in name)
    store.write(name, b"{")
    broken = privrisk(str(write(tables()[1], 2, history=[vault_of(store)])), root=root, vault=vault_of(store))
    assert broken.code == 2
    assert "is damaged: restore it from a copy" in " ".join(broken.err.split())
    other = [f"{store.location}/elsewhere"]
    nothing = privrisk(str(write(tables()[1], 2, history=other)), root=root, vault=vault_of(store))
    assert nothing.code == 2
    assert "is no vault that remembers a release" in " ".join(nothing.err.split())


def test_a_ledger_is_held_against_a_vault_in_a_store(
    privrisk: Privrisk, store: ObjectStore, table: Path, tmp_path: Path
) -> None:
    root = tmp_path / "r"
    file = small_release.policy("dp", table, root)
    assert privrisk(file, "--run-id", "r1", root=root, vault=vault_of(store)).code == 0

    def reconcile() -> tuple[int, str]:
        ledger = f"sqlite:///{root}/ledger.db"
        ended = CliRunner().invoke(app, ["ledger", "reconcile", vault_of(store), "--ledger", ledger])
        return ended.exit_code, " ".join(ended.output.split())

    code, said = reconcile()
    assert code == 0, said
    (root / "ledger.db").unlink()
    code, said = reconcile()
    assert (code, "r1" in said) == (1, True), said
    # Nor does a run begin anew with such a vault, though its output knows nothing.
    again = privrisk(file, "--run-id", "r2", root=root, vault=vault_of(store), output=str(tmp_path / "fresh"))
    assert again.code == 1, again.err


def test_voiding_destroys_the_key_in_the_store(
    privrisk: Privrisk, store: ObjectStore, table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "r"
    file = small_release.policy(
        "dp", table, root, ("output.path", str(root / "out")), ("output.vault", vault_of(store))
    )

    def lost(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "bind", lost)
        assert privrisk(file, "--run-id", "r1", root=root, vault=vault_of(store)).code == 3
    assert [name for name in names(store) if name.startswith("vault/keys/")]
    ended = CliRunner().invoke(app, ["ledger", "void", "--run-id", "r1", "--reason", "wrong table", file])
    assert ended.exit_code == 0, ended.output
    assert not [name for name in names(store) if name.startswith("vault/keys/")]


def test_a_result_opens_what_its_run_left_in_the_store(spark: SparkSession, store: ObjectStore) -> None:
    rows = [(f"r{i}", 30 + i % 3, "Ulm" if i % 2 else "Bonn") for i in range(12)]
    frame = spark.createDataFrame(rows, "id string, age int, city string")
    policy = pr.Policy(
        table={"record_id": "id"},
        columns={
            "id": pr.identifier(),
            "age": pr.quasi_identifier(pr.intervals(5, 10, domain=(0, 99))),
            "city": pr.quasi_identifier(pr.flat("Bonn", "Ulm")),
        },
        decision={"utility_at_least": 1},
    )
    places = {"output": f"{store.location}/out", "vault": vault_of(store)}
    with pr.release(frame, policy, **places) as done, pr.release(frame, policy) as alone:
        assert str(done.vault).startswith(f"{vault_of(store)}/runs/{done.run_id}~")
        assert done.decisions is not None
        assert alone.decisions is not None
        assert sorted(done.decisions.collect()) == sorted(alone.decisions.collect())
        assert done.vault_report is not None
        assert "<html" in done.vault_report.html
        assert done.data.count() == 12
    again = pr.release(frame, policy, run_id=done.run_id, **places)
    assert not again.fresh
    assert again.vault_report is not None
    assert os.environ["AWS_ACCESS_KEY_ID"] not in repr(again)


def test_policy_and_hierarchies_may_be_in_a_store_too(
    privrisk: Privrisk, store: ObjectStore, table: Path, tmp_path: Path
) -> None:
    """A machine with nothing of its own but the table; the place of a hierarchy's file changes no byte."""
    cities = b"Ulm;south;*\nBonn;north;*\nKiel;north;*\n"
    store.write("conf/city.csv", cities)
    (tmp_path / "city.csv").write_bytes(cities)
    shown = {}
    for where, root in ((f"{store.location}/conf", tmp_path / "there"), (str(tmp_path), tmp_path / "disk")):
        changes = ("columns.city.hierarchy", {"file": f"{where}/city.csv"})
        file = small_release.policy("risk", table, root, changes)
        asked = file
        if where != str(tmp_path):
            store.write("conf/policy.yaml", Path(file).read_bytes())
            Path(file).unlink()
            asked = f"s3a://{BUCKET}/{store.location.path}/conf/policy.yaml"
        ran = privrisk(asked, "--run-id", "r1", root=root, vault=vault_of(store) if asked != file else None)
        assert ran.code == 0, ran.err
        shown[where] = digests(root)
    assert len({str(one) for one in shown.values()}) == 1
    missing = privrisk(f"{store.location}/conf/none.yaml", root=tmp_path / "x")
    assert (missing.code, "there is no policy file 's3://" in missing.err) == (2, True), missing.err
    gone = ("columns.city.hierarchy", {"file": f"{store.location}/conf/none.csv"})
    ran = privrisk(small_release.policy("risk", table, tmp_path / "y", gone), root=tmp_path / "y")
    assert ran.code == 2
    assert "the file cannot be read (No such file or directory)" in " ".join(ran.err.split())
