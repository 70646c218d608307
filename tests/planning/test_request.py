"""What a release is asked for names all that it depends on, part by part."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest
from policies import DP, Document, Keys, changed

from privrisk_spark.planning.request import asked_of, differing, request_of, tables_of
from privrisk_spark.policy.reading import parse

DAY = dt.date(2026, 11, 21)


def base(tmp_path: Path) -> Document:
    (tmp_path / "zip.csv").write_text("1;n;*\n2;n;*\n")
    return changed(DP, ("columns.zip.hierarchy", {"file": str(tmp_path / "zip.csv")}))


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (("table.path", "other.csv"), "table"),
        (("columns.age.nulls", "own-value"), "columns.age"),
        (("guarantee.epsilon.keep", 0.6), "guarantee.epsilon"),
        (("guarantee.key", "env:ANOTHER"), "guarantee.key"),
        (("output.path", "elsewhere"), "output"),
        (("output.format", "csv"), "output"),
        (("run.name", "another"), "run"),
        (("ledger.cap.epsilon", 3), "ledger"),
        (("ledger.url", "sqlite:///another.db"), None),
        (("assess", {"thresholds": {"k": 3}}), None),
    ],
)
def test_what_differs_is_named_and_nothing_else(tmp_path: Path, change: tuple[Keys | str, object], name: str | None):
    usual = base(tmp_path)
    before, after = (asked_of(parse(document), DAY) for document in (usual, changed(usual, change)))
    assert before.keys() == after.keys()
    assert [part for part in before if before[part] != after[part]] == ([] if name is None else [name])


def test_a_date_and_the_contents_of_a_file_are_asked_too(tmp_path: Path):
    policy = parse(base(tmp_path))
    before = asked_of(policy, DAY)
    later = asked_of(policy, DAY + dt.timedelta(1))
    assert [part for part in before if before[part] != later[part]] == ["date"]
    with (tmp_path / "zip.csv").open("a") as stream:
        stream.write("3;n;*\n")
    after = asked_of(policy, DAY)
    assert [part for part in before if before[part] != after[part]] == ["contents of columns.zip.hierarchy.file"]


def test_nothing_of_a_policy_can_be_read_from_it(tmp_path: Path):
    text = str(asked_of(parse(changed(base(tmp_path), ("guarantee.key", "env:CANARY"))), DAY))
    assert "CANARY" not in text
    assert str(tmp_path) not in text


def test_without_a_ledger_day_and_places_do_not_count_and_files_do(tmp_path: Path):
    table = tmp_path / "table"
    table.mkdir()
    (table / "part-0.csv").write_text("1;2\n")
    policy = parse(changed(base(tmp_path), ("table.path", str(table))))
    before = request_of(policy, given=False)
    assert before == request_of(
        parse(changed(base(tmp_path), ("table.path", str(table)), ("output.vault", "v2"))), given=False
    )
    for change in ("more", "longer"):
        with (table / ("part-1.csv" if change == "more" else "part-0.csv")).open("a") as stream:
            stream.write("3;4\n")
        after = request_of(policy, given=False)
        assert differing(before, after) == ["files of table"]
        before = after
    (table / "_SUCCESS").write_text("x")
    (table / ".part-0.csv.crc").write_text("x")
    assert request_of(policy, given=False) == before
    assert "files of table" not in request_of(policy, given=True)
    for written in (f"file:{table}", f"file://{table}", f"{tmp_path}/t[a]ble"):
        # A private policy takes no pattern; those of other kinds do.
        named = policy.model_copy(update={"table": policy.table.model_copy(update={"path": written})})
        assert request_of(named, given=False)["files of table"] == before["files of table"]
    assert list(tables_of(policy, given=True)) == []


def test_a_name_that_only_one_has_differs():
    assert differing({"a": "1", "b": "2"}, {"b": "3", "c": "4"}) == ["a", "b", "c"]
    assert differing({"a": "1"}, {"a": "1"}) == []
