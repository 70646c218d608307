"""Versions of lake tables, chosen once a run and the same for every key that asks for the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lakes
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from policies import RISK, changed

from privrisk_spark.planning.assessment import narrowed
from privrisk_spark.planning.lakes import pin_tables, versions_of
from privrisk_spark.policy.policy import Policy
from privrisk_spark.policy.reading import parse
from privrisk_spark.storage.lakes import opening
from privrisk_spark.storage.lakes.snapshot import Asked, Pin, Snapshot

READ = ("table", "dictionary")
COLUMNS = {"age": "AGE"}


@pytest.fixture
def lake(tmp_path: Path) -> str:
    return str(lakes.delta_versions(tmp_path / "t", pa.table({"AGE": [1]}), pa.table({"AGE": [2]})))


def policy(lake: str, **more: Any) -> Policy:
    table = {"path": lake, "format": "delta"}
    dictionary = {"kind": "bayes", "consistency": "compatible", "members": [
        {"kind": "table", "name": "a", "prior": 0.5, "columns": COLUMNS, **table},
        {"kind": "table", "name": "b", "prior": 0.5, "columns": COLUMNS, **table, "version": 0},
    ]}  # fmt: skip
    return parse(changed(RISK, ("table", table), ("dictionary", dictionary), *more.items()))


def test_every_key_that_asks_for_the_same_reads_the_same(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where somebody commits while the tables are opened."""
    usual, opened = opening.open_snapshot, []

    def open_snapshot(asked: Asked, pin: Pin | None = None) -> Snapshot:
        opened.append(asked.key)
        found = usual(asked, pin)
        write_deltalake(lake, pa.table({"AGE": [3]}), mode="append")
        return found

    monkeypatch.setattr(opening, "open_snapshot", open_snapshot)
    found = pin_tables(policy(lake), READ)
    assert opened == ["table", "dictionary.members.1"]
    numbers = {key: said["version"] for key, said in versions_of(found.policy).items()}
    assert numbers == {"table": 1, "dictionary.members.0": 1, "dictionary.members.1": 0}
    again = pin_tables(policy(lake), READ, recorded=found.record)
    assert versions_of(again.policy) == versions_of(found.policy)
    assert versions_of(pin_tables(policy(lake), READ).policy)["table"]["version"] == 5, "four commits later"


def test_a_policy_means_what_it_meant(lake: str) -> None:
    given = policy(lake)
    found = pin_tables(given, READ).policy
    assert found.digest() == given.digest()
    assert found.canonical() == given.canonical()
    assert found.columns is given.columns
    assert versions_of(given) == {}


def test_only_what_is_read_is_opened(lake: str) -> None:
    gone = changed(RISK, ("table", {"path": lake, "format": "delta"}), ("dictionary.format", "delta"),
                   ("dictionary.options", {}))  # fmt: skip
    assert set(pin_tables(parse(gone), ("table",)).snapshots) == {"table"}
    assert pin_tables(parse(gone), ("table",), given=True).snapshots == {}
    plain = parse(RISK)
    assert pin_tables(plain, READ).policy is plain
    assert pin_tables(plain, READ).record == {}


def test_a_record_of_other_tables_is_none_of_theirs(lake: str, tmp_path: Path) -> None:
    recorded = pin_tables(policy(lake), READ).record
    other = str(lakes.delta_versions(tmp_path / "u", pa.table({"AGE": [1]})))
    assert versions_of(pin_tables(policy(other), READ, recorded=recorded).policy)["table"]["version"] == 0


def test_the_population_of_an_assessment_keeps_its_version(lake: str) -> None:
    population = {"path": lake, "format": "delta", "columns": COLUMNS}
    found = pin_tables(parse(changed(RISK, ("assess.population", population))), ("assess",)).policy
    reading = narrowed(found).dictionary
    assert reading.pinned is not None
    assert reading.pinned.pin.version == 1
