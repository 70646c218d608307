"""The worked example of docs/sharing.md is what the product does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pandas as pd
import pytest
from product import Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (\w+) to (\w+) \| (\d) \| (\S+) \| (\S+) \| (\S+) \|", re.MULTILINE)


@pytest.mark.alone
def test_the_example_is_what_is_decided(privrisk: Privrisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    del privrisk
    monkeypatch.setenv("SHARING", str(ROOT / "conf" / "sharing-demo"))
    ended = CliRunner().invoke(app, ["share", str(ROOT / "conf" / "sharing-demo.yaml"), f"--output={tmp_path / 'out'}"])
    assert ended.exit_code == 0, ended.output
    people = pd.read_csv(ROOT / "conf" / "sharing-demo" / "people.csv", dtype=str).set_index("who")
    decided = pd.read_parquet(tmp_path / "out" / "decisions").set_index(["u", "v"])
    spec = importlib.util.spec_from_file_location("sharing_picture", ROOT / "docs" / "sharing_picture.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    drawn = program.picture(tmp_path / "out" / "decisions")
    assert (ROOT / "docs" / "sharing.svg").read_text() == drawn + "\n", "run: python docs/sharing_picture.py DECISIONS"
    assert all(f">{name}<" in drawn for name in people.index)
    told = ROW.findall((ROOT / "docs" / "sharing.md").read_text())
    assert len(told) == 4
    for u, v, common, *shown in told:
        row = decided.loc[(u, v)]
        assert row["common_friends"] == int(common)
        for name, label in zip(("age", "hobby", "city"), shown, strict=True):
            found = people.loc[u, name] if row[f"level_{name}"] == 0 else "*"
            assert found == label, (u, v, name)
