"""What stands below the log of a run on a terminal, and that nothing does elsewhere."""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest

from privrisk_spark.runs import terminal
from privrisk_spark.runs.progress import LOGGER, Progress, configure_logging
from privrisk_spark.runs.terminal import Tasks, Terminal, progress_line


class Screen(io.StringIO):
    """Standard error of a terminal; what it shows in the end, line by line, is what is left of each."""

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        return [line.split("\r\033[K")[-1] for line in self.getvalue().split("\n")]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Screen]:
    monkeypatch.setattr(terminal, "EVERY", 0.01)
    yield Screen()
    LOGGER.handlers.clear()
    LOGGER.propagate = True


def configured(screen: Screen, form: Literal["text", "json"]) -> None:
    """Send the log there, as a process does that begins."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", screen)
        configure_logging(form)


@pytest.mark.parametrize(
    ("tasks", "seconds", "rows", "expected"),
    [
        ((0, 48), 9.0, 1000, "stage 3 of 7, count: 0 of 48 tasks"),
        ((12, 48), 30.0, 4_000_000, "stage 3 of 7, count: 12 of 48 tasks, 33,333 rows a second, about 1 min 30 s left"),
        ((1_500, 2_000), 30.0, None, "stage 3 of 7, count: 1,500 of 2,000 tasks, about 10 s left"),
        ((48, 48), 12.0, None, "stage 3 of 7, count: 48 of 48 tasks, about 0 s left"),
    ],
)
def test_the_line_says_how_far_a_stage_is(tasks: Tasks, seconds: float, rows: int | None, expected: str) -> None:
    assert progress_line("stage 3 of 7, count", tasks, seconds, rows) == expected


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
    shown = screen.getvalue()
    assert "\r\033[Kstage 2 of 2, count: 2 of 4 tasks, " in shown
    assert " rows a second, about 0 s left" in shown
    # Nothing of it is left above, between or below the lines of the log.
    found = [line.split(" ", 2)[-1] for line in screen.lines()]
    assert found[:3] == ["stage 1 of 2: encode", found[1], "stage 2 of 2: count"]
    assert found[3] == "a line of the log"
    assert found[4].startswith("stage 2 of 2: count done")
    assert found[5:] == [""]
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


def test_a_long_line_does_not_wrap(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    handler = Terminal(screen)
    handler.show("x" * 100)
    assert screen.lines() == ["x" * 19]
    handler.emit(logging.LogRecord("a", logging.INFO, "", 0, "said", (), None))
    assert screen.lines() == ["said", ""]
