"""Places of a run, and the commit of a directory: whole or not at all, one run at a time, each number once."""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from privrisk_spark.errors import BusyError, PlaceError
from privrisk_spark.runs import local_output
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace
from privrisk_spark.storage import locks
from privrisk_spark.storage.documents import write_json
from privrisk_spark.storage.ownership import MARKER


class Killed(BaseException):
    """Stands for a process that ends between two steps."""


def place_of(tmp_path: Path, run_id: str) -> Workplace:
    return Workplace(LocalOutput(tmp_path / "out"), DirectoryVault(tmp_path / "vault"), run_id)


def target_of(place: Workplace) -> Path:
    return Path(place.target.path)


def publish(place: Workplace, content: str) -> dict[str, Any]:
    with place.held():
        (place.staging / "data").write_text(content)
        return place.commit({"run_id": place.run_id, "date": "2026-01-31", "content": content})


def current(tmp_path: Path) -> Any:
    path = tmp_path / "out" / "manifest.json"
    return json.loads(path.read_text()) if path.exists() else None


def leftovers(tmp_path: Path) -> list[str]:
    found = {p.name for p in [*(tmp_path / "out").iterdir(), *(tmp_path / "vault").iterdir()] if p.name[0] == "."}
    return sorted(found - {MARKER})


@contextmanager
def killed_at_write(monkeypatch: pytest.MonkeyPatch, number: int) -> Iterator[None]:
    """Die at the n-th JSON file (1: the release's manifest, 2: the root's), after the half of it is on disk."""
    calls = 0

    def write(path: Path, document: Any, **named: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == number:
            path.with_name(f".{path.name}.0").write_text('{"half":')
            raise Killed
        write_json(path, document, **named)

    with monkeypatch.context() as patch:
        patch.setattr(local_output, "write_json", write)
        with pytest.raises(Killed):
            yield


def test_a_release_is_published_once(tmp_path):
    place = place_of(tmp_path, "run-1")
    assert place.published() is None
    manifest = publish(place, "first")
    assert manifest == {"sequence": 1, "run_id": "run-1", "date": "2026-01-31", "content": "first"}
    assert current(tmp_path) == manifest
    assert (target_of(place) / "data").read_text() == "first"
    assert leftovers(tmp_path) == []
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")}
    assert place.published() == manifest == place.published() == place_of(tmp_path, "run-1").published()
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / "out").rglob("*")} == before
    assert stat.S_IMODE(target_of(place).stat().st_mode) == 0o755
    assert stat.S_IMODE(place.private.stat().st_mode) == 0o700
    second = publish(place_of(tmp_path, "run-2"), "second")
    assert second["sequence"] == 2
    assert current(tmp_path) == second
    # An older release is still there, and asking for it does not make it the current one.
    assert place.published() == manifest
    assert current(tmp_path) == second


def test_killed_at_its_manifest_nothing_is_released_or_left(tmp_path, monkeypatch):
    old = publish(place_of(tmp_path, "old"), "old")
    place = place_of(tmp_path, "new")
    with killed_at_write(monkeypatch, 1):
        publish(place, "half")
    assert not target_of(place).exists(), "no name of a release without its manifest"
    assert place.published() is None
    assert current(tmp_path) == old
    again = publish(place_of(tmp_path, "new"), "whole")
    assert (target_of(place) / "data").read_text() == "whole"
    assert sorted(p.name for p in target_of(place).iterdir()) == ["data", "manifest.json"]
    assert place.published() == again == current(tmp_path)
    assert again["sequence"] == 2


PUBLISH = """
import os, shutil, signal, sys
from pathlib import Path
from privrisk_spark.runs import local_output as commit
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace
place = Workplace(LocalOutput(Path(sys.argv[1]) / "out"), DirectoryVault(Path(sys.argv[1]) / "vault"), sys.argv[2])
left = int(sys.argv[3])
def stopping(of):
    def call(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return of(*arguments, **options)
    return call
with place.held():
    (place.staging / "data").mkdir()
    (place.staging / "data" / "part").write_text(sys.argv[2])
    for name in ("write_json", "sync"):
        setattr(commit, name, stopping(getattr(commit, name)))
    os.utime, shutil.rmtree = stopping(os.utime), stopping(shutil.rmtree)
    Path.rename, Path.replace = stopping(Path.rename), stopping(Path.replace)
    place.commit({"run_id": sys.argv[2], "date": "2026-01-31"})
"""


