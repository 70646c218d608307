"""A private release that is interrupted: the same bytes, no second draw, the budget spent once."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import small_release
from kills import failing_package
from product import ROOT, Privrisk
from small_release import CHARGED, charged, digests, write_table

from benchmarks.standalone import standalone
from privrisk_spark.engine import tuples
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.pipelines.release import encoded
from privrisk_spark.runs.keystore import VaultKey
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.stages.private import crowds, sampling
from privrisk_spark.storage import local_directory

KEY = "3c" * 32


@pytest.fixture
def policy(tmp_path: Path) -> Callable[[Path], str]:
    """Policy file with the ledger under a root: two releases would exceed its cap."""
    table = write_table(tmp_path)
    return lambda root: small_release.policy("dp", table, root)


class Stopped(BaseException):
    """The driver is gone: nothing catches this."""


POINTS: dict[str, tuple[Any, str, bool]] = {
    "after the reservation, before a key": (VaultKey, "obtain", False),
    "after the key, before the ledger knows of it": (Ledger, "bind", False),
    "after it is bound, before anything is read": (encoded, "collect_materialized", False),
    "after the table is read, before the ledger knows": (Ledger, "pin", False),
    "after the admission": (sampling, "drawing", False),
    "after the draw": (crowds, "crowd_histogram", False),
    "after the histogram": (tuples.TupleParts, "of_vectors", False),
    "before the ledger knows the release": (Ledger, "commit", False),
    "after the ledger knows, before publication": (Workplace, "commit", False),
    "after publication, before the key is destroyed": (VaultKey, "destroy", False),
    "after all": (VaultKey, "destroy", True),
}


@pytest.mark.parametrize("point", POINTS)
def test_a_restarted_run_is_the_run_it_was(
    privrisk: Privrisk, policy: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    root = tmp_path / "r"
    file = policy(root)
    owner, name, afterwards = POINTS[point]
    original = getattr(owner, name)

    def stopping(*arguments: Any, **options: Any) -> Any:
        if afterwards:
            original(*arguments, **options)
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, stopping)
        with pytest.raises(Stopped):
            privrisk(file, "--run-id", "r1", root=root)
    assert charged(root)[0] == ("reserved", "2"), "charged before anything is drawn"
    keys = list((root / "vault" / "keys").glob("*.key"))
    secret = keys[0].read_bytes().hex() if keys else None
    ran = privrisk(file, "--run-id", "r1", root=root)
    assert ran.code == 0, ran.err
    assert charged(root) == CHARGED, "spent once"
    assert not list((root / "vault" / "keys").glob("*"))
    assert ran.manifest["rows"] > 500
    if secret is not None:
        # The release is the one draw under the key of the first attempt.
        monkeypatch.setenv("FIRST_KEY", secret)
        straight = privrisk(
            policy(tmp_path / "s"), "--run-id", "r1", "--set=guarantee.key=env:FIRST_KEY", root=tmp_path / "s"
        )
        assert straight.code == 0, straight.err
        assert digests(straight.root) == digests(ran.root)
    assert (secret is None) == (point in ("after the reservation, before a key", "after all"))
    refused = privrisk(file, "--run-id", "r2", root=root)
    assert refused.code == 1
    assert "epsilon" in refused.err


def ended_driver(file: str, root: Path, temporary: Path, plant: str) -> subprocess.CompletedProcess[str]:
    """The command in processes of its own, with a planted end once the histogram is there."""
    program = (
        "import os, signal, sys\n"
        "from privrisk_spark.engine import tuples\n"
        f"tuples.TupleParts.of_vectors = lambda *a, **o: {plant}\n"
        "from privrisk_spark.cli.app import app\n"
        "app(args=sys.argv[1:])\n"
    )
    temporary.mkdir()
    asked = ["release", file, "--run-id", "r1", f"--set=output.path={root}/out", f"--set=output.vault={root}/vault"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return subprocess.run(
        [sys.executable, "-c", program, *asked], cwd=ROOT, start_new_session=True,
        env=environment | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_killed_driver(
    privrisk: Privrisk, policy: Callable[[Path], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL of all its processes once the histogram is there: no finally, no unlocking, no cleaning."""
    root, temporary = tmp_path / "r", tmp_path / "temporary"
    file = policy(root)
    killed = ended_driver(file, root, temporary, "os.killpg(0, signal.SIGKILL)")
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    (left,) = temporary.iterdir()
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    files = [path for path in left.rglob("*") if path.is_file()]
    assert len(files) > 3, "Spark wrote there"
    assert not any(b"Bonn" in path.read_bytes() for path in files)
    local_directory.sweep(temporary)
    assert not list(temporary.iterdir()), "the next session removes it"
    assert not (root / "out" / "manifest.json").exists()
    (key,) = (root / "vault" / "keys").glob("*.key")
    monkeypatch.setenv("FIRST_KEY", key.read_bytes().hex())
    ran = privrisk(file, "--run-id", "r1", root=root)
    assert ran.code == 0, ran.err
    assert charged(root) == CHARGED
    assert not [path for path in (root / "vault").iterdir() if path.name.startswith(".scratch")], "left behind"
    straight = privrisk(
        policy(tmp_path / "s"), "--run-id", "r1", "--set=guarantee.key=env:FIRST_KEY", root=tmp_path / "s"
    )
    assert digests(straight.root) == digests(ran.root)


