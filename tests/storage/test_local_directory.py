"""What Spark keeps on disk beside a run's results: for its owner alone, swept when its process is dead."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sources import ROOT

from privrisk_spark.errors import EngineError
from privrisk_spark.storage.local_directory import PREFIX, LocalDirectory, places, sweep


def test_a_directory_in_each_place_for_its_owner_alone(tmp_path: Path) -> None:
    usual = os.umask(0o000)
    try:
        made = LocalDirectory([tmp_path / "a", tmp_path / "b" / "c"])
    finally:
        os.umask(usual)
    assert [path.parent for path in made.paths] == [tmp_path / "a", tmp_path / "b" / "c"]
    for path in made.paths:
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        (path / "spilled").mkdir()
    made.remove()
    assert not any(path.exists() for path in made.paths)
    made.remove()


def test_a_live_one_stays_and_a_killed_one_goes(tmp_path: Path) -> None:
    mine = LocalDirectory([tmp_path])
    program = (
        "import os, signal, sys, pathlib\n"
        "from privrisk_spark.storage.local_directory import LocalDirectory\n"
        "(path,) = LocalDirectory([pathlib.Path(sys.argv[1])]).paths\n"
        "(path / 'spilled').write_text('x')\n"
        "print(path, flush=True)\n"
        "sys.stdin.read()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        path = Path(other.stdout.readline().decode().strip())
        assert path.parent == tmp_path
        sweep(tmp_path)
        assert (path / "spilled").exists()
        other.communicate()
    assert (path / "spilled").exists()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == list(mine.paths)
    mine.remove()


def test_it_goes_with_its_process_and_not_with_a_copy_of_it(tmp_path: Path) -> None:
    program = (
        "import os, sys, pathlib\n"
        "from privrisk_spark.storage.local_directory import LocalDirectory\n"
        "(path,) = LocalDirectory([pathlib.Path(sys.argv[1])]).paths\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(path.exists())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "True\n"
    assert not list(tmp_path.iterdir())


def test_only_directories_of_ours_are_swept(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "data").mkdir(parents=True)
    (elsewhere / "in-use").touch()
    place = tmp_path / "place"
    place.mkdir()
    (place / f"{PREFIX}link").symlink_to(elsewhere)
    (place / f"{PREFIX}file").touch()
    (place / "other").mkdir()
    being_made = place / f"{PREFIX}being-made"
    being_made.mkdir()
    given_up = place / f"{PREFIX}given-up"
    given_up.mkdir()
    os.utime(given_up, (time.time() - 3600,) * 2)
    sweep(place)
    assert {path.name for path in place.iterdir()} == {
        f"{PREFIX}link", f"{PREFIX}file", "other", f"{PREFIX}being-made",
    }  # fmt: skip
    assert (elsewhere / "data").exists()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("kept")
    path = tmp_path / f"{PREFIX}x"
    path.mkdir()
    (path / "in-use").symlink_to(target)
    sweep(tmp_path)
    assert target.read_text() == "kept"


def test_the_places_are_spark_s_or_the_system_s(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert places() == [tmp_path]
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/one, /two,")
    assert places() == [Path("/one"), Path("/two")]


def test_a_place_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.touch()
    with pytest.raises(EngineError, match=r"'.*file', where Spark is to keep.*SPARK_LOCAL_DIRS"):
        LocalDirectory([place])
