"""Planted values, and where to look for them: whatever a run leaves outside the vault's data."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrameWriter as ClassicWriter
from pyspark.sql.classic.dataframe import DataFrame as ClassicFrame
from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame
from pyspark.sql.connect.readwriter import DataFrameWriter as ConnectWriter

CANARIES = ["zQxCanaryCity", "zQxCanaryIllness", "zQxCanaryPerson", "4242424241"]
KEY = "e7" * 16 + "19" * 16


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Extended plans of every frame that is written, collected or measured."""
    return seen_plans(monkeypatch)


def seen_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list to which they are added from now on, on both engines."""
    seen: list[str] = []

    def remember(frame: Any) -> None:
        of_java = isinstance(frame, ClassicFrame)
        seen.append(str(frame._jdf.queryExecution().toString() if of_java else frame._explain_string(extended=True)))

    def watch(owner: type, name: str, frame_of: Callable[[Any], Any]) -> None:
        original = getattr(owner, name)

        def acting(self: Any, *args: object, **kwargs: object) -> object:
            remember(frame_of(self))
            return original(self, *args, **kwargs)

        monkeypatch.setattr(owner, name, acting)

    for frame in (ClassicFrame, ConnectFrame):
        for name in ("toArrow", "first", "count", "toLocalIterator"):
            watch(frame, name, lambda one: one)
    for name in ("parquet", "csv"):
        watch(ClassicWriter, name, lambda writer: writer._df)
        watch(ConnectWriter, name, lambda writer: ConnectFrame(writer._df, writer._spark))
    return seen


def everything(root: Path, *, but: tuple[str, ...]) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not any(str(path.relative_to(root)).startswith(prefix) for prefix in but)
    }


def plant(tmp_path: Path) -> Path:
    rows = ["id;age;city;income;illness"]
    for i in range(400):
        rows.append(f"p{i};{20 + i % 40};{['Ulm', 'Bonn'][i % 2]};{1000 + i % 7};flu")
    rows += ["zQxCanaryPerson;33;zQxCanaryCity;4242424241;zQxCanaryIllness"] * 1
    table = tmp_path / "table.csv"
    table.write_text("\n".join(rows) + "\n")
    return table


RISK = """
version: 1
run: {{name: canary}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}, record_id: id}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 20], domain: [0, 99]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{flat: true}}}}
  income: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [1000]}}}}}}
  illness: {{role: sensitive, action: drop}}
decision: {{problem: min-risk, utility_at_least: 1}}
output: {{path: {root}/out, vault: {root}/vault}}
"""

PRIVATE = """
version: 1
run: {{name: canary}}
table: {{path: {table}, format: csv, options: {{sep: ";", header: true}}}}
columns:
  id: {{role: identifier}}
  age: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [5, 20], domain: [0, 99]}}}}}}
  city: {{role: quasi-identifier, hierarchy: {{flat: {{values: [Ulm, Bonn, zQxCanaryCity]}}}}}}
  income: {{role: quasi-identifier, hierarchy: {{intervals: {{widths: [1000], domain: [0, 9999]}}}}}}
  illness: {{role: identifier}}
risk: {{model: II}}
guarantee:
  kind: dp
  epsilon: {{admit: 1, keep: 1}}
  delta: 1e-6
  public_rows: 400
  schemes: [[3, 0, 2], [2, 1, 2], [3, 0, 1]]
  objective: {{lambda: 0.001, tau: 2, phi_min: 1}}
  key: env:CANARY_KEY
output: {{path: {root}/out, vault: {root}/vault}}
ledger: {{url: "sqlite:///{root}/ledger.db", lineage: canary, cap: {{epsilon: 4, delta: 1e-5}}}}
"""
