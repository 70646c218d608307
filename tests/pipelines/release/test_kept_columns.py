"""A kept column that points out records is told of, refused where the policy says so, and can be made coarser."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from product import Privrisk


@pytest.fixture
def costly(small: Path, tmp_path: Path) -> Path:
    """The small table with the cost of each visit, to the cent; its policy keeps it."""
    table = tmp_path / "table.csv"
    head, *lines = table.read_text().splitlines()
    costs = [f"{1000 + 7.31 * i:.2f}" for i in range(len(lines) - 1)] + ["1000.00"]
    rows = [f"{line};{cost}" for line, cost in zip(lines, costs, strict=True)]
    table.write_text("\n".join([f"{head};cost", *rows]) + "\n")
    document = yaml.safe_load(small.read_text())
    document["columns"]["cost"] = {"role": "insensitive", "read": {"cast": "number"}}
    small.write_text(yaml.safe_dump(document, sort_keys=False))
    return small


def test_sampling_weights_are_released_if_the_policy_says_so_and_their_uniqueness_is_checked(
    privrisk: Privrisk, costly: Path, tmp_path: Path
) -> None:
    document = yaml.safe_load(costly.read_text())
    document["columns"]["cost"] = {"role": "weight", "read": {"cast": "number"}}
    document["table"]["weight"] = "cost"
    costly.write_text(yaml.safe_dump(document, sort_keys=False))
    hidden = privrisk(str(costly), "--run-id", "hidden")
    assert hidden.code == 0, hidden.err
    assert "cost" not in pq.read_table(tmp_path / "out/releases/hidden/data").column_names
    shown = privrisk(str(costly), "--run-id", "shown", "--set=columns.cost.release=true")
    assert shown.code == 0, shown.err
    assert "The column 'cost' is kept, and 96.7 % of the rows" in shown.err
    released = pq.read_table(tmp_path / "out/releases/shown/data").column("cost").to_pylist()
    assert sorted(released) == pytest.approx(sorted([1000.0, *(1000 + 7.31 * i for i in range(59))]), abs=0.01)
    assert {"name": "cost", "role": "weight", "released": "as it is"} in shown.manifest["columns"]
    limited = ["--set=columns.cost.release=true", "--set=checks.kept_uniqueness_at_most=0.1"]
    refused = privrisk(str(costly), "--run-id", "refused", *limited)
    assert refused.code == 1
    assert "uniqueness of cost: 0.966667" in refused.err


def report(place: Path) -> str:
    (page,) = place.glob("releases/*/report.html")
    return page.read_text()


def test_a_nearly_unique_kept_column_is_told_of(privrisk: Privrisk, costly: Path, tmp_path: Path) -> None:
    ran = privrisk(str(costly))
    assert ran.code == 0, ran.err
    said = "The column 'cost' is kept, and 96.7 % of the rows have a value of it that no other row has"
    assert said in ran.err
    assert "columns.cost.release: {round: …}" in ran.err
    assert "'diagnosis'" not in ran.err
    for page in (report(tmp_path / "out"), (tmp_path / "vault" / "report.html").read_text()):
        assert said.replace("'", "&#39;") in page
        assert "What is proved is the optimum: " in page
    found = ran.summary["kept_columns"]
    assert found["unique_by_kept"] == {"diagnosis": 0, "cost": 58}
    assert found["unique_by_quasi_identifiers_and_kept"] >= 58


def test_what_points_out_too_many_is_refused_by_name_and_share(
    privrisk: Privrisk, costly: Path, tmp_path: Path
) -> None:
    ran = privrisk(str(costly), "--set=checks.kept_uniqueness_at_most=0.1")
    assert ran.code == 1
    assert "uniqueness of cost: 0.966667" in ran.err
    assert "columns.cost.release" in ran.err
    assert "1007.31" not in ran.err
    assert not (tmp_path / "out" / "manifest.json").exists()
    mended = privrisk(
        str(costly),
        "--set=checks.kept_uniqueness_at_most=0.1",
        "--set=columns.cost.release={top_code: 1400, round: 100}",
        "--set=columns.diagnosis.action=drop",
    )
    assert mended.code == 0, mended.err
    released = {row["cost"] for row in pq.read_table(mended.data).to_pylist()}
    assert released == {1000.0, 1100.0, 1200.0, 1300.0, 1400.0}
    column = next(one for one in mended.manifest["columns"] if one["name"] == "cost")
    assert column["released"] == {"top_code": 1400, "round": 100}
    assert "WARNING" not in mended.err


def test_a_value_one_person_alone_has_in_many_rows_is_unique(privrisk: Privrisk, costly: Path, tmp_path: Path) -> None:
    """Of 20 persons with three rows each: eleven have a cost of their own that all their rows repeat."""
    table = tmp_path / "table.csv"
    head, *lines = table.read_text().splitlines()
    assert len(lines) == 60
    rows = [f"{line.rpartition(';')[0]};{1000 + 7.31 * min(i // 3, 11):.2f};p{i // 3}" for i, line in enumerate(lines)]
    table.write_text("\n".join([f"{head};who", *rows]) + "\n")
    persons = "--set=table.entity_id=who"
    drop = "--set=columns.who={role: identifier}"
    ran = privrisk(str(costly), persons, drop, "--set=checks.kept_uniqueness_at_most=0.85")
    assert ran.code == 0, ran.err
    found = ran.summary["kept_columns"]
    assert found["persons"] == 20
    assert found["unique_by_kept"]["cost"] == 11
    said = "The column 'cost' is kept, and 55 % of the persons have a value of it that no other person has"
    assert said in ran.err
    exact = (tmp_path / "vault" / "report.html").read_text()
    assert said.replace("'", "&#39;") in exact
    assert "of 20 persons, " in exact
    # Nobody could count them from the release, which has no ids of persons.
    assert "of 20 persons, " not in report(tmp_path / "out")
    assert "55 % of the persons" not in report(tmp_path / "out")
    # No other person has the same cost in 11 of 20, the same cost and released cells in one row in 17.
    together = "85 % of the persons differ from every other person by the kept columns together with the released"
    assert together in ran.err
    assert (found["unique_by_quasi_identifiers_and_kept"], found["unique_by_quasi_identifiers"]) == (17, 0)
    alone = privrisk(
        str(costly), persons, drop, "--set=checks.kept_uniqueness_at_most=0.84", root=tmp_path / "together"
    )
    assert alone.code == 1
    assert "uniqueness by all kept columns: 0.85" in alone.err
    assert "uniqueness of cost: " not in alone.err


def test_a_kept_column_can_be_released_in_intervals(privrisk: Privrisk, costly: Path) -> None:
    ran = privrisk(str(costly), "--set=columns.cost.release={intervals: [1100, 1250]}", "--set=output.format=csv")
    assert ran.code == 0, ran.err
    (file,) = ran.data.glob("*.csv")
    assert {line.rpartition(",")[2] for line in file.read_text().splitlines()[1:] if '"' not in line} <= {
        "<1100",
        ">=1250",
    }
    assert '"[1100,1250)"' in file.read_text()


def test_nothing_is_said_of_kept_columns_where_none_is(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    """Nothing is warned of, and nothing said of kept columns, where none is kept."""
    ran = privrisk(str(small), "--set=columns.diagnosis.action=drop")
    assert ran.code == 0, ran.err
    assert "kept_columns" not in ran.summary
    assert "WARNING" not in ran.err
    assert "Columns that are kept" not in report(tmp_path / "out")


@pytest.mark.thorough("tests/stages/publishing/test_csv_files.py")
def test_a_csv_release_can_quote_what_a_spreadsheet_would_run(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text(table.read_text().replace(";a\n", ";=HYPERLINK(1)\n").replace("Ulm", "-Ulm"))
    small.write_text(small.read_text().replace("[Ulm]", '["-Ulm"]'))
    for file in (table, small):  # a column whose name is a formula
        file.write_text(
            file.read_text().replace(";diagnosis", ";=diagnosis").replace("  diagnosis:", '  "=diagnosis":')
        )
    csv = "--set=output.format=csv"
    plain = privrisk(str(small), csv, root=tmp_path / "plain")
    quoted = privrisk(str(small), csv, "--set=output.quote_formulas=true", root=tmp_path / "quoted")
    assert (plain.code, quoted.code) == (0, 0), plain.err + quoted.err
    texts = ["".join(file.read_text() for file in sorted(ran.data.glob("*.csv"))) for ran in (plain, quoted)]
    assert ",=HYPERLINK(1)" in texts[0]
    assert "=HYPERLINK(1)" in texts[1]
    assert ",=HYPERLINK(1)" not in texts[1]
    assert texts[1].replace("'=", "=").replace("'-", "-") == texts[0]
    assert texts[1].splitlines()[0].endswith(",'=diagnosis")
    assert quoted.manifest["data"]["quote_formulas"] is True
    refused = privrisk(str(small), "--set=output.quote_formulas=true", root=tmp_path / "refused")
    assert refused.code == 2
    assert "output.quote_formulas: is only used by the format 'csv', and it is 'parquet'" in refused.err
