"""An attempt of a private release without Spark: the places, keys and ledger of a release, and a table of one line."""

from __future__ import annotations

import hashlib
import hmac
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from ledgers import MECHANISM

from privrisk_spark.errors import BudgetError
from privrisk_spark.ledger.charge import Charge
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.request import Request
from privrisk_spark.runs.keystore import VaultKey
from privrisk_spark.runs.local_output import LocalOutput
from privrisk_spark.runs.sealing import release_digest, sealed
from privrisk_spark.runs.vaults import DirectoryVault
from privrisk_spark.runs.workplace import Workplace

STOPS = ("reserve", "obtain", "bind", "read", "pin", "commit", "show", "destroy", "end")
"""Steps before which a process can be killed."""


@dataclass(frozen=True)
class Asked:
    """What a process is started with: ledger, its own directory of output and vault, run id, where it is killed."""

    url: str
    root: str
    run_id: str
    stop: str | None = None


def run_attempt(asked: Asked, barrier: Barrier, results: Queue[tuple[str, str]]) -> None:
    """Take every step of a release; report how it ended."""
    barrier.wait()
    try:
        ended = attempt(asked)
    except BudgetError as error:
        ended = f"refused: {error}"
    results.put((asked.root, ended))


def attempt(asked: Asked) -> str:
    def step(name: str) -> None:
        if name == asked.stop:
            os.kill(os.getpid(), signal.SIGKILL)

    root = Path(asked.root)
    place = Workplace(LocalOutput((root / "out").resolve()), DirectoryVault((root / "vault").resolve()), asked.run_id)
    request = Request(
        lineage="adult", run_id=asked.run_id, epsilon="1", delta="1e-9", cap_epsilon="9", cap_delta="1e-7",
        mechanism=MECHANISM,
    )  # fmt: skip
    ledger, key = Ledger(asked.url), VaultKey(place.vault.keys, asked.run_id, lineage="adult")
    charge = Charge(stopping(ledger, step), request, str(place.output), stopping(key, step))
    with place.held():
        done = place.published()
        if done is not None:
            charge.confirm(release_digest(done))
            return "already released"
        secret = charge.begin(charge.reserve())
        step("read")
        charge.pin("1-table")
        content = hmac.new(secret, b"1-table", hashlib.sha256).hexdigest()
        (place.staging / "data").mkdir()
        (place.staging / "data" / "part-00000.csv").write_text(content)
        files = [{"name": "part-00000.csv", "bytes": 64, "sha256": hashlib.sha256(content.encode()).hexdigest()}]
        manifest = sealed({"run_id": asked.run_id, "date": "2026-01-31", "data": {"files": files}}, place.staging)

        def show() -> None:
            step("show")
            place.commit(manifest)

        charge.publish(release_digest(manifest), show)
        step("end")
    return "released"


def stopping(target: Any, step: Callable[[str], None]) -> Any:
    """The same object, with a stop before each of its methods."""

    class Stopping:
        def __getattr__(self, name: str) -> Any:
            def call(*arguments: Any, **options: Any) -> Any:
                step(name)
                return getattr(target, name)(*arguments, **options)

            return call

    return Stopping()


def shown_under(root: Path, run_id: str) -> tuple[str, dict[str, Any]] | None:
    """Place and manifest of the release under a root, its files held against it."""
    place = Workplace(LocalOutput((root / "out").resolve()), DirectoryVault((root / "vault").resolve()), run_id)
    found = place.published()
    return None if found is None else (str(place.output), found)
