"""A release that is withdrawn is gone from output and vault, and its charge stays, wherever the command is stopped."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import small_release
import yaml
from ledgers import MECHANISM
from typer.testing import CliRunner

import privrisk_spark as pr
from privrisk_spark.cli.app import app
from privrisk_spark.errors import BudgetError, WithdrawnError
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.request import Request
from privrisk_spark.ledger.verdict import hold_against
from privrisk_spark.pipelines import withdrawal
from privrisk_spark.pipelines.release.published import refuse_withdrawn
from privrisk_spark.policy.reading import parse
from privrisk_spark.runs import local_output
from privrisk_spark.runs.progress import write_status
from privrisk_spark.runs.sealing import release_digest, sealed
from privrisk_spark.runs.vaults import DirectoryVault, vault_at
from privrisk_spark.runs.witnesses import Witness, record_witness
from privrisk_spark.runs.workplace import Workplace, output_at
from privrisk_spark.storage.documents import write_json

COST = {"epsilon": "1", "delta": "1E-9"}


class Kill(BaseException):
    """Stands for a process that ends."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two private releases, r1 and r2, the second of which left its files in the vault."""
    for run_id in ("r1", "r2"):
        release(tmp_path, run_id)
    return tmp_path


def release(root: Path, run_id: str) -> None:
    """Publish a release as a run does, step by step."""
    place = Workplace(output_at(str(root / "out")), vault_at(str(root / "vault")), run_id)
    ledger, run = Ledger(f"sqlite:///{root}/ledger.db"), {"lineage": "small", "run_id": run_id}
    with place.held():
        caps = {"cap_epsilon": "2", "cap_delta": "1e-5"}
        ledger.reserve(Request(**run, **caps, epsilon="1", delta="1e-9", mechanism=MECHANISM, table="t"))
        ledger.bind(**run, key="k", place=str(place.output))
        ledger.pin(**run, snapshot="s")
        (place.staging / "data").mkdir()
        (place.staging / "data" / "part-00000.parquet").write_text(f"rows of {run_id}")
        cost = {"kind": "dp", "parameters": {"accounting": {"basic": COST}}}
        told = {"run_id": run_id, "date": "2026-11-20", "lineage": "small", "guarantee": cost}
        manifest = sealed({**told, "data": {"files": []}}, place.staging)
        made = ledger.commit(**run, release=release_digest(manifest))
        witness = Witness("small", run_id, str(place.output), made.events, made.head, "1", "1E-9")
        record_witness(place.vault, witness)
        for name in ("decisions", "classes", "history/" + place.slug):
            (place.private / name).mkdir(parents=True, exist_ok=True)
            (place.private / name / "part").write_text(f"of {run_id}")
        write_json(place.private / "summary.json", {"run_id": run_id, "output.path": str(place.output)})
        place.record_request({"policy": "digest"})
        place.commit(manifest)
        write_status(place.vault.status, run_id, phase="published", code=0, message=f"release at {place.target}")


def policy(root: Path) -> Path:
    return Path(small_release.policy("dp", root / "table.csv", root, *places(root)))


def places(root: Path) -> tuple[tuple[str, Any], ...]:
    return ("output", {"path": str(root / "out"), "vault": str(root / "vault")}), ("ledger.cap.epsilon", 2)


def withdraw(root: Path, run_id: str) -> Any:
    return CliRunner().invoke(app, ["withdraw", run_id, str(policy(root)), "--reason", "an individual asked"])


def files_of(root: Path, run_id: str) -> list[str]:
    """Files of output and vault that tell of the rows of a run."""
    found = (path for path in root.rglob("*") if path.is_file() and path.name != "ledger.db")
    return sorted(path.relative_to(root).as_posix() for path in found if f"of {run_id}" in path.read_text())


