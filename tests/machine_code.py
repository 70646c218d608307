"""Numba's code for the tests: kept from run to run, and compiled by one process."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".cache" / "machine-code"
WEEK = 7 * 24 * 3600
"""Seconds; another process may still use what is younger."""


def keep() -> Path:
    """Tell Numba, in this process and in those it starts, where to keep code; throw away what is a week old."""
    CACHE.mkdir(parents=True, exist_ok=True)
    for other in CACHE.iterdir():
        if other.is_dir() and other.stat().st_mtime < time.time() - WEEK:
            shutil.rmtree(other, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = str(CACHE)
    return CACHE


@contextmanager
def alone(directory: Path, chapter: str | None) -> Iterator[None]:
    """One process at a time compiles a chapter of the kernels; another chapter is none of its business."""
    with (directory / f"lock-{chapter or 'others'}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_alone(directory: Path) -> None:
    """What one process compiles, others wait for and load: Numba looks for it before it compiles.

    They wait for functions of the same chapter of the kernels alone: what a network's functions take, which is most of
    a minute, holds no search of a lattice up.
    """
    from numba.core.dispatcher import Dispatcher

    from privrisk_spark.machine_code import chapter_of

    compile_now = Dispatcher.compile
    inside = False

    def compile_once(dispatcher: Dispatcher, signature: Any) -> Any:
        nonlocal inside
        if inside:
            return compile_now(dispatcher, signature)
        with alone(directory, chapter_of(dispatcher.py_func)):
            inside = True
            try:
                return compile_now(dispatcher, signature)
            finally:
                inside = False

    Dispatcher.compile = compile_once


def main() -> None:
    """Compile what a search of a record's lattice runs, unless it is there."""
    compile_alone(keep())
    import numpy as np

    from privrisk_spark.kernels.disclosure.objective import LeastRisk
    from privrisk_spark.kernels.search.branch_and_bound import branch_and_bound
    from privrisk_spark.kernels.search.record import RecordLattice

    chain = [np.array([1.0, 0.0])] * 2
    lattice = RecordLattice.of_rows(np.array([[0, 0], [1, 0]]), chain, chain)
    assert branch_and_bound(lattice, LeastRisk(1.0)) is not None


if __name__ == "__main__":
    main()
