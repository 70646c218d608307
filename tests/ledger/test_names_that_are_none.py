"""What was written past the program stops the lineage it stands in, and no other one."""

from __future__ import annotations

import sqlite3

import pytest
from ledgers import InFile, OnServer, reserve

from privrisk_spark.errors import EngineError
from privrisk_spark.ledger.ledger import Ledger

Place = InFile | OnServer


def plant(place: Place, lineage: object) -> None:
    """An event of another program, in a lineage whose name is none."""
    place.tamper(f"UPDATE events SET lineage = {lineage} WHERE lineage = 'planted'")


@pytest.mark.parametrize("name", ["'a' || chr(8203)", "chr(8232)", "'  '"])
def test_a_name_that_is_none_is_passed_over_and_told(ledger: Ledger, place: Place, name: str):
    reserve(ledger)
    reserve(ledger, lineage="planted")
    plant(place, name.replace("chr", "char") if isinstance(place, InFile) else name)
    assert reserve(ledger, "r2").spent_epsilon == 2
    assert ledger.lineages() == ("adult",)
    accounts, broken = ledger.histories()
    assert list(accounts) == ["adult"]
    (told,) = broken.values()
    assert "has a name of its lineage that is none" in str(told)
    assert next(iter(broken)).startswith("'"), "quoted, so that it can be seen"


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "column", ["created_at", "reason", "run_id", "mechanism", "asked", "epsilon", "chain", "lineage"]
)
def test_a_blob_is_no_text(ledger: Ledger, place: Place, column: str):
    """SQLite takes one into any column."""
    assert isinstance(place, InFile)
    reserve(ledger)
    reserve(ledger, lineage="other")
    place.tamper(f"UPDATE events SET {column} = x'00ff' WHERE lineage = 'other'")
    assert reserve(ledger, "r2").fresh
    _, broken = ledger.histories()
    assert len(broken) == 1
    if column != "lineage":
        with pytest.raises(EngineError, match=r"event 1 of the ledger .*restore the ledger from its backup"):
            ledger.balance("other")
    assert sqlite3.connect(place.path).execute("SELECT count(*) FROM events").fetchone() == (3,)