def assert_withdrawn(root: Path, run_id: str) -> None:
    assert not (root / "out" / "releases" / run_id).exists()
    (remembered,) = files_of(root, run_id)
    assert remembered.startswith(f"vault/history/{run_id}~"), "what was published counts for later releases"
    stone = json.loads((root / "out" / "withdrawn" / f"{run_id}.json").read_text())
    assert (stone["run_id"], stone["lineage"], stone["guarantee"]["kind"]) == (run_id, "small", "dp")
    assert "asked" not in json.dumps(stone), "the reason is not published"
    balance = Ledger(f"sqlite:///{root}/ledger.db").balance("small")
    (run,) = (run for run in balance.runs if run.run_id == run_id)
    assert (run.state, run.reason, run.counted) == ("withdrawn", "an individual asked", True)
    assert balance.spent_epsilon == 2, "the budget stays spent"
    verdict = hold_against(f"sqlite:///{root}/ledger.db", [str(root / "out"), str(root / "vault")])
    assert (verdict.findings, verdict.broken) == ((), {})


def test_withdraw_takes_the_current_release_away_and_the_one_before_is_current(root: Path):
    done = withdraw(root, "r2")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith(f"Withdrew run id r2 from '{root}/out/releases/r2'.\n  epsilon 1 and delta 1E-9 stay")
    assert_withdrawn(root, "r2")
    assert json.loads((root / "out" / "manifest.json").read_text())["run_id"] == "r1"
    assert json.loads((root / "vault" / "status.json").read_text())["phase"] == "withdrawn"
    again = withdraw(root, "r2")
    assert again.exit_code == 0
    assert again.stdout.startswith("Withdrawn before: run id r2")
    in_python = pr.withdraw(policy(root), "r1", reason="an individual asked")
    assert (in_python.run_id, in_python.fresh, in_python.epsilon, in_python.lake) == ("r1", True, 1, None)
    assert not (root / "out" / "manifest.json").exists(), "no release is left"


def test_withdraw_of_an_earlier_release_leaves_the_vault_of_the_last_run(root: Path):
    assert withdraw(root, "r1").exit_code == 0
    assert json.loads((root / "out" / "manifest.json").read_text())["run_id"] == "r2"
    assert [name for name in files_of(root, "r2") if name.startswith("vault/decisions")]
    assert json.loads((root / "vault" / "status.json").read_text())["phase"] == "published"


def test_release_of_a_withdrawn_run_id_is_refused_and_its_number_is_not_given_again(root: Path):
    assert withdraw(root, "r2").exit_code == 0
    place = Workplace(output_at(str(root / "out")), vault_at(str(root / "vault")), "r2")
    with pytest.raises(WithdrawnError, match="run id r2 was withdrawn on") as refused:
        refuse_withdrawn(place)
    assert refused.value.remedy == "Use a new run id."
    ledger = Ledger(f"sqlite:///{root}/ledger.db")
    run = {"lineage": "small", "run_id": "r2"}
    caps = {"cap_epsilon": "2", "cap_delta": "1e-5"}
    asked = Request(**run, **caps, epsilon="1", delta="1e-9", mechanism=MECHANISM, table="t")
    actions: list[Callable[[], object]] = [
        lambda: ledger.reserve(asked),
        lambda: ledger.bind(**run, key="k", place=str(place.output)),
        lambda: ledger.commit(**run, release="d"),
        lambda: ledger.void(**run, reason="x", nothing_left_the_zone=True),
        lambda: ledger.confirm(asked, place=str(place.output), release="d"),
        lambda: ledger.note(**run, what="risk", place=str(place.output)),
    ]
    for action in actions:
        with pytest.raises(BudgetError, match="run id r2 was withdrawn"):
            action()
    new = Workplace(output_at(str(root / "out")), vault_at(str(root / "vault")), "r3")
    with new.held():
        manifest = new.commit(sealed({"run_id": "r3", "date": "2026-11-21", "data": {"files": []}}, new.staging))
    assert manifest["sequence"] == 3


