"""Planted values, and where to look for them: whatever a run leaves outside the vault's data."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrameWriter
from pyspark.sql.classic.dataframe import DataFrame

CANARIES = ["zQxCanaryCity", "zQxCanaryIllness", "zQxCanaryPerson", "4242424241"]
KEY = "e7" * 16 + "19" * 16


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Extended plans of every frame that is written, collected or measured."""
    return seen_plans(monkeypatch)


def seen_plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list to which they are added from now on."""
    seen: list[str] = []

    def remember(frame: DataFrame) -> None:
        seen.append(str(frame._jdf.queryExecution().toString()))

    for owner, name in ((DataFrame, "toArrow"), (DataFrame, "first"), (DataFrame, "count")):
        original = getattr(owner, name)

        def acting(self: DataFrame, *args: object, _original: object = original, **kwargs: object) -> object:
            remember(self)
            return _original(self, *args, **kwargs)  # type: ignore[operator]

        monkeypatch.setattr(owner, name, acting)
    for name in ("parquet", "csv"):
        original = getattr(DataFrameWriter, name)

        def writing(self: DataFrameWriter, *args: object, _original: object = original, **kwargs: object) -> object:
            remember(self._df)
            return _original(self, *args, **kwargs)  # type: ignore[operator]

        monkeypatch.setattr(DataFrameWriter, name, writing)
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
