"""Floors of benchmarks in this process, where what is tested is what a benchmark makes of what it measured.

That a floor runs as a program, and how a program is measured, ``tests/benchmarks/test_floor.py`` shows.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks import case_study
from benchmarks.measure import Measured


def measured(act: Callable[[], object]) -> Measured:
    """Call it, and measure it as if it were a program."""
    said = io.StringIO()
    began, before = time.perf_counter(), time.process_time()
    with redirect_stdout(said):
        act()
    return Measured(time.perf_counter() - began, 100.0, time.process_time() - before, 0, said.getvalue(), "")


def run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the floor of a subject by calling it, and once."""

    def measure(command: Sequence[str], *, directory: Path) -> Measured:
        assert (command[1], directory) == ("-m", case_study.root())
        return measured(lambda: import_module(command[2]).main(list(command[3:])))

    monkeypatch.setattr(case_study, "measure", measure)
    monkeypatch.setattr(case_study, "_FLOOR_RUNS", 1)
