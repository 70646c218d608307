"""Do jobs by the engine of ``PRIVRISK_ENGINE`` in this process, and print how each ended and what it wrote.

``python tests/engine_program.py DATA HOME ROWS``

Keys are the same in each process, so that what is drawn is the same.
"""

from __future__ import annotations

import hashlib
import json
import sys
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lakes
import pyarrow.parquet as pq
import yaml
from deltalake import DeltaTable
from typer.testing import CliRunner

from benchmarks.jobs import JOBS, commands
from privrisk_spark.cli.app import app
from privrisk_spark.runs import keystore

VARYING = {"status.json", "summary.json", "report.html", "assessment.json", "policy.yaml", "ledger.db"}
"""Files that hold times, directories or seconds."""


def done(arguments: list[str]) -> tuple[int, str]:
    """Return the exit code of a command and its error output."""
    ran = CliRunner().invoke(app, arguments)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        return 99, "".join(traceback.format_exception(ran.exception))
    return ran.exit_code, ran.stderr


def digests(place: Path) -> dict[str, str]:
    """SHA-256 of the files below a directory; of Parquet files with names of their own those of all their rows."""
    found = {}
    parts: dict[Path, list[str]] = {}
    for file in sorted(file for file in place.rglob("*") if file.is_file()):
        name = file.relative_to(place)
        if "metrics" in name.parts:  # they hold seconds
            continue
        if file.suffix == ".parquet" and "releases" not in name.parts:
            parts.setdefault(name.parent, []).extend(map(repr, pq.read_table(file).to_pylist()))
        elif file.name not in VARYING and not {"requests", "charges"} & set(name.parts):
            found[str(name)] = hashlib.sha256(file.read_bytes()).hexdigest()
    for name, rows in parts.items():
        found[f"{name}/"] = hashlib.sha256("\n".join(sorted(rows)).encode()).hexdigest()
    return found


def more_commands(name: str, data: Path, home: Path) -> list[str]:
    """Return the arguments of a job that is not measured, by the table of the release by risk."""
    place, file = home / name, home / "release-risk" / "policy.yaml"
    form, _, way = name.partition("-")
    if way not in ("in", "out"):
        return {
            "curves": ["curves", str(file), "--output", str(place / "curves"), "--set=dictionary={kind: self}"],
            "validate": ["validate", str(file), f"--set=output.path={place}/o", f"--set=output.vault={place}/v"],
        }[name]
    policy = yaml.safe_load(file.read_text())
    # Of both engines the same table: versions have times and ids.
    lake = (home if way == "out" else data) / "lakes" / name
    if way == "in" and not lake.exists():
        rows = pq.read_table(data / "table")
        write = lakes.delta_versions if form == "delta" else lakes.iceberg_snapshots
        write(lake, rows.slice(0, 1000), rows.slice(1000))
    if way == "in":
        newest = max(lake.rglob("*.metadata.json"), default=lake)
        policy["table"] |= {"path": str(newest), "format": form}
    policy["output"] = {"path": str(place / "release"), "vault": str(place / "vault")}
    if way == "out":
        policy["output"]["lake"] = {"format": form, "path": str(lake)}
    (place / "policy.yaml").write_text(yaml.safe_dump(policy))
    return ["release", str(place / "policy.yaml"), "--run-id", name]


MORE = ("curves", "validate", "delta-in", "delta-out", "iceberg-in")


def main(data: Path, home: Path, rows: int) -> None:
    keystore.secrets = SimpleNamespace(token_bytes=lambda size: bytes(range(size)))  # type: ignore[attr-defined]
    for name in (*JOBS, *MORE):
        (home / name).mkdir(parents=True)
        asked = commands(name, JOBS[name], data, home, rows) if name in JOBS else [more_commands(name, data, home)]
        for command in asked:
            code, said = done(command)
        found: dict[str, Any] = {"job": name, "code": code, "said": said if code else "", "files": digests(home / name)}
        if name == "delta-out":
            held = DeltaTable(home / "lakes" / name).to_pyarrow_table().to_pylist()
            found["files"]["lake"] = hashlib.sha256("\n".join(sorted(map(repr, held))).encode()).hexdigest()
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
