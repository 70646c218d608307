"""Sixty kinds of wrong and hostile input: the exit code, one line that helps, no record value, nothing left behind."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from bad_input import ASSESSED, KINDS, SECRET, Kind, good
from product import ROOT, production_batches
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.engine import session
from privrisk_spark.engine.embedded import is_embedded
from privrisk_spark.errors import EngineError


def ran(root: Path, kind: Kind | None) -> tuple[int, str, str]:
    arguments = [] if kind is None else list(kind.arguments)
    policy = [] if "NO POLICY" in arguments else [str(root / "policy.yaml")]
    arguments = [argument for argument in arguments if argument != "NO POLICY"]
    run_id = [] if "--run-id" in arguments else ["--run-id", "r1"]
    result = CliRunner().invoke(app, ["release", *policy, *run_id, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def test_the_input_they_are_made_of_is_good(spark: SparkSession, tmp_path: Path) -> None:
    good(tmp_path)
    with production_batches(spark):
        code, out, err = ran(tmp_path, None)
    assert code == 0, err
    assert "Released 60 rows" in out


def test_there_are_sixty_and_each_is_another() -> None:
    assert len({kind.what for kind in (*KINDS, *ASSESSED)}) == len(KINDS) + len(ASSESSED)
    assert len(KINDS) >= 60


def test_the_documentation_has_each() -> None:
    page = (ROOT / "docs" / "bad-input.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")][1:]
    assert rows == [f"| {kind.what} | {kind.code} | `{kind.said.strip()}` |" for kind in (*KINDS, *ASSESSED)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.what.replace(" ", "-"))
def test_it_is_told_what_is_wrong_and_what_would_do(spark: SparkSession, tmp_path: Path, kind: Kind) -> None:
    good(tmp_path)
    kind.change(tmp_path)
    before = set(tmp_path.rglob("*"))
    with production_batches(spark):
        code, out, err = ran(tmp_path, kind)
    assert code == kind.code, err
    faults = [line for line in err.splitlines() if " INFO " not in line]
    assert len(faults) == 1, err
    assert faults[0].startswith("privrisk: ")
    assert (kind.said if is_embedded(spark) else kind.on_spark or kind.said) in faults[0]
    assert SECRET not in out + err
    left = {path.relative_to(tmp_path) for path in tmp_path.rglob("*")} - {p.relative_to(tmp_path) for p in before}
    own = {"out", "vault"}
    in_vault = {
        "status.json",
        "unknown_values",
        "contracts",
        ".privrisk.json",
        "checks.json",
        "report.html",
        "summary.json",
        "decisions",
        "metrics",
    }
    assert all(path.parts[0] in own for path in left)
    assert {path.parts[1] for path in left if path.parts[0] == "vault" and len(path.parts) > 1} <= in_vault
    assert not [path for path in left if path.parts[0] == "out" and path.parts[1:] not in ((), (".privrisk.json",))]
    status = tmp_path / "vault" / "status.json"
    if status.is_file():
        assert json.loads(status.read_text())["code"] == kind.code


def test_a_damaged_manifest_is_told_before_the_work(spark: SparkSession, tmp_path: Path) -> None:
    good(tmp_path)
    (kind,) = (kind for kind in KINDS if kind.what == "a manifest that is damaged")
    kind.change(tmp_path)
    with production_batches(spark):
        code, _, err = ran(tmp_path, kind)
    assert code == 1
    assert "INFO stage" not in err


def test_what_spark_said_is_kept_beside_the_status_for_the_owner_alone(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(tmp_path)
    log = tmp_path / "spark.log"
    log.write_text(f"ERROR Executor: {SECRET}\n")

    def fail(*_: object, **__: object) -> None:
        raise EngineError("planted.") from RuntimeError()

    monkeypatch.setattr(session, "own_log", lambda: log)
    monkeypatch.setattr("privrisk_spark.pipelines.release.by_risk.write_release", fail)
    with production_batches(spark):
        code, out, err = ran(tmp_path, None)
    assert code == 3
    kept = tmp_path / "vault" / "spark.log"
    assert kept.read_text() == log.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert f"privrisk: planted. What Spark said is in '{kept}', which may quote rows: never publish it." in err
    assert SECRET not in out + err