@pytest.mark.parametrize(
    "plant",
    [
        "os.kill(os.getpid(), signal.SIGTERM)",
        # Ctrl-C: Java and Spark's workers get it, too.
        "os.killpg(0, signal.SIGINT)",
    ],
)
def test_a_driver_that_is_asked_to_end(policy: Callable[[Path], str], tmp_path: Path, plant: str) -> None:
    """What was begun is cleared away, and the status says that the run does not go on."""
    root, temporary = tmp_path / "r", tmp_path / "temporary"
    done = ended_driver(policy(root), root, temporary, plant)
    assert done.returncode == 3, done.stderr[-3000:]
    assert done.stderr.splitlines()[-1] == "privrisk: stopped by a signal before the run ended."
    assert json.loads((root / "vault" / "status.json").read_text())["code"] == 3
    assert not list((root / "out").iterdir())
    assert not [path for path in (root / "vault").iterdir() if path.name.startswith(".")]
    assert not list(temporary.iterdir())


def test_failing_tasks_lost_executors_and_speculation_on_a_cluster(
    privrisk: Privrisk,
    policy: Callable[[Path], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    java_options: str,
) -> None:
    """Two executors are killed, six tasks fail after their work, slow ones run twice."""
    monkeypatch.setenv("RELEASE_KEY", KEY)
    straight = privrisk(
        policy(tmp_path / "s"), "--run-id", "r1", "--set=guarantee.key=env:RELEASE_KEY", root=tmp_path / "s"
    )
    assert straight.code == 0, straight.err
    root, marks = tmp_path / "r", tmp_path / "marks"
    file = policy(root)
    package = failing_package(tmp_path, marks)
    with standalone(tmp_path, java_options=java_options) as cluster:
        command = [
            cluster.submit, "--master", cluster.address, "--executor-memory", "512m",
            "--conf", "spark.executor.cores=1", "--conf", "spark.ui.enabled=false",
            "--conf", "spark.task.maxFailures=8", "--conf", "spark.sql.shuffle.partitions=3",
            "--conf", "spark.speculation=true",
            "--conf", "spark.speculation.interval=20ms",
            "--conf", "spark.speculation.multiplier=1.01", "--conf", "spark.speculation.quantile=0.1",
            "--conf", "spark.speculation.minTaskRuntime=1ms",
            "--py-files", package, "jobs/release.py", "--config", file, "--run-id", "r1",
            "--set=guarantee.key=env:RELEASE_KEY", f"--set=output.path={root / 'out'}",
            f"--set=output.vault={root / 'vault'}",
        ]  # fmt: skip
        done = subprocess.run(
            command, cwd=ROOT, env=cluster.environment, capture_output=True, text=True, timeout=400, check=False
        )
        assert done.returncode == 0, done.stderr[-3000:]
        assert cluster.master_log().count("Launching executor") >= 4, "two more than at the start"
    names = [path.name for path in marks.iterdir()]
    assert {"killed-0", "killed-1"} < set(names)
    assert sum(name.startswith("failed-") for name in names) == 6
    assert digests(root) == digests(straight.root)
    assert charged(root) == CHARGED
