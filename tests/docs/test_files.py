"""The tables of docs/files.md are what the program does."""

from __future__ import annotations

import json
import re
from pathlib import Path

from privrisk_spark.errors import ConfigError
from privrisk_spark.policy.csv_dialect import CSV_OPTIONS, CsvDialect
from privrisk_spark.tables.recognized import recognize_table

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests" / "data" / "other_programs"


def rows_of(heading: str) -> list[list[str]]:
    """Rows of the first table below a heading."""
    text = (ROOT / "docs" / "files.md").read_text()
    table = re.search(r"^(\|.*\n)+", text[text.index(f"## {heading}") :], re.MULTILINE)
    assert table is not None
    return [re.split(r"(?<!\\) ?\| ?", line)[1:-1] for line in table.group().splitlines()[2:]]


def describe(file: Path) -> str:
    try:
        options = recognize_table(str(file)).options
    except ConfigError:  # tests/tables/test_recognized.py has the message
        return "refused: write it with `row.names = FALSE` or `col.names = NA`"
    written = ", ".join(f"{key}: {json.dumps(value)}" for key, value in sorted(options.items()))
    return f"`{written}`".replace("|", r"\|")


def test_files_page_lists_the_options_of_each_file() -> None:
    files = sorted(file for file in FILES.iterdir() if file.suffix in (".csv", ".tsv", ".txt"))
    expected = [[f"`{file.name}`", describe(file)] for file in files]
    assert rows_of("What `init` sets for files of other programs") == expected


def test_files_page_lists_the_options_of_csv() -> None:
    names: dict[str, str] = {}
    for name, field in CSV_OPTIONS.items():
        names.setdefault(field, name)
    expected = [
        [f"`{names[field]}`", "" if info.default is None else f"`{json.dumps(info.default)}`", info.description]
        for field, info in CsvDialect.model_fields.items()
    ]
    assert rows_of("Options of CSV") == expected
