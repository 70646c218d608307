"""Where a local session keeps what Spark spills, shuffles and unpacks: for its owner alone, and gone at the end.

Spark's own choice is the system's temporary directory, where others may read, and where a process that is killed leaves
what it wrote: values of the table among it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from privrisk_spark.errors import EngineError
from privrisk_spark.storage.locks import taken

PREFIX = "privrisk-session-"
_LOCK = "in-use"
_YOUNG = 600
"""Seconds in which a directory without a lock file may be one that is being made."""


class LocalDirectory:
    """One directory of this process in each place that Spark may write to; mode 0700.

    Each holds a lock file. The system gives up a dead process's lock, so that the next session in this place knows, and
    removes, what a killed one left.

    Attributes
    ----------
    paths : tuple of Path
        In the order of the places.
    """

    def __init__(self, places: Sequence[Path]) -> None:
        self._locks: list[int] = []
        self._owner = os.getpid()
        paths = []
        for place in places:
            try:
                place.mkdir(parents=True, exist_ok=True)
                sweep(place)
                paths.append(self._make(place))
            except OSError as error:
                raise EngineError(
                    f"'{place}', where Spark is to keep what it spills, cannot be used ({error.strerror}); name "
                    "another directory in SPARK_LOCAL_DIRS or TMPDIR."
                ) from error
        self.paths = tuple(paths)
        atexit.register(self.remove)

    def _make(self, place: Path) -> Path:
        while True:
            path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
            lock = os.open(path / _LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
            if taken(lock):
                self._locks.append(lock)
                return path
            os.close(lock)  # a sweep came between

    def remove(self) -> None:
        """Remove the directories; what Java still writes goes with the next session in the place."""
        if os.getpid() != self._owner:  # a copy of the process, by fork
            return
        for path in self.paths:
            shutil.rmtree(path, ignore_errors=True)
        while self._locks:
            os.close(self._locks.pop())
        atexit.unregister(self.remove)

    @property
    def log(self) -> Path:
        """What Spark says of warnings and errors, which may quote rows of the table."""
        return self.paths[0] / "spark.log"


def places() -> list[Path]:
    """Return where Spark would write: ``SPARK_LOCAL_DIRS``, else the system's temporary directory."""
    named = [place.strip() for place in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if place.strip()]
    return [Path(place).absolute() for place in named] or [Path(tempfile.gettempdir())]


def sweep(place: Path) -> None:
    """Remove directories of this user's dead sessions from a place."""
    for path in place.glob(f"{PREFIX}*"):
        # Who may write to the place may put anything there under such a name.
        with suppress(OSError):
            info = path.lstat()
            if path.is_symlink() or not path.is_dir() or info.st_uid != os.geteuid():
                continue
            if _dead(path, info.st_mtime):
                shutil.rmtree(path, ignore_errors=True)


def _dead(path: Path, modified: float) -> bool:
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - modified > _YOUNG
    try:
        return taken(lock)
    finally:
        os.close(lock)
