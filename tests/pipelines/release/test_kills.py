"""Releases killed at any moment, also two at once: no mixture, no second draw, no lost budget, nothing left elsewhere.

``PRIVRISK_KILLS=200`` kills as often for each kind; the tests of every change do it a few times.
"""

from __future__ import annotations

import json
import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kills import killed_after, started
from product import Privrisk, Ran
from pyspark.sql import SparkSession
from small_release import CHARGED, KEY, KINDS, charged, digests, policy, write_table

from privrisk_spark.runs.sealing import verify
from privrisk_spark.storage.ownership import MARKER

KILLS = int(os.environ.get("PRIVRISK_KILLS", "3"))
SEED = int(os.environ.get("PRIVRISK_KILLS_SEED", "2026"))


def look(root: Path, straight: dict[str, str]) -> None:
    """Whatever a killed run left: what is published is whole and the one release, paid for; all else is private."""
    own = {"out", "vault", "policy.yaml", "ledger.db", "ledger.db-journal"}
    # A run that was killed while it made the ledger leaves a draft of it, for the owner alone.
    drafts = [path for path in root.iterdir() if re.fullmatch(r"\.ledger\.db\.[0-9a-f]{16}\.new(-journal)?", path.name)]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in drafts)
    assert {path.name for path in root.iterdir()} - {path.name for path in drafts} <= own
    release = root / "out" / "releases" / "r1"
    # In this order: another copy may be at work, and publishes after it has charged.
    published = (release / "manifest.json").exists()
    events = charged(root)
    assert events == CHARGED[: len(events)], "each state once, in order"
    if published:
        verify(json.loads((release / "manifest.json").read_text()), release)
        assert digests(root) == straight
        assert events in ([], CHARGED)
    current = root / "out" / "manifest.json"
    assert not current.exists() or json.loads(current.read_text())["run_id"] == "r1"


@pytest.mark.parametrize("kind", KINDS)
def test_whatever_the_moment_the_next_run_is_the_one_release(
    spark: SparkSession,
    privrisk: Privrisk,
    undisturbed: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    monkeypatch.setenv("RELEASE_KEY", KEY)
    table = write_table(tmp_path)
    more = [("output.files", 2), *([("guarantee.key", "env:RELEASE_KEY")] if kind == "dp" else [])]

    def run(root: Path, file: str) -> Ran:
        return privrisk(file, "--run-id", "r1", root=root)

    whole = undisturbed(kind, 2)
    seconds, straight = sum(whole.summary["seconds"].values()), digests(whole.root)
    chance = random.Random(f"{SEED} {kind}")
    alive = 0
    for number in range(KILLS):
        root = tmp_path / f"killed-{number}"
        file = policy(kind, table, root, *more)
        outputs = [f"--set=output.path={root / 'out'}", f"--set=output.vault={root / 'vault'}"]
        # The first run also warms Java up: those after it are faster.
        copies = []
        for copy in range(1 + number % 2):
            place = tmp_path / f"place-{number}-{copy}"
            place.mkdir()
            copies.append(started(spark, "release", file, "--run-id", "r1", *outputs, place=place))
        for copy in copies:
            alive += killed_after(copy, chance.uniform(0, seconds))
            look(root, straight)
        again = run(root, file)
        assert again.code == 0, again.err
        seconds = sum(again.summary["seconds"].values())  # of a warm engine
        look(root, straight)
        assert digests(root) == straight
        assert charged(root) == (CHARGED if kind == "dp" else [])
        for _ in range(10):
            # Java may go on for a while with what a killed copy told it, and write where the next run has swept.
            assert "Already released" in run(root, file).out
            hidden = [
                path.name for place in ("out", "vault") for path in (root / place).glob(".*") if path.name != MARKER
            ]
            if not hidden:
                break
            time.sleep(2)
        assert not hidden, "left behind"
    assert alive, "some were killed at work"