def test_wherever_it_is_killed_nothing_is_left_that_is_no_release(tmp_path):
    """Killed in a process of its own before each step of the commit; then another run id publishes."""
    whole = set()
    for step in range(1, 100):
        root = tmp_path / str(step)
        publish(place_of(root, "old"), "old")
        command = [sys.executable, "-c", PUBLISH, str(root), "dead", str(step)]
        environment = {**os.environ, "PYTHONPATH": str(Path(local_output.__file__).resolve().parents[2])}
        ended = subprocess.run(command, env=environment, check=False).returncode
        dead = target_of(place_of(root, "dead"))
        assert not dead.exists() or json.loads((dead / "manifest.json").read_text())["sequence"] == 2
        whole.add(dead.exists())
        next_one = place_of(root, "next")
        with next_one.held():
            assert next_one.published() is None
            assert next_one.output.without_manifest(next_one.run_id) == []
            # Whoever looks at the root sees the release that was finished, before the next one is.
            assert current(root)["run_id"] == ("dead" if dead.exists() else "old")
        made = publish(next_one, "next")
        assert current(root) == made
        assert leftovers(root) == []
        there = {path.name for path in target_of(next_one).parent.iterdir()}
        assert there == {"old", "next"} | ({"dead"} if dead.exists() else set())
        releases = target_of(next_one).parent.iterdir()
        numbers = [json.loads((path / "manifest.json").read_text())["sequence"] for path in releases]
        assert len(set(numbers)) == len(numbers)
        assert made["sequence"] == max(numbers)
        if ended == 0:
            break
    assert ended == 0, "the steps came to an end"
    assert step > 5
    assert whole == {False, True}


def test_two_that_publish_at_once_have_numbers_of_their_own(tmp_path):
    """Two processes, ten run ids each, into one output: one waits for the other."""
    code = """
import sys, time
from pathlib import Path
from privrisk_spark.errors import BusyError
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace
for i in range(10):
    root = Path(sys.argv[1])
    place = Workplace(LocalOutput(root / "out"), DirectoryVault(root / "vault"), f"{sys.argv[2]}-{i}")
    while True:
        try:
            with place.held():
                print(place.commit({"run_id": place.run_id, "date": "2026-01-31"})["sequence"], flush=True)
            break
        except BusyError:
            time.sleep(0.001)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(local_output.__file__).resolve().parents[2])}
    both = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), name], stdout=subprocess.PIPE, text=True, env=environment
        )
        for name in ("one", "two")
    ]
    found = [[int(line) for line in process.communicate(timeout=120)[0].split()] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(numbers == sorted(numbers) for numbers in found)
    assert sorted([*found[0], *found[1]]) == list(range(1, 21))


def test_a_number_is_never_given_twice(tmp_path):
    """Whatever became of the root's manifest: lost, an old copy, or left behind by a run that was killed."""
    first, second = (publish(place_of(tmp_path, name), name) for name in ("one", "two"))
    root = tmp_path / "out" / "manifest.json"
    root.write_text(json.dumps(first))
    assert publish(place_of(tmp_path, "three"), "three")["sequence"] == 3
    root.unlink()
    assert place_of(tmp_path, "one").published() == first
    assert current(tmp_path)["run_id"] == "three", "the release with the greatest number, whoever looks"
    root.unlink()
    assert publish(place_of(tmp_path, "four"), "four")["sequence"] == 4
    # The latest one is withdrawn: its number is gone with it, but not given again.
    shutil.rmtree(target_of(place_of(tmp_path, "four")))
    assert publish(place_of(tmp_path, "five"), "five")["sequence"] == 5
    assert second["sequence"] == 2


def test_a_directory_without_a_manifest_is_told_of_and_stays(tmp_path):
    """Of an earlier version, which gave a release its name first; or somebody's own."""
    publish(place_of(tmp_path, "old"), "old")
    left = tmp_path / "out" / "releases" / "dead"
    left.mkdir()
    (left / "data").write_text("rows")
    place = place_of(tmp_path, "new")
    with place.held():
        assert place.output.without_manifest(place.run_id) == ["dead"]
    publish(place, "new")
    assert (left / "data").read_text() == "rows"
    with pytest.raises(PlaceError, match=r"output\.path: holds 'releases/dead' without a manifest"):
        place_of(tmp_path, "dead").check()


def test_killed_before_the_root_manifest_the_next_look_mends_it(tmp_path, monkeypatch):
    old = publish(place_of(tmp_path, "old"), "old")
    place = place_of(tmp_path, "new")
    with killed_at_write(monkeypatch, 2):
        publish(place, "whole")
    assert current(tmp_path) == old
    manifest = place.published()
    assert manifest is not None
    assert manifest["content"] == "whole"
    assert current(tmp_path) == manifest
    assert place.published() == manifest


