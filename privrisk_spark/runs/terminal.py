"""The last line of a terminal: how far a stage is, until the next line of the log takes its place."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.text import Text

Tasks = tuple[int, int]
"""Tasks that have ended, of how many that Spark knows of by now."""

EVERY = 1.0
"""Seconds between two looks; a stage that ends before the first has no line."""


class Terminal(logging.StreamHandler[TextIO]):
    """Writes the log to a terminal, above the line that is written over."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.console = Console(file=stream, soft_wrap=True, highlight=False)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line of the log."""
        try:
            self.console.print(Text(self.format(record)))
        except Exception:
            self.handleError(record)


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
    if not terminals:
        yield
        return
    ended = threading.Event()
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TextColumn("{task.fields[said]}", markup=False),
    )
    # Lines that other programs write are theirs: only what goes through the console is kept above the line.
    line = Progress(
        *columns,
        console=terminals[0].console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    thread = threading.Thread(
        target=_show, args=(line, stage, tasks, rows, ended), name="privrisk progress", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(5)  # a look that Java does not answer any more does not hold up the end
        line.stop()


def _show(
    line: Progress,
    stage: str,
    tasks: Callable[[], Tasks | None] | None,
    rows: int | None,
    ended: threading.Event,
) -> None:
    began = time.monotonic()
    bar: TaskID | None = None
    while not ended.wait(EVERY):
        try:
            found = None if tasks is None else tasks()
        except Exception:  # who cannot be asked is as good as who does not know: a run never fails by its progress
            found = None
        if ended.is_set():
            return
        if bar is None:
            line.start()
            bar = line.add_task(stage, total=None, said="")
        seconds = time.monotonic() - began
        if found is None:
            line.update(bar, completed=0, total=None, said=_duration(seconds), refresh=True)
        else:
            line.update(bar, completed=found[0], total=found[1], said=how_far(found, seconds, rows), refresh=True)


def how_far(tasks: Tasks, seconds: float, rows: int | None) -> str:
    """Return how far a stage is.

    Parameters
    ----------
    tasks : pair of int
        Ended, of all. Spark knows of the tasks of jobs that have begun; the time left is theirs.
    seconds : float
        Since the stage began.
    rows : int, optional
        Of the table.
    """
    done, total = tasks
    parts = [f"{done:,} of {total:,} tasks"]
    if done and seconds > 0:
        if rows is not None:
            parts.append(f"{rows * done / total / seconds:,.0f} rows a second")
        parts.append(f"about {_duration(seconds * (total - done) / done)} left")
    return ", ".join(parts)


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60:02} s"


def log_handler(*, progress: bool) -> logging.StreamHandler[TextIO]:
    """Return what writes the log to standard error, which may be a terminal.

    Parameters
    ----------
    progress : bool
        Whether a terminal shows how far a stage is.
    """
    return Terminal(sys.stderr) if progress and sys.stderr.isatty() else logging.StreamHandler(sys.stderr)
