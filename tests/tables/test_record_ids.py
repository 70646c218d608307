"""Derived record ids are those of their definition, whatever reads the table and however it is divided."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from naive_records import policy_of, quasi

from privrisk_spark.engine.batches import Scratch
from privrisk_spark.tables import record_ids
from privrisk_spark.tables.encode import encode
from privrisk_spark.tables.materialize import collect_materialized
from privrisk_spark.tables.opening import collect_hierarchies, read
from privrisk_spark.tables.record_ids import contents_of

ROWS = pa.table(
    {
        "town": pa.array(["a", "b", None, "", "a", "a", "ü", "1:a", "a", "a"] * 3),
        "age": pa.array([1, 1, 2, None, 1, 1, -5, 11, 1, 1] * 3, pa.int64()),
        "day": pa.array([dt.date(2020, 2, 29), None] * 15, pa.date32()),
        "left": pa.array([True, None] * 15),
        "name": pa.array([f"n{i % 2}" for i in range(30)]),
    }
)


def expected_contents(table: pa.Table) -> list[str]:
    """Return half of the SHA-256 of each row: its texts with their lengths, by definition."""
    found = []
    for row in table.to_pylist():
        texts = [None if v is None else str(v).lower() if isinstance(v, bool) else str(v) for v in row.values()]
        whole = "".join("-" if text is None else f"{len(text.encode())}:{text}" for text in texts)
        found.append(hashlib.sha256(whole.encode()).hexdigest()[:32])
    return found


def expected_ids(table: pa.Table) -> list[str]:
    seen: Counter[str] = Counter()
    found = []
    for content in expected_contents(table):
        seen[content] += 1
        found.append(f"{content}-{seen[content]}")
    return found


@pytest.mark.parametrize("size", [0, 1, 30])
def test_contents_of_columns_are_hashes_of_their_texts(size):
    table = ROWS.slice(0, size)
    assert contents_of(table.columns).to_pylist() == expected_contents(table)
    if size:
        encoded = [column.dictionary_encode() for column in table.columns]
        assert contents_of(encoded).to_pylist() == expected_contents(table)


def test_contents_of_bytes_that_are_no_text_are_hashed_as_they_are():
    column = pa.chunked_array([pa.array([b"\xff", b"\xfe"], pa.binary()).view(pa.string())])
    hashes = [hashlib.sha256(b"1:" + value).hexdigest()[:32] for value in (b"\xff", b"\xfe")]
    assert contents_of([column]).to_pylist() == hashes


def policy_for(path: Any, *, form: str) -> Any:
    options = {"header": True} if form == "csv" else {}
    columns = {name: quasi({"flat": True}) for name in ROWS.column_names}
    columns["name"] = {"role": "insensitive", "action": "drop"}
    return policy_of(columns, table={"path": str(path), "format": form, "options": options})


@pytest.mark.parametrize("by", ["tasks", "spark", "csv"])
def test_collect_materialized_numbers_identical_rows_by_any_reader_and_layout(spark, tmp_path, monkeypatch, by):
    monkeypatch.setattr(record_ids, "HASHES_PER_TASK", 7)
    (tmp_path / "t").mkdir()
    for number in range(5):
        order = np.random.default_rng(number).permutation(6)
        part = ROWS.slice(6 * number, 6).take(pa.array(order))
        if by == "csv":
            lines = [",".join("" if v is None else f'"{v}"' if v == "" else str(v) for v in row.values())
                     for row in part.to_pylist()]  # fmt: skip
            text = "\n".join([",".join(part.column_names), *lines]) + "\n"
            (tmp_path / "t" / f"{number}.csv").write_text(text.replace("True", "true"), encoding="utf-8")
        else:
            pq.write_table(part, tmp_path / "t" / f"{number}.parquet")
    policy = policy_for(tmp_path / "t", form="csv" if by == "csv" else "parquet")
    frame = read(spark, policy.table, key="table")
    if by == "csv":
        # An empty text comes back as a missing value.
        towns = pa.array([value or None for value in ROWS.column("town").to_pylist()])
        table = ROWS.set_column(0, "town", towns)
    else:
        table = ROWS
    hierarchies = collect_hierarchies(policy, frame, None)
    (tmp_path / "scratch").mkdir()
    scratch = Scratch(spark, tmp_path / "scratch")
    given = by == "spark"
    encoded = collect_materialized(scratch, frame, policy, hierarchies, blocks=True, given=given).encoded
    found = encoded.frame().toArrow()
    ids = found.column("record_id").to_pylist()
    assert sorted(ids) == sorted(expected_ids(table))
    assert max(Counter(one.partition("-")[0] for one in ids).values()) > 2
    assert found.column("block").to_pylist() == [hashlib.sha256(one.encode()).digest()[:16] for one in ids]
    # By a shuffle of the rows they are the same.
    lazy = encode(frame, policy, hierarchies, blocks=True, given=given).frame().select("record_id", "block").toArrow()
    assert lazy.sort_by("record_id").to_pylist() == found.select(lazy.column_names).sort_by("record_id").to_pylist()
