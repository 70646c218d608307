"""Nothing a run leaves outside the vault's data holds a record value, a key or a seed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from canaries import CANARIES, KEY, PRIVATE, RISK, everything, plans, plant
from product import Privrisk

__all__ = ["plans"]

pytestmark = pytest.mark.alone


@pytest.mark.parametrize("kind", ["risk", "private"])
def test_nothing_leaks(
    privrisk: Privrisk,
    tmp_path: Path,
    plans: list[str],
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CANARY_KEY", KEY)
    root = tmp_path / "run"
    root.mkdir()
    policy = tmp_path / "policy.yaml"
    policy.write_text((RISK if kind == "risk" else PRIVATE).format(table=plant(tmp_path), root=root))
    ran = privrisk(str(policy), "--explain", "--log-format", "json", root=root)
    assert ran.code == 0, ran.err
    captured = capfd.readouterr()
    spoken = ran.out + ran.err + captured.out + captured.err
    assert "stage" in spoken
    assert len(plans) >= 6
    # The decisions are the record's own line in the vault; the release itself holds what the policy discloses.
    files = everything(root, but=("vault/decisions", "out/releases/" + ran.manifest["run_id"] + "/data"))
    assert any(name.endswith("report.html") for name in files)
    assert any(name.endswith("contracts/release.html") for name in files)
    secrets = [*CANARIES, KEY, bytes.fromhex(KEY).hex().upper()]
    for secret in secrets:
        assert secret not in spoken
        assert not [i for i, plan in enumerate(plans) if secret in plan]
        holders = [name for name, content in files.items() if secret.encode() in content]
        assert not holders
    assert not [name for name, content in files.items() if bytes.fromhex(KEY) in content]
    if kind == "private":
        # A single person in a city of their own is never released.
        assert b"zQxCanary" not in b"".join(path.read_bytes() for path in ran.data.iterdir())
    assert not [name for name in os.listdir(root / "vault") if name.startswith(".scratch")]


def test_an_error_names_no_value(privrisk: Privrisk, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "run"
    root.mkdir()
    policy = tmp_path / "policy.yaml"
    table = plant(tmp_path)
    text = RISK.format(table=table, root=root)
    wrong = {
        "a value outside a hierarchy": text.replace("{flat: true}", "{flat: {values: [Ulm, Bonn]}}"),
        "a number where a date is meant": text.replace("{intervals: {widths: [1000]}}", "{dates: [day, month]}"),
        "a weight that is no number": text.replace("{role: sensitive, action: drop}", "{role: weight}")
        + "risk: {sensitivity: {form: record, record: illness}}\n",
    }  # fmt: skip
    for name, document in wrong.items():
        assert document != text, name
        policy.write_text(document)
        ran = privrisk(str(policy), root=root)
        assert ran.code == 2, (name, ran.err)
        captured = capfd.readouterr()
        for secret in CANARIES:
            assert (
                secret
                not in ran.out + ran.err + captured.out + captured.err + (root / "vault" / "status.json").read_text()
            )
