"""Releases killed at any moment, also two at once: no mixture, no second draw, no lost budget, nothing left elsewhere.

``PRIVRISK_KILLS=200`` kills as often for each kind; the tests of every change do it a few times.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sqlite3
import time
from pathlib import Path

import numpy as np
import pytest
from kills import copied, killed_after
from product import Privrisk, Ran
from pyspark.sql import SparkSession

from privrisk_spark.runs.sealing import verify

KILLS = int(os.environ.get("PRIVRISK_KILLS", "5"))
SEED = int(os.environ.get("PRIVRISK_KILLS_SEED", "2026"))

HEAD = """
version: 1
run: {{name: killed}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}}}
columns:
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [10, 50], domain: [0, 99]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{tree: {{"*": {{south: [Ulm], north: [Bonn, Kiel]}}}}}}}}
output: {{path: out, vault: vault, files: 2}}
"""
KINDS = {
    "risk": "decision: {{problem: min-risk, utility_at_least: 1}}\n",
    "dp": """
guarantee:
  kind: dp
  epsilon: {{admit: 1, keep: 1}}
  delta: 1e-6
  public_rows: 4000
  schemes: [[1, 0], [2, 0], [1, 1]]
  objective: {{lambda: 0.001, tau: 1, phi_min: 1}}
  key: env:RELEASE_KEY
ledger: {{url: "sqlite:///{root}/ledger.db", lineage: killed, cap: {{epsilon: 2, delta: 1e-5}}}}
""",
}
CHARGED = [("reserved", "2"), ("bound", "2"), ("pinned", "2"), ("committed", "2")]


def policy(kind: str, table: Path, root: Path) -> str:
    root.mkdir()
    (root / "policy.yaml").write_text((HEAD + KINDS[kind]).format(table=table, root=root))
    return str(root / "policy.yaml")


def digests(root: Path) -> dict[str, str]:
    data = root / "out" / "releases" / "r1" / "data"
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(data.iterdir())}


def charged(root: Path) -> list[tuple[str, str]]:
    if not (root / "ledger.db").exists():
        return []
    ledger = sqlite3.connect(f"file:{root}/ledger.db?mode=ro", uri=True)
    try:
        return ledger.execute("select state, epsilon from events order by sequence").fetchall()
    finally:
        ledger.close()


def look(root: Path, straight: dict[str, str]) -> None:
    """Whatever a killed run left: what is published is whole and the one release, paid for; all else is private."""
    own = {"out", "vault", "policy.yaml", "ledger.db", "ledger.db-journal"}
    assert {path.name for path in root.iterdir()} <= own
    events = charged(root)
    assert events == CHARGED[: len(events)], "each state once, in order"
    release = root / "out" / "releases" / "r1"
    if (release / "manifest.json").exists():
        verify(json.loads((release / "manifest.json").read_text()), release)
        assert digests(root) == straight
        assert events in ([], CHARGED)
    current = root / "out" / "manifest.json"
    assert not current.exists() or json.loads(current.read_text())["run_id"] == "r1"


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_moment_the_next_run_is_the_one_release(
    spark: SparkSession, privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("RELEASE_KEY", "3c" * 32)
    table = tmp_path / "table.csv"
    generator = np.random.default_rng(1)
    ages, cities = generator.integers(20, 60, 4000), generator.choice(["Ulm", "Bonn", "Kiel"], 4000)
    table.write_text("\n".join(["age;city", *(f"{a};{c}" for a, c in zip(ages, cities, strict=True))]) + "\n")

    def run(root: Path, file: str) -> Ran:
        return privrisk(file, "--run-id", "r1", root=root)

    straight_file = policy(kind, table, tmp_path / "straight")
    begun = time.monotonic()
    ran = run(tmp_path / "straight", straight_file)
    assert ran.code == 0, ran.err
    seconds, straight = time.monotonic() - begun, digests(tmp_path / "straight")
    chance = random.Random(f"{SEED} {kind}")
    alive = 0
    for number in range(KILLS):
        root = tmp_path / f"killed-{number}"
        file = policy(kind, table, root)
        # The first run also warms Java up: those after it are faster.
        copies = [copied(spark, lambda root=root, file=file: run(root, file).code) for _ in range(1 + number % 2)]  # type: ignore[misc]
        for copy in copies:
            alive += killed_after(copy, chance.uniform(0, seconds))
            look(root, straight)
        again = run(root, file)
        assert again.code == 0, again.err
        look(root, straight)
        assert digests(root) == straight
        assert charged(root) == (CHARGED if kind == "dp" else [])
        hidden = [path.name for place in ("out", "vault") for path in (root / place).iterdir() if path.name[0] == "."]
        assert not hidden, "left behind"
        assert "Already released" in run(root, file).out
    assert alive, "some were killed at work"