STEPS: list[tuple[Any, str]] = [
    (Ledger, "withdraw"),
    (withdrawal, "record_witness"),
    (local_output.directories, "move"),
    (local_output.directories, "remove"),
    (local_output, "write_json"),
    (local_output.LocalOutput, "withdraw"),
    (DirectoryVault, "forget"),
    (withdrawal, "destroy_key"),
    (withdrawal, "write_status"),
]
"""What a withdrawal does: each may be the last thing it does."""


@pytest.mark.parametrize("run_id", ["r1", "r2"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("owner", "name"), STEPS, ids=lambda one: one if isinstance(one, str) else "")
def test_withdraw_that_is_killed_at_any_step_is_completed_when_it_is_repeated(
    root: Path, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: bool, run_id: str
):
    original = getattr(owner, name)
    with monkeypatch.context() as patch:

        def killed(*arguments: Any, **options: Any) -> None:
            if after:
                original(*arguments, **options)
            raise Kill

        patch.setattr(owner, name, killed)
        document = yaml.safe_load(policy(root).read_text())
        with suppress(Kill):
            withdrawal.withdraw(parse(document), run_id, reason="an individual asked", today=dt.date(2026, 12, 1))
    if (root / "out" / "withdrawn" / f"{run_id}.json").exists():
        # Whatever run comes next at the place finds the release gone, and the other one current.
        other = {"r1": "r2", "r2": "r1"}[run_id]
        copy = root.parent / f"{root.name}-copy"
        shutil.copytree(root / "out", copy / "out")
        with output_at(str(copy / "out")).held():
            assert output_at(str(copy / "out")).published(run_id) is None
        assert json.loads((copy / "out" / "manifest.json").read_text())["run_id"] == other
    repeated = withdraw(root, run_id)
    assert repeated.exit_code == 0, repeated.stderr
    assert_withdrawn(root, run_id)


def test_withdraw_of_no_release_is_refused_and_nothing_is_made(root: Path, tmp_path: Path):
    none = withdraw(root, "r3")
    assert none.exit_code == 2
    assert "has no release of run id r3" in none.stderr
    shutil.rmtree(root / "out")
    assert withdraw(root, "r2").exit_code == 2
    assert not (root / "out").exists()


def test_reconcile_of_a_withdrawal_that_only_one_side_knows_contradicts(root: Path):
    ledger = Ledger(f"sqlite:///{root}/ledger.db")
    ledger.withdraw(lineage="small", run_id="r2", reason="x", place=str(root / "out"))
    (finding,) = hold_against(f"sqlite:///{root}/ledger.db", [str(root / "out"), str(root / "vault")]).findings
    assert (finding.kind, finding.run_id) == ("withdrawn", "r2")
    assert "it is still there" in finding.what
    with output_at(str(root / "out")).held():
        output_at(str(root / "out")).withdraw("r1", dt.date(2026, 12, 1))
    found = hold_against(f"sqlite:///{root}/ledger.db", [str(root / "out"), str(root / "vault")]).findings
    assert [(one.kind, one.run_id) for one in found] == [("withdrawn", "r2"), ("withdrawn", "r1")]


def test_withdraw_at_another_place_than_the_ledger_knows_is_refused(root: Path):
    shutil.copytree(root / "out", root / "copy")
    file = policy(root)
    told = CliRunner().invoke(app, ["withdraw", "r2", str(file), "--reason", "x", f"--set=output.path={root}/copy"])
    assert told.exit_code == 1
    assert (root / "copy" / "releases" / "r2").exists()
    assert Ledger(f"sqlite:///{root}/ledger.db").balance("small").spent_epsilon == Decimal(2)


def test_withdraw_leaves_what_another_output_has_in_the_same_vault_under_the_same_run_id(root: Path):
    vault = vault_at(str(root / "vault"))
    other = Workplace(output_at(str(root / "other")), vault, "r2")
    with other.held():
        write_json(other.private / "summary.json", {"run_id": "r2", "output.path": str(other.output)})
        other.record_request({"policy": "digest"})
        write_status(vault.status, "r2", phase="published", code=0, message=f"release at {other.target}")
    assert withdraw(root, "r2").exit_code == 0
    assert other.left_at is not None
    assert other.recorded_request() == {"policy": "digest"}
    assert json.loads((root / "vault" / "status.json").read_text())["phase"] == "published"


def test_withdraw_of_a_copied_release_buries_only_the_copy(root: Path):
    output = output_at(str(root / "out"))
    shutil.copytree(root / "out" / "releases" / "r1", root / "out" / "releases" / "r1-copy")
    with output.held():
        stone = output.withdraw("r1-copy", dt.date(2026, 12, 1))
    assert stone is not None
    assert stone["run_id"] == "r1-copy"
    with output.held():
        assert output.published("r1") is not None
    assert not (root / "out" / "releases" / "r1-copy").exists()


def change_manifest(root: Path, name: str, /, **changes: Any) -> None:
    file = root / "out" / "releases" / name / "manifest.json"
    write_json(file, json.loads(file.read_text()) | changes)


def test_reconcile_after_a_changed_release_was_withdrawn_finds_nothing(root: Path):
    free = {"kind": "dp", "parameters": {"accounting": {"basic": {"epsilon": "0.1", "delta": "1E-9"}}}}
    change_manifest(root, "r2", guarantee=free)
    url, checked = f"sqlite:///{root}/ledger.db", [str(root / "out"), str(root / "vault")]
    assert [one.kind for one in hold_against(url, checked).findings] == ["another release"]
    # The ledger refuses a cost that it did not charge, so the output is told first.
    with output_at(str(root / "out")).held():
        output_at(str(root / "out")).withdraw("r2", dt.date(2026, 12, 1))
    done = withdraw(root, "r2")
    assert done.exit_code == 0, done.stderr
    assert hold_against(url, checked).findings == ()


@pytest.mark.parametrize(("given_back", "kinds"), [(False, []), (True, ["another release"])])
def test_withdraw_of_the_release_of_a_voided_run_removes_it(root: Path, given_back: bool, kinds: list[str]):
    url = f"sqlite:///{root}/ledger.db"
    ledger = Ledger(url)
    shutil.copytree(root / "out" / "releases" / "r2", root / "out" / "releases" / "r3")
    change_manifest(root, "r3", run_id="r3")
    amounts = {"epsilon": "0", "delta": "0", "cap_epsilon": "2", "cap_delta": "1e-5"}
    ledger.reserve(Request(lineage="small", run_id="r3", **amounts, mechanism=MECHANISM))
    ledger.void(lineage="small", run_id="r3", reason="x", nothing_left_the_zone=given_back)
    done = withdraw(root, "r3")
    assert done.exit_code == 0, done.stderr
    assert not (root / "out" / "releases" / "r3").exists()
    assert [one.kind for one in hold_against(url, [str(root / "out"), str(root / "vault")]).findings] == kinds


@pytest.mark.parametrize(
    ("kept", "key"), [("out/.staging-r2~withdrawn", "output.path"), ("vault/classes", "output.vault")]
)
def test_withdraw_that_cannot_remove_all_files_fails_until_they_are_gone(
    root: Path, monkeypatch: pytest.MonkeyPatch, kept: str, key: str
):
    remove = local_output.directories.remove
    with monkeypatch.context() as patch:
        patch.setattr(local_output.directories, "remove", lambda path: None if path == root / kept else remove(path))
        patch.setattr(local_output.directories, "sweep", lambda *_: None)
        for _ in range(2):
            failed = withdraw(root, "r2")
            assert failed.exit_code == 3
            assert f"{key}: files of the withdrawn release could not be removed" in " ".join(failed.stderr.split())
    assert withdraw(root, "r2").exit_code == 0
    assert_withdrawn(root, "r2")
