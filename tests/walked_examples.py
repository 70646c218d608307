"""Worked examples of the documents, held against what a walk through the page left in the working directory."""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow.csv as pc
import pyarrow.parquet as pq
from product import ROOT
from shared import drawing

_SHARED = re.compile(r"^\| (\w+) to (\w+) \| (\d) \| (\S+) \| (\S+) \| (\S+) \|", re.MULTILINE)


def twelve_rows_come_out_as_the_page_says() -> None:
    """docs/masking.md: groups of three, and the same salaries, each with another person nearby in rank."""
    text = (ROOT / "docs" / "masking.md").read_text()
    lines = text.split("| age | commute | rows |\n|---|---|---|\n", 1)[1].split("\n\n", 1)[0].split("\n")
    said = {tuple(int(cell) for cell in line.strip("| ").split("|")) for line in lines}
    released = pq.read_table(Path("masked", json.loads(Path("masked/manifest.json").read_text())["data"]["path"]))
    rows = released.to_pylist()
    found = Counter((row["age"], row["commute"]) for row in rows)
    assert {(*pair, number) for pair, number in found.items()} == said
    table = pc.read_csv("salaries.csv").to_pylist()
    for name in ("salary", "team"):
        assert Counter(row[name] for row in rows) == Counter(row[name] for row in table)
    owners = {row["id"]: row["salary"] for row in pq.read_table("vault/decisions").to_pylist()}
    ranks = {row["salary"]: rank for rank, row in enumerate(sorted(table, key=lambda row: row["salary"]))}
    moved = [abs(ranks[row["salary"]] - ranks[owners[row["id"]]]) for row in table]
    assert max(moved) <= 3, "a quarter of twelve ranks"
    assert sum(moved) > 0


def six_people_share_as_the_page_says() -> None:
    """docs/sharing.md, and its picture."""
    people = pd.read_csv("conf/sharing-demo/people.csv", dtype=str).set_index("who")
    decided = pd.read_parquet("vault/sharing/decisions").set_index(["u", "v"])
    spec = importlib.util.spec_from_file_location("sharing_picture", ROOT / "docs" / "sharing_picture.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    with drawing():
        drawn = program.picture(Path("vault/sharing/decisions").absolute())
    assert (ROOT / "docs" / "sharing.svg").read_text() == drawn + "\n", "run: python docs/sharing_picture.py DECISIONS"
    assert all(f">{name}<" in drawn for name in people.index)
    told = _SHARED.findall((ROOT / "docs" / "sharing.md").read_text())
    assert len(told) == 4
    for u, v, common, *shown in told:
        row = decided.loc[(u, v)]
        assert row["common_friends"] == int(common)
        for name, label in zip(("age", "hobby", "city"), shown, strict=True):
            found = people.loc[u, name] if row[f"level_{name}"] == 0 else "*"
            assert found == label, (u, v, name)


AFTER: dict[str, Callable[[], None]] = {
    "masking": twelve_rows_come_out_as_the_page_says,
    "sharing": six_people_share_as_the_page_says,
}
"""What is looked at when a document's commands have run."""
