"""Run a command as a child process: wall time, processor time and peak memory of its process tree, exit code."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 2**20
_TAIL = 4_000  # characters of output kept


@dataclass(frozen=True)
class Measured:
    """What a command took.

    Attributes
    ----------
    seconds : float
        Wall time from before the start to after the end of the command.
    peak_mb : float
        Largest sum of resident memory (MiB) over the command and all its descendants at any sample. Pages
        shared between processes count once for each, so it errs upwards; a peak shorter than the sampling
        interval can be missed. (The kernel's own maximum is of no use: a child inherits its parent's.)
    processor_seconds : float
        User and system time of the command and all its descendants, each as it was last seen: what a process does
        after the last sample of it is missing.
    exit_code : int
        Minus the signal number if a signal ended the command.
    output : str
        What the command wrote to standard output.
    errors : str
        The end of what it wrote to standard error.
    """

    seconds: float
    peak_mb: float
    processor_seconds: float
    exit_code: int
    output: str
    errors: str


def measure(
    command: Sequence[str],
    *,
    environment: Mapping[str, str | None] | None = None,
    directory: Path | None = None,
    interval: float = 0.05,
    beside: Sequence[int] = (),
) -> Measured:
    """Run a command to its end and measure it.

    Parameters
    ----------
    command : sequence of str
        Program and arguments; no shell.
    environment : mapping of str to str or None, optional
        Added to the environment of this process; None takes a variable away.
    directory : Path, optional
        Working directory of the command.
    interval : float, default 0.05
        Seconds between two samples of memory.
    beside : sequence of int
        Processes that run already and work for the command; their memory, with that of their descendants, counts too.

    Raises
    ------
    OSError
        If the command cannot be started.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        # a session of its own: descendants whose parent has ended are still found by it
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=directory,
            env={name: value for name, value in (os.environ | (environment or {})).items() if value is not None},
            start_new_session=True,
        )
        sampler = _Sampler((child.pid, *beside), interval)
        sampler.start()
        try:
            exit_code = child.wait()  # blocks, so that the end is seen at once and not at the next sample
            seconds = time.perf_counter() - start
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        finally:
            sampler.stop()
        output.seek(0)
        errors.seek(0)
        return Measured(
            seconds=seconds,
            peak_mb=sampler.peak_mb,
            processor_seconds=sampler.processor_seconds,
            exit_code=exit_code,
            output=output.read().decode(errors="replace"),
            errors=errors.read().decode(errors="replace")[-_TAIL:],
        )


class _Sampler(threading.Thread):
    """Samples a process tree until stopped; ``peak_mb`` is the largest sum of memory seen."""

    def __init__(self, roots: Sequence[int], interval: float) -> None:
        super().__init__(daemon=True)
        self.peak_mb = 0.0
        self._seconds: dict[int, float] = {}
        self._roots = frozenset(roots)
        self._interval = interval
        self._stopped = threading.Event()

    def run(self) -> None:
        while True:
            seen = _seen(self._roots)
            self.peak_mb = max(self.peak_mb, sum(pages for pages, _ in seen.values()) * _PAGE_MB)
            self._seconds |= {process: ticks * _TICK for process, (_, ticks) in seen.items()}
            if self._stopped.wait(self._interval):
                return

    def stop(self) -> None:
        self._stopped.set()
        self.join()

    @property
    def processor_seconds(self) -> float:
        """Of all processes that were seen, as they were seen last."""
        return sum(self._seconds.values())


def _seen(roots: Set[int]) -> dict[int, tuple[int, int]]:
    """Return resident pages, and ticks of user and system time, of processes, their descendants and their sessions."""
    parent: dict[int, int] = {}
    members = set(roots)
    found: dict[int, tuple[int, int]] = {}
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit():
            continue
        try:
            stat = Path(entry.path, "stat").read_text()
        except OSError:  # it ended meanwhile
            continue
        # the name, in parentheses, may hold anything; then state, parent, group, session, …, user and system time, …,
        # resident pages
        fields = stat[stat.rindex(")") + 2 :].split()
        process = int(entry.name)
        parent[process] = int(fields[1])
        found[process] = int(fields[21]), int(fields[11]) + int(fields[12])
        if int(fields[3]) in roots:
            members.add(process)
    grown = True
    while grown:
        more = {process for process, above in parent.items() if above in members} - members
        members |= more
        grown = bool(more)
    return {process: found[process] for process in members if process in found}
