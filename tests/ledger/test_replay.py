"""Events written past the program: each that does not follow from those before it stops its lineage, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from ledgers import InFile, OnServer, publish, reserve

from privrisk_spark.errors import EngineError
from privrisk_spark.ledger.chain import first_link, link
from privrisk_spark.ledger.ledger import Ledger
from privrisk_spark.ledger.request import digest_of
from privrisk_spark.ledger.storage import events

Place = InFile | OnServer
LINE = {
    "lineage": "adult", "sequence": 3, "run_id": "r2", "state": "reserved", "epsilon": "0.5", "delta": "0",
    "cap_epsilon": "4", "cap_delta": "1e-7", "spent_epsilon_before": "2", "spent_epsilon_after": "2.5",
    "spent_delta_before": "2e-9", "spent_delta_after": "0.000000002", "mechanism": "{}",
    "mechanism_digest": digest_of("{}"), "nothing_left_the_zone": False, "created_at": "now", "asked": "{}",
}  # fmt: skip
FREE = {"epsilon": "0", "delta": "0", "spent_epsilon_after": "2", "spent_delta_after": "2e-9"}
NEW = {
    "sequence": 1, "spent_epsilon_before": "0", "spent_epsilon_after": "0.5", "spent_delta_before": "0",
    "spent_delta_after": "0",
}  # fmt: skip


def write(ledger: Ledger, **changes: Any) -> None:
    """Append a line with the hash that it would have."""
    line = LINE | changes
    name = line["lineage"]
    accounts, _ = ledger.histories()
    head = accounts[name].head if name in accounts else first_link(name)
    with ledger._storage.transaction(None, read_only=False) as connection:
        connection.execute(events.insert(), {"chain": link(head, line), **line})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"epsilon": "2.1", "spent_epsilon_after": "4.1", "composed_epsilon": "4"},
        {"state": "noted", "place": "/out", **FREE},
    ],
)
def test_replay_of_a_line_that_follows_takes_it(ledger: Ledger, changes: dict[str, Any]):
    """The line the refused ones are made from."""
    reserve(ledger)
    reserve(ledger, "r0")
    write(ledger, **changes)
    assert "r2" in [run.run_id for run in ledger.balance("adult").runs]


@pytest.mark.parametrize(
    "changes",
    [
        {"spent_epsilon_before": "1", "spent_epsilon_after": "1.5"},
        {"spent_delta_before": "0", "spent_delta_after": "0"},
        {"spent_epsilon_after": "2"},
        {"spent_epsilon_after": "2.49999999999999999999999999999999999999999999999999"},
        {"epsilon": "-2", "spent_epsilon_after": "0"},
        {"epsilon": "NaN", "spent_epsilon_after": "NaN", "cap_epsilon": "NaN"},
        {"epsilon": "Infinity", "spent_epsilon_after": "Infinity", "cap_epsilon": "Infinity"},
        {"epsilon": "2.1", "spent_epsilon_after": "4.1"},
        {"epsilon": "2.1", "spent_epsilon_after": "4.1", "cap_epsilon": "5"},
        {"cap_delta": "1.1e-7"},
        {"cap_epsilon": "2.4"},
        {"delta": "1e-7", "spent_delta_after": "1.02e-7"},
        {"state": "committed", "spent_epsilon_after": "2"},
        {"chain": "no hash"},
        {"chain": "A" * 64},
        {"chain": None},
        {"mechanism_digest": "0" * 64},
        {"run_id": "r\u200b2"},
        {"run_id": "r\n2"},
        {"run_id": " "},
        {"state": "void", "run_id": "r1", "spent_epsilon_after": "1.5", "nothing_left_the_zone": True},
        {"state": "void", "run_id": "r9", "spent_epsilon_after": "1.5", "nothing_left_the_zone": True},
        {"state": "reserved", "nothing_left_the_zone": True},
        {"state": "free"},
        {"asked": None},
        {"composed_epsilon": "4.1"},
        {"composed_epsilon": "NaN"},
        {"composed_epsilon": "-1"},
        {"state": "noted", "place": "/out"},
        {"state": "noted", **FREE},
        {"state": "moved", **FREE},
        {"state": "accepted"},
    ],
)
def test_replay_of_a_line_that_does_not_follow_refuses_its_lineage_alone(ledger: Ledger, changes: dict[str, Any]):
    reserve(ledger)
    reserve(ledger, "r0")
    write(ledger, **changes)
    for act in (lambda: ledger.balance("adult"), lambda: reserve(ledger, "r3")):
        with pytest.raises(EngineError, match="event 3 of the ledger"):
            act()
    assert reserve(ledger, lineage="other").fresh
    assert list(ledger.histories()[1]) == ["adult"]


@pytest.mark.parametrize("state", ["bound", "pinned", "committed"])
@pytest.mark.parametrize("closed", ["void", "committed"])
def test_replay_of_a_run_that_goes_on_after_its_end_refuses_it(ledger: Ledger, closed: str, state: str):
    reserve(ledger)
    if closed == "void":
        ledger.void(lineage="adult", run_id="r1", reason="x", nothing_left_the_zone=True)
    else:
        publish(ledger)
    account = ledger.histories()[0]["adult"]
    run, number = account.runs["r1"], len(account.chain) + 1
    spent = {f"spent_{name}_{when}": str(getattr(ledger.balance("adult"), f"spent_{name}"))
             for name in ("epsilon", "delta") for when in ("before", "after")}  # fmt: skip
    held = {"key_commitment": "k", "place": "/out", "snapshot": "s", "release_digest": "d"}
    again = {"epsilon": "1", "delta": "1e-9", "mechanism": run.mechanism, "mechanism_digest": run.mechanism_digest}

    def go_on() -> None:
        write(ledger, sequence=number, run_id="r1", state=state, **again, **spent, **held)
        ledger.balance("adult")

    with pytest.raises(EngineError):
        go_on()


def test_lineages_have_the_names_that_the_program_writes(ledger: Ledger):
    ledger.create()
    write(ledger, **NEW, lineage="m\u00fcnchen 2026_\u6771\u4eac")
    assert ledger.lineages() == ("m\u00fcnchen 2026_\u6771\u4eac",)


@pytest.mark.parametrize(
    "name",
    ["", " ", "x" * 201, "a\nb", "a\x7f", "a\u00a0b", "a\u200bb", "\u2028", "\ufeffa", "a\ue000", "Census", " a", "a "],
)
def test_lineages_pass_over_a_name_that_no_program_would_write(ledger: Ledger, name: str):
    reserve(ledger)
    write(ledger, **NEW, lineage=name)
    assert reserve(ledger, "r2").fresh
    assert ledger.lineages() == ("adult",)
    assert list(ledger.histories()[1]) == [ascii(name)]
