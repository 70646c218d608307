"""Run ``python -m reproduce`` in this process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass

from reproduce.__main__ import main


@dataclass(frozen=True)
class Ended:
    """Exit code of a run, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def reproduce(*arguments: str) -> Ended:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as stopped:  # argparse
            code = int(stopped.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())
