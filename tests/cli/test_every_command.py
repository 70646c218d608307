"""What every command that starts Spark has: an end by signals that leaves nothing behind, a plan, silence."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from product import ROOT
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from privrisk_spark.cli.app import app
from privrisk_spark.runs import progress
from privrisk_spark.runs.progress import LOGGER

pytestmark = pytest.mark.spark


class Interrupter(logging.Handler):
    """Sends this process a signal when the second stage of a run begins, as somebody may do at any time."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__()
        self.number, self.sent = number, False

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage().startswith("stage 2 of") and not self.sent:
            self.sent = True
            os.kill(os.getpid(), self.number)


@pytest.fixture
def small_anonymous(small: Path) -> Path:
    """The small table, to be k-anonymous."""
    text = small.read_text()
    decision = next(line for line in text.splitlines() if line.startswith("decision"))
    path = small.with_name("anonymous.yaml")
    path.write_text(text.replace(decision, "guarantee: {kind: k-anonymity, k: 2}"))
    return path


@pytest.fixture
def small_attacked(small: Path) -> Path:
    """The small table, attacked by itself."""
    table = small.parent / "table.csv"
    path = small.with_name("attacked.yaml")
    of = f"{{path: {table}, format: csv, options: {{sep: ';', header: true}}, record_id: id}}"
    path.write_text(small.read_text() + f"attack: {{protected: {of}}}\n")
    return path


@pytest.fixture
def commands(small: Path, small_anonymous: Path, small_attacked: Path, tmp_path: Path) -> dict[str, list[str]]:
    place = ["--output", str(tmp_path / "found")]
    return {
        "release": ["release", str(small)],
        "assess": ["assess", str(small), *place],
        "attack": ["attack", str(small_attacked), *place],
        "share": ["share", "conf/sharing-demo.yaml", *place],
        "fit": ["fit", str(small_anonymous), *place],
        "curves": ["curves", str(small), *place],
    }


@pytest.fixture
def handlers() -> Iterator[None]:
    """Handlers of signals and logs as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
    LOGGER.handlers.clear()


@pytest.mark.parametrize("command", ["release", "assess", "attack", "share", "fit", "curves"])
def test_every_command_ends_with_a_status_and_a_swept_scratch(
    command: str,
    commands: dict[str, list[str]],
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    handlers: None,
) -> None:
    assert spark is not None
    monkeypatch.chdir(ROOT)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupter = Interrupter(number)
        configure = progress.configure_logging

        def configured(form: str, interrupter: Interrupter = interrupter, configure=configure) -> None:  # type: ignore[no-untyped-def]
            configure(form)
            LOGGER.addHandler(interrupter)

        with monkeypatch.context() as patch:
            patch.setattr(progress, "configure_logging", configured)
            result = CliRunner().invoke(app, commands[command])
        assert interrupter.sent, result.stderr
        assert result.exit_code == 3, result.stderr
        assert "stopped by a signal" in result.stderr
        place = tmp_path / ("vault" if command == "release" else "found")
        status = json.loads((place / "status.json").read_text())
        assert (status["phase"], status["code"]) == ("failed", 3)
        left = {path.name for path in place.iterdir()} - {"status.json", ".lock"}
        assert not [name for name in left if name.startswith(".scratch") or "scratch" in name], left
        assert not list((tmp_path / "out").glob("releases/*")), "nothing was published"


EXPLAINED = {
    "release": "floor: utility at least 3",
    "assess": "set 'all': age, sex, city",
    "attack": "known column age: compared by levels of its hierarchy (100 leaves, 5 levels (as it is, width 5,",
    "share": "decided: the ",
    "fit": "lattice: up to 30 nodes a record",
    "curves": "counting plan of the table itself",
}


@pytest.mark.parametrize("command", EXPLAINED)
def test_every_command_tells_its_plan_and_is_quiet_if_asked(
    command: str, commands: dict[str, list[str]], spark: SparkSession, monkeypatch: pytest.MonkeyPatch, handlers: None
) -> None:
    assert spark is not None
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, [*commands[command], "--explain", "--quiet"])
    assert result.exit_code in (0, 1), result.stderr  # an attack may find too many
    assert EXPLAINED[command] in result.stdout
    said = [line for line in result.stderr.splitlines() if " WARNING " not in line]
    assert not said
    assert "stage" not in result.stderr


def test_a_terminal_shows_progress_and_ctrl_c_ends_the_process(small: Path, tmp_path: Path) -> None:
    """A process of its own on a pseudo-terminal: bars, plain lines, no word of Spark's, and the keys of a person."""
    master, slave = pty.openpty()
    slow = (
        "import sys, time\n"
        "from privrisk_spark.pipelines.release import by_risk\n"
        "from privrisk_spark.runs import terminal\n"
        "terminal.EVERY = 0.05\n"
        "count = by_risk.count_dictionaries\n"
        "def slowly(*given, **more):\n"
        "    time.sleep(60)\n"
        "    return count(*given, **more)\n"
        "by_risk.count_dictionaries = slowly\n"
        "from privrisk_spark.cli.app import app\n"
        "app(args=sys.argv[1:], prog_name='privrisk')\n"
    )
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", slow, "release", str(small)],
        stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True, cwd=tmp_path,
    )  # fmt: skip
    os.close(slave)
    seen, until, pressed = b"", time.monotonic() + 300, False
    while time.monotonic() < until:
        if select.select([master], [], [], 1)[0]:
            try:
                seen += os.read(master, 65536)
            except OSError:  # the other side is closed
                break
        elif process.poll() is not None:
            break
        if not pressed and re.search(rb"stage 3 of \d+, count", seen):
            pressed = True
            os.kill(process.pid, signal.SIGINT)
    assert process.wait(60) == 3, seen
    os.close(master)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode())
    assert "INFO stage 3 of" in shown
    assert "privrisk: stopped by a signal" in shown
    assert " WARN " not in shown
    assert "Exception" not in shown
    status = json.loads((tmp_path / "vault" / "status.json").read_text())
    assert status["code"] == 3
    assert not list((tmp_path / "vault").glob(".scratch*"))


UNNEEDED = (
    "altair", "dp_accounting", "great_expectations", "privrisk_spark.kernels.dp.audit",
    "privrisk_spark.extensions.network.planning", "scipy.optimize", "scipy.stats", "sklearn", "sqlalchemy",
)  # fmt: skip
"""Modules that a release by risk without a ledger never imports, its report included."""


def test_release_by_risk_imports_only_what_it_needs(small: Path, tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from privrisk_spark.cli.app import app\n"
        "try:\n"
        "    app(args=sys.argv[1:], prog_name='privrisk')\n"
        "except SystemExit as ended:\n"
        "    assert not ended.code, ended.code\n"
        f"print(sorted(set({UNNEEDED}) & set(sys.modules)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "release", str(small)],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines()[-1] == "[]"
