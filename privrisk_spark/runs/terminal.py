"""The last line of a terminal: how far a stage is, until the next line of the log takes its place."""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

Tasks = tuple[int, int]
"""Tasks that have ended, of how many that Spark knows of by now."""

_ERASE = "\r\033[K"
EVERY = 1.0
"""Seconds between two looks; a stage that ends before the first has no line."""


class Terminal(logging.StreamHandler[TextIO]):
    """Writes the log to a terminal, below it one line that is written over.

    Parameters
    ----------
    stream : TextIO
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._shown = False

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line of the log in place of the line below it."""
        self.show("")
        super().emit(record)

    def show(self, text: str) -> None:
        """Write a line over the one that is there; an empty text takes it away."""
        with self.lock or threading.RLock():
            if text or self._shown:
                width = shutil.get_terminal_size().columns - 1
                self.stream.write(_ERASE + text[:width])
                self.stream.flush()
            self._shown = bool(text)


@contextmanager
def shown(stage: str, tasks: Callable[[], Tasks | None] | None, rows: int | None) -> Iterator[None]:
    """Show on the terminal the log goes to, if it is one, how far a stage is, while a block runs.

    Parameters
    ----------
    stage : str
        What the line begins with.
    tasks : callable or None
        Asked for Spark's tasks every second, in a thread of its own; None where nobody knows.
    rows : int, optional
        Of the table, if they are known and may be told; the line then says how many are done a second.
    """
    terminals = [one for one in logging.getLogger("privrisk_spark").handlers if isinstance(one, Terminal)]
    if not terminals or tasks is None:
        yield
        return
    ended = threading.Event()
    args = (terminals[0], stage, tasks, rows, ended)
    thread = threading.Thread(target=_show, args=args, name="privrisk progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)  # a look that Java does not answer any more does not hold up the end
        terminals[0].show("")


def _show(
    terminal: Terminal, stage: str, tasks: Callable[[], Tasks | None], rows: int | None, ended: threading.Event
) -> None:
    began = time.monotonic()
    while not ended.wait(EVERY):
        try:
            found = tasks()
        except Exception:  # who cannot be asked is as good as who does not know: a run never fails by its progress
            found = None
        if found is not None and not ended.is_set():
            terminal.show(progress_line(stage, found, time.monotonic() - began, rows))


def progress_line(stage: str, tasks: Tasks, seconds: float, rows: int | None) -> str:
    """Return how far a stage is.

    Parameters
    ----------
    stage : str
    tasks : pair of int
        Ended, of all. Spark knows of the tasks of jobs that have begun; the time left is theirs.
    seconds : float
        Since the stage began.
    rows : int, optional
        Of the table.
    """
    done, total = tasks
    parts = [f"{stage}: {done:,} of {total:,} tasks"]
    if done and seconds > 0:
        if rows is not None:
            parts.append(f"{rows * done / total / seconds:,.0f} rows a second")
        parts.append(f"about {_duration(seconds * (total - done) / done)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"


def log_handler() -> logging.StreamHandler[TextIO]:
    """Return what writes the log to standard error, which may be a terminal."""
    return Terminal(sys.stderr) if sys.stderr.isatty() else logging.StreamHandler(sys.stderr)
