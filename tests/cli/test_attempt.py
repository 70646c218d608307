"""Whatever ends a command: one of four exit codes, one line, and a status that says so."""

from __future__ import annotations

import errno
import json
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import small_release
import typer
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.cli.attempt import attempted, told_errors
from privrisk_spark.cli.options import LogFormat
from privrisk_spark.errors import BudgetError, BusyError, CheckError, ConfigError, Fault, ReleasedError
from privrisk_spark.runs.progress import write_status
from privrisk_spark.storage import documents
from privrisk_spark.storage.locations import Location
from privrisk_spark.storage.ownership import claim


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """A directory of a run."""
    claim(Location("file", "", str(tmp_path)), "output.vault", "vault")
    return tmp_path


@pytest.fixture(autouse=True)
def _usual_logging() -> Iterator[None]:
    logger = logging.getLogger("privrisk_spark")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield
    logger.handlers[:], logger.level, logger.propagate = before


def secret() -> None:
    raise ValueError("hunter2")


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/city=hunter2/part")


def config() -> None:
    raise ConfigError([Fault("output.path", "must be there")])


def check() -> None:
    raise CheckError("Not published.")


def interrupt() -> None:
    raise KeyboardInterrupt


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


ENDS: list[tuple[Callable[[], None], int, str]] = [
    (config, 2, "output.path: must be there."),
    (check, 1, "Not published."),
    (full, 3, "The file system failed: No space left on device."),
    (secret, 3, "ValueError where none was expected. At "),
    (interrupt, 3, "stopped by a signal before the run ended."),
    (terminate, 3, "stopped by a signal before the run ended."),
]


def ended(act: Callable[[], None], status: Path | None, form: LogFormat = LogFormat.text) -> int:
    def command() -> None:
        with attempted("r1", form) as attempt:
            attempt.status = status
            act()

    with pytest.raises(typer.Exit) as caught:
        command()
    return caught.value.exit_code


@pytest.mark.parametrize(("act", "code", "said"), ENDS)
def test_every_end_is_a_line_a_code_and_a_status(
    vault: Path, capsys: pytest.CaptureFixture[str], act: Callable[[], None], code: int, said: str
) -> None:
    assert ended(act, vault) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"privrisk: {said}")
    assert "hunter2" not in line
    status = json.loads((vault / "status.json").read_text())
    assert (status["run_id"], status["phase"], status["code"]) == ("r1", "failed", code)
    assert status["what_to_do"]


def test_a_fault_of_ours_names_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    ended(secret, None)
    assert "test_attempt.py:" in capsys.readouterr().err


@pytest.mark.parametrize(("act", "code", "said"), ENDS)
def test_as_json_it_is_an_object(
    vault: Path, capsys: pytest.CaptureFixture[str], act: Callable[[], None], code: int, said: str
) -> None:
    assert ended(act, vault, LogFormat.json) == code
    (line,) = capsys.readouterr().err.splitlines()
    found = json.loads(line)
    assert found["message"].startswith(said)
    assert (found["level"], found["code"], found["run_id"]) == ("ERROR", code, "r1")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_status_that_cannot_be_written_changes_no_code(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(documents.os, "fsync", fail)
    assert ended(check, vault) == 1
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "privrisk: Not published."
    assert len(said) == 2
    assert "status.json cannot be written" in said[1]


def test_who_is_busy_keeps_his_status(tmp_path: Path) -> None:
    def busy() -> None:
        raise BusyError("another run is at work.")

    ended(busy, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("error", "phase"),
    [
        (CheckError("'out' was changed after publication."), "failed"),
        (ReleasedError("run id r1 is released already."), "published"),
        (BudgetError("run id r1 is committed."), "published"),
        (ConfigError([Fault("output.path", "must be there")]), "published"),
    ],
)
def test_status_of_a_published_release_says_failed_only_if_the_release_is_damaged(
    vault: Path, error: Exception, phase: str
) -> None:
    write_status(vault, "r1", phase="published", code=0, message="release at out")

    def fail() -> None:
        raise error

    ended(fail, vault)
    assert json.loads((vault / "status.json").read_text())["phase"] == phase


def test_signals_are_heard_as_before_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with attempted("r1", LogFormat.text):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_handler_that_python_knows_nothing_of_is_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a program that has Python in it: `signal.signal` gives None for it, and takes no None back."""
    set_to: list[object] = []
    monkeypatch.setattr(signal, "signal", lambda _, handler: set_to.append(handler))
    with attempted("r1", LogFormat.text):
        pass
    assert set_to[1] is signal.SIG_DFL


def test_in_another_thread_signals_are_left_alone() -> None:
    found: list[Any] = []

    def work() -> None:
        with attempted("r1", LogFormat.text):
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.getsignal(signal.SIGTERM)]


def test_a_verdict_that_ends_a_command_is_no_fault() -> None:
    for context in (attempted("r1", LogFormat.text), told_errors()):
        with pytest.raises(typer.Exit) as caught, context:
            raise typer.Exit(1)
        assert caught.value.exit_code == 1


@pytest.mark.parametrize(("act", "code", "said"), ENDS[:4])
def test_commands_without_spark_end_the_same_way(
    capsys: pytest.CaptureFixture[str], act: Callable[[], None], code: int, said: str
) -> None:
    with pytest.raises(typer.Exit) as caught, told_errors():
        act()
    assert caught.value.exit_code == code
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"privrisk: {said}")
    assert "hunter2" not in line


def test_a_status_file_says_how_it_ended_whatever_it_was(tmp_path: Path) -> None:
    """Of a policy that is not there, too: whoever asks by the file knows that no attempt changes it."""
    told = tmp_path / "how it ended"
    asked = ["release", str(tmp_path / "none.yaml"), "--run-id", "r1", "--status-file"]
    ended = CliRunner().invoke(app, [*asked, str(told)])
    said = json.loads(told.read_text())
    assert (ended.exit_code, said["code"], said["run_id"], said["phase"]) == (2, 2, "r1", "failed")
    assert "there is no policy file" in said["message"]
    assert said["what_to_do"]
    nowhere = CliRunner().invoke(app, [*asked, str(tmp_path / "no" / "directory.json")])
    assert nowhere.exit_code == 2
    assert "--status-file cannot be written (No such file or directory)" in nowhere.output
    assert told.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("privrisk")
def test_a_status_file_says_that_it_ended_well(tmp_path: Path) -> None:
    file = small_release.policy("risk", small_release.write_table(tmp_path), tmp_path)
    told = tmp_path / "status.json"
    places = [f"--set=output.path={tmp_path}/out", f"--set=output.vault={tmp_path}/vault"]
    ended = CliRunner().invoke(app, ["release", file, "--run-id", "r1", *places, "--status-file", str(told)])
    assert ended.exit_code == 0, ended.output
    assert json.loads(told.read_text())["code"] == 0
