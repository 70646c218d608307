"""Directories of parts for stages that are tested by themselves."""

from __future__ import annotations

from pathlib import Path

from privrisk_spark.storage.parts import LocalParts


def at(path: Path) -> LocalParts:
    """Make a directory of parts, if it is not there."""
    path.mkdir(parents=True, exist_ok=True)
    return LocalParts(str(path))
