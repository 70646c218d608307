"""How a private run ends does not depend on one row: its line, its id."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import small_release
from product import Privrisk, Ran

KEY = "7d" * 32

CHANGES: tuple[tuple[str, Any], ...] = (
    ("table.record_id", "id"),
    ("columns.id", {"role": "identifier"}),
    ("columns.age.unknown", "suppress"),
    ("columns.city.unknown", "suppress"),
    ("guarantee.key", "env:ROWS_KEY"),
)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    monkeypatch.setenv("ROWS_KEY", KEY)
    return [f"p{i};{line}".encode() for i, line in enumerate(small_release.rows())]


def released(privrisk: Privrisk, root: Path, lines: list[bytes], *more: tuple[str, Any]) -> Ran:
    file = small_release.policy("dp", root / "table.csv", root, *CHANGES, *more)
    (root / "table.csv").write_bytes(b"\n".join([b"id;age;city", *lines]) + b"\n")
    return privrisk(file, "--run-id", "r1", root=root)


@pytest.mark.parametrize(
    "lines",
    [
        [b'"p;30;Ulm'],
        [b"p;30;Ulm" + b";" * 25_000, b"p;30;" + b"x" * 2_000_000, b"\xff;\xfe;\xfd", b"p1;30;Ulm", b";30;Ulm"],
    ],
    ids=["open quote", "many fields, long, no text, an id again, no id"],
)
def test_no_row_decides_how_a_private_run_ends(
    privrisk: Privrisk, tmp_path: Path, rows: list[bytes], lines: list[bytes]
) -> None:
    ran = released(privrisk, tmp_path / "r", [*rows[:7], *lines, *rows[7:]])
    assert ran.code == 0, ran.err
    assert "parsed" in ran.manifest["guarantee"]["statement"]


@pytest.mark.parametrize("reference", ["file:no/such/key", "env:NO_SUCH_KEY"])
def test_release_with_a_key_that_does_not_exist_charges_nothing(
    privrisk: Privrisk, tmp_path: Path, rows: list[bytes], reference: str
) -> None:
    ran = released(privrisk, tmp_path / "r", rows, ("guarantee.key", reference))
    assert ran.code == 2, ran.err
    assert "guarantee.key names" in ran.err
    assert not small_release.charged(tmp_path / "r")


def test_rows_that_share_an_id_are_drawn_apart_and_alike_in_any_order(
    privrisk: Privrisk, tmp_path: Path, rows: list[bytes]
) -> None:
    """If all rows have one id, and one draw with it, they are all kept or none; many rows that name nobody likewise."""
    shared = [b"p0" + row[row.index(b";") :] for row in rows[:2000]]
    nobody = [row[row.index(b";") :] for row in rows[2000:]]
    first = released(privrisk, tmp_path / "first", shared + nobody)
    assert first.code == 0, first.err
    kept = first.manifest["rows"]
    probability = eval(first.manifest["guarantee"]["parameters"]["keep_probability"])
    assert 0.5 * 4000 * probability < kept <= 4000 * probability + 5 * np.sqrt(4000 * probability * (1 - probability))
    turned = released(privrisk, tmp_path / "turned", (shared + nobody)[::-1])
    # The ledger of the second run is another, its output too; but key, run id and content are the same.
    assert turned.code == 0, turned.err
    tables = [pq.read_table(ran.data).to_pylist() for ran in (first, turned)]
    assert tables[0] == tables[1]
    assert (first.summary["input"]["missing_ids"], first.summary["input"]["repeated_ids"]) == (2000, 1999)
    text = json.dumps(first.manifest) + first.err + first.out
    assert "repeated" not in text
    assert "duplicate" not in text
    assert "input" not in first.manifest


def test_tidying_neither_counts_nor_decides_and_keeps_every_row(
    privrisk: Privrisk,
    tmp_path: Path,
    rows: list[bytes],
) -> None:
    """A row with a value that cannot be read is a row; a messy table is released as a tidy one by the same key."""
    texts = {"trim": True, "case": "lower", "map": {"ulm": "Ulm", "bonn": "Bonn", "kiel": "Kiel"}}
    read = (("columns.age.read", {"cast": "integer"}), ("columns.city.read", texts))
    found = []
    for name, lines in (("tidy", rows), ("messy", [row.upper().replace(b"P", b"p", 1) + b" " for row in rows])):
        ran = released(privrisk, tmp_path / name, [*lines, b"q;x;Ulm"], *read)
        assert ran.code == 0, ran.err
        found.append(pq.read_table(ran.data).to_pylist())
        assert ran.manifest["read"]["columns.age.read"] == {"cast": "integer"}
        told = json.dumps(ran.manifest) + json.dumps(ran.summary) + ran.err + ran.out
        assert "values changed" not in told
    assert found[0] == found[1]
