"""A differentially private release with its budget in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest
from canaries import KEY, PRIVATE, everything, plans, plant
from postgresql import Server
from product import Privrisk

from privrisk_spark.ledger.ledger import Ledger

__all__ = ["plans"]

pytestmark = pytest.mark.alone

PASSWORD = "zQxCanaryPassword"


@pytest.fixture
def policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "run"
    root.mkdir()
    monkeypatch.setenv("CANARY_KEY", KEY)
    file = tmp_path / "policy.yaml"
    text = PRIVATE.format(table=plant(tmp_path), root=root)
    file.write_text(text.replace(f"sqlite:///{root}/ledger.db", "${CANARY_LEDGER}"))
    return file


def test_the_password_of_the_ledger_is_nowhere(
    privrisk: Privrisk,
    policy: Path,
    postgresql: Server,
    plans: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    database, root = postgresql.database(), policy.parent / "run"
    owner = Ledger(postgresql.url(database))
    owner.create()
    with postgresql.connect(database) as connection:
        connection.execute(f"CREATE ROLE pipeline LOGIN PASSWORD '{PASSWORD}'")
        for grant in owner.grants:
            connection.execute(grant.format(role="pipeline"))
    monkeypatch.setenv("CANARY_LEDGER", postgresql.url(database, "pipeline", PASSWORD))
    told = (str(policy), "--explain", "--log-format", "json", "--run-id", "r1")
    ran = privrisk(*told, root=root)
    assert ran.code == 0, ran.err
    (run,) = owner.balance("canary").runs
    assert (run.run_id, run.state, run.epsilon) == ("r1", "committed", 2)
    again = privrisk(*told, root=root)
    assert again.code == 0
    assert len(owner.balance("canary").runs) == 1, "charged once"
    refused = privrisk(*told[:-1], "r2", "--set=ledger.cap.epsilon=3", root=root)
    assert refused.code == 1
    dry = privrisk(*told[:-1], "r2", "--dry-run", root=root)
    assert dry.code == 0
    captured = capfd.readouterr()
    spoken = "".join(each.out + each.err for each in (ran, again, refused, dry)) + captured.out + captured.err
    assert "reserve" in spoken
    assert PASSWORD not in spoken
    assert len(plans) >= 6
    assert not [number for number, plan in enumerate(plans) if PASSWORD in plan]
    assert not [name for name, content in everything(root, but=()).items() if PASSWORD.encode() in content]
    with postgresql.connect(database) as connection:
        assert PASSWORD not in str(connection.execute("SELECT * FROM events").fetchall())


def test_a_ledger_that_is_down_is_a_refusal_before_any_key(
    privrisk: Privrisk, policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    root = policy.parent / "run"
    monkeypatch.setenv("CANARY_LEDGER", f"postgresql+psycopg://pipeline:{PASSWORD}@127.0.0.1:1/d")
    policy.write_text(policy.read_text().replace("  key: env:CANARY_KEY\n", ""))
    ran = privrisk(str(policy), root=root)
    assert ran.code == 3
    assert ran.status["code"] == 3
    assert "nothing listens there" in ran.status["message"]
    assert "keys" not in [path.name for path in (root / "vault").iterdir()], "no key was made"
    assert not (root / "out" / "releases").exists()
    assert PASSWORD not in ran.out + ran.err + (root / "vault" / "status.json").read_text()