def test_staging_is_private_and_gone_after_an_error(tmp_path):
    place = place_of(tmp_path, "run")

    def work() -> None:
        with place.held():
            for path in (place.staging, place.scratch):
                assert stat.S_IMODE(path.stat().st_mode) == 0o700
                (path / "deep").mkdir()
                (path / "deep" / "file").write_text("x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        work()
    assert leftovers(tmp_path) == []
    assert place.published() is None
    with place.held():  # the same object may be used again
        assert place.staging.exists()


HOLD = """
import sys, time
from pathlib import Path
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace
place = Workplace(LocalOutput(Path(sys.argv[1]) / "out"), DirectoryVault(Path(sys.argv[1]) / "vault"), sys.argv[2])
with place.held():
    (place.staging / "data").write_text("at work")
    print(place.staging, place.scratch, flush=True)
    time.sleep(600)
"""


@contextmanager
def process_at_work(tmp_path: Path, run_id: str) -> Iterator[tuple[subprocess.Popen[str], list[Path]]]:
    """Another process that holds a run's directories until it is killed."""
    command = [sys.executable, "-c", HOLD, str(tmp_path), run_id]
    root = Path(local_output.__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            yield process, [Path(part) for part in process.stdout.readline().split()]
        finally:
            process.send_signal(signal.SIGKILL)


def test_a_live_run_is_left_alone_and_a_dead_one_is_swept(tmp_path):
    place = place_of(tmp_path, "other")
    with process_at_work(tmp_path, "live") as (process, directories):
        assert all(path.exists() for path in directories)
        for run_id in ("other", "live"):
            with (
                pytest.raises(BusyError, match=r"output.path: another run is at work"),
                place_of(tmp_path, run_id).held(),
            ):
                pass
        elsewhere = Workplace(LocalOutput(tmp_path / "out2"), DirectoryVault(tmp_path / "vault"), "other")
        with pytest.raises(BusyError, match=r"output.vault: another run is at work"), elsewhere.held():
            pass
        assert (directories[0] / "data").read_text() == "at work"
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        assert all(path.exists() for path in directories)
        with place.held():
            assert not any(path.exists() for path in directories)
    publish(place_of(tmp_path, "live"), "after all")
    assert leftovers(tmp_path) == []


def test_a_lock_file_that_is_gone_lets_nobody_in(tmp_path, monkeypatch):
    """A run opens the lock file, the one before it ends and unlinks it, a third makes a new one: only that may work."""
    lock = locks.fcntl.flock
    with ExitStack() as stack:

        def meanwhile(file: Any, operation: int) -> None:
            monkeypatch.setattr(locks.fcntl, "flock", lock)
            (tmp_path / "out" / ".lock").unlink()
            stack.enter_context(place_of(tmp_path, "run").held())
            lock(file, operation)

        monkeypatch.setattr(locks.fcntl, "flock", meanwhile)
        with pytest.raises(BusyError, match="another run is at work"), place_of(tmp_path, "run").held():
            pass
        assert (tmp_path / "out" / ".lock").exists()


def test_a_directory_of_the_vault_is_replaced_whole(tmp_path):
    for number in range(3):
        place = place_of(tmp_path, f"run-{number}")
        with place.held():
            source = place.scratch / "decisions"
            source.mkdir()
            (source / f"part-{number}").write_text("once")
            place.swap_into_vault(source, "decisions")
            assert not source.exists()
            # Twice in a run, as when a stage sets two columns' values aside.
            if number == 2:
                source.mkdir()
                (source / "part-2").write_text("again")
                place.swap_into_vault(source, "decisions")
        vault = place.private / "decisions"
        assert [(p.name, p.read_text()) for p in vault.iterdir()] == [
            (f"part-{number}", "again" if number == 2 else "once")
        ]
    assert leftovers(tmp_path) == []


def test_the_snapshot_is_that_of_the_run_or_unrecorded(tmp_path):
    place = place_of(tmp_path, "run")
    assert place.left("report.html") is None
    place.private.mkdir()
    (place.private / "report.html").write_text("exact")
    write_json(place.private / "summary.json", {"run_id": "run", "output.path": str(place.output)})
    assert place.left("report.html") == b"exact"
    write_json(place.private / "summary.json", {"run_id": "later"})
    assert place.left("report.html") is None


def test_json_is_replaced_whole_and_takes_no_nan(tmp_path):
    path = tmp_path / "x.json"
    write_json(path, {"a": "é", "b": [1, 0.1]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é", "b": [1, 0.1]}
    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(path, {"a": math.inf})
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": "é", "b": [1, 0.1]}
    assert [p.name for p in tmp_path.iterdir()] == ["x.json"]
