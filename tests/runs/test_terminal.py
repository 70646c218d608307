"""What stands below the log of a run on a terminal, and that nothing does elsewhere."""

from __future__ import annotations

import io
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from privrisk_spark.runs import terminal
from privrisk_spark.runs.progress import LOGGER, Progress, configure_logging
from privrisk_spark.runs.terminal import Tasks, Terminal, how_far
from privrisk_spark.runs.verbosity import ASKED


class Screen(io.StringIO):
    """Standard error of a terminal."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """What is left on it in the end, by what a terminal does on the codes that move and erase."""
        rows, at = [""], 0
        for piece in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|[^\x1b]", self.getvalue()):
            if piece == "\n":
                at += 1
                rows += [""] * (at == len(rows))
            elif piece == "\x1b[2K":
                rows[at] = ""
            elif piece == "\x1b[1A":
                at -= 1
            elif len(piece) == 1 and piece != "\r":
                rows[at] += piece
        return [row for row in rows if row]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    monkeypatch.setattr(terminal, "EVERY", 0.01)
    monkeypatch.setattr(ASKED, "quiet", False)  # a command of another test may have asked for it
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    yield Screen()
    LOGGER.handlers.clear()
    LOGGER.propagate = True
    LOGGER.setLevel(logging.NOTSET)


def configured(screen: Screen, form: Literal["text", "json"]) -> None:
    """Send the log there, as a process does that begins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", screen)
        configure_logging(form)


@pytest.mark.parametrize(
    ("tasks", "seconds", "rows", "expected"),
    [
        ((0, 48), 9.0, 1000, "0 of 48 tasks"),
        ((12, 48), 30.0, 4_000_000, "12 of 48 tasks, 33,333 rows a second, about 1 min 30 s left"),
        ((1_500, 2_000), 30.0, None, "1,500 of 2,000 tasks, about 10 s left"),
        ((48, 48), 12.0, None, "48 of 48 tasks, about 0 s left"),
    ],
)
def test_the_line_says_how_far_a_stage_is(tasks: Tasks, seconds: float, rows: int | None, expected: str) -> None:
    assert how_far(tasks, seconds, rows) == expected


def run(tmp_path: Path, tasks: Callable[[], Tasks | None], *, log: bool = True) -> None:
    """Two stages, of which the first says how many rows there are and the second waits for the tasks to be asked."""
    asked = threading.Event()

    def told() -> Tasks | None:
        try:
            return tasks()
        finally:
            if looks.append(1) or len(looks) >= 3:
                asked.set()

    looks: list[int] = []

    @contextmanager
    def labelled(text: str) -> Iterator[Callable[[], Tasks | None] | None]:
        yield told if "count" in text else None

    progress = Progress(tmp_path / "vault", "r1", 2, labelled)
    with progress.stage("encode") as stage:
        stage.rows = 1000
    with progress.stage("count"):
        assert asked.wait(60)
        if log:
            LOGGER.warning("a line of the log")


def test_a_terminal_shows_the_tasks_of_a_stage_until_it_ends(screen: Screen, tmp_path: Path) -> None:
    configured(screen, "text")
    run(tmp_path, lambda: (2, 4))
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert re.search(r"stage 2 of 2, count \S+ +2 of 4 tasks, [0-9,]+ rows a second, about 0 s left", shown), shown
    # Nothing of it is left above, between or below the lines of the log.
    found = [line.split(" ", 2)[-1] for line in screen.lines()]
    assert found[0] == "stage 1 of 2: encode"
    assert found[2:4] == ["stage 2 of 2: count", "a line of the log"]
    assert found[4].startswith("stage 2 of 2: count done")
    assert len(found) == 5
    assert not [one for one in threading.enumerate() if one.name == "privrisk progress"]


@pytest.mark.parametrize("form", ["json", "text"])
def test_elsewhere_than_on_a_terminal_nobody_is_asked(
    form: Literal["text", "json"], monkeypatch: pytest.MonkeyPatch, screen: Screen, tmp_path: Path
) -> None:
    if form == "text":
        monkeypatch.setattr(screen, "isatty", lambda: False)
    configured(screen, form)
    assert not any(isinstance(handler, Terminal) for handler in LOGGER.handlers)
    asked: list[int] = []

    @contextmanager
    def labelled(_text: str) -> Iterator[Callable[[], Tasks | None]]:
        yield lambda: asked.append(1) or (1, 2)

    with Progress(tmp_path / "vault", "r1", 1, labelled).stage("count"):
        threading.Event().wait(0.1)
    assert asked == []
    assert "\033" not in screen.getvalue()


def test_a_run_does_not_fail_by_its_progress(screen: Screen, tmp_path: Path) -> None:
    def refused() -> Tasks:
        raise RuntimeError("the connection is gone")

    configured(screen, "text")
    run(tmp_path, refused)
    assert "tasks" not in screen.getvalue()
    run(tmp_path, lambda: None)
    assert "tasks" not in screen.getvalue()


def test_who_asks_for_quiet_sees_warnings_alone(
    screen: Screen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(ASKED, "quiet", True)
    configured(screen, "text")
    asked: list[int] = []

    @contextmanager
    def labelled(_text: str) -> Iterator[Callable[[], Tasks | None]]:
        yield lambda: asked.append(1) or (1, 2)

    with Progress(tmp_path / "vault", "r1", 1, labelled).stage("count"):
        threading.Event().wait(0.1)
        LOGGER.warning("a warning")
    assert asked == []
    assert [line.split(" ", 1)[-1] for line in screen.lines()] == ["WARNING a warning"]


def test_a_stage_nobody_counts_tasks_of_says_how_long_it_runs(screen: Screen, tmp_path: Path) -> None:
    configured(screen, "text")
    with Progress(tmp_path / "vault", "r1", 1).stage("find"):
        threading.Event().wait(0.2)
    assert re.search(r"stage 1 of 1, find .* 0 s", screen.getvalue())
    assert len(screen.lines()) == 2


def test_a_line_of_the_log_stands_as_it_is(screen: Screen) -> None:
    handler = Terminal(screen)
    said = "[bold]not markup[/bold] " + "x" * 300
    handler.emit(logging.LogRecord("a", logging.INFO, "", 0, said, (), None))
    assert screen.getvalue() == f"{said}\n"
