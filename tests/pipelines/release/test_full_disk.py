"""A disk that is full from some write on: exit code 3 and a line, nothing half published, and the next run is as ever.

``PRIVRISK_EVERY_WRITE=1`` fills it before every write of the driver in turn; else a few are taken, others each time the
number of writes changes.
"""

from __future__ import annotations

import errno
import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from product import Privrisk, Ran
from small_release import CHARGED, charged, digests, policy, write_table

WRITES = ("fsync", "mkdir", "rename", "replace", "link")
"""What the driver's code does to files goes through these functions, and `open` for writing."""


class Disk:
    """The file system below a root, which is full from its ``last`` write on."""

    def __init__(self, root: Path, last: int | None) -> None:
        self.root, self.last, self.writes = str(root), last, 0

    def write(self, path: object) -> None:
        if isinstance(path, str | os.PathLike) and not os.fspath(path).startswith(self.root):
            return
        self.writes += 1
        if self.last is not None and self.writes > self.last:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def filling(monkeypatch: pytest.MonkeyPatch, disk: Disk) -> Iterator[None]:
    def guarded(usual: Callable[..., Any]) -> Callable[..., Any]:
        def write(path: Any, *more: Any, **named: Any) -> Any:
            disk.write(path)
            return usual(path, *more, **named)

        return write

    usual_open = os.open

    def opened(path: Any, flags: int, *more: Any, **named: Any) -> Any:
        if flags & os.O_CREAT:
            disk.write(path)
        return usual_open(path, flags, *more, **named)

    with monkeypatch.context() as patch:
        for name in WRITES:
            patch.setattr(os, name, guarded(getattr(os, name)))
        patch.setattr(os, "open", opened)
        yield


@pytest.mark.parametrize(
    "kind", [pytest.param("risk", marks=pytest.mark.thorough("a private release writes the same and a ledger")), "dp"]
)
def test_a_disk_that_is_full_from_some_write_on(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("RELEASE_KEY", "3c" * 32)
    table = write_table(tmp_path)
    more = [("output.files", 2), *([("guarantee.key", "env:RELEASE_KEY")] if kind == "dp" else [])]

    def run(root: Path, file: str, last: int | None) -> tuple[Ran, int]:
        disk = Disk(root, last)
        with filling(monkeypatch, disk):
            return privrisk(file, "--run-id", "r1", root=root), disk.writes

    straight, writes = run(tmp_path / "straight", policy(kind, table, tmp_path / "straight", *more), None)
    assert straight.code == 0, straight.err
    expected = digests(tmp_path / "straight")
    assert writes > 20
    lasts = list(range(writes))
    if not os.environ.get("PRIVRISK_EVERY_WRITE"):
        lasts = sorted(random.Random(writes).sample(lasts, 6))
    # Each attempt goes on with what the one before it left, but every third ends the run and the next begins another.
    for number, last in enumerate(lasts):
        if number % 3 == 0:
            root = tmp_path / f"full-{last}"
            file = policy(kind, table, root, *more)
        ran, done = run(root, file, last)
        faults = [line for line in ran.err.splitlines() if " INFO " not in line]
        assert (ran.code, done > last) in ((3, True), (0, False)), (last, ran.err)
        if ran.code:
            assert len([line for line in faults if line.startswith("privrisk: ")]) == 1, (last, ran.err)
        assert not any("Traceback" in line or " At " in line for line in faults), (last, ran.err)
        if (root / "out" / "manifest.json").exists():
            assert json.loads((root / "out" / "manifest.json").read_text())["run_id"] == "r1"
        events = charged(root) if (root / "ledger.db").exists() else []
        assert events == CHARGED[: len(events)]
        if number % 3 != 2 and number < len(lasts) - 1:
            continue
        again, _ = run(root, file, None)
        assert again.code == 0, (last, again.err)
        assert digests(root) == expected, last
        assert charged(root) == (CHARGED if kind == "dp" else [])
        hidden = [path.name for place in ("out", "vault") for path in (root / place).iterdir() if path.name[0] == "."]
        assert hidden == [".privrisk.json"] * 2, (last, hidden)
