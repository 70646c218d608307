"""Draw ``docs/sharing.svg``, the worked example of ``docs/sharing.md``: ``python docs/sharing_picture.py DECISIONS``.

The directory is that of the decisions of ``privrisk share conf/sharing-demo.yaml``.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import pyarrow.parquet as pq

from privrisk_spark.extensions.network.drawing import network_drawing

ROOT = Path(__file__).resolve().parent.parent
ATTRIBUTES = ("age", "hobby", "city")


def picture(decisions: Path) -> str:
    """Return the picture of what was decided."""
    with (ROOT / "conf" / "sharing-demo" / "people.csv").open(encoding="utf-8", newline="") as lines:
        people = {row["who"]: row for row in csv.DictReader(lines)}
    shown = {}
    for row in pq.read_table(decisions).to_pylist():
        there = [name for name in ATTRIBUTES if people[row["u"]][name]]
        shown[row["u"], row["v"]] = sum(row[f"level_{name}"] == 0 for name in there) / len(there)
    return network_drawing(
        list(people),
        shown,
        prefix="sharing",
        title="Who shows whom what",
        description="Ann, Cid and their common friends: more common friends, more is shown.",
    )


if __name__ == "__main__":
    (ROOT / "docs" / "sharing.svg").write_text(picture(Path(sys.argv[1])) + "\n", encoding="utf-8")
