"""The example of docs/sharing.md does what the page says."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from product import ROOT, Privrisk
from typer.testing import CliRunner

from privrisk_spark.cli.app import app


def test_six_members_see_what_the_page_says(privrisk: Privrisk, tmp_path: Path) -> None:
    del privrisk
    text = (ROOT / "docs" / "sharing.md").read_text()
    for name in ("members.csv", "friends.csv", "sharing.yaml"):
        written = text.split(f"cat > {name} <<'END'", 1)[1].split("\nEND\n", 1)[0].lstrip("\n") + "\n"
        # Java, which is at work already, reads relative paths from where it was started.
        for other in ("members.csv", "friends.csv"):
            written = written.replace(f"path: {other}", f"path: {tmp_path / other}")
        (tmp_path / name).write_text(written)
    ran = CliRunner().invoke(app, ["share", str(tmp_path / "sharing.yaml"), f"--output={tmp_path / 'shared'}"])
    assert ran.exit_code == 0, ran.output
    head, _, *rows = text.split("| u | v | common_friends", 1)[1].split("\n\n", 1)[0].splitlines()
    names = ["u", "v", "common_friends", *(cell.strip() for cell in head.strip("| ").split("|"))]
    found = {(row["u"], row["v"]): row for row in pq.read_table(tmp_path / "shared" / "decisions").to_pylist()}
    assert len(rows) == 3
    for line in rows:
        said = dict(zip(names, (cell.strip() for cell in line.strip("| ").split("|")), strict=True))
        row = found[said["u"], said["v"]]
        for name, value in said.items():
            assert f"{row[name]:.4g}" == value if name == "loss" else str(row[name]) == value
