"""The worked example of docs/history.md is what the product does."""

from __future__ import annotations

import re
import shlex
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from product import ROOT, Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

PAGE = (ROOT / "docs" / "history.md").read_text()


def block(kind: str) -> str:
    found = re.search(rf"(?ms)^```{kind}\n(.*?)^```$", PAGE)
    assert found is not None
    return found[1]


def cells(vault: Path, table: pd.DataFrame) -> pd.DataFrame:
    """What the decisions of a vault disclose, by record."""
    found = pd.read_parquet(vault / "decisions").set_index("id").join(table.set_index("id"))
    lower = 5 * (found.age // 5)
    ages = [[f"{age}", f"{low}-{low + 4}", "*"] for age, low in zip(found.age, lower, strict=True)]
    cities = [[city, "south" if city == "Ulm" else "north", "*"] for city in found.city]
    shown = [f"{a[i]}, {c[j]}" for a, c, i, j in zip(ages, cities, found.level_age, found.level_city, strict=True)]
    return found.assign(shown=shown)


def test_the_worked_example_is_what_is_computed(
    privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del privrisk
    monkeypatch.chdir(tmp_path)
    Path("patients.csv").write_text(block("csv"))
    # Spark was started elsewhere.
    Path("policy.yaml").write_text(block("yaml").replace("path: patients.csv", f"path: {tmp_path}/patients.csv"))
    table = pd.read_csv("patients.csv")
    seen, said = [], ""
    for line in block("sh").splitlines():
        words = shlex.split(line)[1:]
        ran = CliRunner().invoke(app, words)
        assert ran.exit_code == 0, ran.output
        if words[0] == "assess":
            said = ran.output
            composed = pd.read_json("composed/composition.json", typ="series")
        else:
            seen.append(cells(tmp_path / ("vault-2" if "output.vault=vault-2" in words else "vault"), table))
    monday, unaware, aware = seen
    quoted = " ".join(re.findall(r"(?m)^> (.*)$", PAGE))
    assert quoted in " ".join(said.split())
    rows = re.findall(r"(?m)^\| (p\d) \| (.*) \| (.*) \| (\S+), (\S+) \| (\S+) \| (.*) \|$", PAGE)
    assert len(rows) == 5
    for name, first, second, alone, other, both, third in rows:
        assert (first, second, third) == (monday.shown[name], unaware.shown[name], aware.shown[name])
        assert float(Fraction(alone)) == pytest.approx(monday.risk[name])
        assert float(Fraction(other)) == pytest.approx(unaware.risk[name])
        known = table[
            (5 * (table.age // 5) == 5 * (table.set_index("id").age[name] // 5))
            & (table.city == table.set_index("id").city[name])
        ]
        assert float(Fraction(both)) == pytest.approx(1 / len(known))
    assert composed.risen == 9
    assert aware.risk.max() <= 0.34
