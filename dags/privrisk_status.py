"""What a run of a release said of itself in the vault's ``status.json``, and whether another attempt may help.

Nothing but the standard library is needed, so that it runs where Airflow does.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

FINAL = frozenset({1, 2})
"""Exit codes that another attempt cannot change: refused by a check or the budget; policy or input must be mended."""

Version = tuple[int, int, int]
"""Tells one writing of a file from the next, by no clock but that of the file system itself."""


@dataclass(frozen=True)
class Answer:
    """The last word of a run.

    Attributes
    ----------
    code : int
        Exit code.
    text : str
        What happened, and what to do.
    fresh : bool
        Whether it was said since the version that was given; else it is of an earlier attempt.
    """

    code: int
    text: str
    fresh: bool

    @property
    def final(self) -> bool:
        """Whether another attempt cannot help. An old answer decides nothing: its cause may be mended."""
        return self.fresh and self.code in FINAL


def version_of(status: Path) -> Version | None:
    """Return the version of a file that is replaced as a whole; None where there is none."""
    try:
        return _version(os.stat(status))
    except OSError:
        return None


def answer_of(status: Path, run_id: str, *, before: Version | None) -> Answer | None:
    """Return the last word of a run; None if it is not to be had: missing, torn, of another run, or still at work.

    Parameters
    ----------
    status : Path
        ``status.json`` of the vault.
    before : Version or None
        Of the file before the attempt began.
    """
    try:
        with status.open("rb") as stream:
            version = _version(os.fstat(stream.fileno()))
            document = json.load(stream)
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or document.get("run_id") != run_id:
        return None
    code = document.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        return None
    said = [document.get(key) for key in ("message", "what_to_do")]
    return Answer(code, " ".join(text for text in said if isinstance(text, str) and text), version != before)


def _version(found: os.stat_result) -> Version:
    return found.st_ino, found.st_mtime_ns, found.st_size
