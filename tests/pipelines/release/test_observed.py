"""What an operator sees of runs: the metrics table, JSON lines, and names of jobs; of a private table no figure."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import small_release
from product import Privrisk
from pyspark.sql import SparkSession

from privrisk_spark.storage.locations import locate
from privrisk_spark.storage.metrics import METRICS_SCHEMA
from privrisk_spark.storage.ownership import claim

STAGES = ["read", "encode", "count", "decide", "write", "validate", "vault"]


def test_each_stage_of_each_attempt_is_a_row_of_the_metrics_table(
    spark: SparkSession, privrisk: Privrisk, tmp_path: Path
) -> None:
    """And each, as it ends, is a line of the log."""
    table, root = small_release.write_table(tmp_path), tmp_path / "x"

    def ran(policy: str, run_id: str, code: int, rows: list[int]) -> None:
        ended = privrisk(policy, "--run-id", run_id, "--log-format", "json", root=root)
        assert ended.code == code, ended.err
        lines = [json.loads(line) for line in ended.err.splitlines() if line.startswith("{")]
        stages = [line for line in lines if "seconds" in line]
        assert len(stages) >= 5
        assert all({"run_id", "stage", "seconds"} <= line.keys() for line in stages)
        assert [line["rows"] for line in stages if "rows" in line] == rows

    ran(small_release.policy("risk", table, root), "r1", 0, [4000])
    refusing = small_release.policy("risk", table, root, ("checks", {"max_risk": 0}))
    for _ in range(2):
        ran(refusing, "r2", 1, [4000])
    ran(small_release.policy("dp", table, root), "r3", 0, [])
    found = pq.read_table(root / "vault" / "metrics", schema=METRICS_SCHEMA)
    assert found.schema.equals(METRICS_SCHEMA)
    rows = found.to_pylist()
    assert sorted({(row["run_id"], row["guarantee"]) for row in rows}) == [("r1", "risk"), ("r2", "risk"), ("r3", "dp")]
    by_attempt: dict[tuple[str, str], list[dict[str, object]]] = {}
    for row in rows:
        by_attempt.setdefault((row["run_id"], row["attempt"]), []).append(row)
    assert sorted(run_id for run_id, _ in by_attempt) == ["r1", "r2", "r2", "r3"], "a refused run is there, each time"
    for (run_id, _), stages in by_attempt.items():
        assert [row["number"] for row in stages] == list(range(1, len(stages) + 1))
        assert all(row["seconds"] >= 0 and row["run"] == "small" for row in stages)  # type: ignore[operator]
        assert [row["started"] for row in stages] == sorted(row["started"] for row in stages)  # type: ignore[type-var]
        if run_id != "r3":
            assert [row["stage"] for row in stages] == STAGES
            assert [row["rows"] for row in stages] == [None, 4000, *[None] * 5]
        else:
            assert {row["rows"] for row in stages} == {None}
    assert {row["ended"] for row in rows} == {"done"}
    # As users read it, to append it to a table of theirs.
    frame = spark.read.parquet(str(root / "vault" / "metrics"))
    assert frame.count() == found.num_rows
    modes = {path.stat().st_mode & 0o777 for path in (root / "vault" / "metrics").iterdir()}
    assert modes == {0o600}


def test_a_stage_that_fails_says_by_what(privrisk: Privrisk, tmp_path: Path) -> None:
    table, root = small_release.write_table(tmp_path), tmp_path / "x"
    ages = {"intervals": {"widths": [10], "domain": [0, 30]}}
    changes = [("columns.age.hierarchy", ages), ("columns.age.unknown", "error")]
    ran = privrisk(small_release.policy("risk", table, root, *changes), "--run-id", "r1", root=root)
    assert ran.code == 2, ran.err
    rows = pq.read_table(root / "vault" / "metrics").to_pylist()
    assert [row["ended"] for row in rows] == ["done", "HierarchyError"]
    assert [row["stage"] for row in rows] == STAGES[:2]


def test_metrics_that_cannot_be_written_change_no_end(privrisk: Privrisk, tmp_path: Path) -> None:
    table, root = small_release.write_table(tmp_path), tmp_path / "x"
    (root / "vault").mkdir(parents=True)
    claim(locate(str(root / "vault"), key="output.vault"), "output.vault", "vault")
    (root / "vault" / "metrics").write_text("in the way")
    ran = privrisk(small_release.policy("risk", table, root), "--run-id", "r1", root=root)
    assert ran.code == 0, ran.err
    assert "the metrics of the run cannot be written to output.vault" in ran.err
