"""How a private run ends does not depend on one row: its line, its id."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk, Ran

KEY = "7d" * 32

POLICY = """
version: 1
run: {{name: rows}}
table: {{path: {root}/table.csv, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, unknown: suppress, hierarchy: {{intervals: {{widths: [10, 50], domain: [0, 99]}}}}}}
  city:
    role: quasi-identifier
    unknown: suppress
    hierarchy: {{tree: {{"*": {{south: [Ulm], north: [Bonn, Kiel]}}}}}}
guarantee:
  kind: dp
  epsilon: {{admit: 1, keep: 1}}
  delta: 1e-6
  public_rows: 4000
  schemes: [[1, 0], [2, 0], [1, 1]]
  objective: {{lambda: 0.001, tau: 1, phi_min: 1}}
  key: env:ROWS_KEY
output: {{path: out, vault: vault}}
ledger: {{url: "sqlite:///{root}/ledger.db", lineage: rows, cap: {{epsilon: 2, delta: 1e-5}}}}
"""


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    monkeypatch.setenv("ROWS_KEY", KEY)
    generator = np.random.default_rng(1)
    ages, cities = generator.integers(20, 60, 4000), generator.choice(["Ulm", "Bonn", "Kiel"], 4000)
    return [f"p{i};{age};{city}".encode() for i, (age, city) in enumerate(zip(ages, cities, strict=True))]


def released(privrisk: Privrisk, root: Path, lines: list[bytes]) -> Ran:
    root.mkdir()
    (root / "table.csv").write_bytes(b"\n".join([b"id;age;city", *lines]) + b"\n")
    (root / "policy.yaml").write_text(POLICY.format(root=root))
    return privrisk(str(root / "policy.yaml"), "--run-id", "r1", root=root)


@pytest.mark.parametrize(
    "line",
    [
        b"p;30;Ulm" + b";" * 25_000,
        b'"p;30;Ulm',
        b"p;30;" + b"x" * 2_000_000,
        b"\xff;\xfe;\xfd",
        b"p1;30;Ulm",
        b";30;Ulm",
    ],
    ids=["many fields", "open quote", "long", "no text", "an id again", "no id"],
)
def test_one_row_does_not_decide_how_a_private_run_ends(
    privrisk: Privrisk, tmp_path: Path, rows: list[bytes], line: bytes
) -> None:
    ran = released(privrisk, tmp_path / "r", [*rows[:7], line, *rows[7:]])
    assert ran.code == 0, ran.err
    assert "parsed" in ran.manifest["guarantee"]["statement"]


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
    document = yaml.safe_load(POLICY.format(root=tmp_path))
    found = []
    for name, lines in (("tidy", rows), ("messy", [row.upper().replace(b"P", b"p", 1) + b" " for row in rows])):
        root = tmp_path / name
        root.mkdir()
        (root / "table.csv").write_bytes(b"\n".join([b"id;age;city", *lines, b"q;x;Ulm"]) + b"\n")
        document["table"]["path"] = str(root / "table.csv")
        document["ledger"]["url"] = f"sqlite:///{root}/ledger.db"
        document["columns"]["age"]["read"] = {"cast": "integer"}
        document["columns"]["city"]["read"] = {
            "trim": True, "case": "lower", "map": {"ulm": "Ulm", "bonn": "Bonn", "kiel": "Kiel"}
        }  # fmt: skip
        policy = root / "policy.yaml"
        policy.write_text(yaml.safe_dump(document, sort_keys=False))
        ran = privrisk(str(policy), "--run-id", "r1", root=root)
        assert ran.code == 0, ran.err
        found.append(pq.read_table(ran.data).to_pylist())
        assert ran.manifest["read"]["columns.age.read"] == {"cast": "integer"}
        told = json.dumps(ran.manifest) + json.dumps(ran.summary) + ran.err + ran.out
        assert "values changed" not in told
    assert found[0] == found[1]
