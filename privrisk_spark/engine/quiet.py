"""Silence of compiled libraries that write to standard output themselves, whatever their options say."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_STANDARD_OUTPUT = 1
_LOCK = threading.Lock()
"""Tasks of the embedded engine are threads of one process."""


@contextmanager
def quiet() -> Iterator[None]:
    """Drop what is written to the process's standard output meanwhile, by C code as well.

    HiGHS has a line of its developers' that no option turns off: ``HighsMipSolverData::…tmpSolver.run();``, printed
    where an integer solution must be repaired (scipy 1.17). Only for a task, whose process writes nothing else.
    """
    with _LOCK:
        kept, nowhere = os.dup(_STANDARD_OUTPUT), os.open(os.devnull, os.O_WRONLY)
        flush = ctypes.CDLL(None).fflush
        flush(None)
        os.dup2(nowhere, _STANDARD_OUTPUT)
        try:
            yield
        finally:
            flush(None)  # what C has not written yet must not be written later
            os.dup2(kept, _STANDARD_OUTPUT)
            os.close(kept)
            os.close(nowhere)
