"""Input that is broken or would be lost ends a run with exit code 2 and a name, and the manifest says what was read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from product import Privrisk


@pytest.fixture
def parts(small: Path, tmp_path: Path) -> Path:
    """The small table as two Parquet files; its policy reads them."""
    rows = pyarrow.csv.read_csv(tmp_path / "table.csv", parse_options=pyarrow.csv.ParseOptions(delimiter=";"))
    place = tmp_path / "rows"
    place.mkdir()
    for i in range(2):
        pq.write_table(rows.slice(30 * i, 30), place / f"part-{i}.parquet", compression="none")
    small.write_text(
        small.read_text().replace(
            f'path: {tmp_path}/table.csv, format: csv, options: {{sep: ";", header: true}}', f"path: {place}"
        )
    )
    return place


def test_the_manifest_says_what_was_expected_and_processed(
    privrisk: Privrisk, small: Path, tmp_path: Path, parts: Path
) -> None:
    ran = privrisk(str(small))
    assert ran.code == 0, ran.err
    said = {
        "files": {"expected": 2, "processed": 2},
        "rows": {"expected": 60, "processed": 60},
        "malformed_lines": 0,
        "rows_with_bytes_that_are_no_text": 0,
    }
    assert ran.manifest["input"] == said
    assert ran.summary["input"] == {**said, "missing_ids": 0, "repeated_ids": 0}


def test_a_cut_line_is_refused_unless_the_policy_says_what_to_do(
    privrisk: Privrisk, small: Path, tmp_path: Path
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(table.read_text().replace(";Ulm;a\n", ";Ulm\n", 1))
    ran = privrisk(str(small))
    assert ran.code == 2, ran.err
    assert f"table.path: '{table}': 1 lines are cut" in ran.err
    ran = privrisk(str(small), "--set=table.options.mode=PERMISSIVE")
    assert ran.code == 0, ran.err
    assert ran.manifest["input"]["malformed_lines"] == 1
    assert ran.manifest["input"]["rows"] == {"expected": None, "processed": 60}


def test_a_release_of_a_table_with_dropped_lines_holds_none_of_them(
    privrisk: Privrisk, small: Path, tmp_path: Path
) -> None:
    """The damage is in a column that no stage reads."""
    table = tmp_path / "table.csv"
    table.write_text(table.read_text().replace(";Ulm;a\n", ";Ulm\n"))
    cut = table.read_text().count(";Ulm\n")
    assert cut > 1
    dropped = "--set=columns.diagnosis={role: insensitive, action: drop}"
    ran = privrisk(str(small), dropped, "--set=table.options.mode=DROPMALFORMED")
    assert ran.code == 0, ran.err
    assert ran.manifest["rows"] == 60 - cut
    assert ran.manifest["input"]["malformed_lines"] == cut
    assert ran.manifest["input"]["rows"] == {"expected": None, "processed": 60 - cut}


def test_a_damaged_page_is_named_with_its_column(privrisk: Privrisk, small: Path, parts: Path) -> None:
    """In a task, which reads the file itself: the error arrives as what it is."""
    file = parts / "part-1.parquet"
    whole = bytearray(file.read_bytes())
    chunk = pq.read_metadata(file).row_group(0).column(3)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    whole[start : start + 20] = b"\xff" * 20
    file.write_bytes(whole)
    ran = privrisk(str(small))
    assert ran.code == 2, ran.err
    assert f"The table at '{parts}': file part-1.parquet: column 'city' cannot be read" in ran.err


def test_bytes_that_are_no_text_are_refused_in_parquet(privrisk: Privrisk, small: Path, parts: Path) -> None:
    table = pq.read_table(parts / "part-1.parquet")
    texts = pa.array([b"\xff\xfe", *[b"a"] * 29], pa.binary()).view(pa.string())
    pq.write_table(table.set_column(4, "diagnosis", texts), parts / "part-1.parquet")
    ran = privrisk(str(small))
    assert ran.code == 2, ran.err
    assert "columns.diagnosis: it has bytes that are no text in UTF-8" in ran.err


@pytest.mark.thorough("tests/tables/test_sources.py")
def test_a_table_of_many_columns_is_read(privrisk: Privrisk, small: Path, tmp_path: Path, parts: Path) -> None:
    """Also where its ids are derived, from all columns."""
    for file in parts.iterdir():
        table = pq.read_table(file)
        for i in range(700):
            table = table.append_column(f"more {i}", pa.array([f"{i}"] * table.num_rows))
        pq.write_table(table, file)
    more = "".join(f"  more {i}: {{role: insensitive, action: drop}}\n" for i in range(700))
    small.write_text(small.read_text().replace(", record_id: id", "").replace("decision:", more + "decision:"))
    ran = privrisk(str(small))
    assert ran.code == 0, ran.err


def test_a_table_of_one_row_is_warned_of(privrisk: Privrisk, small: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:3]))
    two = privrisk(str(small), root=tmp_path / "two")
    assert (two.code, "one row" in two.err) == (0, False), two.err
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:2]))
    one = privrisk(str(small), root=tmp_path / "one")
    assert one.code == 0, one.err
    assert "WARNING table: it has one row" in one.err


def test_release_parquet_of_pandas_notes_rounded_times_and_ignores_types_of_dropped_columns(
    privrisk: Privrisk, small: Path, parts: Path
) -> None:
    """Nanoseconds, a categorical, and a UUID as record id; a time of day is dropped, or has no role that uses it."""
    rows = pa.concat_tables(map(pq.read_table, sorted(parts.iterdir())))
    seen = pa.array([1_772_000_000_123_456_789 + i % 3 for i in range(60)], pa.timestamp("ns"))
    identities = pa.array([i.to_bytes(16) for i in range(60)], pa.uuid().storage_type)
    opened = pa.array([1] * 60, pa.time64("us"))
    rows = rows.set_column(0, "id", pa.ExtensionArray.from_storage(pa.uuid(), identities))
    rows = rows.set_column(
        3, "city", rows.column("city").dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    )
    for name, column in {"seen": seen, "left": seen, "opened": opened, "closed": opened}.items():
        rows = rows.append_column(name, column)
    for i, file in enumerate(sorted(parts.iterdir())):
        pq.write_table(rows.slice(30 * i, 30), file, compression="brotli", store_schema=i == 0)
    small.write_text(
        small.read_text().replace(
            "decision:",
            "  seen: {role: insensitive}\n  left: {role: insensitive, action: drop}\n"
            "  opened: {role: insensitive, action: drop}\n  closed: {role: identifier}\ndecision:",
        )
    )
    ran = privrisk(str(small))
    assert ran.code == 0, ran.err
    assert ran.manifest["input"]["times_rounded_down_to_microseconds"] == ["seen"]
    released = pq.read_table(ran.data).column("seen")
    assert released.type == pa.timestamp("us")
    assert set(released.cast(pa.int64()).to_pylist()) == {1_772_000_000_123_456}
    used = privrisk(str(small), "--set=columns.opened={role: sensitive}")
    assert used.code == 2, used.err
    assert "column 'opened' is of type time64[us], which cannot be read. Fix: write it as text" in " ".join(
        used.err.split()
    )
    small.write_text(small.read_text().replace(", record_id: id", ""))
    derived = privrisk(str(small), "--run-id=derived")
    assert derived.code == 0, derived.err
    assert derived.manifest["rows"] == 60
