"""What a release leaves in ledger and vault of its lineage, and a ledger that has forgotten a release."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import small_release
from product import Privrisk
from small_release import write_table

from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.pipelines.release import by_risk
from privrisk_spark.runs.witnesses import look


def test_a_ledger_that_is_lost_or_rolled_back_after_a_release_ends_the_next_one(
    privrisk: Privrisk, tmp_path: Path
) -> None:
    file, backup = tmp_path / "ledger.db", tmp_path / "backup.db"
    changes = [
        *[(f"output.{name}", str(tmp_path / place)) for name, place in (("path", "out"), ("vault", "vault"))],
        ("ledger.cap.epsilon", 20),
    ]
    policy = small_release.policy("dp", write_table(tmp_path), tmp_path, *changes)
    Ledger(f"sqlite:///{file}").create()
    shutil.copy(file, backup)
    ran = privrisk(policy, "--run-id", "r1")
    assert ran.code == 0, ran.err

    (witness,) = look(tmp_path / "vault").witnesses
    (account,) = Ledger(f"sqlite:///{file}").histories()[0].values()
    assert (witness.run_id, witness.events, witness.head) == ("r1", 4, account.head)
    public = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not [content for content in public if witness.head.encode() in content]

    whole = file.read_bytes()
    for how in ("rolled back", "lost"):
        file.unlink()
        if how == "rolled back":
            shutil.copy(backup, file)
        for more in ([], ["--dry-run"]):
            refused = privrisk(policy, "--run-id", "r2", *more)
            assert refused.code == 1, how
            assert "knows event 4 of it, from run id r1" in " ".join(refused.err.split())
        assert not list((tmp_path / "vault" / "keys").glob("r2*"))
    shutil.rmtree(tmp_path / "vault" / "charges")
    refused = privrisk(policy, "--run-id", "r2")
    assert refused.code == 1
    assert "the private release of run id r1, whose charge the ledger does not know" in " ".join(refused.err.split())
    # Ledger and vault lost together: the manifest tells whose budget it spent, and how much.
    assert not file.exists()
    (lost,) = Ledger(f"sqlite:///{file}").accept(lineage="small", reason="fire", seen=look(tmp_path / "out"))
    assert (lost.run_id, lost.cost) == ("r1", (2, account.runs["r1"].delta))
    again = privrisk(policy, "--run-id", "r1")
    assert again.code == 0, again.err
    assert "Already released" in again.out
    assert privrisk(policy, "--run-id", "r2", "--dry-run").code == 0
    file.write_bytes(whole)
    assert privrisk(policy, "--run-id", "r2", "--dry-run").code == 0


def balance_head(url: str) -> str:
    accounts, _ = Ledger(url).histories()
    return accounts["small"].head


def test_a_release_by_risk_is_noted_in_the_lineage_it_names(
    privrisk: Privrisk, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path}/budget/ledger.db"
    text = small.read_text() + f'ledger: {{url: "{url}", lineage: Small, cap: {{epsilon: 1, delta: 1e-9}}}}\n'
    small.write_text(text)
    ran = privrisk(str(small), "--run-id", "r1")
    assert ran.code == 0, ran.err
    for _ in range(2):
        balance = Ledger(url).balance("small")
        ((run),) = balance.runs
        assert (run.run_id, run.state, run.counted, run.place) == ("r1", "noted", False, str(tmp_path / "out"))
        assert (balance.spent_epsilon, balance.spent_delta) == (0, 0)
        again = privrisk(str(small), "--run-id", "r1")
        assert again.code == 0
    (kept,) = (tmp_path / "vault" / "charges").iterdir()
    assert json.loads(kept.read_text())["head"] == balance_head(url)
    # What the lineage will not take is refused before any work: another release under the run id, a ledger that was
    # lost, or a table that has its budget elsewhere.
    file, other = tmp_path / "budget" / "ledger.db", "--set=ledger.lineage=second"
    with monkeypatch.context() as patch:
        patch.setattr(by_risk, "release_by_risk", lambda run: pytest.fail("it went to work"))
        for options, root, message in (
            (("--run-id", "r1"), tmp_path / "elsewhere", "What differs: output.path"),
            (("--run-id", "r2", other), None, "the policy's table, or a file of it, is that of the lineage 'small'"),
        ):
            refused = privrisk(str(small), *options, **({} if root is None else {"root": root}))
            assert refused.code == 1, refused.err
            assert message in " ".join(refused.err.split())
        content = file.read_bytes()
        file.unlink()
        for options in ((), ("--dry-run",)):
            refused = privrisk(str(small), "--run-id", "r2", *options)
            assert refused.code == 1
            assert "output.vault knows event 1 of it, from run id r1" in " ".join(refused.err.split())
        assert not file.exists()
        file.write_bytes(content)
    # What cannot be noted is not published.
    (tmp_path / "budget" / "ledger.db").write_bytes(b"no ledger")
    refused = privrisk(str(small), "--run-id", "r2")
    assert refused.code == 3
    assert not (tmp_path / "out" / "releases" / "r2").exists()
    (current,) = [json.loads((tmp_path / "out" / "manifest.json").read_text())]
    assert current["run_id"] == "r1"
