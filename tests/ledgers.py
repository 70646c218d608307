"""Requests that the tests of the ledger make, here so that processes they start can import them."""

from __future__ import annotations

from contextlib import suppress
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier, Event
from time import sleep
from typing import Any

from privrisk_spark import ledger_server
from privrisk_spark.errors import BudgetError, EngineError
from privrisk_spark.ledger import Ledger, Reservation

MECHANISM = {"mode": "local", "k": 31, "keep": "1081074828/4294967296"}


def reserve(ledger: Ledger, run_id: str = "r1", epsilon: str = "1", delta: str = "1e-9", **other: Any) -> Reservation:
    arguments = {"lineage": "adult", "cap_epsilon": "4", "cap_delta": "1e-7", "mechanism": MECHANISM} | other
    return ledger.reserve(run_id=run_id, epsilon=epsilon, delta=delta, **arguments)


def would_cost(ledger: Ledger, run_id: str = "r1", epsilon: str = "1", **other: Any) -> Reservation:
    arguments = {"lineage": "adult", "delta": "1e-9", "cap_epsilon": "4", "cap_delta": "1e-7"} | other
    return ledger.would_cost(run_id=run_id, epsilon=epsilon, mechanism=MECHANISM, **arguments)


def compete(url: str, worker: int, barrier: Barrier, results: Queue[tuple[int, int, bool, int]], locks: bool) -> None:
    """Reserve until the cap is reached; report what was won, what was refused, the shared run, and lost races."""
    if not locks:
        ledger_server._lock = lambda connection, name: None
    ledger = Ledger(url)
    lost = 0

    def insist(run_id: str, epsilon: str, delta: str) -> bool:
        nonlocal lost
        while True:
            try:
                return reserve(ledger, run_id, epsilon=epsilon, delta=delta).fresh
            except EngineError:
                if locks:
                    raise
                lost += 1

    barrier.wait()
    won = refused = 0
    shared = insist("shared", "0", "1e-9")
    while not refused:
        try:
            won += insist(f"w{worker}-{won}", "0.3", "0")
        except BudgetError:
            refused += 1
    results.put((won, refused, shared, lost))


def stop_before_commit(url: str, inserted: Event) -> None:
    """Write a reservation, say so, and never come to the commit."""
    ledger = Ledger(url)
    append = ledger._append

    def appending(*arguments: Any) -> None:
        append(*arguments)
        inserted.set()
        sleep(600)

    ledger._append = appending  # type: ignore[method-assign]
    reserve(ledger, "killed", epsilon="3")


def stop_after_reserve(url: str, reserved: Event) -> None:
    """Reserve, say so, and never publish."""
    with suppress(BudgetError):
        reserve(Ledger(url), "killed", epsilon="3")
    reserved.set()
    sleep(600)
