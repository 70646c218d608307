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
from types import SimpleNamespace
from typing import Any

import pytest
import small_release
from kills import failing_package
from product import ROOT, Privrisk, Ran
from small_release import CHARGED, KEY, charged, digests, write_table

from benchmarks.standalone import standalone
from privrisk_spark.engine import tuples
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.pipelines.release import encoded
from privrisk_spark.runs import keystore
from privrisk_spark.runs.keystore import VaultKey
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.stages.private import crowds, sampling
from privrisk_spark.storage import local_directory
from privrisk_spark.storage.ownership import MARKER


@pytest.fixture
def policy(tmp_path: Path) -> Callable[[Path], str]:
    """Policy file with the ledger under a root: two releases would exceed its cap."""
    table = write_table(tmp_path)
    return lambda root: small_release.policy("dp", table, root)


@pytest.fixture
def straight(undisturbed: Callable[..., Ran]) -> dict[str, str]:
    """The data of the release under `KEY` that nothing disturbs."""
    return digests(undisturbed("dp").root)


class Stopped(BaseException):
    """The driver is gone: nothing catches this."""


POINTS: dict[str, tuple[Any, str, bool, int]] = {
    "after the reservation, before a key": (VaultKey, "obtain", False, 1),
    "after the key, before the ledger knows of it": (Ledger, "bind", False, 1),
    "after it is bound, before anything is read": (encoded, "collect_materialized", False, 2),
    "after the table is read, before the ledger knows": (Ledger, "pin", False, 2),
    "after the admission": (sampling, "drawing", False, 3),
    "after the draw": (crowds, "crowd_histogram", False, 3),
    "after the histogram": (tuples.TupleParts, "of_vectors", False, 3),
    "before the ledger knows the release": (Ledger, "commit", False, 3),
    "after the ledger knows, before publication": (Workplace, "commit", False, 4),
    "after publication, before the key is destroyed": (VaultKey, "destroy", False, 4),
    "after all": (VaultKey, "destroy", True, 4),
}
"""In the order of a run: where it is stopped, whether after that call, and how many states the ledger knows then."""


def test_a_restarted_run_is_the_run_it_was(
    privrisk: Privrisk,
    policy: Callable[[Path], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    straight: dict[str, str],
) -> None:
    """Each attempt goes on with what the one before it left, and is stopped one step later.

    The first key that is drawn is `KEY`, and any other would be another: what is published is the one draw under it.
    """
    root = tmp_path / "r"
    file, keys = policy(root), root / "vault" / "keys"
    drawn = iter([bytes.fromhex(KEY)])
    monkeypatch.setattr(keystore, "secrets", SimpleNamespace(token_bytes=lambda size: next(drawn, os.urandom(size))))
    for number, (point, (owner, name, afterwards, known)) in enumerate(POINTS.items()):
        original = getattr(owner, name)

        def stopping(*arguments: Any, original: Any = original, afterwards: bool = afterwards, **options: Any) -> Any:
            if afterwards:
                original(*arguments, **options)
            raise Stopped

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, stopping)
            with pytest.raises(Stopped):
                privrisk(file, "--run-id", "r1", root=root)
        assert charged(root) == CHARGED[:known], point
        there = [key.read_bytes().hex() for key in keys.glob("*.key")]
        assert there == ([KEY] if 0 < number < len(POINTS) - 1 else []), point
        published = (root / "out" / "manifest.json").exists()
        assert published == (name == "destroy"), point
    ran = privrisk(file, "--run-id", "r1", root=root)
    assert ran.code == 0, ran.err
    assert charged(root) == CHARGED, "spent once"
    assert not list(keys.glob("*"))
    assert digests(root) == straight
    refused = privrisk(file, "--run-id", "r2", root=root)
    assert refused.code == 1
    assert "epsilon" in refused.err


def ended_driver(file: str, root: Path, temporary: Path, plant: str) -> subprocess.CompletedProcess[str]:
    """The command in processes of its own, with a planted key, and a planted end once the histogram is there."""
    program = (
        "import os, signal, sys\n"
        "from types import SimpleNamespace\n"
        "from privrisk_spark.engine import tuples\n"
        "from privrisk_spark.runs import keystore\n"
        f"keystore.secrets = SimpleNamespace(token_bytes=lambda _: bytes.fromhex('{KEY}'))\n"
        f"tuples.TupleParts.of_vectors = lambda *a, **o: {plant}\n"
        "from privrisk_spark.cli.app import app\n"
        "app(args=sys.argv[1:])\n"
    )
    temporary.mkdir()
    asked = ["release", file, "--run-id", "r1", f"--set=output.path={root}/out", f"--set=output.vault={root}/vault"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    return subprocess.run(
        [sys.executable, "-c", program, *asked], cwd=ROOT, start_new_session=True,
        env=environment | {"PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "PRIVRISK_ENGINE": "spark"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_killed_driver(
    privrisk: Privrisk, policy: Callable[[Path], str], tmp_path: Path, straight: dict[str, str]
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
    assert key.read_bytes().hex() == KEY
    ran = privrisk(file, "--run-id", "r1", root=root)
    assert ran.code == 0, ran.err
    assert charged(root) == CHARGED
    assert not [path for path in (root / "vault").iterdir() if path.name.startswith(".scratch")], "left behind"
    assert digests(root) == straight


@pytest.mark.thorough("tests/cli/test_every_command.py ends commands by signals")
def test_a_driver_that_is_asked_to_end(policy: Callable[[Path], str], tmp_path: Path) -> None:
    """What was begun is cleared away, and the status says that the run does not go on.

    By Ctrl-C, which Java and Spark's workers get, too; that SIGTERM ends a run as well is a test of every command.
    """
    root, temporary = tmp_path / "r", tmp_path / "temporary"
    plant = "os.killpg(0, signal.SIGINT)"
    done = ended_driver(policy(root), root, temporary, plant)
    assert done.returncode == 3, done.stderr[-3000:]
    assert done.stderr.splitlines()[-1] == "privrisk: stopped by a signal before the run ended."
    assert json.loads((root / "vault" / "status.json").read_text())["code"] == 3
    assert [path.name for path in (root / "out").iterdir()] == [MARKER]
    assert not [path for path in (root / "vault").iterdir() if path.name.startswith(".") and path.name != MARKER]
    assert not list(temporary.iterdir())


@pytest.mark.thorough("tests/jobs/test_cluster.py loses the same executors and tasks; without speculation")
def test_failing_tasks_lost_executors_and_speculation_on_a_cluster(
    policy: Callable[[Path], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    java_options: str,
    straight: dict[str, str],
) -> None:
    """Two executors are killed, six tasks fail after their work, slow ones run twice."""
    monkeypatch.setenv("RELEASE_KEY", KEY)
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
    assert digests(root) == straight
    assert charged(root) == CHARGED
