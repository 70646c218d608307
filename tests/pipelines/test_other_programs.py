"""One table as other programs write it: the first policy and the release are those of the clean file."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from typer.testing import CliRunner

from privrisk_spark.api.suggesting import Suggested, suggest_policy_of
from privrisk_spark.cli.app import app
from privrisk_spark.errors import ConfigError

FILES = Path(__file__).parents[1] / "data" / "other_programs"
CLEAN = "clean.csv"
REFUSED = "r_write_table.txt"
WRITTEN = sorted(file.name for file in FILES.iterdir() if file.suffix in (".csv", ".tsv", ".txt"))
INDEXED = {"pandas_index.csv", "r_write_csv.csv", "r_write_table_names.txt"}
"""Files with row numbers in a first column without a name."""

pytestmark = pytest.mark.usefixtures("spark", "no_charts")


@cache
def suggest(name: str) -> Suggested:
    return suggest_policy_of(str(FILES / name))


def summarize(found: Suggested) -> dict[str, Any]:
    """Return what is proposed for each column; weights show that values are the same."""
    assert found.found.floors is not None
    columns = {one.column: (one.role, one.hierarchy, one.levels, one.weight) for one in found.found.columns}
    return columns | {"": (found.found.profile.rows, found.found.floors.chosen.floor)}


@pytest.mark.parametrize("name", [name for name in WRITTEN if name not in (CLEAN, REFUSED)])
def test_init_of_a_file_of_another_program_proposes_what_it_proposes_for_the_clean_file(name: str) -> None:
    found, expected = summarize(suggest(name)), summarize(suggest(CLEAN))
    index = found.pop("_c0", None)
    assert (index is not None) == (name in INDEXED)
    assert index is None or index[0] == "identifier"
    assert found == expected


def write_parquet(program: str, place: Path) -> Path:
    """Write the table with the types that a program gives its columns."""
    if program == "polars":  # Categorical, Enum, Datetime("ns")
        return FILES / "visits_polars.parquet"
    if program == "duckdb":
        read = f"read_csv('{FILES / CLEAN}', types={{'postcode': 'VARCHAR'}})"
        duckdb.sql(f"COPY (SELECT * FROM {read}) TO '{place}' (FORMAT parquet)")
        return place
    frame = pd.read_csv(FILES / CLEAN, dtype={"postcode": str}, parse_dates=["visit"])
    if program == "pandas with categories":
        frame = frame.astype({"city": "category", "sex": "category", "age": "Int64"})
    frame.to_parquet(place)
    return place


@pytest.mark.parametrize("program", ["pandas", "pandas with categories", "duckdb", "polars"])
def test_init_of_parquet_of_another_program_proposes_what_it_proposes_for_the_clean_file(
    tmp_path: Path, program: str
) -> None:
    found = suggest_policy_of(str(write_parquet(program, tmp_path / "visits.parquet")))
    assert summarize(found) == summarize(suggest(CLEAN))


def test_init_of_an_index_that_repeats_never_releases_it(tmp_path: Path) -> None:
    rows = [f"{row // 2},{20 + row % 30},{'fm'[row % 2]}" for row in range(60)]
    (tmp_path / "table.csv").write_text("\n".join([",age,sex", *rows]) + "\n")
    found = suggest_policy_of(str(tmp_path / "table.csv"))
    assert {one.column: one.role for one in found.found.columns} == {
        "_c0": "identifier", "age": "quasi-identifier", "sex": "quasi-identifier"
    }  # fmt: skip


def test_init_of_write_table_without_a_name_for_row_names_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"write\.table of R writes row names\. Fix: write the table with row\.names"):
        suggest(REFUSED)


@pytest.mark.parametrize("name", ["excel_unicode.txt", "french.csv", "polars_null.csv", "r_write_table_names.txt"])
def test_release_of_a_file_of_another_program_has_the_bytes_of_the_clean_file(tmp_path: Path, name: str) -> None:
    released = []
    for file in (CLEAN, name):
        made = CliRunner().invoke(app, ["init", str(FILES / file), "--out", str(tmp_path / file)])
        assert made.exit_code == 0, made.stderr
        ran = CliRunner().invoke(app, ["release", str(tmp_path / file / "policy.yaml"), "--accept-undecided"])
        assert ran.exit_code == 0, ran.stderr
        (data,) = (tmp_path / file / "release" / "releases").glob("*/data")
        released.append([part.read_bytes() for part in sorted(data.iterdir())])
    assert released[0] == released[1]
    assert released[0]
