"""A small release, by risk or private, for tests of how runs end: its table, its policy, and what it left."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from policies import Document, changed

CHARGED = [("reserved", "2"), ("bound", "2"), ("pinned", "2"), ("committed", "2")]
"""What a private release leaves in its ledger; a second one would exceed the cap."""
KEY = "3c" * 32
"""Of private releases that are compared."""

_DOCUMENT: Document = yaml.safe_load("""
version: 1
run: {name: small}
table: {format: csv, options: {sep: ";", header: true}}
columns:
  age: {role: quasi-identifier, hierarchy: {intervals: {widths: [10, 50], domain: [0, 99]}}}
  city: {role: quasi-identifier, hierarchy: {tree: {"*": {south: [Ulm], north: [Bonn, Kiel]}}}}
output: {path: out, vault: vault}
""")
_KINDS: dict[str, Document] = {
    "risk": {"decision": {"problem": "min-risk", "utility_at_least": 1}},
    "dp": yaml.safe_load("""
guarantee:
  kind: dp
  epsilon: {admit: 1, keep: 1}
  delta: 1e-6
  public_rows: 4000
  schemes: [[1, 0], [2, 0], [1, 1]]
  objective: {lambda: 0.001, tau: 1, phi_min: 1}
ledger: {lineage: small, cap: {epsilon: 2, delta: 1e-5}}
"""),
}
KINDS = tuple(_KINDS)


def rows() -> list[str]:
    """4,000 lines of age and city."""
    generator = np.random.default_rng(1)
    ages, cities = generator.integers(20, 60, 4000), generator.choice(["Ulm", "Bonn", "Kiel"], 4000)
    return [f"{age};{city}" for age, city in zip(ages, cities, strict=True)]


def write_table(directory: Path) -> Path:
    """Write the table into a directory."""
    table = directory / "table.csv"
    table.write_text("\n".join(["age;city", *rows()]) + "\n")
    return table


def document(kind: str, table: Path, root: Path, *changes: tuple[str, Any]) -> Document:
    """Return the policy, with its ledger under a root, and keys set as :func:`policies.changed` does."""
    under = [("ledger.url", f"sqlite:///{root}/ledger.db")] if "ledger" in _KINDS[kind] else []
    return changed({**_DOCUMENT, **_KINDS[kind]}, ("table.path", str(table)), *under, *changes)


def policy(kind: str, table: Path, root: Path, *changes: tuple[str, Any]) -> str:
    """Write the policy into a root; returns the file."""
    root.mkdir(exist_ok=True)
    file = root / "policy.yaml"
    file.write_text(yaml.safe_dump(document(kind, table, root, *changes), sort_keys=False))
    return str(file)


def digests(root: Path) -> dict[str, str]:
    """SHA-256 of the data of the release r1."""
    data = root / "out" / "releases" / "r1" / "data"
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(data.iterdir())}


def charged(root: Path) -> list[tuple[str, str]]:
    """State and epsilon of the events of the ledger under a root."""
    if not (root / "ledger.db").exists():
        return []
    # Not read-only: a run that was killed may have left a journal, which whoever comes next rolls back.
    with closing(sqlite3.connect(root / "ledger.db", timeout=60)) as ledger:
        return ledger.execute("select state, epsilon from events order by sequence").fetchall()
