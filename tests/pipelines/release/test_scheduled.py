"""Releases of a schedule: a day each, a late table is waited for, and what is there stays as it is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
import small_release
from deltalake import write_deltalake
from policies import Document
from product import Privrisk

DAYS = ("2026-11-19", "2026-11-20", "2026-11-21")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    rows = small_release.rows()
    for number, day in enumerate(DAYS):
        place = tmp_path / "lake" / f"ds={day}"
        place.mkdir(parents=True)
        (place / "part.csv").write_text("\n".join(["age;city", *rows[number * 1000 : number * 1000 + 1500]]) + "\n")
        (place / "_SUCCESS").touch()
    return tmp_path / "lake"


def policy(kind: str, lake: Path, root: Path, **complete: Any) -> str:
    changes = [
        ("table.path", f"{lake}/ds={{ds}}"),
        ("run.date", "{ds}"),
        ("checks", {"complete": {"marker": "_SUCCESS", **complete}}),
    ]
    return small_release.policy(kind, Path("unused"), root, *changes)


def state(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root / "out" / "releases")): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((root / "out" / "releases").rglob("*"))
        if path.is_file()
    }


def dates(root: Path) -> list[str]:
    return sorted(json.loads(path.read_text())["date"] for path in (root / "out").glob("releases/*/manifest.json"))


def test_a_range_is_released_day_by_day_until_one_is_late(privrisk: Privrisk, lake: Path, tmp_path: Path) -> None:
    root = tmp_path / "x"
    (lake / f"ds={DAYS[2]}" / "_SUCCESS").unlink()
    file = policy("risk", lake, root, rows_at_least=1500)
    late = privrisk(file, "--date", DAYS[0], "--until", DAYS[2], root=root)
    assert late.code == 3, late.err
    assert f"ds={DAYS[2]}' has no file _SUCCESS yet (checks.complete.marker)" in " ".join(late.err.split())
    assert "when the table is complete" in late.status["what_to_do"]
    assert dates(root) == list(DAYS[:2])
    before = state(root)
    (lake / f"ds={DAYS[2]}" / "_SUCCESS").touch()
    whole = privrisk(file, "--date", DAYS[0], "--until", DAYS[2], root=root)
    assert whole.code == 0, whole.err
    said = [line.split(" 1,500 rows")[0] for line in whole.out.splitlines() if "run id" in line]
    assert said == [*["Already released, nothing done:"] * 2, "Released"]
    assert whole.manifest["date"] == DAYS[2]
    after = state(root)
    assert before.items() <= after.items(), "a day that was released is not touched"
    assert dates(root) == list(DAYS)
    # A single day, as a scheduler asks for it, is the same release.
    again = privrisk(file, "--date", DAYS[1], root=root)
    assert (again.code, again.out.split(":")[0]) == (0, "Already released, nothing done")
    assert state(root) == after


def test_too_few_rows_are_waited_for(privrisk: Privrisk, lake: Path, tmp_path: Path) -> None:
    ran = privrisk(policy("risk", lake, tmp_path / "x", rows_at_least=1501), "--date", DAYS[0], root=tmp_path / "x")
    assert ran.code == 3
    assert "it has 1,500 rows, and 1,501 are expected" in ran.err
    assert not (tmp_path / "x" / "out" / "manifest.json").exists()


LATE = {"path": "late/ds={ds}", "format": "parquet"}
REGISTER = {"kind": "table", "columns": {"age": "age"}}


@pytest.mark.parametrize(
    "late",
    [
        {"table": {"path": "late/{ds}.csv", "format": "csv"}},
        {"table": LATE},
        {"table": {**LATE, "path": "empty"}},
        {"table": {**LATE, "path": "s3://late/ds={ds}"}},
        {"table": {**LATE, "format": "delta"}},
        {"table": {"path": "delta", "format": "delta", "version": 1}},
        {"table": {**LATE, "format": "iceberg"}},
        {"table": {"catalog": "late"}},
        {"dictionary": REGISTER | LATE},
        {"dictionary": REGISTER | LATE | {"format": "delta"}},
    ],
)
def test_release_of_a_late_table_ends_with_3_if_completeness_is_checked(
    privrisk: Privrisk, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str, late: Document
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    write_deltalake("delta", pa.table({"age": [34], "city": ["Ulm"]}))
    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="late")
    csv = {"path": f"{lake}/ds={{ds}}/part.csv"}
    changes = [("table", {**small_release.document("risk", lake, tmp_path)["table"], **csv}), *late.items()]
    for checks, code in ({"complete": {"rows_at_least": 1}}, 3), ({}, 2):
        file = small_release.policy("risk", lake, tmp_path / "x", *changes, ("checks", checks))
        ran = privrisk(file, "--date", DAYS[0], "--run-id", f"r{code}", root=tmp_path / "x")
        assert ran.code == code, ran.err
        (named,) = late.values()
        place = named.get("catalog") or named["path"].replace("{ds}", DAYS[0])
        absolute = place if "catalog" in named or "://" in place else str(tmp_path / place)
        assert f"'{absolute}'" in " ".join(ran.err.split())


def test_a_private_release_of_a_late_table_costs_nothing(privrisk: Privrisk, lake: Path, tmp_path: Path) -> None:
    root = tmp_path / "x"
    (lake / f"ds={DAYS[0]}" / "_SUCCESS").unlink()
    late = privrisk(policy("dp", lake, root), "--date", DAYS[0], root=root)
    assert late.code == 3, late.err
    assert small_release.charged(root) == []
    refused = privrisk(policy("dp", lake, root, rows_at_least=5), "--date", DAYS[0], root=root)
    assert refused.code == 2
    assert "checks.complete.rows_at_least: is not used when guarantee.kind is 'dp'" in refused.err


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["--until", DAYS[2]], "--until: needs --date, the first day."),
        (["--date", DAYS[2], "--until", DAYS[0]], f"--until: must not be before --date {DAYS[2]}. Got {DAYS[0]}"),
        (["--date", DAYS[0], "--until", "tomorrow"], "--until: must be a date YYYY-MM-DD. Got 'tomorrow'"),
        (["--date", DAYS[0], "--until", DAYS[2], "--run-id", "r"], "--run-id: names one release"),
    ],
)
def test_a_range_that_is_none_is_named(
    privrisk: Privrisk, lake: Path, tmp_path: Path, arguments: list[str], rule: str
) -> None:
    ran = privrisk(policy("risk", lake, tmp_path / "x"), *arguments, root=tmp_path / "x")
    assert ran.code == 2
    assert rule in " ".join(ran.err.split())
