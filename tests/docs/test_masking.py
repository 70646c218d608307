"""The example of docs/masking.md does what the page says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.csv as csv
import pyarrow.parquet as pq
from product import ROOT, Privrisk


def block(text: str, start: str) -> str:
    """Return what a shell block of the page writes to a file."""
    return text.split(start, 1)[1].split("\nEND\n", 1)[0].lstrip("\n") + "\n"


def test_twelve_rows_come_out_as_the_page_says(privrisk: Privrisk, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "masking.md").read_text()
    (tmp_path / "salaries.csv").write_text(block(text, "cat > salaries.csv <<'END'"))
    policy = block(text, "cat > masked.yaml <<'END'")
    # Java, which is at work already, reads relative paths from where it was started.
    (tmp_path / "masked.yaml").write_text(policy.replace("path: salaries.csv", f"path: {tmp_path / 'salaries.csv'}"))
    ran = privrisk(str(tmp_path / "masked.yaml"))
    assert ran.code == 0, ran.err
    lines = text.split("| age | commute | rows |\n|---|---|---|\n", 1)[1].split("\n\n", 1)[0].split("\n")
    said = {tuple(int(cell) for cell in line.strip("| ").split("|")) for line in lines}
    released = pq.read_table(ran.data).to_pylist()
    found = Counter((row["age"], row["commute"]) for row in released)
    assert {(*pair, rows) for pair, rows in found.items()} == said
    table = csv.read_csv(tmp_path / "salaries.csv").to_pylist()
    for name in ("salary", "team"):
        assert Counter(row[name] for row in released) == Counter(row[name] for row in table)
    owners = {row["id"]: row["salary"] for row in pq.read_table(tmp_path / "vault" / "decisions").to_pylist()}
    ranks = {row["salary"]: rank for rank, row in enumerate(sorted(table, key=lambda row: row["salary"]))}
    moved = [abs(ranks[row["salary"]] - ranks[owners[row["id"]]]) for row in table]
    assert max(moved) <= 3, "a quarter of twelve ranks"
    assert sum(moved) > 0
